// SPDX-License-Identifier: GPL-2.0-only
#include "topology.h"

/* What the PUs are counted in, from the smallest. */
static const struct scope {
	const char *what, *with_siblings, *count;
	size_t field;
} scopes[] = {
	{"one L3", "one L3 with siblings", "l3s",
	 offsetof(struct topology_pu, l3)},
	{"one node", "one node with siblings", "nodes",
	 offsetof(struct topology_pu, node)},
	{"one package", "one package with siblings", "packages",
	 offsetof(struct topology_pu, package)},
};
#define SCOPES (sizeof(scopes) / sizeof(scopes[0]))

/* How many different values a field has; TOPOLOGY_NONE is not one. */
static unsigned int count_distinct(const struct topology *t, size_t offset)
{
	unsigned int count = 0, j;

	for (unsigned int i = 0; i < t->npus; i++) {
		int value = topology_field(&t->pus[i], offset);

		for (j = 0;
		     j < i && topology_field(&t->pus[j], offset) != value; j++)
			;
		count += j == i && value != TOPOLOGY_NONE;
	}
	return count;
}

/* Keep @sizes ascending and each number once, with all that it is. */
static void add_size(json_t *sizes, unsigned int tasks, const char *what)
{
	size_t i;
	json_t *size;

	json_array_foreach(sizes, i, size)
	{
		json_t *old = json_object_get(size, "what");
		json_int_t n =
			json_integer_value(json_object_get(size, "tasks"));

		if (n > tasks)
			break;
		if (n == tasks) {
			json_object_set_new(size, "what",
					    json_sprintf("%s, %s",
							 json_string_value(old),
							 what));
			return;
		}
	}
	json_array_insert_new(
		sizes, i,
		json_pack("{s:i,s:s}", "tasks", (int)tasks, "what", what));
}

/* The sizes are those of what `compact` fills first. */
static json_t *sizes_json(const struct topology *t)
{
	json_t *sizes = json_array();
	unsigned int cores = 0, fast = 0;

	for (size_t s = 0; s < SCOPES; s++) {
		int first = TOPOLOGY_NONE;
		unsigned int in_cores = 0, in_pus = 0;

		for (unsigned int i = 0; i < t->npus; i++) {
			const struct topology_pu *pu = &t->pus[i];
			int value = topology_field(pu, scopes[s].field);

			if (first == TOPOLOGY_NONE)
				first = value;
			if (value == TOPOLOGY_NONE || value != first)
				continue;
			in_pus++;
			in_cores += pu->sibling == 0;
		}
		if (!in_pus)
			continue;
		add_size(sizes, in_cores, scopes[s].what);
		if (in_pus != in_cores)
			add_size(sizes, in_pus, scopes[s].with_siblings);
	}
	for (unsigned int i = 0; i < t->npus; i++) {
		cores += t->pus[i].sibling == 0;
		fast += t->pus[i].sibling == 0 &&
			t->pus[i].kind == t->pus[0].kind;
	}
	if (fast != cores)
		add_size(sizes, fast, "all P cores");
	add_size(sizes, cores, "all cores");
	add_size(sizes, t->npus, "all PUs");
	return sizes;
}

static const char *cpu_model(const struct topology *t)
{
	hwloc_obj_t package =
		hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PACKAGE, NULL);
	const char *model = NULL;

	if (package)
		model = hwloc_obj_get_info_by_name(package, "CPUModel");
	if (!model)
		model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t->hwloc),
						   "CPUModel");
	return model;
}

json_t *topology_json(const struct topology *t)
{
	json_t *out = json_pack("{s:s,s:s?}", "source", t->source, "cpu_model",
				cpu_model(t));
	json_t *usable = json_array();

	for (size_t s = SCOPES; s-- > 0;)
		json_object_set_new(
			out, scopes[s].count,
			json_integer(count_distinct(t, scopes[s].field)));
	json_object_set_new(out, "cores",
			    json_integer(count_distinct(
				    t, offsetof(struct topology_pu, core))));
	json_object_set_new(out, "pus", json_integer(t->npus));
	json_object_set_new(out, "core_kinds",
			    json_integer(count_distinct(
				    t, offsetof(struct topology_pu, kind))));
	json_object_set_new(out, "sizes", sizes_json(t));
	for (unsigned int i = 0; i < t->npus; i++) {
		const struct topology_pu *pu = &t->pus[i];

		json_array_append_new(
			usable,
			json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "pu", pu->os,
				  "core", pu->core, "l3", pu->l3, "node",
				  pu->node, "package", pu->package, "sibling",
				  pu->sibling, "kind", pu->kind));
	}
	json_object_set_new(out, "usable", usable);
	return out;
}
