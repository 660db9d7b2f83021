/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of a workload, served by the backend that the file is compiled
 * for.  All return as the C library does: -1 and errno.  The model's stand for
 * the descriptor part of the call alone: no path is walked, no file made.
 */
#ifndef FDSCALE_FD_H
#define FDSCALE_FD_H

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spin.h"
#include "workload.h"

#ifdef FD_BACKEND_MODEL

/* What a syscall does outside the lock, as a time; then the result. */
static inline int fd_result(const struct task *t, int r)
{
	if (unlikely(t->think))
		spin(t->think);
	if (likely(r >= 0))
		return r;
	errno = -r;
	return -1;
}

static inline int fd_open(struct task *t, const struct target *what, int flags)
{
	return fd_result(t, files_open(t->files, what->file,
				       flags & O_CLOEXEC ? FILES_CLOEXEC : 0));
}

static inline int fd_socket(struct task *t, int family, int type)
{
	(void)family;
	(void)type;
	return fd_result(t, files_open(t->files, t->own.file, 0));
}

static inline int fd_dup(struct task *t, int fd)
{
	return fd_result(t, files_dup(t->files, fd));
}

static inline int fd_dup2(struct task *t, int oldfd, int newfd)
{
	return fd_result(t, files_dup3(t->files, oldfd, newfd, 0));
}

static inline int fd_dupfd(struct task *t, int fd, unsigned int start)
{
	return fd_result(t, files_dupfd(t->files, fd, start, 0));
}

static inline int fd_close(struct task *t, int fd)
{
	return fd_result(t, files_close(t->files, fd));
}

static inline int fd_close_range(struct task *t, unsigned int first,
				 unsigned int last)
{
	return fd_result(t, files_close_range(t->files, first, last, 0));
}

/* One byte at 0; on the model the lookup alone. */
static inline int fd_pread(struct task *t, int fd)
{
	struct model_file *file = files_get(t->files, fd);

	if (unlikely(!file)) {
		errno = EBADF;
		return -1;
	}
	files_put(file);
	return fd_result(t, 0);
}

/* An open that fails: 0 where no such name is there, as it has to be. */
static inline int fd_open_missing(struct task *t, const struct target *what)
{
	int fd = fd_result(t, files_reserve(t->files, 0));

	(void)what;
	if (unlikely(fd < 0))
		return -1;
	files_unreserve(t->files, fd);
	return 0;
}

#else

static inline int fd_open(struct task *t, const struct target *what, int flags)
{
	(void)t;
	return open(what->path, flags);
}

static inline int fd_socket(struct task *t, int family, int type)
{
	(void)t;
	return socket(family, type, 0);
}

static inline int fd_dup(struct task *t, int fd)
{
	(void)t;
	return dup(fd);
}

static inline int fd_dup2(struct task *t, int oldfd, int newfd)
{
	(void)t;
	return dup2(oldfd, newfd);
}

static inline int fd_dupfd(struct task *t, int fd, unsigned int start)
{
	(void)t;
	return fcntl(fd, F_DUPFD, start);
}

static inline int fd_close(struct task *t, int fd)
{
	(void)t;
	return close(fd);
}

static inline int fd_close_range(struct task *t, unsigned int first,
				 unsigned int last)
{
	(void)t;
	return close_range(first, last, 0);
}

static inline int fd_pread(struct task *t, int fd)
{
	char byte;

	(void)t;
	return pread(fd, &byte, 1, 0) < 0 ? -1 : 0;
}

static inline int fd_open_missing(struct task *t, const struct target *what)
{
	int fd = open(what->path, O_RDONLY);

	(void)t;
	if (likely(fd < 0 && errno == ENOENT))
		return 0;
	if (fd >= 0) {
		close(fd);
		errno = EEXIST;
	}
	return -1;
}

/* Set-up: an empty file.  0, or -1 by way of task_fail(). */
static inline int fd_make_file(struct task *t, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return task_fail(t, "open");
	return close(fd) ? task_fail(t, "close") : 0;
}

/*
 * Set-up: what @fd names becomes the task's source, @fd is closed: the table
 * stays as the hold has it.  0, or -1 by way of task_fail().
 */
static inline int fd_become_source(struct task *t, int fd)
{
	if (dup2(fd, t->source) < 0)
		return task_fail(t, "dup2");
	return close(fd) ? task_fail(t, "close") : 0;
}

#endif
#endif
