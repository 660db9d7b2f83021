// SPDX-License-Identifier: GPL-2.0-only
#include <sched.h>

#include "clock.h"
#include "coordinator.h"
#include "testcase.h"

/*
 * A test case goes on for ever: it is started once, and stopped only while a
 * switch is flipped.
 */
static int turn_to(struct coordinator *c, unsigned int variant,
		   struct problem *p)
{
	bool stop = c->started && variant != c->children.shared->variant;
	int status = DONE;

	if (c->started && !stop)
		return DONE;
	if (stop) {
		children_post(&c->children, ORDER_HALT);
		status = children_wait(&c->children, clock_ns() + CHILDREN_HANG,
				       p);
	}
	if (!status)
		status = coordinator_set(c, variant, p);
	if (!status) {
		children_post(&c->children,
			      c->started ? ORDER_GO : ORDER_WINDOW);
		status = children_wait(&c->children, clock_ns() + CHILDREN_HANG,
				       p);
	}
	c->started = true;
	return status;
}

/* Whether this process runs where a task does: it displaces one, then. */
static bool on_a_task(const struct coordinator *c)
{
	int pu = sched_getcpu();

	for (unsigned int i = 0; i < c->run->tasks; i++)
		if (c->run->placement.pus[i] == pu)
			return true;
	return false;
}

/*
 * A window of a test case: its tasks' counts, read at both ends by this process
 * (testcase.h).  To read them it wakes, and where there is no idle PU that
 * costs a task some microseconds at each end, and one switch that is not
 * counted with those of the window.
 */
int measure_case(struct coordinator *c, unsigned int variant, uint64_t ns,
		 struct problem *p)
{
	uint64_t settle = ns / 20 > SETTLE_LEAST ? ns / 20 : SETTLE_LEAST;
	struct window *w = &c->window;
	unsigned int tasks = c->run->tasks;
	int status = turn_to(c, variant, p);

	for (w->redone = 0; !status; w->redone++) {
		uint64_t from = clock_ns() + settle, switches, sum = 0;

		status = children_sleep_until(&c->children, from, p);
		if (status)
			return status;
		switches = testcase_switches(c->children.slots, tasks);
		testcase_read(c->children.slots, tasks, &c->before);
		status = children_sleep_until(&c->children, c->before.ns + ns,
					      p);
		if (status)
			return status;
		if (on_a_task(c))
			switches++;
		testcase_read(c->children.slots, tasks, &c->after);
		w->variant = variant;
		w->injected = 0;
		w->switches = testcase_switches(c->children.slots, tasks);
		w->switches -= w->switches < switches ? w->switches : switches;
		w->skew_ns = c->before.skew > c->after.skew ? c->before.skew
							    : c->after.skew;
		w->from = c->before.ns;
		w->ns = c->after.ns - c->before.ns;
		for (unsigned int i = 0; i < tasks; i++) {
			w->ops[i] = c->after.ops[i] - c->before.ops[i];
			sum += w->ops[i];
		}
		w->rate = sum * 1e9 / w->ns;
		w->skewed = w->skew_ns * 100 > ns;
		if ((sum && !w->skewed) || w->redone == REDO_MOST)
			break;
	}
	if (status || w->rate > 0)
		return status;
	/* A case that is on its way out is told as that. */
	status = children_sleep_until(&c->children, clock_ns() + 2000 * MS, p);
	if (!status)
		return problem_set(
			p, COULD_NOT,
			"test case %s: nothing was counted in %u "
			"windows of %llu ms: it waits for ever, takes "
			"longer (--window-ms), or its loop keeps the "
			"count in a register",
			c->run->workload->name, REDO_MOST + 1,
			(unsigned long long)(ns / MS));
	return status;
}
