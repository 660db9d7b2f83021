/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perf events on the tasks, opened and read by the coordinator: the loop and
 * the table under measurement know nothing of them.  Events are opened on each
 * child before it makes its threads, which inherit them, as do the children of
 * a workload.  They are turned on and off while the tasks stand still, so that
 * no running task is disturbed.  What a task does besides the operations (it
 * wakes, spins to the common start, goes back to sleep) is counted in an order
 * of its own, without a window, and taken off: in user space that is the spin,
 * a turn of which always costs the same.
 */
#ifndef FDSCALE_COUNTERS_H
#define FDSCALE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "problem.h"

#define COUNTERS_MAX 6
#define COUNTERS_DEFAULT "instructions,cycles,cache-misses"

/* Counted apart: in user space and in the kernel. */
enum counter_side { SIDE_USER, SIDE_KERNEL, SIDES };

struct counter_kind {
	const char *name;
	uint32_t type;
	uint64_t config;
};

/* Which to count: from the command line. */
struct counter_list {
	unsigned int kinds;
	const struct counter_kind *kind[COUNTERS_MAX];
};

/* "a,b,c" or "none"; USAGE for a word that names no counter. */
int counter_list_parse(const char *text, struct counter_list *list,
		       struct problem *p);

struct counter_reading {
	uint64_t value, enabled, running;
};

/* One kind on one side, on all children. */
struct counter {
	int *fds;			/* one a child; NULL: not there */
	struct counter_reading *before; /* one a child, at the last stop */
	double count;
	double empty; /* the same, of the order without a window */
	bool known;   /* count is: not where it never had the hardware */
};

/* What the tasks did while it counted. */
struct counted {
	uint64_t ops;
	uint64_t spins; /* turns of the wait for the start */
};

struct counters {
	const struct counter_list *list;
	struct counter counter[COUNTERS_MAX][SIDES];
	unsigned int children;
	unsigned int there; /* how many of counter[][] */
	struct counted done, empty;
	char why[200]; /* "" when all are there, else why one is not */
};

/* On each of @children that is not 0; what cannot be is in ->why. */
void counters_open(struct counters *c, const struct counter_list *list,
		   const pid_t *children, unsigned int n);
/* None of them, and @why. */
void counters_none(struct counters *c, const struct counter_list *list,
		   const char *why);
/* What was counted last can still be asked for. */
void counters_close(struct counters *c);

/* Around an order, while the tasks stand still; @done is what it came to. */
void counters_start(struct counters *c);
void counters_stop(struct counters *c, struct counted done);

/* The order just counted was the empty one, to be taken off the next. */
void counters_empty(struct counters *c);

/* What one operation took.  False: not there, or not to be told. */
bool counters_per_op(const struct counters *c, unsigned int kind,
		     enum counter_side side, double *out);

#endif
