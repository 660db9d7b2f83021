/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What went wrong, in one line that names the thing and the remedy, with the
 * exit status that goes with it.  Functions that can fail return 0 or that
 * status and fill in a struct problem; only main() prints and exits.
 */
#ifndef FDSCALE_PROBLEM_H
#define FDSCALE_PROBLEM_H

#include <stdbool.h>

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

/*
 * Fill @p (which may be NULL) and return @status.  What is not plain in the
 * text, such as a user's word cut inside a character, becomes "?".
 */
int problem_set(struct problem *p, enum status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether a text is UTF-8 without control characters: it can stand in one line
 * of a terminal, and in a JSON string. */
bool text_plain(const char *text);

#endif
