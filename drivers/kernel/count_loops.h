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

/* What a loop needs to know of the table, and of its workload. */
struct table {
	long low;	     /* a held descriptor near the bottom */
	long high;	     /* one at the top of what is held */
	long first;	     /* the lowest free one */
	long helper;	     /* what prepare() opened, far above the hold */
	const long *made_by; /* make_close: SYS_..., its arguments */
	long step;	     /* burst: from one that is closed to the next */
};

#define HELPER_ABOVE 1024 /* the hold */
#define KEEP 256	  /* random-churn */
#define SIZE 100	  /* burst, close-range */

/* @n turns; the results or-ed together: negative when one failed. */
typedef long (*loop)(caller call, const struct table *t, unsigned int n);

static long make_close(caller call, const struct table *t, unsigned int n)
{
	long nr = t->made_by[0], a = t->made_by[1], b = t->made_by[2];
	long c = t->made_by[3], bad = 0;

	while (n--) {
		long fd = call(nr, a, b, c, 0);

		bad |= fd | call(SYS_close, fd, 0, 0, 0);
	}
	return bad;
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

/* 37 and SIZE have no common factor: every one, here and there. */
/* By steps with no factor in common with SIZE: every one of them. */
static long burst(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	while (n--) {
		bad |= take_burst(call, SIZE);
		for (long i = 0; i < SIZE; i++) {
			long at = SIZE - (t->step < 0) + t->step * i;

			bad |= call(SYS_close, t->first + at % SIZE, 0, 0, 0);
		}
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
	long made_by[4];
	long step;	     /* burst */
	int (*helper)(void); /* opens what the loop needs besides, or -1 */
	int (*prepare)(void);
};

/*
 * Not here: what needs several tasks (fget), and fork-copy, whose path has
 * neither an allocation nor a close of the switch in it.
 */
static const struct workload workloads[] = {
	{"dup-close", 1, .body = make_close, .made_by = {SYS_dup}},
	{"open-close", 1, .body = make_close,
	 .made_by = {SYS_open, (long)OWN_FILE, O_RDONLY}},
	{"dupfd:0", 1, .body = make_close,
	 .made_by = {SYS_fcntl, 0, F_DUPFD, 0}},
	{"dupfd:64", 1, .body = make_close,
	 .made_by = {SYS_fcntl, 0, F_DUPFD, 64}},
	{"dupfd:1000", 1, .body = make_close,
	 .made_by = {SYS_fcntl, 0, F_DUPFD, 1000}},
	{"two-holes", 2, .body = two_holes},
	{"yuma", 2, .body = yuma},
	{"random-churn", KEEP, .body = random_churn, .prepare = keep},
	{"burst", 1, .body = burst, .step = 1},
	{"burst:reversed", 1, .body = burst, .step = -1},
	{"burst:random", 1, .body = burst, .step = 37},
	{"close-range", 1, .body = close_range_of},
	{"socket-unix", 1, .body = make_close,
	 .made_by = {SYS_socket, AF_UNIX, SOCK_STREAM}},
	{"socket-inet", 1, .body = make_close,
	 .made_by = {SYS_socket, AF_INET, SOCK_STREAM}},
	{"socketpair-close", 1, .body = socketpair_close},
	{"pipe-close", 1, .body = pipe_close},
	{"eventfd-close", 1, .body = make_close, .made_by = {SYS_eventfd2}},
	{"epoll-close", 1, .body = make_close, .made_by = {SYS_epoll_create1}},
	{"memfd-close", 1, .body = make_close,
	 .made_by = {SYS_memfd_create, (long)"m"}},
	{"timerfd-close", 1, .body = make_close,
	 .made_by = {SYS_timerfd_create, CLOCK_MONOTONIC}},
	{"accept-unix", 1, .body = accept_unix, .helper = listen_unix},
	{"scm-rights", 1, .body = scm_rights, .helper = connect_to_itself},
	{"openneg", 1, .body = openneg},
	{"read1", 1, .body = read_one, .helper = own_file},
	{"write1", 1, .body = write_one, .helper = own_file},
	{"getppid", 1, .body = nothing},
};

#endif
