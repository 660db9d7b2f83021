// SPDX-License-Identifier: GPL-2.0-only
/* Variants by name: a search or a preset, and switches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "set.h"

struct search_row {
	enum search id;
	const char *name;
	enum shape shape;
	const char *nonconforming;
};

#define ROW(id, name, shape, about, why) {SEARCH_##id, name, shape, why},
static const struct search_row searches[SEARCH_COUNT] = {SEARCHES(ROW)};

#define WORD(id, name, shape, about, why) {name, about},
const struct variant_word variant_searches[] = {SEARCHES(WORD){NULL, NULL}};

/* In the order of a name. */
const struct variant_word variant_switches[] = {
	{"cond-clear", "close writes the full bit only if it is set"},
	{"sanity-read", "alloc reads the slot under the lock"},
	{"eager-expand", "alloc calls the expand routine every time"},
	{"end-late", "alloc checks the limit after the expansion"},
	{"split-lines", "lock, next_fd with bitmaps, slots on lines apart"},
	{"inline-search", "no search is a call"},
	{NULL, NULL},
};
static const unsigned int switch_bits[] = {
	SW_COND_CLEAR, SW_SANITY_READ, SW_EAGER_EXPAND,
	SW_END_LATE,   SW_SPLIT_LINES, SW_INLINE_SEARCH,
};

/* first-word-v1 skips the expansion itself. */
#define PRESETS(X)                                                             \
	X("stock-6.12", "kernels 4.4 to 6.12", two_level,                      \
	  SW_SANITY_READ | SW_EAGER_EXPAND)                                    \
	X("series-v1", "the series as first posted, June 2024", first_word_v1, \
	  SW_COND_CLEAR | SW_EAGER_EXPAND)                                     \
	X("series-v2", "its second version", first_word_v2,                    \
	  SW_COND_CLEAR | SW_END_LATE)                                         \
	X("series-v3", "its third version", first_word,                        \
	  SW_COND_CLEAR | SW_END_LATE)                                         \
	X("series-v5", "its fourth and fifth version", next_fd_word,           \
	  SW_COND_CLEAR)                                                       \
	X("merged-6.13", "kernels since 6.13", next_fd_word, SW_COND_CLEAR)    \
	X("patch-1", "the series' first patch alone", two_level, 0)            \
	X("patch-1-2", "its first two patches", two_level, SW_COND_CLEAR)

#define PRESET_WORD(name, about, search, switches) {name, about},
const struct variant_word variant_presets[] = {
	PRESETS(PRESET_WORD){NULL, NULL}};
static const struct {
	enum search search;
	unsigned int switches;
} presets[] = {
#define PRESET_ROW(name, about, search, switches) {SEARCH_##search, switches},
	PRESETS(PRESET_ROW)};

static int word_index(const struct variant_word *words, const char *word,
		      size_t len)
{
	int i;

	for (i = 0; words[i].name; i++)
		if (strlen(words[i].name) == len &&
		    !strncmp(words[i].name, word, len))
			return i;
	return -1;
}

static void list_words(char *out, size_t size, const struct variant_word *words)
{
	size_t used = strlen(out);

	for (; words->name; words++)
		used += (size_t)snprintf(out + used, size - used, "%s%s",
					 used ? ", " : "", words->name);
}

static void wrong_word(struct problem *p, const char *spec, const char *word,
		       size_t len)
{
	char right[400] = "";

	if (word == spec) {
		list_words(right, sizeof(right), variant_searches);
		list_words(right, sizeof(right), variant_presets);
		problem_set(p, USAGE,
			    "variant '%s': no search or preset '%.*s'; there "
			    "are: %s",
			    spec, (int)len, word, right);
	} else {
		list_words(right, sizeof(right), variant_switches);
		problem_set(p, USAGE,
			    "variant '%s': no switch '%.*s'; there are: %s",
			    spec, (int)len, word, right);
	}
}

/* Variants are made as they are asked for and live as long as the program. */
static const struct variant *intern(const struct variant *want)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static struct variant *all;
	struct variant *v;

	pthread_mutex_lock(&mutex);
	for (v = all; v; v = v->next)
		if (v->lock == want->lock && v->clone == want->clone &&
		    !strcmp(v->name, want->name))
			break;
	if (!v) {
		v = malloc(sizeof(*v));
		if (v) {
			*v = *want;
			v->next = all;
			all = v;
		}
	}
	pthread_mutex_unlock(&mutex);
	return v;
}

const struct variant *variant_find(const char *spec, enum files_lock lock,
				   bool clone, struct problem *p)
{
	static const struct variant_set *const sets[2][2] = {
		[FILES_LOCK_QUEUED] = {&set_queued, &set_queued_clone},
		[FILES_LOCK_TAS] = {&set_tas, &set_tas_clone},
	};
	const struct variant_set *set = sets[lock][clone];
	struct variant v = {.lock = lock, .clone = clone};
	unsigned int in_preset = 0, bit;
	const struct variant *found;
	const char *word = spec;
	enum search id;
	size_t len = strcspn(word, "+"), used;
	int i;

	i = word_index(variant_searches, word, len);
	if (i >= 0) {
		id = (enum search)i;
	} else {
		i = word_index(variant_presets, word, len);
		if (i < 0) {
			wrong_word(p, spec, word, len);
			return NULL;
		}
		id = presets[i].search;
		in_preset = presets[i].switches;
	}
	used = (size_t)snprintf(v.name, sizeof(v.name), "%.*s", (int)len, word);

	v.switches = in_preset;
	while (word[len]) {
		word += len + 1;
		len = strcspn(word, "+");
		i = word_index(variant_switches, word, len);
		if (i < 0) {
			wrong_word(p, spec, word, len);
			return NULL;
		}
		v.switches |= switch_bits[i];
	}
	for (i = 0; variant_switches[i].name; i++) {
		bit = switch_bits[i];
		if (v.switches & bit & ~in_preset)
			used += (size_t)snprintf(v.name + used,
						 sizeof(v.name) - used, "+%s",
						 variant_switches[i].name);
	}

	v.shape = searches[id].shape;
	v.nonconforming = searches[id].nonconforming;
	v.alloc = set->allocs[id][v.switches & SW_ALLOC_MASK];
	if (!v.alloc) {
		problem_set(p, USAGE,
			    "variant '%s': %s has no clone; two-level, "
			    "first-word and next_fd-word have",
			    spec, searches[id].name);
		return NULL;
	}
	v.ops = &set->ops[v.shape][!!(v.switches & SW_COND_CLEAR)];
	found = intern(&v);
	if (!found)
		problem_set(p, COULD_NOT, "variant '%s': out of memory", spec);
	return found;
}

const char *variant_name(const struct variant *v)
{
	return v->name;
}

const char *variant_nonconforming(const struct variant *v)
{
	return v->nonconforming;
}
