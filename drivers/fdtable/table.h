/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inside of the model: what lies where, and the small steps that the
 * templates (alloc.h, close.h) are made of.
 */
#ifndef FDSCALE_TABLE_H
#define FDSCALE_TABLE_H

#include <errno.h>
#include <pthread.h>

#include "bits.h"
#include "fdtable.h"
#include "lock.h"

#define EMBEDDED_SLOTS 64u
#define CACHE_LINE 64u

/* The switches.  The first four make code of alloc; the others do not. */
enum {
	SW_SANITY_READ = 1,
	SW_EAGER_EXPAND = 2,
	SW_END_LATE = 4,
	SW_INLINE_SEARCH = 8,
	SW_ALLOC_MASK = 15,
	SW_COND_CLEAR = 16,  /* close */
	SW_SPLIT_LINES = 32, /* layout */
};

/* What a search needs to be kept beside the two bitmaps. */
enum shape {
	SHAPE_LOWEST, /* next_fd */
	SHAPE_TOP,    /* next_fd and the third bitmap */
	SHAPE_ANY,    /* a hint per task instead of next_fd */
	SHAPE_SPLIT,  /* the same, with a lock per part; no full bits */
};

/* A table as it is after one growth: constant but for what it points at. */
struct fdtable {
	unsigned int max_fds;
	_Atomic(struct model_file *) *fd;
	uint64_t *close_on_exec;
	uint64_t *open_fds;
	uint64_t *full_fds_bits; /* bit w: open_fds[w] has no zero */
	uint64_t *top_bits;	 /* bit k: full_fds_bits[k] has no zero */
	struct fdtable *retired; /* the next of files->retired */
	size_t bytes;		 /* of its mapping; 0 if embedded */
};

/* any-fd-split: lines of open_fds, 512 descriptors each, dealt out in turn. */
#define PART_CHUNK (CACHE_LINE * 8)
struct part {
	_Alignas(CACHE_LINE) struct model_lock lock;
};

struct files {
	_Atomic(struct fdtable *) table;
	atomic_bool resizing; /* the lock is dropped, but fd[] is copied soon */
	atomic_uint limit;
	unsigned int nr_open;
	unsigned int attached; /* under the whole lock */
	unsigned int tasks_max;
	struct files_task **tasks; /* by number; NULL: not attached */
	struct part *parts;	   /* any-fd-split: tasks_max of them */
	const struct variant *variant;
	struct fdtable *retired; /* replaced, but a reader may hold them */
	size_t bytes;		 /* of this structure's own mapping */
	struct fdtable embedded;
	pthread_mutex_t roster; /* tasks[] stands still */

	/* split-lines: the lock here instead of beside next_fd. */
	_Alignas(CACHE_LINE) struct model_lock lock_apart;

	_Alignas(CACHE_LINE) struct model_lock lock;
	unsigned int next_fd; /* no descriptor below it is free */
	uint64_t close_on_exec_0[1];
	uint64_t open_fds_0[1];
	uint64_t full_fds_bits_0[1];
	/* split-lines: from the fifth on, which begins the next line. */
	_Atomic(struct model_file *) fd_0[EMBEDDED_SLOTS + 4];
	uint64_t top_bits_0[1];
};

/* The kernel's files_struct, from file_lock on. */
#define FROM_LOCK(field)                                                       \
	(offsetof(struct files, field) - offsetof(struct files, lock))
static_assert(offsetof(struct files, lock) % CACHE_LINE == 0, "starts a line");
static_assert(FROM_LOCK(next_fd) == 4, "beside the lock");
static_assert(FROM_LOCK(close_on_exec_0) == 8, "in the lock's line");
static_assert(FROM_LOCK(open_fds_0) == 16, "in the lock's line");
static_assert(FROM_LOCK(full_fds_bits_0) == 24, "in the lock's line");
static_assert(FROM_LOCK(fd_0) == 32, "four slots in the lock's line");
static_assert(FROM_LOCK(fd_0[4]) == CACHE_LINE, "split-lines' slots");
static_assert(offsetof(struct files, lock_apart) + CACHE_LINE ==
		      offsetof(struct files, lock),
	      "split-lines' lock has a line of its own");
static_assert(offsetof(struct files, roster) / CACHE_LINE !=
		      offsetof(struct files, lock_apart) / CACHE_LINE,
	      "nothing else in that line");
static_assert(offsetof(struct files_task, queue_node) % CACHE_LINE == 0 &&
		      sizeof(struct files_task) % CACHE_LINE == 0,
	      "tasks share no line");
