// SPDX-License-Identifier: GPL-2.0-only
/* The command check: the rules of the table, on the kernel or on variants. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check.h"
#include "harness/event.h"
#include "harness/kernel.h"
#include "harness/kswitch.h"
#include "harness/options.h"
#include "look.h"

struct check_flags {
	bool model;
	bool json;
	char *variants; /* NULL: the running kernel, or all that conform */
};

static int check_parse(int argc, char **argv, struct check_flags *f,
		       struct problem *p)
{
	static const struct option flags[] = {
		{"backend", required_argument, NULL, 'b'},
		{"variant", required_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},
		{0}};
	int opt;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":", flags, NULL)) != -1) {
		if (opt == 'b' &&
		    (!strcmp(optarg, "kernel") || !strcmp(optarg, "model")))
			f->model = optarg[0] == 'm';
		else if (opt == 'b')
			return problem_set(p, USAGE,
					   "--backend: '%s' is not one of: "
					   "kernel model",
					   optarg);
		else if (opt == 'v')
			f->variants = optarg;
		else if (opt == 'j')
			f->json = true;
		else
			return problem_set(p, USAGE,
					   "check: '%s': the flags are "
					   "--backend B --variant V --json",
					   argv[optind - 1]);
	}
	if (optind < argc)
		return problem_set(p, USAGE, "check: '%s' is one word too many",
				   argv[optind]);
	return DONE;
}

static void check_print(const char *name, const struct check_result *results,
			int broken, const char *why)
{
	printf("%s: %zu of %zu rules kept%s%s\n", name,
	       check_rule_count - broken, check_rule_count, why ? "; " : "",
	       why ? why : "");
	for (size_t i = 0; i < check_rule_count; i++)
		if (!results[i].ok)
			printf("  broken: %s (%s)\n      %s\n", results[i].rule,
			       results[i].demands, results[i].detail);
}

static void check_json(const char *name, bool model,
		       const struct check_result *results, const char *why)
{
	json_t *rules = json_array(), *broken = json_array();

	for (size_t i = 0; i < check_rule_count; i++) {
		const struct check_result *r = &results[i];

		json_array_append_new(rules, json_pack("{ss ss sb ss}", "rule",
						       r->rule, "demands",
						       r->demands, "ok", r->ok,
						       "detail", r->detail));
		if (!r->ok)
			json_array_append_new(broken, json_string(r->rule));
	}
	json_line(json_pack("{ss ss so so ss*}", "variant", name, "backend",
			    backend_names[model], "broken", broken, "rules",
			    rules, "nonconforming", why));
}

/* All rules on one variant (NULL: the kernel). */
static int check_one(const char *name, const struct variant *v, bool json,
		     struct problem *p)
{
	struct check_result *results =
		calloc(check_rule_count, sizeof(*results));
	const char *why = v ? variant_nonconforming(v) : NULL;
	int broken = -1;

	if (results)
		broken = check_rules(v, results, p);
	else
		problem_set(p, COULD_NOT, "no memory");

	if (broken >= 0 && json)
		check_json(name, v, results, why);
	else if (broken >= 0)
		check_print(name, results, broken, why);
	free(results);
	return broken < 0 ? COULD_NOT : broken ? ANSWER_NO : DONE;
}

/* The names in @list, cut up in place; NULL is all that conform. */
static int check_names(enum backend backend, char *list, const char **names,
		       unsigned int *count, struct problem *p)
{
	char all[] = "all";

	return options_split_variants(backend, list ? list : all, names, count,
				      p);
}

static int check_model(char *list, bool json, struct problem *p)
{
	const char *names[VARIANTS_MAX];
	unsigned int n;
	int worst = check_names(BACKEND_MODEL, list, names, &n, p);

	if (worst)
		return worst;
	for (unsigned int i = 0; i < n; i++)
		if (!variant_find(names[i], FILES_LOCK_QUEUED, false, p))
			return USAGE;
	for (unsigned int i = 0; i < n; i++) {
		const struct variant *v =
			variant_find(names[i], FILES_LOCK_QUEUED, false, p);
		int status = check_one(variant_name(v), v, json, p);

		if (status > worst)
			worst = status;
	}
	return worst;
}

/* The kernel's variants, one after the other by its switch. */
static int check_switched(char *list, bool json, struct problem *p)
{
	const char *names[VARIANTS_MAX];
	struct kswitch k;
	unsigned int n;
	int worst = check_names(BACKEND_KERNEL, list, names, &n, p);

	if (worst)
		return worst;
	worst = kswitch_open(&k, p);
	for (unsigned int i = 0; i < n && worst < USAGE; i++) {
		int status = kswitch_set(&k, names[i], p);

		if (!status)
			status = check_one(names[i], NULL, json, p);
		if (status > worst)
			worst = status;
	}
	kswitch_close(&k);
	return worst;
}

int command_check(int argc, char **argv)
{
	struct check_flags f = {0};
	struct problem p = {""};
	int status = check_parse(argc, argv, &f, &p);

	if (status)
		return say(status, &p);
	if (f.model)
		status = check_model(f.variants, f.json, &p);
	else if (kswitch_there() && f.variants)
		status = check_switched(f.variants, f.json, &p);
	else if (f.variants && strcmp(f.variants, "all") &&
		 !variant_find(f.variants, FILES_LOCK_QUEUED, false, &p))
		status = USAGE;
	else if (f.variants && strcmp(f.variants, "all") &&
		 strcmp(f.variants, kernel_running()))
		status = problem_set(&p, COULD_NOT,
				     "--variant: the running kernel is %s, not "
				     "%s; --backend model has all",
				     kernel_running(), f.variants);
	else
		status = check_one(kernel_running(), NULL, f.json, &p);
	if (!status)
		status = stdout_close(&p);
	return say(status, &p);
}
