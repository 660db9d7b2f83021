/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The template of alloc(), compiled for each search with each set of switches
 * that makes a difference to its code.  Included once by each file that makes
 * a set of functions, which defines
 *   SET       the set's name, part of each function's
 *   SET_LOCK  FILES_LOCK_QUEUED or FILES_LOCK_TAS
 * and may define
 *   SET_SEARCHES     its own choice from SEARCHES
 *   SET_AT_RUN_TIME  one function for each search, which looks at the switches
 *                    as it runs: for tests
 */
#include "searches.h"
#include "set.h"

#ifndef SET_SEARCHES
#define SET_SEARCHES SEARCHES
#endif

/*
 * A free descriptor marked taken, nothing installed; or -EMFILE, -ENOMEM.
 * @search, @shape and @switches are constants: the search is inlined, and what
 * the others do not ask for is not there.
 */
static always_inline int IN_SET(alloc)(struct files_task *t, unsigned int start,
				       unsigned int end, unsigned int flags,
				       search_fn *search, enum shape shape,
				       unsigned int switches)
{
	struct files *files = t->files;
	struct look look = {
		.task = t,
		.start = start,
		.end = end,
		.inlined = switches & SW_INLINE_SEARCH,
	};
	struct fdtable *fdt;
	unsigned int fd;
	int ret;

	lock_take(SET_LOCK, t->lock, t);
again:
	fdt = table_of(files);
	fd = start;
	if (fd < files->next_fd)
		fd = files->next_fd;
	if (likely(fd < fdt->max_fds)) {
		look.fdt = fdt;
		look.from = fd;
		fd = search(&look);
		if (look.unchecked) {
			/* A kernel would write past its bitmaps here. */
			ret = -EFAULT;
			if (unlikely(fd >= fdt->max_fds))
				goto out;
			goto found;
		}
	}
	if (shape == SHAPE_SPLIT && unlikely(fd >= fdt->max_fds || fd >= end)) {
		lock_drop(t->lock);
		return split_alloc(t, start, end, flags);
	}
	if (!(switches & SW_END_LATE)) {
		ret = -EMFILE;
		if (unlikely(fd >= end))
			goto out;
	}
	if (switches & SW_EAGER_EXPAND || unlikely(fd >= fdt->max_fds)) {
		ret = table_expand(t, fd);
		if (unlikely(ret < 0))
			goto out;
		if (unlikely(ret))
			goto again;
	}
	if (switches & SW_END_LATE) {
		ret = -EMFILE;
		if (unlikely(fd >= end))
			goto out;
	}
found:
	if (shape == SHAPE_LOWEST || shape == SHAPE_TOP)
		raise_hint(files, start, fd);
	set_open(fdt, fd, shape);
	set_cloexec(fdt, fd, flags & FILES_CLOEXEC);
	if (switches & SW_SANITY_READ &&
	    unlikely(
		    atomic_load_explicit(&fdt->fd[fd], memory_order_relaxed))) {
		table_complain(fd);
		atomic_store_explicit(&fdt->fd[fd], NULL, memory_order_relaxed);
	}
	ret = (int)fd;
out:
	lock_drop(t->lock);
	return ret;
}

#define ALLOC(id, shape, switches)                                             \
	NOT_MERGED static int ALLOC_NAME(id, switches)(                        \
		struct files_task * t, unsigned int start, unsigned int end,   \
		unsigned int flags)                                            \
	{                                                                      \
		return IN_SET(alloc)(t, start, end, flags, search_##id, shape, \
				     ALLOC_SWITCHES(switches));                \
	}
#define ALL_SWITCHES(X, id, shape)                                             \
	X(id, shape, 0)                                                        \
	X(id, shape, 1)                                                        \
	X(id, shape, 2)                                                        \
	X(id, shape, 3)                                                        \
	X(id, shape, 4)                                                        \
	X(id, shape, 5)                                                        \
	X(id, shape, 6)                                                        \
	X(id, shape, 7)                                                        \
	X(id, shape, 8)                                                        \
	X(id, shape, 9)                                                        \
	X(id, shape, 10)                                                       \
	X(id, shape, 11)                                                       \
	X(id, shape, 12)                                                       \
	X(id, shape, 13)                                                       \
	X(id, shape, 14)                                                       \
	X(id, shape, 15)

/* Under a sanitizer nothing is measured: a sixteenth to compile will do. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef SET_AT_RUN_TIME
#define SET_AT_RUN_TIME
#endif
#ifdef SET_AT_RUN_TIME
#define ALLOC_NAME(id, switches) IN_SET(alloc_##id)
#define ALLOC_SWITCHES(constant) t->variant->switches
#define ALLOCS(id, name, shape, about, why) ALLOC(id, shape, 0)
#else
#define ALLOC_NAME(id, switches) IN_SET(alloc_##id##_##switches)
#define ALLOC_SWITCHES(constant) constant
#define ALLOCS(id, name, shape, about, why) ALL_SWITCHES(ALLOC, id, shape)
#endif
SET_SEARCHES(ALLOCS)

#define ALLOC_POINTER(id, shape, switches)                                     \
	[switches] = ALLOC_NAME(id, switches),
#define ALLOC_ROW(id, name, shape, about, why)                                 \
	[SEARCH_##id] = {ALL_SWITCHES(ALLOC_POINTER, id, shape)},
static alloc_fn *const IN_SET(allocs)[SEARCH_COUNT][SW_ALLOC_MASK + 1] = {
	SET_SEARCHES(ALLOC_ROW)};

#undef ALLOC
#undef ALLOC_NAME
#undef ALLOC_SWITCHES
#undef ALL_SWITCHES
#undef ALLOCS
#undef ALLOC_POINTER
#undef ALLOC_ROW
