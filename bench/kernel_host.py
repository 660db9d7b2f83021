# SPDX-License-Identifier: GPL-2.0-only
"""host.json of a guest: read from its own /proc and /sys, with its host inside."""

import shutil
from pathlib import Path
from typing import Any

from bench.host import read_host
from bench.scratch import Scratch

CPUS = "/sys/devices/system/cpu"
FILES = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/cmdline", "/proc/self/status"),
    *("/proc/self/limits", "/proc/self/cgroup", "/proc/self/mountinfo"),
    *(f"/proc/sys/kernel/{n}" for n in ("osrelease", "version", "hostname", "arch")),
    *("/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/randomize_va_space"),
    *("/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/perf_event_paranoid"),
    *("/proc/sys/fs/nr_open", "/proc/sys/fs/file-max"),
    "/proc/sys/net/ipv4/ip_local_port_range",
    *(f"{CPUS}/{n}" for n in ("online", "isolated", "nohz_full", "smt/*")),
    f"{CPUS}/vulnerabilities/*",
    f"{CPUS}/cpu[0-9]*/topology/thread_siblings_list",
    f"{CPUS}/cpu[0-9]*/topology/physical_package_id",
    f"{CPUS}/cpu[0-9]*/cache/index3/shared_cpu_list",
    "/sys/devices/system/node/node[0-9]*/cpulist",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/security/lsm",
)
# Every line of all of them, with the file's name before it: one program.
LOOK = f"grep -Hs '' {' '.join(FILES)} || :"


def rebuild(said: str, root: Path) -> None:
    """The files that LOOK printed, below @root."""
    texts: dict[str, list[str]] = {}
    for line in said.splitlines():
        name, colon, text = line.partition(":")
        if colon and name.startswith(("/proc/", "/sys/")):
            texts.setdefault(name, []).append(text)
    for name, lines in texts.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


def guest_host(said: str, accel: str, config: Path, preset: str) -> dict[str, Any]:
    """host.json: the guest's facts by what LOOK printed in it, and the kernel's
    configuration; under "guest" how it ran and the host it ran on."""
    outside = read_host()
    with Scratch() as root:
        rebuild(said, root)
        release = (root / "proc/sys/kernel/osrelease").read_text().strip()
        if config.is_file():
            (root / "boot").mkdir()
            shutil.copyfile(config, root / "boot" / f"config-{release}")
        inside = read_host(root, preset)
    inside["hypervisor"] = f"QEMU ({accel})"
    inside["versions"] = outside["versions"]  # where the driver was built
    return inside | {"guest": {"accel": accel, "host": outside}}
