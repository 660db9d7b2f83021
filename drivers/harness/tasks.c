// SPDX-License-Identifier: GPL-2.0-only
#include "tasks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "event.h"
#include "memory.h"
#include "spin.h"
#include "tables.h"
#include "window.h"

#define STACK_SIZE (256ul * 1024)

/* What the tasks of one child have in common. */
struct family {
	const struct run *run;
	struct shared *shared;
	unsigned char *slots;
	unsigned int first;
	struct tables tables;
};

struct member {
	struct family *family;
	unsigned int number; /* in the run */
	unsigned int index;  /* in the family */
};

static void carried_out(const struct family *f)
{
	if (atomic_fetch_add(&f->shared->done, 1) + 1 == f->run->tasks)
		futex_wake_all(&f->shared->done);
}

/* Set-up failed: say so in the slot, and go; the coordinator sees the end. */
static void give_up(struct slot *slot, int status)
{
	slot->status = status;
	_exit(status);
}

static int bind_to(int pu, unsigned int number, struct slot *slot,
		   struct problem *p)
{
	cpu_set_t *set;
	size_t size;

	slot->pu = PLACE_NONE;
	if (pu == PLACE_NONE)
		return DONE;
	set = CPU_ALLOC(pu + 1);
	size = CPU_ALLOC_SIZE(pu + 1);
	CPU_ZERO_S(size, set);
	CPU_SET_S(pu, size, set);
	if (sched_setaffinity(0, size, set)) {
		CPU_FREE(set);
		return problem_set(p, COULD_NOT,
				   "task %u: cannot be bound to CPU %d: %s",
				   number, pu, strerror(errno));
	}
	CPU_FREE(set);
	slot->pu = sched_getcpu();
	if (slot->pu != pu)
		return problem_set(p, COULD_NOT,
				   "task %u: bound to CPU %d, runs on CPU %d",
				   number, pu, slot->pu);
	return DONE;
}

int task_bind(const struct run *run, unsigned int number, struct slot *slot,
	      struct problem *p)
{
	return bind_to(run->placement.pus[number], number, slot, p);
}

int task_limit(const struct run *run, struct problem *p)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= run->limit)
		return DONE;
	limit.rlim_cur = run->limit;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return problem_set(p, COULD_NOT,
				   "RLIMIT_NOFILE: soft limit not raised to "
				   "%llu: %s",
				   (unsigned long long)run->limit,
				   strerror(errno));
	return DONE;
}

static int kernel_table(const struct run *run, struct problem *p)
{
	struct hold hold = run->hold;
	int status = task_limit(run, p);

	if (run->workload->flags & WORKLOAD_EMPTY)
		hold.top = 4;
	if (!status)
		status = hold_build(&hold, run->slots, run->first_source,
				    run->sources, run->directory, p);
	if (!status)
		status = hold_check(&hold, run->first_source, run->sources, p);
	return status;
}

static int build_table(struct family *f, unsigned int count, struct problem *p)
{
	if (f->run->backend == BACKEND_KERNEL)
		return kernel_table(f->run, p);
	return tables_build(f->run, count, &f->tables, p);
}

/*
 * --table-node: whoever grows a kernel's table gets memory of the node it runs
 * on, so for that long this is a PU of the node asked for.  The tasks' own
 * files are made there too; all else comes afterwards, from where they run.
 */
static int build_on_node(struct family *f, unsigned int count,
			 struct slot *slot, struct problem *p)
{
	const struct run *run = f->run;
	cpu_set_t before[8]; /* 8192 CPUs: the most that x86 can have */
	char text[sizeof(f->shared->table)] =
		"a kernel does not tell where its tables are";
	int error, status;

