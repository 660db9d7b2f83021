/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef FDSCALE_TEST_LOAD_H
#define FDSCALE_TEST_LOAD_H

#include <stdlib.h>

#include "../../drivers/harness/topology.h"

/* topology_load() with one variable of hwloc set, or none; none stays set. */
static inline int load(struct topology *t, const char *variable,
		       const char *value, struct problem *p)
{
	int status;

	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_SYNTHETIC");
	if (variable)
		setenv(variable, value, 1);
	status = topology_load(t, p);
	unsetenv("HWLOC_XMLFILE");
	unsetenv("HWLOC_SYNTHETIC");
	return status;
}

#endif
