// SPDX-License-Identifier: GPL-2.0-only
/* fdscale: the driver.  One program, one command a word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/clock.h"
#include "harness/coordinate.h"
#include "harness/event.h"
#include "harness/options.h"
#include "harness/own.h"
#include "harness/think.h"
#include "look.h"

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
	"  fdscale run --workload-file my.c --backend model\n"
	"  fdscale place --place scatter --tasks 8\n"
	"\n"
	"Exit status: 0 done, 1 the answer is no, 2 usage, 3 could not,\n"
	"130 interrupted.  To compare variants: ./run.py sweep\n";

static const char run_usage[] =
	"usage: fdscale run WORKLOAD [flags]\n"
	"       fdscale run --workload-file F.c [flags]\n"
	"\n"
	"  --workload-file F.c       a workload of your own, compiled on "
	"demand\n"
	"  --backend kernel|model    who serves the calls (kernel)\n"
	"  --variant V,V..|all       searches with switches, or presets;\n"
	"                            V#clone is its second copy (A/A)\n"
	"  --tasks N                 threads or processes (1)\n"
	"  --mode threads|processes  one table for all, or one each (threads)\n"
	"  --place P                 compact cores smt scatter node:N "
	"package:N\n"
	"                            cpus:LIST none (compact)\n"
	"  --core-kind P|E           of a hybrid machine the fastest cores, or "
	"the others\n"
	"  --hold none|low:N         what is open beforehand (none)\n"
	"         every:K            one in K free, below --hold-top\n"
	"         random:P           each taken with probability P, below it\n"
	"         file:F, pid:PID    numbers one a line; what a process has\n"
	"  --hold-top N              the end of every:K and random:P (1024)\n"
	"  --table-size N            slots before the start (as few as fit)\n"
	"  --table-node N            the table's memory on NUMA node N\n"
	"  --windows N               blocks of one window a variant (a "
	"second)\n"
	"  --window-ms N             length of a window (10)\n"
	"  --lock queued|tas         the model's lock (queued)\n"
	"  --think NS|kernel         the model's time outside the lock, each "
	"call;\n"
	"                            kernel: as this host's syscalls take (0)\n"
	"  --seed N                  orders and patterns (the clock)\n"
	"  --tmpdir D                where the tasks' files are ($TMPDIR, "
	"/tmp)\n"
	"  --oversubscribe           more tasks than PUs: go round again\n"
	"  --inject PERCENT          time added to clones, to be found\n"
	"  --counters C,C..|none     perf events: task-clock context-switches\n"
	"                            page-faults instructions cycles "
	"cache-misses\n"
	"                            (the last three)\n"
	"  --json                    one object a line on stdout\n"
	"\n"
	"  --dry-run alone: cells on stdin, each a JSON array of the words "
	"after\n"
	"  run; for each a line says whether it would start, or why not\n"
	"\n"
	"  fdscale run dup-close --tasks 2 --mode processes --json\n"
	"  fdscale run open-close --file shared --tasks 2\n"
	"\n"
	"Workloads and their own flags:\n";

static int run_placed(struct run *run, const struct topology *topology,
		      uint64_t begun, struct problem *p)
{
	int status = run_ready(run, topology, p);

	if (!status && run->think_kernel)
		status = think_from_kernel(run, p);
	return status ? status : coordinate(run, begun, p);
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
	if (status) {
		options_free(&run);
		return say(status, &p);
	}
	if (!topology.this_system)
		status = problem_set(&p, USAGE,
				     "run measures this machine: unset "
				     "HWLOC_XMLFILE and HWLOC_SYNTHETIC");
	if (!status && run.core_kind)
		status = topology_core_kind(&topology, run.core_kind, &p);
	if (!status)
		status = place_table(&topology, run.table_node, &run.table_pu,
				     &p);
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
	options_free(&run);
	return say(status, &p);
}

int main(int argc, char **argv)
{
	uint64_t begun = clock_ns();
	const char *command = argc > 1 ? argv[1] : "--help";
	bool run = !strcmp(command, "run");
	struct problem p = {""};
	int words = argc - 1;

	if (run || !strcmp(command, "list")) {
		int status = own_words(&words, argv + 1, run, argv, &p);

		if (status)
			return say(status, &p);
		argc = words + 1;
	}
	if (run && argc == 3 && !strcmp(argv[2], "--dry-run"))
		return command_dry_run();
	if (run)
		return command_run(argc - 1, argv + 1, begun);
	if (!strcmp(command, "check"))
		return command_check(argc - 1, argv + 1);
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
	return say(problem_set(&p, USAGE,
			       "'%s' is not run, check, list, topology or "
			       "place",
			       command),
		   &p);
}
