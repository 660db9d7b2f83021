// SPDX-License-Identifier: GPL-2.0-only
#include "kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "kswitch.h"

const char *kernel_preset(const char *release)
{
	/* What those distributions put in their release strings. */
	static const char *const changed[] = {
		".el",	".amzn",   "amzn", "uek",   "-default", "-preempt",
		".oe",	"android", ".an",  ".tl",   ".ocs",	"-azure-sle",
		"-rt",	"xanmod",  ".vz",  ".ovz.", ".azl",	".cm2",
		".al8", "suse",	   "-sle",
	};
	int major, minor;

	for (size_t i = 0; i < sizeof(changed) / sizeof(*changed); i++)
		if (strstr(release, changed[i]))
			return "unknown";
	if (sscanf(release, "%d.%d", &major, &minor) != 2)
		return "unknown";
	if (major > 6 || (major == 6 && minor >= 13))
		return "merged-6.13";
	if (major > 4 || (major == 4 && minor >= 4))
		return "stock-6.12";
	return "unknown";
}

const char *kernel_running(void)
{
	static char name[128];
	struct utsname u;

	if (kswitch_read(name, sizeof(name)))
		return name;
	return uname(&u) ? "unknown" : kernel_preset(u.release);
}
