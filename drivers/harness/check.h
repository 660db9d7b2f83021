/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The conformance check: what POSIX and the manual pages ask of a descriptor
 * table, rule by rule, of the running kernel or of a variant of the model.
 */
#ifndef FDSCALE_CHECK_H
#define FDSCALE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "../fdtable/fdtable.h"
#include "problem.h"

struct check_result {
	const char *rule;    /* "lowest-free" */
	const char *demands; /* one line: what it asks for */
	bool ok;
	char detail[200]; /* where not ok: the call, what it gave, what it
			     should have */
};

extern const size_t check_rule_count;

/*
 * Try every rule, each on a fresh table.  @v NULL is the running kernel, whose
 * calls are made in a child process.  @results has room for check_rule_count.
 * The number of rules broken, or -1 with @p filled in (COULD_NOT).
 */
int check_rules(const struct variant *v, struct check_result *results,
		struct problem *p);

#endif
