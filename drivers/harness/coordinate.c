// SPDX-License-Identifier: GPL-2.0-only
#include "coordinate.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "event.h"
#include "kswitch.h"
#include "memory.h"
#include "random.h"
#include "tasks.h"
#include "testcase.h"
#include "workdir.h"

#define MS 1000000ull
#define LEAD_FIRST (50 * 1000ull) /* ns from order to start: a wake-up */
#define LEAD_A_TASK 3000ull	  /* ns more for each task to wake */
#define LEAD_MOST (5 * MS + 20000ull * c->run->tasks)
#define SETTLE_LEAST (100 * 1000ull) /* ns unrecorded after a switch */
#define REDO_MOST 8
#define WARM_UP_MOST 8
#define STEADY 0.05 /* warm when a round is within this of the one before */
#define HANG (30ull * 1000 * MS)

struct coordinator {
	struct run *run;
	struct shared *shared;
	unsigned char *slots;
	size_t bytes;
	pid_t *children;
	bool quitting;
	uint64_t lead;
	uint64_t seed;
	uint64_t recorded_ns;
	struct tally tally;
	struct window window;
	struct counters counters;
	struct kswitch kswitch;	      /* the kernel's, where it has one */
	struct reading before, after; /* of a test case's counts */
	bool started;		      /* its tasks are at it */
};

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	stopped = signal;
}

/* Only so that a futex wait is cut short when a child ends. */
static void on_child(int signal)
{
	(void)signal;
}

static void catch_signals(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction child = {.sa_handler = on_child,
				  .sa_flags = SA_NOCLDSTOP};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
}

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
	c->shared = (struct shared *)base;
	c->slots = base + head;
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
		error = memory_bind(slot_of(c->slots, i), SLOT_SIZE,
				    run->placement.nodes[i]);
	if (error)
		snprintf(run->memory, sizeof(run->memory), "mbind: %s",
			 strerror(error));
}

/* testcase_cleanup() is run there, if it can be. */
static void ask_to_end(struct coordinator *c)
{
	for (unsigned int i = 0; c->children[0] > 0 && i < 500; i++) {
		struct timespec ten_ms = {.tv_nsec = 10 * MS};

		if (!i)
			kill(c->children[0], SIGTERM);
		if (waitpid(c->children[0], NULL, WNOHANG))
			c->children[0] = 0;
		else
			nanosleep(&ten_ms, NULL);
	}
}

static void kill_children(struct coordinator *c)
{
	if (c->run->workload->testcase)
		ask_to_end(c);
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		if (c->children[i] <= 0)
			continue;
		kill(c->children[i], SIGKILL);
		while (waitpid(c->children[i], NULL, 0) < 0 && errno == EINTR)
			;
		c->children[i] = 0;
	}
}

/* A child that ended by itself, though told nothing of the kind. */
static int child_ended(struct coordinator *c, int how, struct problem *p)
{
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		const struct slot *slot = slot_of(c->slots, i);

		if (slot->status)
			return problem_set(p, slot->status, "%s",
					   slot->problem.text);
	}
	if (c->run->workload->testcase)
		return testcase_death(c->run, "testcase_prepare()", how, p);
	if (WIFSIGNALED(how))
		return problem_set(
			p, COULD_NOT, "a task was killed by signal %d (%s)%s",
			WTERMSIG(how), strsignal(WTERMSIG(how)),
			WTERMSIG(how) == SIGKILL ? ": out of memory? see dmesg"
						 : "");
	return problem_set(p, COULD_NOT, "a task ended with status %d",
			   WEXITSTATUS(how));
}

static int reap(struct coordinator *c, struct problem *p)
{
	for (;;) {
		int how;
		pid_t pid = waitpid(-1, &how, WNOHANG);

		if (pid <= 0)
			return DONE;
		for (unsigned int i = 0; i < c->run->tasks; i++)
			if (c->children[i] == pid)
				c->children[i] = 0;
		if (c->quitting && WIFEXITED(how) && !WEXITSTATUS(how))
			continue;
		return child_ended(c, how, p);
	}
}

/* Until all tasks have carried out the order; 0 ns: however long it takes. */
static int wait_done(struct coordinator *c, uint64_t deadline,
		     struct problem *p)
{
	struct shared *sh = c->shared;

	for (;;) {
		unsigned int done = atomic_load(&sh->done);
		int status;

		if (done == c->run->tasks)
			return DONE;
		if (stopped)
			return problem_set(p, INTERRUPTED, "interrupted");
		status = reap(c, p);
		if (status)
			return status;
		if (deadline && clock_ns() > deadline)
			return problem_set(p, COULD_NOT,
					   "%u of %u tasks did not come back",
					   c->run->tasks - done, c->run->tasks);
		/* A child's end may come just before the wait: look again. */
		futex_wait(&sh->done, done, 100 * MS);
	}
}

