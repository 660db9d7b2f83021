// SPDX-License-Identifier: GPL-2.0-only
#include "children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "tasks.h"
#include "testcase.h"

#define TEN_MS 10000000ull

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

void children_catch_signals(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction child = {.sa_handler = on_child,
				  .sa_flags = SA_NOCLDSTOP};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* nohup */
		sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* testcase_cleanup() is run there, if it can be. */
static void ask_to_end(struct children *c)
{
	for (unsigned int i = 0; c->pids[0] > 0 && i < 500; i++) {
		struct timespec ten_ms = {.tv_nsec = TEN_MS};

		if (!i)
			kill(c->pids[0], SIGTERM);
		if (waitpid(c->pids[0], NULL, WNOHANG))
			c->pids[0] = 0;
		else
			nanosleep(&ten_ms, NULL);
	}
}

void children_kill(struct children *c)
{
	if (c->run->workload->testcase)
		ask_to_end(c);
	for (unsigned int i = 0; i < c->run->tasks; i++) {
		if (c->pids[i] <= 0)
			continue;
		kill(c->pids[i], SIGKILL);
		while (waitpid(c->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
		c->pids[i] = 0;
	}
}

/* A child that ended by itself, though told nothing of the kind. */
static int child_ended(struct children *c, int how, struct problem *p)
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

static int reap(struct children *c, struct problem *p)
{
	for (;;) {
		int how;
		pid_t pid = waitpid(-1, &how, WNOHANG);

		if (pid <= 0)
			return DONE;
		for (unsigned int i = 0; i < c->run->tasks; i++)
			if (c->pids[i] == pid)
				c->pids[i] = 0;
		if (c->quitting && WIFEXITED(how) && !WEXITSTATUS(how))
			continue;
		return child_ended(c, how, p);
	}
}

/* Until all tasks have carried out the order; 0 ns: however long it takes. */
int children_wait(struct children *c, uint64_t deadline, struct problem *p)
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
		futex_wait(&sh->done, done, 10 * TEN_MS);
	}
}

void children_post(struct children *c, enum order order)
{
	struct shared *sh = c->shared;

	sh->order = order;
	atomic_store(&sh->done, 0);
	atomic_fetch_add(&sh->sequence, 1);
	futex_wake_all(&sh->sequence);
}

int children_fork(struct children *c, struct problem *p)
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
		c->pids[first] = pid;
	}
	return DONE;
}

int children_go_on(struct children *c, struct problem *p)
{
	atomic_store(&c->shared->counted, 1);
	futex_wake_all(&c->shared->counted);
	return children_wait(c, 0, p);
}

int children_quit(struct children *c, struct problem *p)
{
	int status;

	c->quitting = true;
	children_post(c, ORDER_QUIT);
	status = children_wait(c, clock_ns() + CHILDREN_HANG, p);
	c->quitting = false;
	for (unsigned int i = 0; !status && i < c->run->tasks; i++) {
		int how = 0;

		if (c->pids[i] <= 0)
			continue;
		while (waitpid(c->pids[i], &how, 0) < 0 && errno == EINTR)
			;
		c->pids[i] = 0;
		if (!WIFEXITED(how) || WEXITSTATUS(how))
			status = child_ended(c, how, p);
	}
	return status;
}

int children_sleep_until(struct children *c, uint64_t ns, struct problem *p)
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
