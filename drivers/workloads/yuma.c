// SPDX-License-Identifier: GPL-2.0-only
/*
 * yuma: 0..65 taken; close(low), dup gives low, dup gives high, close(high).
 *
 * Kernel path: as dup-close.  The close of a low descriptor draws next_fd into
 * word 0, the dup fills that word again and leaves next_fd one above low: it
 * points into a full word at every second search, which next_fd-word then
 * reads for nothing before it takes the two-level way.  The argument is the
 * thread's own, on v3 against v4 of the series.
 * It does not show how often a real load leaves the hint stale.
 * Shape: between the forms, much less of a gap than in dup-close at low:66,
 * where every search finds its bit in the hint's word.
 * One task a table: a second one would take low in between.
 */
#include "../harness/fd.h"

#define LOW 3

static int operate(struct task *t, uint64_t n)
{
	int source = t->source;

	while (n--) {
		int low, high;

		if (unlikely(fd_close(t, LOW)))
			return task_fail(t, "close");
		low = fd_dup(t, source);
		high = fd_dup(t, source);
		if (unlikely(low < 0 || high < 0))
			return task_fail(t, "dup");
		if (unlikely(low != LOW)) {
			errno = ERANGE;
			return task_fail(t, "dup: not the lowest");
		}
		if (unlikely(fd_close(t, high)))
			return task_fail(t, "close");
	}
	return 0;
}

WORKLOAD(.name = "yuma",
	 .about = "close(low), dup to low, dup to high, close(high)",
	 .flags = WORKLOAD_PROCESSES,
	 .why_processes = "two threads in one table would take each other's "
			  "low descriptor",
	 .hold = "low:66", .operate = operate);
