/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The machine as hwloc sees it, narrowed to what this process may use: the
 * allowed set (cgroup, cpuset, offline CPUs) and, where the topology is this
 * system's own, the affinity mask (taskset).  Loaded once a driver.
 * HWLOC_XMLFILE and HWLOC_SYNTHETIC choose another machine's.
 */
#ifndef FDSCALE_TOPOLOGY_H
#define FDSCALE_TOPOLOGY_H

#include <hwloc.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "problem.h"

#define TOPOLOGY_NONE (-1) /* hwloc knows of no such thing around this PU */

/*
 * A usable PU and where it sits.  A domain is what shares package, NUMA node
 * and L3, so it is the innermost of them whichever way they nest.
 */
struct topology_pu {
	int os;	     /* OS index, the CPU number of taskset */
	int core;    /* numbered as hwloc does, over usable cores only */
	int l3;	     /* hwloc's logical index, or TOPOLOGY_NONE */
	int node;    /* OS index of the nearest NUMA node, or TOPOLOGY_NONE */
	int package; /* OS index; logical where the system gives none */
	int sibling; /* rank among the usable PUs of its core, from 0 */
	int kind;    /* kind of core: 0 the fastest; all 0 unless hybrid */
	/* For sorting: a group is named by the first PU, as hwloc counts. */
	unsigned int in_package, in_node, in_domain;
	int domain_kind; /* the fastest kind in its domain */
};

/* The int of a PU at an offset, so that one loop serves L3, node, package. */
static inline int topology_field(const struct topology_pu *pu, size_t offset)
{
	return *(const int *)((const char *)pu + offset);
}

struct topology {
	hwloc_topology_t hwloc;
	hwloc_cpuset_t usable;	 /* PUs that tasks may be bound to */
	bool this_system;	 /* false: a file or a synthetic string */
	char *source;		 /* "this system", or the file or the string */
	struct topology_pu *pus; /* the usable PUs in compact order */
	unsigned int npus;
};

/* 0, or the exit status with @p filled in.  Undo with topology_free(). */
int topology_load(struct topology *t, struct problem *p);
void topology_free(struct topology *t);

/*
 * Use cores of one kind only: "P", the fastest kind, or "E", the others.  0, or
 * the exit status with @p filled in where the word or the kind is unknown.
 */
int topology_core_kind(struct topology *t, const char *kind, struct problem *p);

/*
 * What `topology --json` prints: counts of packages, nodes, L3s, cores and PUs
 * that are usable, the usable PUs with their core, L3, node and package, and
 * the task counts at which one L3, node, package, all cores and all PUs fill.
 * A new reference.
 */
json_t *topology_json(const struct topology *t);

#endif
