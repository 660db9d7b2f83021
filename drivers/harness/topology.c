// SPDX-License-Identifier: GPL-2.0-only
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUS_MAX 8192   /* Linux has no more */
#define TRY_SECONDS 20 /* a file of that many takes one */

/* The variable's value; an empty one counts as not set, as in the shell. */
static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/*
 * hwloc falls back to the real machine when it cannot use what a variable
 * says, so the variables are read here and handed over by calls that fail.
 */
static int choose_source(struct topology *t, struct problem *p)
{
	const char *xml = env("HWLOC_XMLFILE");
	const char *synthetic = env("HWLOC_SYNTHETIC");
	FILE *f;
	int byte;

	if (xml && synthetic)
		return problem_set(p, USAGE,
				   "HWLOC_XMLFILE=%s and HWLOC_SYNTHETIC=%s "
				   "are both set: unset one",
				   xml, synthetic);
	if ((xml && !text_plain(xml)) || (synthetic && !text_plain(synthetic)))
		return problem_set(p, USAGE,
				   "%s=%s is not UTF-8 text without control "
				   "characters",
				   xml ? "HWLOC_XMLFILE" : "HWLOC_SYNTHETIC",
				   xml ? xml : synthetic);
	if (xml) {
		errno = 0;
		f = fopen(xml, "re");
		byte = f ? fgetc(f) : EOF; /* a directory opens, too */
		if (byte == EOF)
			problem_set(p, USAGE, "HWLOC_XMLFILE=%s: %s", xml,
				    errno ? strerror(errno) : "is empty");
		if (f)
			fclose(f);
		if (byte == EOF)
			return USAGE;
		if (hwloc_topology_set_xml(t->hwloc, xml))
			return problem_set(p, USAGE,
					   "HWLOC_XMLFILE=%s: not a topology "
					   "that hwloc can read: make one with "
					   "lstopo FILE.xml",
					   xml);
		t->source = strdup(xml);
	} else if (synthetic) {
		if (hwloc_topology_set_synthetic(t->hwloc, synthetic))
			return problem_set(p, USAGE,
					   "HWLOC_SYNTHETIC=%s: not a "
					   "description that hwloc knows: try "
					   "\"pack:2 [numa] core:4 pu:2\"",
					   synthetic);
		t->source = strdup(synthetic);
	} else {
		t->source = strdup("this system");
	}
	return t->source ? 0 : problem_set(p, COULD_NOT, "out of memory");
}

/* How many PUs a description makes: what stands after colons, multiplied. */
static double synthetic_pus(const char *text)
{
	double pus = 1;
	int depth = 0;

	for (; *text; text++) {
		depth += (*text == '(') - (*text == ')');
		if (*text == ':' && !depth)
			pus *= strtoul(text + 1, NULL, 10);
	}
	return pus;
}

/* hwloc trusts what it reads, and may crash on it: a child goes first. */
static int try_source(struct topology *t, struct problem *p)
{
	static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	const char *xml = env("HWLOC_XMLFILE");
	const char *synthetic = env("HWLOC_SYNTHETIC");
	int how = 0;
	pid_t pid;

	if (!xml && !synthetic)
		return DONE;
	if (synthetic && synthetic_pus(synthetic) > PUS_MAX)
		return problem_set(p, USAGE,
				   "HWLOC_SYNTHETIC=%s: more than %d PUs",
				   synthetic, PUS_MAX);
	pid = fork();
	if (pid < 0)
		return problem_set(p, COULD_NOT, "fork: %s", strerror(errno));
	if (!pid) {
		for (size_t i = 0; i < sizeof(deaths) / sizeof(*deaths); i++)
			signal(deaths[i], SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		alarm(TRY_SECONDS);
		if (!choose_source(t, p))
			hwloc_topology_load(t->hwloc);
		_exit(DONE);
	}
	while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(how) && WEXITSTATUS(how) == DONE)
		return DONE;
	return problem_set(p, USAGE,
			   "%s=%s: hwloc fails on it%s: make one with lstopo "
			   "FILE.xml",
			   xml ? "HWLOC_XMLFILE" : "HWLOC_SYNTHETIC",
			   xml ? xml : synthetic,
			   WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM
				   ? " (it does not end)"
				   : "");
}

