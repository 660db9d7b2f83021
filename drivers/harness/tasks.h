/* SPDX-License-Identifier: GPL-2.0-only */
/* The measured side: what a child of the coordinator does until it is told. */
#ifndef FDSCALE_TASKS_H
#define FDSCALE_TASKS_H

#include "run.h"
#include "shared.h"

/*
 * In a new child: @count tasks from number @first, in one table (threads), or
 * one (processes).  Carries out orders; does not return.
 */
void tasks_main(const struct run *run, struct shared *shared,
		unsigned char *slots, unsigned int first, unsigned int count,
		pid_t coordinator) __attribute__((noreturn));

/* The caller to the PU of task @number, checked. */
int task_bind(const struct run *run, unsigned int number, struct slot *slot,
	      struct problem *p);

/* The soft limit, as far as the run takes; size.c has checked the hard one. */
int task_limit(const struct run *run, struct problem *p);

static inline struct slot *slot_of(unsigned char *slots, unsigned int task)
{
	return (struct slot *)(slots + (size_t)task * SLOT_SIZE);
}

/* fork() of what begins with task @first gave errno: COULD_NOT, with @p. */
int tasks_fork_failed(unsigned int first, struct problem *p);

#endif
