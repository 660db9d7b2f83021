// SPDX-License-Identifier: GPL-2.0-only
/* The commands that only look: list, topology, place. */
#include "look.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness/event.h"
#include "harness/kernel.h"
#include "harness/kswitch.h"
#include "harness/number.h"
#include "harness/options.h"
#include "harness/own.h"

int say(int status, const struct problem *p)
{
	if (status && p->text[0])
		fprintf(stderr, "fdscale: %s\n", p->text);
	return status;
}

void print_workloads(FILE *to)
{
	const struct workload *const *w;

	for_each_workload (w) {
		const struct workload_option *o = (*w)->options;

		if ((*w)->backend != BACKEND_KERNEL)
			continue;
		fprintf(to, "  %-14s %s\n", (*w)->name, (*w)->about);
		for (; o < (*w)->options + WORKLOAD_OPTIONS && o->name; o++)
			fprintf(to, "    --%s %s: %s (%s)\n", o->name,
				o->choices ? o->choices : "N", o->about,
				o->fallback);
	}
}

/* "--json" and nothing else. */
static int only_json(int argc, char **argv, bool *json, struct problem *p)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json"))
			return problem_set(p, USAGE, "%s: '%s' is not --json",
					   argv[0], argv[i]);
		*json = true;
	}
	return DONE;
}

/* Of a search or a preset: NULL, or why it does not conform. */
static const char *nonconforming(const char *name)
{
	struct problem p;
	const struct variant *v =
		variant_find(name, FILES_LOCK_QUEUED, false, &p);

	return v ? variant_nonconforming(v) : NULL;
}

/* A variant that has a second compiled copy says so: A/A needs one. */
static json_t *words_json(const struct variant_word *words)
{
	json_t *array = json_array();

	for (; words->name; words++)
		json_array_append_new(
			array,
			json_pack("{ss ss sb ss*}", "name", words->name,
				  "about", words->about, "clone",
				  variant_find(words->name, FILES_LOCK_QUEUED,
					       true, NULL) != NULL,
				  "nonconforming", nonconforming(words->name)));
	return array;
}

/* What "--variant all" is there. */
static json_t *all_json(enum backend backend)
{
	const char *names[VARIANTS_MAX];
	unsigned int n = options_all_variants(backend, names, VARIANTS_MAX);
	json_t *array = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(array, json_string(names[i]));
	return array;
}

static json_t *workloads_json(void)
{
	json_t *array = json_array();
	const struct workload *const *w;

	for_each_workload (w) {
		const struct workload_option *o = (*w)->options;
		json_t *options = json_array();

		for (; o < (*w)->options + WORKLOAD_OPTIONS && o->name; o++)
			json_array_append_new(
				options,
				json_pack("{ss ss* ss ss}", "name", o->name,
					  "choices", o->choices, "default",
					  o->fallback, "about", o->about));
		json_array_append_new(
			array,
			json_pack("{ss ss ss sb sb sb ss? sb so ss*}", "name",
				  (*w)->name, "backend",
				  backend_names[(*w)->backend], "about",
				  (*w)->about, "fixed_work",
				  !!((*w)->flags & WORKLOAD_FIXED),
				  "processes_only",
				  !!((*w)->flags & WORKLOAD_PROCESSES),
				  "empty_table",
				  !!((*w)->flags & WORKLOAD_EMPTY), "hold",
				  (*w)->hold, "sized_by_options",
				  (*w)->descriptors || (*w)->start, "options",
				  options, "source", own_source()));
	}
	return array;
}

static void print_words(const char *title, const struct variant_word *words)
{
	printf("%s\n", title);
	for (; words->name; words++) {
		const char *why = nonconforming(words->name);

		printf(strlen(words->about) < 56 ? "  %-22s %s\n"
						 : "  %s\n      %s\n",
		       words->name, words->about);
		if (why)
			printf("      %s\n", why);
	}
}

int command_list(int argc, char **argv)
{
	struct problem p = {""};
	struct utsname u;
	char self[PATH_MAX] = "";
	bool json = false;
	int status = only_json(argc, argv, &json, &p);

	if (status)
		return say(status, &p);
	uname(&u);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	if (json) {
		json_line(json_pack("{so so so so ss ss sb s{so so} ss}",
				    "workloads", workloads_json(), "searches",
				    words_json(variant_searches), "switches",
				    words_json(variant_switches), "presets",
				    words_json(variant_presets), "kernel",
				    kernel_running(), "release", u.release,
				    "switch", kswitch_there(), "all", "kernel",
				    all_json(BACKEND_KERNEL), "model",
				    all_json(BACKEND_MODEL), "driver", self));
	} else {
		printf("Workloads (on the kernel and on the model)\n");
		print_workloads(stdout);
		print_words("Searches", variant_searches);
		print_words("Switches (SEARCH+SWITCH)", variant_switches);
		print_words("Presets", variant_presets);
		printf("The running kernel, %s: %s\n", u.release,
		       kernel_running());
	}
	return say(stdout_close(&p), &p);
}

