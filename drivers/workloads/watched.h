/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For read1 and write1: a file of one byte, the task's source, and who watches.
 * Each task's file lies in a directory of its own, so that a task's watch sees
 * the task alone.  The group that watches takes one descriptor; its queue holds
 * one event, since equal ones are merged, and is not read.
 */
#ifndef FDSCALE_WATCHED_H
#define FDSCALE_WATCHED_H

#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "../harness/fd.h"

enum watch { WATCH_NONE, WATCH_OTHER, WATCH_PARENT, WATCH_FILE, WATCH_IGNORED };
#define WATCH_WORDS "none other parent file ignored-mask"

/* @directory, @file and @other are paths; the group's descriptor or -1. */
static inline int watch_start(struct task *t, enum watch watch,
			      const char *directory, const char *file,
			      const char *other)
{
	const uint64_t mask = FAN_ACCESS | FAN_MODIFY;
	const unsigned int ignore = FAN_MARK_ADD | FAN_MARK_IGNORED_MASK |
				    FAN_MARK_IGNORED_SURV_MODIFY;
	const char *what = watch == WATCH_FILE	   ? file
			   : watch == WATCH_PARENT ? directory
						   : other;
	int group;

	if (watch != WATCH_IGNORED) {
		group = inotify_init1(IN_NONBLOCK);
		if (group < 0)
			return task_fail(t, "inotify_init1");
		if (inotify_add_watch(group, what, IN_ACCESS | IN_MODIFY) < 0)
			return task_fail(t, "inotify_add_watch");
		return group;
	}
	group = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
	if (group < 0)
		return task_fail(t, "fanotify_init (CAP_SYS_ADMIN?)");
	if (fanotify_mark(group, FAN_MARK_ADD, mask | FAN_EVENT_ON_CHILD,
			  AT_FDCWD, directory) ||
	    fanotify_mark(group, ignore, mask, AT_FDCWD, file))
		return task_fail(t, "fanotify_mark");
	return group;
}

/* The file made and, by task_fail(), refused where it cannot be watched. */
static inline int watched_prepare(struct task *t, enum watch watch,
				  int (*operate)(struct task *, uint64_t))
{
	char file[300], other[300];
	int group, fd, queued = 0;

	snprintf(file, sizeof(file), "%s/file", t->own.path);
	snprintf(other, sizeof(other), "%s/other", t->own.path);
	if (mkdir(t->own.path, 0700))
		return task_fail(t, "mkdir");
	if (fd_make_file(t, other))
		return -1;
	fd = open(file, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return task_fail(t, "open");
	if (pwrite(fd, "", 1, 0) != 1)
		return task_fail(t, "pwrite");
	if (fd_become_source(t, fd))
		return -1;
	if (watch == WATCH_NONE)
		return 0;
	group = watch_start(t, watch, t->own.path, file, other);
	if (group < 0)
		return -1;
	t->data = (void *)(intptr_t)group;
	if (operate(t, 1))
		return -1;
	/* Is it watched as asked? */
	if (ioctl(group, FIONREAD, &queued))
		return task_fail(t, "ioctl(FIONREAD)");
	if ((queued > 0) == (watch == WATCH_PARENT || watch == WATCH_FILE))
		return 0;
	errno = EPROTO;
	return task_fail(t, "the watch's events");
}

/* The group is the task's own: the hold is to be found as it was. */
static inline void watched_finish(struct task *t)
{
	if (t->data)
		close((intptr_t)t->data);
}

#endif
