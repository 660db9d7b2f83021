// SPDX-License-Identifier: GPL-2.0-only
/*
 * openneg: open() of a name that is not there.
 *
 * Kernel path: the descriptor is reserved before the path is walked and given
 * back when the walk fails: alloc_fd() and put_unused_fd() under file_lock.  A
 * struct file is made before the walk and dropped after it, none is installed.
 * The walk ends at a negative dentry.
 * It does not show the close path.  On the model the walk is left out.
 * Shape: as open-close's, without what the close costs.
 */
#include "../harness/fd.h"

#ifdef FD_BACKEND_KERNEL
static int prepare(struct task *t)
{
	return fd_open_missing(t, &t->own) ? task_fail(t, "open") : 0;
}
#endif

static int operate(struct task *t, uint64_t n)
{
	const struct target *missing = &t->own;

	while (n--)
		if (unlikely(fd_open_missing(t, missing)))
			return task_fail(t, "open");
	return 0;
}

WORKLOAD(.name = "openneg", .about = "open of a name that is not there",
	 .prepare = FOR_KERNEL(prepare), .operate = operate);
