// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

/* 0, EAGAIN (the word has changed), EINTR or ETIMEDOUT.  0 ns: for ever. */
int futex_wait(atomic_uint *word, unsigned int value, uint64_t timeout_ns)
{
	struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};

	if (syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns ? &ts : NULL,
		    NULL, 0))
		return errno;
	return 0;
}

void futex_wake_all(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
