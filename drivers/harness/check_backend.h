/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls that the rules of check.c are made of.  A fresh table has one file
 * at descriptor 0, nothing else, and the soft limit CHECK_LIMIT.  Calls return
 * a descriptor, 0, or -errno.
 */
#ifndef FDSCALE_CHECK_BACKEND_H
#define FDSCALE_CHECK_BACKEND_H

#include <stdbool.h>

#include "check.h"

#define CHECK_LIMIT 1024u

enum check_copy { COPY_FORKED, COPY_SHARED };

struct check_table;
typedef int check_body(struct check_table *t);

struct check_table {
	const struct check_calls *calls;
	struct check_result *result; /* of the rule being tried */
	void *own;		     /* the backend's */
};

struct check_calls {
	/* One of two files, told apart by file_of(). */
	int (*open)(struct check_table *t, int file, bool cloexec);
	int (*dup)(struct check_table *t, unsigned int fd);
	int (*dupfd)(struct check_table *t, unsigned int fd, unsigned int start,
		     bool cloexec);
	int (*dup2)(struct check_table *t, unsigned int fd, unsigned int newfd);
	int (*dup3)(struct check_table *t, unsigned int fd, unsigned int newfd,
		    bool cloexec);
	int (*close)(struct check_table *t, unsigned int fd);
	/* @flags as the model's FILES_RANGE_*, and others as they are. */
	int (*close_range)(struct check_table *t, unsigned int first,
			   unsigned int last, unsigned int flags);
	int (*set_limit)(struct check_table *t, unsigned int limit);
	/* 0 or 1: which file; -EBADF. */
	int (*file_of)(struct check_table *t, unsigned int fd);
	int (*cloexec)(struct check_table *t, unsigned int fd);
	/* Run @body by a task with a copy of the table, or sharing it. */
	int (*elsewhere)(struct check_table *t, enum check_copy how,
			 check_body *body);
	/* What comes of going one past nr_open: -EMFILE or -EPERM. */
	int (*pass_nr_open)(struct check_table *t);
};

/*
 * Run @body on a fresh table; 0, or -errno: could not make one.  What @body
 * writes to @result arrives there.
 */
int check_on_kernel(struct check_result *result, check_body *body);
int check_on_model(const struct variant *v, struct check_result *result,
		   check_body *body);

#endif
