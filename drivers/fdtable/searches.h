/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The searches.  Each is one short function: the first free descriptor at or
 * above look->from, which is below max_fds; max_fds or above is "not found".
 * A new one is written here and gets its line in SEARCHES.
 */
#ifndef FDSCALE_SEARCHES_H
#define FDSCALE_SEARCHES_H

#include "table.h"

#define NOT_LOWEST "does not conform: not the lowest descriptor"

/* identifier, name, shape, about, why it does not conform or NULL */
#define SEARCHES(X)                                                            \
	X(one_level, "one-level", SHAPE_LOWEST,                                \
	  "scans the open bitmap from next_fd; before 2015", NULL)             \
	X(two_level, "two-level", SHAPE_LOWEST,                                \
	  "finds a word that is not full first, then the bit; 2015 to 6.12",   \
	  NULL)                                                                \
	X(first_word_v1, "first-word-v1", SHAPE_LOWEST,                        \
	  "word 0 if it has a free bit, unchecked; v1 of June 2024",           \
	  "does not conform: start and limit ignored")                         \
	X(first_word_v2, "first-word-v2", SHAPE_LOWEST,                        \
	  "word 0 if start is 0 and it has a free bit, else two-level; v2",    \
	  NULL)                                                                \
	X(first_word, "first-word", SHAPE_LOWEST,                              \
	  "word 0 if next_fd lies in it, else two-level; v3", NULL)            \
	X(next_fd_word, "next_fd-word", SHAPE_LOWEST,                          \
	  "the word of next_fd, else two-level; v5, kernels since 6.13", NULL) \
	X(next_fd_word_checked, "next_fd-word-checked", SHAPE_LOWEST,          \
	  "the word of next_fd if its full bit is clear, else two-level",      \
	  NULL)                                                                \
	X(next_fd_line, "next_fd-line", SHAPE_LOWEST,                          \
	  "the rest of the 64-byte line of next_fd, else two-level", NULL)     \
	X(three_level, "three-level", SHAPE_TOP,                               \
	  "the word of next_fd, else through a third bitmap; 2026", NULL)      \
	X(any_fd, "any-fd", SHAPE_ANY,                                         \
	  "any free one, from a word of the task's own; one lock", NOT_LOWEST) \
	X(any_fd_split, "any-fd-split", SHAPE_SPLIT,                           \
	  "any free one, from a part of the task's own with its own lock",     \
	  NOT_LOWEST)

/* Those that are compiled a second time: what others are compared with. */
#define BASELINES(X)                                                           \
	X(two_level, "", SHAPE_LOWEST, "", NULL)                               \
	X(first_word, "", SHAPE_LOWEST, "", NULL)                              \
	X(next_fd_word, "", SHAPE_LOWEST, "", NULL)

#define SEARCH_ID(id, name, shape, about, why) SEARCH_##id,
enum search { SEARCHES(SEARCH_ID) SEARCH_COUNT };
#undef SEARCH_ID

struct look {
	const struct fdtable *fdt;
	struct files_task *task;
	unsigned int start;
	unsigned int from; /* max(start, next_fd) */
	unsigned int end;
	bool inlined;	/* inline-search; a constant */
	bool unchecked; /* out: take it whatever end and max_fds are */
};

typedef unsigned int search_fn(struct look *l);

/* A search of more than one word. */
static always_inline unsigned int scan(const struct look *l,
				       const uint64_t *map, unsigned int size,
				       unsigned int from)
{
	return l->inlined ? next_zero_inline(map, size, from)
			  : next_zero(map, size, from);
}

