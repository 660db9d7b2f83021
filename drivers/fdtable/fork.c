// SPDX-License-Identifier: GPL-2.0-only
/* The copy of a table that fork makes, and close_range() with UNSHARE. */
#include <string.h>

#include "table.h"

/* What is not copied: [first, last]; none if first > last. */
struct hole {
	unsigned int first, last;
};

/* Slots that the copy needs: up to its highest descriptor, whole words. */
static unsigned int slots_needed(const struct fdtable *fdt, struct hole hole)
{
	unsigned int fd = fdt->max_fds;

	while (fd && (!bit_test(fdt->open_fds, fd - 1) ||
		      (fd - 1 >= hole.first && fd - 1 <= hole.last))) {
		fd--;
		if (fd % WORD_BITS == 0)
			while (fd && !fdt->open_fds[fd / WORD_BITS - 1])
				fd -= WORD_BITS;
	}
	return (fd + WORD_BITS - 1) / WORD_BITS * WORD_BITS;
}

/* Lock held.  A descriptor whose file is not there yet is free in the copy. */
static void copy_open(struct fdtable *to, const struct fdtable *from,
		      unsigned int slots, struct hole hole, enum shape shape)
{
	struct model_file *file;
	unsigned int fd, w;
	uint64_t bits;

	for (w = 0; w < slots / WORD_BITS; w++) {
		to->close_on_exec[w] = from->close_on_exec[w];
		for (bits = from->open_fds[w]; bits; bits &= bits - 1) {
			fd = w * WORD_BITS +
			     (unsigned int)__builtin_ctzll(bits);
			file = atomic_load_explicit(&from->fd[fd],
						    memory_order_acquire);
			if (!file || (fd >= hole.first && fd <= hole.last))
				continue;
			file_hold(file);
			atomic_store_explicit(&to->fd[fd], file,
					      memory_order_relaxed);
			set_open(to, fd, shape);
		}
	}
}

static struct files *files_copy(struct files_task *t, unsigned int first,
				unsigned int last)
{
	struct hole hole = {first, last};
	struct files *from = t->files, *to;
	struct fdtable *fdt;
	unsigned int slots;

	to = files_new(&(struct files_options){
		.variant = from->variant,
		.tasks = from->tasks_max,
		.limit = atomic_load(&from->limit),
		.nr_open = from->nr_open,
	});
	if (!to)
		return NULL;
	whole_take(t);
	for (;;) {
		slots = slots_needed(table_of(from), hole);
		if (slots <= table_of(to)->max_fds)
			break;
		/* Others may open more meanwhile: then once more. */
		whole_drop(t);
		fdt = table_new(slots, from->nr_open);
		if (!fdt) {
			files_free(to);
			errno = ENOMEM;
			return NULL;
		}
		table_free(table_of(to));
		atomic_store(&to->table, fdt);
		whole_take(t);
	}
	copy_open(table_of(to), table_of(from), slots, hole,
		  from->variant->shape);
	whole_drop(t);
	return to;
}

struct files *files_fork(struct files_task *t)
{
	return files_copy(t, 1, 0);
}

static void range_cloexec(struct files_task *t, unsigned int first,
			  unsigned int last)
{
	struct fdtable *fdt;
	unsigned int fd;

	whole_take(t);
	fdt = table_of(t->files);
	for (fd = first; fd <= last && fd < fdt->max_fds; fd++)
		bit_set(fdt->close_on_exec, fd);
	whole_drop(t);
}

int files_close_range(struct files_task *t, unsigned int first,
		      unsigned int last, unsigned int flags)
{
	bool cloexec = flags & FILES_RANGE_CLOEXEC;
	unsigned int number = t->number;
	struct files *copy;

	if (flags & ~(FILES_RANGE_UNSHARE | FILES_RANGE_CLOEXEC) ||
	    first > last)
		return -EINVAL;
	if (flags & FILES_RANGE_UNSHARE) {
		copy = cloexec ? files_copy(t, 1, 0)
			       : files_copy(t, first, last);
		if (!copy)
			return -ENOMEM;
		files_detach(t);
		files_attach(t, copy, number);
		if (!cloexec)
			return 0;
	}
	if (!cloexec)
		return t->variant->ops->close_range(t, first, last);
	range_cloexec(t, first, last);
	return 0;
}
