// SPDX-License-Identifier: GPL-2.0-only
/*
 * `fdscale run --dry-run`: many cells in one process, the topology loaded once.
 * Each line of stdin is a JSON array of the words after "run"; each answer is
 * {"ok":true}, or {"ok":false,"status":..,"text":..} as `run` would end.  The
 * limits are this host's; the topology obeys HWLOC_XMLFILE and HWLOC_SYNTHETIC.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/event.h"
#include "harness/options.h"
#include "harness/own.h"
#include "look.h"

#define WORDS_MAX 128

/* A placement made before: a plan's cells have few, and scatter is slow. */
struct placed {
	struct placed *next;
	char *policy;
	unsigned int tasks;
	bool oversubscribe;
	int status;
	struct placement placement;
	struct problem problem;
};

static int place(struct placed **list, const struct topology *t,
		 struct run *run, struct problem *p)
{
	struct placed *one = *list;

	while (one && (one->tasks != run->tasks ||
		       one->oversubscribe != run->oversubscribe ||
		       strcmp(one->policy, run->place)))
		one = one->next;
	if (!one) {
		one = calloc(1, sizeof(*one));
		if (!one)
			return problem_set(p, COULD_NOT, "out of memory");
		one->policy = strdup(run->place);
		one->tasks = run->tasks;
		one->oversubscribe = run->oversubscribe;
		one->status = place_tasks(t, run->place, run->tasks,
					  run->oversubscribe, &one->placement,
					  &one->problem);
		one->next = *list;
		*list = one;
	}
	run->placement = one->placement;
	*p = one->problem;
	return one->status;
}

static void placed_free(struct placed *one)
{
	while (one) {
		struct placed *next = one->next;

		placement_free(&one->placement);
		free(one->policy);
		free(one);
		one = next;
	}
}

/* As command_run() does, up to the start. */
static int check_words(int argc, char **argv, struct placed **list,
		       struct topology *t, struct problem *p)
{
	static struct run run;
	static bool narrowed;
	bool help = false;
	int status;

	run.variant_text = NULL;
	status = own_words(&argc, argv, true, NULL, p);
	if (!status)
		status = options_parse(argc, argv, &run, &help, p);
	if (help)
		return problem_set(p, USAGE, "--help is not a cell");
	/* One plan, one kind of core: the topology is narrowed once. */
	if (!status && run.core_kind && !narrowed)
		status = topology_core_kind(t, run.core_kind, p);
	narrowed |= !status && run.core_kind;
	if (!status)
		status = place_table(t, run.table_node, &run.table_pu, p);
	if (!status)
		status = place(list, t, &run, p);
	if (!status)
		status = run_ready(&run, t, p);
	options_free(&run);
	return status;
}

static int check_line(const char *line, struct placed **list,
		      struct topology *t, struct problem *p)
{
	json_t *words = json_loads(line, 0, NULL), *word;
	size_t n = json_array_size(words), i;
	char *argv[WORDS_MAX + 2] = {(char *)"run"};
	int status = DONE;

	if (!json_is_array(words) || n > WORDS_MAX)
		status = USAGE;
	else
		json_array_foreach(words, i, word)
		{
			argv[i + 1] = (char *)json_string_value(word);
			if (!argv[i + 1])
				status = USAGE;
		}
	if (status)
		problem_set(p, status,
			    "stdin: a line is not a JSON array of at most %d "
			    "words",
			    WORDS_MAX);
	else
		status = check_words(n + 1, argv, list, t, p);
	json_decref(words);
	return status;
}

int command_dry_run(void)
{
	struct topology topology;
	struct placed *list = NULL;
	struct problem p = {""};
	char *line = NULL;
	size_t room = 0;
	int status = topology_load(&topology, &p);

	if (status)
		return say(status, &p);
	while (!stdout_failed() && getline(&line, &room, stdin) > 0) {
		p.text[0] = '\0';
		status = check_line(line, &list, &topology, &p);
		json_line(!status ? json_pack("{sb}", "ok", true)
				  : json_pack("{sb si ss}", "ok", false,
					      "status", status, "text",
					      p.text));
	}
	free(line);
	placed_free(list);
	topology_free(&topology);
	return say(stdout_close(&p), &p);
}
