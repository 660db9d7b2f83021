// SPDX-License-Identifier: GPL-2.0-only
/* The same again, for A/A: equal source, another place in the program. */
#define SET queued_clone
#define SET_LOCK FILES_LOCK_QUEUED

#include "alloc.h"
#include "close.h"
