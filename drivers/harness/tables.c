// SPDX-License-Identifier: GPL-2.0-only
#include "tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "random.h"

#define NR_OPEN (1u << 30)

static struct model_file *new_files(unsigned int n)
{
	struct model_file *f = aligned_alloc(64, n * sizeof(*f));

	for (unsigned int i = 0; f && i < n; i++)
		atomic_init(&f[i].count, 1);
	return f;
}

static int fill(const struct run *run, struct files_task *t,
		const struct tables *tables)
{
	struct hold hold = run->hold;
	int r = files_grow(t, run->slots);

	if (run->workload->flags & WORKLOAD_EMPTY)
		hold.top = 4;
	for (uint32_t fd = 0; !r && fd < hold.top; fd++)
		if (hold_has(&hold, fd))
			r = files_hold(t, fd, tables->null);
	for (uint32_t i = 0; !r && i < run->sources; i++)
		r = files_hold(t, run->first_source + i, &tables->own[i]);
	return r;
}

/* The table as it stands against what was asked for. */
static int check(const struct run *run, const struct files *files,
		 struct problem *p)
{
	uint32_t end = run->first_source + run->sources;

	if (files_slots(files) != run->slots)
		return problem_set(p, COULD_NOT,
				   "table: asked for %u slots, got %u",
				   run->slots, files_slots(files));
	for (uint32_t fd = 0; fd < end; fd++) {
		bool want = hold_has(&run->hold, fd) || fd >= run->first_source;

		if (files_is_open(files, fd) != want)
			return problem_set(p, COULD_NOT,
					   "hold: descriptor %u is %s", fd,
					   want ? "free" : "open and not held");
	}
	return DONE;
}

static int build(const struct run *run, unsigned int tasks, unsigned int v,
		 struct tables *t, struct problem *p)
{
	struct files_options options = {
		.variant = run->model_variants[v],
		.tasks = tasks,
		.limit = run->limit,
		.nr_open = NR_OPEN,
	};
	struct files_task *setup = aligned_alloc(64, sizeof(*setup));
	int r;

	t->files[v] = files_new(&options);
	if (!t->files[v] || !setup) {
		free(setup);
		return problem_set(p, COULD_NOT, "table of %s: %s",
				   run->variant_names[v], strerror(errno));
	}
	files_attach(setup, t->files[v], 0);
	r = fill(run, setup, t);
	files_detach(setup);
	free(setup);
	if (r)
		return problem_set(p, COULD_NOT, "table of %s: %s",
				   run->variant_names[v], strerror(-r));
	return DONE;
}

int tables_build(const struct run *run, unsigned int tasks, struct tables *t,
		 struct problem *p)
{
	unsigned int order[VARIANTS_MAX];
	uint64_t seed = run->seed;
	int status = DONE;

	t->null = new_files(2);
	t->own = new_files(tasks);
	if (!t->null || !t->own)
		return problem_set(p, COULD_NOT, "no memory for the model");
	t->shared = t->null + 1;
	random_order(&seed, order, run->variants);
	for (unsigned int i = 0; !status && i < run->variants; i++)
		status = build(run, tasks, order[i], t, p);
	if (!status && !(run->workload->flags & WORKLOAD_EMPTY))
		status = tables_check(run, t, p);
	return status;
}

int tables_check(const struct run *run, const struct tables *t,
		 struct problem *p)
{
	int status = DONE;

	for (unsigned int v = 0; !status && v < run->variants; v++)
		status = check(run, t->files[v], p);
	return status;
}

void tables_look(const struct run *run, const struct tables *t, char *text,
		 size_t size)
{
	struct files_region regions[2];
	int node = run->table_node;

	*text = '\0';
	for (unsigned int v = 0; v < run->variants; v++) {
		unsigned int n = files_regions(t->files[v], regions);

		for (unsigned int i = 0; i < n; i++) {
			struct files_region *r = &regions[i];
			long elsewhere;
			int error = memory_bind(r->start, r->bytes, node);

			elsewhere = memory_elsewhere(r->start, r->bytes, node);
			if (error || elsewhere < 0)
				snprintf(text, size, "%s: %s",
					 error ? "mbind" : "move_pages",
					 strerror(error ? error : errno));
			else if (elsewhere)
				snprintf(text, size,
					 "of %s's table pages on another "
					 "node: %ld",
					 run->variant_names[v], elsewhere);
		}
	}
}
