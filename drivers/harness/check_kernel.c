// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules' calls on the running kernel, in a child whose table is emptied
 * first; what it finds comes back through shared memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_backend.h"

static int or_errno(int ret)
{
	return ret < 0 ? -errno : ret;
}

static int kernel_open(struct check_table *t, int file, bool cloexec)
{
	(void)t;
	return or_errno(open(file ? "/dev/zero" : "/dev/null",
			     O_RDWR | (cloexec ? O_CLOEXEC : 0)));
}

static int kernel_dup(struct check_table *t, unsigned int fd)
{
	(void)t;
	return or_errno(dup((int)fd));
}

static int kernel_dupfd(struct check_table *t, unsigned int fd,
			unsigned int start, bool cloexec)
{
	(void)t;
	return or_errno(fcntl((int)fd, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD,
			      (int)start));
}

static int kernel_dup2(struct check_table *t, unsigned int fd,
		       unsigned int newfd)
{
	(void)t;
	return or_errno(dup2((int)fd, (int)newfd));
}

static int kernel_dup3(struct check_table *t, unsigned int fd,
		       unsigned int newfd, bool cloexec)
{
	(void)t;
	return or_errno(dup3((int)fd, (int)newfd, cloexec ? O_CLOEXEC : 0));
}

/* Straight to the kernel: libraries watch close() and close_range(). */
static int kernel_close(struct check_table *t, unsigned int fd)
{
	(void)t;
	return or_errno((int)syscall(SYS_close, fd));
}

static int kernel_close_range(struct check_table *t, unsigned int first,
			      unsigned int last, unsigned int flags)
{
	unsigned int theirs =
		flags & ~(FILES_RANGE_UNSHARE | FILES_RANGE_CLOEXEC);

	(void)t;
	if (flags & FILES_RANGE_UNSHARE)
		theirs |= CLOSE_RANGE_UNSHARE;
	if (flags & FILES_RANGE_CLOEXEC)
		theirs |= CLOSE_RANGE_CLOEXEC;
	return or_errno((int)syscall(SYS_close_range, first, last, theirs));
}

static int kernel_set_limit(struct check_table *t, unsigned int limit)
{
	struct rlimit r;

	(void)t;
	if (getrlimit(RLIMIT_NOFILE, &r))
		return -errno;
	r.rlim_cur = limit;
	return or_errno(setrlimit(RLIMIT_NOFILE, &r));
}

static int kernel_file_of(struct check_table *t, unsigned int fd)
{
	struct stat st;

	(void)t;
	if (fstat((int)fd, &st))
		return -errno;
	return minor(st.st_rdev) == 5; /* /dev/zero is 1:5, null 1:3 */
}

static int kernel_cloexec(struct check_table *t, unsigned int fd)
{
	int flags = fcntl((int)fd, F_GETFD);

	(void)t;
	return flags < 0 ? -errno : !!(flags & FD_CLOEXEC);
}

/* @body's answer as the other's exit status: 100 and up are errors. */
static int kernel_elsewhere(struct check_table *t, enum check_copy how,
			    check_body *body)
{
	unsigned long flags = SIGCHLD | (how == COPY_SHARED ? CLONE_FILES : 0);
	long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
	int status, ret;

	if (pid < 0)
		return -errno;
	if (!pid) {
		ret = body(t);
		_exit(ret < 0 ? 100 - ret : ret);
	}
	if (waitpid((pid_t)pid, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status))
		return -EIO;
	ret = WEXITSTATUS(status);
	return ret >= 100 ? 100 - ret : ret;
}

/* The limit cannot be raised past nr_open, not by root either. */
static int kernel_pass_nr_open(struct check_table *t)
{
	struct rlimit r;
	unsigned long most;
	FILE *f = fopen("/proc/sys/fs/nr_open", "re");
	int got;

	(void)t;
	if (!f)
		return -errno;
	got = fscanf(f, "%lu", &most);
	fclose(f);
	if (got != 1)
		return -EIO;
	r.rlim_cur = r.rlim_max = most + 1;
	return or_errno(setrlimit(RLIMIT_NOFILE, &r));
}

static const struct check_calls kernel_calls = {
	.open = kernel_open,
	.dup = kernel_dup,
	.dupfd = kernel_dupfd,
	.dup2 = kernel_dup2,
	.dup3 = kernel_dup3,
	.close = kernel_close,
	.close_range = kernel_close_range,
	.set_limit = kernel_set_limit,
	.file_of = kernel_file_of,
	.cloexec = kernel_cloexec,
	.elsewhere = kernel_elsewhere,
	.pass_nr_open = kernel_pass_nr_open,
};

static void child(struct check_result *result, check_body *body)
{
	struct check_table t = {&kernel_calls, result, NULL};

	if (syscall(SYS_close_range, 0, ~0u, 0) || kernel_open(&t, 0, false) ||
	    kernel_set_limit(&t, CHECK_LIMIT))
		_exit(errno);
	body(&t);
	_exit(0);
}

int check_on_kernel(struct check_result *result, check_body *body)
{
	struct check_result *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, ret = 0;
	pid_t pid;

	if (shared == MAP_FAILED)
		return -errno;
	*shared = *result;
	pid = fork();
	if (!pid)
		child(shared, body);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		ret = -errno;
	else if (!WIFEXITED(status))
		ret = -EIO;
	else
		ret = -WEXITSTATUS(status);
	*result = *shared;
	munmap(shared, sizeof(*shared));
	return ret;
}
