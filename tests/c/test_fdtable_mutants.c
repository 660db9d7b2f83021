// SPDX-License-Identifier: GPL-2.0-only
/*
 * The property test must be able to fail: mistakes, each compiled into the
 * templates in place of one of their small steps, must be caught.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "property.h"

/* table.h and searches.h come first: the mutants replace what they define. */
#include "../../drivers/fdtable/searches.h"

#define CASES 300

#define MUTATED(X)                                                             \
	X(one_level, "", SHAPE_LOWEST, "", NULL)                               \
	X(two_level, "", SHAPE_LOWEST, "", NULL)                               \
	X(next_fd_word, "", SHAPE_LOWEST, "", NULL)                            \
	X(three_level, "", SHAPE_TOP, "", NULL)
#define SET_SEARCHES MUTATED
#define SET_AT_RUN_TIME
#define SET_OPS(X) X(SHAPE_LOWEST, 0) X(SHAPE_TOP, 0)
#define SET_LOCK FILES_LOCK_QUEUED

/* A search that starts one bit too far. */
static always_inline unsigned int off_by_one(struct look *l)
{
	return scan(l, l->fdt->open_fds, l->fdt->max_fds, l->from + 1);
}

/* The word may be full now; its bit stays clear. */
static always_inline void forget_full_bit(const struct fdtable *fdt,
					  unsigned int fd, enum shape shape)
{
	(void)shape;
	bit_set(fdt->open_fds, fd);
}

/* The word has a free one now; its bit stays set. */
static always_inline void keep_full_bit(const struct fdtable *fdt,
					unsigned int fd, enum shape shape,
					bool cond_clear)
{
	(void)shape;
	(void)cond_clear;
	bit_clear(fdt->open_fds, fd);
}

static always_inline void raise_too_far(struct files *files, unsigned int start,
					unsigned int fd)
{
	if (start <= files->next_fd)
		files->next_fd = fd + 2;
}

/* The same without the condition: F_DUPFD moves the hint over free ones. */
static always_inline void raise_always(struct files *files, unsigned int start,
				       unsigned int fd)
{
	(void)start;
	files->next_fd = fd + 1;
}

#define SET unchanged
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef SET

#define SET search_off_by_one
#define search_one_level off_by_one
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef search_one_level
#undef SET

#define SET full_bit_forgotten
#define set_open forget_full_bit
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef set_open
#undef SET

#define SET full_bit_kept
#define clear_open keep_full_bit
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef clear_open
#undef SET

#define SET hint_too_far
#define raise_hint raise_too_far
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef raise_hint
#undef SET

#define SET hint_always
#define raise_hint raise_always
#include "../../drivers/fdtable/alloc.h"
#include "../../drivers/fdtable/close.h"
#undef raise_hint
#undef SET

/* How many of the cases a set fails, with the first one's smallest form. */
static unsigned int caught(const struct variant_set *set, enum search search,
			   enum shape shape, bool structure, unsigned int *ops)
{
	static struct prop_case c;
	static struct world w;
	struct variant v = {
		.alloc = set->allocs[search][0],
		.ops = &set->ops[shape][0],
		.lock = FILES_LOCK_QUEUED,
		.shape = shape,
		.name = "a mutant",
	};
	unsigned int failures = 0;

	for (uint64_t seed = 1; seed <= CASES; seed++) {
		prop_generate(&c, &v, seed);
		c.structure = structure;
		if (prop_run(&c, &w) < 0)
			continue;
		if (failures++)
			continue;
		prop_shrink(&c, &w);
		*ops = c.count;
	}
	return failures;
}

static void test_unchanged(void **state)
{
	unsigned int ops;

	(void)state;
	assert_int_equal(caught(&set_unchanged, SEARCH_one_level, SHAPE_LOWEST,
				true, &ops),
			 0);
	assert_int_equal(caught(&set_unchanged, SEARCH_two_level, SHAPE_LOWEST,
				true, &ops),
			 0);
}

static void test_off_by_one(void **state)
{
	unsigned int ops = 0;

	(void)state;
	assert_true(caught(&set_search_off_by_one, SEARCH_one_level,
			   SHAPE_LOWEST, false, &ops) > 0);
	assert_int_equal(ops, 1); /* open */
}

/*
 * A full bit forgotten where it should be set makes two-level look into a word
 * that has none free, and go on from there: slower and still right, so that
 * only the structure shows it.
 */
static void test_full_bit_forgotten(void **state)
{
	unsigned int ops = 0;

	(void)state;
	assert_true(caught(&set_full_bit_forgotten, SEARCH_two_level,
			   SHAPE_LOWEST, true, &ops) > 0);
	assert_in_range(ops, 1, 4); /* fill, take the word's last */
	assert_true(caught(&set_full_bit_forgotten, SEARCH_next_fd_word,
			   SHAPE_LOWEST, true, &ops) > 0);
	assert_true(caught(&set_full_bit_forgotten, SEARCH_three_level,
			   SHAPE_TOP, true, &ops) > 0);
	assert_int_equal(caught(&set_full_bit_forgotten, SEARCH_two_level,
				SHAPE_LOWEST, false, &ops),
			 0);
}

/* Forgotten where it should be cleared, it hides a free descriptor. */
static void test_full_bit_kept(void **state)
{
	unsigned int ops = 0;

	(void)state;
	assert_true(caught(&set_full_bit_kept, SEARCH_two_level, SHAPE_LOWEST,
			   false, &ops) > 0);
	assert_in_range(ops, 3, 6); /* fill, close in a full word, open */
	assert_true(caught(&set_full_bit_kept, SEARCH_three_level, SHAPE_TOP,
			   false, &ops) > 0);
	/* next_fd-word finds it all the same unless the hint is elsewhere. */
	assert_true(caught(&set_full_bit_kept, SEARCH_next_fd_word,
			   SHAPE_LOWEST, false, &ops) > 0);
}

static void test_hint_too_far(void **state)
{
	unsigned int ops = 0;

	(void)state;
	assert_true(caught(&set_hint_too_far, SEARCH_two_level, SHAPE_LOWEST,
			   false, &ops) > 0);
	assert_int_equal(ops, 2); /* open twice */
	assert_true(caught(&set_hint_too_far, SEARCH_next_fd_word, SHAPE_LOWEST,
			   false, &ops) > 0);
}

static void test_hint_raised_by_dupfd(void **state)
{
	unsigned int ops = 0;

	(void)state;
	assert_true(caught(&set_hint_always, SEARCH_two_level, SHAPE_LOWEST,
			   false, &ops) > 0);
	assert_int_equal(ops, 3); /* open, F_DUPFD beyond a gap, open */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unchanged),
		cmocka_unit_test(test_off_by_one),
		cmocka_unit_test(test_full_bit_forgotten),
		cmocka_unit_test(test_full_bit_kept),
		cmocka_unit_test(test_hint_too_far),
		cmocka_unit_test(test_hint_raised_by_dupfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
