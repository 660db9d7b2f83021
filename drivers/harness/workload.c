// SPDX-License-Identifier: GPL-2.0-only
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shared.h"

const char *const backend_names[BACKENDS] = {"kernel", "model"};

/* The linker's bounds of the section; weak: a test links no workload.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*): it gives the names. */
extern const struct workload *const __start_workloads[] __attribute__((weak));
extern const struct workload *const __stop_workloads[] __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl*) */

const struct workload *const *workloads_begin(void)
{
	return __start_workloads;
}

const struct workload *const *workloads_end(void)
{
	return __stop_workloads;
}

const struct workload *workload_find(const char *name, enum backend backend)
{
	const struct workload *const *w;

	for_each_workload (w)
		if ((*w)->backend == backend && !strcmp((*w)->name, name))
			return *w;
	return NULL;
}

int task_fail(struct task *t, const char *call)
{
	t->slot->error = errno ? errno : EINVAL;
	snprintf(t->slot->call, sizeof(t->slot->call), "%s", call);
	return -1;
}
