/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock that every task reads for itself. */
#ifndef FDSCALE_CLOCK_H
#define FDSCALE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds; the same on all CPUs. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* A spinning task leaves the core to its sibling. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
