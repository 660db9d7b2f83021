/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set: every search's alloc() and what goes with it, for one lock, compiled
 * once.  There are four: each lock's, and each lock's clone of the baselines.
 */
#ifndef FDSCALE_SET_H
#define FDSCALE_SET_H

#include "searches.h"

#define SET_PASTE_(a, b) a##_##b
#define SET_PASTE(a, b) SET_PASTE_(a, b)
#define IN_SET(name) SET_PASTE(name, SET)

/* Equal code must stay apart: folded into one, a form would pay a jump. */
#if defined(__has_attribute)
#if __has_attribute(no_icf)
#define NOT_MERGED __attribute__((no_icf))
#endif
#endif
#ifndef NOT_MERGED
#define NOT_MERGED
#endif

struct variant_set {
	alloc_fn *const (*allocs)[SW_ALLOC_MASK + 1]; /* by enum search; NULL:
							 not in this set */
	const struct table_ops (*ops)[2]; /* by enum shape, cond-clear */
};

extern const struct variant_set set_queued, set_queued_clone;
extern const struct variant_set set_tas, set_tas_clone;

#endif
