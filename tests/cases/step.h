/* SPDX-License-Identifier: GPL-2.0-only */
/* Of the case's own folder. */
#define STEP 3
