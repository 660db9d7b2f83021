// SPDX-License-Identifier: GPL-2.0-only
/* The measured table: on which node it lies, and whether the hold lasts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../drivers/harness/coordinate.h"
#include "../../drivers/harness/memory.h"
#include "../../drivers/harness/run.h"
#include "../../drivers/harness/tables.h"

static void nodes_are_looked_up(void **state)
{
	struct topology t;
	struct problem p = {""};
	int pu;

	(void)state;
	setenv("HWLOC_SYNTHETIC", "pack:2 [numa] core:3 pu:1", 1);
	assert_int_equal(topology_load(&t, &p), DONE);
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(place_table(&t, 0, &pu, &p), DONE);
	assert_int_equal(pu, 0);
	assert_int_equal(place_table(&t, 1, &pu, &p), DONE);
	assert_int_equal(pu, 3);
	assert_int_equal(place_table(&t, PLACE_NONE, &pu, &p), DONE);
	assert_int_equal(pu, PLACE_NONE);
	assert_int_equal(place_table(&t, 2, &pu, &p), USAGE);
	assert_non_null(strstr(p.text, "--table-node 2: there is no such"));
	assert_non_null(strstr(p.text, "use one of 0, 1"));
	topology_free(&t);
}

/* The node of this thread's CPU, for a machine of any number of them. */
static unsigned int here(void)
{
	unsigned int cpu, node;

	assert_int_equal(getcpu(&cpu, &node), 0);
	return node;
}

static void pages_elsewhere_are_counted(void **state)
{
	size_t size = sysconf(_SC_PAGESIZE), bytes = 3000 * size;
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int node = here();

	(void)state;
	if (memory_unavailable())
		skip();
	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise(pages, bytes, MADV_NOHUGEPAGE);
	assert_int_equal(memory_bind(pages, bytes, node), 0);
	/* Nothing is there yet, so nothing is elsewhere. */
	assert_int_equal(memory_elsewhere(pages, bytes, node + 1), 0);
	for (int i = 0; i < 3000; i += 3)
		pages[i * size] = 1;
	assert_int_equal(memory_elsewhere(pages, bytes, node), 0);
	assert_int_equal(memory_elsewhere(pages, bytes, node + 1), 1000);
	/* A part of a page is a page. */
	assert_int_equal(memory_elsewhere(pages, 1, node + 1), 1);
	munmap(pages, bytes);
}

static void policy_is_one_node(void **state)
{
	(void)state;
	if (memory_unavailable())
		skip();
	assert_int_equal(memory_only(here()), 0);
	assert_int_equal(memory_local(), 0);
	assert_int_not_equal(memory_only(100000), 0);
}

static int leaked; /* once in a process */
enum fault { NO_FAULT, LEAK, STEAL };

/* As dup-close, and what a wrong workload might do. */
static int operate(struct task *t, uint64_t n)
{
	enum fault fault = t->options[0].number;
	struct files_task *m = t->files;

	while (n--) {
		int fd = m ? files_dup(m, t->source) : dup(t->source);

		if (fd < 0)
			return task_fail(t, "dup");
		if (fault == LEAK && !leaked++)
			continue;
		if (m ? files_close(m, fd) : close(fd))
			return task_fail(t, "close");
		if (fault == STEAL && !leaked++ &&
		    (m ? files_close(m, 1) : close(1)))
			return task_fail(t, "close");
	}
	return 0;
}

struct result {
	int status;
	struct problem problem;
};

/* A short run of that workload; in a child, since it closes what is open. */
static void run_with(enum backend backend, enum fault fault, struct result *r)
{
	static struct workload w = {.name = "faulty", .operate = operate};
	struct result *shared = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pus[] = {PLACE_NONE}, nodes[] = {PLACE_NONE};
	pid_t pid = fork();

	if (!pid) {
		struct run run = {
			.workload = &w,
			.backend = backend,
			.variants = 1,
			.variant_names = {"merged-6.13"},
			.tasks = 1,
			.place = "none",
			.table_node = PLACE_NONE,
			.window_ms = 1,
			.blocks = 1,
			.directory = "/tmp",
			.placement = {.tasks = 1, .pus = pus, .nodes = nodes}};
		struct problem *p = &shared->problem;

		run.options[0].number = fault;
		run.model_variants[0] = variant_find(
			"merged-6.13", FILES_LOCK_QUEUED, false, p);
		dup2(open("/dev/null", O_WRONLY), 1);
		dup2(1, 2);
		shared->status = hold_parse("every:3", 9, 1, &run.hold, p);
		if (!shared->status)
			shared->status = run_size(&run, p);
		if (!shared->status)
			shared->status = coordinate(&run, 0, p);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	*r = *shared;
	munmap(shared, sizeof(*r));
}

static void holds_last_or_it_is_said(void **state)
{
	struct result r;

	(void)state;
	for (int b = 0; b < BACKENDS; b++) {
		run_with(b, NO_FAULT, &r);
		assert_string_equal(r.problem.text, "");
		assert_int_equal(r.status, DONE);
		/* every:3 leaves 2, 5, 8: the lowest is what it took. */
		run_with(b, LEAK, &r);
		assert_int_equal(r.status, COULD_NOT);
		assert_non_null(strstr(r.problem.text, "after the windows"));
		assert_non_null(strstr(r.problem.text,
				       "descriptor 2 is open and not held"));
		assert_non_null(strstr(r.problem.text, "faulty"));
		run_with(b, STEAL, &r);
		assert_int_equal(r.status, COULD_NOT);
		assert_non_null(strstr(r.problem.text, "after the windows"));
	}
}

static void model_tables_are_looked_at(void **state)
{
	static const struct workload w = {.name = "w"};
	struct run run = {.workload = &w,
			  .backend = BACKEND_MODEL,
			  .variants = 1,
			  .variant_names = {"two-level"},
			  .tasks = 1,
			  .table_size = 8192};
	struct files_region regions[2];
	struct tables t = {0};
	struct problem p = {""};
	char text[128];

	(void)state;
	if (memory_unavailable())
		skip();
	run.model_variants[0] =
		variant_find("two-level", FILES_LOCK_QUEUED, false, &p);
	assert_int_equal(hold_parse("low:5000", 0, 1, &run.hold, &p), DONE);
	assert_int_equal(run_size(&run, &p), DONE);
	run.table_node = here();
	assert_int_equal(memory_only(run.table_node), 0);
	assert_int_equal(tables_build(&run, 1, &t, &p), DONE);
	assert_int_equal(memory_local(), 0);
	assert_int_equal(files_regions(t.files[0], regions), 2);
	/* The slots and two bitmaps at least. */
	assert_true(regions[1].bytes >= 8192 * (sizeof(void *) + 2.0 / 8));
	tables_look(&run, &t, text, sizeof(text));
	assert_string_equal(text, "");
	/* A node that is not there cannot have it. */
	run.table_node = 900;
	tables_look(&run, &t, text, sizeof(text));
	assert_string_not_equal(text, "");
	files_free(t.files[0]);
	free(t.null);
	free(t.own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_looked_up),
		cmocka_unit_test(pages_elsewhere_are_counted),
		cmocka_unit_test(policy_is_one_node),
		cmocka_unit_test(holds_last_or_it_is_said),
		cmocka_unit_test(model_tables_are_looked_at),
	};

	close_range(3, ~0u, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
