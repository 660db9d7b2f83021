// SPDX-License-Identifier: GPL-2.0-only
/*
 * The switch for a distribution's kernel, without a rebuild: a livepatch that
 * replaces alloc_fd() and the close path by our variants.  Built against the
 * kernel's headers by bench/kernel_livepatch.py, which says what the layout
 * is:
 *	FDV_PICK		"pick_file" (6.1) or "file_close_fd_locked"
 *(6.12)
 *
 * Each replaced function costs some instructions more to reach (ftrace), the
 * same for all variants: differences are right, absolute numbers are not.
 * What the kernel inlines its close path into stays the kernel's own.
 *
 * /sys/module/fdscale/parameters as in fdscale_knob.h.  To unload: write 0 to
 * /sys/kernel/livepatch/fdscale/enabled, wait for the transition, rmmod.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/static_call.h>

static int fdv_expand_missing(struct files_struct *files, unsigned int nr)
{
	return -EMFILE;
}
DEFINE_STATIC_CALL(fdv_call_expand, fdv_expand_missing);

#define fdv_expand(files, fd) static_call(fdv_call_expand)(files, fd)
#define FDV_EXPAND_TELLS 1
#include "fdscale_variants.h"

DEFINE_STATIC_CALL(fdv_call_alloc, fdv_alloc_two_level_3);
DEFINE_STATIC_CALL(fdv_call_pick, fdv_pick_always);
DEFINE_STATIC_CALL(fdv_call_put, fdv_put_always);

#define FDV_FLAVOUR "livepatch"
#define FDV_HAS_TREE 0
#define FDV_TREE "stock-6.12"
#define FDV_TREE_SEARCH FDV_SEARCH_two_level
#define FDV_TREE_SET (FDV_SANITY_READ | FDV_EAGER_EXPAND)
#define fdv_use_alloc(fn) static_call_update(fdv_call_alloc, fn)
#define fdv_use_pick(fn) static_call_update(fdv_call_pick, fn)
#define fdv_use_put(fn) static_call_update(fdv_call_put, fn)
#include "fdscale_knob.h"

/* Tail calls: the chosen clone returns to whom the kernel's own would have. */
static int fdv_live_alloc(unsigned int start, unsigned int end,
			  unsigned int flags)
{
	return static_call(fdv_call_alloc)(start, end, flags);
}

static struct file *fdv_live_pick(struct files_struct *files, unsigned int fd)
{
	return static_call(fdv_call_pick)(files, fd);
}

static void fdv_live_put(unsigned int fd)
{
	struct files_struct *files = current->files;

	spin_lock(&files->file_lock);
	static_call(fdv_call_put)(files, fd);
	spin_unlock(&files->file_lock);
}

static struct klp_func functions[] = {
	{.old_name = "alloc_fd", .new_func = fdv_live_alloc},
	{.old_name = FDV_PICK, .new_func = fdv_live_pick},
	{.old_name = "put_unused_fd", .new_func = fdv_live_put},
	{}};
static struct klp_object objects[] = {{.funcs = functions}, {}};
static struct klp_patch patch = {.mod = THIS_MODULE, .objs = objects};

/* The address of a function that is not exported, or 0. */
static unsigned long address(const char *name)
{
	struct kprobe probe = {.symbol_name = name};
	unsigned long at;

	if (register_kprobe(&probe) < 0)
		return 0;
	at = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	return at;
}

static int __init fdv_init(void)
{
	int (*expand)(struct files_struct * files, unsigned int nr);

	expand = (void *)address("expand_files");
	if (!expand) {
		pr_err("fdscale: no expand_files() in this kernel\n");
		return -ENOENT;
	}
	static_call_update(fdv_call_expand, expand);
	return klp_enable_patch(&patch);
}

static void __exit fdv_exit(void)
{
}

module_init(fdv_init);
module_exit(fdv_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("fdscale: variants of the fd allocator behind a switch");
MODULE_INFO(livepatch, "Y");
