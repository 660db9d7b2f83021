// SPDX-License-Identifier: GPL-2.0-only
#include "window.h"

#include <errno.h>

#include "clock.h"
#include "run.h"
#include "shared.h"

#define BATCH_MAX (1u << 20)

uint64_t ops_at(uint64_t when, uint64_t t0, uint64_t n0, uint64_t t1,
		uint64_t n1)
{
	if (when <= t0)
		return n0;
	if (when >= t1)
		return n1;
	return n0 + ((n1 - n0) * (when - t0) + (t1 - t0) / 2) / (t1 - t0);
}

static void wait_for_start(struct slot *slot, uint64_t start)
{
	uint64_t spins = 0;

	for (; clock_ns() < start; spins++)
		cpu_relax();
	slot->spins = spins;
}

/*
 * Add a known cost: spin for sh->inject times what the operations took since
 * @since.  What was spun too long (the clock is read only so often) is owed by
 * the next call, up to @owed_most: a spin that lost its CPU is not made up for.
 * Returns when it ended.
 */
static uint64_t spin(struct task *t, const struct shared *sh, uint64_t since,
		     uint64_t now)
{
	const double owed_most = 1000; /* ns */
	uint64_t ended = now;

	t->owed += sh->inject * (double)(now - since);
	while ((double)(ended - now) < t->owed)
		ended = clock_ns();
	t->owed -= (double)(ended - now);
	if (t->owed < -owed_most)
		t->owed = -owed_most;
	t->slot->injected += ended - now;
	return ended;
}

/* An operation failed: in a user's own file maybe without a word. */
static void failed(struct task *t)
{
	if (!t->slot->error) {
		errno = EINVAL;
		task_fail(t, "operate() without task_fail()");
	}
}

/*
 * One window.  Operations are counted at looks at the clock, a batch apart;
 * those completed by a given moment lie between two looks.
 */
void window_run(struct task *t, const struct shared *sh)
{
	int (*operate)(struct task *, uint64_t) = t->run->workload->operate;
	uint64_t from = sh->from, until = sh->until;
	uint64_t batch = t->batch[sh->variant];
	uint64_t n = 0, at_from, previous, last;
	struct slot *slot = t->slot;

	slot->ops = slot->all = 0;
	slot->injected = 0;
	t->owed = 0;
	wait_for_start(slot, sh->start);
	last = slot->started = clock_ns();
	do {
		if (unlikely(operate(t, batch))) {
			failed(t);
			return;
		}
		n += batch;
		previous = last;
		last = clock_ns();
		if (unlikely(sh->inject > 0))
			last = spin(t, sh, previous, last);
	} while (last < from);
	at_from = ops_at(from, previous, n - batch, last, n);
	while (last < until) {
		if (unlikely(operate(t, batch))) {
			failed(t);
			return;
		}
		n += batch;
		previous = last;
		last = clock_ns();
		if (unlikely(sh->inject > 0))
			last = spin(t, sh, previous, last);
	}
	slot->finished = last;
	slot->ops = ops_at(until, previous, n - batch, last, n) - at_from;
	slot->all = n;
	if (from == until) /* too short to learn from */
		return;
	batch = n * sh->batch_ns / (last - slot->started + 1);
	/* A task that was kept waiting has learnt little of its own pace. */
	if (batch < t->batch[sh->variant] / 2)
		batch = t->batch[sh->variant] / 2;
	t->batch[sh->variant] = batch < 1	    ? 1
				: batch > BATCH_MAX ? BATCH_MAX
						    : batch;
}

void turns_run(struct task *t, const struct shared *sh)
{
	uint64_t n = t->run->workload->turns(t->options);
	struct slot *slot = t->slot;

	slot->ops = slot->all = 0;
	slot->injected = 0;
	t->owed = 0;
	wait_for_start(slot, sh->start);
	slot->started = clock_ns();
	if (t->run->workload->operate(t, n)) {
		failed(t);
		return;
	}
	slot->finished = clock_ns();
	if (unlikely(sh->inject > 0))
		slot->finished = spin(t, sh, slot->started, slot->finished);
	slot->ops = slot->all = n;
}
