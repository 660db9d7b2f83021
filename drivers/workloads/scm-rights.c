// SPDX-License-Identifier: GPL-2.0-only
/*
 * scm-rights: a descriptor passed over a unix socket, the sender's closed.
 *
 * Kernel path: SCM_RIGHTS: the sender takes a reference of the file, the
 * receiver allocates a descriptor (receive_fd) and installs it; between them
 * the close path of the one that was sent.  One open file goes round and round,
 * by a datagram socket connected to itself: while it is under way the table
 * has no descriptor of it.
 * It does not show the search alone: two socket calls are most of it.
 * Shape: as create-close of a socketpair.  The kernel counts descriptors in
 * flight under one lock for all: processes meet there too.
 */
#include "../harness/fd.h"

#ifdef FD_BACKEND_KERNEL
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A message of one byte and room for one descriptor. */
struct passing {
	struct msghdr message;
	struct iovec data;
	char byte;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static struct cmsghdr *prepare_message(struct passing *p)
{
	p->data = (struct iovec){&p->byte, 1};
	p->message = (struct msghdr){.msg_iov = &p->data,
				     .msg_iovlen = 1,
				     .msg_control = p->control,
				     .msg_controllen = sizeof(p->control)};
	return CMSG_FIRSTHDR(&p->message);
}

static int pass(int socket, int fd)
{
	struct passing p;
	struct cmsghdr *c = prepare_message(&p);

	p.byte = 0;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &p.message, 0) == 1 ? 0 : -1;
}

/* -1 with EMFILE too where the message came without its descriptor. */
static int receive(int socket)
{
	struct passing p;
	struct cmsghdr *c = prepare_message(&p);
	int fd;

	if (recvmsg(socket, &p.message, 0) != 1)
		return -1;
	if (p.message.msg_flags & MSG_CTRUNC || !p.message.msg_controllen) {
		errno = EMFILE;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int operate(struct task *t, uint64_t n)
{
	int fd = (intptr_t)t->data;

	while (n--) {
		if (unlikely(pass(t->source, fd)))
			return task_fail(t, "sendmsg");
		if (unlikely(close(fd)))
			return task_fail(t, "close");
		fd = receive(t->source);
		if (unlikely(fd < 0))
			return task_fail(t, "recvmsg");
	}
	t->data = (void *)(intptr_t)fd;
	return 0;
}

static int prepare(struct task *t)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(sa_family_t);
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (s < 0)
		return task_fail(t, "socket");
	/* A name from the kernel, in the abstract space: nothing to remove. */
	if (bind(s, (struct sockaddr *)&name, length))
		return task_fail(t, "bind");
	length = sizeof(name);
	if (getsockname(s, (struct sockaddr *)&name, &length) ||
	    connect(s, (struct sockaddr *)&name, length))
		return task_fail(t, "connect");
	t->data = (void *)(intptr_t)dup(t->source);
	if ((intptr_t)t->data < 0)
		return task_fail(t, "dup");
	if (fd_become_source(t, s))
		return -1;
	return operate(t, 1);
}

static void finish(struct task *t)
{
	close((intptr_t)t->data);
}

WORKLOAD(.name = "scm-rights",
	 .about = "a descriptor passed over a unix socket, closed",
	 .prepare = prepare, .operate = operate, .finish = finish);
#endif
