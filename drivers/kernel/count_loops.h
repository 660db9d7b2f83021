/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loops of count.c: one turn of each is an operation, or two.  Calls are
 * made by hand, not through the C library, so that the user's part does not
 * depend on it.
 */
#ifndef FDSCALE_COUNT_LOOPS_H
#define FDSCALE_COUNT_LOOPS_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define OWN_FILE "/tmp/fdscale-own"

/*
 * A system call, and the same without: a nop in place of syscall, everything
 * else alike, so that the difference of two loops is the kernel's part.
 */
typedef long (*caller)(long nr, long a, long b, long c, long d);
long call_kernel(long nr, long a, long b, long c, long d);
long call_nothing(long nr, long a, long b, long c, long d);
#define CALLER(name, instruction)                                              \
	__asm__(".globl " #name "\n" #name ":\n\t"                             \
		"mov %rdi, %rax\n\t"                                           \
		"mov %rsi, %rdi\n\t"                                           \
		"mov %rdx, %rsi\n\t"                                           \
		"mov %rcx, %rdx\n\t"                                           \
		"mov %r8, %r10\n\t" instruction "\n\t"                         \
		"ret\n")
CALLER(call_kernel, "syscall");
CALLER(call_nothing, "nop");

/* What a loop needs to know of the table. */
struct table {
	long low;    /* a held descriptor near the bottom */
	long high;   /* one at the top of what is held */
	long first;  /* the lowest free one */
	long helper; /* what prepare() opened, far above the hold */
};

#define HELPER_ABOVE 1024 /* the hold */
#define KEEP 256	  /* random-churn */
#define SIZE 100	  /* burst, close-range */

/* @n turns; the results or-ed together: negative when one failed. */
typedef long (*loop)(caller call, const struct table *t, unsigned int n);

static long dup_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_dup, 0, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long open_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_open, (long)OWN_FILE, O_RDONLY, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long dupfd_at(caller call, unsigned int n, long start)
{
	long bad = 0;

	while (n--) {
		long fd = call(SYS_fcntl, 0, F_DUPFD, start, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long dupfd_0(caller call, const struct table *t, unsigned int n)
{
	(void)t;
	return dupfd_at(call, n, 0);
}

static long dupfd_64(caller call, const struct table *t, unsigned int n)
{
	(void)t;
	return dupfd_at(call, n, 64);
}

static long dupfd_1000(caller call, const struct table *t, unsigned int n)
{
	(void)t;
	return dupfd_at(call, n, 1000);
}

/*
 * The stale hint: every second time next_fd points into a full word.  One
 * operation is a close with a dup: a turn makes two of each.
 */
static long two_holes(caller call, const struct table *t, unsigned int n)
{
	long low = t->low, high = t->high, bad = 0;

	while (n--) {
		bad |= call(SYS_close, low, 0, 0, 0);
		bad |= call(SYS_close, high, 0, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0, 0);
	}
	return bad;
}

static long yuma(caller call, const struct table *t, unsigned int n)
{
	long low = t->low, bad = 0;

	while (n--) {
		long high;

		bad |= call(SYS_close, low, 0, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0, 0);
		high = call(SYS_dup, 0, 0, 0, 0);
		bad |= high | call(SYS_close, high, 0, 0, 0);
	}
	return bad;
}

static long socket_of(caller call, unsigned int n, long family)
{
	long bad = 0;

	while (n--) {
		long fd = call(SYS_socket, family, SOCK_STREAM, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long socket_unix(caller call, const struct table *t, unsigned int n)
{
	(void)t;
	return socket_of(call, n, AF_UNIX);
}

static long socket_inet(caller call, const struct table *t, unsigned int n)
{
	(void)t;
	return socket_of(call, n, AF_INET);
}

static long pipe_close(caller call, const struct table *t, unsigned int n)
{
	volatile int ends[2] = {0, 0};
	long bad = 0;

	(void)t;
	while (n--) {
		bad |= call(SYS_pipe2, (long)ends, 0, 0, 0);
		bad |= call(SYS_close, ends[0], 0, 0, 0);
		bad |= call(SYS_close, ends[1], 0, 0, 0);
	}
	return bad;
}

static long eventfd_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_eventfd2, 0, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long socketpair_close(caller call, const struct table *t, unsigned int n)
{
	volatile int ends[2] = {0, 0};
	long bad = 0;

	(void)t;
	while (n--) {
		bad |= call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0,
			    (long)ends);
		bad |= call(SYS_close, ends[0], 0, 0, 0);
		bad |= call(SYS_close, ends[1], 0, 0, 0);
	}
	return bad;
}

static long epoll_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_epoll_create1, 0, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long memfd_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_memfd_create, (long)"m", 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

static long timerfd_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_timerfd_create, CLOCK_MONOTONIC, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
}

/* The listener is the helper; its name was given by the kernel. */
static struct sockaddr_un peer = {.sun_family = AF_UNIX};
static socklen_t peer_length;

static int listen_unix(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	peer_length = sizeof(sa_family_t);
	if (s < 0 || bind(s, (struct sockaddr *)&peer, peer_length))
		return -1;
	peer_length = sizeof(peer);
	if (getsockname(s, (struct sockaddr *)&peer, &peer_length) ||
	    listen(s, 16))
		return -1;
	return s;
}

static long accept_unix(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		long client = call(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0);
		long server;

		bad |= client |
		       call(SYS_connect, client, (long)&peer, peer_length, 0);
		server = call(SYS_accept4, t->helper, 0, 0, 0);
		bad |= server | call(SYS_close, server, 0, 0, 0);
		bad |= call(SYS_close, client, 0, 0, 0);
	}
	return bad;
}

/* A datagram socket connected to itself: what is sent comes back. */
static int connect_to_itself(void)
{
	int s = socket(AF_UNIX, SOCK_DGRAM, 0);

	peer_length = sizeof(sa_family_t);
	if (s < 0 || bind(s, (struct sockaddr *)&peer, peer_length))
		return -1;
	peer_length = sizeof(peer);
	if (getsockname(s, (struct sockaddr *)&peer, &peer_length) ||
	    connect(s, (struct sockaddr *)&peer, peer_length))
		return -1;
	return s;
}

/* One message that carries descriptor 0, one that receives it, its close. */
static long scm_rights(caller call, const struct table *t, unsigned int n)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = "";
	char byte = 0;
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	volatile int *passed = (int *)CMSG_DATA(c);
	long bad = 0;

	while (n--) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		*passed = 0;
		bad |= call(SYS_sendmsg, t->helper, (long)&m, 0, 0);
		bad |= call(SYS_recvmsg, t->helper, (long)&m, 0, 0);
		bad |= call(SYS_close, *passed, 0, 0, 0);
	}
	return bad;
}

/* KEEP more than the hold, one of them closed and opened again. */
static int keep(void)
{
	for (int i = 0; i < KEEP; i++)
		if (dup(0) < 0)
			return -1;
	return 0;
}

/* A turn takes each of them once, here and there: every turn is the same. */
static long random_churn(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		for (long i = 0; i < KEEP; i++) {
			long fd = t->first + 37 * i % KEEP;

			bad |= call(SYS_close, fd, 0, 0, 0);
			bad |= -(call(SYS_dup, 0, 0, 0, 0) != fd);
		}
	}
	return bad;
}

