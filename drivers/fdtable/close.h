/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The templates of what takes the lock and does not search.  Included as
 * alloc.h is; compiled for each shape, with cond-clear and without, or for
 * those in SET_OPS.
 */
#include "set.h"
#include "table.h"

static always_inline void IN_SET(take)(struct files_task *t, enum shape shape)
{
	if (shape == SHAPE_SPLIT)
		whole_take(t);
	else
		lock_take(SET_LOCK, t->lock, t);
}

static always_inline void IN_SET(drop)(struct files_task *t, enum shape shape)
{
	if (shape == SHAPE_SPLIT)
		whole_drop(t);
	else
		lock_drop(t->lock);
}

/* Lock held: @fd is free from now on.  Its file, or NULL: it had none. */
static always_inline struct model_file *
IN_SET(pick)(struct files_task *t, unsigned int fd, enum shape shape, bool cond)
{
	struct fdtable *fdt = table_of(t->files);
	struct model_file *file;

	if (unlikely(fd >= fdt->max_fds))
		return NULL;
	file = atomic_load_explicit(&fdt->fd[fd], memory_order_acquire);
	if (likely(file)) {
		atomic_store_explicit(&fdt->fd[fd], NULL, memory_order_relaxed);
		clear_open(fdt, fd, shape, cond);
		lower_hint(t->files, fd);
	}
	return file;
}

static always_inline int IN_SET(close)(struct files_task *t, unsigned int fd,
				       enum shape shape, bool cond)
{
	struct model_lock *lock =
		shape == SHAPE_SPLIT ? part_lock(t->files, fd) : t->lock;
	struct model_file *file;

	lock_take(SET_LOCK, lock, t);
	file = IN_SET(pick)(t, fd, shape, cond);
	lock_drop(lock);
	if (unlikely(!file))
		return -EBADF;
	files_put(file);
	return 0;
}

static always_inline void IN_SET(unreserve)(struct files_task *t,
					    unsigned int fd, enum shape shape,
					    bool cond)
{
	struct model_lock *lock =
		shape == SHAPE_SPLIT ? part_lock(t->files, fd) : t->lock;

	lock_take(SET_LOCK, lock, t);
	clear_open(table_of(t->files), fd, shape, cond);
	lower_hint(t->files, fd);
	lock_drop(lock);
}

/* The limit and equal descriptors are the caller's to check. */
static always_inline int IN_SET(dup3)(struct files_task *t, unsigned int oldfd,
				      unsigned int newfd, unsigned int flags,
				      enum shape shape)
{
	struct model_file *file, *replaced;
	struct fdtable *fdt;
	int ret;

	IN_SET(take)(t, shape);
	do
		ret = table_expand(t, newfd);
	while (ret > 0);
	fdt = table_of(t->files);
	file = oldfd < fdt->max_fds ? atomic_load_explicit(&fdt->fd[oldfd],
							   memory_order_acquire)
				    : NULL;
	if (!file || ret == -EMFILE) {
		ret = -EBADF;
		goto out;
	}
	if (ret < 0)
		goto out;
	replaced = atomic_load_explicit(&fdt->fd[newfd], memory_order_acquire);
	ret = -EBUSY; /* reserved, and its file not there yet */
	if (!replaced && bit_test(fdt->open_fds, newfd))
		goto out;
	file_hold(file);
	atomic_store_explicit(&fdt->fd[newfd], file, memory_order_release);
	set_open(fdt, newfd, shape);
	set_cloexec(fdt, newfd, flags & FILES_CLOEXEC);
	IN_SET(drop)(t, shape);
	if (replaced)
		files_put(replaced);
	return (int)newfd;
out:
	IN_SET(drop)(t, shape);
	return ret;
}

static always_inline int IN_SET(close_range)(struct files_task *t,
					     unsigned int first,
					     unsigned int last,
					     enum shape shape, bool cond)
{
	struct model_file *file;
	unsigned int fd, max;

	IN_SET(take)(t, shape);
	max = table_of(t->files)->max_fds;
	for (fd = first; fd <= last && fd < max; fd++) {
		file = IN_SET(pick)(t, fd, shape, cond);
		if (!file)
			continue;
		/* As the kernel does: the last put may take long. */
		IN_SET(drop)(t, shape);
		files_put(file);
		IN_SET(take)(t, shape);
	}
	IN_SET(drop)(t, shape);
	return 0;
}

#define OPS(shape, cond)                                                       \
	NOT_MERGED static int IN_SET(close_##shape##cond)(                     \
		struct files_task * t, unsigned int fd)                        \
	{                                                                      \
		return IN_SET(close)(t, fd, shape, cond);                      \
	}                                                                      \
	NOT_MERGED static void IN_SET(unreserve_##shape##cond)(                \
		struct files_task * t, unsigned int fd)                        \
	{                                                                      \
		IN_SET(unreserve)(t, fd, shape, cond);                         \
	}                                                                      \
	NOT_MERGED static int IN_SET(dup3_##shape##cond)(                      \
		struct files_task * t, unsigned int oldfd, unsigned int newfd, \
		unsigned int flags)                                            \
	{                                                                      \
		return IN_SET(dup3)(t, oldfd, newfd, flags, shape);            \
	}                                                                      \
	NOT_MERGED static int IN_SET(close_range_##shape##cond)(               \
		struct files_task * t, unsigned int first, unsigned int last)  \
	{                                                                      \
		return IN_SET(close_range)(t, first, last, shape, cond);       \
	}
#ifndef SET_OPS
#define SET_OPS(X)                                                             \
	X(SHAPE_LOWEST, 0)                                                     \
	X(SHAPE_LOWEST, 1)                                                     \
	X(SHAPE_TOP, 0)                                                        \
	X(SHAPE_TOP, 1)                                                        \
	X(SHAPE_ANY, 0)                                                        \
	X(SHAPE_ANY, 1)                                                        \
	X(SHAPE_SPLIT, 0)                                                      \
	X(SHAPE_SPLIT, 1)
#endif
SET_OPS(OPS)

#define OPS_POINTERS(shape, cond)                                              \
	[shape][cond] = {                                                      \
		IN_SET(close_##shape##cond),                                   \
		IN_SET(unreserve_##shape##cond),                               \
		IN_SET(dup3_##shape##cond),                                    \
		IN_SET(close_range_##shape##cond),                             \
	},
static const struct table_ops IN_SET(ops)[SHAPE_SPLIT + 1][2] = {
	SET_OPS(OPS_POINTERS)};

const struct variant_set SET_PASTE(set, SET) = {
	.allocs = IN_SET(allocs),
	.ops = IN_SET(ops),
};

#undef OPS
#undef OPS_POINTERS
