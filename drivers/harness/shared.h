/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory that the coordinator and the tasks share, and all they say to
 * each other through it: the coordinator posts an order, the tasks carry it
 * out, the last one to be done wakes the coordinator.  Futexes, so that a
 * table under measurement holds no pipe.
 */
#ifndef FDSCALE_SHARED_H
#define FDSCALE_SHARED_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "problem.h"

/* HALT and GO are for test cases, which do not listen (testcase.h). */
enum order { ORDER_WINDOW, ORDER_TURNS, ORDER_QUIT, ORDER_HALT, ORDER_GO };

/* What a task reports.  A page of its own, on its own node. */
struct slot {
	uint64_t started;  /* ns, when it began to operate */
	uint64_t finished; /* ns */
	uint64_t ops;	   /* inside the interval common to all */
	uint64_t all;	   /* ops from started to finished */
	uint64_t spins;	   /* turns of the wait for the start */
	uint64_t switches; /* involuntary, during the window */
	uint64_t injected; /* ns spun after --inject, start to finish */
	int error;	   /* errno of the call that failed, or 0 */
	char call[32];
	int pu; /* where it found itself, by getcpu */
	/* Set-up that failed: the status and what to say. */
	int status;
	struct problem problem;
	pid_t tid; /* of a test case's task */
	/* What a test case counts in, on lines that nothing else is on. */
	_Alignas(256) unsigned long long iterations;
};

#define SLOT_SIZE 4096
_Static_assert(sizeof(struct slot) <= SLOT_SIZE, "a slot is a page");

struct shared {
	/* Written by the coordinator. */
	_Alignas(64) atomic_uint sequence; /* futex: one more for each order */
	enum order order;
	unsigned int variant;
	double inject;	/* the variant's share: 0 for what is no clone */
	uint64_t start; /* ns: all spin to here */
	uint64_t from;	/* recorded from here ... */
	uint64_t until; /* ... to here */
	uint64_t batch_ns;
	/* futex: 1 when the events are on, and a child may go on */
	atomic_uint counted;
	/* Written by the tasks. */
	_Alignas(64) atomic_uint done; /* futex: tasks that carried it out */
	atomic_uint failed;	       /* any: the window is broken */
	_Alignas(64) uint32_t fdsize;
	uint64_t table_bytes; /* the model's, of one variant; else 0 */
	int memory_error;     /* errno of binding memory, or 0 */
	char table[128]; /* --table-node: why it is not known to be there */
};

int futex_wait(atomic_uint *word, unsigned int value, uint64_t timeout_ns);
void futex_wake_all(atomic_uint *word);

#endif
