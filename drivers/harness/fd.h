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

static inline int fd_close(struct task *t, int fd)
{
	return fd_result(t, files_close(t->files, fd));
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

static inline int fd_close(struct task *t, int fd)
{
	(void)t;
	return close(fd);
}

#endif
#endif