static long take_burst(caller call, unsigned int n)
{
	long bad = 0;

	while (n--)
		bad |= call(SYS_dup, 0, 0, 0, 0);
	return bad;
}

static long burst_same(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		bad |= take_burst(call, SIZE);
		for (long i = 0; i < SIZE; i++)
			bad |= call(SYS_close, t->first + i, 0, 0, 0);
	}
	return bad;
}

static long burst_reversed(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		bad |= take_burst(call, SIZE);
		for (long i = SIZE; i--;)
			bad |= call(SYS_close, t->first + i, 0, 0, 0);
	}
	return bad;
}

/* 37 and SIZE have no common factor: every one, here and there. */
static long burst_random(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		bad |= take_burst(call, SIZE);
		for (long i = 0; i < SIZE; i++)
			bad |= call(SYS_close, t->first + 37 * i % SIZE, 0, 0,
				    0);
	}
	return bad;
}

static long close_range_of(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		bad |= take_burst(call, SIZE);
		bad |= call(SYS_close_range, t->first, t->first + SIZE - 1, 0,
			    0);
	}
	return bad;
}

static int own_file(void)
{
	int fd = open(OWN_FILE, O_RDWR);

	return fd < 0 || write(fd, "x", 1) != 1 ? -1 : fd;
}

static long read_one(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;
	char byte;

	while (n--)
		bad |= call(SYS_pread64, t->helper, (long)&byte, 1, 0);
	return bad;
}

static long write_one(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--)
		bad |= call(SYS_pwrite64, t->helper, (long)"x", 1, 0);
	return bad;
}

/* A descriptor reserved and given back. */
static long openneg(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(SYS_open, (long)"/tmp/missing", O_RDONLY, 0, 0) +
		       ENOENT;
	return bad;
}

/* A call that does nothing: what entering and leaving the kernel costs. */
static long nothing(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(SYS_getppid, 0, 0, 0, 0);
	return bad;
}

struct workload {
	const char *name;
	unsigned int operations; /* a turn */
	loop body;
	int (*helper)(void); /* opens what the loop needs besides, or -1 */
	int (*prepare)(void);
};

/*
 * Not here: what needs several tasks (fget), and fork-copy, whose path has
 * neither an allocation nor a close of the switch in it.
 */
static const struct workload workloads[] = {
	{"dup-close", 1, dup_close, NULL, NULL},
	{"open-close", 1, open_close, NULL, NULL},
	{"dupfd:0", 1, dupfd_0, NULL, NULL},
	{"dupfd:64", 1, dupfd_64, NULL, NULL},
	{"dupfd:1000", 1, dupfd_1000, NULL, NULL},
	{"two-holes", 2, two_holes, NULL, NULL},
	{"yuma", 2, yuma, NULL, NULL},
	{"random-churn", KEEP, random_churn, NULL, keep},
	{"burst", 1, burst_same, NULL, NULL},
	{"burst:reversed", 1, burst_reversed, NULL, NULL},
	{"burst:random", 1, burst_random, NULL, NULL},
	{"close-range", 1, close_range_of, NULL, NULL},
	{"socket-unix", 1, socket_unix, NULL, NULL},
	{"socket-inet", 1, socket_inet, NULL, NULL},
	{"socketpair-close", 1, socketpair_close, NULL, NULL},
	{"pipe-close", 1, pipe_close, NULL, NULL},
	{"eventfd-close", 1, eventfd_close, NULL, NULL},
	{"epoll-close", 1, epoll_close, NULL, NULL},
	{"memfd-close", 1, memfd_close, NULL, NULL},
	{"timerfd-close", 1, timerfd_close, NULL, NULL},
	{"accept-unix", 1, accept_unix, listen_unix, NULL},
	{"scm-rights", 1, scm_rights, connect_to_itself, NULL},
	{"openneg", 1, openneg, NULL, NULL},
	{"read1", 1, read_one, own_file, NULL},
	{"write1", 1, write_one, own_file, NULL},
	{"getppid", 1, nothing, NULL, NULL},
};

#endif
