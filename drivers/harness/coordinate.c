// SPDX-License-Identifier: GPL-2.0-only
#include "coordinate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "coordinator.h"
#include "memory.h"
#include "random.h"
#include "tasks.h"
#include "workdir.h"

#define LEAD_FIRST (50 * 1000ull) /* ns from order to start: a wake-up */
#define LEAD_A_TASK 3000ull	  /* ns more for each task to wake */
#define LEAD_MOST (5 * MS + 20000ull * c->run->tasks)
#define WARM_UP_MOST 8
#define STEADY 0.05 /* warm when a round is within this of the one before */

static int share_memory(struct coordinator *c, struct problem *p)
{
	const struct run *run = c->run;
	size_t head = (sizeof(struct shared) + SLOT_SIZE - 1) & -SLOT_SIZE;
	unsigned char *base;

	c->bytes = head + (size_t)run->tasks * SLOT_SIZE;
	base = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return problem_set(p, COULD_NOT,
				   "%zu bytes to share with the tasks: %s",
				   c->bytes, strerror(errno));
	c->children.shared = (struct shared *)base;
	c->children.slots = base + head;
	return DONE;
}

/* Each task's slot on its own node; one line where that cannot be. */
static void bind_memory(struct coordinator *c)
{
	struct run *run = c->run;
	const char *why = memory_unavailable();
	int error = 0;

	if (why) {
		snprintf(run->memory, sizeof(run->memory), "%s", why);
		return;
	}
	if (run->placement.pus[0] == PLACE_NONE) {
		snprintf(run->memory, sizeof(run->memory),
			 "tasks are not placed");
		return;
	}
	for (unsigned int i = 0; !error && i < run->tasks; i++)
		error = memory_bind(slot_of(c->children.slots, i), SLOT_SIZE,
				    run->placement.nodes[i]);
	if (error)
		snprintf(run->memory, sizeof(run->memory), "mbind: %s",
			 strerror(error));
}

static int start_tasks(struct coordinator *c, struct problem *p)
{
	const struct run *run = c->run;
	int status = children_fork(&c->children, p);

	if (status)
		return status;
	/* After the last fork: a child's table is sized to what is open. */
	if (run->workload->testcase) /* counted while tasks stand still */
		counters_none(&c->counters, &run->counters,
			      "the tasks of a test case never stand still");
	else
		counters_open(&c->counters, &run->counters, c->children.pids,
			      run->tasks);
	return children_go_on(&c->children, p);
}

static int end_tasks(struct coordinator *c, struct problem *p)
{
	int status = children_quit(&c->children, p);

	counters_close(&c->counters);
	return status;
}

static int failed_call(struct coordinator *c, struct problem *p)
{
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		const struct slot *slot = slot_of(c->children.slots, i);

		if (!slot->error)
			continue;
		event_error(c->run, slot->call, slot->error, i,
			    c->run->variant_names[c->children.shared->variant]);
		break;
	}
	/* It has been said. */
	return problem_set(p, COULD_NOT, "%s", "");
}

/* The slots' reports as a window; @from and @until bound it. */
static void collect(struct coordinator *c, uint64_t from, uint64_t until)
{
	struct window *w = &c->window;
	uint64_t sum = 0, latest = 0;

	w->switches = 0;
	w->injected = 0;
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		const struct slot *slot = slot_of(c->children.slots, i);

		w->ops[i] = slot->ops;
		w->switches += slot->switches;
		w->injected += slot->injected;
		sum += slot->ops;
		if (slot->started > latest)
			latest = slot->started;
	}
	w->variant = c->children.shared->variant;
	w->ns = until - from;
	w->skew_ns = latest - c->children.shared->start;
	w->rate = sum * 1e9 / w->ns;
	w->from = from;
}

int coordinator_set(struct coordinator *c, unsigned int variant,
		    struct problem *p)
{
	c->children.shared->variant = variant;
	c->children.shared->inject =
		c->run->clone[variant] ? c->run->inject : 0;
	return kswitch_set(&c->kswitch, c->run->variant_names[variant], p);
}

/* By all tasks, in the order just carried out. */
static struct counted counted(const struct coordinator *c)
{
	struct counted sum = {0};

	for (unsigned int i = 0; i < c->run->tasks; i++) {
		sum.ops += slot_of(c->children.slots, i)->all;
		sum.spins += slot_of(c->children.slots, i)->spins;
	}
	return sum;
}

/* Post an order, count while it is carried out, and see whether it failed. */
static int carry_out(struct coordinator *c, enum order order, uint64_t deadline,
		     struct problem *p)
{
	int status;

