// SPDX-License-Identifier: GPL-2.0-only
/*
 * fileserver: random reads, writes and rewrites of whole files in one tree.
 *
 * Kernel path: open, a read or a write of some pages, close, by many threads in
 * one table: what blogbench was quoted for on the lists.  alloc_fd() and the
 * close path are a few percent of it, until threads enough meet at file_lock.
 *   --readers N  each task that writes comes after N that read
 *   --files N    in the tree, 16 a directory
 *   --size KIB   of each file
 * A reader opens a file, reads all of it, closes it.  A writer makes a file
 * under a name of its own, renames it over one of the tree, and the next time
 * writes one of the tree anew in place; which one is drawn from the seed.  So
 * every name is there at any time with all its bytes: an open that fails, or a
 * short read, ends the window.  Nobody sleeps, each task counts for itself, and
 * the counts of readers and writers are told apart: they are not one number.
 * It does not show a disk: the tree stays in the page cache of --tmpdir's file
 * system.  Processes share the tree, and no table.
 * Shape: readers scale until file_lock or the dentries' counts; writers meet at
 * the directories' locks first.  One task alone reads (writes: --readers 0).
 */
#include "../harness/fd.h"

#ifdef FD_BACKEND_KERNEL
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../harness/random.h"
#include "../harness/run.h"

enum { READERS, FILES, SIZE };

#define A_DIRECTORY 16 /* files */
#define NAME 280       /* bytes of a path */

struct server {
	uint64_t seed;
	bool writes;
	bool in_place; /* a writer's next turn */
	unsigned int files;
	size_t size;
	char *buffer;
	char (*names)[NAME];
	char (*fresh)[NAME]; /* the task's own name in each directory */
};

static bool is_writer(const struct run *run, unsigned int task)
{
	uint64_t readers = run->options[READERS].number;

	return task % (readers + 1) == readers;
}

static const char *role(const struct run *run, unsigned int task)
{
	return is_writer(run, task) ? "write" : "read";
}

/* @fd is closed, whatever became of it. */
static int put(struct task *t, int fd, const char *call)
{
	const struct server *s = t->data;
	ssize_t n;

	if (unlikely(fd < 0))
		return task_fail(t, call);
	n = pwrite(fd, s->buffer, s->size, 0);
	if (unlikely(n != (ssize_t)s->size)) {
		if (n >= 0)
			errno = ENOSPC; /* a short write */
		task_fail(t, "pwrite");
		close(fd);
		return -1;
	}
	return close(fd) ? task_fail(t, "close") : 0;
}

static int replace(struct task *t, const char *name, const char *fresh)
{
	if (unlikely(put(t, open(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600),
			 "open(O_CREAT)")))
		return -1;
	return rename(fresh, name) ? task_fail(t, "rename") : 0;
}

static int get(struct task *t, const char *name)
{
	const struct server *s = t->data;
	int fd = open(name, O_RDONLY);
	ssize_t n;

	if (unlikely(fd < 0))
		return task_fail(t, "open");
	n = pread(fd, s->buffer, s->size, 0);
	if (unlikely(n != (ssize_t)s->size)) {
		if (n >= 0)
			errno = EIO; /* a file that is not whole */
		task_fail(t, "pread");
		close(fd);
		return -1;
	}
	return close(fd) ? task_fail(t, "close") : 0;
}

static int operate(struct task *t, uint64_t n)
{
	struct server *s = t->data;

	while (n--) {
		unsigned int one = random_next(&s->seed) % s->files;
		const char *name = s->names[one];
		int r;

		if (!s->writes)
			r = get(t, name);
		else if (s->in_place)
			r = put(t, open(name, O_WRONLY), "open");
		else
			r = replace(t, name, s->fresh[one / A_DIRECTORY]);
		if (unlikely(r))
			return -1;
		s->in_place = !s->in_place;
	}
	return 0;
}

/* Each task makes a part of the tree; no window starts before all have. */
static int make_part(struct task *t, const struct server *s)
{
	char directory[NAME];

	for (unsigned int i = 0; i < s->files; i += A_DIRECTORY) {
		snprintf(directory, sizeof(directory), "%s/d%u",
			 t->run->directory, i / A_DIRECTORY);
		if (mkdir(directory, 0700) && errno != EEXIST)
			return task_fail(t, "mkdir");
	}
	for (unsigned int i = t->number; i < s->files; i += t->run->tasks)
		if (replace(t, s->names[i], s->fresh[i / A_DIRECTORY]))
			return -1;
	return 0;
}

static int prepare(struct task *t)
{
	const struct option_value *options = t->run->options;
	struct server *s = calloc(1, sizeof(*s));

	t->data = s;
	if (!s)
		return task_fail(t, "calloc");
	s->seed = t->run->seed + t->number;
	s->writes = is_writer(t->run, t->number);
	s->files = options[FILES].number;
	s->size = options[SIZE].number * 1024;
	s->buffer = calloc(1, s->size);
	s->names = calloc(s->files, sizeof(*s->names));
	s->fresh = calloc(s->files / A_DIRECTORY + 1, sizeof(*s->fresh));
	if (!s->buffer || !s->names || !s->fresh)
		return task_fail(t, "calloc");
	for (unsigned int i = 0; i < s->files; i++) {
		unsigned int d = i / A_DIRECTORY;

		snprintf(s->names[i], NAME, "%s/d%u/f%u", t->run->directory, d,
			 i);
		snprintf(s->fresh[d], NAME, "%s/d%u/new-%u", t->run->directory,
			 d, t->number);
	}
	return make_part(t, s);
}

static void finish(struct task *t)
{
	struct server *s = t->data;

	free(s->buffer);
	free(s->names);
	free(s->fresh);
	free(s);
}

static uint64_t descriptors(const struct option_value *options)
{
	(void)options;
	return 1;
}

WORKLOAD(.name = "fileserver",
	 .about =
		 "whole files of one tree read, written, rewritten (blogbench)",
	 .options = {{.name = "readers",
		      .fallback = "1",
		      .most = 65536,
		      .about = "tasks that read for each one that writes"},
		     {.name = "files",
		      .fallback = "256",
		      .least = 1,
		      .most = 1000000,
		      .about = "in the tree"},
		     {.name = "size",
		      .fallback = "16",
		      .least = 1,
		      .most = 1 << 16,
		      .about = "of each file, KiB"}},
	 .descriptors = descriptors, .role = role, .prepare = prepare,
	 .operate = operate, .finish = finish);
#endif