static always_inline unsigned int larger(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

static always_inline unsigned int search_one_level(struct look *l)
{
	return scan(l, l->fdt->open_fds, l->fdt->max_fds, l->from);
}

static always_inline unsigned int search_two_level(struct look *l)
{
	unsigned int max = l->fdt->max_fds;
	unsigned int first = scan(l, l->fdt->full_fds_bits, max / WORD_BITS,
				  l->from / WORD_BITS) *
			     WORD_BITS;

	if (first >= max)
		return max;
	return scan(l, l->fdt->open_fds, max, larger(l->from, first));
}

static always_inline unsigned int search_first_word_v1(struct look *l)
{
	uint64_t word = l->fdt->open_fds[0];

	if (word == WORD_FULL)
		return search_two_level(l);
	l->unchecked = true;
	return zero_in_word(word, l->from);
}

static always_inline unsigned int search_first_word_v2(struct look *l)
{
	uint64_t word = l->fdt->open_fds[0];

	if (word == WORD_FULL || l->start)
		return search_two_level(l);
	return zero_in_word(word, l->from);
}

static always_inline unsigned int search_first_word(struct look *l)
{
	unsigned int bit;

	if (l->from < WORD_BITS) {
		bit = zero_in_word(l->fdt->open_fds[0], l->from);
		if (bit < WORD_BITS)
			return bit;
	}
	return search_two_level(l);
}

static always_inline unsigned int search_next_fd_word(struct look *l)
{
	unsigned int w = l->from / WORD_BITS;
	unsigned int bit =
		zero_in_word(l->fdt->open_fds[w], l->from % WORD_BITS);

	return bit < WORD_BITS ? w * WORD_BITS + bit : search_two_level(l);
}

static always_inline unsigned int search_next_fd_word_checked(struct look *l)
{
	if (!bit_test(l->fdt->full_fds_bits, l->from / WORD_BITS))
		return search_next_fd_word(l);
	return search_two_level(l);
}

static always_inline unsigned int search_next_fd_line(struct look *l)
{
	unsigned int w = l->from / WORD_BITS;
	unsigned int last = w | (CACHE_LINE / sizeof(uint64_t) - 1);
	unsigned int from = l->from % WORD_BITS;
	unsigned int bit;

	if (last >= l->fdt->max_fds / WORD_BITS)
		last = l->fdt->max_fds / WORD_BITS - 1;
	for (; w <= last; w++, from = 0) {
		bit = zero_in_word(l->fdt->open_fds[w], from);
		if (bit < WORD_BITS)
			return w * WORD_BITS + bit;
	}
	return search_two_level(l);
}

static always_inline unsigned int search_three_level(struct look *l)
{
	unsigned int max = l->fdt->max_fds, words = max / WORD_BITS;
	unsigned int w = l->from / WORD_BITS;
	unsigned int bit =
		zero_in_word(l->fdt->open_fds[w], l->from % WORD_BITS);

	if (bit < WORD_BITS)
		return w * WORD_BITS + bit;
	bit = scan(l, l->fdt->top_bits, (words + WORD_BITS - 1) / WORD_BITS,
		   w / WORD_BITS);
	w = scan(l, l->fdt->full_fds_bits, words, larger(w, bit * WORD_BITS));
	if (w >= words)
		return max;
	return scan(l, l->fdt->open_fds, max, larger(l->from, w * WORD_BITS));
}

static always_inline unsigned int search_any_fd(struct look *l)
{
	unsigned int max = l->fdt->max_fds, words = max / WORD_BITS;
	unsigned int w = l->task->hint;
	unsigned int bit, fd;

	if (l->start) /* F_DUPFD: the next_fd of this shape is always 0 */
		return search_two_level(l);
	if (unlikely(w >= words))
		w %= words;
	bit = zero_in_word(l->fdt->open_fds[w], 0);
	if (unlikely(bit == WORD_BITS)) {
		w = scan(l, l->fdt->full_fds_bits, words, w);
		if (w == words)
			w = scan(l, l->fdt->full_fds_bits, words, 0);
		if (w == words)
			return max;
		bit = zero_in_word(l->fdt->open_fds[w], 0);
	}
	l->task->hint = w;
	fd = w * WORD_BITS + bit;
	return likely(fd < l->end) ? fd : search_two_level(l);
}

/* From the task's own part, whose lock is held. */
static always_inline unsigned int search_any_fd_split(struct look *l)
{
	unsigned int w = l->task->hint;
	unsigned int bit;

	if (l->start)
		return l->fdt->max_fds;
	if (likely(w < l->fdt->max_fds / WORD_BITS)) {
		bit = zero_in_word(l->fdt->open_fds[w], 0);
		if (likely(bit < WORD_BITS))
			return w * WORD_BITS + bit;
	}
	return split_search(l->fdt, l->task);
}

#endif