static void post(struct coordinator *c, enum order order)
{
	struct shared *sh = c->shared;

	sh->order = order;
	atomic_store(&sh->done, 0);
	atomic_fetch_add(&sh->sequence, 1);
	futex_wake_all(&sh->sequence);
}

/* Fork what makes up the run, and wait until every task is ready. */
static int start_tasks(struct coordinator *c, struct problem *p)
{
	struct run *run = c->run;
	unsigned int each = run->mode == MODE_THREADS ? run->tasks : 1;
	pid_t self = getpid();

	if (run->workload->testcase)
		each = run->tasks; /* one child, which forks them */
	atomic_store(&c->shared->done, 0);
	atomic_store(&c->shared->counted, 0);
	fflush(stdout);
	for (unsigned int first = 0; first < run->tasks; first += each) {
		pid_t pid = fork();

		if (pid < 0)
			return tasks_fork_failed(first, p);
		if (!pid && run->workload->testcase)
			testcase_main(run, c->shared, c->slots, self);
		if (!pid)
			tasks_main(run, c->shared, c->slots, first, each, self);
		c->children[first] = pid;
	}
	/* After the last fork: a child's table is sized to what is open. */
	if (run->workload->testcase) /* counted while tasks stand still */
		counters_none(&c->counters, &run->counters,
			      "the tasks of a test case never stand still");
	else
		counters_open(&c->counters, &run->counters, c->children,
			      run->tasks);
	atomic_store(&c->shared->counted, 1);
	futex_wake_all(&c->shared->counted);
	return wait_done(c, 0, p);
}

static int end_tasks(struct coordinator *c, struct problem *p)
{
	int status;

	c->quitting = true;
	post(c, ORDER_QUIT);
	status = wait_done(c, clock_ns() + HANG, p);
	c->quitting = false;
	counters_close(&c->counters);
	for (unsigned int i = 0; !status && i < c->run->tasks; i++) {
		int how = 0;

		if (c->children[i] <= 0)
			continue;
		while (waitpid(c->children[i], &how, 0) < 0 && errno == EINTR)
			;
		c->children[i] = 0;
		if (!WIFEXITED(how) || WEXITSTATUS(how))
			status = child_ended(c, how, p);
	}
	return status;
}

static int failed_call(struct coordinator *c, struct problem *p)
{
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		const struct slot *slot = slot_of(c->slots, i);

		if (!slot->error)
			continue;
		event_error(c->run, slot->call, slot->error, i,
			    c->run->variant_names[c->shared->variant]);
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
		const struct slot *slot = slot_of(c->slots, i);

		w->ops[i] = slot->ops;
		w->switches += slot->switches;
		w->injected += slot->injected;
		sum += slot->ops;
		if (slot->started > latest)
			latest = slot->started;
	}
	w->variant = c->shared->variant;
	w->ns = until - from;
	w->skew_ns = latest - c->shared->start;
	w->rate = sum * 1e9 / w->ns;
	w->from = from;
}

static int set_variant(struct coordinator *c, unsigned int variant,
		       struct problem *p)
{
	c->shared->variant = variant;
	c->shared->inject = c->run->clone[variant] ? c->run->inject : 0;
	return kswitch_set(&c->kswitch, c->run->variant_names[variant], p);
}

/* By all tasks, in the order just carried out. */
static struct counted counted(const struct coordinator *c)
{
	struct counted sum = {0};

	for (unsigned int i = 0; i < c->run->tasks; i++) {
		sum.ops += slot_of(c->slots, i)->all;
		sum.spins += slot_of(c->slots, i)->spins;
	}
	return sum;
}

/* Post an order, count while it is carried out, and see whether it failed. */
static int carry_out(struct coordinator *c, enum order order, uint64_t deadline,
		     struct problem *p)
{
	int status;

	counters_start(&c->counters);
	post(c, order);
	status = wait_done(c, deadline, p);
	if (status)
		return status;
	counters_stop(&c->counters, counted(c));
	return atomic_load(&c->shared->failed) ? failed_call(c, p) : DONE;
}

/* @settle ns unrecorded, then @ns of a window; without either: one batch. */
static int order_window(struct coordinator *c, uint64_t settle, uint64_t ns,
			struct problem *p)
{
	struct shared *sh = c->shared;

	sh->start = clock_ns() + c->lead;
	sh->from = sh->start + settle;
	sh->until = sh->from + ns;
	return carry_out(c, ORDER_WINDOW, sh->until + HANG, p);
}

/*
 * One window of @variant into c->window, done again while its start is not
 * common to all, or none did anything (a lock's holder lost its CPU for all of
 * it).  Tasks that outnumber the PUs cannot start together; on a host too busy
 * for it the last try is kept, and marked.
 */
