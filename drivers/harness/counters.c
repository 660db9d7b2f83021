// SPDX-License-Identifier: GPL-2.0-only
#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The software ones are everywhere: what a test can count. */
static const struct counter_kind kinds[] = {
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"context-switches", PERF_TYPE_SOFTWARE,
	 PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))
_Static_assert(KINDS == COUNTERS_MAX, "each can be named once");

static const struct counter_kind *find(const char *name, size_t length)
{
	for (unsigned int i = 0; i < KINDS; i++)
		if (strlen(kinds[i].name) == length &&
		    !strncmp(kinds[i].name, name, length))
			return &kinds[i];
	return NULL;
}

int counter_list_parse(const char *text, struct counter_list *list,
		       struct problem *p)
{
	list->kinds = 0;
	if (!strcmp(text, "none"))
		return DONE;
	for (const char *word = text;; word++) {
		size_t length = strcspn(word, ",");
		const struct counter_kind *kind = find(word, length);

		if (!kind)
			return problem_set(
				p, USAGE,
				"--counters: '%.*s' is not one of: "
				"instructions cycles cache-misses task-clock "
				"context-switches page-faults, or none",
				(int)length, word);
		for (unsigned int i = 0; i < list->kinds; i++)
			if (list->kind[i] == kind)
				return problem_set(p, USAGE,
						   "--counters: '%s' twice",
						   kind->name);
		list->kind[list->kinds++] = kind;
		word += length;
		if (!*word)
			return DONE;
	}
}

static int event_open(const struct counter_kind *kind, enum counter_side side,
		      pid_t pid)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = kind->type,
		.config = kind->config,
		.disabled = 1,
		.inherit = 1,
		.exclude_user = side != SIDE_USER,
		.exclude_kernel = side != SIDE_KERNEL,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &attr, pid, -1, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

static const char *meaning(int error)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "this CPU, or its hypervisor, shows none";
	case EACCES:
		return "sudo sysctl kernel.perf_event_paranoid=1";
	case EPERM:
		return "a seccomp filter or security module forbids it";
	case ENOSYS:
		return "a kernel without CONFIG_PERF_EVENTS";
	case EMFILE:
		return "raise RLIMIT_NOFILE (ulimit -n)";
	default:
		return "see man perf_event_open";
	}
}

static void explain(struct counters *c, const char *name,
		    enum counter_side side, int error)
{
	if (*c->why)
		return;
	snprintf(c->why, sizeof(c->why), "%s, %s: perf_event_open: %s: %s",
		 name, side == SIDE_USER ? "user" : "kernel", strerror(error),
		 meaning(error));
}

static void counter_close(struct counter *it, unsigned int children)
{
	for (unsigned int i = 0; it->fds && i < children; i++)
		if (it->fds[i] >= 0)
			close(it->fds[i]);
	free(it->fds);
	free(it->before);
	it->fds = NULL;
	it->before = NULL;
}

/* One event on all children, or on none: then its errno. */
static int counter_open(struct counter *it, const struct counter_kind *kind,
			enum counter_side side, const pid_t *pids,
			unsigned int children)
{
	int error = 0;

	it->fds = malloc(children * sizeof(*it->fds));
	it->before = calloc(children, sizeof(*it->before));
	for (unsigned int i = 0; it->fds && i < children; i++)
		it->fds[i] = -1;
	if (!it->fds || !it->before)
		error = ENOMEM;
	for (unsigned int i = 0; !error && i < children; i++) {
		if (!pids[i])
			continue;
		it->fds[i] = event_open(kind, side, pids[i]);
		if (it->fds[i] < 0)
			error = errno;
	}
	if (error)
		counter_close(it, children);
	return error;
}

/* An event a child may be more than the soft limit leaves the coordinator. */
static void with_hard_limit(struct rlimit *before)
{
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, before);
	most = *before;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

void counters_none(struct counters *c, const struct counter_list *list,
		   const char *why)
{
	memset(c, 0, sizeof(*c));
	c->list = list;
	snprintf(c->why, sizeof(c->why), "%s", why);
}

void counters_open(struct counters *c, const struct counter_list *list,
		   const pid_t *children, unsigned int n)
{
	struct rlimit before;

	memset(c, 0, sizeof(*c));
	c->list = list;
	c->children = n;
	with_hard_limit(&before);
	for (unsigned int k = 0; k < list->kinds; k++) {
		for (enum counter_side side = 0; side < SIDES; side++) {
			int error =
				counter_open(&c->counter[k][side],
					     list->kind[k], side, children, n);

			if (error)
				explain(c, list->kind[k]->name, side, error);
			else
				c->there++;
		}
	}
	/* What is forked from here on starts as it would have. */
	setrlimit(RLIMIT_NOFILE, &before);
}

void counters_close(struct counters *c)
{
	for (unsigned int i = 0; i < COUNTERS_MAX * SIDES; i++)
		counter_close(&c->counter[i / SIDES][i % SIDES], c->children);
	c->there = 0;
}

static void tell(const struct counter *it, unsigned int children,
		 unsigned long request)
{
	for (unsigned int i = 0; i < children; i++)
		if (it->fds[i] >= 0)
			ioctl(it->fds[i], request, 0);
}

void counters_start(struct counters *c)
{
	for (unsigned int i = 0; i < COUNTERS_MAX * SIDES; i++) {
		struct counter *it = &c->counter[i / SIDES][i % SIDES];

		if (it->fds)
			tell(it, c->children, PERF_EVENT_IOC_ENABLE);
	}
}

/*
 * Add what one child's event counted since it was read last.  Where events
 * outnumber the hardware's they take turns: then as if it had run throughout.
 */
static void add(struct counter *it, unsigned int child)
{
	struct counter_reading now = {0}, *before = &it->before[child];
	uint64_t enabled, running;

	if (read(it->fds[child], &now, sizeof(now)) != sizeof(now)) {
		it->known = false;
		return;
	}
	enabled = now.enabled - before->enabled;
	running = now.running - before->running;
	if (running)
		it->count +=
			(double)(now.value - before->value) * enabled / running;
	else if (enabled)
		it->known = false;
	*before = now;
}

void counters_stop(struct counters *c, struct counted done)
{
	c->done = done;
	for (unsigned int i = 0; i < COUNTERS_MAX * SIDES; i++) {
		struct counter *it = &c->counter[i / SIDES][i % SIDES];

		if (!it->fds)
			continue;
		tell(it, c->children, PERF_EVENT_IOC_DISABLE);
		it->count = 0;
		it->known = true;
		for (unsigned int child = 0; child < c->children; child++)
			if (it->fds[child] >= 0)
				add(it, child);
	}
}

void counters_empty(struct counters *c)
{
	c->empty = c->done;
	for (unsigned int i = 0; i < COUNTERS_MAX * SIDES; i++) {
		struct counter *it = &c->counter[i / SIDES][i % SIDES];

		it->empty = it->known ? it->count : 0;
	}
}

bool counters_per_op(const struct counters *c, unsigned int kind,
		     enum counter_side side, double *out)
{
	const struct counter *it = &c->counter[kind][side];
	double besides = it->empty;

	if (!it->known || c->done.ops <= c->empty.ops)
		return false;
	if (side == SIDE_USER && c->empty.spins)
		besides *= (double)c->done.spins / c->empty.spins;
	*out = (it->count - besides) / (double)(c->done.ops - c->empty.ops);
	if (*out < 0) /* of what no operation does, less than besides it */
		*out = 0;
	return true;
}
