// SPDX-License-Identifier: GPL-2.0-only
#include "hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failed(struct problem *p, const char *call, uint32_t fd)
{
	return problem_set(p, COULD_NOT, "hold: %s at descriptor %u: %s", call,
			   fd, strerror(errno));
}

/* Where close_range() is missing (before 5.9) or refused by a filter. */
static int close_listed(struct problem *p)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!dir)
		return problem_set(
			p, COULD_NOT,
			"hold: close_range() refused and "
			"/proc/self/fd hidden (%s): cannot empty the "
			"table; allow one of them",
			strerror(errno));
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (fd > 0 && fd != dirfd(dir))
			close(fd);
	}
	closedir(dir);
	return DONE;
}

/* Nothing open but 0, which names /dev/null. */
static int start_bare(struct problem *p)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0)
		return problem_set(p, COULD_NOT, "/dev/null: %s",
				   strerror(errno));
	if (null && dup2(null, 0) < 0)
		return failed(p, "dup2", 0);
	if (!syscall(SYS_close_range, 1u, ~0u, 0u))
		return DONE;
	return close_listed(p);
}

/* A file in @directory, whose name is gone again. */
static int nameless(const char *directory)
{
	char path[PATH_MAX];
	int made, n;

	n = snprintf(path, sizeof(path), "%s/fdscale-source-XXXXXX", directory);
	if (n >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	made = mkstemp(path);
	if (made >= 0)
		unlink(path);
	return made;
}

/* A file that nothing else names, at @fd. */
static int own_file(uint32_t fd, const char *directory, struct problem *p)
{
	int made = memfd_create("fdscale-source", 0);

	if (made < 0)
		made = nameless(directory);
	if (made < 0)
		return problem_set(p, COULD_NOT,
				   "a task's own file: neither memfd_create() "
				   "nor a file in --tmpdir %s: %s",
				   directory, strerror(errno));
	if ((uint32_t)made == fd)
		return DONE;
	if (dup2(made, fd) < 0)
		return failed(p, "dup2", fd);
	close(made);
	return DONE;
}

int hold_build(const struct hold *hold, uint32_t slots, uint32_t first_source,
	       uint32_t sources, const char *directory, struct problem *p)
{
	int status = start_bare(p);

	if (status)
		return status;
	if (slots > 64) {
		/* Growth is to the power of two that holds the descriptor. */
		if (dup2(0, slots / 2) < 0)
			return failed(p, "dup2", slots / 2);
		close(slots / 2);
	}
	for (uint32_t i = 0; i < sources; i++) {
		status = own_file(first_source + i, directory, p);
		if (status)
			return status;
	}
	/* In order and with nothing free below, dup() leaves next_fd where a
	 * process that opened them would have it. */
	for (uint32_t fd = 1; fd < hold->top; fd++) {
		int got;

		if (!hold_has(hold, fd))
			continue;
		got = hold->bits ? dup2(0, fd) : dup(0);
		if (got < 0)
			return failed(p, "dup", fd);
		if ((uint32_t)got != fd)
			return problem_set(p, COULD_NOT,
					   "hold: asked for descriptor %u, "
					   "got %d",
					   fd, got);
	}
	/* Of 0 itself a hold may want none, or an own file may be there. */
	if (!hold_has(hold, 0) && !(sources && first_source == 0))
		close(0);
	return DONE;
}

static bool wanted(const struct hold *hold, uint32_t first, uint32_t sources,
		   uint32_t fd)
{
	return hold_has(hold, fd) || (fd >= first && fd - first < sources);
}

static int differs(struct problem *p, const char *what, uint32_t fd)
{
	return problem_set(p, COULD_NOT, "hold: descriptor %u is %s", fd, what);
}

int hold_grow(uint32_t slots, struct problem *p)
{
	int low, high;

	if (slots <= 64)
		return DONE;
	low = open("/dev/null", O_RDONLY);
	high = low < 0 ? -1 : fcntl(low, F_DUPFD, slots / 2);
	if (high < 0)
		return failed(p, "F_DUPFD", slots / 2);
	close(high);
	close(low);
	return DONE;
}

int hold_check(const struct hold *hold, uint32_t first_source, uint32_t sources,
	       struct problem *p)
{
	uint64_t expected = 0, found = 0;
	uint32_t end = first_source + sources;
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (end < hold->top)
		end = hold->top;
	for (uint32_t fd = 0; fd < end; fd++)
		expected += wanted(hold, first_source, sources, fd);
	while (dir && (entry = readdir(dir))) {
		uint32_t fd = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.' || fd == (uint32_t)dirfd(dir))
			continue;
		found++;
		if (!wanted(hold, first_source, sources, fd)) {
			closedir(dir);
			return differs(p, "open and not held", fd);
		}
	}
	if (dir) {
		closedir(dir);
		if (found != expected)
			return problem_set(p, COULD_NOT,
					   "hold: %llu descriptors open, "
					   "%llu held",
					   (unsigned long long)found,
					   (unsigned long long)expected);
		return DONE;
	}
	for (uint32_t fd = 0; fd < end; fd++) {
		bool open = fcntl(fd, F_GETFD) >= 0;

		if (open != wanted(hold, first_source, sources, fd))
			return differs(p, open ? "open and not held" : "free",
				       fd);
	}
	return DONE;
}

uint32_t hold_fdsize(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	unsigned int size = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "FDSize: %u", &size) == 1)
			break;
	if (status)
		fclose(status);
	return size;
}
