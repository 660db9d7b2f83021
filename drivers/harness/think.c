// SPDX-License-Identifier: GPL-2.0-only
#include "think.h"

#include "clock.h"
#include "coordinate.h"
#include "kernel.h"

/* ns of an operation by one task of @workload, or negative with @p. */
static double probe(const struct run *run, const struct workload *workload,
		    const char *variant, struct problem *p)
{
	struct run one = *run;

	one.workload = workload;
	one.backend = workload->backend;
	one.tasks = 1;
	one.variants = 1;
	one.variant_names[0] = variant;
	one.blocks = 10;
	one.think_ns = 0;
	one.probe = true;
	if (run_size(&one, p) || coordinate(&one, clock_ns(), p))
		return -1;
	return 1e9 / one.rate;
}

int think_from_kernel(struct run *run, struct problem *p)
{
	const struct workload *w = run->workload;
	const struct workload *twin = workload_find(w->name, BACKEND_KERNEL);
	unsigned int calls = w->calls ? w->calls : 2;
	double kernel, model;

	if (!twin)
		return problem_set(p, USAGE,
				   "--think kernel: %s has no kernel backend",
				   w->name);
	kernel = probe(run, twin, kernel_running(), p);
	if (kernel < 0)
		return COULD_NOT;
	model = probe(run, w, run->variant_names[0], p);
	if (model < 0)
		return COULD_NOT;
	run->think_ns = kernel > model ? (kernel - model) / calls : 0;
	return DONE;
}
