// SPDX-License-Identifier: GPL-2.0-only
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check_backend.h"

/* The first surprise is what the rule reports. */
static bool expect(struct check_table *t, const char *call, int got, int want)
{
	struct check_result *r = t->result;
	const char *words = strstr(call, "(t, ");
	char name[100];

	if (got == want)
		return true;
	/* As it is called, without our handle. */
	if (words) {
		snprintf(name, sizeof(name), "%.*s%s", (int)(words - call) + 1,
			 call, words + strlen("(t, "));
		call = name;
	}
	if (r->ok) {
		r->ok = false;
		if (got < 0)
			snprintf(r->detail, sizeof(r->detail),
				 "%s gave %s, should give %d", call,
				 strerrorname_np(-got), want);
		else if (want < 0)
			snprintf(r->detail, sizeof(r->detail),
				 "%s gave %d, should give %s", call, got,
				 strerrorname_np(-want));
		else
			snprintf(r->detail, sizeof(r->detail),
				 "%s gave %d, should give %d", call, got, want);
	}
	return false;
}

#define EXPECT(call, want) expect(t, #call, t->calls->call, want)

/* Take 1 to @last by opening; each must be the next. */
static bool open_up_to(struct check_table *t, int last)
{
	for (int fd = 1; fd <= last; fd++)
		if (!EXPECT(open(t, 0, false), fd))
			return false;
	return true;
}

/* Take [first, last] whatever the search would give. */
static void take(struct check_table *t, unsigned int first, unsigned int last)
{
	for (; first <= last; first++)
		EXPECT(dup2(t, 0, first), (int)first);
}

static int lowest_free(struct check_table *t)
{
	take(t, 1, 69);
	EXPECT(dup(t, 0), 70);
	EXPECT(close(t, 5), 0);
	EXPECT(close(t, 68), 0);
	EXPECT(open(t, 0, false), 5);
	EXPECT(dup(t, 0), 68);
	EXPECT(close(t, 0), 0);
	EXPECT(dup(t, 1), 0);
	EXPECT(dup(t, 1), 71);
	return 0;
}

static int above_start(struct check_table *t)
{
	EXPECT(dupfd(t, 0, 10, false), 10);
	EXPECT(dupfd(t, 0, 10, false), 11);
	EXPECT(dupfd(t, 0, 100, false), 100);
	EXPECT(dupfd(t, 0, 3, false), 3);
	EXPECT(dup(t, 0), 1);
	EXPECT(dupfd(t, 0, 99, false), 99);
	EXPECT(dupfd(t, 0, 99, false), 101);
	return 0;
}

static int not_taken(struct check_table *t)
{
	take(t, 2, 64);
	EXPECT(dupfd(t, 0, 3, false), 65);
	EXPECT(dup(t, 0), 1);
	return 0;
}

static int limit_reached(struct check_table *t)
{
	EXPECT(set_limit(t, 20), 0);
	if (open_up_to(t, 19))
		EXPECT(open(t, 0, false), -EMFILE);
	EXPECT(dup(t, 0), -EMFILE);
	EXPECT(dupfd(t, 0, 19, false), -EMFILE);
	return 0;
}

static int limit_lowered(struct check_table *t)
{
	open_up_to(t, 9);
	EXPECT(close(t, 7), 0);
	EXPECT(set_limit(t, 5), 0);
	EXPECT(open(t, 0, false), -EMFILE);
	EXPECT(close(t, 4), 0);
	EXPECT(dup(t, 0), 4);
	EXPECT(set_limit(t, 8), 0);
	EXPECT(dup(t, 0), 7);
	return 0;
}

static int dup_errors(struct check_table *t)
{
	EXPECT(dup(t, 1), -EBADF);
	EXPECT(dup(t, 100000), -EBADF);
	EXPECT(dupfd(t, 1, 0, false), -EBADF);
	EXPECT(dupfd(t, 0, CHECK_LIMIT, false), -EINVAL);
	return 0;
}

