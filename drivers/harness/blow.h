/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a task's own, written between operations, so that the table is
 * found in a farther cache.  No other task's cache is touched.
 */
#ifndef FDSCALE_BLOW_H
#define FDSCALE_BLOW_H

#include <stdint.h>
#include <string.h>

static inline void blow(void *memory, uint64_t kib, uint64_t n)
{
	memset(memory, (int)n, kib * 1024);
	/* Else the compiler sees that nobody reads it. */
	__asm__ volatile("" : : "r"(memory) : "memory");
}

#endif
