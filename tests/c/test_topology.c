// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the topology is taken from, what of it may be used, and what is said
 * about it.  Run from the top of the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../drivers/harness/place.h"
#include "load.h"

/*
 * In a child, because hwloc 2.9 leaks part of a topology that it gives up on,
 * and that is not ours for a leak checker to complain about.
 */
static int load_in_child(const char *variable, const char *value,
			 const char *other, struct problem *p)
{
	struct topology t;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		unsetenv("HWLOC_XMLFILE");
		unsetenv("HWLOC_SYNTHETIC");
		setenv(variable, value, 1);
		if (other)
			setenv(other, value, 1);
		memset(p, 0, sizeof(*p));
		status = topology_load(&t, p);
		if (write(fds[1], p, sizeof(*p)) != sizeof(*p))
			status = 99;
		_exit(status);
	}
	assert_int_equal(read(fds[0], p, sizeof(*p)), sizeof(*p));
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* hwloc would show the real machine instead. */
static void test_bad_sources(void **state)
{
	static const char *const contents[] = {
		"", "<a>", "<topology version=\"2.0\"><object type=\"Mach"};
	static const char *const synthetic[] = {"pack:2 zork:3 pu:1", "pack:2",
						"core:0 pu:1", "nonsense"};
	char path[] = "/tmp/fdscale-test-XXXXXX";
	struct problem p;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		ssize_t len = strlen(contents[i]);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, contents[i], len, 0), len);
		assert_int_equal(load_in_child("HWLOC_XMLFILE", path, NULL, &p),
				 USAGE);
		assert_non_null(strstr(p.text, path));
	}
	close(fd);
	unlink(path);
	assert_int_equal(load_in_child("HWLOC_XMLFILE", path, NULL, &p), USAGE);
	assert_non_null(strstr(p.text, path));
	assert_non_null(strstr(p.text, strerror(ENOENT)));
	assert_int_equal(load_in_child("HWLOC_XMLFILE", "/tmp", NULL, &p),
			 USAGE);
	assert_non_null(strstr(p.text, "/tmp: "));
	for (size_t i = 0; i < sizeof(synthetic) / sizeof(synthetic[0]); i++) {
		assert_int_equal(load_in_child("HWLOC_SYNTHETIC", synthetic[i],
					       NULL, &p),
				 USAGE);
		assert_non_null(strstr(p.text, synthetic[i]));
	}
	assert_int_equal(load_in_child("HWLOC_SYNTHETIC", "core:2 pu:1",
				       "HWLOC_XMLFILE", &p),
			 USAGE);
	assert_non_null(strstr(p.text, "unset one"));
	assert_int_equal(load_in_child("HWLOC_SYNTHETIC", "", NULL, &p), 0);
}

