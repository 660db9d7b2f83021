/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Searches for a zero bit.  Within one word they are inlined; a search of any
 * other length is a call, as it is in the kernel (find_next_zero_bit).
 */
#ifndef FDSCALE_BITS_H
#define FDSCALE_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define always_inline inline __attribute__((always_inline))

#define WORD_BITS 64u
#define WORD_FULL (~0ull)

static always_inline bool bit_test(const uint64_t *map, unsigned int bit)
{
	return map[bit / WORD_BITS] >> (bit % WORD_BITS) & 1;
}

static always_inline void bit_set(uint64_t *map, unsigned int bit)
{
	map[bit / WORD_BITS] |= 1ull << (bit % WORD_BITS);
}

static always_inline void bit_clear(uint64_t *map, unsigned int bit)
{
	map[bit / WORD_BITS] &= ~(1ull << (bit % WORD_BITS));
}

/* The first zero bit of @word at or above @from, or 64. */
static always_inline unsigned int zero_in_word(uint64_t word, unsigned int from)
{
	uint64_t zeros;

	if (from >= WORD_BITS)
		return WORD_BITS;
	zeros = ~word & (WORD_FULL << from);
	return zeros ? (unsigned int)__builtin_ctzll(zeros) : WORD_BITS;
}

/* The first zero bit of @map at or above @from, or @size. */
static always_inline unsigned int
next_zero_inline(const uint64_t *map, unsigned int size, unsigned int from)
{
	unsigned int w = from / WORD_BITS;
	unsigned int bit;
	uint64_t zeros;

	if (from >= size)
		return size;
	zeros = ~map[w] & (WORD_FULL << (from % WORD_BITS));
	while (!zeros) {
		if (++w * WORD_BITS >= size)
			return size;
		zeros = ~map[w];
	}
	bit = w * WORD_BITS + (unsigned int)__builtin_ctzll(zeros);
	return bit < size ? bit : size;
}

/* The same, as a call. */
unsigned int next_zero(const uint64_t *map, unsigned int size,
		       unsigned int from);

#endif
