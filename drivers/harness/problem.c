// SPDX-License-Identifier: GPL-2.0-only
#include "problem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* How many bytes the plain character at @s has; 0 where there is none. */
static int plain_length(const char *s)
{
	static const uint32_t least[] = {0, 0xa0, 0x800, 0x10000};
	const unsigned char *u = (const unsigned char *)s;
	int more = *u < 0x80 ? 0 : *u < 0xe0 ? 1 : *u < 0xf0 ? 2 : 3;
	uint32_t c = more ? *u & (0x3f >> more) : *u;

	if (!more)
		return c >= ' ' && c != 0x7f;
	if (*u < 0xc2 || *u > 0xf4)
		return 0;
	for (int i = 1; i <= more; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return more + 1;
}

bool text_plain(const char *text)
{
	int n = 1;

	for (; *text && n; text += n)
		n = plain_length(text);
	return n;
}

static void make_plain(char *text)
{
	int n;

	for (; *text; text += n ? n : 1) {
		n = plain_length(text);
		if (!n)
			*text = '?';
	}
}

int problem_set(struct problem *p, enum status status, const char *fmt, ...)
{
	va_list ap;

	if (p) {
		va_start(ap, fmt);
		vsnprintf(p->text, sizeof(p->text), fmt, ap);
		va_end(ap);
		make_plain(p->text);
	}
	return status;
}
