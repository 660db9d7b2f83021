// SPDX-License-Identifier: GPL-2.0-only
/*
 * close-range: take N descriptors by dup, close them by one close_range().
 *
 * Kernel path: alloc_fd() N times, then the close path N times by one call:
 * what is saved over burst of the same size is the system calls.  file_lock is
 * dropped and taken again around each file that is put, as by N calls.
 * One operation is the dups and the range.
 * It does not show what a range costs that holds nothing, nor CLOEXEC, nor
 * UNSHARE.
 * Shape: operations a second fall as 1/N.
 * A table each: a task's range is its own only where no other one allocates.
 */
#include "../harness/fd.h"
#include "../harness/run.h"

static int operate(struct task *t, uint64_t n)
{
	unsigned int size = t->options[0].number;
	unsigned int first = t->run->hold.top;
	int source = t->source;

	while (n--) {
		for (unsigned int i = 0; i < size; i++) {
			int fd = fd_dup(t, source);

			if (unlikely(fd < 0))
				return task_fail(t, "dup");
			if (unlikely((unsigned int)fd != first + i)) {
				errno = ERANGE;
				return task_fail(t,
						 "dup: not next to the last");
			}
		}
		if (unlikely(fd_close_range(t, first, first + size - 1)))
			return task_fail(t, "close_range");
	}
	return 0;
}

#ifdef FD_BACKEND_KERNEL
/* Missing before 5.9, and refused by some filters. */
static int prepare(struct task *t)
{
	return fd_close_range(t, ~0u, ~0u) ? task_fail(t, "close_range") : 0;
}
#endif

static uint64_t descriptors(const struct option_value *options)
{
	return options[0].number;
}

WORKLOAD(.name = "close-range",
	 .about = "take N by dup, close them by one close_range",
	 .flags = WORKLOAD_PROCESSES,
	 .why_processes = "a task's close_range would close what the others "
			  "have taken in between",
	 .options = {{.name = "size",
		      .fallback = "100",
		      .least = 1,
		      .most = 10000000,
		      .about = "N, descriptors in a range"}},
	 .descriptors = descriptors, .prepare = FOR_KERNEL(prepare),
	 .operate = operate);
