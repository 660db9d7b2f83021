/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How fs/file.c reaches the chosen clones.  The transformation includes this
 * in place of alloc_fd() and says FDV_DIRECT first:
 *	1	static calls, direct CALLs patched in place: no instruction is
 *		added.  QEMU's multi-threaded TCG can crash when text is patched
 *		that other CPUs run, so set the variant with the tasks joined.
 *	0	plain pointers: nothing is patched, safe at any time.
 * The tree's own functions keep their text under the names fdv_tree_*.
 */
#ifndef FDSCALE_DISPATCH_H
#define FDSCALE_DISPATCH_H

#include <linux/cache.h>
#include <linux/fs.h>
#include <linux/static_call.h>

static int fdv_tree_alloc(unsigned int start, unsigned int end,
			  unsigned int flags);
static struct file *fdv_tree_pick(struct files_struct *files, unsigned int fd);
static void fdv_tree_put(struct files_struct *files, unsigned int fd);

#if FDV_DIRECT
#define FDV_FLAVOUR "direct"
DEFINE_STATIC_CALL(fdv_call_alloc, fdv_tree_alloc);
DEFINE_STATIC_CALL(fdv_call_pick, fdv_tree_pick);
DEFINE_STATIC_CALL(fdv_call_put, fdv_tree_put);
#define fdv_via(what) static_call(fdv_call_##what)
#define fdv_use_alloc(fn) static_call_update(fdv_call_alloc, fn)
#define fdv_use_pick(fn) static_call_update(fdv_call_pick, fn)
#define fdv_use_put(fn) static_call_update(fdv_call_put, fn)
#else
#define FDV_FLAVOUR "pointer"
static int (*fdv_call_alloc)(unsigned int, unsigned int,
			     unsigned int) __read_mostly = fdv_tree_alloc;
static struct file *(*fdv_call_pick)(struct files_struct *,
				     unsigned int)__read_mostly = fdv_tree_pick;
static void (*fdv_call_put)(struct files_struct *,
			    unsigned int) __read_mostly = fdv_tree_put;
#define fdv_via(what) READ_ONCE(fdv_call_##what)
#define fdv_use_alloc(fn) WRITE_ONCE(fdv_call_alloc, fn)
#define fdv_use_pick(fn) WRITE_ONCE(fdv_call_pick, fn)
#define fdv_use_put(fn) WRITE_ONCE(fdv_call_put, fn)
#endif

static __always_inline int alloc_fd(unsigned int start, unsigned int end,
				    unsigned int flags)
{
	return fdv_via(alloc)(start, end, flags);
}

#endif
