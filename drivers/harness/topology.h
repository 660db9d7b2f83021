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

#include "problem.h"

struct topology {
	hwloc_topology_t hwloc;
	hwloc_cpuset_t usable; /* PUs that tasks may be bound to */
	bool this_system;      /* false: a file or a synthetic string */
};

/* 0, or the exit status with @p filled in.  Undo with topology_free(). */
int topology_load(struct topology *t, struct problem *p);
void topology_free(struct topology *t);

/*
 * What `topology --json` prints: counts of packages, nodes, L3s, cores and PUs
 * that are usable, the usable PUs with their core, L3, node and package, and
 * the task counts at which one L3, node, package, all cores and all PUs fill.
 * A new reference.
 */
json_t *topology_json(const struct topology *t);

#endif
