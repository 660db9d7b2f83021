// SPDX-License-Identifier: GPL-2.0-only
/*
 * open-close: open() and close() of a file.
 *
 * Kernel path: alloc_fd() under file_lock, the path walk, a struct file made;
 * then the close path, which takes the lock again and frees the file.  It is
 * the load that most claims were made about.
 * It does not show the search alone: that is a small part (dup-close), and
 * what is read or written (fileserver) is none.
 *   --file own     each task a file, all in one directory (will-it-scale open1)
 *   --file shared  one file for all: the dentry's reference bounces (open3)
 *   --file null    /dev/null: a device, opened through its own open method
 *   --file dirs    each task a file in a directory of its own (open2)
 * On the model no path is walked: own, null and dirs are the same there, and
 * shared is one file object whose count bounces.
 * Shape: processes scale with the PUs, but for shared; threads less than that,
 * and fall where file_lock becomes the larger part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../harness/fd.h"

enum { OWN, SHARED, NULL_DEVICE, DIRS };

#ifdef FD_BACKEND_KERNEL
static int prepare(struct task *t)
{
	size_t end = strlen(t->own.path);

	switch (t->options[0].number) {
	case SHARED:
		t->own = t->shared;
		break;
	case NULL_DEVICE:
		strcpy(t->own.path, "/dev/null");
		return 0;
	case DIRS:
		if (mkdir(t->own.path, 0700) && errno != EEXIST)
			return task_fail(t, "mkdir");
		snprintf(t->own.path + end, sizeof(t->own.path) - end, "/file");
		break;
	}
	return fd_make_file(t, t->own.path);
}
#else
static int prepare(struct task *t)
{
	if (t->options[0].number == SHARED)
		t->own = t->shared;
	return 0;
}
#endif

static int operate(struct task *t, uint64_t n)
{
	const struct target *what = &t->own;

	while (n--) {
		int fd = fd_open(t, what, O_RDWR);

		if (unlikely(fd < 0))
			return task_fail(t, "open");
		if (unlikely(fd_close(t, fd)))
			return task_fail(t, "close");
	}
	return 0;
}

WORKLOAD(.name = "open-close",
	 .about = "open + close of a file (open1, open2, open3)",
	 .options = {{.name = "file",
		      .choices = "own shared null dirs",
		      .fallback = "own",
		      .about = "which file each task opens"}},
	 .prepare = prepare, .operate = operate);
