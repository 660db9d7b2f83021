/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test case of will-it-scale's form, measured: testcase() never returns, so
 * it takes no orders; it counts in its task's slot, and the coordinator, which
 * is another process, reads the counts by the clock.
 *
 * Between coordinator and tasks stands a process that stays out of the way: it
 * builds the hold, has testcase_prepare() run once, forks the tasks from there
 * (threads: one child with all of them; processes: a child each), sees them
 * die, stops them while a switch is flipped, and has testcase_cleanup() run
 * when they are gone.  The first task is the main thread of its process: with
 * one task no other thread shares its table.
 */
#ifndef FDSCALE_TESTCASE_H
#define FDSCALE_TESTCASE_H

#include "run.h"
#include "shared.h"

struct testcase {
	char **description;
	void (*prepare)(unsigned long tasks); /* or NULL */
	void (*cleanup)(void);		      /* or NULL */
	void (*main)(unsigned long long *iterations, unsigned long task);
};

/* In a new child of the coordinator: that process. */
void testcase_main(const struct run *run, struct shared *shared,
		   unsigned char *slots, pid_t coordinator)
	__attribute__((noreturn));

/* What a case may call: a helper as the tasks are, a thread or a process. */
void new_task(void *(*func)(void *), void *arg);

/* An assertion of the case failed: note which, and die of it. */
void testcase_assert(const char *assertion, const char *file, unsigned int line,
		     const char *function) __attribute__((noreturn));

/* COULD_NOT; @who ("task 0", ..) ended as waitpid() says in @how. */
int testcase_death(const struct run *run, const char *who, int how,
		   struct problem *p);

/* What the tasks have counted, each by a moment of its own. */
struct reading {
	uint64_t *ops; /* a task */
	uint64_t ns;   /* the mean of those moments */
	uint64_t skew; /* ns from before the first to after the last */
};

/*
 * Count and clock are read one after the other, task by task: a reader that
 * loses its CPU in between shows in the skew.
 */
void testcase_read(unsigned char *slots, unsigned int tasks,
		   struct reading *reading);

/* Involuntary context switches of all tasks so far. */
uint64_t testcase_switches(unsigned char *slots, unsigned int tasks);

#endif
