// SPDX-License-Identifier: GPL-2.0-only
/* A hold's pattern, from its word, a file or a live process. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold.h"
#include "number.h"
#include "random.h"

#define WORDS "none, low:N, every:K, random:P, file:F or pid:PID"

static int no_memory(struct problem *p)
{
	return problem_set(p, COULD_NOT, "--hold: no memory for the pattern");
}

void hold_free(struct hold *hold)
{
	free(hold->bits);
	hold->bits = NULL;
}

static uint32_t words_for(uint32_t top)
{
	return top / 64 + 1;
}

/* An empty pattern with room for 0 .. @room-1. */
static int start_pattern(struct hold *hold, uint32_t room, struct problem *p)
{
	hold->top = 0;
	hold->bits = calloc(words_for(room), sizeof(*hold->bits));
	return hold->bits ? DONE : no_memory(p);
}

static void take(struct hold *hold, uint32_t fd)
{
	hold->bits[fd / 64] |= 1ull << fd % 64;
	if (fd >= hold->top)
		hold->top = fd + 1;
}

/* As take(), of a pattern whose end is not known beforehand. */
static int take_growing(struct hold *hold, uint32_t fd, uint32_t *room,
			struct problem *p)
{
	uint32_t more = fd < HOLD_MAX / 2 ? fd * 2 + 64 : HOLD_MAX;
	uint64_t *bits;

	if (fd >= *room) {
		bits = realloc(hold->bits, words_for(more) * sizeof(*bits));
		if (!bits)
			return no_memory(p);
		memset(bits + words_for(*room), 0,
		       (words_for(more) - words_for(*room)) * sizeof(*bits));
		hold->bits = bits;
		*room = more;
	}
	take(hold, fd);
	return DONE;
}

static int parse_every(const char *text, uint32_t top, struct hold *hold,
		       struct problem *p)
{
	uint64_t k;
	int status = number_parse("--hold every:K", text, 1, HOLD_MAX, &k, p);

	if (!status)
		status = start_pattern(hold, top, p);
	for (uint32_t fd = 0; !status && fd < top; fd++)
		if ((fd + 1) % k)
			take(hold, fd);
	return status;
}

static int parse_random(const char *text, uint32_t top, uint64_t seed,
			struct hold *hold, struct problem *p)
{
	char *end;
	double probability = strtod(text, &end);
	int status;

	/* strtod() takes signs, nan and hexadecimals. */
	if (!*text || text[strspn(text, "0123456789.")] || *end ||
	    probability > 1)
		return problem_set(p, USAGE,
				   "--hold random:P: '%s' is not a probability "
				   "from 0 to 1, such as 0.5",
				   text);
	status = start_pattern(hold, top, p);
	for (uint32_t fd = 0; !status && fd < top; fd++)
		/* 53 bits, as many as a double has: [0, 1). */
		if ((random_next(&seed) >> 11) * 0x1p-53 < probability)
			take(hold, fd);
	return status;
}

/* The next line without its end, LF or CR LF; false at the end of the file. */
static bool next_line(FILE *file, char *line, size_t room)
{
	size_t n = 0;
	int c;

	errno = 0;
	while ((c = getc(file)) != EOF && c != '\n') {
		if (n < room - 1)
			line[n++] = c ? c : '?'; /* a NUL would hide the rest */
		else if (*line != '#' && (*line = '?')) /* too long */
			break;
	}
	if (n && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	return n || c != EOF;
}

/* A line's descriptor; blank ones and comments (#) have none. */
static int read_line(const char *line, const char *what, struct hold *hold,
		     uint32_t *room, struct problem *p)
{
	uint64_t fd;
	int status;

	if (!*line || *line == '#')
		return DONE;
	status = number_parse(what, line, 0, HOLD_MAX - 1, &fd, p);
	return status ? status : take_growing(hold, fd, room, p);
}

static int parse_file(const char *path, struct hold *hold, struct problem *p)
{
	FILE *file = fopen(path, "re");
	char what[PATH_MAX + 64], line[256];
	unsigned int number = 0;
	uint32_t room = 0;
	int status;

	if (!file)
		return problem_set(p, USAGE, "--hold file:%s: %s", path,
				   strerror(errno));
	status = start_pattern(hold, room, p);
	while (!status && next_line(file, line, sizeof(line))) {
		snprintf(what, sizeof(what), "--hold file:%s: line %u", path,
			 ++number);
		status = read_line(line, what, hold, &room, p);
	}
	if (!status && ferror(file))
		status = problem_set(p, USAGE, "--hold file:%s: %s", path,
				     strerror(errno));
	fclose(file);
	if (!status && !hold->top)
		status = problem_set(p, USAGE,
				     "--hold file:%s: no descriptor in it; "
				     "low:0 holds nothing",
				     path);
	return status;
}

static int cannot_look(const char *pid, struct problem *p)
{
	if (errno == ENOENT || errno == ESRCH)
		return problem_set(p, USAGE, "--hold pid:%s: no such process",
				   pid);
	if (errno == EACCES || errno == EPERM)
		return problem_set(p, COULD_NOT,
				   "--hold pid:%s: another user's process: as "
				   "root, ./run.py hold capture %s --out F, "
				   "then --hold file:F",
				   pid, pid);
	return problem_set(p, COULD_NOT, "--hold pid:%s: /proc/%s/fd: %s", pid,
			   pid, strerror(errno));
}

static int parse_pid(const char *text, struct hold *hold, struct problem *p)
{
	char path[64];
	struct dirent *entry;
	uint32_t room = 0;
	uint64_t pid;
	int status = number_parse("--hold pid:PID", text, 1, INT_MAX, &pid, p);
	DIR *dir;

	if (status)
		return status;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return cannot_look(text, p);
	status = start_pattern(hold, room, p);
	errno = 0;
	while (!status && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			status = read_line(entry->d_name, path, hold, &room, p);
		errno = 0;
	}
	/* Where the process may not be looked at the folder opens all the same
	 * for some kernels, and its reading fails. */
	if (!status && errno)
		status = cannot_look(text, p);
	closedir(dir);
	if (!status && !hold->top)
		status = problem_set(p, COULD_NOT,
				     "--hold pid:%s: it has nothing open (a "
				     "kernel's thread, or ended)",
				     text);
	return status;
}

/* What follows the colon where @text begins with @word, else NULL. */
static const char *after(const char *text, const char *word)
{
	size_t n = strlen(word);

	return strncmp(text, word, n) ? NULL : text + n;
}

int hold_parse(const char *text, uint32_t top, uint64_t seed, struct hold *hold,
	       struct problem *p)
{
	const char *value;
	uint64_t n = 3;
	int status = DONE;

	*hold = (struct hold){.text = text};
	if ((value = after(text, "every:")))
		status = parse_every(value, top, hold, p);
	else if ((value = after(text, "random:")))
		status = parse_random(value, top, seed, hold, p);
	else if ((value = after(text, "file:")))
		status = parse_file(value, hold, p);
	else if ((value = after(text, "pid:")))
		status = parse_pid(value, hold, p);
	else if ((value = after(text, "low:")))
		status =
			number_parse("--hold low:N", value, 0, HOLD_MAX, &n, p);
	else if (strcmp(text, "none"))
		status = problem_set(p, USAGE, "--hold: '%s' is not " WORDS,
				     text);
	if (status)
		hold_free(hold);
	else if (!hold->bits)
		hold->top = n;
	return status;
}
