/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a descriptor table does, said as plainly as can be: one array entry a
 * descriptor, each search a loop from the bottom.
 */
#ifndef FDSCALE_ORACLE_H
#define FDSCALE_ORACLE_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define ORACLE_MAX 8192u /* the largest nr_open that a case has fits */
#define ORACLE_FREE (-1)
#define ORACLE_RESERVED (-2)

struct oracle {
	int what[ORACLE_MAX]; /* a file's number, or one of the above */
	bool cloexec[ORACLE_MAX];
	unsigned int slots, limit, nr_open;
	bool end_late;
};

static inline void oracle_init(struct oracle *o, unsigned int limit,
			       unsigned int nr_open, bool end_late)
{
	memset(o, 0, sizeof(*o));
	memset(o->what, 0xff, sizeof(o->what)); /* ORACLE_FREE */
	o->slots = 64;
	o->limit = limit;
	o->nr_open = nr_open;
	o->end_late = end_late;
}

/* 64, or the power of two above that holds @fd; nr_open in whole words. */
static inline unsigned int oracle_slots(const struct oracle *o, unsigned int fd)
{
	unsigned int slots = 64;

	while (slots <= fd)
		slots *= 2;
	if (slots > 64 && slots > o->nr_open)
		slots = (o->nr_open + 63) / 64 * 64;
	return slots;
}

static inline int oracle_expand(struct oracle *o, unsigned int fd)
{
	if (fd < o->slots)
		return 0;
	if (fd >= o->nr_open)
		return -EMFILE;
	o->slots = oracle_slots(o, fd);
	return 0;
}

static inline unsigned int oracle_lowest(const struct oracle *o,
					 unsigned int start)
{
	while (start < ORACLE_MAX && o->what[start] != ORACLE_FREE)
		start++;
	return start;
}

static inline int oracle_alloc(struct oracle *o, unsigned int start)
{
	unsigned int fd = oracle_lowest(o, start);

	if (o->end_late && oracle_expand(o, fd))
		return -EMFILE;
	if (fd >= o->limit || oracle_expand(o, fd))
		return -EMFILE;
	return (int)fd;
}

static inline bool oracle_has_file(const struct oracle *o, unsigned int fd)
{
	return fd < ORACLE_MAX && o->what[fd] >= 0;
}

static inline void oracle_take(struct oracle *o, unsigned int fd, int what,
			       bool cloexec)
{
	o->what[fd] = what;
	o->cloexec[fd] = cloexec;
}

static inline int oracle_dup3(struct oracle *o, unsigned int oldfd,
			      unsigned int newfd, bool cloexec)
{
	if (oldfd == newfd) {
		if (cloexec)
			return -EINVAL;
		return oracle_has_file(o, oldfd) ? (int)newfd : -EBADF;
	}
	if (newfd >= o->limit || oracle_expand(o, newfd) ||
	    !oracle_has_file(o, oldfd))
		return -EBADF;
	if (o->what[newfd] == ORACLE_RESERVED)
		return -EBUSY;
	oracle_take(o, newfd, o->what[oldfd], cloexec);
	return (int)newfd;
}

static inline int oracle_close(struct oracle *o, unsigned int fd)
{
	if (!oracle_has_file(o, fd))
		return -EBADF;
	o->what[fd] = ORACLE_FREE;
	return 0;
}

/* The copy that fork makes, without [first, last] (none if first > last). */
static inline void oracle_copy(struct oracle *o, unsigned int first,
			       unsigned int last)
{
	unsigned int fd, highest = 0;

	for (fd = 0; fd < o->slots; fd++) {
		if (fd >= first && fd <= last)
			o->what[fd] = ORACLE_FREE;
		if (o->what[fd] != ORACLE_FREE)
			highest = fd;
		if (o->what[fd] == ORACLE_RESERVED)
			o->what[fd] = ORACLE_FREE;
	}
	o->slots = oracle_slots(o, highest);
}

static inline int oracle_close_range(struct oracle *o, unsigned int first,
				     unsigned int last, bool unshare,
				     bool cloexec)
{
	if (first > last)
		return -EINVAL;
	if (unshare)
		oracle_copy(o, cloexec ? 1 : first, cloexec ? 0 : last);
	for (unsigned int fd = first; fd <= last && fd < o->slots; fd++) {
		if (cloexec)
			o->cloexec[fd] = true;
		else
			oracle_close(o, fd);
	}
	return 0;
}

#endif
