// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded by tests/test_faults.py: one call of the C library fails, once.
 *
 *   FDSCALE_FAIL=CALL:ERRNO:AFTER  the call that comes after AFTER of the same
 *                                  name in one process is not made: errno
 *   FDSCALE_CALLED=FILE            the names of those that a process calls more
 *                                  than CALLED_OFTEN times are added to FILE
 *
 * Calls by syscall(2) are not seen: the harness's own go that way.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLED_OFTEN 10

/* By raw calls, so that none of ours is counted; the descriptor is gone before
 * the caller's own call is made. */
static void write_down(const char *file, const char *name)
{
	int fd = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_APPEND);

	if (fd < 0 || syscall(SYS_write, fd, name, strlen(name)) < 0 ||
	    syscall(SYS_write, fd, "\n", 1) < 0)
		_exit(99);
	syscall(SYS_close, fd);
}

/* Calls of one name by one process: a child begins anew. */
struct calls {
	atomic_ulong count;
	atomic_int pid;
};

static int loaded_by;

__attribute__((constructor)) static void remember(void)
{
	loaded_by = getpid();
}

/* Whether this call is the one to fail; the coordinator's never do. */
static bool fails(const char *name, struct calls *calls)
{
	int pid = getpid();
	unsigned long n;
	const char *called = getenv("FDSCALE_CALLED");
	const char *fail = getenv("FDSCALE_FAIL");
	unsigned long after;
	char which[32];
	int error;

	if (pid == loaded_by)
		return false;
	if (atomic_exchange(&calls->pid, pid) != pid)
		atomic_store(&calls->count, 0);
	n = atomic_fetch_add(&calls->count, 1);
	if (called && n == CALLED_OFTEN)
		write_down(called, name);
	if (!fail || sscanf(fail, "%31[^:]:%d:%lu", which, &error, &after) != 3)
		return false;
	if (strcmp(which, name) || n != after)
		return false;
	errno = error;
	return true;
}

#define UNPACK(...) __VA_ARGS__
#define CALL(name, parameters, arguments)                                      \
	int name(UNPACK parameters)                                            \
	{                                                                      \
		static struct calls calls;                                     \
		int (*real)(UNPACK parameters) = dlsym(RTLD_NEXT, #name);      \
                                                                               \
		return fails(#name, &calls) ? -1 : real(UNPACK arguments);     \
	}

CALL(close, (int fd), (fd))
CALL(dup, (int fd), (fd))
CALL(dup2, (int from, int to), (from, to))
CALL(close_range, (unsigned int first, unsigned int last, int flags),
     (first, last, flags))
CALL(socket, (int family, int type, int protocol), (family, type, protocol))
CALL(socketpair, (int family, int type, int protocol, int fds[2]),
     (family, type, protocol, fds))
CALL(pipe, (int fds[2]), (fds))
CALL(eventfd, (unsigned int value, int flags), (value, flags))
CALL(epoll_create1, (int flags), (flags))
CALL(memfd_create, (const char *name, unsigned int flags), (name, flags))
CALL(timerfd_create, (int clock, int flags), (clock, flags))
CALL(connect, (int fd, const struct sockaddr *address, socklen_t length),
     (fd, address, length))
CALL(accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),
     (fd, address, length, flags))
CALL(waitpid, (pid_t pid, int *how, int options), (pid, how, options))

#undef CALL
#define CALL(type, name, parameters, arguments)                                \
	type name(UNPACK parameters)                                           \
	{                                                                      \
		static struct calls calls;                                     \
		type (*real)(UNPACK parameters) = dlsym(RTLD_NEXT, #name);     \
                                                                               \
		return fails(#name, &calls) ? -1 : real(UNPACK arguments);     \
	}

CALL(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
CALL(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at),
     (fd, from, n, at))
CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
     (fd, message, flags))
CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
     (fd, message, flags))

/* With an argument that may not be there: it is passed on as it was found. */
int open(const char *path, int flags, ...)
{
	static struct calls calls;
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
	mode_t mode = 0;
	va_list list;

	va_start(list, flags);
	if (flags & O_CREAT)
		mode = va_arg(list, mode_t);
	va_end(list);
	return fails("open", &calls) ? -1 : real(path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
	static struct calls calls;
	int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
	va_list list;
	long value;

	va_start(list, command);
	value = va_arg(list, long);
	va_end(list);
	return fails("fcntl", &calls) ? -1 : real(fd, command, value);
}

int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	static struct calls calls;
	int (*real)(int (*)(void *), void *, int, void *, ...) =
		dlsym(RTLD_NEXT, "clone");

	return fails("clone", &calls) ? -1
				      : real(function, stack, flags, argument);
}
