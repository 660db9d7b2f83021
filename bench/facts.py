# SPDX-License-Identifier: GPL-2.0-only
"""Single facts of a host, each from /proc or /sys; None where they are hidden.

host.py records them, the checks of the doctor judge them.
"""

import gzip
import os
import re
from collections import Counter
from dataclasses import dataclass

from bench.root import Root, chosen, cpu_list, list_text

CPU = "/sys/devices/system/cpu"

# Options that change the path that is measured, or what it costs.
DEBUG_OPTIONS = (
    "PROVE_LOCKING",
    "LOCK_STAT",
    "DEBUG_SPINLOCK",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "KCOV",
    "UBSAN_SANITIZE_ALL",
    "SLUB_DEBUG_ON",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
)


def fields(text: str | None) -> dict[str, str]:
    """Lines of "key : value"; of a key that comes twice, the first."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def cpuinfo(root: Root) -> dict[str, str]:
    """The first CPU of /proc/cpuinfo."""
    return fields((root.read("/proc/cpuinfo") or "").split("\n\n")[0])


def cpu_model(root: Root) -> str | None:
    """The model's name; on arm64, where there is none, the implementer and part."""
    info = cpuinfo(root)
    if "CPU part" in info:
        return f"implementer {info.get('CPU implementer')} part {info['CPU part']}"
    return info.get("model name") or info.get("cpu") or info.get("uarch")


def microcodes(root: Root) -> list[str] | None:
    """The revisions in use: more than one when CPUs differ."""
    text = root.read("/proc/cpuinfo") or ""
    found = sorted(set(re.findall(r"^microcode\s*:\s*(\S+)", text, re.MULTILINE)))
    return found or None


def online(root: Root) -> list[int] | None:
    text = root.read(f"{CPU}/online")
    return None if text is None else cpu_list(text)


def allowed(root: Root) -> list[int] | None:
    """PUs that this process may run on."""
    text = fields(root.read("/proc/self/status")).get("Cpus_allowed_list")
    return None if text is None else cpu_list(text)


def nohz_full(root: Root) -> str | None:
    """PUs without a tick. The file is there with CONFIG_NO_HZ_FULL only."""
    text = root.read(f"{CPU}/nohz_full")
    if text is None:
        return "" if root.exists(f"{CPU}/online") else None
    return "" if text == "(null)" else text


def word(root: Root, name: str) -> str | None:
    """A word of the kernel's command line, NAME=value: the value; "" for none."""
    line = root.read("/proc/cmdline")
    if line is None:
        return None
    values = [w[len(name) + 1 :] for w in line.split() if w.startswith(name + "=")]
    return values[-1] if values else ""


def governors(root: Root) -> dict[str, int] | None:
    """Governors, with the number of frequency domains each one rules."""
    names = root.glob(f"{CPU}/cpufreq/policy*/scaling_governor")
    found = Counter(text for name in names if (text := root.read(name)))
    return dict(sorted(found.items())) or None


def drivers(root: Root) -> list[str] | None:
    names = root.glob(f"{CPU}/cpufreq/policy*/scaling_driver")
    return sorted({text for name in names if (text := root.read(name))}) or None