static_assert(offsetof(struct files_task, reading) < CACHE_LINE,
	      "what each call reads of the handle is one line");

typedef int alloc_fn(struct files_task *t, unsigned int start, unsigned int end,
		     unsigned int flags);

/* Compiled for a lock, a shape and cond-clear. */
struct table_ops {
	int (*close)(struct files_task *t, unsigned int fd);
	void (*unreserve)(struct files_task *t, unsigned int fd);
	int (*dup3)(struct files_task *t, unsigned int oldfd,
		    unsigned int newfd, unsigned int flags);
	int (*close_range)(struct files_task *t, unsigned int first,
			   unsigned int last);
};

struct variant {
	alloc_fn *alloc;
	const struct table_ops *ops;
	enum files_lock lock;
	enum shape shape;
	unsigned int switches;
	bool clone;
	const char *nonconforming;
	struct variant *next; /* of all that variant_find() has made */
	char name[160];
};

/* grow.c.  Lock held; drops it to allocate.  1: look again; 0; or -errno. */
int table_expand(struct files_task *t, unsigned int fd);
/* A table for at least @slots, never above @nr_open; NULL: no memory. */
struct fdtable *table_new(unsigned int slots, unsigned int nr_open);
void table_free(struct fdtable *fdt);
/* The current one and those it replaced. */
void tables_free(struct files *files);
/* Once before tasks share a table; -1 with errno: this kernel cannot. */
int grace_prepare(void);
void *pages_new(size_t *bytes); /* zeroed, rounds up; NULL: no memory */

/* split.c: any-fd-split when the task's own part has none, or start > 0. */
int split_alloc(struct files_task *t, unsigned int start, unsigned int end,
		unsigned int flags);
unsigned int split_search(const struct fdtable *fdt, struct files_task *t);

/* fdtable.c: what sanity-read says, once a process. */
void table_complain(unsigned int fd);

/* The lock that covers the whole table: all of the parts', in order. */
void whole_take(struct files_task *t);
void whole_drop(struct files_task *t);

static always_inline struct fdtable *table_of(const struct files *files)
{
	return atomic_load_explicit(&files->table, memory_order_acquire);
}

static always_inline struct model_lock *part_lock(struct files *files,
						  unsigned int fd)
{
	return &files->parts[fd / PART_CHUNK % files->tasks_max].lock;
}

static always_inline void set_open(const struct fdtable *fdt, unsigned int fd,
				   enum shape shape)
{
	unsigned int w = fd / WORD_BITS;

	bit_set(fdt->open_fds, fd);
	if (shape != SHAPE_SPLIT && fdt->open_fds[w] == WORD_FULL) {
		bit_set(fdt->full_fds_bits, w);
		if (shape == SHAPE_TOP &&
		    fdt->full_fds_bits[w / WORD_BITS] == WORD_FULL)
			bit_set(fdt->top_bits, w / WORD_BITS);
	}
}

static always_inline void clear_open(const struct fdtable *fdt, unsigned int fd,
				     enum shape shape, bool cond_clear)
{
	unsigned int w = fd / WORD_BITS;

	bit_clear(fdt->open_fds, fd);
	if (shape == SHAPE_SPLIT ||
	    (cond_clear && !bit_test(fdt->full_fds_bits, w)))
		return;
	bit_clear(fdt->full_fds_bits, w);
	if (shape == SHAPE_TOP)
		bit_clear(fdt->top_bits, w / WORD_BITS);
}

/* The kernel writes close_on_exec only where it changes. */
static always_inline void set_cloexec(const struct fdtable *fdt,
				      unsigned int fd, bool set)
{
	if (set)
		bit_set(fdt->close_on_exec, fd);
	else if (bit_test(fdt->close_on_exec, fd))
		bit_clear(fdt->close_on_exec, fd);
}

static always_inline void raise_hint(struct files *files, unsigned int start,
				     unsigned int fd)
{
	if (likely(start <= files->next_fd))
		files->next_fd = fd + 1;
}

static always_inline void lower_hint(struct files *files, unsigned int fd)
{
	if (fd < files->next_fd)
		files->next_fd = fd;
}

/*
 * A reader's stretch: between the two, a table that it found is not freed and
 * a growth does not begin to copy.  Two plain stores to the task's own line;
 * the fence between them and the reads is the grower's to pay (grow.c).
 */
static always_inline void reader_enter(struct files_task *t)
{
	atomic_store_explicit(&t->reading, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static always_inline void reader_leave(struct files_task *t)
{
	atomic_store_explicit(&t->reading, false, memory_order_release);
}

static always_inline void file_hold(struct model_file *file)
{
	atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
}

#endif
