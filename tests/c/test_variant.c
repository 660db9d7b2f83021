// SPDX-License-Identifier: GPL-2.0-only
/* Variants by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../drivers/fdtable/table.h"

static void check_name(const char *spec, const char *canonical)
{
	const struct variant *v =
		variant_find(spec, FILES_LOCK_TAS, false, NULL);

	assert_non_null(v);
	assert_string_equal(variant_name(v), canonical);
	assert_ptr_equal(v,
			 variant_find(canonical, FILES_LOCK_TAS, false, NULL));
}

static void check_wrong(const char *spec, const char *names, const char *offers)
{
	struct problem p;

	assert_null(variant_find(spec, FILES_LOCK_QUEUED, false, &p));
	assert_non_null(strstr(p.text, names));
	assert_non_null(strstr(p.text, offers));
}

static void test_names(void **state)
{
	const struct variant *a, *b;

	(void)state;
	check_name("two-level", "two-level");
	check_name("first-word+inline-search+cond-clear",
		   "first-word+cond-clear+inline-search");
	check_name("stock-6.12+split-lines", "stock-6.12+split-lines");
	check_name("merged-6.13+cond-clear", "merged-6.13");
	check_name("two-level+end-late+end-late", "two-level+end-late");
	check_wrong("one-levle", "'one-levle'", "one-level");
	check_wrong("patch-1+sanity", "'sanity'", "sanity-read");
	check_wrong("patch-1+", "''", "cond-clear");
	check_wrong("", "''", "merged-6.13");

	a = variant_find("stock-6.12", FILES_LOCK_QUEUED, false, NULL);
	b = variant_find("stock-6.12", FILES_LOCK_QUEUED, true, NULL);
	assert_string_equal(variant_name(a), variant_name(b));
	assert_ptr_not_equal(a->alloc, b->alloc);
	assert_ptr_not_equal(a->ops->close, b->ops->close);
	assert_null(variant_find("any-fd", FILES_LOCK_QUEUED, true, NULL));
	assert_null(variant_nonconforming(a));
	assert_non_null(variant_nonconforming(
		variant_find("any-fd", FILES_LOCK_QUEUED, false, NULL)));
}

/* The presets by their definition: equal code, not only equal results. */
static void test_presets(void **state)
{
	static const char *const same[][2] = {
		{"stock-6.12", "two-level+sanity-read+eager-expand"},
		{"series-v1", "first-word-v1+cond-clear+eager-expand"},
		{"series-v2", "first-word-v2+cond-clear+end-late"},
		{"series-v3", "first-word+cond-clear+end-late"},
		{"series-v5", "next_fd-word+cond-clear"},
		{"merged-6.13", "next_fd-word+cond-clear"},
		{"patch-1", "two-level"},
		{"patch-1-2", "two-level+cond-clear"},
	};
	const struct variant *a, *b;

	(void)state;
	for (unsigned int i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		a = variant_find(same[i][0], FILES_LOCK_QUEUED, false, NULL);
		b = variant_find(same[i][1], FILES_LOCK_QUEUED, false, NULL);
		assert_ptr_equal(a->alloc, b->alloc);
		assert_ptr_equal(a->ops, b->ops);
	}
	assert_null(variant_presets[8].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_presets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
