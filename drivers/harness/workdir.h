/* SPDX-License-Identifier: GPL-2.0-only */
/* The folder for the files of the tasks, and its end. */
#ifndef FDSCALE_WORKDIR_H
#define FDSCALE_WORKDIR_H

#include "problem.h"

/* A fresh folder in @tmpdir; NULL with COULD_NOT in @status.  malloc()ed. */
char *workdir_make(const char *tmpdir, int *status, struct problem *p);

/* The folder and all that is in it; the name is freed.  NULL is fine. */
void workdir_remove(char *directory);

#endif
