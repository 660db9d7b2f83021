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

static inline struct slot *slot_of(unsigned char *slots, unsigned int task)
{
	return (struct slot *)(slots + (size_t)task * SLOT_SIZE);
}

#endif
