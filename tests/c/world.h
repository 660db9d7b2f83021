/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations on a table and on the oracle at once, compared after each.
 */
#ifndef FDSCALE_WORLD_H
#define FDSCALE_WORLD_H

#include <stdio.h>

#include "../../drivers/fdtable/table.h"
#include "oracle.h"

#define CASE_OPS 160
#define CASE_FILES 4
#define CASE_TASKS 3

enum op_kind {
	OP_OPEN,	/* file a % 4, cloexec flag */
	OP_DUP,		/* a */
	OP_DUPFD,	/* a, start b, cloexec flag */
	OP_DUP3,	/* a over b, cloexec flag */
	OP_CLOSE,	/* a */
	OP_CLOSE_RANGE, /* a to b, flag: 1 cloexec, 2 unshare */
	OP_RESERVE,	/* cloexec flag */
	OP_UNRESERVE,	/* a, if it is reserved */
	OP_GET,		/* a */
	OP_LIMIT,	/* a */
	OP_FORK,	/* and go on with the copy if the flag is set */
	OP_FILL,	/* take every free one from a up, b of them */
	OP_GROW,	/* to a slots */
	OP_KINDS
};

static const char *const op_names[OP_KINDS] = {
	"open",	     "dup", "dupfd", "dup3", "close", "close_range", "reserve",
	"unreserve", "get", "limit", "fork", "fill",  "grow",
};

struct op {
	enum op_kind kind;
	unsigned int task, a, b, flag;
};

struct prop_case {
	const struct variant *variant;
	uint64_t seed;
	bool structure; /* look at next_fd and full bits too */
	unsigned int tasks, limit, nr_open;
	unsigned int count;
	struct op ops[CASE_OPS];
};

struct world {
	const struct prop_case *c;
	struct files *files;
	struct files_task tasks[CASE_TASKS];
	struct model_file file[CASE_FILES];
	struct oracle oracle;
	char why[200];
};

static inline bool fails_any(const struct variant *v)
{
	return v->shape == SHAPE_ANY || v->shape == SHAPE_SPLIT;
}

/* v1 is right only while start is 0 and the limit is not within word 0. */
static inline bool is_v1(const struct variant *v)
{
	return !strncmp(v->name, "first-word-v1", 13) ||
	       !strncmp(v->name, "series-v1", 9);
}

static inline bool wrong(struct world *w, const char *what, long got, long want)
{
	snprintf(w->why, sizeof(w->why), "%s: %ld, should be %ld", what, got,
		 want);
	return false;
}

/* Two descriptors' worth of looking: what each operation leaves behind. */
static inline bool same_at(struct world *w, const struct files *files,
			   const struct oracle *o, unsigned int fd)
{
	bool open = o->what[fd] != ORACLE_FREE;
	const struct fdtable *fdt = table_of(files);
	struct model_file *file, *want;

	if (files_is_open(files, fd) != open)
		return wrong(w, "open", files_is_open(files, fd), open);
	if (fd >= fdt->max_fds)
		return true;
	file = fdt->fd[fd];
	want = o->what[fd] >= 0 ? &w->file[o->what[fd]] : NULL;
	if (file != want)
		return wrong(w, "file of descriptor", fd, o->what[fd]);
	if (open && files_cloexec(files, fd) != o->cloexec[fd])
		return wrong(w, "cloexec", files_cloexec(files, fd),
			     o->cloexec[fd]);
	return true;
}

static inline bool same_structure(struct world *w, const struct files *files)
{
	const struct fdtable *fdt = table_of(files);
	enum shape shape = files->variant->shape;
	unsigned int i, words = fdt->max_fds / WORD_BITS;
	bool full;

	for (i = 0; i < files->next_fd; i++)
		if (!files_is_open(files, i))
			return wrong(w, "next_fd", files->next_fd, i);
	for (i = 0; i < words && shape != SHAPE_SPLIT; i++) {
		full = fdt->open_fds[i] == WORD_FULL;
		if (bit_test(fdt->full_fds_bits, i) != full)
			return wrong(w, "full bit of word", i, full);
	}
	for (i = 0; shape == SHAPE_TOP && i < (words + 63) / 64; i++) {
		full = fdt->full_fds_bits[i] == WORD_FULL;
		if (bit_test(fdt->top_bits, i) != full)
			return wrong(w, "third-level bit", i, full);
	}
	return true;
}

static inline bool same_table(struct world *w, const struct files *files,
			      const struct oracle *o)
{
	unsigned int fd;

	if (files->variant->shape != SHAPE_SPLIT &&
	    files_slots(files) != o->slots)
		return wrong(w, "slots", files_slots(files), o->slots);
	for (fd = 0; fd < files_slots(files) && fd < ORACLE_MAX; fd++)
		if (!same_at(w, files, o, fd))
			return false;
	return !w->c->structure || same_structure(w, files);
}

static inline bool same_counts(struct world *w)
{
	long held[CASE_FILES] = {0};

	for (unsigned int fd = 0; fd < w->oracle.slots; fd++)
		if (w->oracle.what[fd] >= 0)
			held[w->oracle.what[fd]]++;
	for (unsigned int i = 0; i < CASE_FILES; i++)
		if (w->file[i].count != held[i])
			return wrong(w, "count of a file", w->file[i].count,
				     held[i]);
	return true;
}

/* The table is given up; all go on with the copy. */
static inline void adopt(struct world *w, struct files *copy)
{
	struct files *old = w->files;

	for (unsigned int i = 0; i < w->c->tasks; i++) {
		if (w->tasks[i].files == copy)
			continue;
		files_detach(&w->tasks[i]);
		files_attach(&w->tasks[i], copy, i);
	}
	files_free(old);
	w->files = copy;
}

