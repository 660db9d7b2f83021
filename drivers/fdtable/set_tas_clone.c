// SPDX-License-Identifier: GPL-2.0-only
/* The same again, for A/A: equal source, another place in the program. */
#define SET tas_clone
#define SET_LOCK FILES_LOCK_TAS

#include "alloc.h"
#include "close.h"
