/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What went wrong, in one line that names the thing and the remedy, with the
 * exit status that goes with it.  Functions that can fail return 0 or that
 * status and fill in a struct problem; only main() prints and exits.
 */
#ifndef FDSCALE_PROBLEM_H
#define FDSCALE_PROBLEM_H

enum status {
	DONE = 0,
	ANSWER_NO = 1,
	USAGE = 2,
	COULD_NOT = 3,
	INCONCLUSIVE = 125,
	INTERRUPTED = 130,
};

struct problem {
	char text[640];
};

/* Fill @p (which may be NULL) and return @status. */
int problem_set(struct problem *p, enum status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
