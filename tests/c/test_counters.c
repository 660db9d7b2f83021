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

/* Counters of one kind on one child, whose readings come out of *@feed. */
static void one_child(struct counters *c, struct counter_list *list, int *feed)
{
	struct counter *it = &c->counter[0][SIDE_USER];
	int ends[2];

	memset(c, 0, sizeof(*c));
	assert_int_equal(counter_list_parse("instructions", list, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	c->list = list;
	c->children = 1;
	it->fds = malloc(sizeof(*it->fds));
	it->before = calloc(1, sizeof(*it->before));
	it->fds[0] = ends[0];
	*feed = ends[1];
}

static void order(struct counters *c, int feed, struct counter_reading reading,
		  struct counted done)
{
	assert_int_equal(write(feed, &reading, sizeof(reading)),
			 sizeof(reading));
	counters_start(c);
	counters_stop(c, done);
}

static void test_what_is_besides_is_taken_off(void **state)
{
	struct counter_list list;
	struct counters c;
	double each = 0;
	int feed;

	(void)state;
	one_child(&c, &list, &feed);
	/* 100 turns of 3; then 200 of them and 1000 operations of 7. */
	order(&c, feed, (struct counter_reading){300, 50, 50},
	      (struct counted){0, 100});
	counters_empty(&c);
	order(&c, feed, (struct counter_reading){300 + 600 + 7000, 90, 90},
	      (struct counted){1000, 200});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 7, 1e-9);
	assert_false(counters_per_op(&c, 0, SIDE_KERNEL, &each));
	/* Nothing was done: nothing to divide by. */
	order(&c, feed, (struct counter_reading){8000, 91, 91},
	      (struct counted){0, 100});
	assert_false(counters_per_op(&c, 0, SIDE_USER, &each));
	counters_close(&c);
	close(feed);
}

static void test_taking_turns_is_scaled(void **state)
{
	struct counter_list list;
	struct counters c;
	double each = 0;
	int feed;

	(void)state;
	one_child(&c, &list, &feed);
	/* On the hardware for a quarter of the time. */
	order(&c, feed, (struct counter_reading){500, 400, 100},
	      (struct counted){100, 0});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 20, 1e-9);
	/* Never on it: not known, which is not none. */
	order(&c, feed, (struct counter_reading){500, 800, 100},
	      (struct counted){100, 0});
	assert_false(counters_per_op(&c, 0, SIDE_USER, &each));
	/* The task did not run at all: it counted nothing. */
	order(&c, feed, (struct counter_reading){500, 800, 100},
	      (struct counted){100, 0});
	assert_true(counters_per_op(&c, 0, SIDE_USER, &each));
	assert_float_equal(each, 0, 1e-9);
	counters_close(&c);
	close(feed);
}

static void test_words(void **state)
{
	struct counter_list list;
	struct problem p;

	(void)state;
	assert_int_equal(counter_list_parse("none", &list, &p), DONE);
	assert_int_equal(list.kinds, 0);
	assert_int_equal(counter_list_parse("cycles,page-faults", &list, &p),
			 DONE);
	assert_int_equal(list.kinds, 2);
	assert_string_equal(list.kind[1]->name, "page-faults");
	assert_int_equal(counter_list_parse("cycle", &list, &p), USAGE);
	assert_int_equal(counter_list_parse("cycles,", &list, &p), USAGE);
	assert_int_equal(counter_list_parse("", &list, &p), USAGE);
	assert_int_equal(counter_list_parse("cycles,cycles", &list, &p), USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_besides_is_taken_off),
		cmocka_unit_test(test_taking_turns_is_scaled),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
