// SPDX-License-Identifier: GPL-2.0-only
/*
 * read1: pread() of one byte of a file of the task's own.
 *
 * Kernel path: the descriptor looked up, one byte from the page cache, and
 * what fsnotify does at the end of a read.  No descriptor is allocated: it is
 * the rest of the path that the searches are a part of.
 *   --watch none         nobody watches the file
 *   --watch other        inotify, another file in the same directory
 *   --watch parent       inotify, the directory: an event a read
 *   --watch file         inotify, the file itself: an event a read
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
	char byte;

	while (n--)
		if (unlikely(pread(source, &byte, 1, 0) != 1))
			return task_fail(t, "pread");
	return 0;
}

static int prepare(struct task *t)
{
	return watched_prepare(t, t->options[0].number, operate);
}

WORKLOAD(.name = "read1", .about = "pread of one byte, the file watched or not",
	 .options = {{.name = "watch",
		      .choices = WATCH_WORDS,
		      .fallback = "none",
		      .about = "what is watched"}},
	 .prepare = prepare, .operate = operate, .finish = watched_finish);
#endif
