// SPDX-License-Identifier: GPL-2.0-only
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

int number_parse(const char *what, const char *text, uint64_t least,
		 uint64_t most, uint64_t *out, struct problem *p)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	/* strtoull() takes blanks and signs; -1 would come out huge. */
	if (!isdigit((unsigned char)text[0]) || *end || errno || *out < least ||
	    *out > most)
		return problem_set(p, USAGE,
				   "%s: '%s' is not a whole number from "
				   "%" PRIu64 " to %" PRIu64,
				   what, text, least, most);
	return DONE;
}
