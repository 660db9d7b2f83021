/* SPDX-License-Identifier: GPL-2.0-only */
/* --think kernel: what this host's syscalls do outside the fd table. */
#ifndef FDSCALE_THINK_H
#define FDSCALE_THINK_H

#include "run.h"

/*
 * Measure one task of the workload on the kernel and on the model, a tenth of
 * a second each, and set @run->think_ns to the difference for each call.  The
 * model stands for the fd part; what is left of the kernel's cost is entry,
 * exit, and all that the call does besides.  DONE, or the status with @p.
 */
int think_from_kernel(struct run *run, struct problem *p);

#endif
