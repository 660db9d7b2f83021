/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The switch: files for root only in /sys/module/fdscale/parameters.
 *	variant   write SEARCH[+SWITCH]... or PRESET[+SWITCH]..., read it back;
 *		  EINVAL for a word that is not there
 *	words     the words there are, one a line: kind and name
 *	tree      what this kernel's own code is, by its preset
 *	flavour   pointer: the variant may be written at any time; direct and
 *		  livepatch patch text, which is safe on hardware, but under
 *		  QEMU's multi-threaded TCG only with all tasks joined
 * "#clone" behind what the tree itself has asks for our code of the same: for A
 * against A.  There is no second copy of the others: EINVAL.
 *
 * Whoever includes this says first: FDV_FLAVOUR, FDV_TREE (a string),
 * FDV_TREE_SEARCH, FDV_TREE_SET, fdv_use_alloc(), fdv_use_pick(),
 * fdv_use_put(), and FDV_HAS_TREE: 1 where there are fdv_tree_alloc,
 * fdv_tree_pick and fdv_tree_put.
 */
#ifndef FDSCALE_KNOB_H
#define FDSCALE_KNOB_H

#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#define FDV_ENUM(search, name) FDV_SEARCH_##search,
enum { FDV_SEARCHES(FDV_ENUM) FDV_SEARCH_COUNT };

struct fdv_word {
	const char *name;
	unsigned int search;
	unsigned int set;
};

#define FDV_SEARCH_WORD(search, name) {name, FDV_SEARCH_##search, 0},
static const struct fdv_word fdv_searches[] = {FDV_SEARCHES(FDV_SEARCH_WORD)};

static const struct fdv_word fdv_presets[] = {
	{"stock-6.12", FDV_SEARCH_two_level,
	 FDV_SANITY_READ | FDV_EAGER_EXPAND},
	{"patch-1", FDV_SEARCH_two_level, 0},
	{"patch-1-2", FDV_SEARCH_two_level, FDV_COND_CLEAR},
	{"series-v2", FDV_SEARCH_first_word_v2, FDV_COND_CLEAR | FDV_END_LATE},
	{"series-v3", FDV_SEARCH_first_word, FDV_COND_CLEAR | FDV_END_LATE},
	{"series-v5", FDV_SEARCH_next_fd_word, FDV_COND_CLEAR},
	{"merged-6.13", FDV_SEARCH_next_fd_word, FDV_COND_CLEAR},
};

static const struct fdv_word fdv_switches[] = {
	{"cond-clear", 0, FDV_COND_CLEAR},
	{"sanity-read", 0, FDV_SANITY_READ},
	{"eager-expand", 0, FDV_EAGER_EXPAND},
	{"end-late", 0, FDV_END_LATE},
	{"clone", 0, FDV_CLONE},
};

#define FDV_ROW(search, name)                                                  \
	{                                                                      \
		fdv_alloc_##search##_0, fdv_alloc_##search##_1,                \
		fdv_alloc_##search##_2, fdv_alloc_##search##_3,                \
		fdv_alloc_##search##_4, fdv_alloc_##search##_5,                \
		fdv_alloc_##search##_6, fdv_alloc_##search##_7},
static const fdv_alloc_fn fdv_allocs[FDV_SEARCH_COUNT][FDV_ALLOC_SETS] = {
	FDV_SEARCHES(FDV_ROW)};

static char fdv_now[128] = FDV_TREE;

static const struct fdv_word *fdv_find(const struct fdv_word *words,
				       size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(words[i].name, name))
			return &words[i];
	return NULL;
}

static int fdv_parse(char *spec, struct fdv_word *out)
{
	const struct fdv_word *w;
	char *name = strsep(&spec, "+#");

	w = fdv_find(fdv_searches, ARRAY_SIZE(fdv_searches), name);
	if (!w)
		w = fdv_find(fdv_presets, ARRAY_SIZE(fdv_presets), name);
	if (!w)
		return -EINVAL;
	*out = *w;
	while ((name = strsep(&spec, "+#"))) {
		w = fdv_find(fdv_switches, ARRAY_SIZE(fdv_switches), name);
		if (!w)
			return -EINVAL;
		out->set |= w->set;
	}
	return 0;
}

/* The module core holds a lock of its own around this. */
static int fdv_variant_set(const char *val, const struct kernel_param *kp)
{
	char name[sizeof(fdv_now)], words[sizeof(fdv_now)];
	fdv_alloc_fn alloc;
	fdv_pick_fn pick;
	fdv_put_fn put;
	struct fdv_word w;
	bool trees;
	int ret;

	if (strscpy(name, val, sizeof(name)) < 0)
		return -EINVAL;
	strscpy(words, strim(name), sizeof(words));
	ret = fdv_parse(words, &w);
	if (ret)
		return ret;

	trees = FDV_HAS_TREE && w.search == FDV_TREE_SEARCH &&
		w.set % FDV_ALLOC_SETS == FDV_TREE_SET % FDV_ALLOC_SETS;
	if ((w.set & FDV_CLONE) && !trees)
		return -EINVAL;
	alloc = fdv_allocs[w.search][w.set % FDV_ALLOC_SETS];
	pick = w.set & FDV_COND_CLEAR ? fdv_pick_if_set : fdv_pick_always;
	put = w.set & FDV_COND_CLEAR ? fdv_put_if_set : fdv_put_always;
#if FDV_HAS_TREE
	if (!(w.set & FDV_CLONE)) {
		if (trees)
			alloc = fdv_tree_alloc;
		if (!((w.set ^ FDV_TREE_SET) & FDV_COND_CLEAR)) {
			pick = fdv_tree_pick;
			put = fdv_tree_put;
		}
	}
#endif
	fdv_use_alloc(alloc);
	fdv_use_pick(pick);
	fdv_use_put(put);
	strscpy(fdv_now, strim(name), sizeof(fdv_now));
	return 0;
}

static int fdv_variant_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%s\n", fdv_now);
}

static int fdv_tree_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%s\n", FDV_TREE);
}

static int fdv_flavour_get(char *buf, const struct kernel_param *kp)
{
	return sprintf(buf, "%s\n", FDV_FLAVOUR);
}

static int fdv_words_get(char *buf, const struct kernel_param *kp)
{
	int len = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fdv_searches); i++)
		len += sprintf(buf + len, "search %s\n", fdv_searches[i].name);
	for (i = 0; i < ARRAY_SIZE(fdv_switches); i++)
		len += sprintf(buf + len, "switch %s\n", fdv_switches[i].name);
	for (i = 0; i < ARRAY_SIZE(fdv_presets); i++)
		len += sprintf(buf + len, "preset %s\n", fdv_presets[i].name);
	return len;
}

static const struct kernel_param_ops fdv_variant_ops = {
	.set = fdv_variant_set,
	.get = fdv_variant_get,
};
static const struct kernel_param_ops fdv_tree_ops = {.get = fdv_tree_get};
static const struct kernel_param_ops fdv_words_ops = {.get = fdv_words_get};
static const struct kernel_param_ops fdv_flavour_ops = {
	.get = fdv_flavour_get,
};

#ifndef MODULE
/* fs/file.c is no module: its files would be in .../file/parameters. */
#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "fdscale."
#endif
module_param_cb(variant, &fdv_variant_ops, NULL, 0600);
module_param_cb(tree, &fdv_tree_ops, NULL, 0400);
module_param_cb(words, &fdv_words_ops, NULL, 0400);
module_param_cb(flavour, &fdv_flavour_ops, NULL, 0400);

#endif
