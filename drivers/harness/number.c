// SPDX-License-Identifier: GPL-2.0-only
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

int number_percent(const char *what, const char *text, double *out,
		   struct problem *p)
{
	char *end;

	*out = strtod(text, &end) / 100;
	/* strtod() takes blanks, signs, "inf" and hexadecimal. */
	if (strspn(text, "0123456789.") != (size_t)(end - text) ||
	    end == text || strcmp(*end == '%' ? end + 1 : end, "") ||
	    !(*out > 0 && *out <= 1))
		return problem_set(
			p, USAGE,
			"%s: '%s' is not a percentage such as 1.2%%, "
			"above 0 and up to 100%%",
			what, text);
	return DONE;
}
