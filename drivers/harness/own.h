/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A user's own file: --workload-file F.c, --testcase F.c.
 *
 * It is compiled as the files in drivers/workloads/ are and linked with the
 * same objects into a driver of its own, kept in build/own/ by the name and
 * content of the file.  The program that was asked becomes that one.
 */
#ifndef FDSCALE_OWN_H
#define FDSCALE_OWN_H

#include <stdbool.h>

#include "problem.h"

/* Which file a driver was built for.  build/fdscale has none: NULL. */
struct own {
	const char *kind;   /* the flag: "workload-file" or "testcase" */
	const char *name;   /* of the file, without .c: the workload's */
	const char *sha256; /* of the file and what it includes of its own */
};
extern const struct own own __attribute__((weak));

/* "testcase:0123456789ab", what a cell is known by beside its name; or NULL. */
const char *own_source(void);

/*
 * @argv[0] is a command.  Where a file is named in the words after it: in the
 * driver built for it the two words become the workload's name, first (none
 * where @named is false); elsewhere that driver is built and executed with
 * @all, the program's whole command line.
 */
int own_words(int *argc, char **argv, bool named, char **all,
	      struct problem *p);

#endif
