// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file of --hold file:F, against a reading of our own that is as strict as
 * the manual: a number a line, nothing around it; blank lines; "#" begins a
 * comment; a line may end in CR.
 */
#include <stdbool.h>

#include "../../drivers/harness/hold.h"
#include "fuzz.h"

#define MOST 4096 /* descriptors looked at, one by one */

struct expected {
	bool right;
	long top;
	bool held[MOST];
};

static void expect_line(struct expected *e, const char *line, size_t n)
{
	unsigned long value = 0;

	if (n && line[n - 1] == '\r')
		n--;
	if (!n || *line == '#')
		return;
	for (size_t i = 0; i < n; i++) {
		if (line[i] < '0' || line[i] > '9' || value >= HOLD_MAX) {
			e->right = false;
			return;
		}
		value = value * 10 + (line[i] - '0');
	}
	if (value >= HOLD_MAX)
		e->right = false;
	if (value < MOST)
		e->held[value] = true;
	if ((long)value >= e->top)
		e->top = value + 1;
}

static void expect(struct expected *e, const char *data, size_t size)
{
	size_t from = 0;

	*e = (struct expected){.right = true};
	for (size_t i = 0; i <= size; i++) {
		if (i < size && data[i] != '\n')
			continue;
		expect_line(e, data + from, i - from);
		from = i + 1;
	}
	e->right &= e->top > 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct expected expected;
	char path[256], word[300];
	struct problem p = {""};
	struct hold hold;
	int status;

	fuzz_file(path, sizeof(path), data, size);
	snprintf(word, sizeof(word), "file:%s", path);
	status = hold_parse(word, 64, 1, &hold, &p);
	unlink(path);
	expect(&expected, (const char *)data, size);
	MUST(!status == expected.right);
	if (status) {
		must_refuse(status, &p);
		MUST(status == USAGE && strstr(p.text, path));
		return 0;
	}
	MUST(hold.top == expected.top);
	for (unsigned int fd = 0; fd < MOST; fd++)
		MUST(hold_has(&hold, fd) == expected.held[fd]);
	hold_free(&hold);
	return 0;
}
