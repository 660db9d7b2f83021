/* SPDX-License-Identifier: GPL-2.0-only */
/* Time spent in registers alone: no memory, no clock. */
#ifndef FDSCALE_SPIN_H
#define FDSCALE_SPIN_H

#include <stdint.h>

#include "clock.h"

/* @turns of a loop that the compiler leaves alone; about a cycle each. */
static inline void spin(uint64_t turns)
{
	while (turns--)
		__asm__ volatile("" : "+r"(turns));
}

/* Turns that take @ns here: the fastest of ten tries, the CPU being warm. */
static inline uint64_t spin_turns(uint64_t ns)
{
	const uint64_t tried = 200000;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 10; i++) {
		uint64_t start = clock_ns();

		spin(tried);
		start = clock_ns() - start;
		best = start < best ? start : best;
	}
	return ns * tried / (best ? best : 1);
}

#endif
