// SPDX-License-Identifier: GPL-2.0-only
#include "think.h"

#include "clock.h"
#include "coordinate.h"
#include "kernel.h"

/* ns of an operation by one task of @workload, or negative with @p. */
static double probe(const struct run *run, const struct workload *workload,
		    const char *variant, uint64_t think, struct problem *p)
{
	struct run one = *run;

	one.workload = workload;
	one.backend = workload->backend;
	one.tasks = 1;
	one.variants = 1;
	one.variant_names[0] = variant;
	one.blocks = 10;
	one.think_ns = think;
	one.probe = true;
	if (run_size(&one, p) || coordinate(&one, clock_ns(), p))
		return -1;
	return 1e9 / one.rate;
}

int think_from_kernel(struct run *run, struct problem *p)
{
	const struct workload *w = run->workload;
	const struct workload *twin = workload_find(w->name, BACKEND_KERNEL);
	const char *variant = run->variant_names[0];
	double kernel, model, slow;
	uint64_t all;

	if (!twin)
		return problem_set(p, USAGE,
				   "--think kernel: %s has no kernel backend",
				   w->name);
	kernel = probe(run, twin, kernel_running(), 0, p);
	if (kernel < 0)
		return COULD_NOT;
	model = probe(run, w, variant, 0, p);
	if (model < 0)
		return COULD_NOT;
	if (kernel < model + 1)
		return DONE;
	/* All of it after each call: how much is that, by operation? */
	all = kernel - model;
	slow = probe(run, w, variant, all, p);
	if (slow < 0)
		return COULD_NOT;
	if (slow - model < all / 2.)
		return problem_set(p, USAGE,
				   "--think kernel: an operation of %s makes "
				   "no call of fd.h on the model",
				   w->name);
	run->think_ns = all * (all / (slow - model));
	return DONE;
}
