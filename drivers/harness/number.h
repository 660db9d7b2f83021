/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers from the command line, strictly: all digits, in range, or named. */
#ifndef FDSCALE_NUMBER_H
#define FDSCALE_NUMBER_H

#include <stdint.h>

#include "problem.h"

/* 0, or USAGE with @p naming @what, the text and the range. */
int number_parse(const char *what, const char *text, uint64_t least,
		 uint64_t most, uint64_t *out, struct problem *p);

/*
 * "1.2%" or "1.2" as 0.012: above 0, at most 100%; else USAGE and @p as above.
 */
int number_percent(const char *what, const char *text, double *out,
		   struct problem *p);

#endif
