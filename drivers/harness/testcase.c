// SPDX-License-Identifier: GPL-2.0-only
#include "testcase.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "tasks.h"

/* Of this process and those forked from it: one run. */
static struct {
	const struct run *run;
	struct shared *shared;
	unsigned char *slots;
	unsigned int seen; /* the order carried out last */
	pid_t *tasks;	   /* the processes that the tasks are in */
	unsigned int processes;
	pid_t group; /* all of them, and what they fork */
} scene;

/* Of the task that a thread is, or helps. */
static __thread struct slot *mine;

static volatile sig_atomic_t told_to_end;

static void on_end(int number)
{
	(void)number;
	told_to_end = 1;
}

/* Only so that a futex wait is cut short. */
static void on_child(int number)
{
	(void)number;
}

/* What went wrong first, in whichever task, is what is told. */
static void note(struct slot *slot, const struct problem *p)
{
	for (unsigned int i = 0; i < scene.run->tasks; i++)
		if (slot_of(scene.slots, i)->status)
			return;
	slot->problem = *p;
	slot->status = COULD_NOT;
}

void testcase_assert(const char *assertion, const char *file, unsigned int line,
		     const char *function)
{
	const char *slash = strrchr(file, '/');
	struct problem p;

	if (!scene.slots) { /* a library's, before the start */
		fprintf(stderr, "fdscale: %s:%u: %s: assertion failed: %s\n",
			file, line, function, assertion);
		abort();
	}
	problem_set(&p, COULD_NOT,
		    "test case %s: assertion failed (SIGABRT): %s:%u: %s: %s",
		    scene.run->workload->name, slash ? slash + 1 : file, line,
		    function, assertion);
	note(mine ? mine : slot_of(scene.slots, 0), &p);
	abort();
}

int testcase_death(const struct run *run, const char *who, int how,
		   struct problem *p)
{
	const char *name = run->workload->name;

	if (WIFSIGNALED(how))
		return problem_set(p, COULD_NOT,
				   "test case %s: %s was killed by signal %d "
				   "(%s)",
				   name, who, WTERMSIG(how),
				   strsignal(WTERMSIG(how)));
	return problem_set(p, COULD_NOT,
			   "test case %s: %s ended with exit status %d", name,
			   who, WEXITSTATUS(how));
}

/* A helper that died takes its task with it: there is nothing to count. */
static void on_helper(int number)
{
	struct problem p;
	int how;

	(void)number;
	if (waitpid(-1, &how, WNOHANG) <= 0)
		return;
	testcase_death(scene.run, "a task made by new_task()", how, &p);
	note(mine ? mine : slot_of(scene.slots, 0), &p);
	kill(getpid(), SIGKILL);
}

struct errand {
	void *(*func)(void *);
	void *arg;
	struct slot *slot;
};

static void *run_errand(void *data)
{
	struct errand errand = *(struct errand *)data;

	free(data);
	mine = errand.slot;
	return errand.func(errand.arg);
}

static void no_helper(const char *call, int error)
{
	struct problem p;

	problem_set(&p, COULD_NOT,
		    "test case %s: new_task(): %s: %s; see ulimit -u and the "
		    "cgroup's pids.max",
		    scene.run->workload->name, call, strerror(error));
	note(mine ? mine : slot_of(scene.slots, 0), &p);
	abort();
}

static void new_thread(void *(*func)(void *), void *arg)
{
	struct errand *errand = malloc(sizeof(*errand));
	pthread_t thread;
	int error = ENOMEM;

	if (errand) {
		*errand = (struct errand){func, arg, mine};
		error = pthread_create(&thread, NULL, run_errand, errand);
		if (!error)
			pthread_detach(thread);
	}
	if (error)
		no_helper("pthread_create", error);
}

static void new_process(void *(*func)(void *), void *arg)
{
	struct sigaction helper = {.sa_handler = on_helper,
				   .sa_flags = SA_RESTART | SA_NOCLDSTOP};
	pid_t self = getpid(), pid;

	sigaction(SIGCHLD, &helper, NULL);
	pid = fork();
	if (pid < 0)
		no_helper("fork", errno);
	if (pid)
		return;
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == self)
		func(arg);
	_exit(DONE);
}

