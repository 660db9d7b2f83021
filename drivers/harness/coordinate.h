/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The coordinator: forks the tasks, posts windows in blocks of random order,
 * and writes down what they did.  It is no task: it sleeps while they run.
 */
#ifndef FDSCALE_COORDINATE_H
#define FDSCALE_COORDINATE_H

#include "run.h"

/*
 * Measure the cell that @run describes (placed and sized).  @begun is the
 * clock at the program's start.  DONE, COULD_NOT or INTERRUPTED; nothing is
 * left behind in any case.
 */
int coordinate(struct run *run, uint64_t begun, struct problem *p);

#endif
