/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `fdscale run` says on stdout: one JSON object a line with --json, or a
 * table at the end.  The schema is in the README.
 */
#ifndef FDSCALE_EVENT_H
#define FDSCALE_EVENT_H

#include <jansson.h>

#include "run.h"
#include "shared.h"

#define SCHEMA 1

/* One recorded window or fixed-work measurement. */
struct window {
	unsigned int variant;
	unsigned int block;
	uint64_t from; /* ns: where it begins */
	uint64_t ns;
	uint64_t skew_ns;    /* latest start less the common one */
	unsigned int redone; /* times it was done again */
	bool skewed;	     /* the start was more than 1% apart */
	uint64_t switches;   /* involuntary, all tasks */
	uint64_t injected;   /* ns that all tasks spun after --inject */
	uint64_t *ops;	     /* per task */
	double rate;	     /* operations a second */
};

/* What there is to tell so far, for the table. */
struct tally {
	double *rates[VARIANTS_MAX];
	unsigned int windows[VARIANTS_MAX];
	uint64_t ns[VARIANTS_MAX]; /* of its windows */
	uint64_t *task_ops;	   /* variants x tasks */
};

int tally_init(struct tally *tally, const struct run *run, unsigned int blocks);
void tally_free(struct tally *tally);

/* The median rate of the first variant, or 0; sorts what it looks at. */
double tally_rate(struct tally *tally);

void event_setup(const struct run *run, const struct shared *shared,
		 const struct counters *counters, uint64_t startup_ns);
void event_window(const struct run *run, const struct window *w,
		  const struct counters *counters, struct tally *tally);
/* @error is the errno of @call in @task; also one line on stderr. */
void event_error(const struct run *run, const char *call, int error,
		 unsigned int task, const char *variant);
void event_end(const struct run *run, const struct tally *tally,
	       const char *how, uint64_t recorded_ns, uint64_t total_ns);

/* What to do about an errno of a measured call. */
const char *remedy(int error);

/* Print @object as a line, and drop the reference. */
void json_line(json_t *object);

/* Nobody takes what is printed: no use in going on. */
bool stdout_failed(void);

/* DONE, or COULD_NOT: stdout could not take all that was written. */
int stdout_close(struct problem *p);

#endif
