// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>

const char *memory_unavailable(void)
{
	return numa_available() < 0 ? "this kernel has no NUMA policy" : NULL;
}

int memory_bind(void *pages, size_t bytes, int node)
{
	struct bitmask *nodes;
	long r;

	if (node < 0)
		return 0;
	nodes = numa_allocate_nodemask();
	numa_bitmask_setbit(nodes, node);
	/* One more than the mask holds: the kernel reads maxnode - 1 bits. */
	r = mbind(pages, bytes, MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
	numa_bitmask_free(nodes);
	return r ? errno : 0;
}

int memory_local(void)
{
	return set_mempolicy(MPOL_LOCAL, NULL, 0) ? errno : 0;
}
