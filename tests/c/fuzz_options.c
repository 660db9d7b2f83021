// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words after "run", one a line: parsed, then placed on a machine of 2 packages
 * of 2 nodes each, 16 PUs.
 */

#include "../../drivers/harness/number.h"
#include "../../drivers/harness/options.h"
#include "fuzz.h"

#define WORDS_MAX 40

/* A hold's file or process is not of this input: fuzz_hold.c. */
static int split(char *text, char **words)
{
	char *save = NULL;
	int n = 1;

	words[0] = (char *)"run";
	for (char *word = strtok_r(text, "\n", &save); word && n < WORDS_MAX;
	     word = strtok_r(NULL, "\n", &save)) {
		if (strstr(word, "file:") || strstr(word, "pid:"))
			return 0;
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

static void check_placed(const struct run *run, const struct topology *t)
{
	const struct placement *pl = &run->placement;

	MUST(pl->tasks == run->tasks);
	for (unsigned int i = 0; i < pl->tasks; i++) {
		bool usable = false;

		for (unsigned int j = 0; j < t->npus; j++)
			usable |= t->pus[j].os == pl->pus[i];
		MUST(usable ||
		     (pl->pus[i] == PLACE_NONE && !strcmp(run->place, "none")));
		for (unsigned int j = 0; j < i && !run->oversubscribe; j++)
			MUST(pl->pus[i] != pl->pus[j] ||
			     pl->pus[i] == PLACE_NONE);
	}
}

/* What was asked for is what the run has. */
static void check_run(const struct run *run, int words, char **argv)
{
	uint64_t n;

	MUST(run->variants >= 1 && run->variants <= VARIANTS_MAX);
	MUST(run->tasks >= 1 && run->tasks <= TASKS_MAX);
	MUST(run->hold.top <= HOLD_MAX);
	for (int i = 1; i + 1 < words; i++) {
		/* The last one counts, and another flag's value is none. */
		if (strcmp(argv[i], "--tasks") || i != words - 2)
			continue;
		if (!number_parse("", argv[i + 1], 1, TASKS_MAX, &n, NULL))
			MUST(run->tasks == n);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct topology topology;
	static struct run run;
	char *text = strndup((const char *)data, size);
	char *words[WORDS_MAX + 1], *copy[WORDS_MAX + 1];
	struct problem p = {""};
	bool help = false;
	int n, status;

	if (!topology.npus) {
		setenv("HWLOC_SYNTHETIC", "pack:2 [numa] l3:2 core:2 pu:2", 1);
		setenv("FDSCALE_KNOB", "/dev/null/none", 1);
		MUST(!topology_load(&topology, &p));
	}
	n = split(text, words);
	if (!n)
		goto out;
	memcpy(copy, words, sizeof(copy)); /* getopt puts them in order */
	memset(&run, 0, sizeof(run));
	status = options_parse(n, words, &run, &help, &p);
	if (help)
		goto out;
	if (!status) {
		check_run(&run, n, copy);
		status = place_table(&topology, run.table_node, &run.table_pu,
				     &p);
	}
	if (!status) {
		status = place_tasks(&topology, run.place, run.tasks,
				     run.oversubscribe, &run.placement, &p);
		if (!status) {
			check_placed(&run, &topology);
			status = run_size(&run, &p);
			placement_free(&run.placement);
		}
	}
	if (status)
		must_refuse(status, &p);
	options_free(&run);
out:
	free(text);
	return 0;
}