static int load_hwloc(struct topology *t, struct problem *p)
{
	int status;

	if (hwloc_topology_init(&t->hwloc)) {
		t->hwloc = NULL;
		return problem_set(p, COULD_NOT, "hwloc does not start: %s",
				   strerror(errno));
	}
	status = try_source(t, p);
	if (!status)
		status = choose_source(t, p);
	if (status)
		return status;
	/* Devices take long to find; visiting every CPU to ask it, too. */
	hwloc_topology_set_io_types_filter(t->hwloc,
					   HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(t->hwloc, HWLOC_OBJ_MISC,
				       HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_flags(t->hwloc,
				 HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
	if (hwloc_topology_load(t->hwloc)) {
		if (env("HWLOC_XMLFILE"))
			return problem_set(p, USAGE,
					   "HWLOC_XMLFILE=%s: not a topology "
					   "that hwloc can read: make one with "
					   "lstopo FILE.xml",
					   t->source);
		return problem_set(p, COULD_NOT,
				   "hwloc cannot read the topology of %s: %s",
				   t->source, strerror(errno));
	}
	t->this_system = hwloc_topology_is_thissystem(t->hwloc);
	return 0;
}

static int find_usable(struct topology *t, struct problem *p)
{
	hwloc_cpuset_t mask;

	t->usable =
		hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(t->hwloc));
	mask = hwloc_bitmap_alloc();
	if (!t->usable || !mask) {
		hwloc_bitmap_free(mask);
		return problem_set(p, COULD_NOT, "out of memory");
	}
	hwloc_bitmap_and(t->usable, t->usable,
			 hwloc_topology_get_topology_cpuset(t->hwloc));
	if (t->this_system &&
	    !hwloc_get_cpubind(t->hwloc, mask, HWLOC_CPUBIND_PROCESS))
		hwloc_bitmap_and(t->usable, t->usable, mask);
	hwloc_bitmap_free(mask);
	return 0;
}

/*
 * The nearest node: of those around the PU the one with the fewest CPUs; of
 * those that share its CPUs (DRAM beside high-bandwidth memory) the lowest,
 * which is the one that Linux counts the CPUs to.
 */
static int nearest_node(hwloc_topology_t hwloc, unsigned int pu)
{
	hwloc_obj_t node = NULL, best = NULL;
	int size, best_size = 0;

	while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE,
						  node))) {
		if (!hwloc_bitmap_isset(node->cpuset, pu))
			continue;
		size = hwloc_bitmap_weight(node->cpuset);
		if (!best || size < best_size ||
		    (size == best_size && node->os_index < best->os_index)) {
			best = node;
			best_size = size;
		}
	}
	return best ? (int)best->os_index : TOPOLOGY_NONE;
}

/* Packages go by OS index if every one has it; a machine without is one. */
static int package_of(hwloc_topology_t hwloc, hwloc_obj_t pu)
{
	hwloc_obj_t package = NULL, own;
	bool os = true;

	if (!hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, NULL))
		return 0;
	own = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, pu);
	if (!own)
		return TOPOLOGY_NONE;
	while ((package = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE,
						     package)))
		os = os && package->os_index != HWLOC_UNKNOWN_INDEX;
	return os ? own->os_index : own->logical_index;
}

/* hwloc ranks kinds from the slowest; unranked ones are all alike. */
static int kind_of(hwloc_topology_t hwloc, hwloc_obj_t pu)
{
	int kinds = hwloc_cpukinds_get_nr(hwloc, 0);
	int kind, efficiency;

	if (kinds < 2)
		return 0;
	kind = hwloc_cpukinds_get_by_cpuset(hwloc, pu->cpuset, 0);
	if (kind < 0)
		return kinds;
	if (hwloc_cpukinds_get_info(hwloc, kind, NULL, &efficiency, NULL, NULL,
				    0) ||
	    efficiency < 0)
		return 0;
	return kinds - 1 - kind;
}

static void fill_groups(struct topology_pu *pus, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct topology_pu *a = &pus[i];

		a->in_package = a->in_node = a->in_domain = i;
		a->domain_kind = a->kind;
		for (unsigned int j = n; j-- > 0;) {
			const struct topology_pu *b = &pus[j];

			if (a->package != b->package)
				continue;
			a->in_package = j;
			if (a->node != b->node)
				continue;
			a->in_node = j;
			if (a->l3 != b->l3)
				continue;
			a->in_domain = j;
			if (b->kind < a->domain_kind)
				a->domain_kind = b->kind;
		}
	}
}

#define BY(field)                                                              \
	do {                                                                   \
		if (a->field != b->field)                                      \
			return a->field < b->field ? -1 : 1;                   \
	} while (0)

