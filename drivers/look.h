/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands that measure nothing, and what all commands share. */
#ifndef FDSCALE_LOOK_H
#define FDSCALE_LOOK_H

#include <stdio.h>

#include "harness/problem.h"

/* Each takes the words from its own name on, and returns the exit status. */
int command_check(int argc, char **argv);
int command_list(int argc, char **argv);
int command_topology(int argc, char **argv);
int command_place(int argc, char **argv);

/* `run --dry-run`: which of the cells on stdin would start, and why not. */
int command_dry_run(void);

/* The problem's line on stderr, when there is one; the status back. */
int say(int status, const struct problem *p);

/* The workloads with their own flags, for people. */
void print_workloads(FILE *to);

#endif
