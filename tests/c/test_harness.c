// SPDX-License-Identifier: GPL-2.0-only
/* The harness's arithmetic and words, and the hold against /proc/self/fd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../drivers/harness/hold.h"
#include "../../drivers/harness/kernel.h"
#include "../../drivers/harness/number.h"
#include "../../drivers/harness/random.h"
#include "../../drivers/harness/run.h"
#include "../../drivers/harness/window.h"

static void numbers_are_strict(void **state)
{
	static const char *const wrong[] = {"",
					    "0",
					    "-1",
					    "+1",
					    " 1",
					    "1 ",
					    "1e9",
					    "abc",
					    "9",
					    "0x4",
					    "99999999999999999999"};
	struct problem p;
	uint64_t n;

	(void)state;
	assert_int_equal(number_parse("x", "8", 1, 8, &n, &p), DONE);
	assert_int_equal(n, 8);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(
			number_parse("--tasks", wrong[i], 1, 8, &n, &p), USAGE);
		assert_non_null(strstr(p.text, "--tasks"));
		assert_non_null(strstr(p.text, wrong[i]));
	}
}

static void operations_between_two_looks(void **state)
{
	(void)state;
	/* 100 operations at t=1000, 200 at t=2000: ten nanoseconds each. */
	assert_int_equal(ops_at(1000, 1000, 100, 2000, 200), 100);
	assert_int_equal(ops_at(1500, 1000, 100, 2000, 200), 150);
	assert_int_equal(ops_at(1996, 1000, 100, 2000, 200), 200);
	assert_int_equal(ops_at(1994, 1000, 100, 2000, 200), 199);
	/* A task that began after the moment had done nothing by then. */
	assert_int_equal(ops_at(500, 1000, 0, 2000, 200), 0);
	/* One that ended before it does no more. */
	assert_int_equal(ops_at(9000, 1000, 100, 2000, 200), 200);
}

