// SPDX-License-Identifier: GPL-2.0-only
/*
 * Process 1 of a guest: mounts what there is to mount, raises the limits, runs
 * each line of /jobs with /bin/sh, reports on the second serial port, and ends
 * the guest.  A /jobs that is empty means: the lines come over that port, until
 * an empty one.  Also boots on a distribution's kernel without modules.
 *
 * The report, read by bench/kernel_guest.py; lengths are in bytes, so nothing
 * that a job prints can be taken for it:
 *	fdscale-boot UPTIME-SECONDS CPUS RELEASE\n
 *	fdscale-job NUMBER EXIT-STATUS STDOUT-LENGTH STDERR-LENGTH\n
 *	(stdout)(stderr)\n			for each job
 *	fdscale-end JOBS\n
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Descriptors a process may have: room for holds of a million and beyond. */
#define LIMIT 4194304

static void must_mount(const char *type, const char *at, const char *options)
{
	mkdir(at, 0755);
	if (mount(type, at, type, 0, options))
		printf("guest: mount %s at %s: %s\n", type, at,
		       strerror(errno));
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("guest: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void raise_limits(void)
{
	struct rlimit files = {LIMIT, LIMIT};
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	char text[32];

	snprintf(text, sizeof(text), "%d", LIMIT);
	write_file("/proc/sys/fs/nr_open", text);
	if (setrlimit(RLIMIT_NOFILE, &files))
		printf("guest: RLIMIT_NOFILE: %s\n", strerror(errno));
	setrlimit(RLIMIT_MEMLOCK, &all);
	setrlimit(RLIMIT_NPROC, &all);
	setrlimit(RLIMIT_SIGPENDING, &all);
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		printf("guest: lo: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* The second serial port, bytes as they are; -1 where there is none. */
static int open_report(void)
{
	int fd = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios t;

	if (fd < 0 || tcgetattr(fd, &t)) {
		printf("guest: /dev/ttyS1: %s\n", strerror(errno));
		return -1;
	}
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL | CREAD;
	tcsetattr(fd, TCSANOW, &t);
	return fd;
}

static void send_bytes(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(fd, data, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		data += n;
		length -= n;
	}
}

static void send_file(int to, int from, off_t length)
{
	char buffer[4096];
	ssize_t n;

	lseek(from, 0, SEEK_SET);
	while (length > 0 && (n = read(from, buffer, sizeof(buffer))) > 0) {
		if (n > length)
			n = length;
		send_bytes(to, buffer, n);
		length -= n;
	}
}

static off_t size_of(int fd)
{
	struct stat s;

	return fstat(fd, &s) ? 0 : s.st_size;
}

/* The job's exit status as a shell says it: 128 + n for signal n. */
static int run_job(const char *line, int out, int err)
{
	pid_t child = fork();
	int status;

	if (!child) {
		int null = open("/dev/null", O_RDONLY);

		dup2(null, 0);
		dup2(out, 1);
		dup2(err, 2);
		if (null > 2)
			close(null);
		setsid();
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	if (child < 0)
		return 126;
	for (;;) {
		pid_t got = wait(&status); /* orphans end up here too */

		if (got == child)
			break;
		if (got < 0 && errno != EINTR)
			return 126;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int open_output(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
		    0600);
}

static void run_and_report(int report, int number, const char *line)
{
	int out = open_output("/run/stdout");
	int err = open_output("/run/stderr");
	off_t out_length, err_length;
	char head[128];
	int status, n;

	status = run_job(line, out, err);
	out_length = size_of(out);
	err_length = size_of(err);
	n = snprintf(head, sizeof(head), "fdscale-job %d %d %lld %lld\n",
		     number, status, (long long)out_length,
		     (long long)err_length);
	send_bytes(report, head, n);
	send_file(report, out, out_length);
	send_file(report, err, err_length);
	send_bytes(report, "\n", 1);
	close(out);
	close(err);
}

/* Lines until the end of the file or an empty one; how many there were. */
static int run_jobs(FILE *jobs, int report)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t got;
	int n = 0;

	while ((got = getline(&line, &room, jobs)) > 0) {
		if (line[got - 1] == '\n')
			line[--got] = '\0';
		if (!got)
			break;
		run_and_report(report, n++, line);
	}
	free(line);
	return n;
}

int main(void)
{
	struct timespec up;
	struct utsname u;
	char head[256];
	FILE *jobs;
	int report, n;

	if (getpid() != 1) {
		fprintf(stderr, "guest: runs as process 1 of a guest only\n");
		return 2;
	}
	must_mount("proc", "/proc", "");
	must_mount("sysfs", "/sys", "");
	must_mount("devtmpfs", "/dev", "");
	must_mount("tmpfs", "/dev/shm", "mode=1777");
	must_mount("tmpfs", "/tmp", "mode=1777");
	must_mount("tmpfs", "/run", "");
	raise_limits();
	loopback_up();
	setenv("PATH", "/bin:/sbin:/usr/bin", 1);
	setenv("HOME", "/tmp", 1);

	report = open_report();
	uname(&u);
	clock_gettime(CLOCK_BOOTTIME, &up);
	n = snprintf(head, sizeof(head), "fdscale-boot %lld.%02ld %ld %s\n",
		     (long long)up.tv_sec, up.tv_nsec / 10000000,
		     sysconf(_SC_NPROCESSORS_ONLN), u.release);
	send_bytes(report, head, n);
	jobs = fopen("/jobs", "re");
	if (jobs && report >= 0) {
		n = run_jobs(jobs, report);
		if (!n) {
			fclose(jobs);
			jobs = fdopen(fcntl(report, F_DUPFD_CLOEXEC, 0), "r");
			n = jobs ? run_jobs(jobs, report) : 0;
		}
		n = snprintf(head, sizeof(head), "fdscale-end %d\n", n);
		send_bytes(report, head, n);
		tcdrain(report);
	}
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