static int dup2_ebadf(struct check_table *t)
{
	EXPECT(open(t, 1, false), 1);
	EXPECT(dup2(t, 2, 1), -EBADF);
	EXPECT(file_of(t, 1), 1);
	EXPECT(dup2(t, 2, 2), -EBADF);
	EXPECT(dup2(t, 0, CHECK_LIMIT), -EBADF);
	EXPECT(dup2(t, 0, CHECK_LIMIT - 1), (int)CHECK_LIMIT - 1);
	return 0;
}

static int dup2_same(struct check_table *t)
{
	EXPECT(open(t, 0, true), 1);
	EXPECT(dup2(t, 1, 1), 1);
	EXPECT(cloexec(t, 1), 1);
	return 0;
}

static int dup3_einval(struct check_table *t)
{
	EXPECT(dup3(t, 0, 0, true), -EINVAL);
	EXPECT(file_of(t, 0), 0);
	return 0;
}

static int dup2_replaces(struct check_table *t)
{
	EXPECT(open(t, 1, true), 1);
	EXPECT(dup2(t, 0, 1), 1);
	EXPECT(file_of(t, 1), 0);
	EXPECT(cloexec(t, 1), 0);
	EXPECT(file_of(t, 0), 0);
	return 0;
}

static int close_ebadf(struct check_table *t)
{
	EXPECT(close(t, 1), -EBADF);
	EXPECT(close(t, 0), 0);
	EXPECT(close(t, 0), -EBADF);
	EXPECT(close(t, 100000), -EBADF);
	EXPECT(close(t, ~0u), -EBADF);
	return 0;
}

static int range_einval(struct check_table *t)
{
	EXPECT(close_range(t, 1, 0, 0), -EINVAL);
	EXPECT(close_range(t, 0, 0, 1u << 30), -EINVAL);
	EXPECT(file_of(t, 0), 0);
	return 0;
}

static int range_closes(struct check_table *t)
{
	open_up_to(t, 9);
	EXPECT(close(t, 5), 0);
	EXPECT(close_range(t, 3, 7, 0), 0);
	EXPECT(file_of(t, 2), 0);
	EXPECT(file_of(t, 3), -EBADF);
	EXPECT(file_of(t, 7), -EBADF);
	EXPECT(file_of(t, 8), 0);
	EXPECT(close_range(t, 9, ~0u, 0), 0);
	EXPECT(file_of(t, 9), -EBADF);
	EXPECT(close_range(t, 100000, 200000, 0), 0);
	return 0;
}

static int range_cloexec(struct check_table *t)
{
	open_up_to(t, 4);
	EXPECT(close_range(t, 2, ~0u, FILES_RANGE_CLOEXEC), 0);
	EXPECT(cloexec(t, 1), 0);
	EXPECT(cloexec(t, 2), 1);
	EXPECT(cloexec(t, 4), 1);
	EXPECT(file_of(t, 4), 0);
	return 0;
}

static int unshare_and_look(struct check_table *t)
{
	int ret = t->calls->close_range(t, 2, 3, FILES_RANGE_UNSHARE);

	return ret ? ret : t->calls->file_of(t, 2);
}

static int range_unshares(struct check_table *t)
{
	open_up_to(t, 4);
	EXPECT(elsewhere(t, COPY_SHARED, unshare_and_look), -EBADF);
	EXPECT(file_of(t, 2), 0);
	EXPECT(file_of(t, 3), 0);
	return 0;
}

static int cloexec_kept(struct check_table *t)
{
	EXPECT(open(t, 0, true), 1);
	EXPECT(cloexec(t, 1), 1);
	EXPECT(dupfd(t, 0, 2, true), 2);
	EXPECT(cloexec(t, 2), 1);
	EXPECT(dup3(t, 0, 3, true), 3);
	EXPECT(cloexec(t, 3), 1);
	EXPECT(dup(t, 1), 4);
	EXPECT(cloexec(t, 1), 1);
	return 0;
}

static int cloexec_cleared(struct check_table *t)
{
	EXPECT(open(t, 0, true), 1);
	EXPECT(dup(t, 1), 2);
	EXPECT(cloexec(t, 2), 0);
	EXPECT(close(t, 1), 0);
	EXPECT(open(t, 0, false), 1);
	EXPECT(cloexec(t, 1), 0);
	EXPECT(dupfd(t, 1, 1, false), 3);
	EXPECT(cloexec(t, 3), 0);
	return 0;
}

