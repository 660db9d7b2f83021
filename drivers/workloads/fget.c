// SPDX-License-Identifier: GPL-2.0-only
/*
 * fget: preads on one descriptor by some tasks, while the last ones dup2 and
 * close another in the same table.
 *
 * Kernel path: the lookup of a descriptor without the lock (fdget: the table's
 * pointer, the slot, the file's count where the table is shared) beside writers
 * of the table under file_lock.  The slots written are 64 and more below the
 * one read (fewer by a tight --table-size), and the lock has a line of its own:
 * what they share is the table's head alone, which is read only.
 * It does not show the search: dup2 names its descriptor.  An operation is a
 * pread for the first tasks, a dup2 + close for the last --churners; the rate
 * adds both, and they are told apart too.  On the model a pread is the lookup
 * and the count alone.
 * Shape: readers fall among themselves, by the count of the one file, and not
 * by churners beside; churners fall among themselves, by the lock.
 * In processes nobody shares anything: the control.  One task alone churns.
 */
#include "../harness/fd.h"
#include "../harness/run.h"

static int churn(struct task *t, uint64_t n)
{
	/* One above the hold, of the task's own: no two race on it. */
	int mine = t->run->hold.top + (t->source - t->run->first_source);
	int source = t->source;

	while (n--) {
		if (unlikely(fd_dup2(t, source, mine) != mine))
			return task_fail(t, "dup2");
		if (unlikely(fd_close(t, mine)))
			return task_fail(t, "close");
	}
	return 0;
}

static int look(struct task *t, uint64_t n)
{
	int one = t->run->first_source;

	while (n--)
		if (unlikely(fd_pread(t, one)))
			return task_fail(t, "pread");
	return 0;
}

static bool churns(const struct run *run, unsigned int task)
{
	return task + run->options[0].number >= run->tasks;
}

static const char *role(const struct run *run, unsigned int task)
{
	return churns(run, task) ? "churn" : "read";
}

static int operate(struct task *t, uint64_t n)
{
	if (churns(t->run, t->number))
		return churn(t, n);
	return look(t, n);
}

WORKLOAD(.name = "fget",
	 .about = "pread of one descriptor, others dup2 + close",
	 .options = {{.name = "churners",
		      .fallback = "1",
		      .most = 65536,
		      .about = "tasks, the last ones, that dup2 and close"}},
	 .role = role, .operate = operate);
