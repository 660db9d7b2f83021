/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hold: which descriptors are open before the loop starts.
 *   none      0, 1, 2
 *   low:N     0 .. N-1, nothing free below N
 *   every:K   0 .. top-1 without K-1, 2K-1, ...: one in every K is free
 *   random:P  each of 0 .. top-1 with probability P, by the seed
 *   file:F    the numbers in a file, one a line
 *   pid:PID   what a live process has open now
 *
 * The workload takes the lowest free descriptor, so it lives in the holes; the
 * tasks' own files and the set-up do not, and what it took it gives back: the
 * hold is compared with the table before the windows and after them.
 */
#ifndef FDSCALE_HOLD_H
#define FDSCALE_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "problem.h"

#define HOLD_MAX 100000000u
#define HOLD_TOP 1024u /* --hold-top where none is given */

struct hold {
	const char *text; /* as asked for; the caller's */
	uint32_t top;	  /* nothing at or above it is held */
	uint64_t *bits;	  /* 1 = held; NULL: all below top are */
};

/*
 * @top and @seed are for every:K and random:P.  0; USAGE naming the word and
 * the right ones, or the file and its line, or that there is no such process;
 * COULD_NOT where a process may not be looked at.  Undo with hold_free().
 */
int hold_parse(const char *text, uint32_t top, uint64_t seed, struct hold *hold,
	       struct problem *p);
void hold_free(struct hold *hold);

static inline bool hold_has(const struct hold *hold, uint32_t fd)
{
	if (fd >= hold->top)
		return false;
	return !hold->bits || hold->bits[fd / 64] >> fd % 64 & 1;
}

/*
 * The kernel's table of this process becomes: the hold, a file of its own for
 * each of @sources at @first_source and up, and nothing else.  Grown to
 * @slots first.  All of it naming /dev/null but the sources, which are in
 * memory, or in @directory where a filter refuses that.  0 or COULD_NOT.
 */
int hold_build(const struct hold *hold, uint32_t slots, uint32_t first_source,
	       uint32_t sources, const char *directory, struct problem *p);

/* This process's table has @slots at least; what is open stays as it is. */
int hold_grow(uint32_t slots, struct problem *p);

/* Compare with /proc/self/fd (fcntl() where that is hidden). */
int hold_check(const struct hold *hold, uint32_t first_source, uint32_t sources,
	       struct problem *p);

/* FDSize of this process, or 0 where /proc does not say. */
uint32_t hold_fdsize(void);

#endif
