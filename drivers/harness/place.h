/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which PU each task is bound to.  A policy is an order of the usable PUs; task
 * i gets the i-th, however many tasks there are.
 *
 * compact    domain by domain (see struct topology_pu), a package's one after
 *            the other: the first PU of every core, then the second ones, ...
 * cores      the first PU of every core, in compact's order, and no more
 * smt        core by core in the same order, all PUs of each
 * scatter    a PU of each package in turn, within a package of each node in
 *            turn, within a node of each L3; no sibling before all first PUs
 * node:N     compact inside a NUMA node (OS index)
 * package:N  compact inside a package (OS index; logical if it has none)
 * cpus:LIST  these CPUs in this order, as in 0-3,8
 * none       not bound
 *
 * Where cores are of several kinds the faster come first: in compact, cores and
 * smt within their domain, in scatter on the whole machine.
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

/*
 * --table-node: a PU of @node into @pu.  PLACE_NONE is none of both; USAGE
 * names the nodes that have memory and a PU, both of which may be used.
 */
int place_table(const struct topology *t, int node, int *pu, struct problem *p);

#endif
