/* SPDX-License-Identifier: GPL-2.0-only */
/* The model's tables of a run: one a variant, all with the same hold. */
#ifndef FDSCALE_TABLES_H
#define FDSCALE_TABLES_H

#include "run.h"

struct tables {
	struct files *files[VARIANTS_MAX];
	struct model_file *null;   /* what the hold names */
	struct model_file *shared; /* open-close --file shared */
	struct model_file *own;	   /* one a task */
};

/* 0 or COULD_NOT.  Made in shuffled order; the process's end frees them. */
int tables_build(const struct run *run, unsigned int tasks, struct tables *t,
		 struct problem *p);

/* Every table against the hold: 0 or COULD_NOT. */
int tables_check(const struct run *run, const struct tables *t,
		 struct problem *p);

/*
 * --table-node: what the tables have not touched yet is bound to it too, and
 * what they have is looked for.  @text says what is not there, or "".
 */
void tables_look(const struct run *run, const struct tables *t, char *text,
		 size_t size);

#endif
