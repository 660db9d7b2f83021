// SPDX-License-Identifier: GPL-2.0-only
/*
 * Growth, and when an old table may go.
 *
 * Readers (files_get, and the installing of a file) take no lock; each marks
 * its stretch in its own handle with plain stores.  Whoever grows waits until
 * every other attached task has been seen outside such a stretch, once between
 * raising `resizing` and copying (the kernel's synchronize_rcu() does that);
 * membarrier(2) stands in for the fence that readers leave out.  A replaced
 * table is freed at once when no other task is attached, else after the next
 * such wait, or with the table.
 */
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "table.h"

void *pages_new(size_t *bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	*bytes = (*bytes + page - 1) / page * page;
	p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* The power of two, 128 at least, that holds @slots, but not past @nr_open. */
static unsigned int round_slots(unsigned int slots, unsigned int nr_open)
{
	uint64_t n = 2ull * EMBEDDED_SLOTS;

	while (n < slots)
		n *= 2;
	if (n > nr_open)
		n = (nr_open + WORD_BITS - 1ull) / WORD_BITS * WORD_BITS;
	return (unsigned int)n;
}

struct fdtable *table_new(unsigned int slots, unsigned int nr_open)
{
	unsigned int max = round_slots(slots, nr_open);
	size_t words = max / WORD_BITS;
	size_t full = (words + WORD_BITS - 1) / WORD_BITS;
	size_t top = (full + WORD_BITS - 1) / WORD_BITS;
	size_t maps = (2 * words + full + top) * sizeof(uint64_t);
	size_t bytes;
	struct fdtable *fdt;

	/* One mapping: the head's line, the bitmaps' lines, fd[]. */
	static_assert(sizeof(*fdt) <= CACHE_LINE, "the head is one line");
	maps = (maps + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	bytes = CACHE_LINE + maps + max * sizeof(fdt->fd[0]);
	fdt = pages_new(&bytes);
	if (!fdt)
		return NULL;
	fdt->max_fds = max;
	fdt->open_fds = (uint64_t *)((char *)fdt + CACHE_LINE);
	fdt->close_on_exec = fdt->open_fds + words;
	fdt->full_fds_bits = fdt->close_on_exec + words;
	fdt->top_bits = fdt->full_fds_bits + full;
	fdt->fd = (void *)((char *)fdt + CACHE_LINE + maps);
	fdt->bytes = bytes;
	return fdt;
}

void table_free(struct fdtable *fdt)
{
	if (fdt->bytes)
		munmap(fdt, fdt->bytes);
}

int grace_prepare(void)
{
	return (int)syscall(SYS_membarrier,
			    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

/* Every other attached task has left the stretch it may have been in. */
static void grace_wait(struct files_task *t)
{
	struct files *files = t->files;
	unsigned int i, turns = 0;

	pthread_mutex_lock(&files->roster);
	/* A fork since files_new() may have lost the registration. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) &&
	    !grace_prepare())
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (i = 0; i < files->tasks_max; i++) {
		struct files_task *other = files->tasks[i];

		if (!other || other == t)
			continue;
		while (atomic_load_explicit(&other->reading,
					    memory_order_acquire))
			spin(&turns);
	}
	pthread_mutex_unlock(&files->roster);
}

static void copy_table(struct fdtable *to, const struct fdtable *from)
{
	size_t words = from->max_fds / WORD_BITS;
	size_t full = (words + WORD_BITS - 1) / WORD_BITS;
	size_t top = (full + WORD_BITS - 1) / WORD_BITS;
	unsigned int i;

	for (i = 0; i < from->max_fds; i++)
		atomic_store_explicit(
			&to->fd[i],
			atomic_load_explicit(&from->fd[i],
					     memory_order_relaxed),
			memory_order_relaxed);
	memcpy(to->open_fds, from->open_fds, words * sizeof(uint64_t));
	memcpy(to->close_on_exec, from->close_on_exec,
	       words * sizeof(uint64_t));
	memcpy(to->full_fds_bits, from->full_fds_bits, full * sizeof(uint64_t));
	memcpy(to->top_bits, from->top_bits, top * sizeof(uint64_t));
}

static void free_retired(struct fdtable *list)
{
	struct fdtable *next;

	for (; list; list = next) {
		next = list->retired;
		table_free(list);
	}
}

/* @fd is beyond the table, the lock is held; nobody else is growing it. */
static int grow(struct files_task *t, unsigned int fd)
{
	struct files *files = t->files;
	struct fdtable *old, *fdt, *gone = NULL;
	bool shared = files->attached > 1;

	atomic_store_explicit(&files->resizing, true, memory_order_relaxed);
	if (shared) {
		gone = files->retired;
		files->retired = NULL;
	}
	whole_drop(t);
	fdt = table_new(fd + 1, files->nr_open);
	if (shared)
		grace_wait(t);
	free_retired(gone);
	whole_take(t);
	if (fdt) {
		old = table_of(files);
		copy_table(fdt, old);
		atomic_store_explicit(&files->table, fdt, memory_order_release);
		if (files->attached == 1) {
			table_free(old);
			free_retired(files->retired);
			files->retired = NULL;
		} else if (old->bytes) {
			old->retired = files->retired;
			files->retired = old;
		}
	}
	atomic_store_explicit(&files->resizing, false, memory_order_release);
	return fdt ? 1 : -ENOMEM;
}

__attribute__((noinline)) int table_expand(struct files_task *t,
					   unsigned int fd)
{
	struct files *files = t->files;
	unsigned int turns = 0;
	int waited = 0;

	while (fd >= table_of(files)->max_fds) {
		if (fd >= files->nr_open)
			return -EMFILE;
		if (!atomic_load_explicit(&files->resizing,
					  memory_order_relaxed))
			return grow(t, fd);
		whole_drop(t);
		while (atomic_load_explicit(&files->resizing,
					    memory_order_acquire))
			spin(&turns);
		whole_take(t);
		waited = 1;
	}
	return waited;
}

void tables_free(struct files *files)
{
	free_retired(files->retired);
	table_free(table_of(files));
}
