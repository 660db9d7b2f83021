// SPDX-License-Identifier: GPL-2.0-only
#include "kswitch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KNOB "/sys/module/fdscale/parameters/variant"

const char *kswitch_path(void)
{
	const char *given = getenv("FDSCALE_KNOB");

	return given && *given ? given : KNOB;
}

bool kswitch_there(void)
{
	return !access(kswitch_path(), F_OK);
}

static bool read_knob(int knob, char *name, size_t size)
{
	ssize_t n = pread(knob, name, size - 1, 0);

	if (n <= 0)
		return false;
	name[n] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return true;
}

bool kswitch_read(char *name, size_t size)
{
	int knob = open(kswitch_path(), O_RDONLY | O_CLOEXEC);
	bool ok = knob >= 0 && read_knob(knob, name, size);

	if (knob >= 0)
		close(knob);
	return ok;
}

bool kswitch_has(const char *name)
{
	const char *knob = kswitch_path();
	const char *slash = strrchr(knob, '/');
	char path[256], word[64];
	bool has = false;
	FILE *words;

	snprintf(path, sizeof(path), "%.*swords",
		 slash ? (int)(slash - knob + 1) : 0, knob);
	words = fopen(path, "re");
	if (!words)
		return false;
	while (!has && fscanf(words, "%*s %63s", word) == 1)
		has = !strcmp(word, name);
	fclose(words);
	return has;
}

/* The kernel takes it with or without a newline; a plain file of a test keeps
 * what a longer name left behind, so it ends in one. */
static int write_knob(int knob, const char *name)
{
	char line[130];
	int n = snprintf(line, sizeof(line), "%s\n", name);

	if (n >= (int)sizeof(line))
		return ENAMETOOLONG;
	return pwrite(knob, line, (size_t)n, 0) == n ? 0 : errno;
}

static void keep(const struct kswitch *k, int life)
{
	char byte;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	while (read(life, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(write_knob(k->knob, k->found) ? COULD_NOT : DONE);
}

int kswitch_open(struct kswitch *k, struct problem *p)
{
	int ends[2];

	*k = (struct kswitch){.knob = -1, .life = -1};
	if (!kswitch_there())
		return DONE;
	k->knob = open(kswitch_path(), O_RDWR | O_CLOEXEC);
	if (k->knob < 0)
		return problem_set(p, COULD_NOT, "%s: %s; be root",
				   kswitch_path(), strerror(errno));
	if (!read_knob(k->knob, k->found, sizeof(k->found)) || pipe(ends))
		return problem_set(p, COULD_NOT, "%s: %s", kswitch_path(),
				   strerror(errno));
	k->keeper = fork();
	if (!k->keeper) {
		close(ends[1]);
		keep(k, ends[0]);
	}
	close(ends[0]);
	k->life = ends[1];
	if (k->keeper < 0)
		return problem_set(p, COULD_NOT, "fork: %s", strerror(errno));
	return DONE;
}

int kswitch_set(struct kswitch *k, const char *name, struct problem *p)
{
	char now[sizeof(k->found)] = "";
	int error;

	if (k->knob < 0)
		return DONE;
	if (strlen(name) >= sizeof(k->found))
		return problem_set(p, USAGE, "--variant: too long a name");
	error = write_knob(k->knob, name);
	if (error == EINVAL)
		return problem_set(p, USAGE,
				   "--variant: this kernel's switch has no %s",
				   name);
	if (error)
		return problem_set(p, COULD_NOT, "%s: %s", kswitch_path(),
				   strerror(error));
	if (!read_knob(k->knob, now, sizeof(now)) || strcmp(now, name))
		return problem_set(p, COULD_NOT, "%s: wrote %s, reads back %s",
				   kswitch_path(), name, now);
	return DONE;
}

void kswitch_close(struct kswitch *k)
{
	if (k->life >= 0)
		close(k->life);
	if (k->keeper > 0)
		while (waitpid(k->keeper, NULL, 0) < 0 && errno == EINTR)
			;
	if (k->knob >= 0)
		close(k->knob);
}
