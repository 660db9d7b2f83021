/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The searches for the lowest free descriptor and the switches around them,
 * for a kernel: the same words as the userspace model's (drivers/fdtable).
 * Included by a transformed fs/file.c and by the livepatch.
 *
 * Each search with each set of switches is a function of its own, compiled
 * from fdv_alloc() below with both known, so that none pays for another.
 *
 * Every one keeps full_fds_bits right, also the searches that do not read it:
 * a table outlives a change of the variant.  That is why three-level is not
 * here: its third bitmap would have to be kept by every close, dup2 and fork
 * under every variant, which would add instructions to all.  first-word-v1
 * is not here either: it hands out descriptors beyond the table.
 *
 * Whoever includes this says first:
 *	fdv_expand(files, fd)	expand_files(); the lock is held
 *	FDV_EXPAND_TELLS	1 where that returns 1 after it expanded (up to
 *				6.12), 0 where it returns 0 (6.13 on)
 */
#ifndef FDSCALE_VARIANTS_H
#define FDSCALE_VARIANTS_H

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/* Bits of a set of switches; those of alloc come first, they make the clone. */
#define FDV_SANITY_READ 1u
#define FDV_EAGER_EXPAND 2u
#define FDV_END_LATE 4u
#define FDV_ALLOC_SETS 8
#define FDV_COND_CLEAR 8u
/* Not a switch: our own code even where the tree's own does the same. */
#define FDV_CLONE 16u

/*
 * A search gets s = max(start, next_fd), which is below max_fds, and returns
 * the first free descriptor from there on, or max_fds.
 */
static __always_inline unsigned int
fdv_one_level(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	return find_next_zero_bit(fdt->open_fds, fdt->max_fds, s);
}

static __always_inline unsigned int
fdv_two_level(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	unsigned int slots = fdt->max_fds;
	unsigned int from;

	from = find_next_zero_bit(fdt->full_fds_bits, slots / BITS_PER_LONG,
				  s / BITS_PER_LONG) *
	       BITS_PER_LONG;
	if (from >= slots)
		return slots;
	if (from < s)
		from = s;
	return find_next_zero_bit(fdt->open_fds, slots, from);
}

/* v2, June 2024: reads word 0 on every allocation. */
static __always_inline unsigned int
fdv_first_word_v2(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	if (start == 0 && ~fdt->open_fds[0])
		return find_next_zero_bit(fdt->open_fds, BITS_PER_LONG, s);
	return fdv_two_level(fdt, s, start);
}

/* v3: reads word 0 only where the answer can be in it. */
static __always_inline unsigned int
fdv_first_word(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	unsigned int fd;

	if (s < BITS_PER_LONG) {
		fd = find_next_zero_bit(fdt->open_fds, BITS_PER_LONG, s);
		if (fd < BITS_PER_LONG)
			return fd;
	}
	return fdv_two_level(fdt, s, start);
}

/* v4, v5, merged for 6.13. */
static __always_inline unsigned int
fdv_next_fd_word(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	unsigned int word = s / BITS_PER_LONG;
	unsigned int bit;

	bit = find_next_zero_bit(&fdt->open_fds[word], BITS_PER_LONG,
				 s % BITS_PER_LONG);
	if (bit < BITS_PER_LONG)
		return word * BITS_PER_LONG + bit;
	return fdv_two_level(fdt, s, start);
}

/* In review: asks the full bit before it looks into the word. */
static __always_inline unsigned int
fdv_next_fd_word_checked(const struct fdtable *fdt, unsigned int s,
			 unsigned int start)
{
	unsigned int word = s / BITS_PER_LONG;
	unsigned int bit;

	if (!test_bit(word, fdt->full_fds_bits)) {
		bit = find_next_zero_bit(&fdt->open_fds[word], BITS_PER_LONG,
					 s % BITS_PER_LONG);
		if (bit < BITS_PER_LONG)
			return word * BITS_PER_LONG + bit;
	}
	return fdv_two_level(fdt, s, start);
}

/*
 * The rest of the line of 8 words that holds word s / 64.  A table of 512
 * slots or more has its bitmaps at a multiple of 64 bytes, so that a line of
 * words is a cache line.
 */
static __always_inline unsigned int
fdv_next_fd_line(const struct fdtable *fdt, unsigned int s, unsigned int start)
{
	unsigned int word = s / BITS_PER_LONG;
	unsigned int end = min((word | 7u) + 1, fdt->max_fds / BITS_PER_LONG);
	unsigned long free;

	free = ~fdt->open_fds[word] & (~0ul << (s % BITS_PER_LONG));
	for (;;) {
		if (free)
			return word * BITS_PER_LONG + __ffs(free);
		if (++word >= end)
			break;
		free = ~fdt->open_fds[word];
	}
	return fdv_two_level(fdt, s, start);
}

/* Every search: what it is in C, what users call it. */
#define FDV_SEARCHES(X)                                                        \
	X(one_level, "one-level")                                              \
	X(two_level, "two-level")                                              \
	X(first_word_v2, "first-word-v2")                                      \
	X(first_word, "first-word")                                            \
	X(next_fd_word, "next_fd-word")                                        \
	X(next_fd_word_checked, "next_fd-word-checked")                        \
	X(next_fd_line, "next_fd-line")

