// SPDX-License-Identifier: GPL-2.0-only
#include "place.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLICIES                                                               \
	"compact, cores, smt, scatter, node:N, package:N, cpus:LIST, none"

/* A PU on its way into an order. */
struct slot {
	const struct topology_pu *pu;
	unsigned int turn, group, seq;
};

struct order {
	struct slot *slots;
	unsigned int n, room;
};

#define BY(field)                                                              \
	do {                                                                   \
		if (a->field != b->field)                                      \
			return a->field < b->field ? -1 : 1;                   \
	} while (0)

static int by_core(const void *x, const void *y)
{
	const struct slot *a = x, *b = y;

	BY(pu->in_package);
	BY(pu->domain_kind);
	BY(pu->in_domain);
	BY(pu->kind);
	BY(pu->core);
	BY(pu->sibling);
	return 0;
}

static int by_turn(const void *x, const void *y)
{
	const struct slot *a = x, *b = y;

	BY(pu->sibling);
	BY(pu->kind);
	BY(turn);
	BY(group);
	BY(seq);
	return 0;
}

static unsigned int domain_of(const struct topology_pu *pu)
{
	return pu->in_domain;
}

static unsigned int node_of(const struct topology_pu *pu)
{
	return pu->in_node;
}

static unsigned int package_of(const struct topology_pu *pu)
{
	return pu->in_package;
}

/*
 * Deal the slots out, one from each group in turn; siblings come after all
 * first PUs, slower kinds of core after faster ones.
 */
static void deal(struct order *o,
		 unsigned int (*group)(const struct topology_pu *))
{
	for (unsigned int i = 0; i < o->n; i++) {
		struct slot *a = &o->slots[i];

		a->turn = 0;
		a->group = group(a->pu);
		a->seq = i;
		for (unsigned int j = 0; j < i; j++) {
			const struct slot *b = &o->slots[j];

			a->turn += b->group == a->group &&
				   b->pu->sibling == a->pu->sibling &&
				   b->pu->kind == a->pu->kind;
		}
	}
	qsort(o->slots, o->n, sizeof(*o->slots), by_turn);
}

static int add(struct order *o, const struct topology_pu *pu, struct problem *p)
{
	if (o->n == o->room) {
		unsigned int room = o->room ? 2 * o->room : 64;
		struct slot *more = realloc(o->slots, room * sizeof(*more));

		if (!more)
			return problem_set(p, COULD_NOT, "out of memory");
		o->slots = more;
		o->room = room;
	}
	o->slots[o->n++] = (struct slot){.pu = pu};
	return 0;
}

/* The usable PUs of one node or package, in compact order. */
static int add_inside(struct order *o, const struct topology *t, size_t field,
		      int value, struct problem *p)
{
	int status = 0;

	for (unsigned int i = 0; i < t->npus && !status; i++) {
		if (topology_field(&t->pus[i], field) == value)
			status = add(o, &t->pus[i], p);
	}
	return status;
}

static void keep_first_siblings(struct order *o)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < o->n; i++)
		if (o->slots[i].pu->sibling == 0)
			o->slots[kept++] = o->slots[i];
	o->n = kept;
}

/* A list of numbers in a message; the rest is "..." when it gets long. */
struct names {
	char text[120];
	unsigned int len, count;
};

static void name(struct names *names, int number)
{
	if (names->len < sizeof(names->text) - 20)
		names->len += snprintf(names->text + names->len, 16, "%s%d",
				       names->count ? ", " : "", number);
	else if (names->text[names->len - 1] != '.')
		names->len += snprintf(names->text + names->len, 16, ", ...");
	names->count++;
}

/* A decimal number and nothing but digits; where it ends, or NULL. */
static const char *number(const char *s, int *value)
{
	char *end;
	long n;

	if (!isdigit((unsigned char)*s))
		return NULL;
	errno = 0;
	n = strtol(s, &end, 10);
	if (errno || n > INT_MAX)
		return NULL;
	*value = n;
	return end;
}

