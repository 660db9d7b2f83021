// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_path VARIANT FREE TOP N: N times dup + close on the model, from a table
 * in which 0 .. TOP-1 are taken but FREE (a hole; FREE == TOP: none).  Run
 * under callgrind with two values of N: the difference is the path length, free
 * of set-up.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../drivers/fdtable/fdtable.h"

int main(int argc, char **argv)
{
	static struct model_file file;
	struct files_task *t = aligned_alloc(64, sizeof(*t));
	struct files_options options = {
		.tasks = 1, .limit = 1u << 30, .nr_open = 1u << 30};
	struct problem p;
	unsigned int hole, top;
	long n;

	if (argc != 5 || !t)
		return USAGE;
	hole = atoi(argv[2]);
	top = atoi(argv[3]);
	n = atol(argv[4]);
	options.variant = variant_find(argv[1], FILES_LOCK_QUEUED, false, &p);
	if (!options.variant) {
		fprintf(stderr, "%s\n", p.text);
		return USAGE;
	}
	atomic_init(&file.count, 1);
	files_attach(t, files_new(&options), 0);
	files_grow(t, top + 64);
	for (unsigned int fd = 0; fd < top; fd++)
		if (fd != hole)
			files_hold(t, fd, &file);
	while (n--) {
		int fd = files_dup(t, 0);

		if (fd != (int)hole || files_close(t, fd))
			return ANSWER_NO;
	}
	return DONE;
}