def turbo(root: Root) -> bool | None:
    """Whether the clock may rise above its nominal rate."""
    no_turbo = root.number(f"{CPU}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    boost = root.number(f"{CPU}/cpufreq/boost")
    return None if boost is None else boost != 0


def smt(root: Root) -> str | None:
    """on, off, forceoff, notsupported or notimplemented."""
    control = root.read(f"{CPU}/smt/control")
    if control is None:
        active = root.number(f"{CPU}/smt/active")
        return None if active is None else ("on" if active else "off")
    return control


def throttles(root: Root) -> int | None:
    """Thermal throttling since boot, all CPUs together (x86)."""
    names = root.glob(f"{CPU}/cpu[0-9]*/thermal_throttle/*_throttle_count")
    counts = [n for name in names if (n := root.number(name)) is not None]
    return sum(counts) if counts else None


def mitigations(root: Root) -> dict[str, str] | None:
    names = root.glob(f"{CPU}/vulnerabilities/*")
    found = {name.rsplit("/", 1)[1]: root.read(name) for name in names}
    return {key: text for key, text in found.items() if text is not None} or None


def hypervisor(root: Root) -> str | None:
    """The hypervisor's name as far as it tells; "none" on bare metal."""
    info = cpuinfo(root)
    dmi = "/sys/class/dmi/id"
    product = " ".join(
        filter(None, (root.read(f"{dmi}/{n}") for n in ("sys_vendor", "product_name")))
    )
    xen = root.read("/sys/hypervisor/type")
    if xen:
        return xen
    if "flags" in info:
        if "hypervisor" not in info["flags"].split():
            return "none"
        return product or "unnamed"
    if re.search(r"KVM|QEMU|VMware|Virtual|Amazon EC2", product):
        return product
    return "none" if product else None


def debug_options(root: Root) -> list[str] | None:
    """Debug options of the running kernel, from its configuration."""
    release = root.read("/proc/sys/kernel/osrelease")
    text = root.read(f"/boot/config-{release}")
    if text is None:
        text = root.read(f"/lib/modules/{release}/config")
    if text is None:
        try:
            text = gzip.decompress(root.path("/proc/config.gz").read_bytes()).decode()
        except (OSError, EOFError, ValueError):
            text = None
    if text is None:
        # These two files are there with lock debugging only, whoever may read them.
        seen = ("lockdep", "PROVE_LOCKING"), ("lock_stat", "LOCK_STAT")
        return [option for n, option in seen if root.exists(f"/proc/{n}")] or None
    lines = set(text.splitlines())
    return [option for option in DEBUG_OPTIONS if f"CONFIG_{option}=y" in lines]


def thp(root: Root) -> str | None:
    return chosen(root.read("/sys/kernel/mm/transparent_hugepage/enabled"))


def nodes(root: Root) -> dict[int, str] | None:
    """NUMA nodes and their CPUs."""
    found = {}
    for name in root.glob("/sys/devices/system/node/node[0-9]*"):
        text = root.read(f"{name}/cpulist")
        if text is not None:
            found[int(name.rsplit("node", 1)[1])] = text
    return dict(sorted(found.items())) or None


@dataclass(frozen=True)
class Cgroup:
    """This process's group for one controller."""

    version: int
    dirs: list[str]  # its own directory first, the top of what is visible last


def cgroup(root: Root, controller: str) -> Cgroup | None:
    """Where CONTROLLER's files for this process are: v1 if it is mounted so."""
    groups = root.read("/proc/self/cgroup")
    mounts = root.read("/proc/self/mountinfo")
    if groups is None or mounts is None:
        return None
    for version in (1, 2):
        for line in groups.splitlines():
            number, names, path = line.split(":", 2)
            if version == 1 and controller not in names.split(","):
                continue
            if version == 2 and number != "0":
                continue
            for mount in mounts.splitlines():
                left, _, right = mount.partition(" - ")
                kind, _, options = right.split(" ", 2)
                if kind != ("cgroup" if version == 1 else "cgroup2"):
                    continue
                if version == 1 and controller not in options.split(" ")[-1].split(","):
                    continue
                top, where = left.split()[3:5]
                # Below a container the mount shows a part of the tree only.
                inside = path.removeprefix(top.rstrip("/")).strip("/")
                if ".." in inside or not root.exists(f"{where}/{inside}"):
                    inside = ""
                parts = inside.split("/") if inside else []
                dirs = [
                    "/".join([where, *parts[:n]]) for n in range(len(parts), -1, -1)
                ]
                return Cgroup(version, dirs)
    return None


def quota(root: Root) -> float | str | None:
    """CPUs' worth of time the cgroups leave this process; "max" for no limit."""
    group = cgroup(root, "cpu")
    if group is None:
        return None
    if not root.exists(group.dirs[-1]):
        return None  # mounted, they say, but hidden
    limits = []
    for where in group.dirs:
        if group.version == 2:
            words = (root.read(f"{where}/cpu.max") or "max 100000").split()
        else:
            words = [
                root.read(f"{where}/cpu.cfs_quota_us") or "-1",
                root.read(f"{where}/cpu.cfs_period_us") or "100000",
            ]
        if words[0] not in ("max", "-1"):
            limits.append(int(words[0]) / int(words[1]))
    return min(limits) if limits else "max"


def cpuset(root: Root) -> list[int] | None:
    """PUs that the cgroup leaves this process."""
    group = cgroup(root, "cpuset")
    if group is None:
        return None
    for where in group.dirs:
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            text = root.read(f"{where}/{name}")
            if text:
                return cpu_list(text)
    return online(root)  # no file in the tree's own root: everything


def nofile(root: Root) -> tuple[int, int] | None:
    """RLIMIT_NOFILE of this process, soft and hard; -1 is unlimited."""
    text = root.read("/proc/self/limits") or ""
    match = re.search(r"^Max open files\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    if match is None:
        return None
    soft, hard = (-1 if n == "unlimited" else int(n) for n in match.groups())
    return soft, hard


def capable(root: Root, bit: int) -> bool:
    """Whether this process has a capability (linux/capability.h numbers them)."""
    text = fields(root.read("/proc/self/status")).get("CapEff", "0")
    return bool(int(text, 16) >> bit & 1)


def seccomp(root: Root) -> int | None:
    """0 none, 1 strict, 2 a filter runs on every syscall."""
    text = fields(root.read("/proc/self/status")).get("Seccomp")
    return None if text is None else int(text)


def lsms(root: Root) -> list[str] | None:
    text = root.read("/sys/kernel/security/lsm")
    return None if text is None else text.split(",")


def ports(root: Root) -> list[int] | None:
    """First and last port that a connect may take."""
    text = root.read("/proc/sys/net/ipv4/ip_local_port_range")
    if text is None:
        return None
    first, last = (int(n) for n in text.split())
    return [first, last]


def memory_kib(root: Root) -> int | None:
    text = fields(root.read("/proc/meminfo")).get("MemTotal")
    return int(text.split()[0]) if text else None


# What topology() counts, and the file of a CPU that tells one from another.
TOPOLOGY = {
    "cores": "topology/thread_siblings_list",
    "packages": "topology/physical_package_id",
    "l3s": "cache/index3/shared_cpu_list",
}


def topology(root: Root) -> dict[str, int | None]:
    """How many PUs, cores, packages, last-level caches and nodes are online."""
    pus = online(root) or []
    counts: dict[str, int | None] = {"pus": len(pus) or None}
    for name, file in TOPOLOGY.items():
        values = {root.read(f"{CPU}/cpu{n}/{file}") for n in pus} - {None}
        counts[name] = len(values) or None
    counts["nodes"] = len(nodes(root) or {}) or None
    return counts


def affinity_text(root: Root) -> str | None:
    cpus = allowed(root)
    return None if cpus is None else list_text(cpus)


@dataclass(frozen=True)
class CpuTimes:
    """All CPUs since boot, in seconds."""

    busy: float  # user, nice, system, interrupts (a guest's are within user)
    steal: float


def cpu_times(root: Root) -> CpuTimes | None:
    """The first line of /proc/stat."""
    words = (root.read("/proc/stat") or "").split("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(n) for n in words[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return CpuTimes((user + nice + system + irq + softirq) / tick, steal / tick)
