/* SPDX-License-Identifier: GPL-2.0-only */
/* splitmix64: small, seeded, the same everywhere; for orders, not secrets. */
#ifndef FDSCALE_RANDOM_H
#define FDSCALE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 .. @n-1 in random order. */
static inline void random_order(uint64_t *state, unsigned int *out,
				unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int j = random_next(state) % (i + 1);

		out[i] = i;
		out[i] = out[j];
		out[j] = i;
	}
}

#endif
