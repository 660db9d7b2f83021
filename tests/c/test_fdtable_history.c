// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histories of two and of three tasks on one table, each call with the moments
 * of its start and its end, checked linearizable: is there one order of the
 * calls, keeping those apart that did not overlap, in which each gives the
 * lowest free descriptor?  By trying them all. FDSCALE_HISTORIES  histories of
 * each variant (25)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "property.h"

#define TASKS 3 /* at most */
#define CALLS 4 /* of each task */
#define SLOTS 4096

enum call_kind { CALL_OPEN, CALL_DUPFD, CALL_CLOSE };

struct call {
	enum call_kind kind;
	unsigned int arg; /* close: the descriptor; dupfd: start */
	int result;
	unsigned long begin, end;
};

/* What a call gives when @taken (of 0..63) is open; it changes @taken. */
static int apply(const struct call *c, uint64_t *taken)
{
	unsigned int fd = c->kind == CALL_DUPFD ? c->arg : 0;

	if (c->kind == CALL_CLOSE) {
		if (!(*taken >> c->arg & 1))
			return -EBADF;
		*taken &= ~(1ull << c->arg);
		return 0;
	}
	while (*taken >> fd & 1)
		fd++;
	*taken |= 1ull << fd;
	return (int)fd;
}

/* @left: the calls not yet in order.  As deep as there are calls: a dozen.
 * NOLINTNEXTLINE(misc-no-recursion) */
static bool linearizable(const struct call *calls, unsigned int count,
			 unsigned int left, uint64_t taken)
{
	unsigned long first_end = ~0ul;
	unsigned int i;
	uint64_t after;

	if (!left)
		return true;
	for (i = 0; i < count; i++)
		if (left >> i & 1 && calls[i].end < first_end)
			first_end = calls[i].end;
	for (i = 0; i < count; i++) {
		if (!(left >> i & 1) || calls[i].begin > first_end)
			continue;
		after = taken;
		if (apply(&calls[i], &after) == calls[i].result &&
		    linearizable(calls, count, left & ~(1u << i), after))
			return true;
	}
	return false;
}

struct run {
	struct files *files;
	atomic_ulong clock;
	atomic_uint arrived; /* a barrier: grows by `tasks` for each */
	struct call calls[TASKS * CALLS];
	unsigned int tasks, histories, source;
	unsigned int bad, overlapping;
};

struct actor {
	struct run *run;
	unsigned int number;
};

static void barrier(struct run *run, unsigned int *round)
{
	unsigned int turns = 0;

	*round += run->tasks;
	atomic_fetch_add(&run->arrived, 1);
	while (atomic_load(&run->arrived) < *round)
		spin(&turns);
}

/* @away: leave the PU to others after the start, or before the end. */
static void make_call(struct files_task *t, struct run *run, struct call *c,
		      unsigned int away)
{
	c->begin = atomic_fetch_add(&run->clock, 1);
	if (away == 1)
		sched_yield();
	if (c->kind == CALL_CLOSE)
		c->result = files_close(t, c->arg);
	else if (c->kind == CALL_DUPFD)
		c->result = files_dupfd(t, run->source, c->arg, 0);
	else
		c->result = files_dup(t, run->source);
	if (away == 2)
		sched_yield();
	c->end = atomic_fetch_add(&run->clock, 1);
}

static void judge(struct run *run)
{
	const unsigned int count = run->tasks * CALLS;
	unsigned int i, j;
	bool over = false;

	for (i = 0; i < count; i++)
		for (j = 0; j < count; j++)
			over |= i / CALLS != j / CALLS &&
				run->calls[i].begin < run->calls[j].end &&
				run->calls[j].begin < run->calls[i].end;
	run->overlapping += over;
	if (!linearizable(run->calls, count, (1u << count) - 1, 0))
		run->bad++;
}