/* node:N and package:N: compact inside it. */
static int add_part(struct order *o, const struct topology *t,
		    const char *policy, const char *what, const char *arg,
		    size_t field, struct problem *p)
{
	struct names right = {0};
	const char *end;
	int value, status;

	end = number(arg, &value);
	if (end && !*end) {
		status = add_inside(o, t, field, value, p);
		if (status || o->n)
			return status;
	}
	for (unsigned int i = 0; i < t->npus; i++) {
		int have = topology_field(&t->pus[i], field);
		unsigned int j;

		for (j = 0; j < i; j++)
			if (topology_field(&t->pus[j], field) == have)
				break;
		if (j == i && have != TOPOLOGY_NONE)
			name(&right, have);
	}
	if (!end || *end)
		return problem_set(
			p, USAGE,
			"placement \"%.60s\": \"%s\" is not the number "
			"of a %s; use one of %s",
			policy, arg, what, right.text);
	return problem_set(
		p, USAGE, "placement \"%.60s\": %s %d %s; use one of %s",
		policy, what, value,
		!strcmp(what, "node") && hwloc_get_numanode_obj_by_os_index(
						 t->hwloc, value)
			? "has memory but no CPU that may be used"
			: "is not there, or no CPU of it may be used",
		right.text[0] ? right.text : "(none known)");
}

static const struct topology_pu *find_pu(const struct topology *t, int cpu)
{
	for (unsigned int i = 0; i < t->npus; i++)
		if (t->pus[i].os == cpu)
			return &t->pus[i];
	return NULL;
}

static bool chosen(const struct order *o, int cpu)
{
	for (unsigned int i = 0; i < o->n; i++)
		if (o->slots[i].pu->os == cpu)
			return true;
	return false;
}

static int add_list(struct order *o, const struct topology *t, const char *list,
		    struct problem *p)
{
	struct names unknown = {0}, barred = {0}, again = {0};
	hwloc_const_cpuset_t known =
		hwloc_topology_get_complete_cpuset(t->hwloc);
	const char *s = list;
	int first = 0, last, status;

	for (;; s++) {
		s = number(s, &first);
		last = first;
		if (s && *s == '-')
			s = number(s + 1, &last);
		if (!s || (*s && *s != ',') || last < first)
			return problem_set(
				p, USAGE,
				"placement \"cpus:%s\" is not a list "
				"of CPUs such as 0-3,8",
				list);
		/* Enough is named after eight; a range may have billions. */
		for (int cpu = first; cpu <= last && unknown.count < 8; cpu++) {
			const struct topology_pu *pu = find_pu(t, cpu);

			if (pu && chosen(o, cpu)) {
				name(&again, cpu);
			} else if (pu) {
				status = add(o, pu, p);
				if (status)
					return status;
			} else if (hwloc_bitmap_isset(known, cpu)) {
				name(&barred, cpu);
			} else {
				name(&unknown, cpu);
			}
			if (cpu == INT_MAX)
				break;
		}
		if (!*s)
			break;
	}
	if (!unknown.count && !barred.count && !again.count)
		return 0;
	return problem_set(
		p, USAGE, "placement \"cpus:%.60s\":%s%s%s%s%s%s%s%s", list,
		unknown.count ? " there is no CPU " : "", unknown.text,
		unknown.count && barred.count ? ";" : "",
		barred.count ? " this process may not use CPU " : "",
		barred.text,
		again.count && (unknown.count || barred.count) ? ";" : "",
		again.count ? " given twice: CPU " : "", again.text);
}

static int order_by(struct order *o, const struct topology *t,
		    const char *policy, struct problem *p)
{
	const char *arg = strchr(policy, ':');
	int status = 0;

	if (arg) {
		arg++;
		if (!strncmp(policy, "node:", 5))
			return add_part(o, t, policy, "node", arg,
					offsetof(struct topology_pu, node), p);
		if (!strncmp(policy, "package:", 8))
			return add_part(o, t, policy, "package", arg,
					offsetof(struct topology_pu, package),
					p);
		if (!strncmp(policy, "cpus:", 5))
			return add_list(o, t, arg, p);
	} else {
		for (unsigned int i = 0; i < t->npus && !status; i++)
			status = add(o, &t->pus[i], p);
		if (status || !o->n || !strcmp(policy, "compact") ||
		    !strcmp(policy, "none"))
			return status;
		if (!strcmp(policy, "cores")) {
			keep_first_siblings(o);
			return 0;
		}
		if (!strcmp(policy, "smt")) {
			qsort(o->slots, o->n, sizeof(*o->slots), by_core);
			return 0;
		}
		if (!strcmp(policy, "scatter")) {
			deal(o, domain_of);
			deal(o, node_of);
			deal(o, package_of);
			return 0;
		}
	}
	return problem_set(
		p, USAGE,
		"placement \"%.60s\" is unknown: use one of " POLICIES, policy);
}