/* As under taskset: one CPU of those there are, whichever. */
static void test_affinity(void **state)
{
	cpu_set_t old, one;
	struct placement pl;
	struct topology t;
	struct problem p;
	char policy[32];
	int cpu, others = -1;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, &old); cpu--)
		;
	for (int i = 0; i < cpu; i++)
		if (CPU_ISSET(i, &old))
			others = i;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(load(&t, NULL, NULL, &p), 0);
	assert_true(t.this_system);
	assert_int_equal(place_tasks(&t, "scatter", 1, false, &pl, &p), 0);
	assert_int_equal(pl.pus[0], cpu);
	assert_int_equal(pl.capacity, 1);
	placement_free(&pl);
	assert_int_equal(place_tasks(&t, "compact", 2, false, &pl, &p), USAGE);
	if (others >= 0) {
		snprintf(policy, sizeof(policy), "cpus:%d", others);
		assert_int_equal(place_tasks(&t, policy, 1, false, &pl, &p),
				 USAGE);
		assert_non_null(strstr(p.text, "may not use"));
	}
	topology_free(&t);
	/* Another machine's CPUs are not ours to mask. */
	assert_int_equal(load(&t, "HWLOC_SYNTHETIC", "core:4 pu:2", &p), 0);
	assert_false(t.this_system);
	assert_int_equal(t.npus, 8);
	topology_free(&t);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static json_int_t count(json_t *json, const char *name)
{
	json_t *value = json_object_get(json, name);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static void check_sizes(json_t *json, const char *want)
{
	char got[400] = "";
	size_t i;
	json_t *size;

	json_array_foreach(json_object_get(json, "sizes"), i, size)
		snprintf(got + strlen(got), sizeof(got) - strlen(got),
			 "%lld %s\n", (long long)count(size, "tasks"),
			 json_string_value(json_object_get(size, "what")));
	assert_string_equal(got, want);
}

/* Two packages, each a node of two L3s of three cores of two PUs. */
static void test_json(void **state)
{
	static const char text[] = "pack:2 [numa] l3:2 core:3 pu:2"
				   "(indexes=2*12:1*2)";
	struct topology t;
	struct problem p;
	json_t *json, *pu;

	(void)state;
	assert_int_equal(load(&t, "HWLOC_SYNTHETIC", text, &p), 0);
	json = topology_json(&t);
	assert_string_equal(json_string_value(json_object_get(json, "source")),
			    text);
	assert_true(json_is_null(json_object_get(json, "cpu_model")));
	assert_int_equal(count(json, "packages"), 2);
	assert_int_equal(count(json, "nodes"), 2);
	assert_int_equal(count(json, "l3s"), 4);
	assert_int_equal(count(json, "cores"), 12);
	assert_int_equal(count(json, "pus"), 24);
	assert_int_equal(count(json, "core_kinds"), 1);
	check_sizes(json, "3 one L3\n"
			  "6 one L3 with siblings, one node, one package\n"
			  "12 one node with siblings, one package with "
			  "siblings, all cores\n"
			  "24 all PUs\n");
	assert_int_equal(json_array_size(json_object_get(json, "usable")), 24);
	/* In compact order: 0 1 2 12 13 14 | 3 4 5 15 ... | 6 ... */
	pu = json_array_get(json_object_get(json, "usable"), 9);
	assert_int_equal(count(pu, "pu"), 15);
	assert_int_equal(count(pu, "core"), 3);
	assert_int_equal(count(pu, "l3"), 1);
	assert_int_equal(count(pu, "node"), 0);
	assert_int_equal(count(pu, "package"), 0);
	assert_int_equal(count(pu, "sibling"), 1);
	json_decref(json);
	topology_free(&t);
}

/* CPU 0 offline, CPU 4 barred, package 3 without a node, node 2 without CPUs */
static void test_json_odd(void **state)
{
	struct topology t;
	struct problem p;
	json_t *json, *pu;

	(void)state;
	assert_int_equal(
		load(&t, "HWLOC_XMLFILE", "tests/placements/odd.xml", &p), 0);
	json = topology_json(&t);
	assert_int_equal(count(json, "packages"), 3);
	assert_int_equal(count(json, "nodes"), 2);
	assert_int_equal(count(json, "l3s"), 0);
	assert_int_equal(count(json, "cores"), 4);
	check_sizes(json, "1 one node, one package\n"
			  "4 all cores, all PUs\n");
	pu = json_array_get(json_object_get(json, "usable"), 1);
	assert_int_equal(count(pu, "pu"), 2);
	assert_int_equal(count(pu, "l3"), TOPOLOGY_NONE);
	assert_int_equal(count(pu, "node"), TOPOLOGY_NONE);
	assert_int_equal(count(pu, "package"), 3);
	json_decref(json);
	topology_free(&t);
}

/* Two fast cores of two PUs, four slow ones of one. */
static void test_core_kinds(void **state)
{
	static const char file[] = "tests/placements/hybrid-intel.xml";
	struct topology t;
	struct problem p;
	json_t *json;

	(void)state;
	assert_int_equal(load(&t, "HWLOC_XMLFILE", file, &p), 0);
	json = topology_json(&t);
	assert_int_equal(count(json, "core_kinds"), 2);
	check_sizes(json, "2 all P cores\n"
			  "6 one L3, one node, one package, all cores\n"
			  "8 one L3 with siblings, one node with siblings, "
			  "one package with siblings, all PUs\n");
	json_decref(json);
	assert_int_equal(topology_core_kind(&t, "Q", &p), USAGE);
	assert_non_null(strstr(p.text, "\"Q\""));
	assert_int_equal(topology_core_kind(&t, "E", &p), 0);
	assert_int_equal(t.npus, 4);
	assert_int_equal(hwloc_bitmap_weight(t.usable), 4);
	assert_int_equal(topology_core_kind(&t, "P", &p), COULD_NOT);
	topology_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_sources),
		cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_odd),
		cmocka_unit_test(test_core_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
