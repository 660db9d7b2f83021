/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hold: which descriptors are open before the loop starts.
 *   none    0, 1, 2
 *   low:N   0 .. N-1, nothing free below N
 */
#ifndef FDSCALE_HOLD_H
#define FDSCALE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "problem.h"

#define HOLD_MAX 100000000u

struct hold {
	char text[64];
	uint32_t top; /* nothing at or above it is held */
};

/* 0, or USAGE naming the word and the right ones. */
int hold_parse(const char *text, struct hold *hold, struct problem *p);
bool hold_has(const struct hold *hold, uint32_t fd);

/*
 * The kernel's table of this process becomes: the hold, a file of its own for
 * each of @sources at @first_source and up, and nothing else.  Grown to
 * @slots first.  All of it naming /dev/null but the sources.  0 or COULD_NOT.
 */
int hold_build(const struct hold *hold, uint32_t slots, uint32_t first_source,
	       uint32_t sources, struct problem *p);

/* Compare with /proc/self/fd (fcntl() where that is hidden). */
int hold_check(const struct hold *hold, uint32_t first_source, uint32_t sources,
	       struct problem *p);

/* FDSize of this process, or 0 where /proc does not say. */
uint32_t hold_fdsize(void);

#endif