typedef unsigned int (*fdv_search)(const struct fdtable *fdt, unsigned int s,
				   unsigned int start);
typedef int (*fdv_alloc_fn)(unsigned int start, unsigned int end,
			    unsigned int flags);
typedef struct file *(*fdv_pick_fn)(struct files_struct *files,
				    unsigned int fd);
typedef void (*fdv_put_fn)(struct files_struct *files, unsigned int fd);

/* Allocate: @search and @set are constants wherever this is called. */
static __always_inline int fdv_alloc(unsigned int start, unsigned int end,
				     unsigned int flags, fdv_search search,
				     const unsigned int set)
{
	struct files_struct *files = current->files;
	struct fdtable *fdt;
	unsigned int fd;
	int ret;

	spin_lock(&files->file_lock);
again:
	fdt = files_fdtable(files);
	fd = files->next_fd;
	if (fd < start)
		fd = start;
	if (likely(fd < fdt->max_fds))
		fd = search(fdt, fd, start);

	ret = -EMFILE;
	if (!(set & FDV_END_LATE) && unlikely(fd >= end))
		goto out;
	if (set & FDV_EAGER_EXPAND) {
		unsigned int slots = fdt->max_fds;

		ret = fdv_expand(files, fd);
		if (ret < 0)
			goto out;
		if (FDV_EXPAND_TELLS ? ret > 0 : fd >= slots)
			goto again;
	} else if (unlikely(fd >= fdt->max_fds)) {
		ret = fdv_expand(files, fd);
		if (ret < 0)
			goto out;
		goto again;
	}
	if ((set & FDV_END_LATE) && unlikely(fd >= end)) {
		ret = -EMFILE;
		goto out;
	}

	if (start <= files->next_fd)
		files->next_fd = fd + 1;
	__set_bit(fd, fdt->open_fds);
	if (!~fdt->open_fds[fd / BITS_PER_LONG])
		__set_bit(fd / BITS_PER_LONG, fdt->full_fds_bits);
	if (flags & O_CLOEXEC)
		__set_bit(fd, fdt->close_on_exec);
	else if (test_bit(fd, fdt->close_on_exec))
		__clear_bit(fd, fdt->close_on_exec);
	ret = fd;
	if ((set & FDV_SANITY_READ) &&
	    rcu_access_pointer(fdt->fd[fd]) != NULL) {
		pr_warn("fdscale: slot %u was not empty\n", fd);
		rcu_assign_pointer(fdt->fd[fd], NULL);
	}
out:
	spin_unlock(&files->file_lock);
	return ret;
}

/* Give a number back.  The lock is held. */
static __always_inline void fdv_put(struct files_struct *files, unsigned int fd,
				    const unsigned int set)
{
	struct fdtable *fdt = files_fdtable(files);
	unsigned int word = fd / BITS_PER_LONG;

	__clear_bit(fd, fdt->open_fds);
	if (!(set & FDV_COND_CLEAR) || test_bit(word, fdt->full_fds_bits))
		__clear_bit(word, fdt->full_fds_bits);
	if (fd < files->next_fd)
		files->next_fd = fd;
}

/* Take the file out of its slot, or NULL when there is none.  Locked. */
static __always_inline struct file *
fdv_pick(struct files_struct *files, unsigned int fd, const unsigned int set)
{
	struct fdtable *fdt = files_fdtable(files);
	struct file *file;

	if (fd >= fdt->max_fds)
		return NULL;
	fd = array_index_nospec(fd, fdt->max_fds);
	file = rcu_dereference_raw(fdt->fd[fd]);
	if (!file)
		return NULL;
	rcu_assign_pointer(fdt->fd[fd], NULL);
	fdv_put(files, fd, set);
	return file;
}

#define FDV_ONE_CLONE(search, set)                                             \
	static noinline int fdv_alloc_##search##_##set(                        \
		unsigned int start, unsigned int end, unsigned int flags)      \
	{                                                                      \
		return fdv_alloc(start, end, flags, fdv_##search, set);        \
	}
#define FDV_CLONES(search, name)                                               \
	FDV_ONE_CLONE(search, 0)                                               \
	FDV_ONE_CLONE(search, 1)                                               \
	FDV_ONE_CLONE(search, 2)                                               \
	FDV_ONE_CLONE(search, 3)                                               \
	FDV_ONE_CLONE(search, 4)                                               \
	FDV_ONE_CLONE(search, 5)                                               \
	FDV_ONE_CLONE(search, 6)                                               \
	FDV_ONE_CLONE(search, 7)
FDV_SEARCHES(FDV_CLONES)

#define FDV_CLOSES(name, set)                                                  \
	static noinline struct file *fdv_pick_##name(                          \
		struct files_struct *files, unsigned int fd)                   \
	{                                                                      \
		return fdv_pick(files, fd, set);                               \
	}                                                                      \
	static noinline void fdv_put_##name(struct files_struct *files,        \
					    unsigned int fd)                   \
	{                                                                      \
		fdv_put(files, fd, set);                                       \
	}
FDV_CLOSES(always, 0)
FDV_CLOSES(if_set, FDV_COND_CLEAR)

#endif