static int by_compact(const void *x, const void *y)
{
	const struct topology_pu *a = x, *b = y;

	BY(in_package);
	BY(domain_kind);
	BY(in_domain);
	BY(sibling);
	BY(kind);
	BY(core);
	return 0;
}

static int list_pus(struct topology *t, hwloc_bitmap_t seen, struct problem *p)
{
	hwloc_obj_t pu = NULL, core, last_core = NULL, l3;
	int cores = 0, sibling = 0;
	int room = hwloc_get_nbobjs_by_type(t->hwloc, HWLOC_OBJ_PU);

	if (room < 0 || room > PUS_MAX)
		return problem_set(p, USAGE, "%s: more than %d PUs", t->source,
				   PUS_MAX);
	t->pus = calloc(room + 1, sizeof(*t->pus));
	if (!t->pus || !seen)
		return problem_set(p, COULD_NOT, "out of memory");
	while ((pu = hwloc_get_next_obj_by_type(t->hwloc, HWLOC_OBJ_PU, pu))) {
		struct topology_pu *out = &t->pus[t->npus];

		if (!hwloc_bitmap_isset(t->usable, pu->os_index))
			continue;
		/* hwloc takes a file that has a PU twice. */
		if (hwloc_bitmap_isset(seen, pu->os_index))
			return problem_set(p, USAGE, "%s: PU %u is in it twice",
					   t->source, pu->os_index);
		hwloc_bitmap_set(seen, pu->os_index);
		core = hwloc_get_ancestor_obj_by_type(t->hwloc, HWLOC_OBJ_CORE,
						      pu);
		if (!core || core != last_core) {
			cores++;
			sibling = 0;
		}
		last_core = core;
		l3 = hwloc_get_ancestor_obj_by_type(t->hwloc, HWLOC_OBJ_L3CACHE,
						    pu);
		out->os = pu->os_index;
		out->core = cores - 1;
		out->sibling = sibling++;
		out->l3 = l3 ? (int)l3->logical_index : TOPOLOGY_NONE;
		out->node = nearest_node(t->hwloc, pu->os_index);
		out->package = package_of(t->hwloc, pu);
		out->kind = kind_of(t->hwloc, pu);
		t->npus++;
	}
	if (!t->npus)
		return problem_set(p, COULD_NOT,
				   "%s has no CPU that this process may use: "
				   "look at its cpuset (cgroup) and its "
				   "affinity mask (taskset -p)",
				   t->source);
	fill_groups(t->pus, t->npus);
	qsort(t->pus, t->npus, sizeof(*t->pus), by_compact);
	return 0;
}

int topology_load(struct topology *t, struct problem *p)
{
	hwloc_bitmap_t seen = hwloc_bitmap_alloc();
	int status;

	memset(t, 0, sizeof(*t));
	status = load_hwloc(t, p);
	if (!status)
		status = find_usable(t, p);
	if (!status)
		status = list_pus(t, seen, p);
	hwloc_bitmap_free(seen);
	if (status)
		topology_free(t);
	return status;
}

void topology_free(struct topology *t)
{
	if (t->hwloc)
		hwloc_topology_destroy(t->hwloc);
	hwloc_bitmap_free(t->usable);
	free(t->source);
	free(t->pus);
	memset(t, 0, sizeof(*t));
}

int topology_core_kind(struct topology *t, const char *kind, struct problem *p)
{
	bool fast = !strcasecmp(kind, "P");
	unsigned int kept = 0;
	int fastest = t->pus[0].kind, slowest = fastest;

	if (!fast && strcasecmp(kind, "E"))
		return problem_set(p, USAGE,
				   "--core-kind: \"%s\" is unknown: P (the "
				   "fastest) or E (the others)",
				   kind);
	for (unsigned int i = 0; i < t->npus; i++) {
		if (t->pus[i].kind < fastest)
			fastest = t->pus[i].kind;
		if (t->pus[i].kind > slowest)
			slowest = t->pus[i].kind;
	}
	if (fastest == slowest)
		return problem_set(p, COULD_NOT,
				   "--core-kind %s: the usable cores of "
				   "%s are all of one kind",
				   kind, t->source);
	for (unsigned int i = 0; i < t->npus; i++) {
		if ((t->pus[i].kind == fastest) == fast)
			t->pus[kept++] = t->pus[i];
		else
			hwloc_bitmap_clr(t->usable, t->pus[i].os);
	}
	t->npus = kept;
	return 0;
}
