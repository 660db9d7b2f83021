// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_path VARIANT LOOP FREE TOP N: N turns of a loop on the model, from a
 * table in which 0 .. TOP-1 are taken but FREE (a hole; FREE == TOP: none).
 * Run under callgrind with two values of N: the difference is the path length,
 * free of set-up.  A turn is
 *   pair   dup + close
 *   stale  FREE and TOP taken, then close both, dup twice: two pairs
 *   churn  close(3), dup2(0, 3), dup(0), which stays
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../drivers/fdtable/fdtable.h"

struct table {
	struct files_task *t;
	int hole, top;
};

static bool pair(const struct table *b, long n)
{
	bool ok = true;

	while (n--) {
		int fd = files_dup(b->t, 0);

		ok &= fd == b->hole && !files_close(b->t, fd);
	}
	return ok;
}

static bool stale(const struct table *b, long n)
{
	bool ok = files_dup(b->t, 0) == b->hole && files_dup(b->t, 0) == b->top;

	while (n--)
		ok &= !files_close(b->t, b->hole) &&
		      !files_close(b->t, b->top) &&
		      files_dup(b->t, 0) == b->hole &&
		      files_dup(b->t, 0) == b->top;
	return ok;
}

static bool churn(const struct table *b, long n)
{
	bool ok = true;

	while (n--)
		ok &= !files_close(b->t, 3) && files_dup3(b->t, 0, 3, 0) == 3 &&
		      files_dup(b->t, 0) > 3;
	return ok;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(const struct table *b, long n);
	} loops[] = {{"pair", pair}, {"stale", stale}, {"churn", churn}};
	static struct model_file file;
	struct files_options options = {
		.tasks = 1, .limit = 1u << 30, .nr_open = 1u << 30};
	struct table b = {.t = aligned_alloc(64, sizeof(*b.t))};
	struct problem p;

	if (argc != 6 || !b.t)
		return USAGE;
	b.hole = atoi(argv[3]);
	b.top = atoi(argv[4]);
	options.variant = variant_find(argv[1], FILES_LOCK_QUEUED, false, &p);
	if (!options.variant) {
		fprintf(stderr, "%s\n", p.text);
		return USAGE;
	}
	atomic_init(&file.count, 1);
	files_attach(b.t, files_new(&options), 0);
	files_grow(b.t, b.top + 4096);
	for (int fd = 0; fd < b.top; fd++)
		if (fd != b.hole)
			files_hold(b.t, fd, &file);
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		if (!strcmp(argv[2], loops[i].name))
			return loops[i].run(&b, atol(argv[5])) ? DONE
							       : ANSWER_NO;
	return USAGE;
}
