// SPDX-License-Identifier: GPL-2.0-only
/*
 * burst: take B descriptors by dup, close them all; one operation is a burst.
 *
 * Kernel path: alloc_fd() B times from one free stretch, then B closes under
 * the same lock.  What differs is where the closes leave next_fd and the
 * bitmaps on the way: in order, next_fd drops once, to the first; reversed, at
 * every close; at random, in steps.
 * It does not show a search over taken descriptors: next_fd is exact while B
 * are taken.  With threads the bursts share a stretch, and it is not.
 * Shape: bursts a second fall as 1/B; reversed takes a write of next_fd more a
 * close, which is little.
 *   --size B
 *   --order same, reversed, random   how they are closed (one random order a
 *                                    task, drawn from the seed)
 */
#include <stdlib.h>

#include "../harness/fd.h"
#include "../harness/random.h"
#include "../harness/run.h"

enum { SIZE, ORDER };
enum { SAME, REVERSED, RANDOM };

struct burst {
	int *fds;
	unsigned int *order; /* the n-th to be closed */
};

static void finish(struct task *t)
{
	struct burst *b = t->data;

	free(b->fds);
	free(b->order);
	free(b);
}

static int prepare(struct task *t)
{
	unsigned int size = t->options[SIZE].number;
	uint64_t seed = t->run->seed + t->number;
	struct burst *b = calloc(1, sizeof(*b));

	t->data = b;
	if (!b)
		return task_fail(t, "calloc");
	b->fds = calloc(size, sizeof(*b->fds));
	b->order = calloc(size, sizeof(*b->order));
	if (!b->fds || !b->order)
		return task_fail(t, "calloc");
	if (t->options[ORDER].number == RANDOM)
		random_order(&seed, b->order, size);
	for (unsigned int i = 0; i < size; i++) {
		if (t->options[ORDER].number == SAME)
			b->order[i] = i;
		if (t->options[ORDER].number == REVERSED)
			b->order[i] = size - 1 - i;
	}
	return 0;
}

static int operate(struct task *t, uint64_t n)
{
	const struct burst *b = t->data;
	unsigned int size = t->options[SIZE].number;
	int source = t->source;

	while (n--) {
		for (unsigned int i = 0; i < size; i++) {
			b->fds[i] = fd_dup(t, source);
			if (unlikely(b->fds[i] < 0))
				return task_fail(t, "dup");
		}
		for (unsigned int i = 0; i < size; i++)
			if (unlikely(fd_close(t, b->fds[b->order[i]])))
				return task_fail(t, "close");
	}
	return 0;
}

static uint64_t descriptors(const struct option_value *options)
{
	return options[SIZE].number;
}

WORKLOAD(.name = "burst", .about = "take B by dup, close them all",
	 .options = {{.name = "size",
		      .fallback = "100",
		      .least = 1,
		      .most = 10000000,
		      .about = "B, descriptors in a burst"},
		     {.name = "order",
		      .choices = "same reversed random",
		      .fallback = "same",
		      .about = "in which they are closed"}},
	 .descriptors = descriptors, .prepare = prepare, .operate = operate,
	 .finish = finish);
