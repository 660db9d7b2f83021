/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What libFuzzer calls with each input: built with it by `make fuzz`, and with
 * fuzz_main.c, which replays tests/corpus, for `make test`.
 */
#ifndef FDSCALE_FUZZ_H
#define FDSCALE_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../drivers/harness/problem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* What has to hold of every input. */
#define MUST(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,       \
				__LINE__, #what);                              \
			abort();                                               \
		}                                                              \
	} while (0)

/* A refusal is a status of design.md, and one printable line of UTF-8. */
static inline void must_refuse(int status, const struct problem *p)
{
	MUST(status == USAGE || status == COULD_NOT);
	MUST(p->text[0]);
	for (const char *c = p->text; *c; c++)
		MUST((unsigned char)*c >= ' ' && *c != 0x7f);
}

/* The input as a file; its name is in @path. */
static inline void fuzz_file(char *path, size_t room, const void *data,
			     size_t size)
{
	const char *folder = getenv("TMPDIR");
	FILE *file;

	snprintf(path, room, "%s/fdscale-fuzz-%d", folder ? folder : "/tmp",
		 (int)getpid());
	file = fopen(path, "we");
	MUST(file && fwrite(data, 1, size, file) == size && !fclose(file));
}

#endif
