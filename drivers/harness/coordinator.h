/* SPDX-License-Identifier: GPL-2.0-only */
/* What coordinate.c and the ways to measure a window have in common. */
#ifndef FDSCALE_COORDINATOR_H
#define FDSCALE_COORDINATOR_H

#include "children.h"
#include "event.h"
#include "kswitch.h"
#include "testcase.h"

#define MS 1000000ull
#define SETTLE_LEAST (100 * 1000ull) /* ns unrecorded after a switch */
#define REDO_MOST 8

struct coordinator {
	struct run *run;
	struct children children;
	size_t bytes; /* shared with them */
	uint64_t lead;
	uint64_t seed;
	unsigned int redo_skewed; /* times, at most */
	uint64_t recorded_ns;
	struct tally tally;
	struct window window;
	struct counters counters;
	struct kswitch kswitch;	      /* the kernel's, where it has one */
	struct reading before, after; /* of a test case's counts */
	bool started;		      /* its tasks are at it */
};

/* @variant from the next order on; COULD_NOT where the kernel refuses. */
int coordinator_set(struct coordinator *c, unsigned int variant,
		    struct problem *p);

/* A window of @ns of a test case, into c->window. */
int measure_case(struct coordinator *c, unsigned int variant, uint64_t ns,
		 struct problem *p);

#endif
