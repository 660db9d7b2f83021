// SPDX-License-Identifier: GPL-2.0-only
#include "lock.h"

#include "table.h"

#define LOCKED 0x1u
#define PENDING 0x100u
#define LOCKED_MASK 0xffu
#define TAIL_SHIFT 16

/* A pending waiter about to become the holder is waited for this many turns. */
#define HANDOVER_TURNS 512

static struct queue_node *node_of(struct files_task *t)
{
	return (struct queue_node *)t->queue_node;
}

/* Wait for the holder to go: the pending waiter's, and the queue head's. */
static uint32_t wait_while(struct model_lock *lock, uint32_t mask)
{
	unsigned int turns = 0;
	uint32_t word;

	while ((word = atomic_load_explicit(&lock->word,
					    memory_order_acquire)) &
	       mask)
		spin(&turns);
	return word;
}

static void queue(struct model_lock *lock, struct files_task *t)
{
	struct queue_node *node = node_of(t);
	struct queue_node *next;
	uint32_t tail = t->number + 1;
	unsigned int turns = 0;
	uint32_t word = 0;
	uint16_t before;

	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&node->granted, false, memory_order_relaxed);
	/* The first touch of the node may have taken long enough. */
	if (atomic_compare_exchange_strong_explicit(&lock->word, &word, LOCKED,
						    memory_order_acquire,
						    memory_order_relaxed))
		return;

	before = atomic_exchange_explicit(&lock->tail, (uint16_t)tail,
					  memory_order_acq_rel);
	if (before) {
		struct queue_node *prev = node_of(t->files->tasks[before - 1]);

		atomic_store_explicit(&prev->next, node, memory_order_release);
		while (!atomic_load_explicit(&node->granted,
					     memory_order_acquire))
			spin(&turns);
	}

	/* The head of the queue: after the holder and the pending one. */
	word = wait_while(lock, LOCKED_MASK | PENDING);
	if (word >> TAIL_SHIFT == tail &&
	    atomic_compare_exchange_strong_explicit(&lock->word, &word, LOCKED,
						    memory_order_acquire,
						    memory_order_relaxed))
		return;
	atomic_store_explicit(&lock->locked, 1, memory_order_relaxed);
	turns = 0;
	while (!(
		next = atomic_load_explicit(&node->next, memory_order_acquire)))
		spin(&turns);
	atomic_store_explicit(&next->granted, true, memory_order_release);
}

__attribute__((noinline, cold)) void queued_wait(struct model_lock *lock,
						 struct files_task *t)
{
	uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
	unsigned int i;

	for (i = 0; word == PENDING && i < HANDOVER_TURNS; i++) {
		cpu_relax();
		word = atomic_load_explicit(&lock->word, memory_order_relaxed);
	}
	if (!(word & ~LOCKED_MASK)) {
		word = atomic_fetch_or_explicit(&lock->word, PENDING,
						memory_order_acquire);
		if (!(word & ~LOCKED_MASK)) {
			if (word & LOCKED_MASK)
				wait_while(lock, LOCKED_MASK);
			atomic_store_explicit(&lock->locked_pending, LOCKED,
					      memory_order_relaxed);
			return;
		}
		/* Others were quicker: undo what is ours, and queue. */
		if (!(word & PENDING))
			atomic_fetch_and_explicit(&lock->word, ~PENDING,
						  memory_order_relaxed);
	}
	queue(lock, t);
}

__attribute__((noinline, cold)) void tas_wait(struct model_lock *lock)
{
	unsigned int turns = 0;

	do {
		while (atomic_load_explicit(&lock->locked,
					    memory_order_relaxed))
			spin(&turns);
	} while (atomic_exchange_explicit(&lock->locked, 1,
					  memory_order_acquire));
}
