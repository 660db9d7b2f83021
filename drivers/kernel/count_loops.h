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
#include <sys/socket.h>
#include <sys/syscall.h>

#define OWN_FILE "/tmp/fdscale-own"

/*
 * A system call, and the same without: a nop in place of syscall, everything
 * else alike, so that the difference of two loops is the kernel's part.
 */
typedef long (*caller)(long nr, long a, long b, long c);
long call_kernel(long nr, long a, long b, long c);
long call_nothing(long nr, long a, long b, long c);
#define CALLER(name, instruction)                                              \
	__asm__(".globl " #name "\n" #name ":\n\t"                             \
		"mov %rdi, %rax\n\t"                                           \
		"mov %rsi, %rdi\n\t"                                           \
		"mov %rdx, %rsi\n\t"                                           \
		"mov %rcx, %rdx\n\t"                                           \
		"xor %r10d, %r10d\n\t" instruction "\n\t"                      \
		"ret\n")
CALLER(call_kernel, "syscall");
CALLER(call_nothing, "nop");

/* What a loop needs to know of the hold. */
struct table {
	long low;  /* a held descriptor near the bottom */
	long high; /* one at the top of what is held */
};

/* @n turns; the results or-ed together: negative when one failed. */
typedef long (*loop)(caller call, const struct table *t, unsigned int n);

static long dup_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_dup, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0);
	}
	return bad;
}

static long open_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_open, (long)OWN_FILE, O_RDONLY, 0);

		bad |= fd | call(SYS_close, fd, 0, 0);
	}
	return bad;
}

static long dupfd_at(caller call, unsigned int n, long start)
{
	long bad = 0;

	while (n--) {
		long fd = call(SYS_fcntl, 0, F_DUPFD, start);

		bad |= fd | call(SYS_close, fd, 0, 0);
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
		bad |= call(SYS_close, low, 0, 0);
		bad |= call(SYS_close, high, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0);
	}
	return bad;
}

static long yuma(caller call, const struct table *t, unsigned int n)
{
	long low = t->low, bad = 0;

	while (n--) {
		long high;

		bad |= call(SYS_close, low, 0, 0);
		bad |= call(SYS_dup, 0, 0, 0);
		high = call(SYS_dup, 0, 0, 0);
		bad |= high | call(SYS_close, high, 0, 0);
	}
	return bad;
}

static long socket_of(caller call, unsigned int n, long family)
{
	long bad = 0;

	while (n--) {
		long fd = call(SYS_socket, family, SOCK_STREAM, 0);

		bad |= fd | call(SYS_close, fd, 0, 0);
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
		bad |= call(SYS_pipe2, (long)ends, 0, 0);
		bad |= call(SYS_close, ends[0], 0, 0);
		bad |= call(SYS_close, ends[1], 0, 0);
	}
	return bad;
}

static long eventfd_close(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(SYS_eventfd2, 0, 0, 0);

		bad |= fd | call(SYS_close, fd, 0, 0);
	}
	return bad;
}

/* A descriptor reserved and given back. */
static long openneg(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(SYS_open, (long)"/tmp/missing", O_RDONLY, 0) +
		       ENOENT;
	return bad;
}

/* A call that does nothing: what entering and leaving the kernel costs. */
static long nothing(caller call, const struct table *t, unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(SYS_getppid, 0, 0, 0);
	return bad;
}

struct workload {
	const char *name;
	unsigned int operations; /* a turn */
	loop body;
};

static const struct workload workloads[] = {
	{"dup-close", 1, dup_close},
	{"open-close", 1, open_close},
	{"dupfd:0", 1, dupfd_0},
	{"dupfd:64", 1, dupfd_64},
	{"dupfd:1000", 1, dupfd_1000},
	{"two-holes", 2, two_holes},
	{"yuma", 2, yuma},
	{"socket-unix", 1, socket_unix},
	{"socket-inet", 1, socket_inet},
	{"pipe-close", 1, pipe_close},
	{"eventfd-close", 1, eventfd_close},
	{"openneg", 1, openneg},
	{"getppid", 1, nothing},
};

#endif
