/* SPDX-License-Identifier: GPL-2.0-only */
/* One cell, as asked for on the command line, and what became of it. */
#ifndef FDSCALE_RUN_H
#define FDSCALE_RUN_H

#include "counters.h"
#include "hold.h"
#include "place.h"
#include "workload.h"

#define VARIANTS_MAX 64

enum mode { MODE_THREADS, MODE_PROCESSES, MODES };
extern const char *const mode_names[MODES];

struct run {
	const struct workload *workload;
	struct option_value options[WORKLOAD_OPTIONS];
	enum backend backend;
	enum mode mode;
	enum files_lock lock;
	unsigned int variants;
	char *variant_text; /* what variant_names point into */
	const char *variant_names[VARIANTS_MAX];
	const struct variant *model_variants[VARIANTS_MAX];
	bool clone[VARIANTS_MAX]; /* a second copy of a variant: "#clone" */
	struct counter_list counters;
	double inject; /* time added to clones, over what they took; or 0 */
	unsigned int tasks;
	const char *place;
	const char *core_kind; /* "P", "E" or NULL: all */
	struct hold hold;
	const char *hold_text;
	uint32_t hold_top;   /* --hold-top, for every:K and random:P */
	uint32_t table_size; /* asked for; 0: as small as fits */
	int table_node;	     /* where the table lives, or PLACE_NONE */
	unsigned int blocks; /* 0: about a second's worth */
	unsigned int window_ms;
	uint64_t seed;
	const char *tmpdir;
	bool oversubscribe;
	bool json;
	uint64_t think_ns; /* model: spent after each call, outside the lock */
	bool think_kernel; /* work it out from the kernel's own cost */
	bool probe;	   /* only its rate is wanted: no events */

	/* worked out before the start */
	struct placement placement;
	int table_pu;	/* of table_node: who builds the table runs there */
	uint32_t slots; /* table_size, or what fits */
	uint32_t first_source; /* each task's own file, from here up */
	uint32_t sources;      /* in one table */
	uint64_t limit;	       /* RLIMIT_NOFILE that it takes */
	const char *directory; /* for the files of the tasks */
	char memory[128];      /* "" when bound, else why not */

	double rate; /* out: median of the first variant's windows */
};

/*
 * The descriptors, table size and limit the run will need; refused with
 * COULD_NOT where RLIMIT_NOFILE's hard limit or fs.nr_open is lower, USAGE
 * where the table size asked for does not hold it.
 */
int run_size(struct run *run, struct problem *p);

/* What else refuses a run once it is placed: its lock, then run_size(). */
int run_ready(struct run *run, const struct topology *t, struct problem *p);

#endif
