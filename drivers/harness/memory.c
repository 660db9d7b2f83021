// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <unistd.h>

#define CHUNK 1024 /* pages asked about at once */

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

int memory_only(int node)
{
	struct bitmask *nodes = numa_allocate_nodemask();
	long r;

	if ((unsigned int)node >= nodes->size) {
		numa_bitmask_free(nodes);
		return EINVAL;
	}
	numa_bitmask_setbit(nodes, node);
	r = set_mempolicy(MPOL_BIND, nodes->maskp, nodes->size + 1);
	numa_bitmask_free(nodes);
	return r ? errno : 0;
}

long memory_elsewhere(void *pages, size_t bytes, int node)
{
	size_t size = sysconf(_SC_PAGESIZE), count = (bytes + size - 1) / size;
	void *page[CHUNK];
	int where[CHUNK];
	long elsewhere = 0;

	for (size_t done = 0; done < count;) {
		size_t n = count - done < CHUNK ? count - done : CHUNK;

		for (size_t i = 0; i < n; i++)
			page[i] = (char *)pages + (done + i) * size;
		/* No nodes to move to: it only says where they are. */
		if (numa_move_pages(0, n, page, NULL, where, 0))
			return -1;
		/* Below 0: not there yet, or not to be told. */
		for (size_t i = 0; i < n; i++)
			elsewhere += where[i] >= 0 && where[i] != node;
		done += n;
	}
	return elsewhere;
}
