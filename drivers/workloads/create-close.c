// SPDX-License-Identifier: GPL-2.0-only
/*
 * create-close: make what has no name, close all the descriptors it gave.
 *
 * Kernel path: alloc_fd() and the close path, with the making of an inode or
 * an anonymous file between them and no path walk.
 *   --kind socketpair, pipe                  two descriptors at once
 *   --kind eventfd, epoll, memfd, timerfd    one
 * It does not show the search alone: what is made costs far more (a memfd
 * most, then a socketpair; eventfd, epoll, timerfd least); how far the search
 * is drowned is the question.  On the model nothing is made: two descriptors
 * or one.
 * Shape: as dup-close's, flatter the more the kind costs.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "../harness/fd.h"

enum { SOCKETPAIR, PIPE, EVENTFD, EPOLL, MEMFD, TIMERFD };

static const char *const calls[] = {"socketpair",   "pipe",
				    "eventfd",	    "epoll_create1",
				    "memfd_create", "timerfd_create"};

static bool two(uint64_t kind)
{
	return kind == SOCKETPAIR || kind == PIPE;
}

#ifdef FD_BACKEND_KERNEL
static int create(const struct task *t, uint64_t kind, int fds[2])
{
	(void)t;
	switch (kind) {
	case SOCKETPAIR:
		return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	case PIPE:
		return pipe(fds);
	case EVENTFD:
		fds[0] = eventfd(0, 0);
		break;
	case EPOLL:
		fds[0] = epoll_create1(0);
		break;
	case MEMFD:
		fds[0] = memfd_create("fdscale", 0);
		break;
	default:
		fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	}
	return fds[0] < 0 ? -1 : 0;
}
#else
static int create(struct task *t, uint64_t kind, int fds[2])
{
	fds[0] = fd_open(t, &t->own, 0);
	if (unlikely(fds[0] < 0))
		return -1;
	if (!two(kind))
		return 0;
	fds[1] = fd_open(t, &t->own, 0);
	return fds[1] < 0 ? -1 : 0;
}
#endif

static int operate(struct task *t, uint64_t n)
{
	uint64_t kind = t->options[0].number;

	while (n--) {
		int fds[2];

		if (unlikely(create(t, kind, fds)))
			return task_fail(t, calls[kind]);
		if (unlikely(fd_close(t, fds[0])))
			return task_fail(t, "close");
		if (two(kind) && unlikely(fd_close(t, fds[1])))
			return task_fail(t, "close");
	}
	return 0;
}

#ifdef FD_BACKEND_KERNEL
/* A call that a kernel or a filter lacks is found before a window starts. */
static int prepare(struct task *t)
{
	return operate(t, 1);
}
#endif

WORKLOAD(.name = "create-close",
	 .about = "a pipe, socketpair, eventfd ... made and closed",
	 .options = {{.name = "kind",
		      .choices = "socketpair pipe eventfd epoll memfd timerfd",
		      .fallback = "pipe",
		      .about = "what is made"}},
	 .prepare = FOR_KERNEL(prepare), .operate = operate);
