// SPDX-License-Identifier: GPL-2.0-only
/*
 * dupfd: fcntl(F_DUPFD, start) of a file of the task's own, close() of it.
 *
 * Kernel path: alloc_fd() with a start of the caller's, the one way to reach
 * it (every other call starts at 0).  A start above next_fd leaves next_fd
 * alone, and the search begins in the middle of the bitmap.
 * It does not show the hint at work, but with --start 0, which is dup-close by
 * way of fcntl.
 * Shape: at --start 64 and 1000 a fast path for the first word has nothing to
 * find and the one for the word of the search has all.
 */
#include "../harness/fd.h"
#include "../harness/hold.h"

static uint64_t start_of(const struct option_value *options)
{
	return options[0].number;
}

static int operate(struct task *t, uint64_t n)
{
	unsigned int start = start_of(t->options);
	int source = t->source;

	while (n--) {
		int fd = fd_dupfd(t, source, start);

		if (unlikely(fd < 0))
			return task_fail(t, "fcntl(F_DUPFD)");
		if (unlikely(fd_close(t, fd)))
			return task_fail(t, "close");
	}
	return 0;
}

WORKLOAD(.name = "dupfd", .about = "fcntl(F_DUPFD, start) + close",
	 .options = {{.name = "start",
		      .fallback = "0",
		      .most = HOLD_MAX,
		      .about = "the lowest descriptor that will do"}},
	 .start = start_of, .operate = operate);