static void percentages(void **state)
{
	static const char *const wrong[] = {
		"",    "%",	"0",	"0%",  "-1%", "+1%", "1.2x",  "1.2%%",
		"inf", "0x1p3", "101%", " 1%", "1 %", ".",   "1.2.3",
	};
	struct problem p;
	double share;

	(void)state;
	assert_int_equal(number_percent("--inject", "1.2%", &share, &p), DONE);
	assert_true(share == 1.2 / 100);
	assert_int_equal(number_percent("--inject", "100", &share, &p), DONE);
	assert_true(share == 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(
			number_percent("--inject", wrong[i], &share, &p),
			USAGE);
}

static void kernels_by_their_release(void **state)
{
	static const char *const cases[][2] = {
		{"6.18.44-fc-v1045", "merged-6.13"},
		{"6.13.0", "merged-6.13"},
		{"7.0.1-arch1-1", "merged-6.13"},
		{"6.12.9-amd64", "stock-6.12"},
		{"6.1.0-57-amd64", "stock-6.12"},
		{"5.15.0-119-generic", "stock-6.12"},
		{"4.4.0", "stock-6.12"},
		{"4.3.6", "unknown"},
		{"3.10.0", "unknown"},
		{"5.14.0-503.11.1.el9_5.x86_64", "unknown"},
		{"6.4.0-150600.23.25-default", "unknown"},
		{"6.1.112-122.189.amzn2023.x86_64", "unknown"},
		{"5.15.0-300.163.18.el8uek.x86_64", "unknown"},
		{"6.6.30-android15-8", "unknown"},
		{"6.14.0-27-generic", "merged-6.13"},
		{"6.12.9-200.fc41.x86_64", "stock-6.12"},
		{"6.12.0-55.el10.x86_64", "unknown"},
		{"5.10.0-60.18.0.50.oe2203.x86_64", "unknown"},
		{"6.6.57.1-1.azl3", "unknown"},
		{"5.10.134-13.al8.x86_64", "unknown"},
		{"5.14.21-150500.55.suse", "unknown"},
		{"6.1.0-25-rt-amd64", "unknown"},
		{"nonsense", "unknown"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(kernel_preset(cases[i][0]), cases[i][1]);
}

static void orders_are_permutations(void **state)
{
	uint64_t seed = 1;
	unsigned int order[10], first[10] = {0};

	(void)state;
	for (int round = 0; round < 1000; round++) {
		unsigned int seen = 0;

		random_order(&seed, order, 10);
		for (int i = 0; i < 10; i++)
			seen |= 1u << order[i];
		assert_int_equal(seen, 0x3ff);
		first[order[0]]++;
	}
	/* 100 each expected; 50 is five standard deviations away. */
	for (int i = 0; i < 10; i++)
		assert_in_range(first[i], 50, 150);
}

static void holds_are_parsed(void **state)
{
	static const char *const wrong[] = {
		"low:-1", "low:x", "low:",	    "low",
		"",	  "none ", "low:1000000000"};
	struct problem p;
	struct hold hold;

	(void)state;
	assert_int_equal(hold_parse("none", 64, 1, &hold, &p), DONE);
	assert_true(hold_has(&hold, 2) && !hold_has(&hold, 3));
	assert_int_equal(hold_parse("low:64", 64, 1, &hold, &p), DONE);
	assert_true(hold_has(&hold, 63) && !hold_has(&hold, 64));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(hold_parse(wrong[i], 64, 1, &hold, &p), USAGE);
		assert_non_null(strstr(p.text, "--hold"));
	}
}

/* In a child, since its table is what is built: 0 when all was as asked. */
static int build_in_child(const char *text, uint32_t slots, uint32_t first,
			  uint32_t sources, int spoil)
{
	int how;
	pid_t pid = fork();

	if (!pid) {
		struct hold hold;
		struct problem p;

		hold_parse(text, HOLD_TOP, 1, &hold, &p);
		if (hold_build(&hold, slots, first, sources, "/tmp", &p))
			_exit(1);
		if (spoil > 0)
			open("/dev/null", O_RDONLY);
		if (spoil < 0)
			close(first);
		if (hold_check(&hold, first, sources, &p))
			_exit(2);
		if (hold_fdsize() != slots)
			_exit(3);
		/* The lowest free one is what the hold leaves. */
		_exit(dup(first) == (int)hold.top ? 0 : 4);
	}
	waitpid(pid, &how, 0);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void holds_are_exact(void **state)
{
	(void)state;
	assert_int_equal(build_in_child("none", 128, 69, 1, 0), 0);
	assert_int_equal(build_in_child("none", 64, 63, 1, 0), 0);
	assert_int_equal(build_in_child("low:0", 128, 66, 1, 0), 0);
	assert_int_equal(build_in_child("low:1", 128, 67, 1, 0), 0);
	assert_int_equal(build_in_child("low:63", 256, 129, 3, 0), 0);
	assert_int_equal(build_in_child("low:64", 256, 130, 1, 0), 0);
	assert_int_equal(build_in_child("low:65", 4096, 131, 1, 0), 0);
	assert_int_equal(build_in_child("low:4096", 8192, 4162, 2, 0), 0);
}

static void a_wrong_hold_is_found(void **state)
{
	(void)state;
	assert_int_equal(build_in_child("low:64", 256, 130, 1, 1), 2);
	assert_int_equal(build_in_child("low:64", 256, 130, 1, -1), 2);
}

static struct run sized(const struct workload *w, uint32_t top, unsigned tasks,
			uint32_t table_size)
{
	struct run run = {.workload = w,
			  .tasks = tasks,
			  .table_size = table_size,
			  .backend = BACKEND_KERNEL,
			  .hold.top = top};

	return run;
}

static void sizes_follow_the_rule(void **state)
{
	struct workload w = {.name = "w"};
	struct run run = sized(&w, 3, 1, 0);
	struct problem p;

	(void)state;
	/* hold 3, two in flight, 64 clear: the own file at 69. */
	assert_int_equal(run_size(&run, &p), DONE);
	assert_int_equal(run.first_source, 69);
	assert_int_equal(run.slots, 128);
	assert_int_equal(run.limit, 70);
	run = sized(&w, 64, 4, 0);
	assert_int_equal(run_size(&run, &p), DONE);
	assert_int_equal(run.first_source, 64 + 8 + 64);
	assert_int_equal(run.sources, 4);
	assert_int_equal(run.slots, 256);
	/* The embedded table, when all fits. */
	run = sized(&w, 3, 1, 64);
	assert_int_equal(run_size(&run, &p), DONE);
	assert_int_equal(run.first_source, 63);
	run = sized(&w, 64, 1, 64);
	assert_int_equal(run_size(&run, &p), USAGE);
	assert_non_null(strstr(p.text, "--table-size"));
	/* More than any kernel allows. */
	run = sized(&w, 2000000000, 1, 0);
	assert_int_equal(run_size(&run, &p), COULD_NOT);
	assert_non_null(strstr(p.text, "fs.nr_open"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(operations_between_two_looks),
		cmocka_unit_test(percentages),
		cmocka_unit_test(kernels_by_their_release),
		cmocka_unit_test(orders_are_permutations),
		cmocka_unit_test(holds_are_parsed),
		cmocka_unit_test(holds_are_exact),
		cmocka_unit_test(a_wrong_hold_is_found),
		cmocka_unit_test(sizes_follow_the_rule),
	};

	/* A child's table is as large as what is open here asks for. */
	close_range(3, ~0u, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