	CPU_ZERO_S(sizeof(before), before);
	if (sched_getaffinity(0, sizeof(before), before))
		return problem_set(p, COULD_NOT, "sched_getaffinity: %s",
				   strerror(errno));
	status = bind_to(run->table_pu, f->first, slot, p);
	if (status)
		return status;
	error = memory_only(run->table_node);
	if (error)
		return problem_set(p, COULD_NOT,
				   "--table-node %d: set_mempolicy: %s",
				   run->table_node, strerror(error));
	status = build_table(f, count, p);
	if (!status && run->backend == BACKEND_MODEL)
		tables_look(run, &f->tables, text, sizeof(text));
	if (*text && !*f->shared->table)
		memcpy(f->shared->table, text, sizeof(text));
	memory_local();
	if (sched_setaffinity(0, sizeof(before), before))
		return problem_set(p, COULD_NOT, "sched_setaffinity: %s",
				   strerror(errno));
	return status ? status : task_bind(run, f->first, slot, p);
}

/* Holes were holes to the end: no window ran on another table. */
static int check_after(const struct family *f, struct problem *p)
{
	const struct run *run = f->run;
	struct problem found;
	int status;

	if (run->workload->flags & (WORKLOAD_FIXED | WORKLOAD_EMPTY))
		return DONE;
	if (run->backend == BACKEND_KERNEL)
		status = hold_check(&run->hold, run->first_source, run->sources,
				    &found);
	else
		status = tables_check(run, &f->tables, &found);
	if (status)
		problem_set(p, status,
			    "after the windows: %.500s; a fault of "
			    "the workload %s",
			    found.text, run->workload->name);
	return status;
}

static void model_handles(struct task *t, const struct family *f,
			  unsigned int index)
{
	const struct run *run = f->run;

	t->own.file = &f->tables.own[index];
	t->shared.file = f->tables.shared;
	t->handles =
		aligned_alloc(64, run->variants * sizeof(struct files_task));
	for (unsigned int v = 0; t->handles && v < run->variants; v++)
		files_attach(&t->handles[v], f->tables.files[v], index);
}

static uint64_t involuntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static void obey(struct task *t, struct family *f)
{
	const struct workload *w = t->run->workload;
	struct shared *sh = f->shared;
	/* No order comes before every task has said that it is ready. */
	unsigned int seen = atomic_load(&sh->sequence);

	carried_out(f);
	for (;;) {
		uint64_t switches;

		while (atomic_load(&sh->sequence) == seen)
			futex_wait(&sh->sequence, seen, 0);
		seen = atomic_load(&sh->sequence);
		if (sh->order == ORDER_QUIT)
			break;
		if (t->handles)
			t->files = &t->handles[sh->variant];
		switches = involuntary_switches();
		if (sh->order == ORDER_WINDOW)
			window_run(t, sh);
		else
			turns_run(t, sh);
		t->slot->switches = involuntary_switches() - switches;
		if (t->slot->error)
			atomic_store(&sh->failed, 1);
		carried_out(f);
	}
	if (w->finish)
		w->finish(t);
	carried_out(f);
}

static void be_task(const struct member *m)
{
	struct family *f = m->family;
	const struct run *run = f->run;
	struct slot *slot = slot_of(f->slots, m->number);
	struct task t = {
		.run = run,
		.options = run->options,
		.number = m->number,
		.source = run->first_source + m->index,
		.slot = slot,
	};
	int status = DONE;

	if (m->index) /* the first is bound already */
		status = task_bind(run, m->number, slot, &slot->problem);
	if (status)
		give_up(slot, status);
	snprintf(t.own.path, sizeof(t.own.path), "%s/%u", run->directory,
		 m->number);
	snprintf(t.shared.path, sizeof(t.shared.path), "%s/shared",
		 run->directory);
	if (run->backend == BACKEND_MODEL)
		model_handles(&t, f, m->index);
	t.batch = malloc(run->variants * sizeof(*t.batch));
	if (!t.batch || (run->backend == BACKEND_MODEL && !t.handles))
		give_up(slot, problem_set(&slot->problem, COULD_NOT,
					  "task %u: no memory", m->number));
	for (unsigned int v = 0; v < run->variants; v++)
		t.batch[v] = 1;
	if (run->think_ns)
		t.think = spin_turns(run->think_ns);
	if (run->workload->prepare && run->workload->prepare(&t))
		give_up(slot, problem_set(&slot->problem, COULD_NOT,
					  "task %u: preparing %s: %s: %s; %s",
					  m->number, run->workload->name,
					  slot->call, strerror(slot->error),
					  remedy(slot->error)));
	obey(&t, f);
	/* Under ASan all is accounted for. */
	for (unsigned int v = 0; t.handles && v < run->variants; v++)
		files_detach(&t.handles[v]);
	free(t.handles);
	free(t.batch);
}

