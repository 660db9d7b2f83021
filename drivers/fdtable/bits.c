// SPDX-License-Identifier: GPL-2.0-only
#include "bits.h"

/* In a file of its own, so that nothing inlines or specialises it. */
unsigned int next_zero(const uint64_t *map, unsigned int size,
		       unsigned int from)
{
	return next_zero_inline(map, size, from);
}
