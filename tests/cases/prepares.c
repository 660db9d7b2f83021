// SPDX-License-Identifier: GPL-2.0-only
/*
 * A test case whose tasks open what testcase_prepare() made; the file's name
 * is in $FDSCALE_CASE_FILE, what happened is written into it.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *testcase_description = "open of what was prepared";

static char *path;
static unsigned long prepared;
static int kept;

void testcase_prepare(unsigned long nr_tasks)
{
	path = getenv("FDSCALE_CASE_FILE");
	assert(path);
	kept = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert(kept >= 0);
	dprintf(kept, "prepared %lu\n", nr_tasks);
	prepared = nr_tasks;
}

void testcase(unsigned long long *iterations, unsigned long nr)
{
	dprintf(kept, "task %lu of %lu\n", nr, prepared);
	for (;;) {
		int fd = open(path, O_RDONLY);

		assert(fd >= 0);
		close(fd);
		(*iterations)++;
	}
}

void testcase_cleanup(void)
{
	dprintf(kept, "cleaned up\n");
}
