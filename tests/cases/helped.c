// SPDX-License-Identifier: GPL-2.0-only
/*
 * A test case with a helper that answers over a pipe; where
 * $FDSCALE_CASE_HELPER is "asserts" or "dies" it does so after a while.
 */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *testcase_description = "a byte to a helper and back";

extern void new_task(void *(func)(void *), void *arg);

struct pipes {
	int to[2], back[2];
};

static void *helper(void *arg)
{
	const char *how = getenv("FDSCALE_CASE_HELPER");
	struct pipes *p = arg;
	unsigned int n = 0;
	char c;

	while (read(p->to[0], &c, 1) == 1 && write(p->back[1], &c, 1) == 1) {
		n++;
		assert(strcmp(how, "asserts") || n < 2000);
		if (!strcmp(how, "dies") && n == 2000)
			raise(SIGBUS);
	}
	return NULL;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
	static struct pipes all[64];
	struct pipes *p = &all[nr % 64];
	char c = 0;

	assert(!pipe(p->to) && !pipe(p->back));
	new_task(helper, p);
	for (;;) {
		assert(write(p->to[1], &c, 1) == 1);
		assert(read(p->back[0], &c, 1) == 1);
		(*iterations)++;
	}
}
