/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of `fdscale run`. */
#ifndef FDSCALE_OPTIONS_H
#define FDSCALE_OPTIONS_H

#include "run.h"

/*
 * Fill @run from the words after "run".  DONE, or the exit status with @p
 * filled in; @help is set where help was asked for.  @run points into the
 * words; undo with options_free().
 */
int options_parse(int argc, char **argv, struct run *run, bool *help,
		  struct problem *p);

/* What options_parse() allocated. */
void options_free(struct run *run);

/*
 * What "--variant all" is: every search and preset that conforms, on a kernel
 * those that its switch has, or what it is.
 */
unsigned int options_all_variants(enum backend backend, const char **names,
				  unsigned int most);

/*
 * "a,b#clone,all" into @names, of VARIANTS_MAX places.  @text is cut up: the
 * names point into it.  DONE, or USAGE where there are none, too many, or one
 * twice.
 */
int options_split_variants(enum backend backend, char *text, const char **names,
			   unsigned int *count, struct problem *p);

#endif
