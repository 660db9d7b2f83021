// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placement against data: each tests/placements/NAME.txt names topologies and
 * says what policies give on them (its README says how), and whatever the
 * topology, some things always hold.  Run from the top of the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../drivers/harness/place.h"
#include "load.h"

#define DATA "tests/placements/"
#define SHARED "../shared/topologies/"
#define MAX_PUS 4096

/* What hwloc itself says about each PU, apart from struct topology_pu. */
static hwloc_obj_t core_of[MAX_PUS];
static int package_of[MAX_PUS]; /* logical index, or -1 */

static void ask_hwloc(const struct topology *t)
{
	hwloc_obj_t pu = NULL, package;

	while ((pu = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PU, pu))) {
		assert_in_range(pu->os_index, 0, MAX_PUS - 1);
		package = hwloc_get_ancestor_obj_by_type(t->hwloc,
							 HWLOC_OBJ_PACKAGE, pu);
		package_of[pu->os_index] =
			package ? (int)package->logical_index : -1;
		core_of[pu->os_index] = hwloc_get_ancestor_obj_by_type(
			t->hwloc, HWLOC_OBJ_CORE, pu);
	}
}

static void check_node(const struct topology *t, int os, int node)
{
	hwloc_obj_t obj = NULL;
	hwloc_const_cpuset_t mine = NULL;

	if (node != PLACE_NONE) {
		obj = hwloc_get_numanode_obj_by_os_index(t->hwloc, node);
		assert_non_null(obj);
		mine = obj->cpuset;
		assert_true(hwloc_bitmap_isset(mine, os));
	}
	obj = NULL;
	while ((obj = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE,
						 obj))) {
		if (!hwloc_bitmap_isset(obj->cpuset, os))
			continue;
		assert_non_null(mine); /* there is a node, so it has one */
		assert_true(hwloc_bitmap_weight(mine) <=
			    hwloc_bitmap_weight(obj->cpuset));
	}
}

/* Each PU once, usable, its node right; fewer tasks sit as the first of more */
static unsigned int check_order(const struct topology *t, const char *policy,
				int *order)
{
	hwloc_const_cpuset_t allowed =
		hwloc_topology_get_allowed_cpuset(t->hwloc);
	hwloc_bitmap_t seen = hwloc_bitmap_alloc();
	struct placement all, some;
	struct problem p;
	unsigned int n;

	assert_int_equal(place_tasks(t, policy, TASKS_MAX, false, &all, &p),
			 USAGE);
	assert_int_equal(place_tasks(t, policy, 1, false, &some, &p), 0);
	n = some.capacity;
	placement_free(&some);
	assert_in_range(n, 1, MAX_PUS);
	assert_int_equal(place_tasks(t, policy, n + 1, false, &all, &p), USAGE);
	assert_int_equal(place_tasks(t, policy, n, false, &all, &p), 0);
	for (unsigned int i = 0; i < n; i++) {
		assert_true(hwloc_bitmap_isset(allowed, all.pus[i]));
		assert_false(hwloc_bitmap_isset(seen, all.pus[i]));
		hwloc_bitmap_set(seen, all.pus[i]);
		check_node(t, all.pus[i], all.nodes[i]);
		order[i] = all.pus[i];
	}
	for (unsigned int k = 1; k <= n; k += 1 + k / 4) {
		assert_int_equal(place_tasks(t, policy, k, false, &some, &p),
				 0);
		assert_memory_equal(some.pus, all.pus, k * sizeof(int));
		assert_memory_equal(some.nodes, all.nodes, k * sizeof(int));
		placement_free(&some);
	}
	assert_int_equal(place_tasks(t, policy, 2 * n + 1, true, &some, &p), 0);
	for (unsigned int i = 0; i <= 2 * n; i++)
		assert_int_equal(some.pus[i], all.pus[i % n]);
	placement_free(&some);
	placement_free(&all);
	hwloc_bitmap_free(seen);
	return n;
}

static bool same_core(int a, int b)
{
	return core_of[a] && core_of[a] == core_of[b];
}

/* How many PUs of this one's core come before it. */
static unsigned int before(const int *order, unsigned int i)
{
	unsigned int n = 0;

	for (unsigned int j = 0; j < i; j++)
		n += same_core(order[j], order[i]);
	return n;
}

static void check_compact(const int *order, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int j = i + 1; j < n; j++)
			if (package_of[order[j]] == package_of[order[i]])
				assert_int_equal(package_of[order[j - 1]],
						 package_of[order[i]]);
}

/* Every core once, in the order in which compact comes to them. */
static void check_cores(const int *order, unsigned int n, const int *compact,
			unsigned int all)
{
	unsigned int k = 0;

	for (unsigned int i = 0; i < all; i++)
		if (!before(compact, i))
			assert_int_equal(order[k++], compact[i]);
	assert_int_equal(k, n);
}

