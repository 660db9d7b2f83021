// SPDX-License-Identifier: GPL-2.0-only
/* The rules' calls on the userspace model. */
#include <errno.h>

#include "check_backend.h"

#define NR_OPEN 4096u

struct model {
	struct files_task task;
	struct model_file *files; /* the two */
};

static struct files_task *task(struct check_table *t)
{
	return &((struct model *)t->own)->task;
}

static int model_open(struct check_table *t, int file, bool cloexec)
{
	struct model *m = t->own;

	return files_open(&m->task, &m->files[file],
			  cloexec ? FILES_CLOEXEC : 0);
}

static int model_dup(struct check_table *t, unsigned int fd)
{
	return files_dup(task(t), fd);
}

static int model_dupfd(struct check_table *t, unsigned int fd,
		       unsigned int start, bool cloexec)
{
	return files_dupfd(task(t), fd, start, cloexec ? FILES_CLOEXEC : 0);
}

static int model_dup2(struct check_table *t, unsigned int fd,
		      unsigned int newfd)
{
	return files_dup3(task(t), fd, newfd, 0);
}

static int model_dup3(struct check_table *t, unsigned int fd,
		      unsigned int newfd, bool cloexec)
{
	return files_dup3(task(t), fd, newfd, cloexec ? FILES_CLOEXEC : 0);
}

static int model_close(struct check_table *t, unsigned int fd)
{
	return files_close(task(t), fd);
}

static int model_close_range(struct check_table *t, unsigned int first,
			     unsigned int last, unsigned int flags)
{
	return files_close_range(task(t), first, last, flags);
}

static int model_set_limit(struct check_table *t, unsigned int limit)
{
	files_set_limit(task(t)->files, limit);
	return 0;
}

static int model_file_of(struct check_table *t, unsigned int fd)
{
	struct model *m = t->own;
	struct model_file *file = files_get(&m->task, fd);

	if (!file)
		return -EBADF;
	files_put(file);
	return file == &m->files[1];
}

static int model_cloexec(struct check_table *t, unsigned int fd)
{
	return files_cloexec(task(t)->files, fd);
}

static int model_elsewhere(struct check_table *t, enum check_copy how,
			   check_body *body)
{
	struct model *m = t->own;
	struct files *files = m->task.files;
	struct model other = {.files = m->files};
	struct check_table there = *t;
	int ret;

	if (how == COPY_FORKED) {
		files = files_fork(&m->task);
		if (!files)
			return -errno;
	}
	files_attach(&other.task, files, 1);
	there.own = &other;
	ret = body(&there);
	files = other.task.files;
	files_detach(&other.task);
	if (files != m->task.files)
		files_free(files);
	return ret;
}

static int model_pass_nr_open(struct check_table *t)
{
	files_set_limit(task(t)->files, NR_OPEN + 64);
	return files_dupfd(task(t), 0, NR_OPEN, 0);
}

static const struct check_calls model_calls = {
	.open = model_open,
	.dup = model_dup,
	.dupfd = model_dupfd,
	.dup2 = model_dup2,
	.dup3 = model_dup3,
	.close = model_close,
	.close_range = model_close_range,
	.set_limit = model_set_limit,
	.file_of = model_file_of,
	.cloexec = model_cloexec,
	.elsewhere = model_elsewhere,
	.pass_nr_open = model_pass_nr_open,
};

int check_on_model(const struct variant *v, struct check_result *result,
		   check_body *body)
{
	struct model_file two[2] = {0};
	struct model m = {.files = two};
	struct check_table t = {&model_calls, result, &m};
	struct files *files = files_new(&(struct files_options){
		.variant = v,
		.tasks = 2,
		.limit = CHECK_LIMIT,
		.nr_open = NR_OPEN,
	});
	int ret;

	if (!files)
		return -errno;
	files_attach(&m.task, files, 0);
	ret = files_hold(&m.task, 0, &two[0]);
	if (!ret)
		body(&t);
	files_detach(&m.task);
	files_free(files);
	return ret;
}