	counters_start(&c->counters);
	children_post(&c->children, order);
	status = children_wait(&c->children, deadline, p);
	if (status)
		return status;
	counters_stop(&c->counters, counted(c));
	return atomic_load(&c->children.shared->failed) ? failed_call(c, p)
							: DONE;
}

/* @settle ns unrecorded, then @ns of a window; without either: one batch. */
static int order_window(struct coordinator *c, uint64_t settle, uint64_t ns,
			struct problem *p)
{
	struct shared *sh = c->children.shared;

	sh->start = clock_ns() + c->lead;
	sh->from = sh->start + settle;
	sh->until = sh->from + ns;
	return carry_out(c, ORDER_WINDOW, sh->until + CHILDREN_HANG, p);
}

/*
 * One window of @variant into c->window, done again while its start is not
 * common to all, or none did anything (a lock's holder lost its CPU for all of
 * it).  Tasks that outnumber the PUs cannot start together; on a host too busy
 * for it (a guest whose PUs share the host's CPUs) the last try is kept, and
 * marked, and the next window is tried half as often.
 */
static int measure_window(struct coordinator *c, unsigned int variant,
			  uint64_t ns, struct problem *p)
{
	struct shared *sh = c->children.shared;
	uint64_t settle = ns / 20 > SETTLE_LEAST ? ns / 20 : SETTLE_LEAST;

	sh->batch_ns = ns / 1000 < 1000	   ? 1000
		       : ns / 1000 > 20000 ? 20000
					   : ns / 1000;
	for (unsigned int redone = 0;; redone++) {
		int status = coordinator_set(c, variant, p);

		if (!status && c->counters.there) {
			status = order_window(c, 0, 0, p);
			counters_empty(&c->counters);
		}
		if (!status)
			status = order_window(c, settle, ns, p);
		if (status)
			return status;
		collect(c, sh->from, sh->until);
		c->window.redone = redone;
		c->window.skewed = c->window.skew_ns * 100 > ns;
		if (c->window.rate > 0 &&
		    (!c->window.skewed || c->run->oversubscribe)) {
			c->redo_skewed = REDO_MOST;
			return DONE;
		}
		if (redone >=
		    (c->window.rate > 0 ? c->redo_skewed : REDO_MOST)) {
			c->redo_skewed /= 2;
			return DONE;
		}
		if (c->lead * 2 < LEAD_MOST)
			c->lead *= 2;
	}
}

/* Fixed work: a fresh process for each task does its turns. */
static int measure_turns(struct coordinator *c, unsigned int variant,
			 struct problem *p)
{
	struct shared *sh = c->children.shared;
	uint64_t end = 0;
	int status;

	status = start_tasks(c, p);
	if (status)
		return status;
	status = coordinator_set(c, variant, p);
	if (status)
		return status;
	/* One alone has nobody to wait for. */
	sh->start = clock_ns() + (c->run->tasks > 1 ? c->lead : 0);
	status = carry_out(c, ORDER_TURNS, 0, p);
	if (status)
		return status;
	for (unsigned int i = 0; i < c->run->tasks; i++)
		if (slot_of(c->children.slots, i)->finished > end)
			end = slot_of(c->children.slots, i)->finished;
	collect(c,
		c->run->tasks > 1 ? sh->start
				  : slot_of(c->children.slots, 0)->started,
		end);
	c->window.redone = 0;
	c->window.skewed = false;
	return end_tasks(c, p);
}

static int measure(struct coordinator *c, unsigned int variant, uint64_t ns,
		   struct problem *p)
{
	if (c->run->workload->flags & WORKLOAD_FIXED)
		return measure_turns(c, variant, p);
	if (c->run->workload->testcase)
		return measure_case(c, variant, ns, p);
	return measure_window(c, variant, ns, p);
}

/* Rounds of short windows, unrecorded, until no variant's rate moves. */
static int warm_up(struct coordinator *c, uint64_t ns, struct problem *p)
{
	double before[VARIANTS_MAX] = {0};
	bool fixed = c->run->workload->flags & WORKLOAD_FIXED;
	bool steady = false;

	for (unsigned int round = 0; !steady && round < WARM_UP_MOST; round++) {
		steady = true;
		for (unsigned int v = 0; v < c->run->variants; v++) {
			int status = measure(c, v, ns, p);
			double rate = c->window.rate;

			if (status)
				return status;
			if (before[v] == 0 || rate > before[v] * (1 + STEADY) ||
			    rate < before[v] * (1 - STEADY))
				steady = false;
			before[v] = rate;
			if (fixed)
				return DONE;
		}
	}
	return DONE;
}