static int measure_window(struct coordinator *c, unsigned int variant,
			  uint64_t ns, struct problem *p)
{
	struct shared *sh = c->shared;
	uint64_t settle = ns / 20 > SETTLE_LEAST ? ns / 20 : SETTLE_LEAST;

	sh->batch_ns = ns / 1000 < 1000	   ? 1000
		       : ns / 1000 > 20000 ? 20000
					   : ns / 1000;
	for (unsigned int redone = 0;; redone++) {
		int status = set_variant(c, variant, p);

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
		if ((c->window.rate > 0 &&
		     (!c->window.skewed || c->run->oversubscribe)) ||
		    redone == REDO_MOST)
			return DONE;
		if (c->lead * 2 < LEAD_MOST)
			c->lead *= 2;
	}
}

static int sleep_until(struct coordinator *c, uint64_t ns, struct problem *p)
{
	struct timespec ts = {ns / 1000000000, ns % 1000000000};

	do {
		int status = reap(c, p);

		if (status)
			return status;
		if (stopped)
			return problem_set(p, INTERRUPTED, "interrupted");
	} while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL));
	return DONE;
}

/*
 * A test case goes on for ever: it is started once, and stopped only while a
 * switch is flipped.
 */
static int turn_to(struct coordinator *c, unsigned int variant,
		   struct problem *p)
{
	bool stop = c->started && variant != c->shared->variant;
	int status = DONE;

	if (c->started && !stop)
		return DONE;
	if (stop) {
		post(c, ORDER_HALT);
		status = wait_done(c, clock_ns() + HANG, p);
	}
	if (!status)
		status = set_variant(c, variant, p);
	if (!status) {
		post(c, c->started ? ORDER_GO : ORDER_WINDOW);
		status = wait_done(c, clock_ns() + HANG, p);
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
static int measure_case(struct coordinator *c, unsigned int variant,
			uint64_t ns, struct problem *p)
{
	uint64_t settle = ns / 20 > SETTLE_LEAST ? ns / 20 : SETTLE_LEAST;
	struct window *w = &c->window;
	unsigned int tasks = c->run->tasks;
	int status = turn_to(c, variant, p);

	for (w->redone = 0; !status; w->redone++) {
		uint64_t from = clock_ns() + settle, switches, sum = 0;

		status = sleep_until(c, from, p);
		if (status)
			return status;
		switches = testcase_switches(c->slots, tasks);
		testcase_read(c->slots, tasks, &c->before);
		status = sleep_until(c, c->before.ns + ns, p);
		if (status)
			return status;
		if (on_a_task(c))
			switches++;
		testcase_read(c->slots, tasks, &c->after);
		w->variant = variant;
		w->injected = 0;
		w->switches = testcase_switches(c->slots, tasks);
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
	status = sleep_until(c, clock_ns() + 2000 * MS, p);
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

/* Fixed work: a fresh process for each task does its turns. */
static int measure_turns(struct coordinator *c, unsigned int variant,
			 struct problem *p)
{
	struct shared *sh = c->shared;
	uint64_t end = 0;
	int status;

	status = start_tasks(c, p);
	if (status)
		return status;
	status = set_variant(c, variant, p);
	if (status)
		return status;
	/* One alone has nobody to wait for. */
	sh->start = clock_ns() + (c->run->tasks > 1 ? c->lead : 0);
	status = carry_out(c, ORDER_TURNS, 0, p);
	if (status)
		return status;
	for (unsigned int i = 0; i < c->run->tasks; i++)
		if (slot_of(c->slots, i)->finished > end)
			end = slot_of(c->slots, i)->finished;
	collect(c,
		c->run->tasks > 1 ? sh->start : slot_of(c->slots, 0)->started,
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
	if (!*run->memory && c->shared->memory_error)
		snprintf(run->memory, sizeof(run->memory), "set_mempolicy: %s",
			 strerror(c->shared->memory_error));
	event_setup(run, c->shared, &c->counters, clock_ns() - begun);
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

int coordinate(struct run *run, uint64_t begun, struct problem *p)
{
	struct coordinator c = {
		.run = run,
		.lead = LEAD_FIRST + LEAD_A_TASK * run->tasks,
		.seed = run->seed,
		.kswitch = {.knob = -1, .life = -1},
	};
	char *directory = NULL;
	int status;

	c.children = calloc(run->tasks, sizeof(*c.children));
	c.window.ops = calloc(run->tasks, sizeof(*c.window.ops));
	c.before.ops = calloc(run->tasks, sizeof(*c.before.ops));
	c.after.ops = calloc(run->tasks, sizeof(*c.after.ops));
	if (!c.children || !c.window.ops || !c.before.ops || !c.after.ops)
		return problem_set(p, COULD_NOT, "no memory for %u tasks",
				   run->tasks);
	status = share_memory(&c, p);
	if (status)
		return status;
	catch_signals();
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
	kill_children(&c);
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
	munmap(c.shared, c.bytes);
	free(c.children);
	free(c.window.ops);
	free(c.before.ops);
	free(c.after.ops);
	return status;
}