/* "--core-kind P|E" wherever it stands, cut out of the words; or NULL. */
static const char *cut_core_kind(int *argc, char **argv)
{
	for (int i = 1; i + 1 < *argc; i++) {
		const char *kind = argv[i + 1];

		if (strcmp(argv[i], "--core-kind"))
			continue;
		*argc -= 2;
		for (; i < *argc; i++)
			argv[i] = argv[i + 2];
		return kind;
	}
	return NULL;
}

int command_topology(int argc, char **argv)
{
	struct problem p = {""};
	struct topology topology;
	bool json = false;
	const char *kind = cut_core_kind(&argc, argv);
	int status = only_json(argc, argv, &json, &p);
	json_t *object;

	if (!status)
		status = topology_load(&topology, &p);
	if (status)
		return say(status, &p);
	if (kind)
		status = topology_core_kind(&topology, kind, &p);
	if (status) {
		topology_free(&topology);
		return say(status, &p);
	}
	object = topology_json(&topology);
	if (json) {
		json_line(object);
	} else {
		json_t *size;
		size_t i;

		printf("%lld packages, %lld NUMA nodes, %lld L3s, %lld cores, "
		       "%lld PUs may be used (%s)\n",
		       json_integer_value(json_object_get(object, "packages")),
		       json_integer_value(json_object_get(object, "nodes")),
		       json_integer_value(json_object_get(object, "l3s")),
		       json_integer_value(json_object_get(object, "cores")),
		       json_integer_value(json_object_get(object, "pus")),
		       json_string_value(json_object_get(object, "source")));
		json_array_foreach(json_object_get(object, "sizes"), i, size)
			printf("%6lld tasks: %s\n",
			       json_integer_value(
				       json_object_get(size, "tasks")),
			       json_string_value(
				       json_object_get(size, "what")));
		json_decref(object);
	}
	topology_free(&topology);
	return say(stdout_close(&p), &p);
}

struct place_flags {
	const char *policy;
	const char *core_kind; /* NULL: all */
	uint64_t tasks;
	bool oversubscribe;
	bool json;
};

static int place_parse(int argc, char **argv, struct place_flags *f,
		       struct problem *p)
{
	static const struct option flags[] = {
		{"place", required_argument, NULL, 'p'},
		{"tasks", required_argument, NULL, 't'},
		{"core-kind", required_argument, NULL, 'k'},
		{"oversubscribe", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},
		{0}};
	int opt, status = DONE;

	opterr = 0;
	while (!status &&
	       (opt = getopt_long(argc, argv, ":", flags, NULL)) != -1) {
		switch (opt) {
		case 'p':
			f->policy = optarg;
			break;
		case 't':
			status = number_parse("--tasks", optarg, 1, TASKS_MAX,
					      &f->tasks, p);
			break;
		case 'k':
			f->core_kind = optarg;
			break;
		case 'o':
			f->oversubscribe = true;
			break;
		case 'j':
			f->json = true;
			break;
		default:
			status = problem_set(p, USAGE,
					     "place: '%s': the flags are "
					     "--place P --tasks N "
					     "--core-kind P|E "
					     "--oversubscribe --json",
					     argv[optind - 1]);
		}
	}
	if (!status && optind < argc)
		status = problem_set(p, USAGE,
				     "place: '%s' is one word too "
				     "many",
				     argv[optind]);
	return status;
}

int command_place(int argc, char **argv)
{
	struct place_flags f = {.policy = "compact", .tasks = 1};
	struct problem p = {""};
	struct topology topology;
	struct placement placement;
	int status = place_parse(argc, argv, &f, &p);

	if (!status)
		status = topology_load(&topology, &p);
	if (status)
		return say(status, &p);
	if (f.core_kind)
		status = topology_core_kind(&topology, f.core_kind, &p);
	if (!status)
		status = place_tasks(&topology, f.policy, f.tasks,
				     f.oversubscribe, &placement, &p);
	if (!status) {
		json_t *pus = json_array();

		for (unsigned int i = 0; i < placement.tasks; i++) {
			json_array_append_new(pus,
					      json_integer(placement.pus[i]));
			if (!f.json)
				printf("%s%d", i ? " " : "", placement.pus[i]);
		}
		if (f.json)
			json_line(json_pack("{so}", "pus", pus));
		else
			printf("\n");
		if (!f.json)
			json_decref(pus);
		placement_free(&placement);
	}
	topology_free(&topology);
	if (!status)
		status = stdout_close(&p);
	return say(status, &p);
}
