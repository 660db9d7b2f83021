# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the kernel: what makes syscalls dear, memory, and who else is there."""

import re

from bench import facts
from bench.check import OK, WARN, AnyCheck, HostCheck, Needs, Setting, tee
from bench.facts import CPU
from bench.root import Root

ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h
STEAL_WARN = 0.01  # of the CPU time asked for since boot
LOAD_WARN = 0.5  # runnable tasks, or 5% of the PUs if that is more


class Mitigations(HostCheck[dict[str, str]]):
    """Those that work at every entry to or exit from the kernel."""

    name = "mitigations"
    # Page table switch; MSR write at entry; buffers cleared at exit.
    DEAR = re.compile(r"\bPTI\b|Mitigation: IBRS|Clear CPU buffers")

    def read(self, root: Root, needs: Needs) -> dict[str, str] | None:
        return facts.mitigations(root)

    def dear(self, value: dict[str, str]) -> list[str]:
        found = {k: v.split(";")[0] for k, v in value.items()}
        return [f"{k}: {v}" for k, v in found.items() if self.DEAR.search(v)]

    def judge(self, value: dict[str, str], needs: Needs) -> str:
        return WARN if self.dear(value) else OK

    def show(self, value: dict[str, str]) -> str:
        on = sum(text.startswith("Mitigation") for text in value.values())
        return "; ".join(self.dear(value)) or f"{on} on, none at kernel entry"

    def remedy(self, value: dict[str, str], needs: Needs) -> str:
        return "boot with mitigations=off (on a machine for tests only)"


class Aslr(HostCheck[tuple[int, bool]]):
    """Runs must differ in layout: else all of them share one accident."""

    name = "aslr"

    def read(self, root: Root, needs: Needs) -> tuple[int, bool] | None:
        level = root.number("/proc/sys/kernel/randomize_va_space")
        if level is None:
            return None
        flags = int(root.read("/proc/self/personality") or "0", 16)
        return level, bool(flags & ADDR_NO_RANDOMIZE)

    def judge(self, value: tuple[int, bool], needs: Needs) -> str:
        return OK if value == (2, False) else WARN

    def show(self, value: tuple[int, bool]) -> str:
        level, off = value
        return "off for this process (setarch -R)" if off else str(level)

    def remedy(self, value: tuple[int, bool], needs: Needs) -> str:
        if value[1]:
            return "start it without setarch -R"
        return "sudo sysctl kernel.randomize_va_space=2"

    def settings(self, root: Root) -> list[Setting]:
        path = "/proc/sys/kernel/randomize_va_space"
        return [] if root.read(path) == "2" else [Setting(path, "2")]


class NumaBalancing(HostCheck[tuple[int, int]]):
    """Unmaps pages to see who uses them, and moves them."""

    name = "numa_balancing"

    def read(self, root: Root, needs: Needs) -> tuple[int, int] | None:
        mode = root.number("/proc/sys/kernel/numa_balancing")
        nodes = facts.nodes(root)
        return None if mode is None or nodes is None else (mode, len(nodes))

    def judge(self, value: tuple[int, int], needs: Needs) -> str:
        mode, nodes = value
        return WARN if mode and nodes > 1 else OK

    def show(self, value: tuple[int, int]) -> str:
        mode, nodes = value
        return f"{mode}, {nodes} node{'s' * (nodes != 1)}"

    def remedy(self, value: tuple[int, int], needs: Needs) -> str:
        return "sudo sysctl kernel.numa_balancing=0"

    def settings(self, root: Root) -> list[Setting]:
        return [Setting("/proc/sys/kernel/numa_balancing", "0")]


class Thp(HostCheck[str]):
    """Under "always" a large table changes page size when khugepaged gets there."""

    name = "thp"
    PATH = "/sys/kernel/mm/transparent_hugepage/enabled"

    def read(self, root: Root, needs: Needs) -> str | None:
        return facts.thp(root)

    def judge(self, value: str, needs: Needs) -> str:
        return WARN if value == "always" else OK

    def remedy(self, value: str, needs: Needs) -> str:
        return tee("madvise", self.PATH)

    def settings(self, root: Root) -> list[Setting]:
        return [Setting(self.PATH, "madvise")]


