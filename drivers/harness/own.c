// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own.h"
#include "workload.h"

static const char *const kinds[] = {"workload-file", "testcase"};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

extern char **environ;

const char *own_source(void)
{
	static char source[64];

	if (!&own)
		return NULL;
	snprintf(source, sizeof(source), "%s:%.12s", own.kind, own.sha256);
	return source;
}

/* The script beside the program that knows how the program was built. */
static int find_script(char *path, size_t size, struct problem *p)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		snprintf(path, size, "%s/own-driver", dirname(self));
		if (!access(path, X_OK))
			return DONE;
	}
	return problem_set(p, COULD_NOT,
			   "a file of your own is compiled where fdscale was "
			   "built: run make, and its build/fdscale");
}

/* All that the script prints: the driver's path, or what went wrong. */
static int run_script(char *const *words, char *said, size_t size,
		      struct problem *p)
{
	posix_spawn_file_actions_t actions;
	size_t n = 0;
	ssize_t got;
	int ends[2], how = 0, error;
	pid_t pid;

	if (pipe(ends))
		return problem_set(p, COULD_NOT, "pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	posix_spawn_file_actions_addclose(&actions, ends[1]);
	error = posix_spawn(&pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!error && n < size - 1 &&
	       (got = read(ends[0], said + n, size - 1 - n)) > 0)
		n += got;
	close(ends[0]);
	said[n] = '\0';
	said[strcspn(said, "\n")] = '\0';
	if (error)
		return problem_set(p, COULD_NOT, "%s: %s", words[0],
				   strerror(error));
	while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(how) && !WEXITSTATUS(how) && *said)
		return DONE;
	return problem_set(
		p,
		WIFEXITED(how) && WEXITSTATUS(how) == USAGE ? USAGE : COULD_NOT,
		"--%s %s: %s", words[1], words[2],
		*said ? said : "could not be built");
}

static int become(const char *kind, const char *file, char **all,
		  struct problem *p)
{
	char script[PATH_MAX], driver[PATH_MAX], *path = realpath(file, NULL);
	char *words[] = {script, (char *)kind, path, NULL};
	int status;

	if (!path)
		return problem_set(p, USAGE, "--%s %s: %s", kind, file,
				   strerror(errno));
	if (!all)
		return problem_set(p, USAGE,
				   "--%s: a dry run is for the driver of the "
				   "file: fdscale list --%s %s --json names it",
				   kind, kind, file);
	status = find_script(script, sizeof(script), p);
	if (!status)
		status = run_script(words, driver, sizeof(driver), p);
	free(path);
	if (status)
		return status;
	execv(driver, all);
	return problem_set(p, COULD_NOT, "%s: %s", driver, strerror(errno));
}

/* Whether this program was built for a file of that name. */
static bool built_for(const char *kind, const char *file)
{
	const char *slash = strrchr(file, '/'),
		   *base = slash ? slash + 1 : file;
	size_t n;

	if (!&own || strcmp(own.kind, kind))
		return false;
	n = strlen(own.name);
	return !strncmp(base, own.name, n) && !strcmp(base + n, ".c");
}

/* The flag's index in kinds, or -1. */
static int kind_of(const char *word)
{
	for (size_t k = 0; k < KINDS; k++)
		if (!strncmp(word, "--", 2) && !strcmp(word + 2, kinds[k]))
			return k;
	return -1;
}

/* What its WORKLOAD() lacks that all else relies on; or NULL. */
static const char *lacking(const struct workload *w)
{
	if (w->testcase)
		return NULL;
	if (!w->about)
		return ".about";
	if (!w->operate)
		return ".operate";
	if (w->flags & WORKLOAD_FIXED && !w->turns)
		return ".turns, which WORKLOAD_FIXED takes";
	if (w->flags & WORKLOAD_PROCESSES && !w->why_processes)
		return ".why_processes, which WORKLOAD_PROCESSES takes";
	return NULL;
}

static int check_own(const char *kind, const char *file, struct problem *p)
{
	const struct workload *const *w;

	for_each_workload (w)
		if (!strcmp((*w)->name, own.name) && lacking(*w))
			return problem_set(p, USAGE,
					   "--%s %s: its WORKLOAD() has no %s",
					   kind, file, lacking(*w));
	return DONE;
}

int own_words(int *argc, char **argv, bool named, char **all, struct problem *p)
{
	int at = 1, kind = -1, status;

	while (at < *argc && (kind = kind_of(argv[at])) < 0)
		at++;
	if (kind < 0)
		return DONE;
	if (at + 1 == *argc)
		return problem_set(p, USAGE, "--%s needs a file", kinds[kind]);
	if (!built_for(kinds[kind], argv[at + 1]))
		return become(kinds[kind], argv[at + 1], all, p);
	status = check_own(kinds[kind], argv[at + 1], p);
	if (status)
		return status;
	if (named) {
		/* The words before it move up by one, and cover the flag. */
		memmove(argv + 2, argv + 1, (at - 1) * sizeof(*argv));
		argv[1] = (char *)own.name;
		at++;
	}
	memmove(argv + at, argv + at + (named ? 1 : 2),
		(*argc - at - (named ? 1 : 2) + 1) * sizeof(*argv));
	*argc -= named ? 1 : 2;
	return DONE;
}
