// SPDX-License-Identifier: GPL-2.0-only
/*
 * growth: a table grows to 64 x 2^D slots; fixed work in a fresh process.
 *
 * Kernel path: expand_fdtable(): a larger table allocated with the lock
 * dropped, the old one copied; where another thread shares the table, a grace
 * period before it (tens of milliseconds for a program that opens much while
 * it starts, as reported in public in 2025).
 *   --of last       the one dup that makes the D-th doubling, alone: a
 *                   measurement's ns is the time of that doubling
 *   --of all        every dup from an empty table up to it
 *   --beside none, thread   another thread that shares the table and sleeps
 *   --pregrown no, yes      the table has its final size beforehand: what is
 *                           left is the dups
 * It does not show steady state.  An operation is a dup.
 * Shape: a doubling alone takes time as its size, small ones microseconds;
 * beside a thread each takes a grace period, whatever its size.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "../harness/fd.h"
#include "../harness/run.h"

enum { DOUBLINGS, OF, BESIDE, PREGROWN };
enum { LAST, ALL };

/* What is open when one more dup makes the last doubling. */
static uint64_t half(const struct option_value *options)
{
	return 32ull << options[DOUBLINGS].number;
}

#define OPEN_AT_FIRST 4 /* see WORKLOAD_EMPTY */

static uint64_t turns(const struct option_value *options)
{
	return options[OF].number == LAST ? 1
					  : half(options) - OPEN_AT_FIRST + 1;
}

static int operate(struct task *t, uint64_t n)
{
	while (n--)
		if (unlikely(fd_dup(t, 0) < 0))
			return task_fail(t, "dup");
	return 0;
}

#ifdef FD_BACKEND_KERNEL
static void *sleep_beside(void *semaphore)
{
	while (sem_wait(semaphore))
		;
	return NULL;
}

struct beside {
	pthread_t thread;
	sem_t end;
};

static int start_beside(struct task *t)
{
	struct beside *b = malloc(sizeof(*b));

	t->data = b;
	if (!b)
		return task_fail(t, "malloc");
	sem_init(&b->end, 0, 0);
	errno = pthread_create(&b->thread, NULL, sleep_beside, &b->end);
	return errno ? task_fail(t, "pthread_create") : 0;
}

static void finish(struct task *t)
{
	struct beside *b = t->data;

	if (!b)
		return;
	sem_post(&b->end);
	pthread_join(b->thread, NULL);
	free(b);
}

static int grow(struct task *t)
{
	int high = half(t->options);

	return dup2(0, high) < 0 || close(high) ? task_fail(t, "dup2") : 0;
}

static int prepare(struct task *t)
{
	if (t->options[PREGROWN].number && grow(t))
		return -1;
	if (t->options[OF].number == LAST &&
	    operate(t, half(t->options) - OPEN_AT_FIRST))
		return -1;
	return t->options[BESIDE].number ? start_beside(t) : 0;
}
#else
static int prepare_table(struct task *t)
{
	int r = 0;

	if (t->options[PREGROWN].number)
		r = files_grow(t->files, half(t->options) + 1);
	if (r) {
		errno = -r;
		return task_fail(t, "growing");
	}
	if (t->options[OF].number == ALL)
		return 0;
	return operate(t, half(t->options) - OPEN_AT_FIRST);
}

static int prepare(struct task *t)
{
	if (t->options[BESIDE].number) {
		/* The model has no grace period to wait for. */
		errno = EOPNOTSUPP;
		return task_fail(t, "--beside thread, kernel only");
	}
	for (unsigned int v = 0; v < t->run->variants; v++) {
		t->files = &t->handles[v];
		if (prepare_table(t))
			return -1;
	}
	return 0;
}
#endif

static uint64_t descriptors(const struct option_value *options)
{
	return half(options) + 1;
}

WORKLOAD(.name = "growth", .about = "dups that double the table, D times",
	 .flags = WORKLOAD_FIXED | WORKLOAD_PROCESSES | WORKLOAD_EMPTY,
	 .why_processes = "a table grows once, for whichever thread comes "
			  "first; --beside thread shares it",
	 .options = {{.name = "doublings",
		      .fallback = "8",
		      .least = 1,
		      .most = 21,
		      .about = "D: the table ends with 64 x 2^D slots"},
		     {.name = "of",
		      .choices = "last all",
		      .fallback = "last",
		      .about = "the last doubling, or all from empty"},
		     {.name = "beside",
		      .choices = "none thread",
		      .fallback = "none",
		      .about = "who else shares the table"},
		     {.name = "pregrown",
		      .choices = "no yes",
		      .fallback = "no",
		      .about = "the size is there beforehand"}},
	 .descriptors = descriptors, .turns = turns, .prepare = prepare,
	 .operate = operate, .finish = FOR_KERNEL(finish));