/* In the copy 1 is cloexec as before, and 2 is there to be closed. */
static int close_in_copy(struct check_table *t)
{
	if (t->calls->cloexec(t, 1) != 1 || t->calls->close(t, 2))
		return -EIO;
	return t->calls->file_of(t, 2);
}

static int fork_copies(struct check_table *t)
{
	EXPECT(open(t, 0, true), 1);
	EXPECT(open(t, 0, false), 2);
	EXPECT(elsewhere(t, COPY_FORKED, close_in_copy), -EBADF);
	EXPECT(file_of(t, 2), 0);
	EXPECT(dup(t, 0), 3);
	return 0;
}

static int nr_open(struct check_table *t)
{
	int got = t->calls->pass_nr_open(t);

	if (got != -EPERM)
		expect(t, "going past nr_open", got, -EMFILE);
	return 0;
}

static int after_growth(struct check_table *t)
{
	EXPECT(open(t, 1, true), 1);
	for (int fd = 2; fd <= 300; fd++)
		if (!EXPECT(dup(t, 0), fd))
			return 0;
	EXPECT(file_of(t, 1), 1);
	EXPECT(cloexec(t, 1), 1);
	EXPECT(cloexec(t, 300), 0);
	EXPECT(close(t, 130), 0);
	EXPECT(dup(t, 0), 130);
	return 0;
}

static const struct {
	const char *name, *demands;
	check_body *body;
} rules[] = {
	{"lowest-free", "open and dup give the lowest free descriptor",
	 lowest_free},
	{"at-or-above-start", "F_DUPFD gives the lowest free one from start on",
	 above_start},
	{"not-taken", "F_DUPFD gives none that is open already", not_taken},
	{"emfile-at-limit", "EMFILE when all below RLIMIT_NOFILE are taken",
	 limit_reached},
	{"emfile-lowered-limit", "EMFILE at a limit lowered after the growth",
	 limit_lowered},
	{"dup-errors", "dup, F_DUPFD: EBADF; EINVAL for start past the limit",
	 dup_errors},
	{"dup2-ebadf", "dup2: EBADF for either, and nothing is closed",
	 dup2_ebadf},
	{"dup2-same", "dup2 of a descriptor to itself changes nothing",
	 dup2_same},
	{"dup3-einval", "dup3 of a descriptor to itself is EINVAL",
	 dup3_einval},
	{"dup2-replaces", "dup2 closes what was there and clears cloexec",
	 dup2_replaces},
	{"close-ebadf", "close of what is not open is EBADF", close_ebadf},
	{"close-range-einval", "close_range: EINVAL for first > last, flags",
	 range_einval},
	{"close-range-closes", "close_range closes its range and no other",
	 range_closes},
	{"close-range-cloexec", "close_range marks, and leaves open",
	 range_cloexec},
	{"close-range-unshares", "close_range leaves a shared table alone",
	 range_unshares},
	{"cloexec-kept", "cloexec is set where it was asked for", cloexec_kept},
	{"cloexec-cleared", "a new descriptor does not inherit cloexec",
	 cloexec_cleared},
	{"fork-copies", "the child's table is a copy, flags and all",
	 fork_copies},
	{"nr-open", "nothing goes past nr_open", nr_open},
	{"after-growth", "all the same after the table has grown",
	 after_growth},
};

const size_t check_rule_count = sizeof(rules) / sizeof(rules[0]);

int check_rules(const struct variant *v, struct check_result *results,
		struct problem *p)
{
	int broken = 0, ret;
	size_t i;

	for (i = 0; i < check_rule_count; i++) {
		struct check_result *r = &results[i];

		*r = (struct check_result){
			.rule = rules[i].name,
			.demands = rules[i].demands,
			.ok = true,
		};
		ret = v ? check_on_model(v, r, rules[i].body)
			: check_on_kernel(r, rules[i].body);
		if (ret) {
			problem_set(p, COULD_NOT,
				    "check %s: could not make a table (%s)",
				    r->rule, strerror(-ret));
			return -1;
		}
		broken += !r->ok;
	}
	return broken;
}
