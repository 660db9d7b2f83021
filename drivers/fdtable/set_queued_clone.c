// SPDX-License-Identifier: GPL-2.0-only
/*
 * For A/A: the searches that serve as baselines once more, equal source in
 * another place of the program.
 */
#define SET queued_clone
#define SET_LOCK FILES_LOCK_QUEUED
#define SET_SEARCHES BASELINES
#define SET_OPS(X) X(SHAPE_LOWEST, 0) X(SHAPE_LOWEST, 1)

#include "alloc.h"
#include "close.h"
