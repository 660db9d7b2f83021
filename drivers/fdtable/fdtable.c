// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of the model: what the kernel does around file_lock.  What is done
 * under it is in alloc.h and close.h.
 */
#include "fdtable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "table.h"

void table_complain(unsigned int fd)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr, "fdtable: slot %u is free but not empty\n", fd);
}

static struct model_lock *only_lock(struct files *files)
{
	return files->variant->switches & SW_SPLIT_LINES ? &files->lock_apart
							 : &files->lock;
}

void whole_take(struct files_task *t)
{
	struct files *files = t->files;
	unsigned int i;

	if (!files->parts) {
		lock_take(files->variant->lock, t->lock, t);
		return;
	}
	for (i = 0; i < files->tasks_max; i++)
		lock_take(files->variant->lock, &files->parts[i].lock, t);
}

void whole_drop(struct files_task *t)
{
	struct files *files = t->files;
	unsigned int i;

	if (!files->parts) {
		lock_drop(t->lock);
		return;
	}
	for (i = files->tasks_max; i--;)
		lock_drop(&files->parts[i].lock);
}

static void embed(struct files *files)
{
	bool apart = files->variant->switches & SW_SPLIT_LINES;

	files->embedded = (struct fdtable){
		.max_fds = EMBEDDED_SLOTS,
		.fd = files->fd_0 + (apart ? 4 : 0),
		.close_on_exec = files->close_on_exec_0,
		.open_fds = files->open_fds_0,
		.full_fds_bits = files->full_fds_bits_0,
		.top_bits = files->top_bits_0,
	};
	atomic_store(&files->table, &files->embedded);
}

struct files *files_new(const struct files_options *opt)
{
	size_t bytes = sizeof(struct files);
	struct files *files;

	if (!opt->tasks || opt->tasks > LOCK_TASKS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (opt->tasks > 1 && grace_prepare() < 0)
		return NULL;
	files = pages_new(&bytes);
	if (!files)
		return NULL;
	files->bytes = bytes;
	files->variant = opt->variant;
	files->tasks_max = opt->tasks;
	files->nr_open = opt->nr_open;
	files->limit = opt->limit;
	pthread_mutex_init(&files->roster, NULL);
	embed(files);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers it is */
	files->tasks = calloc(opt->tasks, sizeof(*files->tasks));
	if (!files->tasks)
		goto fail;
	if (opt->variant->shape == SHAPE_SPLIT) {
		files->parts = aligned_alloc(
			CACHE_LINE, opt->tasks * sizeof(*files->parts));
		if (!files->parts)
			goto fail;
		memset(files->parts, 0, opt->tasks * sizeof(*files->parts));
	}
	return files;
fail:
	files_free(files);
	errno = ENOMEM;
	return NULL;
}

/* Close what is open: nobody else uses the table. */
static void put_all(struct files *files)
{
	struct fdtable *fdt = table_of(files);
	struct model_file *file;
	unsigned int w;
	uint64_t bits;

	for (w = 0; w < fdt->max_fds / WORD_BITS; w++) {
		for (bits = fdt->open_fds[w]; bits; bits &= bits - 1) {
			file = fdt->fd[w * WORD_BITS +
				       (unsigned int)__builtin_ctzll(bits)];
			if (file)
				files_put(file);
		}
	}
}

void files_free(struct files *files)
{
	if (!files)
		return;
	put_all(files);
	tables_free(files);
	pthread_mutex_destroy(&files->roster);
	free(files->tasks);
	free(files->parts);
	munmap(files, files->bytes);
}

void files_attach(struct files_task *t, struct files *files,
		  unsigned int number)
{
	unsigned int part = number % files->tasks_max;

	assert(number < files->tasks_max && !files->tasks[number]);
	memset(t, 0, sizeof(*t));
	t->files = files;
	t->variant = files->variant;
	t->number = number;
	t->hint = number;
	t->lock = only_lock(files);
	if (files->parts) {
		t->lock = &files->parts[part].lock;
		t->hint = part * (PART_CHUNK / WORD_BITS);
	}
	pthread_mutex_lock(&files->roster);
	files->tasks[number] = t;
	pthread_mutex_unlock(&files->roster);
	whole_take(t);
	files->attached++;
	whole_drop(t);
}

void files_detach(struct files_task *t)
{
	struct files *files = t->files;

	whole_take(t);
	files->attached--;
	whole_drop(t);
	pthread_mutex_lock(&files->roster);
	files->tasks[t->number] = NULL;
	pthread_mutex_unlock(&files->roster);
	t->files = NULL;
}

static inline unsigned int limit_of(struct files_task *t)
{
	return atomic_load_explicit(&t->files->limit, memory_order_relaxed);
}

static inline int alloc(struct files_task *t, unsigned int start,
			unsigned int flags)
{
	return t->variant->alloc(t, start, limit_of(t), flags);
}

static __attribute__((noinline, cold)) void
install_resizing(struct files_task *t, unsigned int fd, struct model_file *file)
{
	unsigned int turns = 0;

	for (;;) {
		while (atomic_load_explicit(&t->files->resizing,
					    memory_order_acquire))
			spin(&turns);
		whole_take(t);
		if (!atomic_load_explicit(&t->files->resizing,
					  memory_order_relaxed))
			break;
		whole_drop(t);
	}
	atomic_store_explicit(&table_of(t->files)->fd[fd], file,
			      memory_order_release);
	whole_drop(t);
}

/* Outside the lock, as fd_install(); the file's count goes to the table. */
static inline void install(struct files_task *t, unsigned int fd,
			   struct model_file *file)
{
	reader_enter(t);
	if (unlikely(atomic_load_explicit(&t->files->resizing,
					  memory_order_acquire))) {
		reader_leave(t);
		install_resizing(t, fd, file);
		return;
	}
	atomic_store_explicit(&table_of(t->files)->fd[fd], file,
			      memory_order_release);
	reader_leave(t);
}

/* NOLINTNEXTLINE(misc-no-recursion): a tail call, from the start again */
struct model_file *files_get(struct files_task *t, unsigned int fd)
{
	struct model_file *file = NULL;
	struct fdtable *fdt;

