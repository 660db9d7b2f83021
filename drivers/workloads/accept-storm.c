// SPDX-License-Identifier: GPL-2.0-only
/*
 * accept-storm: socket + connect, accept4, close of both ends.
 *
 * Kernel path: what a busy server does: alloc_fd() by socket() and by
 * accept4(), the close path twice, and a connection between them.  Both ends
 * are the task's, its listener is its own.
 *   --family unix         abstract address, no files
 *   --family inet, inet6  loopback: each task an address of its own in
 *                         127/8 (inet) or a port of its own (inet6)
 * The accepted end is closed first and by a reset: no connection is left in
 * TIME_WAIT, so that the ports do not run out.
 * It does not show the search alone: by inet, TCP is nearly all of it.
 * Shape: far flatter than dup-close; inet meets in the network's own tables
 * long before file_lock.
 */
#include "../harness/fd.h"

#ifdef FD_BACKEND_KERNEL
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { UNIX, INET, INET6 };

struct listener {
	int family;
	socklen_t length;
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} address;
};

static void name_it(struct listener *l, const struct task *t)
{
	unsigned int n = t->number;

	switch (t->options[0].number) {
	case UNIX:
		l->family = AF_UNIX;
		/* Of the family alone: the kernel chooses an abstract name. */
		l->length = sizeof(sa_family_t);
		break;
	case INET:
		l->family = AF_INET;
		l->length = sizeof(l->address.in);
		/* 127.1.0.1 and up: ports of each are its own 28,000. */
		l->address.in.sin_addr.s_addr =
			htonl(0x7f010001 + (n / 250) * 256 + n % 250);
		break;
	default:
		l->family = AF_INET6;
		l->length = sizeof(l->address.in6);
		l->address.in6.sin6_addr = in6addr_loopback;
	}
	l->address.any.sa_family = l->family;
}

static int operate(struct task *t, uint64_t n)
{
	const struct listener *l = t->data;

	while (n--) {
		int client = socket(l->family, SOCK_STREAM, 0), server;

		if (unlikely(client < 0))
			return task_fail(t, "socket");
		if (unlikely(connect(client, &l->address.any, l->length)))
			return task_fail(t, "connect");
		server = accept4(t->source, NULL, NULL, 0);
		if (unlikely(server < 0))
			return task_fail(t, "accept4");
		if (unlikely(close(server) || close(client)))
			return task_fail(t, "close");
	}
	return 0;
}

/* The address as bound goes into @l, the listener becomes the source. */
static int start_listening(struct task *t, struct listener *l)
{
	/* Inherited by what is accepted: its close is a reset. */
	struct linger reset = {.l_onoff = 1};
	int s = socket(l->family, SOCK_STREAM, 0);

	if (s < 0)
		return task_fail(t, "socket");
	if (l->family != AF_UNIX &&
	    setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		return task_fail(t, "setsockopt(SO_LINGER)");
	if (bind(s, &l->address.any, l->length))
		return task_fail(t, l->family == AF_INET6 ? "bind to ::1"
							  : "bind");
	l->length = sizeof(l->address);
	if (getsockname(s, &l->address.any, &l->length))
		return task_fail(t, "getsockname");
	if (listen(s, 16))
		return task_fail(t, "listen");
	return fd_become_source(t, s);
}

static int prepare(struct task *t)
{
	struct listener *l = calloc(1, sizeof(*l));

	t->data = l;
	if (!l)
		return task_fail(t, "calloc");
	name_it(l, t);
	if (start_listening(t, l))
		return -1;
	return operate(t, 1);
}

static void finish(struct task *t)
{
	free(t->data);
}

WORKLOAD(.name = "accept-storm",
	 .about = "socket + connect + accept4 + close of both ends",
	 .options = {{.name = "family",
		      .choices = "unix inet inet6",
		      .fallback = "unix",
		      .about = "of the sockets"}},
	 .prepare = prepare, .operate = operate, .finish = finish);
#endif
