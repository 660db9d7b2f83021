// SPDX-License-Identifier: GPL-2.0-only
/*
 * A machine, as HWLOC_XMLFILE or (what begins with no "<") HWLOC_SYNTHETIC has
 * it: whatever hwloc takes is placed on by every policy.
 */

#include "../../drivers/harness/place.h"
#include "fuzz.h"

/* hwloc forgets parts of what it then refuses: not ours to mend. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl*): LSan's name */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libhwloc.so";
}

static void check_pus(const struct topology *t)
{
	MUST(t->npus > 0);
	for (unsigned int i = 0; i < t->npus; i++) {
		MUST(hwloc_bitmap_isset(t->usable, t->pus[i].os));
		for (unsigned int j = 0; j < i; j++)
			MUST(t->pus[i].os != t->pus[j].os);
	}
}

static void check_places(const struct topology *t)
{
	static const char *const policies[] = {"compact", "cores",     "smt",
					       "scatter", "node:0",    "none",
					       "cpus:0",  "package:0", "cpus:"};
	unsigned int tasks = t->npus < 64 ? t->npus : 64;

	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		struct placement placement;
		struct problem p = {""};
		int status = place_tasks(t, policies[i], tasks, false,
					 &placement, &p);

		if (status)
			must_refuse(status, &p);
		else
			placement_free(&placement);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bool xml = size && (*data == '<' || *data == '\n');
	char *text = strndup((const char *)data, size), path[256] = "";
	struct topology t, kind;
	struct problem p = {""};
	int status, pu;

	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	if (xml) {
		fuzz_file(path, sizeof(path), data, size);
		setenv("HWLOC_XMLFILE", path, 1);
		unsetenv("HWLOC_SYNTHETIC");
	} else {
		setenv("HWLOC_SYNTHETIC", *text ? text : "x", 1);
		unsetenv("HWLOC_XMLFILE");
	}
	status = topology_load(&t, &p);
	if (status) {
		must_refuse(status, &p);
	} else {
		MUST(!t.this_system);
		check_pus(&t);
		check_places(&t);
		json_decref(topology_json(&t));
		for (int node = 0; node < 3; node++) {
			status = place_table(&t, node, &pu, &p);
			if (status)
				must_refuse(status, &p);
		}
		topology_free(&t);
		MUST(!topology_load(&kind, &p));
		status = topology_core_kind(&kind, "P", &p);
		if (status)
			must_refuse(status, &p);
		topology_free(&kind);
	}
	if (xml)
		unlink(path);
	free(text);
	return 0;
}
