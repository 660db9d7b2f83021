// SPDX-License-Identifier: GPL-2.0-only
/*
 * random-churn: of W descriptors kept open, close a random one, open a new one.
 *
 * Kernel path: alloc_fd() and the close path, with the free descriptor at any
 * place among W: the close draws next_fd down to it, the next open finds it
 * there.  "Opened and closed frequently and randomly" was the load that the
 * series of 2024 was meant for.
 * It does not show a search over a long way: between the close and the open
 * next_fd names the free descriptor itself (burst and yuma leave it stale).
 * With threads another task may take it, and then it is stale.
 * Shape: as dup-close's; with W past the caches each close finds a cold word.
 *   --keep W           of each task
 *   --by open, dup     what opens the new one
 */
#include <stdlib.h>

#include "../harness/fd.h"
#include "../harness/random.h"
#include "../harness/run.h"

enum { KEEP, BY };
enum { BY_OPEN, BY_DUP };

/* What is kept in one table. */
struct kept {
	uint64_t seed;
	int *fds;
};

/* The descriptor, or -1 by way of task_fail(). */
static int take(struct task *t)
{
	bool by_dup = t->options[BY].number == BY_DUP;
	int fd = by_dup ? fd_dup(t, t->source) : fd_open(t, &t->own, O_RDWR);

	return likely(fd >= 0) ? fd : task_fail(t, by_dup ? "dup" : "open");
}

static int fill(struct task *t, struct kept *kept)
{
	uint64_t keep = t->options[KEEP].number;

	/* The same choices in every table. */
	kept->seed = t->run->seed + t->number;
	kept->fds = malloc(keep * sizeof(*kept->fds));
	if (!kept->fds)
		return task_fail(t, "malloc");
	for (uint64_t i = 0; i < keep; i++) {
		kept->fds[i] = take(t);
		if (kept->fds[i] < 0)
			return -1;
	}
	return 0;
}

static int prepare(struct task *t)
{
	struct kept *tables = calloc(VARIANTS_MAX, sizeof(*tables));

	t->data = tables;
	if (!tables)
		return task_fail(t, "calloc");
#ifdef FD_BACKEND_KERNEL
	return fd_make_file(t, t->own.path) ? -1 : fill(t, tables);
#else
	for (unsigned int v = 0; v < t->run->variants; v++) {
		t->files = &t->handles[v];
		if (fill(t, &tables[v]))
			return -1;
	}
	return 0;
#endif
}

static void finish(struct task *t)
{
	struct kept *tables = t->data;

	for (unsigned int v = 0; v < VARIANTS_MAX; v++) {
		if (!tables[v].fds)
			continue;
		if (t->handles)
			t->files = &t->handles[v];
		for (uint64_t i = 0; i < t->options[KEEP].number; i++)
			if (tables[v].fds[i] >= 0)
				fd_close(t, tables[v].fds[i]);
		free(tables[v].fds);
	}
	free(tables);
}

static int operate(struct task *t, uint64_t n)
{
	struct kept *kept = (struct kept *)t->data + task_table(t);
	uint64_t keep = t->options[KEEP].number;

	while (n--) {
		int *one = &kept->fds[random_next(&kept->seed) % keep];

		if (unlikely(fd_close(t, *one)))
			return task_fail(t, "close");
		*one = take(t);
		if (unlikely(*one < 0))
			return -1;
	}
	return 0;
}

static uint64_t descriptors(const struct option_value *options)
{
	return options[KEEP].number;
}

WORKLOAD(.name = "random-churn",
	 .about = "close a random one of W kept open, open a new one",
	 .options = {{.name = "keep",
		      .fallback = "256",
		      .least = 1,
		      .most = 10000000,
		      .about = "W, descriptors that a task keeps open"},
		     {.name = "by",
		      .choices = "open dup",
		      .fallback = "open",
		      .about = "the call that opens the new one"}},
	 .descriptors = descriptors, .prepare = prepare, .operate = operate,
	 .finish = finish);
