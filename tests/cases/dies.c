// SPDX-License-Identifier: GPL-2.0-only
/* A test case that dies of a signal, or ends: see $FDSCALE_CASE_END. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *testcase_description = "an early end";

void testcase_prepare(unsigned long nr_tasks)
{
	(void)nr_tasks;
	if (!strcmp(getenv("FDSCALE_CASE_END"), "prepare"))
		raise(SIGSEGV);
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
	const char *how = getenv("FDSCALE_CASE_END");

	(void)nr;
	while (*iterations < 20000) {
		getppid();
		(*iterations)++;
	}
	if (!strcmp(how, "exit"))
		exit(7);
	if (!strcmp(how, "wait"))
		pause();
	if (!strcmp(how, "daemon") && !fork()) {
		setsid();
		pause();
	}
	if (strcmp(how, "return"))
		raise(SIGSEGV);
}
