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
 *   --blow KIB  memory of the task's own written between operations, so that
 *               the table is found in a farther cache; the writing is in the
 *               rate, and is the same for all variants
 */
#include <stdlib.h>

#include "../harness/blow.h"
#include "../harness/fd.h"

enum { BLOW };

static int prepare(struct task *t)
{
	size_t bytes = t->options[BLOW].number * 1024;

	if (!bytes)
		return 0;
	t->data = malloc(bytes);
	return t->data ? 0 : task_fail(t, "malloc");
}

static void finish(struct task *t)
{
	free(t->data);
}

static int operate(struct task *t, uint64_t n)
{
	int source = t->source;
	uint64_t kib = t->options[BLOW].number;

	while (n--) {
		int fd = fd_dup(t, source);

		if (unlikely(fd < 0))
			return task_fail(t, "dup");
		if (unlikely(fd_close(t, fd)))
			return task_fail(t, "close");
		if (unlikely(kib))
			blow(t->data, kib, n);
	}
	return 0;
}

WORKLOAD(.name = "dup-close",
	 .about = "dup + close of a file of the task's own (dup1)",
	 .options = {{.name = "blow",
		      .fallback = "0",
		      .most = 1 << 20,
		      .about = "memory written between operations, KiB"}},
	 .prepare = prepare, .operate = operate, .finish = finish);
