/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The switch of a kernel that has the variants (drivers/kernel/): written
 * between windows, read back, and put back as it was found, also when this
 * process is killed: a keeper outlives it for that.
 */
#ifndef FDSCALE_KSWITCH_H
#define FDSCALE_KSWITCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "problem.h"

struct kswitch {
	int knob; /* -1: there is none */
	int life; /* its end tells the keeper that we are gone */
	pid_t keeper;
	char found[128]; /* what to put back */
};

/* The file, $FDSCALE_KNOB or the module's; whether it is there. */
const char *kswitch_path(void);
bool kswitch_there(void);

/* What it says now, or false: not there, or not for us to read. */
bool kswitch_read(char *name, size_t size);

/* Whether it has a search, a switch or a preset: it lists its words beside. */
bool kswitch_has(const char *name);

/* DONE, or COULD_NOT: not for us to write.  Undo with kswitch_close(). */
int kswitch_open(struct kswitch *k, struct problem *p);

/* DONE, USAGE for a variant this kernel lacks, COULD_NOT. */
int kswitch_set(struct kswitch *k, const char *name, struct problem *p);

/* Put back what was found. */
void kswitch_close(struct kswitch *k);

#endif
