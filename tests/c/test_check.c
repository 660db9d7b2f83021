// SPDX-License-Identifier: GPL-2.0-only
/* Who keeps which of the conformance rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../drivers/harness/check.h"

/* The broken rules, in the order of the check, each followed by a space. */
static const char *broken(const struct variant *v)
{
	struct check_result results[64];
	static char names[1000];
	struct problem p;
	int count, found = 0;
	size_t n = 0;

	assert_in_range(check_rule_count, 15, 64);
	count = check_rules(v, results, &p);
	if (count < 0)
		fail_msg("%s", p.text);
	names[0] = '\0';
	for (size_t i = 0; i < check_rule_count; i++) {
		assert_true(results[i].ok == !results[i].detail[0]);
		if (results[i].ok)
			continue;
		n += snprintf(names + n, sizeof(names) - n, "%s ",
			      results[i].rule);
		found++;
	}
	assert_int_equal(found, count);
	return names;
}

static const char *broken_by(const char *spec, enum files_lock lock)
{
	struct problem p;
	const struct variant *v = variant_find(spec, lock, false, &p);

	if (!v)
		fail_msg("%s", p.text);
	return broken(v);
}

static void test_kernel(void **state)
{
	(void)state;
	assert_string_equal(broken(NULL), "");
}

static void test_conforming(void **state)
{
	const struct variant_word *lists[] = {variant_searches,
					      variant_presets};
	const struct variant_word *w;
	const struct variant *v;

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (w = lists[i]; w->name; w++) {
			v = variant_find(w->name, FILES_LOCK_TAS, false, NULL);
			if (variant_nonconforming(v))
				continue;
			assert_string_equal(broken(v), "");
			assert_string_equal(
				broken_by(w->name, FILES_LOCK_QUEUED), "");
		}
	}
}

/*
 * v1 takes what word 0 offers: below start or taken by another where nothing
 * at or above start is free in it, and past the limit.
 */
static void test_first_word_v1(void **state)
{
	const char *set = "at-or-above-start not-taken emfile-at-limit "
			  "emfile-lowered-limit ";

	(void)state;
	assert_string_equal(broken_by("first-word-v1", FILES_LOCK_QUEUED), set);
	assert_string_equal(broken_by("series-v1", FILES_LOCK_QUEUED), set);
}

/* It stays in its own word while one further down has become free. */
static void test_any_fd(void **state)
{
	const char *set = "lowest-free after-growth ";

	(void)state;
	assert_string_equal(broken_by("any-fd", FILES_LOCK_QUEUED), set);
	assert_string_equal(broken_by("any-fd-split", FILES_LOCK_QUEUED), set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_conforming),
		cmocka_unit_test(test_first_word_v1),
		cmocka_unit_test(test_any_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
