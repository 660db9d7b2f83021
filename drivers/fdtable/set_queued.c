// SPDX-License-Identifier: GPL-2.0-only
/* Every search under the queued lock. */
#define SET queued
#define SET_LOCK FILES_LOCK_QUEUED

#include "alloc.h"
#include "close.h"
