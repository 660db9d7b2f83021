// SPDX-License-Identifier: GPL-2.0-only
/* fdscale: the driver.  One program, one command a word. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "harness/clock.h"
#include "harness/coordinate.h"
#include "harness/event.h"
#include "harness/kernel.h"
#include "harness/number.h"
#include "harness/options.h"
#include "harness/workdir.h"

static const char usage[] =
	"usage: fdscale COMMAND [flags]\n"
	"\n"
	"  run WORKLOAD   measure one cell, about a second: a run\n"
	"  check          does a backend keep the rules of descriptors?\n"
	"  list           workloads, variants, switches, presets\n"
	"  topology       the PUs that may be used\n"
	"  place          which PU each task would be bound to\n"
	"\n"
	"  fdscale run dup-close --tasks 2\n"
	"  fdscale run dup-close --backend model --hold low:64 \\\n"
	"          --variant two-level,first-word,next_fd-word\n"
	"  fdscale run dup2-churn --backend model --turns 100000\n"
	"  fdscale place --place scatter --tasks 8\n"
	"\n"
	"Exit status: 0 done, 1 the answer is no, 2 usage, 3 could not,\n"
	"130 interrupted.  To compare variants: ./run.py sweep\n";

static const char run_usage[] =
	"usage: fdscale run WORKLOAD [flags]\n"
	"\n"
	"  --backend kernel|model    who serves the calls (kernel)\n"
	"  --variant V,V..|all       searches with switches, or presets;\n"
	"                            V#clone is its second copy (A/A)\n"
	"  --tasks N                 threads or processes (1)\n"
	"  --mode threads|processes  one table for all, or one each (threads)\n"
	"  --place P                 compact cores smt scatter node:N "
	"package:N\n"
	"                            cpus:LIST none (compact)\n"
	"  --hold none|low:N         what is open beforehand (none)\n"
	"  --table-size N            slots before the start (as few as fit)\n"
	"  --windows N               blocks of one window a variant (a "
	"second)\n"
	"  --window-ms N             length of a window (10)\n"
	"  --lock queued|tas         the model's lock (queued)\n"
	"  --seed N                  orders and patterns (the clock)\n"
	"  --tmpdir D                where the tasks' files are ($TMPDIR, "
	"/tmp)\n"
	"  --oversubscribe           more tasks than PUs: go round again\n"
	"  --json                    one object a line on stdout\n"
	"\n"
	"  fdscale run dup-close --tasks 2 --mode processes --json\n"
	"  fdscale run open-close --file shared --tasks 2\n"
	"\n"
	"Workloads and their own flags:\n";

static int say(int status, const struct problem *p)
{
	if (status && p->text[0])
		fprintf(stderr, "fdscale: %s\n", p->text);
	return status;
}

static void print_workloads(FILE *to)
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

/* Tasks behind a queue that one of them holds while it is preempted wait for
 * a time slice each: what is measured then is the scheduler. */
static int check_lock(const struct run *run, const struct topology *topology,
		      struct problem *p)
{
	unsigned int pus = run->placement.capacity;

	if (run->place && !strcmp(run->place, "none"))
		pus = hwloc_bitmap_weight(topology->usable);
	if (run->backend != BACKEND_MODEL || run->mode != MODE_THREADS ||
	    run->lock != FILES_LOCK_QUEUED || run->tasks <= pus)
		return DONE;
	return problem_set(p, USAGE,
			   "--lock queued with %u tasks on %u PUs: a preempted "
			   "waiter stops all behind it, as a kernel's cannot; "
			   "--lock tas works",
			   run->tasks, pus);
}

static int run_placed(struct run *run, const struct topology *topology,
		      uint64_t begun, struct problem *p)
{
	char *directory = NULL;
	int status = check_lock(run, topology, p);

	if (!status)
		status = run_size(run, p);
	if (!status && run->backend == BACKEND_KERNEL && run->workload->prepare)
		directory = workdir_make(run->tmpdir, &status, p);
	run->directory = directory ? directory : run->tmpdir;
	if (!status)
		status = coordinate(run, begun, p);
	workdir_remove(directory);
	return status;
}