static int fill(struct placement *out, const struct order *o, bool bound,
		struct problem *p)
{
	if (!o->n)
		return problem_set(p, COULD_NOT, "no CPU may be used");
	out->pus = calloc(out->tasks, sizeof(*out->pus));
	out->nodes = calloc(out->tasks, sizeof(*out->nodes));
	if (!out->pus || !out->nodes) {
		placement_free(out);
		return problem_set(p, COULD_NOT, "out of memory");
	}
	for (unsigned int i = 0; i < out->tasks; i++) {
		const struct topology_pu *pu = o->slots[i % o->n].pu;

		out->pus[i] = bound ? pu->os : PLACE_NONE;
		out->nodes[i] = bound ? pu->node : PLACE_NONE;
	}
	return 0;
}

int place_tasks(const struct topology *t, const char *policy,
		unsigned int tasks, bool oversubscribe, struct placement *out,
		struct problem *p)
{
	struct order o = {0};
	int status;

	memset(out, 0, sizeof(*out));
	if (tasks == 0 || tasks > TASKS_MAX)
		return problem_set(p, USAGE, "%u tasks: use 1 to %d", tasks,
				   TASKS_MAX);
	status = order_by(&o, t, policy, p);
	if (!status && tasks > o.n && !oversubscribe)
		status = problem_set(
			p, USAGE,
			"%u tasks asked, but placement \"%.60s\" has "
			"room for %u%s here: ask for fewer, or add "
			"--oversubscribe to go round again",
			tasks, policy, o.n,
			strcmp(policy, "cores") ? "" : ", one a core,");
	if (!status) {
		out->tasks = tasks;
		out->capacity = o.n;
		status = fill(out, &o, strcmp(policy, "none"), p);
	}
	free(o.slots);
	return status;
}

void placement_free(struct placement *pl)
{
	free(pl->pus);
	free(pl->nodes);
	memset(pl, 0, sizeof(*pl));
}

/* Files often say nothing of memory: then each node counts as having some. */
static bool has_memory(const struct topology *t, hwloc_obj_t node)
{
	hwloc_obj_t other = NULL;

	if (node->attr->numanode.local_memory)
		return true;
	while ((other = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE,
						   other)))
		if (other->attr->numanode.local_memory)
			return false;
	return true;
}

/* A PU of the node into @pu; else why a table can't be built there. */
static const char *table_pu(const struct topology *t, int number, int *pu)
{
	hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(t->hwloc, number);

	*pu = PLACE_NONE;
	if (!node)
		return hwloc_bitmap_isset(
			       hwloc_topology_get_complete_nodeset(t->hwloc),
			       number)
			       ? "its memory may not be used (cgroup's "
				 "cpuset.mems)"
			       : "there is no such node";
	if (!has_memory(t, node))
		return "it has no memory";
	for (unsigned int i = 0; i < t->npus; i++)
		if (t->pus[i].node == number) {
			*pu = t->pus[i].os;
			return NULL;
		}
	return "it has no CPU that may be used to build the table on";
}

int place_table(const struct topology *t, int node, int *pu, struct problem *p)
{
	struct names right = {0};
	hwloc_obj_t other = NULL;
	const char *why;
	int ignored;

	*pu = PLACE_NONE;
	if (node == PLACE_NONE)
		return DONE;
	why = table_pu(t, node, pu);
	if (!why)
		return DONE;
	while ((other = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_NUMANODE,
						   other)))
		if (!table_pu(t, other->os_index, &ignored))
			name(&right, other->os_index);
	return problem_set(p, USAGE, "--table-node %d: %s; use one of %s", node,
			   why, right.count ? right.text : "(none known)");
}
