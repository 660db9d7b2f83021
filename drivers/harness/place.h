/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which PU each task is bound to.  The policies are those of the README:
 * compact, cores, smt, scatter, node:N, package:N, cpus:LIST, none.
 */
#ifndef FDSCALE_PLACE_H
#define FDSCALE_PLACE_H

#include "topology.h"

#define PLACE_NONE (-1) /* not bound; no node */
#define TASKS_MAX 65536

struct placement {
	unsigned int tasks;
	unsigned int capacity; /* PUs that the policy can use */
	int *pus;	       /* OS index of each task's PU, or PLACE_NONE */
	int *nodes; /* OS index of that PU's NUMA node, or PLACE_NONE */
};

/*
 * Place @tasks tasks by @policy.  More tasks than the policy has PUs is USAGE,
 * or goes round again where @oversubscribe.  0 or the exit status with @p
 * filled in.  Undo with placement_free().
 */
int place_tasks(const struct topology *t, const char *policy,
		unsigned int tasks, bool oversubscribe, struct placement *out,
		struct problem *p);
void placement_free(struct placement *pl);

#endif