static void *thread_main(void *member)
{
	be_task(member);
	return NULL;
}

static int start_threads(struct member *members, unsigned int count,
			 pthread_t *threads, struct problem *p)
{
	pthread_attr_t attr;
	int error = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (unsigned int i = 1; !error && i < count; i++)
		error = pthread_create(&threads[i], &attr, thread_main,
				       &members[i]);
	pthread_attr_destroy(&attr);
	if (!error)
		return DONE;
	return problem_set(p, COULD_NOT,
			   "a thread could not be made: %s; see ulimit -u, "
			   "kernel.threads-max, the cgroup's pids.max",
			   strerror(error));
}

int tasks_fork_failed(unsigned int first, struct problem *p)
{
	return problem_set(p, COULD_NOT,
			   "fork of task %u: %s; see ulimit -u and the "
			   "cgroup's pids.max",
			   first, strerror(errno));
}

void tasks_main(const struct run *run, struct shared *shared,
		unsigned char *slots, unsigned int first, unsigned int count,
		pid_t coordinator)
{
	struct family family = {
		.run = run,
		.shared = shared,
		.slots = slots,
		.first = first,
	};
	struct slot *slot = slot_of(slots, first);
	struct member *members = calloc(count, sizeof(*members));
	pthread_t *threads = calloc(count, sizeof(*threads));
	int status;

	/* The terminal's Ctrl-C is the coordinator's to act on. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	if (signal(SIGHUP, SIG_DFL) == SIG_IGN) /* nohup */
		signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != coordinator)
		_exit(COULD_NOT);
	while (!atomic_load(&shared->counted))
		futex_wait(&shared->counted, 0, 0);
	if (!members || !threads)
		give_up(slot, problem_set(&slot->problem, COULD_NOT,
					  "no memory for %u tasks", count));
	status = task_bind(run, first, slot, &slot->problem);
	if (!status && memory_local() && !shared->memory_error)
		shared->memory_error = errno;
	if (!status && run->table_node != PLACE_NONE)
		status = build_on_node(&family, count, slot, &slot->problem);
	else if (!status)
		status = build_table(&family, count, &slot->problem);
	if (status)
		give_up(slot, status);
	if (run->backend == BACKEND_KERNEL) {
		/* 0 where /proc is hidden: then it is not known. */
		shared->fdsize = hold_fdsize();
		if (shared->fdsize && shared->fdsize != run->slots)
			give_up(slot, problem_set(&slot->problem, COULD_NOT,
						  "table: asked for %u slots, "
						  "got %u",
						  run->slots, shared->fdsize));
	} else {
		shared->fdsize = files_slots(family.tables.files[0]);
		shared->table_bytes = files_memory(family.tables.files[0]);
	}
	for (unsigned int i = 0; i < count; i++)
		members[i] = (struct member){&family, first + i, i};
	status = start_threads(members, count, threads, &slot->problem);
	if (status)
		give_up(slot, status);
	be_task(&members[0]);
	for (unsigned int i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	free(members);
	status = check_after(&family, &slot->problem);
	if (status)
		give_up(slot, status);
	_exit(DONE);
}
