// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "kernel.h"
#include "kswitch.h"
#include "number.h"

const char *const mode_names[MODES] = {"threads", "processes"};

enum {
	OPT_BACKEND = 256,
	OPT_VARIANT,
	OPT_TASKS,
	OPT_MODE,
	OPT_PLACE,
	OPT_CORE_KIND,
	OPT_HOLD,
	OPT_HOLD_TOP,
	OPT_TABLE_SIZE,
	OPT_TABLE_NODE,
	OPT_WINDOWS,
	OPT_WINDOW_MS,
	OPT_SEED,
	OPT_TMPDIR,
	OPT_LOCK,
	OPT_THINK,
	OPT_OVERSUBSCRIBE,
	OPT_INJECT,
	OPT_COUNTERS,
	OPT_JSON,
	OPT_HELP,
	OPT_WORKLOAD,
};

static const struct option common[] = {
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"variant", required_argument, NULL, OPT_VARIANT},
	{"tasks", required_argument, NULL, OPT_TASKS},
	{"mode", required_argument, NULL, OPT_MODE},
	{"place", required_argument, NULL, OPT_PLACE},
	{"core-kind", required_argument, NULL, OPT_CORE_KIND},
	{"hold", required_argument, NULL, OPT_HOLD},
	{"hold-top", required_argument, NULL, OPT_HOLD_TOP},
	{"table-size", required_argument, NULL, OPT_TABLE_SIZE},
	{"table-node", required_argument, NULL, OPT_TABLE_NODE},
	{"windows", required_argument, NULL, OPT_WINDOWS},
	{"window-ms", required_argument, NULL, OPT_WINDOW_MS},
	{"seed", required_argument, NULL, OPT_SEED},
	{"tmpdir", required_argument, NULL, OPT_TMPDIR},
	{"lock", required_argument, NULL, OPT_LOCK},
	{"think", required_argument, NULL, OPT_THINK},
	{"oversubscribe", no_argument, NULL, OPT_OVERSUBSCRIBE},
	{"inject", required_argument, NULL, OPT_INJECT},
	{"counters", required_argument, NULL, OPT_COUNTERS},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
};
#define COMMON (sizeof(common) / sizeof(*common))

/* The place of @text in the space-separated @words, or -1. */
static int word_index(const char *words, const char *text)
{
	size_t length = strlen(text);
	int i = 0;

	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == length && !strncmp(words, text, n))
			return i;
		words += n + strspn(words + n, " ");
		i++;
	}
	return -1;
}

static int parse_word(const char *what, const char *text, const char *words,
		      int *out, struct problem *p)
{
	*out = word_index(words, text);
	if (*out >= 0)
		return DONE;
	return problem_set(p, USAGE, "%s: '%s' is not one of: %s", what, text,
			   words);
}

static int parse_own(const struct workload_option *o, const char *text,
		     struct option_value *value, struct problem *p)
{
	char what[64];
	int index, status;

	snprintf(what, sizeof(what), "--%s", o->name);
	value->text = text;
	if (!o->choices)
		return number_parse(what, text, o->least, o->most,
				    &value->number, p);
	status = parse_word(what, text, o->choices, &index, p);
	value->number = index;
	return status;
}

/* The workload's name for whichever backend: its flags have to be known. */
static int find_workload(const char *name, enum backend backend,
			 const struct workload **out, struct problem *p)
{
	char known[400] = "";
	const struct workload *const *w;

	*out = workload_find(name, backend);
	if (*out)
		return DONE;
	if (workload_find(name, !backend))
		return problem_set(p, USAGE,
				   "%s: no such workload on the %s backend",
				   name, backend_names[backend]);
	for_each_workload (w) {
		if ((*w)->backend != BACKEND_KERNEL)
			continue;
		strncat(known, " ", sizeof(known) - strlen(known) - 1);
		strncat(known, (*w)->name, sizeof(known) - strlen(known) - 1);
	}
	return problem_set(p, USAGE, "no workload '%s'; there are:%s", name,
			   known);
}

static int add_variant(const char **names, unsigned int *count,
		       const char *name, struct problem *p)
{
	if (*count == VARIANTS_MAX)
		return problem_set(p, USAGE, "--variant: at most %d at once",
				   VARIANTS_MAX);
	for (unsigned int i = 0; i < *count; i++)
		if (!strcmp(names[i], name))
			return problem_set(p, USAGE, "--variant: '%s' twice",
					   name);
	names[(*count)++] = name;
	return DONE;
}