static int command_run(int argc, char **argv, uint64_t begun)
{
	static struct run run;
	struct problem p = {""};
	struct topology topology;
	bool help = false;
	int status = options_parse(argc, argv, &run, &help, &p);

	if (help) {
		fputs(run_usage, stdout);
		print_workloads(stdout);
		return stdout_close(&p);
	}
	if (!status)
		status = topology_load(&topology, &p);
	if (status)
		return say(status, &p);
	if (!topology.this_system)
		status = problem_set(&p, USAGE,
				     "run measures this machine: unset "
				     "HWLOC_XMLFILE and HWLOC_SYNTHETIC");
	if (!status)
		status = place_tasks(&topology, run.place, run.tasks,
				     run.oversubscribe, &run.placement, &p);
	if (!status) {
		status = run_placed(&run, &topology, begun, &p);
		placement_free(&run.placement);
	}
	topology_free(&topology);
	if (!status)
		status = stdout_close(&p);
	return say(status, &p);
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

static json_t *words_json(const struct variant_word *words)
{
	json_t *array = json_array();

	for (; words->name; words++)
		json_array_append_new(array,
				      json_pack("{ss ss}", "name", words->name,
						"about", words->about));
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
			json_pack("{ss ss ss sb sb sb so}", "name", (*w)->name,
				  "backend", backend_names[(*w)->backend],
				  "about", (*w)->about, "fixed_work",
				  !!((*w)->flags & WORKLOAD_FIXED),
				  "processes_only",
				  !!((*w)->flags & WORKLOAD_PROCESSES),
				  "empty_table",
				  !!((*w)->flags & WORKLOAD_EMPTY), "options",
				  options));
	}
	return array;
}

static void print_words(const char *title, const struct variant_word *words)
{
	printf("%s\n", title);
	for (; words->name; words++)
		printf(strlen(words->about) < 56 ? "  %-22s %s\n"
						 : "  %s\n      %s\n",
		       words->name, words->about);
}

static int command_list(int argc, char **argv)
{
	struct problem p = {""};
	struct utsname u;
	bool json = false;
	int status = only_json(argc, argv, &json, &p);

	if (status)
		return say(status, &p);
	uname(&u);
	if (json) {
		json_line(json_pack("{so so so so ss ss}", "workloads",
				    workloads_json(), "searches",
				    words_json(variant_searches), "switches",
				    words_json(variant_switches), "presets",
				    words_json(variant_presets), "kernel",
				    kernel_running(), "release", u.release));
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

static int command_topology(int argc, char **argv)
{
	struct problem p = {""};
	struct topology topology;
	bool json = false;
	int status = only_json(argc, argv, &json, &p);
	json_t *object;

	if (!status)
		status = topology_load(&topology, &p);
	if (status)
		return say(status, &p);
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

static int command_place(int argc, char **argv)
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
	status = place_tasks(&topology, f.policy, f.tasks, f.oversubscribe,
			     &placement, &p);
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

int main(int argc, char **argv)
{
	uint64_t begun = clock_ns();
	const char *command = argc > 1 ? argv[1] : "--help";

	if (!strcmp(command, "run"))
		return command_run(argc - 1, argv + 1, begun);
	if (!strcmp(command, "list"))
		return command_list(argc - 1, argv + 1);
	if (!strcmp(command, "topology"))
		return command_topology(argc - 1, argv + 1);
	if (!strcmp(command, "place"))
		return command_place(argc - 1, argv + 1);
	if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
		fputs(usage, stdout);
		return argc > 1 ? DONE : USAGE;
	}
	fprintf(stderr,
		"fdscale: '%s' is not run, check, list, topology or place\n",
		command);
	return USAGE;
}