	reader_enter(t);
	fdt = table_of(t->files);
	if (likely(fd < fdt->max_fds))
		file = atomic_load_explicit(&fdt->fd[fd], memory_order_acquire);
	if (likely(file)) {
		file_hold(file);
		/* Closed or replaced before the count was taken? */
		if (unlikely(atomic_load_explicit(&fdt->fd[fd],
						  memory_order_acquire) !=
			     file)) {
			files_put(file);
			reader_leave(t);
			return files_get(t, fd);
		}
	}
	reader_leave(t);
	return file;
}

void files_put(struct model_file *file)
{
	atomic_fetch_sub_explicit(&file->count, 1, memory_order_release);
}

int files_open(struct files_task *t, struct model_file *file,
	       unsigned int flags)
{
	int fd = alloc(t, 0, flags);

	if (likely(fd >= 0)) {
		file_hold(file);
		install(t, (unsigned int)fd, file);
	}
	return fd;
}

int files_dup(struct files_task *t, unsigned int fd)
{
	struct model_file *file = files_get(t, fd);
	int ret;

	if (unlikely(!file))
		return -EBADF;
	ret = alloc(t, 0, 0);
	if (likely(ret >= 0))
		install(t, (unsigned int)ret, file);
	else
		files_put(file);
	return ret;
}

int files_dupfd(struct files_task *t, unsigned int fd, unsigned int start,
		unsigned int flags)
{
	struct model_file *file = files_get(t, fd);
	int ret;

	if (unlikely(!file))
		return -EBADF;
	ret = start < limit_of(t) ? alloc(t, start, flags) : -EINVAL;
	if (likely(ret >= 0))
		install(t, (unsigned int)ret, file);
	else
		files_put(file);
	return ret;
}

int files_dup3(struct files_task *t, unsigned int oldfd, unsigned int newfd,
	       unsigned int flags)
{
	struct model_file *file;

	if (unlikely(flags & ~FILES_CLOEXEC))
		return -EINVAL;
	if (unlikely(oldfd == newfd)) {
		if (flags)
			return -EINVAL;
		file = files_get(t, oldfd);
		if (!file)
			return -EBADF;
		files_put(file);
		return (int)newfd;
	}
	if (unlikely(newfd >= limit_of(t)))
		return -EBADF;
	return t->variant->ops->dup3(t, oldfd, newfd, flags);
}

int files_close(struct files_task *t, unsigned int fd)
{
	return t->variant->ops->close(t, fd);
}

int files_reserve(struct files_task *t, unsigned int flags)
{
	return alloc(t, 0, flags);
}

void files_unreserve(struct files_task *t, unsigned int fd)
{
	t->variant->ops->unreserve(t, fd);
}

int files_grow(struct files_task *t, unsigned int slots)
{
	int ret;

	if (!slots)
		return 0;
	whole_take(t);
	do
		ret = table_expand(t, slots - 1);
	while (ret > 0);
	whole_drop(t);
	return ret;
}

int files_hold(struct files_task *t, unsigned int fd, struct model_file *file)
{
	struct fdtable *fdt = table_of(t->files);
	int ret;

	if (unlikely(fd >= fdt->max_fds)) {
		ret = files_grow(t, fd + 1);
		if (ret)
			return ret;
		fdt = table_of(t->files);
	}
	if (bit_test(fdt->open_fds, fd))
		return -EBUSY;
	set_open(fdt, fd, t->variant->shape);
	set_cloexec(fdt, fd, false);
	file_hold(file);
	atomic_store_explicit(&fdt->fd[fd], file, memory_order_release);
	return 0;
}

unsigned int files_slots(const struct files *files)
{
	return table_of(files)->max_fds;
}

bool files_is_open(const struct files *files, unsigned int fd)
{
	const struct fdtable *fdt = table_of(files);

	return fd < fdt->max_fds && bit_test(fdt->open_fds, fd);
}

int files_cloexec(const struct files *files, unsigned int fd)
{
	if (!files_is_open(files, fd))
		return -EBADF;
	return bit_test(table_of(files)->close_on_exec, fd);
}

void files_set_limit(struct files *files, unsigned int limit)
{
	atomic_store_explicit(&files->limit, limit, memory_order_relaxed);
}

size_t files_memory(const struct files *files)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers it is */
	size_t tasks = files->tasks_max * sizeof(*files->tasks);
	size_t bytes = files->bytes + table_of(files)->bytes + tasks;
	const struct fdtable *old;

	if (files->parts)
		bytes += files->tasks_max * sizeof(*files->parts);
	for (old = files->retired; old; old = old->retired)
		bytes += old->bytes;
	return bytes;
}

unsigned int files_regions(struct files *files, struct files_region out[2])
{
	struct fdtable *fdt = table_of(files);

	out[0] = (struct files_region){files, files->bytes};
	if (!fdt->bytes)
		return 1;
	out[1] = (struct files_region){fdt, fdt->bytes};
	return 2;
}
