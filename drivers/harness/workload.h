/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a workload file says of itself, and what it is given.
 *
 * A workload is one file in drivers/workloads/, compiled once for each backend
 * (FD_BACKEND_KERNEL, FD_BACKEND_MODEL); the WORKLOAD() in it is all it takes
 * to be known.  fd.h has the calls whose backend is chosen by that.
 */
#ifndef FDSCALE_WORKLOAD_H
#define FDSCALE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "../fdtable/fdtable.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum backend { BACKEND_KERNEL, BACKEND_MODEL, BACKENDS };
extern const char *const backend_names[BACKENDS];

#define WORKLOAD_OPTIONS 6

/* A flag of the workload's own: a word from @choices, else a number. */
struct workload_option {
	const char *name;    /* without the dashes; NULL ends the list */
	const char *choices; /* "own shared null", or NULL */
	const char *fallback;
	uint64_t least, most;
	const char *about;
};

/* What was given for it: the number, or the choice's place in the list. */
struct option_value {
	const char *text;
	uint64_t number;
};

/* Something to open: a path for the kernel, a file object for the model. */
struct target {
	char path[256];
	struct model_file *file;
};

struct slot;
struct run;
struct testcase;

/* A task as its workload sees it; private to the task. */
struct task {
	const struct run *run;
	const struct option_value *options;
	unsigned int number;
	int source;		  /* a descriptor of its own, above the hold */
	struct files_task *files; /* model: the table of the variant measured */
	struct target own;
	struct target shared;
	void *data;	/* the workload's own */
	uint64_t think; /* model: turns of spin() after each call */

	/* the harness's */
	struct slot *slot;
	struct files_task *handles; /* model: one a variant */
	uint64_t *batch; /* operations between two looks at the clock */
	double owed;	 /* ns of --inject that are still to be spun */
};

enum workload_flags {
	WORKLOAD_FIXED = 1, /* a fresh process does a fixed number of turns */
	WORKLOAD_PROCESSES = 2, /* threads are refused: see @why_processes */
	WORKLOAD_EMPTY = 4,	/* starts from 0, 1, 2 and 3; no source */
};

struct workload {
	const char *name;
	const char *about; /* one operation, in a line */
	enum backend backend;
	unsigned int flags;
	const char *why_processes;
	const char *hold; /* the least low:N it has a meaning with; NULL: any */
	struct workload_option options[WORKLOAD_OPTIONS];
	/* Most descriptors that one task has in flight; NULL means two. */
	uint64_t (*descriptors)(const struct option_value *options);
	/* Where its searches start, with a start of their own; NULL means 0. */
	uint64_t (*start)(const struct option_value *options);
	/* WORKLOAD_FIXED: turns of one measurement. */
	uint64_t (*turns)(const struct option_value *options);
	/* What a task does, where tasks differ: they are counted apart. */
	const char *(*role)(const struct run *run, unsigned int task);
	/* Before the start: 0, or the exit status with @p filled in. */
	int (*check)(const struct run *run, struct problem *p);
	/* Unmeasured; 0, or -1 by way of task_fail(). */
	int (*prepare)(struct task *t);
	/* @n operations; 0, or -1 by way of task_fail(). */
	int (*operate)(struct task *t, uint64_t n);
	/* Closes what was kept, in every table: the hold is checked next. */
	void (*finish)(struct task *t);
	/* --testcase: takes the place of these three; else NULL. */
	const struct testcase *testcase;
};

#ifdef FD_BACKEND_MODEL
#define WORKLOAD_BACKEND BACKEND_MODEL
#else
#define WORKLOAD_BACKEND BACKEND_KERNEL
#endif

/* A function of the workload that only the kernel's build of it has. */
#ifdef FD_BACKEND_KERNEL
#define FOR_KERNEL(function) function
#else
#define FOR_KERNEL(function) NULL
#endif

/* A user's own file (own.h) is known by the file's name, whatever it says. */
#ifdef FDSCALE_OWN_NAME
#define WORKLOAD_NAME , .name = FDSCALE_OWN_NAME
#else
#define WORKLOAD_NAME
#endif

/* Announce a workload: WORKLOAD(.name = "dup-close", ...); */
#define WORKLOAD(...)                                                          \
	static const struct workload this_workload = {                         \
		.backend = WORKLOAD_BACKEND, __VA_ARGS__ WORKLOAD_NAME};       \
	static const struct workload *const this_entry                         \
		__attribute__((section("workloads"), used)) = &this_workload

/*
 * What a task keeps open from window to window is kept once a table: these are
 * the tables it acts on, and the number of the one that t->files names now.
 */
#ifdef FD_BACKEND_MODEL
static inline unsigned int task_table(const struct task *t)
{
	return t->files - t->handles;
}
#else
static inline unsigned int task_table(const struct task *t)
{
	(void)t;
	return 0;
}
#endif

/* All that were linked in, both backends' together. */
const struct workload *const *workloads_begin(void);
const struct workload *const *workloads_end(void);
#define for_each_workload(w)                                                   \
	for ((w) = workloads_begin(); (w) != workloads_end(); (w)++)

/* NULL where there is none of that name for @backend. */
const struct workload *workload_find(const char *name, enum backend backend);

/*
 * An operation failed with errno: note @call, so that the window ends and the
 * user is told.  Returns -1.
 */
int task_fail(struct task *t, const char *call) __attribute__((cold));

#endif
