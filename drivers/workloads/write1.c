// SPDX-License-Identifier: GPL-2.0-only
/*
 * write1: pwrite() of one byte to a file of the task's own.
 *
 * Kernel path: the descriptor looked up, the inode locked, one byte to the page
 * cache, the times set, and what fsnotify does at the end of a write.  That a
 * write to tmpfs took about twice a read, and that an unwatched file paid for
 * the watches of others, was the point of a patch in 2015.  No descriptor is
 * allocated: it is the rest of the path that the searches are a part of.
 *   --watch none         nobody watches the file
 *   --watch other        inotify, another file in the same directory
 *   --watch parent       inotify, the directory: an event a write
 *   --watch file         inotify, the file itself: an event a write
 *   --watch ignored-mask fanotify: the directory is watched, the file's events
 *                        are ignored (takes CAP_SYS_ADMIN)
 * The file is in --tmpdir; on a tmpfs (/dev/shm) the file system adds least.
 * Shape: scales with the tasks; other costs as none, parent and file more.
 */
#include "../harness/fd.h"

#ifdef FD_BACKEND_KERNEL
#include "watched.h"

static int operate(struct task *t, uint64_t n)
{
	int source = t->source;
	char byte = 0;

	while (n--)
		if (unlikely(pwrite(source, &byte, 1, 0) != 1))
			return task_fail(t, "pwrite");
	return 0;
}

static int prepare(struct task *t)
{
	return watched_prepare(t, t->options[0].number, operate);
}

WORKLOAD(.name = "write1",
	 .about = "pwrite of one byte, the file watched or not",
	 .options = {{.name = "watch",
		      .choices = WATCH_WORDS,
		      .fallback = "none",
		      .about = "what is watched"}},
	 .prepare = prepare, .operate = operate, .finish = watched_finish);
#endif
