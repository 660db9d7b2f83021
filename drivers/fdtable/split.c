// SPDX-License-Identifier: GPL-2.0-only
/*
 * any-fd-split: the descriptors are dealt out to the tasks in chunks of one
 * line of the open bitmap, each part under a lock of its own.  No full bits
 * are kept (parts would share their words).  A part that has run out grows the
 * table while the limits allow, then takes from the others.
 */
#include "searches.h"

#define CHUNK_WORDS (PART_CHUNK / WORD_BITS)

/* The next word of the same part after @w, which may be past the table. */
static unsigned int next_own_word(const struct files *files, unsigned int w)
{
	if (++w % CHUNK_WORDS)
		return w;
	return w + CHUNK_WORDS * (files->tasks_max - 1);
}

/* Once round the task's part, from its hint; the hint follows. */
__attribute__((noinline)) unsigned int split_search(const struct fdtable *fdt,
						    struct files_task *t)
{
	unsigned int words = fdt->max_fds / WORD_BITS;
	unsigned int first = t->number % t->files->tasks_max * CHUNK_WORDS;
	unsigned int from = t->hint < words ? t->hint : first;
	unsigned int w = from;

	if (first >= words)
		return fdt->max_fds;
	do {
		if (fdt->open_fds[w] != WORD_FULL) {
			t->hint = w;
			return w * WORD_BITS +
			       zero_in_word(fdt->open_fds[w], 0);
		}
		w = next_own_word(t->files, w);
		if (w >= words)
			w = first;
	} while (w != from);
	return fdt->max_fds;
}

/* The first descriptor of the task's own part past the table. */
static unsigned int next_own_fd(const struct files_task *t,
				const struct fdtable *fdt)
{
	unsigned int parts = t->files->tasks_max;
	unsigned int chunk = fdt->max_fds / PART_CHUNK;

	while (chunk % parts != t->number % parts)
		chunk++;
	if (chunk * PART_CHUNK < fdt->max_fds)
		return fdt->max_fds;
	return chunk * PART_CHUNK;
}

__attribute__((noinline, cold)) int split_alloc(struct files_task *t,
						unsigned int start,
						unsigned int end,
						unsigned int flags)
{
	struct fdtable *fdt;
	unsigned int fd;
	int ret;

	whole_take(t);
again:
	fdt = table_of(t->files);
	fd = fdt->max_fds;
	if (!start) {
		fd = split_search(fdt, t);
		if (fd < fdt->max_fds && fd < end)
			goto found;
		fd = next_own_fd(t, fdt);
	}
	/* None of its own: grow for more, or take the lowest of anyone's. */
	if (start || fd >= end || fd >= t->files->nr_open)
		fd = larger(start,
			    next_zero(fdt->open_fds, fdt->max_fds, start));
	ret = -EMFILE;
	if (fd >= end)
		goto out;
	if (fd >= fdt->max_fds) {
		ret = table_expand(t, fd);
		if (ret < 0)
			goto out;
		goto again;
	}
found:
	set_open(fdt, fd, SHAPE_SPLIT);
	set_cloexec(fdt, fd, flags & FILES_CLOEXEC);
	ret = (int)fd;
out:
	whole_drop(t);
	return ret;
}