static void check_smt(const int *order, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		if (before(order, i))
			assert_true(same_core(order[i - 1], order[i]));
}

/*
 * No sibling early, and no package two cores ahead of another that still has
 * one to give.
 */
static void check_scatter(const struct topology *t, const int *order,
			  unsigned int n)
{
	static unsigned int cores[MAX_PUS], given[MAX_PUS];
	int packages = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_PACKAGE);

	memset(cores, 0, sizeof(cores));
	memset(given, 0, sizeof(given));
	for (unsigned int i = 1; i < n; i++)
		assert_true(before(order, i) >= before(order, i - 1));
	for (unsigned int i = 0; i < n; i++)
		if (!before(order, i))
			cores[1 + package_of[order[i]]]++;
	for (unsigned int i = 0; i < n && !before(order, i); i++) {
		unsigned int mine = ++given[1 + package_of[order[i]]];

		for (int q = 0; q <= packages; q++)
			assert_true(given[q] == cores[q] ||
				    mine <= given[q] + 1);
	}
}

/* Is there a PU that no other node is nearer to? */
static bool has_cpus(const struct topology *t, hwloc_obj_t node)
{
	hwloc_obj_t other = NULL;
	hwloc_bitmap_t left = hwloc_bitmap_dup(node->cpuset);
	bool any;

	hwloc_bitmap_and(left, left, t->usable);
	while ((other = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE,
						   other))) {
		bool inside =
			hwloc_bitmap_isincluded(other->cpuset, node->cpuset);
		bool same = hwloc_bitmap_isequal(other->cpuset, node->cpuset);

		if (same ? other->os_index < node->os_index : inside)
			hwloc_bitmap_andnot(left, left, other->cpuset);
	}
	any = !hwloc_bitmap_iszero(left);
	hwloc_bitmap_free(left);
	return any;
}

static void check_invariants(const struct topology *t)
{
	static int compact[MAX_PUS], order[MAX_PUS];
	hwloc_obj_t obj = NULL;
	unsigned int all, n;
	char policy[32];

	ask_hwloc(t);
	all = check_order(t, "compact", compact);
	assert_int_equal(all, hwloc_bitmap_weight(t->usable));
	check_compact(compact, all);
	n = check_order(t, "cores", order);
	check_cores(order, n, compact, all);
	assert_int_equal(check_order(t, "smt", order), all);
	check_smt(order, all);
	assert_int_equal(check_order(t, "scatter", order), all);
	check_scatter(t, order, all);
	while ((obj = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE,
						 obj))) {
		if (!has_cpus(t, obj))
			continue;
		snprintf(policy, sizeof(policy), "node:%u", obj->os_index);
		n = check_order(t, policy, order);
		for (unsigned int i = 0; i < n; i++)
			assert_true(hwloc_bitmap_isset(obj->cpuset, order[i]));
	}
}

/* "3", "0-5", "0-36:4" (a step) or "1*8" (eight times); false at the end. */
static bool next_item(char **text, int *first, int *last, int *step, int *times)
{
	char *item = strtok(*text, " \t\n");
	int used = 0;

	*text = NULL;
	if (!item)
		return false;
	*step = *times = 1;
	if (sscanf(item, "%d*%d%n", first, times, &used) == 2)
		*last = *first;
	else if (sscanf(item, "%d-%d:%d%n", first, last, step, &used) != 3 &&
		 sscanf(item, "%d-%d%n", first, last, &used) != 2) {
		assert_int_equal(sscanf(item, "%d%n", first, &used), 1);
		*last = *first;
	}
	assert_int_equal(item[used], 0);
	return true;
}

static void expect(const char *at, const char *what, char *list, const int *got,
		   unsigned int n)
{
	int first, last, step, times;
	unsigned int i = 0;

	while (next_item(&list, &first, &last, &step, &times))
		for (; times > 0; times--)
			for (int v = first; v <= last; v += step, i++)
				if (i >= n || got[i] != v)
					fail_msg("%s: %s of task %u is %d, not "
						 "%d",
						 at, what, i,
						 i < n ? got[i] : -2, v);
	if (i != n)
		fail_msg("%s: %u %s are expected, %u there", at, i, what, n);
}

