// SPDX-License-Identifier: GPL-2.0-only
#include "workdir.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *workdir_make(const char *tmpdir, int *status, struct problem *p)
{
	char *path = NULL;

	*status = DONE;
	/* Task paths are built on it: struct target has 256 bytes. */
	if (strlen(tmpdir) > 200) {
		*status = problem_set(p, USAGE,
				      "--tmpdir: more than 200 characters");
		return NULL;
	}
	if (asprintf(&path, "%s/fdscale-%d-XXXXXX", tmpdir, getpid()) > 0 &&
	    mkdtemp(path))
		return path;
	*status = problem_set(p, COULD_NOT,
			      "--tmpdir %s: %s; name a folder that can be "
			      "written",
			      tmpdir, strerror(errno));
	free(path);
	return NULL;
}

static int drop(const char *path, const struct stat *st, int type,
		struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void workdir_remove(char *directory)
{
	if (directory)
		nftw(directory, drop, 16, FTW_DEPTH | FTW_PHYS);
	free(directory);
}