unsigned int options_all_variants(enum backend backend, const char **names,
				  unsigned int most)
{
	const struct variant_word *const lists[] = {variant_searches,
						    variant_presets};
	unsigned int n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		for (const struct variant_word *v = lists[i]; v->name; v++) {
			const struct variant *found = variant_find(
				v->name, FILES_LOCK_QUEUED, false, NULL);

			if (backend == BACKEND_KERNEL && !kswitch_has(v->name))
				continue;
			if (found && !variant_nonconforming(found) && n < most)
				names[n++] = v->name;
		}
	}
	if (!n) /* a kernel with no switch, or none that we may read */
		names[n++] = kernel_running();
	return n;
}

int options_split_variants(enum backend backend, char *text, const char **names,
			   unsigned int *count, struct problem *p)
{
	const char *all[VARIANTS_MAX];
	char *save = NULL;

	*count = 0;
	for (char *name = strtok_r(text, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		unsigned int n = 1;

		all[0] = name;
		if (!strcmp(name, "all"))
			n = options_all_variants(backend, all, VARIANTS_MAX);
		for (unsigned int i = 0; i < n; i++) {
			int status = add_variant(names, count, all[i], p);

			if (status)
				return status;
		}
	}
	return *count ? DONE : problem_set(p, USAGE, "--variant: none named");
}

#define CLONE "#clone"

/* A name without its "#clone"; whether it had one.  The caller frees. */
static char *base_name(const char *name, bool *clone)
{
	size_t n = strlen(name), tail = strlen(CLONE);

	*clone = n > tail && !strcmp(name + n - tail, CLONE);
	return strndup(name, *clone ? n - tail : n);
}

static int resolve_variant(struct run *run, unsigned int i, struct problem *p)
{
	const char *name = run->variant_names[i];
	char *base = base_name(name, &run->clone[i]);
	const struct variant *v;
	int status = DONE;

	p->text[0] = '\0';
	v = variant_find(base, run->lock, run->clone[i], p);
	if (run->backend == BACKEND_MODEL) {
		run->model_variants[i] = v;
		if (!v)
			status = p->text[0]
					 ? USAGE
					 : problem_set(p, USAGE,
						       "--variant: %s has no "
						       "clone",
						       base);
	} else if (kswitch_there()) {
		/* Any right word may be there: the switch itself knows. */
		if (!variant_find(base, run->lock, false, p))
			status = USAGE;
	} else if (strcmp(base, kernel_running())) {
		/* A right word that this kernel cannot serve. */
		if (variant_find(base, run->lock, false, p))
			status = problem_set(
				p, COULD_NOT,
				"--variant: the running kernel is %s, not %s: "
				"measure it with --backend model, or boot a "
				"kernel that has it",
				kernel_running(), base);
		else
			status = USAGE;
	}
	free(base);
	return status;
}

static bool any_clone(const struct run *run)
{
	for (unsigned int i = 0; i < run->variants; i++)
		if (run->clone[i])
			return true;
	return false;
}

static int resolve_variants(struct run *run, char *text, struct problem *p)
{
	int status;

	if (!text)
		text = strdup(run->backend == BACKEND_KERNEL
				      ? kernel_running()
				      : "stock-6.12,merged-6.13");
	run->variant_text = text;
	status = options_split_variants(run->backend, text, run->variant_names,
					&run->variants, p);
	for (unsigned int i = 0; !status && i < run->variants; i++)
		status = resolve_variant(run, i, p);
	if (!status && run->inject > 0 && !any_clone(run))
		status = problem_set(p, USAGE,
				     "--inject slows clones: name one, as in "
				     "--variant V,V#clone");
	return status;
}

/* What does not go together. */
static int check_sense(const struct run *run, bool mode_given,
		       struct problem *p)
{
	const struct workload *w = run->workload;

	if (w->flags & WORKLOAD_FIXED && run->table_node != PLACE_NONE)
		return problem_set(
			p, USAGE,
			"%s: its table grows during the turns, where "
			"its task runs: --place node:%d, not --table-node",
			w->name, run->table_node);
	if (w->testcase && (run->inject > 0 || run->table_node != PLACE_NONE))
		return problem_set(p, USAGE,
				   "%s: --inject and --table-node are for "
				   "workloads: a test case's loop and set-up "
				   "are its own",
				   w->name);
	if (w->flags & WORKLOAD_PROCESSES && run->mode == MODE_THREADS &&
	    mode_given)
		return problem_set(p, USAGE,
				   "%s: --mode threads is refused: %s; use "
				   "--mode processes",
				   w->name, w->why_processes);
	if (w->flags & WORKLOAD_EMPTY && strcmp(run->hold.text, "none"))
		return problem_set(
			p, USAGE,
			"%s starts from an empty table: --hold none, "
			"not %s",
			w->name, run->hold.text);
	if (w->hold && (strncmp(run->hold.text, "low:", 4) ||
			run->hold.top < (uint32_t)atoi(w->hold + 4)))
		return problem_set(p, USAGE,
				   "%s takes --hold %s or more of low, not %s",
				   w->name, w->hold, run->hold.text);
	if (run->backend == BACKEND_KERNEL && run->lock != FILES_LOCK_QUEUED)
		return problem_set(p, USAGE,
				   "--lock is the model's: the kernel has its "
				   "own");
	if (run->backend == BACKEND_KERNEL &&
	    (run->think_ns || run->think_kernel))
		return problem_set(p, USAGE,
				   "--think is the model's: the kernel does "
				   "the work itself");
	if (run->table_size & (run->table_size - 1))
		return problem_set(p, USAGE,
				   "--table-size: %u is not a power of two, as "
				   "tables are",
				   run->table_size);
	return DONE;
}

static int take(struct run *run, int opt, const char *arg, char **variants,
		bool *mode_given, struct problem *p)
{
	uint64_t n = 0;
	int word = 0, status = DONE;

	switch (opt) {
	case OPT_BACKEND: /* read beforehand: it chooses the workload */
		if (!strcmp(arg, backend_names[run->backend]))
			return DONE;
		return problem_set(p, USAGE,
				   "--backend %s: spell --backend out, and say "
				   "it once",
				   arg);
	case OPT_VARIANT:
		free(*variants);
		*variants = strdup(arg);
		break;
	case OPT_TASKS:
		status = number_parse("--tasks", arg, 1, TASKS_MAX, &n, p);
		run->tasks = n;
		break;
	case OPT_MODE:
		status = parse_word("--mode", arg, "threads processes", &word,
				    p);
		run->mode = word;
		*mode_given = true;
		break;
	case OPT_PLACE:
		run->place = arg;
		break;
	case OPT_HOLD:
		run->hold_text = arg; /* --hold-top and --seed may follow */
		break;
	case OPT_HOLD_TOP:
		status = number_parse("--hold-top", arg, 1, HOLD_MAX, &n, p);
		run->hold_top = n;
		break;
	case OPT_CORE_KIND:
		run->core_kind = arg;
		break;
	case OPT_TABLE_NODE:
		status = number_parse("--table-node", arg, 0, INT_MAX, &n, p);
		run->table_node = n;
		break;
	case OPT_TABLE_SIZE:
		status = number_parse("--table-size", arg, 64, 1u << 30, &n, p);
		run->table_size = n;
		break;
	case OPT_WINDOWS:
		status = number_parse("--windows", arg, 1, 1000000, &n, p);
		run->blocks = n;
		break;
	case OPT_WINDOW_MS:
		status = number_parse("--window-ms", arg, 1, 600000, &n, p);
		run->window_ms = n;
		break;
	case OPT_SEED:
		return number_parse("--seed", arg, 0, INT64_MAX, &run->seed, p);
	case OPT_TMPDIR:
		run->tmpdir = arg;
		break;
	case OPT_LOCK:
		status = parse_word("--lock", arg, "queued tas", &word, p);
		run->lock = word ? FILES_LOCK_TAS : FILES_LOCK_QUEUED;
		break;
	case OPT_THINK:
		run->think_kernel = !strcmp(arg, "kernel");
		if (!run->think_kernel)
			status = number_parse("--think (or kernel)", arg, 0,
					      100000000, &run->think_ns, p);
		break;
	case OPT_OVERSUBSCRIBE:
		run->oversubscribe = true;
		break;
	case OPT_INJECT:
		return number_percent("--inject", arg, &run->inject, p);
	case OPT_COUNTERS:
		return counter_list_parse(arg, &run->counters, p);
	case OPT_JSON:
		run->json = true;
		break;
	default:
		status = parse_own(&run->workload->options[opt - OPT_WORKLOAD],
				   arg, &run->options[opt - OPT_WORKLOAD], p);
	}
	return status;
}

/* getopt_long()'s table: the common flags, then the workload's own. */
static void flag_table(const struct workload *w, struct option *all)
{
	unsigned int n = COMMON;

	memcpy(all, common, sizeof(common));
	for (unsigned int i = 0; i < WORKLOAD_OPTIONS && w->options[i].name;
	     i++)
		all[n++] =
			(struct option){w->options[i].name, required_argument,
					NULL, OPT_WORKLOAD + (int)i};
	all[n] = (struct option){0};
}

static int unknown_flag(int opt, char **argv, const struct workload *w,
			struct problem *p)
{
	char own[200] = "", letter[] = {'-', (char)optopt, '\0'};
	/* Inside "-xyz" optind has not moved on yet. */
	bool is_letter = optopt && optopt < OPT_BACKEND;

	for (unsigned int i = 0; i < WORKLOAD_OPTIONS && w->options[i].name;
	     i++) {
		strncat(own, " --", sizeof(own) - strlen(own) - 1);
		strncat(own, w->options[i].name, sizeof(own) - strlen(own) - 1);
	}
	if (opt == ':')
		return problem_set(p, USAGE, "%s needs a value",
				   argv[optind - 1]);
	return problem_set(p, USAGE,
			   "no flag '%s' for %s (its own:%s); see fdscale run "
			   "--help",
			   is_letter ? letter : argv[optind - 1], w->name,
			   *own ? own : " none");
}

/* --backend is looked for first: it decides which workloads there are. */
static int find_backend(int argc, char **argv, struct run *run,
			struct problem *p)
{
	for (int i = 1; i < argc; i++) {
		const char *text = NULL;
		int word, status;

		if (!strcmp(argv[i], "--backend") && i + 1 < argc)
			text = argv[i + 1];
		else if (!strncmp(argv[i], "--backend=", 10))
			text = argv[i] + 10;
		if (!text)
			continue;
		status =
			parse_word("--backend", text, "kernel model", &word, p);
		if (status)
			return status;
		run->backend = word;
	}
	return DONE;
}

static void defaults(struct run *run)
{
	const char *tmpdir = getenv("TMPDIR");

	*run = (struct run){
		.tasks = 1,
		.place = "compact",
		.hold_text = "none",
		.hold_top = HOLD_TOP,
		.table_node = PLACE_NONE,
		.window_ms = 10,
		.seed = clock_ns(),
		.tmpdir = tmpdir && *tmpdir ? tmpdir : "/tmp",
	};
	counter_list_parse(COUNTERS_DEFAULT, &run->counters, NULL);
}

int options_parse(int argc, char **argv, struct run *run, bool *help,
		  struct problem *p)
{
	struct option flags[COMMON + WORKLOAD_OPTIONS + 1];
	const struct workload_option *own;
	char *variants = NULL;
	bool mode_given = false;
	int opt, status;

	defaults(run);
	for (int i = 1; i < argc; i++)
		*help |= !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
	if (*help)
		return DONE;
	for (int i = 1; i < argc; i++)
		if (!text_plain(argv[i]))
			return problem_set(p, USAGE,
					   "'%s' is not UTF-8 text without "
					   "control characters",
					   argv[i]);
	if (argc < 2 || argv[1][0] == '-')
		return problem_set(p, USAGE,
				   "name a workload: fdscale run WORKLOAD "
				   "[flags]; fdscale list has them");
	status = find_backend(argc, argv, run, p);
	if (!status)
		status =
			find_workload(argv[1], run->backend, &run->workload, p);
	if (status)
		return status;
	if (run->workload->flags & WORKLOAD_PROCESSES)
		run->mode = MODE_PROCESSES;
	if (run->workload->hold)
		run->hold_text = run->workload->hold;
	if (run->workload->testcase)
		run->window_ms = 100; /* its operations may be long */
	own = run->workload->options;
	for (unsigned int i = 0; i < WORKLOAD_OPTIONS && own[i].name; i++) {
		status = parse_own(&own[i], own[i].fallback, &run->options[i],
				   p);
		if (status)
			return status;
	}
	flag_table(run->workload, flags);
	/* 0 starts getopt afresh, whatever it was left in; from word 1 on. */
	argc--;
	argv++;
	optind = 0;
	opterr = 0;
	while (!status &&
	       (opt = getopt_long(argc, argv, ":", flags, NULL)) != -1) {
		if (opt == OPT_HELP) { /* "--hel" will do */
			*help = true;
			free(variants);
			return DONE;
		}
		if (opt == '?' || opt == ':')
			status = unknown_flag(opt, argv, run->workload, p);
		else
			status = take(run, opt, optarg, &variants, &mode_given,
				      p);
	}
	if (!status && optind < argc)
		status = problem_set(p, USAGE, "'%s' is one word too many",
				     argv[optind]);
	if (!status)
		status = hold_parse(run->hold_text, run->hold_top, run->seed,
				    &run->hold, p);
	if (!status)
		status = check_sense(run, mode_given, p);
	if (!status)
		return resolve_variants(run, variants, p);
	free(variants);
	return status;
}

void options_free(struct run *run)
{
	free(run->variant_text);
	run->variant_text = NULL;
	hold_free(&run->hold);
}
