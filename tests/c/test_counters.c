// SPDX-License-Identifier: GPL-2.0-only
/* What is made of the counts: pipes stand in for the events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../drivers/harness/counters.h"

/* Counters of one kind on one child, whose readings come out of feed. */
static struct counter_list list;
static struct counters c;
static int feed;

static int one_child(void **state)
{
	struct counter *it = &c.counter[0][SIDE_USER];
	int ends[2];

	(void)state;
	memset(&c, 0, sizeof(c));
	assert_int_equal(counter_list_parse("instructions", &list, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	c.list = &list;
	c.children = 1;
	it->fds = malloc(sizeof(*it->fds));
	it->before = calloc(1, sizeof(*it->before));
	it->fds[0] = ends[0];
	feed = ends[1];
	return 0;
}

static int no_child(void **state)
{
	(void)state;
	counters_close(&c);
	return close(feed);
}

static void order(struct counter_reading reading, struct counted done)
{
	assert_int_equal(write(feed, &reading, sizeof(reading)),
			 sizeof(reading));
	counters_start(&c);
	counters_stop(&c, done);
}

static void test_what_is_besides_is_taken_off(void **state)
{
	double each = 0;

	(void)state;
	/* 100 turns of 3; then 200 of them and 1000 operations of 7. */
	order((struct counter_reading){300, 50, 50}, (struct counted){0, 100});
	counters_empty(&c);
	order((struct counter_reading){300 + 600 + 7000, 90, 90},
	      (struct counted){1000, 200});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 7, 1e-9);
	assert_false(counters_per_op(&c, 0, SIDE_KERNEL, &each));
	/* Nothing was done: nothing to divide by. */
	order((struct counter_reading){8000, 91, 91}, (struct counted){0, 100});
	assert_false(counters_per_op(&c, 0, SIDE_USER, &each));
}

static void test_taking_turns_is_scaled(void **state)
{
	double each = 0;

	(void)state;
	/* On the hardware for a quarter of the time. */
	order((struct counter_reading){500, 400, 100},
	      (struct counted){100, 0});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 20, 1e-9);
	/* Never on it: not known, which is not none. */
	order((struct counter_reading){500, 800, 100},
	      (struct counted){100, 0});
	assert_false(counters_per_op(&c, 0, SIDE_USER, &each));
	/* The task did not run at all: it counted nothing. */
	order((struct counter_reading){500, 800, 100},
	      (struct counted){100, 0});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 0, 1e-9);
}

static void test_words(void **state)
{
	struct counter_list given;
	struct problem p;

	(void)state;
	assert_int_equal(counter_list_parse("none", &given, &p), DONE);
	assert_int_equal(given.kinds, 0);
	assert_int_equal(counter_list_parse("cycles,page-faults", &given, &p),
			 DONE);
	assert_int_equal(given.kinds, 2);
	assert_string_equal(given.kind[1]->name, "page-faults");
	assert_int_equal(counter_list_parse("cycle", &given, &p), USAGE);
	assert_int_equal(counter_list_parse("cycles,", &given, &p), USAGE);
	assert_int_equal(counter_list_parse("", &given, &p), USAGE);
	assert_int_equal(counter_list_parse("cycles,cycles", &given, &p),
			 USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_is_besides_is_taken_off, one_child, no_child),
		cmocka_unit_test_setup_teardown(test_taking_turns_is_scaled,
						one_child, no_child),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
