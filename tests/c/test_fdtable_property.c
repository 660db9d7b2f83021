// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every search with every set of switches, every preset, both locks and the
 * clones, against the oracle.
 *   FDSCALE_PROPERTY_CASES  cases of each variant (2; 160 operations a case)
 *   FDSCALE_PROPERTY_SEED   the first seed (1)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "property.h"

static void hold(const char *spec, enum files_lock lock, bool clone)
{
	unsigned long cases = prop_env("FDSCALE_PROPERTY_CASES", 2);
	unsigned long seed = prop_env("FDSCALE_PROPERTY_SEED", 1);
	struct problem p;
	const struct variant *v = variant_find(spec, lock, clone, &p);
	uint64_t state = seed;

	if (!v)
		fail_msg("%s", p.text);
	/* Variants get cases of their own, the same in every run. */
	for (const char *s = spec; *s; s++)
		state = state * 31 + (unsigned char)*s;
	for (unsigned long i = 0; i < cases; i++)
		if (!prop_holds(v, prop_random(&state), true, false))
			fail_msg("%s does not hold", spec);
}

static void with_switches(const char *base, enum files_lock lock, bool clone)
{
	char spec[200];
	unsigned int set, i, n;

	for (set = 0; set < 64; set++) {
		n = snprintf(spec, sizeof(spec), "%s", base);
		for (i = 0; variant_switches[i].name; i++)
			if (set >> i & 1)
				n += snprintf(spec + n, sizeof(spec) - n, "+%s",
					      variant_switches[i].name);
		assert_true(i == 6);
		hold(spec, lock, clone);
	}
}

static void test_searches(void **state)
{
	(void)state;
	for (const struct variant_word *w = variant_searches; w->name; w++) {
		with_switches(w->name, FILES_LOCK_QUEUED, false);
		with_switches(w->name, FILES_LOCK_TAS, false);
	}
}

static void test_presets(void **state)
{
	(void)state;
	for (const struct variant_word *w = variant_presets; w->name; w++) {
		hold(w->name, FILES_LOCK_QUEUED, false);
		hold(w->name, FILES_LOCK_TAS, false);
	}
}

static void test_clones(void **state)
{
	static const char *const baselines[] = {"two-level", "first-word",
						"next_fd-word"};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		with_switches(baselines[i], FILES_LOCK_QUEUED, true);
		with_switches(baselines[i], FILES_LOCK_TAS, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_searches),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_clones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
