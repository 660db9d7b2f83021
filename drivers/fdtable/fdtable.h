/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The userspace model of a process's descriptor table: what a kernel's
 * files_struct does between taking and dropping file_lock, with the search,
 * its switches and the lock chosen by name (variant.c lists them).  The README
 * says what it leaves out.
 *
 * Errors are returned as the kernel returns them: -EBADF, -EMFILE, ...
 */
#ifndef FDSCALE_FDTABLE_H
#define FDSCALE_FDTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/problem.h"

struct files; /* the model's files_struct */
struct model_lock;

/* What a descriptor names.  One cache line of its own: its count bounces. */
struct model_file {
	_Alignas(64) atomic_long count;
};

enum files_lock { FILES_LOCK_QUEUED, FILES_LOCK_TAS };

/*
 * One search with its switches and lock, as functions compiled for it alone.
 * The pointers are followed outside the lock; under it all is direct.
 */
struct variant;

/*
 * Look up "SEARCH[+SWITCH]..." or "PRESET[+SWITCH]...".  NULL with @p (USAGE)
 * that names the wrong word and the right ones.  @clone asks for the second
 * compiled copy (A/A): of two-level, first-word and next_fd-word, their
 * switches and presets; USAGE for the others.
 */
const struct variant *variant_find(const char *spec, enum files_lock lock,
				   bool clone, struct problem *p);
/* "next_fd-word+cond-clear": canonical, a preset kept as the preset's name. */
const char *variant_name(const struct variant *v);
/* NULL, or why it is not what POSIX asks for. */
const char *variant_nonconforming(const struct variant *v);

/* For list: the words there are, NULL-terminated, with one line on each. */
struct variant_word {
	const char *name;
	const char *about;
};
extern const struct variant_word variant_searches[];
extern const struct variant_word variant_switches[];
extern const struct variant_word variant_presets[];

struct files_options {
	const struct variant *variant;
	unsigned int tasks;   /* most tasks that will attach */
	unsigned int limit;   /* the soft RLIMIT_NOFILE: `end` */
	unsigned int nr_open; /* the most a table can grow to */
};

/*
 * An empty table of 64 slots on pages of its own, or NULL: EINVAL for 0 or
 * more than 65535 tasks, ENOMEM, or ENOSYS where several tasks are to share it
 * and there is no membarrier(2).
 */
struct files *files_new(const struct files_options *opt);
/*
 * Nobody attached any more.  What is still open is closed: its files must
 * outlive the table.
 */
void files_free(struct files *files);

/*
 * A task's handle on a table: its number, the node it queues on, its own hint
 * where the variant keeps one.  A task makes its calls through its own handle
 * and no other's.  One cache line at least, so that tasks do not share one.
 */
struct files_task {
	_Alignas(64) struct files *files;
	const struct variant *variant;
	struct model_lock *lock; /* the table's, or its part's (any-fd-split) */
	unsigned int number;
	unsigned int hint;   /* any-fd: the word it looks into first */
	atomic_bool reading; /* in a stretch without the lock: see grow.c */
	_Alignas(64) char queue_node[64];
};

void files_attach(struct files_task *t, struct files *files,
		  unsigned int number);
void files_detach(struct files_task *t);

#define FILES_CLOEXEC 1u
#define FILES_RANGE_UNSHARE 2u
#define FILES_RANGE_CLOEXEC 4u

/*
 * Each takes or returns a descriptor, or -errno.  None blocks but to grow.  A
 * descriptor holds one count of its file: open adds it, close drops it, and
 * nothing is freed at 0.  -EFAULT is first-word-v1's: a kernel would have
 * written outside its bitmaps.
 */
int files_open(struct files_task *t, struct model_file *file,
	       unsigned int flags);
int files_dup(struct files_task *t, unsigned int fd);
int files_dupfd(struct files_task *t, unsigned int fd, unsigned int start,
		unsigned int flags);
int files_dup3(struct files_task *t, unsigned int oldfd, unsigned int newfd,
	       unsigned int flags); /* dup2: flags 0 and oldfd == newfd is ok */
int files_close(struct files_task *t, unsigned int fd);
/*
 * UNSHARE acts on a copy, shared before or not, which the task's handle then
 * names; the caller frees it with files_free(), and the old one.
 */
int files_close_range(struct files_task *t, unsigned int first,
		      unsigned int last, unsigned int flags);
/* Reserve a descriptor and give it back (openneg), nothing installed. */
int files_reserve(struct files_task *t, unsigned int flags);
void files_unreserve(struct files_task *t, unsigned int fd);
/* A reader: the file at @fd without the lock, its count taken, or NULL. */
struct model_file *files_get(struct files_task *t, unsigned int fd);
void files_put(struct model_file *file);
/* The copy that fork makes, sized to what is open; NULL with errno. */
struct files *files_fork(struct files_task *t);

/* Set-up and looking, by one task while the others stand still. */
int files_grow(struct files_task *t, unsigned int slots);
/*
 * Take exactly @fd, whatever is free below it and whatever the limit; -EBUSY if
 * taken, -EMFILE past nr_open, -ENOMEM.
 */
int files_hold(struct files_task *t, unsigned int fd, struct model_file *file);
unsigned int files_slots(const struct files *files); /* as FDSize */
bool files_is_open(const struct files *files, unsigned int fd);
int files_cloexec(const struct files *files, unsigned int fd);
void files_set_limit(struct files *files, unsigned int limit);
struct files_region {
	void *start; /* of a page */
	size_t bytes;
};
/* The mappings it lies in now: itself, and its table where that has grown. */
unsigned int files_regions(struct files *files, struct files_region out[2]);
size_t files_memory(const struct files *files); /* bytes it owns now */

#endif