/* POLICY TASKS [oversubscribe] = PUS [@ NODES], or ... ! TEXT OF THE REFUSAL */
static void check_line(const struct topology *t, const char *at, char *line)
{
	char *want = strpbrk(line, "=!"), *nodes, policy[200], word[32] = "";
	struct placement got;
	struct problem p = {""};
	bool refused;
	int status, words, table;
	unsigned int tasks;

	if (!want) {
		fail_msg("%s: neither = nor !", at);
		return; /* for what does not know that it never comes here */
	}
	refused = *want == '!';
	*want++ = 0;
	words = sscanf(line, "%199s %u %31s", policy, &tasks, word);
	if (words < 2 || (words == 3 && strcmp(word, "oversubscribe")))
		fail_msg("%s: POLICY TASKS [oversubscribe] expected", at);
	if (!strcmp(policy, "table")) {
		status = place_table(t, tasks, &table, &p);
		got = (struct placement){.tasks = 1, .pus = &table};
	} else {
		status = place_tasks(t, policy, tasks, words == 3, &got, &p);
	}
	if (refused) {
		want += strspn(want, " ");
		want[strcspn(want, "\n")] = 0;
		if (status != USAGE || !*want || !strstr(p.text, want))
			fail_msg("%s: status %d, \"%s\"", at, status, p.text);
		return;
	}
	if (status)
		fail_msg("%s: refused: %s", at, p.text);
	nodes = strchr(want, '@');
	if (nodes)
		*nodes++ = 0;
	expect(at, "PU", want, got.pus, got.tasks);
	if (nodes)
		expect(at, "node", nodes, got.nodes, got.tasks);
	if (got.pus != &table)
		placement_free(&got);
}

/* Load what a line of data names; false: it is not here, skip what follows. */
static bool load_line(struct topology *t, const char *at, char *line)
{
	char path[300], *value = strchr(line, ' ');
	struct problem p;
	int status;

	assert_non_null(value);
	*value++ = 0;
	value[strcspn(value, "\n")] = 0;
	snprintf(path, sizeof(path), "%s%s",
		 strcmp(line, "shared") ? DATA : SHARED, value);
	if (!strcmp(line, "synthetic")) {
		status = load(t, "HWLOC_SYNTHETIC", value, &p);
	} else {
		if (!strcmp(line, "shared") && access(path, R_OK)) {
			print_message("%s: skipped, no %s\n", at, path);
			return false;
		}
		status = load(t, "HWLOC_XMLFILE", path, &p);
	}
	if (status)
		fail_msg("%s: %s", at, p.text);
	check_invariants(t);
	return true;
}

static void test_data(void **state)
{
	const char *path = *state;
	char line[1000], at[300];
	struct topology t;
	struct problem p;
	unsigned int number = 0, checked = 0;
	bool loaded = false, skip = false;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		snprintf(at, sizeof(at), "%s:%u", path, ++number);
		assert_non_null(strchr(line, '\n'));
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!strncmp(line, "synthetic ", 10) ||
		    !strncmp(line, "xml ", 4) || !strncmp(line, "shared ", 7)) {
			if (loaded)
				topology_free(&t);
			loaded = load_line(&t, at, line);
			skip = !loaded;
			checked += skip;
		} else if (!skip && !strncmp(line, "kind ", 5)) {
			line[strcspn(line, "\n")] = 0;
			if (topology_core_kind(&t, line + 5, &p))
				fail_msg("%s: %s", at, p.text);
			check_invariants(&t);
		} else if (!skip) {
			if (!loaded)
				fail_msg("%s: no topology yet", at);
			check_line(&t, at, line);
			checked++;
		}
	}
	fclose(f);
	if (loaded)
		topology_free(&t);
	assert_true(checked > 0);
}

static void test_unbound(void **state)
{
	struct placement pl;
	struct topology t;
	struct problem p;

	(void)state;
	assert_int_equal(load(&t, "HWLOC_SYNTHETIC", "core:2 pu:2", &p), 0);
	assert_int_equal(place_tasks(&t, "none", 4, false, &pl, &p), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pl.pus[i], PLACE_NONE);
		assert_int_equal(pl.nodes[i], PLACE_NONE);
	}
	placement_free(&pl);
	assert_int_equal(place_tasks(&t, "none", TASKS_MAX + 1, true, &pl, &p),
			 USAGE);
	topology_free(&t);
}

int main(void)
{
	struct CMUnitTest *tests;
	glob_t files;
	int failed;

	if (glob(DATA "*.txt", 0, NULL, &files)) {
		fprintf(stderr, "no " DATA "*.txt: run me from the top\n");
		return 1;
	}
	tests = calloc(files.gl_pathc + 1, sizeof(*tests));
	if (!tests)
		return 1;
	tests[0] = (struct CMUnitTest)cmocka_unit_test(test_unbound);
	for (size_t i = 0; i < files.gl_pathc; i++)
		tests[i + 1] = (struct CMUnitTest){
			.name = files.gl_pathv[i],
			.test_func = test_data,
			.initial_state = files.gl_pathv[i],
		};
	failed = _cmocka_run_group_tests("placement", tests, files.gl_pathc + 1,
					 NULL, NULL);
	free(tests);
	globfree(&files);
	return failed;
}
