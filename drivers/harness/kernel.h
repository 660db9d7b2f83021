/* SPDX-License-Identifier: GPL-2.0-only */
/* The running kernel, named by the preset whose search it has. */
#ifndef FDSCALE_KERNEL_H
#define FDSCALE_KERNEL_H

/*
 * "merged-6.13" from 6.13 on, "stock-6.12" from 4.4 to 6.12, else "unknown";
 * "unknown" too for kernels whose distribution backports into them (Red Hat's
 * and its kin, SUSE, Amazon, Oracle, openEuler, Android): their number does
 * not tell what fs/file.c holds.  Debian, Ubuntu, Fedora, Arch follow upstream.
 */
const char *kernel_preset(const char *release);

/* What the kernel's switch is at, where it has one; else kernel_preset(). */
const char *kernel_running(void);

#endif
