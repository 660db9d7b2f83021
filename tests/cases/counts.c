// SPDX-License-Identifier: GPL-2.0-only
/* A test case that only counts, through a call that costs little. */
#include <unistd.h>

#include "step.h"

char *testcase_description = "counting by steps";

void testcase(unsigned long long *iterations, unsigned long nr)
{
	(void)nr;
	for (;;) {
		getppid();
		*iterations += STEP;
	}
}