void new_task(void *(*func)(void *), void *arg)
{
	if (scene.run->mode == MODE_THREADS)
		new_thread(func, arg);
	else
		new_process(func, arg);
}

static void answer(unsigned int tasks)
{
	struct shared *sh = scene.shared;

	if (atomic_fetch_add(&sh->done, tasks) + tasks == scene.run->tasks)
		futex_wake_all(&sh->done);
}

/* Ready, wait for the start, and go; it does not come back. */
static void be_task(unsigned int number)
{
	const struct workload *w = scene.run->workload;
	struct shared *sh = scene.shared;
	struct problem p;

	mine = slot_of(scene.slots, number);
	mine->tid = gettid();
	answer(1);
	while (atomic_load(&sh->sequence) == scene.seen)
		futex_wait(&sh->sequence, scene.seen, 0);
	w->testcase->main(&mine->iterations, number);
	problem_set(&p, COULD_NOT,
		    "test case %s: testcase() returned in task %u; it has to "
		    "count for ever",
		    w->name, number);
	note(mine, &p);
	_exit(COULD_NOT);
}

static void *thread_main(void *number)
{
	unsigned int task = (uintptr_t)number;
	struct slot *slot = slot_of(scene.slots, task);
	struct problem p;

	if (task_bind(scene.run, task, slot, &p)) {
		note(slot, &p);
		_exit(COULD_NOT);
	}
	be_task(task);
	return NULL;
}

static int start_threads(unsigned int first, unsigned int count,
			 struct problem *p)
{
	for (unsigned int i = 1; i < count; i++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, thread_main,
					   (void *)(uintptr_t)(first + i));

		if (error)
			return problem_set(p, COULD_NOT,
					   "a thread could not be made: %s; "
					   "see ulimit -u, kernel.threads-max, "
					   "the cgroup's pids.max",
					   strerror(error));
	}
	return DONE;
}

static void be_process(unsigned int first, unsigned int count, pid_t parent)
{
	const struct run *run = scene.run;
	struct slot *slot = slot_of(scene.slots, first);
	struct problem p = {""};
	int status;

	setpgid(0, scene.group);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(COULD_NOT);
	status = task_bind(run, first, slot, &p);
	if (!status && memory_local() && !scene.shared->memory_error)
		scene.shared->memory_error = errno;
	/* fork() made the table as small as what is open allows. */
	if (!status)
		status = hold_grow(run->slots, &p);
	scene.shared->fdsize = hold_fdsize();
	if (!status)
		status = start_threads(first, count, &p);
	if (status) {
		note(slot, &p);
		_exit(status);
	}
	be_task(first);
}

static int start_processes(struct problem *p)
{
	const struct run *run = scene.run;
	unsigned int each = run->mode == MODE_THREADS ? run->tasks : 1;
	pid_t self = getpid();

	for (unsigned int first = 0; first < run->tasks; first += each) {
		pid_t pid = fork();

		if (pid < 0)
			return tasks_fork_failed(first, p);
		if (!pid)
			be_process(first, each, self);
		if (!scene.group)
			scene.group = pid;
		setpgid(pid, scene.group);
		scene.tasks[scene.processes++] = pid;
	}
	return DONE;
}

/* Whose end is the run's; -1 for what a task left behind. */
static int task_of(pid_t pid)
{
	for (unsigned int i = 0; i < scene.processes; i++)
		if (scene.tasks[i] == pid)
			return i;
	return -1;
}

/* Also what left the group (a daemon of the case's): orphans become ours. */
static void kill_children(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid;

	while (file && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file)
		fclose(file);
}

/* Gone, all of them; then what testcase_prepare() made goes too. */
static void leave(int status) __attribute__((noreturn));
static void leave(int status)
{
	const struct testcase *tc = scene.run->workload->testcase;

	if (scene.group)
		kill(-scene.group, SIGKILL);
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
	if (tc->cleanup)
		tc->cleanup();
	if (!status)
		answer(scene.run->tasks);
	_exit(status);
}

static void give_up(int status, const struct problem *p)
{
	note(slot_of(scene.slots, 0), p);
	leave(status);
}

