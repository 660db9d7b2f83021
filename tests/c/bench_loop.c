// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the harness adds to a loop: dup-close through window_run() and by a bare
 * loop with nothing between the calls, alternating in one process on one CPU.
 * Prints "HARNESS BARE" (operations a second) a line, a pair of windows each.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../drivers/harness/clock.h"
#include "../../drivers/harness/run.h"
#include "../../drivers/harness/window.h"

#define WINDOW 10000000ull /* ns */

static double harness(struct task *t, struct shared *sh)
{
	sh->start = clock_ns() + 1000;
	sh->from = sh->start + WINDOW / 20;
	sh->until = sh->from + WINDOW;
	sh->batch_ns = WINDOW / 1000;
	window_run(t, sh);
	return t->slot->ops * 1e9 / WINDOW;
}

static double bare(int source, uint64_t n)
{
	uint64_t start = clock_ns();

	for (uint64_t i = 0; i < n; i++)
		close(dup(source));
	return n * 1e9 / (clock_ns() - start);
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 100;
	static struct run run;
	static struct shared shared;
	static struct slot slot;
	uint64_t batch = 1;
	struct task t = {.run = &run, .slot = &slot, .batch = &batch};
	cpu_set_t one;
	uint64_t n;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	t.source = fcntl(open("/dev/null", O_RDWR), F_DUPFD, 100);
	run.workload = workload_find("dup-close", BACKEND_KERNEL);
	t.options = run.options;
	harness(&t, &shared);
	n = harness(&t, &shared) * WINDOW / 1e9;
	for (int i = 0; i < pairs; i++) {
		double a, b;

		if (i % 2) {
			a = harness(&t, &shared);
			b = bare(t.source, n);
		} else {
			b = bare(t.source, n);
			a = harness(&t, &shared);
		}
		printf("%.0f %.0f\n", a, b);
	}
	return 0;
}
