// SPDX-License-Identifier: GPL-2.0-only
/* Every search under the tas lock. */
#define SET tas
#define SET_LOCK FILES_LOCK_TAS

#include "alloc.h"
#include "close.h"
