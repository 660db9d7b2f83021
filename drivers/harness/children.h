/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of the coordinator's children, which the tasks are in: forked, given
 * orders, waited for, told to quit; one that dies by itself ends the run.
 */
#ifndef FDSCALE_CHILDREN_H
#define FDSCALE_CHILDREN_H

#include <stdbool.h>

#include "run.h"
#include "shared.h"

/* ns after which a task that was to be done by now is told to hang. */
#define CHILDREN_HANG 30000000000ull

struct children {
	struct run *run;
	struct shared *shared;
	unsigned char *slots;
	pid_t *pids; /* a task; 0 where no child begins, or none lives */
	bool quitting;
};

/* A stop (SIGINT, SIGTERM, SIGHUP) or a child's end cuts every wait short. */
void children_catch_signals(void);

/* All that make up the run; they stop before they are ready. */
int children_fork(struct children *c, struct problem *p);

/* Let them: until every task is ready. */
int children_go_on(struct children *c, struct problem *p);

void children_post(struct children *c, enum order order);

/*
 * Until all tasks have carried out the order.  @deadline in ns; 0: however long
 * it takes.  INTERRUPTED, or COULD_NOT when a child ended or the time was up.
 */
int children_wait(struct children *c, uint64_t deadline, struct problem *p);

/* Until the clock says @ns, with an eye on them as children_wait() has. */
int children_sleep_until(struct children *c, uint64_t ns, struct problem *p);

/* Tell them to quit, and wait until they are gone. */
int children_quit(struct children *c, struct problem *p);

/* Whatever they do. */
void children_kill(struct children *c);

#endif
