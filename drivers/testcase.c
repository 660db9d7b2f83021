// SPDX-License-Identifier: GPL-2.0-only
/*
 * What makes a workload of a test case (--testcase F.c): own.sh compiles this
 * beside the file, as it comes, and links both with the harness.
 */
#include <assert.h>

#include "harness/testcase.h"

extern char *testcase_description;
extern void testcase(unsigned long long *iterations, unsigned long task);
extern void testcase_prepare(unsigned long tasks) __attribute__((weak));
extern void testcase_cleanup(void) __attribute__((weak));

/* The C library's, which would tell stderr, that is /dev/null by then. */
void __assert_fail(const char *assertion, const char *file, unsigned int line,
		   const char *function)
{
	testcase_assert(assertion, file, line, function);
}

static struct testcase this_case = {
	.description = &testcase_description,
	.prepare = testcase_prepare,
	.cleanup = testcase_cleanup,
	.main = testcase,
};

WORKLOAD(.about = "a test case of will-it-scale's form",
	 .testcase = &this_case);
