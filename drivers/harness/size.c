// SPDX-License-Identifier: GPL-2.0-only
/* How large a table the run takes, and whether the limits allow it. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "run.h"

#define EMBEDDED 64
/* The project's rule: an own file sits this far above all that is in use. */
#define CLEARANCE 64
/* A model's table has no limit but memory; as the kernel's sysctl_nr_open. */
#define MODEL_NR_OPEN (1u << 30)

static uint64_t power_of_two(uint64_t n)
{
	uint64_t size = EMBEDDED;

	while (size < n)
		size *= 2;
	return size;
}

/* A table of n slots comes of any descriptor from n/2 up. */
static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* fs.nr_open, or the largest number where /proc is hidden. */
static uint64_t nr_open(void)
{
	FILE *file = fopen("/proc/sys/fs/nr_open", "re");
	uint64_t n = UINT32_MAX;

	if (file) {
		if (fscanf(file, "%" SCNu64, &n) != 1)
			n = UINT32_MAX;
		fclose(file);
	}
	return n;
}

/* The child raises its soft limit itself: only these two bind. */
static int limit_check(const struct run *run, struct problem *p)
{
	struct rlimit limit;
	uint64_t most = nr_open();

	if (run->backend == BACKEND_MODEL) {
		if (run->limit <= MODEL_NR_OPEN)
			return DONE;
		return problem_set(p, COULD_NOT,
				   "the run takes %" PRIu64 " descriptors; the "
				   "model's tables end at %u",
				   run->limit, MODEL_NR_OPEN);
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	if (run->limit > most)
		return problem_set(p, COULD_NOT,
				   "the run takes %" PRIu64 " descriptors and "
				   "fs.nr_open is %" PRIu64
				   ": sysctl fs.nr_open=%" PRIu64
				   ", or --backend model",
				   run->limit, most, power_of_two(run->limit));
	if (limit.rlim_max != RLIM_INFINITY && run->limit > limit.rlim_max)
		return problem_set(
			p, COULD_NOT,
			"the run takes %" PRIu64 " descriptors and "
			"the hard limit RLIMIT_NOFILE is %" PRIu64
			": ulimit -Hn %" PRIu64 " as root, or --backend model",
			run->limit, (uint64_t)limit.rlim_max, run->limit);
	return DONE;
}

int run_size(struct run *run, struct problem *p)
{
	const struct workload *w = run->workload;
	unsigned int tasks = run->mode == MODE_THREADS ? run->tasks : 1;
	uint64_t each = w->descriptors ? w->descriptors(run->options) : 2;
	uint64_t start = w->start ? w->start(run->options) : 0;
	uint64_t used = most_of(run->hold.top, start) + each * tasks;

	if (w->flags & WORKLOAD_EMPTY) {
		/* 3 is open too, and the turns go on from there. */
		run->slots = run->table_size ? run->table_size : EMBEDDED;
		run->limit = most_of(used + 1, run->slots / 2 + 1);
		return limit_check(run, p);
	}
	if (w->testcase) {
		/* Its files are where it opens them. */
		if (run->table_size && run->table_size < used)
			return problem_set(p, USAGE,
					   "--table-size: %u slots do not "
					   "hold %" PRIu64 "; %" PRIu64 " do",
					   run->table_size, used,
					   power_of_two(used));
		run->slots =
			run->table_size ? run->table_size : power_of_two(used);
		run->limit = most_of(used, run->slots / 2 + 1);
		return limit_check(run, p);
	}
	run->sources = tasks;
	run->first_source = used + CLEARANCE;
	run->slots = power_of_two(run->first_source + (uint64_t)tasks);
	if (run->table_size) {
		/* A small table: the own files at its very top. */
		if (run->table_size < used + tasks)
			return problem_set(
				p, USAGE,
				"--table-size: %u slots do not hold "
				"%" PRIu64 " descriptors in use and "
				"%u files of the tasks' own; %" PRIu64 " do",
				run->table_size, used, tasks,
				power_of_two(used + tasks));
		if (run->table_size < run->first_source + (uint64_t)tasks)
			run->first_source = run->table_size - tasks;
		run->slots = run->table_size;
	}
	run->limit = most_of(run->first_source + (uint64_t)tasks,
			     run->slots / 2 + 1);
	return limit_check(run, p);
}