/* What alloc gave against the oracle, which then takes the same. */
static inline bool check_alloc(struct world *w, const char *name, int got,
			       unsigned int start, int what, bool cloexec)
{
	struct oracle *o = &w->oracle;
	int want = oracle_alloc(o, start);

	/* Parts grow the table when they please. */
	if (w->c->variant->shape == SHAPE_SPLIT)
		o->slots = files_slots(w->files);
	if (fails_any(w->c->variant) && got >= 0 && want >= 0) {
		if ((unsigned int)got < start ||
		    (unsigned int)got >= o->limit ||
		    o->what[got] != ORACLE_FREE)
			return wrong(w, name, got, want);
	} else if (got != want) {
		return wrong(w, name, got, want);
	}
	if (got < 0)
		return true;
	oracle_take(o, (unsigned int)got, what, cloexec);
	return same_at(w, w->files, o, (unsigned int)got);
}

static inline bool run_fill(struct world *w, const struct op *op)
{
	struct oracle *o = &w->oracle;
	unsigned int fd;
	int got;

	for (fd = op->a; fd < op->a + op->b && fd < o->nr_open; fd++) {
		got = files_hold(&w->tasks[op->task], fd, &w->file[0]);
		if (o->what[fd] != ORACLE_FREE) {
			if (got != -EBUSY)
				return wrong(w, "hold", got, -EBUSY);
			continue;
		}
		if (got || oracle_expand(o, fd))
			return wrong(w, "hold", got, 0);
		oracle_take(o, fd, 0, false);
	}
	return true;
}

static inline bool run_fork(struct world *w, const struct op *op)
{
	static struct oracle before;
	struct files *copy = files_fork(&w->tasks[op->task]);

	if (!copy)
		return wrong(w, "fork", errno, 0);
	before = w->oracle;
	oracle_copy(&w->oracle, 1, 0);
	if (!same_table(w, copy, &w->oracle)) {
		files_free(copy);
		return false;
	}
	if (op->flag) {
		adopt(w, copy);
	} else {
		w->oracle = before;
		files_free(copy);
	}
	return same_table(w, w->files, &w->oracle);
}

static inline bool run_range(struct world *w, const struct op *op)
{
	struct files_task *t = &w->tasks[op->task];
	unsigned int flags = (op->flag & 1 ? FILES_RANGE_CLOEXEC : 0) |
			     (op->flag & 2 ? FILES_RANGE_UNSHARE : 0);
	int got = files_close_range(t, op->a, op->b, flags);
	int want = oracle_close_range(&w->oracle, op->a, op->b, op->flag & 2,
				      op->flag & 1);

	if (t->files != w->files)
		adopt(w, t->files);
	if (got != want)
		return wrong(w, "close_range", got, want);
	return same_table(w, w->files, &w->oracle);
}

static inline bool run_op(struct world *w, const struct op *op)
{
	struct files_task *t = &w->tasks[op->task];
	struct oracle *o = &w->oracle;
	unsigned int flags = op->flag ? FILES_CLOEXEC : 0;
	int what = op->a < ORACLE_MAX ? o->what[op->a] : ORACLE_FREE;
	struct model_file *file;
	int got, want;

	switch (op->kind) {
	case OP_OPEN:
		got = files_open(t, &w->file[op->a % CASE_FILES], flags);
		return check_alloc(w, "open", got, 0, op->a % CASE_FILES,
				   op->flag);
	case OP_DUP:
		got = files_dup(t, op->a);
		if (what < 0)
			return got == -EBADF || wrong(w, "dup", got, -EBADF);
		return check_alloc(w, "dup", got, 0, what, false);
	case OP_DUPFD:
		got = files_dupfd(t, op->a, op->b, flags);
		want = what < 0 ? -EBADF : op->b >= o->limit ? -EINVAL : 0;
		if (want)
			return got == want || wrong(w, "dupfd", got, want);
		return check_alloc(w, "dupfd", got, op->b, what, op->flag);
	case OP_DUP3:
		got = files_dup3(t, op->a, op->b, flags);
		want = oracle_dup3(o, op->a, op->b, op->flag);
		if (got != want)
			return wrong(w, "dup3", got, want);
		return got < 0 || same_at(w, w->files, o, op->b);
	case OP_CLOSE:
		got = files_close(t, op->a);
		want = oracle_close(o, op->a);
		if (got != want)
			return wrong(w, "close", got, want);
		return same_at(w, w->files, o, op->a);
	case OP_CLOSE_RANGE:
		return run_range(w, op);
	case OP_RESERVE:
		got = files_reserve(t, flags);
		return check_alloc(w, "reserve", got, 0, ORACLE_RESERVED,
				   op->flag);
	case OP_UNRESERVE:
		if (what != ORACLE_RESERVED)
			return true;
		files_unreserve(t, op->a);
		o->what[op->a] = ORACLE_FREE;
		return same_at(w, w->files, o, op->a);
	case OP_GET:
		file = files_get(t, op->a);
		if (file != (what >= 0 ? &w->file[what] : NULL))
			return wrong(w, "get", !!file, what >= 0);
		if (file)
			files_put(file);
		return true;
	case OP_LIMIT:
		files_set_limit(w->files, op->a);
		o->limit = op->a;
		return true;
	case OP_FORK:
		return run_fork(w, op);
	case OP_FILL:
		return run_fill(w, op);
	case OP_GROW:
		got = files_grow(t, op->a);
		want = op->a ? oracle_expand(o, op->a - 1) : 0;
		return got == want || wrong(w, "grow", got, want);
	default:
		return wrong(w, "no such operation", op->kind, 0);
	}
}

#endif
