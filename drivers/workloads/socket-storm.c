// SPDX-License-Identifier: GPL-2.0-only
/*
 * socket-storm: socket() and close() of what it gave.
 *
 * Kernel path: sock_alloc(), the family's create and release, a struct file
 * and its dentry made and freed, and in the midst of it alloc_fd() and the
 * close path under file_lock.  The search is a percent of it; what threads
 * meet at is the lock.  It does not show connections: no socket is ever bound
 * or connected, so none is left in TIME_WAIT and no port is used, however
 * long it runs.
 * Shape: processes scale until the allocators' own locks; threads rise, then
 * fall where the time under file_lock becomes the larger part.  --blow moves
 * that point to more tasks.
 * Eric Dumazet's opensock of 2015 (netdev, the second bitmap) is this loop
 * with --sockets and --blow.
 *   --family, --type  which sockets; on the model they are all the same
 *   --sockets N  each task keeps N: an operation closes one of them at random
 *                and makes another.  0: each is closed at once
 *   --blow KIB   memory of the task's own written between operations; the
 *                writing is in the rate, and is the same for all variants
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "../harness/blow.h"
#include "../harness/fd.h"
#include "../harness/random.h"
#include "../harness/run.h"

enum { FAMILY, TYPE, SOCKETS, BLOW };

#define FAMILIES "inet inet6 unix"
static const int families[] = {AF_INET, AF_INET6, AF_UNIX};
static const int types[] = {SOCK_STREAM, SOCK_DGRAM};

struct storm {
	uint64_t random;
	void *memory; /* NULL: none is written */
	int *kept;    /* --sockets of each table, -1: none there */
};

#ifdef FD_BACKEND_MODEL
static unsigned int tables(const struct task *t)
{
	return t->run->variants;
}

static void use_table(struct task *t, unsigned int i)
{
	t->files = &t->handles[i];
}
#else
static unsigned int tables(const struct task *t)
{
	(void)t;
	return 1;
}

static void use_table(struct task *t, unsigned int i)
{
	(void)t;
	(void)i;
}
#endif

static uint64_t descriptors(const struct option_value *options)
{
	uint64_t kept = options[SOCKETS].number;

	return kept ? kept : 1;
}

static inline int make(struct task *t)
{
	return fd_socket(t, families[t->options[FAMILY].number],
			 types[t->options[TYPE].number]);
}

static int fill(struct task *t, int *kept)
{
	for (uint64_t i = 0; i < t->options[SOCKETS].number; i++) {
		kept[i] = make(t);
		if (kept[i] < 0)
			return task_fail(t, "socket");
	}
	return 0;
}

static int prepare(struct task *t)
{
	uint64_t n = t->options[SOCKETS].number;
	struct storm *s = calloc(1, sizeof(*s));

	if (!s)
		return task_fail(t, "malloc");
	t->data = s;
	s->random = t->run->seed + t->number;
	if (t->options[BLOW].number) {
		s->memory = malloc(t->options[BLOW].number * 1024);
		if (!s->memory)
			return task_fail(t, "malloc");
	}
	if (!n)
		return 0;
	s->kept = malloc(n * tables(t) * sizeof(*s->kept));
	if (!s->kept)
		return task_fail(t, "malloc");
	for (unsigned int i = 0; i < tables(t); i++) {
		use_table(t, i);
		if (fill(t, s->kept + n * i))
			return -1;
	}
	return 0;
}

static void finish(struct task *t)
{
	uint64_t n = t->options[SOCKETS].number;
	struct storm *s = t->data;

	for (unsigned int i = 0; n && i < tables(t); i++) {
		use_table(t, i);
		for (uint64_t j = 0; j < n; j++)
			if (s->kept[n * i + j] >= 0)
				fd_close(t, s->kept[n * i + j]);
	}
	free(s->kept);
	free(s->memory);
	free(s);
}

static int operate(struct task *t, uint64_t n)
{
	uint64_t sockets = t->options[SOCKETS].number;
	uint64_t kib = t->options[BLOW].number;
	struct storm *s = t->data;
	int *kept = sockets ? s->kept + sockets * task_table(t) : NULL;
	int one;

	while (n--) {
		int *fd = &one;

		if (kept) {
			fd = &kept[random_next(&s->random) % sockets];
			if (unlikely(fd_close(t, *fd)))
				return task_fail(t, "close");
		}
		*fd = make(t);
		if (unlikely(*fd < 0))
			return task_fail(t, "socket");
		if (kib)
			blow(s->memory, kib, n);
		if (!kept && unlikely(fd_close(t, *fd)))
			return task_fail(t, "close");
	}
	return 0;
}

#ifdef FD_BACKEND_KERNEL
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Socket and inode, file, dentry: 2 to 4 KiB by family on x86-64, 6.18. */
#define SOCKET_KIB UINT64_C(4)

/* MemAvailable in KiB, or the most where /proc does not say. */
static uint64_t available_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* Open files that the whole system has left, or the most. */
static uint64_t files_left(void)
{
	FILE *file = fopen("/proc/sys/fs/file-nr", "re");
	uint64_t used, most, left = UINT64_MAX;

	if (file && fscanf(file, "%" SCNu64 " %*u %" SCNu64, &used, &most) == 2)
		left = most > used ? most - used : 0;
	if (file)
		fclose(file);
	return left;
}

static int check(const struct run *run, struct problem *p)
{
	const struct option_value *options = run->options;
	uint64_t all = options[SOCKETS].number * run->tasks;
	int fd = socket(families[options[FAMILY].number],
			types[options[TYPE].number], 0);

	if (fd < 0 && errno == EAFNOSUPPORT)
		return problem_set(p, COULD_NOT,
				   "--family %s: this kernel has no such "
				   "sockets (%s); choose another of: " FAMILIES,
				   options[FAMILY].text, strerror(errno));
	if (fd < 0)
		return problem_set(p, COULD_NOT, "--family %s --type %s: %s",
				   options[FAMILY].text, options[TYPE].text,
				   strerror(errno));
	close(fd);
	if (all * SOCKET_KIB > available_kib())
		return problem_set(p, COULD_NOT,
				   "--sockets %s of %u tasks take about "
				   "%" PRIu64 " MiB and MemAvailable is "
				   "%" PRIu64 " MiB: fewer of either",
				   options[SOCKETS].text, run->tasks,
				   all * SOCKET_KIB / 1024,
				   available_kib() / 1024);
	if (all > files_left())
		return problem_set(p, COULD_NOT,
				   "--sockets %s of %u tasks are %" PRIu64
				   " files and fs.file-max leaves %" PRIu64
				   ": sysctl fs.file-max, or fewer",
				   options[SOCKETS].text, run->tasks, all,
				   files_left());
	return DONE;
}
#endif

WORKLOAD(.name = "socket-storm",
	 .about = "socket + close, never bound nor connected (opensock)",
	 .options = {[FAMILY] = {.name = "family",
				 .choices = FAMILIES,
				 .fallback = "inet",
				 .about = "of the sockets"},
		     [TYPE] = {.name = "type",
			       .choices = "stream dgram",
			       .fallback = "stream",
			       .about = "of the sockets"},
		     [SOCKETS] = {.name = "sockets",
				  .fallback = "0",
				  .most = 50000000,
				  .about = "kept by each task, closed at "
					   "random"},
		     [BLOW] = {.name = "blow",
			       .fallback = "0",
			       .most = 1 << 20,
			       .about = "memory written between operations, "
					"KiB"}},
	 .descriptors = descriptors, .check = FOR_KERNEL(check),
	 .prepare = prepare, .operate = operate, .finish = finish);
