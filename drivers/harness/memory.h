/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory on a task's own node, by libnuma; where refused, the reason. */
#ifndef FDSCALE_MEMORY_H
#define FDSCALE_MEMORY_H

#include <stddef.h>

/* Why no memory can be bound on this host, or NULL. */
const char *memory_unavailable(void);

/* Bind untouched pages to @node: 0 or errno.  Node -1: nothing to do. */
int memory_bind(void *pages, size_t bytes, int node);

/* What this thread touches from now on comes from its own node: 0 or errno. */
int memory_local(void);

/* ... comes from @node and no other: 0 or errno. */
int memory_only(int node);

/* How many pages that are there at all lie on another node; -1 with errno. */
long memory_elsewhere(void *pages, size_t bytes, int node);

#endif
