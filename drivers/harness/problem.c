// SPDX-License-Identifier: GPL-2.0-only
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

int problem_set(struct problem *p, enum status status, const char *fmt, ...)
{
	va_list ap;

	if (p) {
		va_start(ap, fmt);
		vsnprintf(p->text, sizeof(p->text), fmt, ap);
		va_end(ap);
	}
	return status;
}
