/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Seeded random operations on a table and on the oracle; a failing sequence is
 * shrunk to a smallest one and printed with its seed.
 */
#ifndef FDSCALE_PROPERTY_H
#define FDSCALE_PROPERTY_H

#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

static inline uint64_t prop_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline void prop_generate(struct prop_case *c, const struct variant *v,
				 uint64_t seed)
{
	static const unsigned int tops[] = {8,	 66,  70,  130, 140,
					    200, 300, 600, 5000};
	static const unsigned int edges[] = {0,	  1,   62,  63,	 64,   65,
					     127, 128, 129, 191, 4095, 4096};
	uint64_t r = seed;
	unsigned int top = tops[prop_random(&r) % 9], i;

	*c = (struct prop_case){.variant = v, .seed = seed, .count = CASE_OPS};
	c->tasks = prop_random(&r) % 2 ? 1 : CASE_TASKS;
	c->nr_open = prop_random(&r) % 4 ? 8000 : 64 + prop_random(&r) % 200;
	c->limit =
		prop_random(&r) % 2 ? c->nr_open : 64 + prop_random(&r) % top;
	if (c->limit > c->nr_open)
		c->limit = c->nr_open;
	for (i = 0; i < c->count; i++) {
		struct op *op = &c->ops[i];
		unsigned int pick = prop_random(&r) % 100;

		op->kind = pick < 25   ? OP_OPEN
			   : pick < 35 ? OP_DUP
			   : pick < 45 ? OP_DUPFD
			   : pick < 53 ? OP_DUP3
			   : pick < 77 ? OP_CLOSE
			   : pick < 80 ? OP_CLOSE_RANGE
			   : pick < 84 ? OP_RESERVE
			   : pick < 89 ? OP_UNRESERVE
			   : pick < 92 ? OP_GET
			   : pick < 94 ? OP_LIMIT
			   : pick < 95 ? OP_FORK
			   : pick < 99 ? OP_FILL
				       : OP_GROW;
		op->task = prop_random(&r) % c->tasks;
		op->a = prop_random(&r) % 4 ? prop_random(&r) % top
					    : edges[prop_random(&r) % 12];
		op->b = prop_random(&r) % 4 ? prop_random(&r) % top
					    : edges[prop_random(&r) % 12];
		op->flag = prop_random(&r) % 2;
		if (op->kind == OP_CLOSE_RANGE)
			op->flag = prop_random(&r) % 4;
		if (op->kind == OP_LIMIT && prop_random(&r) % 2)
			op->a = c->nr_open;
		if (op->kind == OP_LIMIT && op->a > c->nr_open)
			op->a = c->nr_open;
		if (is_v1(v) && op->kind == OP_DUPFD)
			op->b = 0;
		if (is_v1(v) && op->kind == OP_LIMIT && op->a < 64)
			op->a = 64;
	}
}

/* The index of the operation that went wrong, or -1. */
static inline int prop_run(const struct prop_case *c, struct world *w)
{
	int failed = -1;
	unsigned int i;

	memset(w->file, 0, sizeof(w->file));
	w->c = c;
	w->files = files_new(&(struct files_options){
		.variant = c->variant,
		.tasks = c->tasks,
		.limit = c->limit,
		.nr_open = c->nr_open,
	});
	if (!w->files) {
		wrong(w, "files_new", errno, 0);
		return 0;
	}
	for (i = 0; i < c->tasks; i++)
		files_attach(&w->tasks[i], w->files, i);
	oracle_init(&w->oracle, c->limit, c->nr_open,
		    c->variant->switches & SW_END_LATE);
	for (i = 0; i < c->count && failed < 0; i++)
		if (!run_op(w, &c->ops[i]))
			failed = (int)i;
	if (failed < 0 &&
	    (!same_table(w, w->files, &w->oracle) || !same_counts(w)))
		failed = (int)c->count - 1;
	for (i = 0; i < c->tasks; i++)
		files_detach(&w->tasks[i]);
	files_free(w->files);
	for (i = 0; i < CASE_FILES && failed < 0; i++)
		if (w->file[i].count) {
			wrong(w, "count left", w->file[i].count, 0);
			failed = (int)c->count - 1;
		}
	return failed;
}

/* Drop operations, ever smaller runs of them, while it still fails. */
static inline void prop_shrink(struct prop_case *c, struct world *w)
{
	static struct prop_case less;
	unsigned int size, at, i;
	bool smaller = true;

	c->count = (unsigned int)prop_run(c, w) + 1;
	while (smaller) {
		smaller = false;
		for (size = c->count / 2; size; size /= 2) {
			for (at = 0; at + size <= c->count;) {
				less = *c;
				memmove(&less.ops[at], &less.ops[at + size],
					(c->count - at - size) *
						sizeof(less.ops[0]));
				less.count -= size;
				if (prop_run(&less, w) < 0) {
					at += size;
					continue;
				}
				*c = less;
				smaller = true;
			}
		}
		for (i = 0; i < c->count; i++) {
			less = *c;
			less.ops[i].b /= 2;
			less.ops[i].flag = 0;
			less.ops[i].task = 0;
			if (memcmp(&less.ops[i], &c->ops[i],
				   sizeof(less.ops[i])) &&
			    prop_run(&less, w) >= 0) {
				*c = less;
				smaller = true;
			}
		}
	}
	prop_run(c, w);
}

static inline void prop_print(const struct prop_case *c, const struct world *w)
{
	fprintf(stderr,
		"%s, seed %" PRIu64 ", tasks %u, limit %u, nr_open %u:\n",
		c->variant->name, c->seed, c->tasks, c->limit, c->nr_open);
	for (unsigned int i = 0; i < c->count; i++)
		fprintf(stderr, "    %s a=%u b=%u flag=%u task=%u\n",
			op_names[c->ops[i].kind], c->ops[i].a, c->ops[i].b,
			c->ops[i].flag, c->ops[i].task);
	fprintf(stderr, "    -> %s\n", w->why);
}

/* One case; a failure is shrunk, and @quiet keeps it to itself. */
static inline bool prop_holds(const struct variant *v, uint64_t seed,
			      bool structure, bool quiet)
{
	static struct prop_case c;
	static struct world w;

	prop_generate(&c, v, seed);
	c.structure = structure;
	if (prop_run(&c, &w) < 0)
		return true;
	prop_shrink(&c, &w);
	if (!quiet)
		prop_print(&c, &w);
	return false;
}

static inline unsigned long prop_env(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

#endif
