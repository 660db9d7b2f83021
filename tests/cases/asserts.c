// SPDX-License-Identifier: GPL-2.0-only
/* A test case that asserts after a while. */
#include <assert.h>
#include <unistd.h>

char *testcase_description = "an assertion that fails";

void testcase(unsigned long long *iterations, unsigned long nr)
{
	(void)nr;
	for (;;) {
		getppid();
		(*iterations)++;
		assert(*iterations < 20000);
	}
}