static int block(struct coordinator *c, unsigned int number, uint64_t ns,
		 struct problem *p)
{
	unsigned int order[VARIANTS_MAX];

	random_order(&c->seed, order, c->run->variants);
	for (unsigned int i = 0; i < c->run->variants; i++) {
		/* random_order() has filled it.
		 * NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
		int status = measure(c, order[i], ns, p);

		if (status)
			return status;
		c->window.block = number;
		c->recorded_ns += c->window.ns;
		event_window(c->run, &c->window, &c->counters, &c->tally);
		if (stdout_failed())
			return stdout_close(p);
	}
	return DONE;
}

/* About a second in all, at least five blocks. */
static unsigned int blocks_for(const struct run *run, uint64_t ns)
{
	uint64_t blocks = 1000 * MS / ((ns + 1) * run->variants);

	if (run->blocks)
		return run->blocks;
	return blocks < 5 ? 5 : blocks > 1000 ? 1000 : blocks;
}

static int run_cell(struct coordinator *c, uint64_t begun, struct problem *p)
{
	struct run *run = c->run;
	bool fixed = run->workload->flags & WORKLOAD_FIXED;
	uint64_t ns = run->window_ms * MS;
	unsigned int blocks;
	int status = start_tasks(c, p);

	if (status)
		return status;
	if (!*run->memory && c->children.shared->memory_error)
		snprintf(run->memory, sizeof(run->memory), "set_mempolicy: %s",
			 strerror(c->children.shared->memory_error));
	event_setup(run, c->children.shared, &c->counters, clock_ns() - begun);
	if (fixed)
		status = end_tasks(c, p);
	if (!status)
		status = warm_up(c, ns / 2, p);
	if (status)
		return status;
	blocks = blocks_for(run, fixed ? c->window.ns : ns);
	if (tally_init(&c->tally, run, blocks))
		return problem_set(p, COULD_NOT, "no memory for %u blocks",
				   blocks);
	for (unsigned int b = 0; !status && b < blocks; b++)
		status = block(c, b, ns, p);
	if (!status && !fixed)
		status = end_tasks(c, p);
	return status;
}

static void release(struct coordinator *c)
{
	if (c->children.shared)
		munmap(c->children.shared, c->bytes);
	free(c->children.pids);
	free(c->window.ops);
	free(c->before.ops);
	free(c->after.ops);
}

int coordinate(struct run *run, uint64_t begun, struct problem *p)
{
	struct coordinator c = {
		.run = run,
		.children.run = run,
		.lead = LEAD_FIRST + LEAD_A_TASK * run->tasks,
		.seed = run->seed,
		.redo_skewed = REDO_MOST,
		.kswitch = {.knob = -1, .life = -1},
	};
	char *directory = NULL;
	int status;

	c.children.pids = calloc(run->tasks, sizeof(*c.children.pids));
	c.window.ops = calloc(run->tasks, sizeof(*c.window.ops));
	c.before.ops = calloc(run->tasks, sizeof(*c.before.ops));
	c.after.ops = calloc(run->tasks, sizeof(*c.after.ops));
	if (!c.children.pids || !c.window.ops || !c.before.ops || !c.after.ops)
		status = problem_set(p, COULD_NOT, "no memory for %u tasks",
				     run->tasks);
	else
		status = share_memory(&c, p);
	if (status) {
		release(&c);
		return status;
	}
	children_catch_signals();
	/* What was inherited is not ours, and would enlarge every child's
	 * table: fork sizes it to what is open. */
	close_range(3, ~0u, 0);
	bind_memory(&c);
	if (run->backend == BACKEND_KERNEL && run->workload->prepare)
		directory = workdir_make(run->tmpdir, &status, p);
	run->directory = directory ? directory : run->tmpdir;
	if (!status && run->backend == BACKEND_KERNEL)
		status = kswitch_open(&c.kswitch, p);
	if (!status)
		status = run_cell(&c, begun, p);
	children_kill(&c.children);
	counters_close(&c.counters);
	kswitch_close(&c.kswitch);
	workdir_remove(directory);
	run->rate = tally_rate(&c.tally);
	if (c.tally.task_ops || run->json)
		event_end(run, &c.tally,
			  status == DONE	  ? "done"
			  : status == INTERRUPTED ? "interrupted"
						  : "failed",
			  c.recorded_ns, clock_ns() - begun);
	tally_free(&c.tally);
	release(&c);
	return status;
}
