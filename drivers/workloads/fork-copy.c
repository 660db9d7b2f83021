// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork-copy: a copy of the table, made and thrown away.
 *
 * Kernel path: dup_fd(), which sizes the copy to what is open, copies the
 * bitmaps and takes a reference of every file under file_lock; then the copy's
 * end, which drops them.  The hold is the point: the cost grows with it.
 *   --by fork     a child that ends at once: memory is copied too
 *   --by vfork    the same child in its parent's memory: the table alone
 *   --by unshare  a child that shares the table and leaves it by
 *                 unshare(CLONE_FILES)
 * The child's making and end are in the number; --hold none is their price.
 * It does not show a search.  On the model all three are the one copy.
 * Shape: flat up to some hundreds held, then operations fall as 1/hold.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../harness/fd.h"

enum { FORK, VFORK, UNSHARE };

#ifdef FD_BACKEND_KERNEL
#define CHILD_STACK 65536

/* In its parent's memory, which waits: no more than the call and the end. */
static int child(void *by)
{
	int failed = by && unshare(CLONE_FILES) ? errno : 0;

	_exit(failed);
}

/* The child has no signal to send at its end: no handler is run for it. */
static pid_t make_child(struct task *t, uint64_t by)
{
	char *stack = t->data;

	if (by == FORK) {
		pid_t pid = syscall(SYS_clone, 0, 0, 0, 0, 0);

		if (!pid)
			_exit(0);
		return pid;
	}
	return clone(child, stack + CHILD_STACK,
		     CLONE_VM | CLONE_VFORK | (by == UNSHARE ? CLONE_FILES : 0),
		     by == UNSHARE ? t : NULL);
}

static int copy(struct task *t, uint64_t by)
{
	pid_t pid = make_child(t, by);
	int how;

	if (unlikely(pid < 0))
		return task_fail(t, "clone");
	while (unlikely(waitpid(pid, &how, __WALL) < 0))
		if (errno != EINTR)
			return task_fail(t, "waitpid");
	if (likely(!how))
		return 0;
	errno = WIFEXITED(how) ? WEXITSTATUS(how) : EINTR;
	return task_fail(t, "unshare(CLONE_FILES)");
}

static int prepare(struct task *t)
{
	if (posix_memalign(&t->data, 64, CHILD_STACK))
		return task_fail(t, "posix_memalign");
	return copy(t, t->options[0].number);
}

static void finish(struct task *t)
{
	free(t->data);
}
#else
static int copy(struct task *t, uint64_t by)
{
	struct files *files = files_fork(t->files);

	(void)by;
	if (unlikely(!files))
		return task_fail(t, "fork");
	files_free(files);
	return fd_result(t, 0);
}
#endif

static int operate(struct task *t, uint64_t n)
{
	uint64_t by = t->options[0].number;

	while (n--)
		if (unlikely(copy(t, by)))
			return -1;
	return 0;
}

WORKLOAD(.name = "fork-copy", .about = "the table copied, the copy thrown away",
	 .options = {{.name = "by",
		      .choices = "fork vfork unshare",
		      .fallback = "vfork",
		      .about = "the call that copies it"}},
	 .prepare = FOR_KERNEL(prepare), .operate = operate,
	 .finish = FOR_KERNEL(finish));
