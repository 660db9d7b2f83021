/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two locks.  "queued" behaves as the kernel's qspinlock: one word; the
 * second comer sets the pending bit and spins on the word; the third and later
 * queue, each spinning on its own node, so the lock is granted first come,
 * first served.  "tas" is a test-and-set that spins on a read: whoever wins.
 */
#ifndef FDSCALE_LOCK_H
#define FDSCALE_LOCK_H

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bits.h"
#include "fdtable.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "struct model_lock lays its bytes out for little-endian");

struct model_lock {
	union {
		_Atomic uint32_t word;
		_Atomic uint16_t locked_pending;
		_Atomic uint8_t locked;
		struct {
			uint16_t below;
			_Atomic uint16_t tail; /* task number + 1 */
		};
	};
};

static_assert(sizeof(struct model_lock) == 4, "as the kernel's spinlock_t");

/* The tail names a task, and 0 is nobody. */
#define LOCK_TASKS_MAX 65535u

/* What a waiter spins on; it lives in struct files_task. */
struct queue_node {
	_Atomic(struct queue_node *) next;
	atomic_bool granted;
};

static_assert(sizeof(struct queue_node) <=
		      sizeof(((struct files_task *)0)->queue_node),
	      "files_task has room for it");

void queued_wait(struct model_lock *lock, struct files_task *t);
void tas_wait(struct model_lock *lock);

static always_inline void
lock_take(enum files_lock kind, struct model_lock *lock, struct files_task *t)
{
	uint32_t unlocked = 0;

	if (kind == FILES_LOCK_TAS) {
		if (unlikely(atomic_exchange_explicit(&lock->locked, 1,
						      memory_order_acquire)))
			tas_wait(lock);
		return;
	}
	if (unlikely(!atomic_compare_exchange_strong_explicit(
		    &lock->word, &unlocked, 1, memory_order_acquire,
		    memory_order_relaxed)))
		queued_wait(lock, t);
}

/*
 * A store of the low byte, the queued lock's too, as in the kernel: pending bit
 * and tail are others' to write.  Some CPUs stall the next compare-and-exchange
 * of the whole word on it where that follows at once (8 ns on one AMD EPYC, 0
 * on another), for every search alike; --think keeps them apart.
 */
static always_inline void lock_drop(struct model_lock *lock)
{
	atomic_store_explicit(&lock->locked, 0, memory_order_release);
}

static always_inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * One turn of a wait.  A kernel's holder is not preempted, ours may be: after
 * about 100 us of spinning let it run.  Not reached while every task has a PU,
 * which the tests that are built for TSan cannot count on.
 */
#ifdef __SANITIZE_THREAD__
#define SPIN_TURNS 32u
#else
#define SPIN_TURNS 8192u
#endif
static inline void spin(unsigned int *turns)
{
	cpu_relax();
	if (++*turns % SPIN_TURNS == 0)
		sched_yield();
}

#endif