static void *act(void *arg)
{
	struct actor *a = arg;
	struct run *run = a->run;
	struct call *mine = &run->calls[(size_t)a->number * CALLS];
	uint64_t r = a->number + 99;
	unsigned int h, i, j, round = 0, open;
	unsigned int held[CALLS];
	struct files_task t;

	files_attach(&t, run->files, a->number);
	for (h = 0; h < run->histories; h++) {
		open = 0;
		barrier(run, &round);
		for (i = 0; i < CALLS; i++) {
			mine[i].kind = prop_random(&r) % 3;
			mine[i].arg = prop_random(&r) % 5;
			if (mine[i].kind == CALL_CLOSE) {
				if (!open)
					mine[i].kind = CALL_OPEN;
				else
					mine[i].arg = held[--open];
			}
			make_call(&t, run, &mine[i], prop_random(&r) % 8);
			if (mine[i].kind != CALL_CLOSE)
				held[open++] = (unsigned int)mine[i].result;
		}
		barrier(run, &round);
		if (!a->number)
			judge(run);
		for (j = 0; j < open; j++)
			files_close(&t, held[j]);
	}
	barrier(run, &round);
	files_detach(&t);
	return NULL;
}

static void record(const char *spec, enum files_lock lock, unsigned int tasks,
		   struct run *run)
{
	static struct model_file file;
	struct files_options opt = {
		.variant = variant_find(spec, lock, false, NULL),
		.tasks = tasks,
		.limit = SLOTS,
		.nr_open = SLOTS,
	};
	struct actor actors[TASKS];
	pthread_t threads[TASKS];
	struct files_task t;
	unsigned int i;

	memset(run, 0, sizeof(*run));
	run->tasks = tasks;
	run->histories = prop_env("FDSCALE_HISTORIES", 25);
	run->files = files_new(&opt);
	run->source = SLOTS - 1;
	assert_non_null(run->files);
	files_attach(&t, run->files, 0);
	assert_int_equal(files_hold(&t, run->source, &file), 0);
	files_detach(&t);
	for (i = 0; i < tasks; i++) {
		actors[i] = (struct actor){run, i};
		assert_int_equal(
			pthread_create(&threads[i], NULL, act, &actors[i]), 0);
	}
	for (i = 0; i < tasks; i++)
		pthread_join(threads[i], NULL);
	files_free(run->files);
}

static void test_conforming(void **state)
{
	const struct variant_word *words[] = {variant_searches,
					      variant_presets};
	const struct variant_word *w;
	unsigned int i, overlapping = 0;
	static struct run run;

	(void)state;
	for (i = 0; i < 4; i++) {
		for (w = words[i / 2]; w->name; w++) {
			enum files_lock lock =
				i % 2 ? FILES_LOCK_TAS : FILES_LOCK_QUEUED;

			if (variant_nonconforming(
				    variant_find(w->name, lock, false, NULL)))
				continue;
			record(w->name, lock, 2, &run);
			assert_int_equal(run.bad, 0);
			overlapping += run.overlapping;
			record(w->name, lock, 3, &run);
			assert_int_equal(run.bad, 0);
			overlapping += run.overlapping;
		}
	}
	/* Calls one after the other would have shown nothing. */
	assert_true(overlapping > 100);
}

static void test_any_fd(void **state)
{
	static struct run run;

	(void)state;
	record("any-fd", FILES_LOCK_QUEUED, 2, &run);
	assert_true(run.bad > 0);
	record("any-fd-split", FILES_LOCK_QUEUED, 2, &run);
	assert_true(run.bad > 0);
}

/* The judge itself, by hand. */
static void test_judge(void **state)
{
	/* Both open at once: either may be first. */
	struct call either[] = {{CALL_OPEN, 0, 1, 0, 2},
				{CALL_OPEN, 0, 0, 1, 3}};
	/* The one that got 1 had ended before the other began. */
	struct call apart[] = {{CALL_OPEN, 0, 1, 0, 1},
			       {CALL_OPEN, 0, 0, 2, 3}};
	/* 0 was closed meanwhile: the open may have seen it or not. */
	struct call closing[] = {{CALL_OPEN, 0, 0, 0, 1},
				 {CALL_CLOSE, 0, 0, 2, 5},
				 {CALL_OPEN, 0, 1, 3, 4}};
	struct call twice[] = {{CALL_OPEN, 0, 0, 0, 3},
			       {CALL_OPEN, 0, 0, 1, 2}};

	(void)state;
	assert_true(linearizable(either, 2, 3, 0));
	assert_false(linearizable(apart, 2, 3, 0));
	assert_true(linearizable(closing, 3, 7, 0));
	closing[2].result = 0;
	assert_true(linearizable(closing, 3, 7, 0));
	closing[2].result = 2;
	assert_false(linearizable(closing, 3, 7, 0));
	assert_false(linearizable(twice, 2, 3, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_conforming),
		cmocka_unit_test(test_any_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
