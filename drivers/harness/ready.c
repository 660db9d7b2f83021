// SPDX-License-Identifier: GPL-2.0-only
/* What refuses a run that is placed, before anything is started. */
#include <string.h>

#include "run.h"

/* Tasks behind a queue that one of them holds while it is preempted wait for
 * a time slice each: what is measured then is the scheduler. */
static int check_lock(const struct run *run, const struct topology *topology,
		      struct problem *p)
{
	unsigned int pus = run->placement.capacity;

	if (run->place && !strcmp(run->place, "none"))
		pus = hwloc_bitmap_weight(topology->usable);
	if (run->backend != BACKEND_MODEL || run->mode != MODE_THREADS ||
	    run->lock != FILES_LOCK_QUEUED || run->tasks <= pus)
		return DONE;
	return problem_set(p, USAGE,
			   "--lock queued with %u tasks on %u PUs: a preempted "
			   "waiter stops all behind it, as a kernel's cannot; "
			   "--lock tas works",
			   run->tasks, pus);
}

int run_ready(struct run *run, const struct topology *t, struct problem *p)
{
	int status = check_lock(run, t, p);

	if (!status)
		status = run_size(run, p);
	if (!status && run->workload->check)
		status = run->workload->check(run, p);
	return status;
}
