/* SPDX-License-Identifier: GPL-2.0-only */
/* The measured loop: what a task does from the common start to its report. */
#ifndef FDSCALE_WINDOW_H
#define FDSCALE_WINDOW_H

#include "shared.h"
#include "workload.h"

/* Operate from the order's start to its end; the counts go to the slot. */
void window_run(struct task *t, const struct shared *sh);

/* The turns of a fixed-work workload, from the order's start. */
void turns_run(struct task *t, const struct shared *sh);

/*
 * Operations completed by @when, of a task that looked at the clock at @t0,
 * with @n0 of them done, and again at @t1, with @n1.
 */
uint64_t ops_at(uint64_t when, uint64_t t0, uint64_t n0, uint64_t t1,
		uint64_t n1);

#endif
