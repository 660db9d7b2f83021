// SPDX-License-Identifier: GPL-2.0-only
/*
 * dup-close: dup() of a file of the task's own, close() of what it gave.
 *
 * Kernel path: alloc_fd() and the close path under file_lock, with the least
 * around them: one reference taken and dropped, no path walk, no file made.
 * It does not show what an allocation costs beside real work (open-close).
 * Shape: processes scale with the PUs, since each has a table of its own;
 * threads fall after the first, since all meet at one lock.
 * will-it-scale's dup1 is the same loop.
 */
#include "../harness/fd.h"

static int operate(struct task *t, uint64_t n)
{
	int source = t->source;

	while (n--) {
		int fd = fd_dup(t, source);

		if (unlikely(fd < 0))
			return task_fail(t, "dup");
		if (unlikely(fd_close(t, fd)))
			return task_fail(t, "close");
	}
	return 0;
}

WORKLOAD(.name = "dup-close",
	 .about = "dup + close of a file of the task's own (dup1)",
	 .operate = operate);