class DebugKernel(HostCheck[list[str]]):
    """Debug options change the very path that is measured."""

    name = "debug kernel"

    def read(self, root: Root, needs: Needs) -> list[str] | None:
        return facts.debug_options(root)

    def judge(self, value: list[str], needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: list[str]) -> str:
        return ", ".join(value) or "no"

    def remedy(self, value: list[str], needs: Needs) -> str:
        return "boot a kernel without CONFIG_" + ", CONFIG_".join(value)


class Clocksource(HostCheck[tuple[str, list[str]]]):
    """These are read without a syscall; others cost up to a microsecond."""

    name = "clocksource"
    FAST = {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"}
    FAST |= {"timebase", "riscv_clocksource"}

    def read(self, root: Root, needs: Needs) -> tuple[str, list[str]] | None:
        where = "/sys/devices/system/clocksource/clocksource0"
        current = root.read(f"{where}/current_clocksource")
        if not current:
            return None
        return current, (root.read(f"{where}/available_clocksource") or "").split()

    def judge(self, value: tuple[str, list[str]], needs: Needs) -> str:
        return OK if value[0] in self.FAST else WARN

    def show(self, value: tuple[str, list[str]]) -> str:
        return value[0]

    def remedy(self, value: tuple[str, list[str]], needs: Needs) -> str:
        for name in value[1]:
            if name in self.FAST:
                where = "/sys/devices/system/clocksource/clocksource0"
                return tee(name, f"{where}/current_clocksource")
        return "see why the kernel gave the TSC up: sudo dmesg | grep -i tsc"


class Microcode(HostCheck[tuple[list[str], bool]]):
    """One revision on all CPUs, and not one the kernel calls old."""

    name = "microcode"

    def read(self, root: Root, needs: Needs) -> tuple[list[str], bool] | None:
        found = facts.microcodes(root)
        old = root.read(f"{CPU}/vulnerabilities/old_microcode") or ""
        return None if found is None else (found, old.startswith("Vulnerable"))

    def judge(self, value: tuple[list[str], bool], needs: Needs) -> str:
        found, old = value
        return WARN if old or len(found) > 1 else OK

    def show(self, value: tuple[list[str], bool]) -> str:
        return ", ".join(value[0]) + (" (old)" if value[1] else "")

    def remedy(self, value: tuple[list[str], bool], needs: Needs) -> str:
        return "sudo apt install intel-microcode amd64-microcode, and reboot"


def running(root: Root, program: str) -> bool | None:
    """Whether a program of that name runs; None when others' are hidden.

    In a container, or under hidepid, the kernel's own threads are out of sight.
    """
    if root.read("/proc/2/comm") != "kthreadd":
        return None
    return any(root.read(n) == program for n in root.glob("/proc/[0-9]*/comm"))


class Irqbalance(HostCheck[bool]):
    """Moves interrupts from one PU to another while we measure."""

    name = "irqbalance"

    def read(self, root: Root, needs: Needs) -> bool | None:
        return running(root, "irqbalance")

    def judge(self, value: bool, needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: bool) -> str:
        return "running" if value else "not running"

    def remedy(self, value: bool, needs: Needs) -> str:
        return "sudo systemctl stop irqbalance"


class Load(HostCheck[tuple[float, int]]):
    """Somebody else works here (the last minute's mean)."""

    name = "load"

    def read(self, root: Root, needs: Needs) -> tuple[float, int] | None:
        text, pus = root.read("/proc/loadavg"), facts.online(root)
        return None if not text or not pus else (float(text.split()[0]), len(pus))

    def judge(self, value: tuple[float, int], needs: Needs) -> str:
        load, pus = value
        return WARN if load > max(LOAD_WARN, 0.05 * pus) else OK

    def show(self, value: tuple[float, int]) -> str:
        return f"{value[0]:.2f} on {value[1]} PUs"

    def remedy(self, value: tuple[float, int], needs: Needs) -> str:
        return "stop what runs: top -b -n 1 -o %CPU | head -15"


class Steal(HostCheck[float]):
    """CPU time that the hypervisor gave to others, of what was asked for."""

    name = "steal"

    def read(self, root: Root, needs: Needs) -> float | None:
        times = facts.cpu_times(root)
        if times is None:
            return None
        wanted = times.busy + times.steal
        return times.steal / wanted if wanted else 0.0

    def judge(self, value: float, needs: Needs) -> str:
        return WARN if value > STEAL_WARN else OK

    def show(self, value: float) -> str:
        return f"{value:.1%} since boot"

    def remedy(self, value: float, needs: Needs) -> str:
        return "take a guest with CPUs of its own; ./run.py calibrate shows the cost"


class Hypervisor(HostCheck[str]):
    """In a guest, clock rate and neighbours are out of sight."""

    name = "hypervisor"

    def read(self, root: Root, needs: Needs) -> str | None:
        return facts.hypervisor(root)

    def judge(self, value: str, needs: Needs) -> str:
        return OK if value == "none" else WARN

    def remedy(self, value: str, needs: Needs) -> str:
        return "take bare metal; ./run.py calibrate shows what this guest resolves"


class Audit(HostCheck[str]):
    """With audit on, every syscall is recorded, rules or none."""

    name = "audit"

    def read(self, root: Root, needs: Needs) -> str | None:
        if not root.exists("/proc/self/status"):
            return None
        if not root.exists("/proc/self/loginuid"):
            return "not in this kernel"
        if facts.word(root, "audit") in ("0", "off"):
            return "off since boot"
        # Only root is answered.
        status = root.command("auditctl", "-s")
        match = re.search(r"enabled\D*(\d)", status or "")
        if match is not None:
            return "on" if match[1] != "0" else "off"
        # Rules that keep new tasks out of it are common on Fedora and RHEL.
        rules = root.read("/etc/audit/audit.rules") or ""
        if re.search(r"^-a\s+(never,task|task,never)\s*$", rules, re.MULTILINE):
            return "off for new tasks"
        return "on" if running(root, "auditd") else None

    def judge(self, value: str, needs: Needs) -> str:
        return WARN if value == "on" else OK

    def remedy(self, value: str, needs: Needs) -> str:
        return "sudo auditctl -e 0 (and -e 1 afterwards), or boot with audit=0"


class Seccomp(HostCheck[int]):
    """A filter on this process runs at every syscall."""

    name = "seccomp"

    def read(self, root: Root, needs: Needs) -> int | None:
        return facts.seccomp(root)

    def judge(self, value: int, needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: int) -> str:
        return {0: "none", 1: "strict"}.get(value, "filter")

    def remedy(self, value: int, needs: Needs) -> str:
        return "docker run --security-opt seccomp=unconfined, or no sandbox"


class Lsm(HostCheck[tuple[list[str], str]]):
    """Security modules that look at every file opened."""

    name = "lsm"
    DEAR = ("selinux", "smack", "tomoyo")

    def read(self, root: Root, needs: Needs) -> tuple[list[str], str] | None:
        modules = facts.lsms(root)
        if modules is None:
            return None
        return modules, (root.read("/proc/self/attr/current") or "").strip("\0")

    def dear(self, value: tuple[list[str], str]) -> list[str]:
        modules, label = value
        found = [name for name in modules if name in self.DEAR]
        # apparmor asks little of a process that it does not confine.
        if "apparmor" in modules and label not in ("", "unconfined"):
            found.append("apparmor")
        return found

    def judge(self, value: tuple[list[str], str], needs: Needs) -> str:
        return WARN if self.dear(value) else OK

    def show(self, value: tuple[list[str], str]) -> str:
        return ", ".join(value[0])

    def remedy(self, value: tuple[list[str], str], needs: Needs) -> str:
        return "boot with " + " ".join(f"{name}=0" for name in self.dear(value))


CHECKS: list[AnyCheck] = [
    Mitigations(),
    Aslr(),
    NumaBalancing(),
    Thp(),
    DebugKernel(),
    Clocksource(),
    Microcode(),
    Irqbalance(),
    Load(),
    Steal(),
    Hypervisor(),
    Audit(),
    Seccomp(),
    Lsm(),
]