static void watch(void)
{
	struct problem p;
	char who[32];
	pid_t pid;
	int how;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
		int task = task_of(pid);

		if (task < 0)
			continue;
		snprintf(who, sizeof(who), "task %d", task);
		if (scene.run->mode == MODE_THREADS)
			snprintf(who, sizeof(who), "the process of the tasks");
		testcase_death(scene.run, who, how, &p);
		note(slot_of(scene.slots, task), &p);
		leave(COULD_NOT);
	}
	if (told_to_end)
		leave(INTERRUPTED);
}

/* Every thread of every task stands still. */
static void halt(void)
{
	kill(-scene.group, SIGSTOP);
	for (unsigned int i = 0; i < scene.processes; i++) {
		int how;

		while (waitpid(scene.tasks[i], &how, WUNTRACED) < 0 &&
		       errno == EINTR)
			;
		if (!WIFSTOPPED(how)) {
			struct problem p;

			testcase_death(scene.run, "a task", how, &p);
			give_up(COULD_NOT, &p);
		}
	}
}

static void obey(void)
{
	struct shared *sh = scene.shared;

	for (;;) {
		unsigned int now = atomic_load(&sh->sequence);

		watch();
		if (now == scene.seen) {
			/* An end may come just before the wait: look again. */
			futex_wait(&sh->sequence, now, 1000000000);
			continue;
		}
		scene.seen = now;
		if (sh->order == ORDER_QUIT)
			leave(DONE);
		if (sh->order == ORDER_HALT)
			halt();
		else if (sh->order == ORDER_GO)
			kill(-scene.group, SIGCONT);
		answer(scene.run->tasks);
	}
}

void testcase_main(const struct run *run, struct shared *shared,
		   unsigned char *slots, pid_t coordinator)
{
	const struct testcase *tc = run->workload->testcase;
	struct sigaction end = {.sa_handler = on_end};
	struct sigaction child = {.sa_handler = on_child,
				  .sa_flags = SA_NOCLDSTOP};
	struct rlimit none = {0, 0};
	struct problem p = {""};
	int status;

	signal(SIGINT, SIG_IGN);
	if (signal(SIGHUP, SIG_DFL) == SIG_IGN) /* nohup */
		signal(SIGHUP, SIG_IGN);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGCHLD, &child, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (getppid() != coordinator)
		_exit(COULD_NOT);
	setrlimit(RLIMIT_CORE, &none);
	scene.run = run;
	scene.shared = shared;
	scene.slots = slots;
	scene.seen = atomic_load(&shared->sequence);
	scene.tasks = calloc(run->tasks, sizeof(*scene.tasks));
	mine = slot_of(slots, 0);
	status = scene.tasks
			 ? task_bind(run, 0, mine, &p)
			 : problem_set(&p, COULD_NOT, "no memory for %u tasks",
				       run->tasks);
	if (!status)
		status = task_limit(run, &p);
	if (!status)
		status = hold_build(&run->hold, run->slots, 0, 0,
				    run->directory, &p);
	if (!status)
		status = hold_check(&run->hold, 0, 0, &p);
	if (status) {
		note(mine, &p);
		_exit(status);
	}
	if (tc->prepare)
		tc->prepare(run->tasks);
	status = start_processes(&p);
	if (status)
		give_up(status, &p);
	obey();
	__builtin_unreachable();
}

/* nonvoluntary_ctxt_switches of a thread; 0 where /proc does not say. */
static uint64_t switches_of(pid_t tid)
{
	char path[64], line[128];
	unsigned long long n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1)
			break;
	if (file)
		fclose(file);
	return n;
}

uint64_t testcase_switches(unsigned char *slots, unsigned int tasks)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < tasks; i++)
		sum += switches_of(slot_of(slots, i)->tid);
	return sum;
}

void testcase_read(unsigned char *slots, unsigned int tasks,
		   struct reading *reading)
{
	uint64_t first = clock_ns(), now = first, sum = 0;

	for (unsigned int i = 0; i < tasks; i++) {
		sum += now - first;
		reading->ops[i] = __atomic_load_n(
			&slot_of(slots, i)->iterations, __ATOMIC_RELAXED);
		now = clock_ns();
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): one at least */
	reading->ns = first + sum / tasks;
	reading->skew = now - first;
}
