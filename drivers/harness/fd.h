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

#include "run.h"

#ifdef FD_BACKEND_MODEL

static inline int fd_result(int r)
{
	if (likely(r >= 0))
		return r;
	errno = -r;
	return -1;
}

static inline int fd_open(struct task *t, const struct target *what, int flags)
{
	return fd_result(files_open(t->files, what->file,
				    flags & O_CLOEXEC ? FILES_CLOEXEC : 0));
}

static inline int fd_socket(struct task *t, int family, int type)
{
	(void)family;
	(void)type;
	return fd_result(files_open(t->files, t->own.file, 0));
}

static inline int fd_dup(struct task *t, int fd)
{
	return fd_result(files_dup(t->files, fd));
}

static inline int fd_dup2(struct task *t, int oldfd, int newfd)
{
	return fd_result(files_dup3(t->files, oldfd, newfd, 0));
}

static inline int fd_close(struct task *t, int fd)
{
	return fd_result(files_close(t->files, fd));
}

/*
 * What is kept from one operation to the next is kept in a table: the model
 * has one a variant, and operate() finds any of them chosen.
 */
static inline unsigned int fd_tables(const struct task *t)
{
	return t->run->variants;
}

static inline unsigned int fd_table(const struct task *t)
{
	return t->files - t->handles;
}

static inline void fd_use_table(struct task *t, unsigned int i)
{
	t->files = &t->handles[i];
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

static inline unsigned int fd_tables(const struct task *t)
{
	(void)t;
	return 1;
}

static inline unsigned int fd_table(const struct task *t)
{
	(void)t;
	return 0;
}

static inline void fd_use_table(struct task *t, unsigned int i)
{
	(void)t;
	(void)i;
}

#endif
#endif
