// SPDX-License-Identifier: GPL-2.0-only
/*
 * dup2-churn: N turns of close(3); dup2(0, 3); dup(0), from an empty table.
 *
 * Kernel path: each close puts next_fd back to 3, the dup2 takes 3 again
 * without moving it, so that every dup searches from 3 over all that the
 * turns before have taken, and the table grows on the way.  One-level search
 * reads N/64 words a turn, two-level N/4096.  Linus Torvalds gave the loop on
 * netdev on 30 October 2015 to show what the second bitmap gains.
 * It is fixed work in a fresh process of one thread: the rate depends on N.
 * It does not show steady state, nor any contention: each task has a table
 * of its own, and what several tasks share is memory bandwidth.
 * Shape: turns a second fall with N, far faster for one-level.
 */
#include "../harness/fd.h"

#define CHURNED 3

static uint64_t turns(const struct option_value *options)
{
	return options[0].number;
}

static int operate(struct task *t, uint64_t n)
{
	while (n--) {
		if (unlikely(fd_close(t, CHURNED)))
			return task_fail(t, "close");
		if (unlikely(fd_dup2(t, 0, CHURNED) != CHURNED))
			return task_fail(t, "dup2");
		if (unlikely(fd_dup(t, 0) < 0))
			return task_fail(t, "dup");
	}
	return 0;
}

WORKLOAD(.name = "dup2-churn",
	 .about = "N turns of close(3); dup2(0,3); dup(0) from an empty table",
	 .flags = WORKLOAD_FIXED | WORKLOAD_PROCESSES | WORKLOAD_EMPTY,
	 .why_processes = "two threads would race on descriptor 3 (EBADF, "
			  "EBUSY), and an idle one makes each growth wait",
	 .options = {{.name = "turns",
		      .fallback = "10000",
		      .least = 1,
		      .most = 50000000,
		      .about = "N, the turns of one measurement"}},
	 .descriptors = turns, .turns = turns, .operate = operate);
