# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the processors: clock rate, sharing, and which ones may be used."""

from bench import facts
from bench.check import FATAL, OK, WARN, AnyCheck, HostCheck, Needs, Setting, tee
from bench.facts import CPU
from bench.root import Root, cpu_list, list_text

POLICIES = f"{CPU}/cpufreq/policy*"


class Governor(HostCheck[dict[str, int]]):
    """Any governor but performance changes the clock while we measure."""

    name = "governor"

    def read(self, root: Root, needs: Needs) -> dict[str, int] | None:
        return facts.governors(root)

    def judge(self, value: dict[str, int], needs: Needs) -> str:
        return OK if set(value) <= {"performance", "userspace"} else WARN

    def show(self, value: dict[str, int]) -> str:
        return ", ".join(f"{name} ({count})" for name, count in value.items())

    def remedy(self, value: dict[str, int], needs: Needs) -> str:
        return "sudo cpupower frequency-set -g performance"

    def settings(self, root: Root) -> list[Setting]:
        names = root.glob(f"{POLICIES}/scaling_governor")
        return [
            Setting(n, "performance") for n in names if root.read(n) != "performance"
        ]


class Driver(HostCheck[list[str]]):
    """Two drivers known to be slow, or to skip clocks instead of lowering them."""

    name = "scaling driver"

    def read(self, root: Root, needs: Needs) -> list[str] | None:
        return facts.drivers(root)

    def judge(self, value: list[str], needs: Needs) -> str:
        poor = {"pcc-cpufreq", "p4-clockmod"}
        return WARN if poor & set(value) or len(value) > 1 else OK

    def show(self, value: list[str]) -> str:
        return ", ".join(value)

    def remedy(self, value: list[str], needs: Needs) -> str:
        return "let the firmware hand the clock to the system, then use acpi-cpufreq"


class Turbo(HostCheck[tuple[bool, Setting]]):
    """With turbo the clock depends on how many cores are busy, and on heat."""

    name = "turbo"

    def off(self, root: Root) -> Setting:
        """The switch that this driver has."""
        if root.exists(f"{CPU}/intel_pstate/no_turbo"):
            return Setting(f"{CPU}/intel_pstate/no_turbo", "1")
        return Setting(f"{CPU}/cpufreq/boost", "0")

    def read(self, root: Root, needs: Needs) -> tuple[bool, Setting] | None:
        on = facts.turbo(root)
        return None if on is None else (on, self.off(root))

    def judge(self, value: tuple[bool, Setting], needs: Needs) -> str:
        return WARN if value[0] else OK

    def show(self, value: tuple[bool, Setting]) -> str:
        return "on" if value[0] else "off"

    def remedy(self, value: tuple[bool, Setting], needs: Needs) -> str:
        return tee(value[1].wanted, value[1].path)

    def settings(self, root: Root) -> list[Setting]:
        return [self.off(root)]


class Smt(HostCheck[str]):
    """A sibling that works takes part of the core of the task beside it."""

    name = "smt"

    def read(self, root: Root, needs: Needs) -> str | None:
        return facts.smt(root)

    def judge(self, value: str, needs: Needs) -> str:
        return WARN if value == "on" else OK

    def remedy(self, value: str, needs: Needs) -> str:
        return f"./run.py sweep --place cores, or {tee('off', f'{CPU}/smt/control')}"


class Throttling(HostCheck[int]):
    """It got too hot since boot: it will again."""

    name = "throttling"

    def read(self, root: Root, needs: Needs) -> int | None:
        return facts.throttles(root)

    def judge(self, value: int, needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: int) -> str:
        return f"{value} times since boot"

    def remedy(self, value: int, needs: Needs) -> str:
        return f"cool it; see grep . {CPU}/cpu*/thermal_throttle/*_count"


PusOf = tuple[list[int], list[int]]  # ours, and those online


class Reach(HostCheck[PusOf]):
    """PUs that we may use, of those online: fewer than tasks will not do."""

    def judge(self, value: PusOf, needs: Needs) -> str:
        mine, every = value
        if len(mine) < needs.tasks:
            return FATAL
        return OK if set(every) <= set(mine) else WARN

    def show(self, value: PusOf) -> str:
        mine, every = value
        return f"{list_text(mine)} of {list_text(every)}"

    def remedy(self, value: PusOf, needs: Needs) -> str:
        every = value[1]
        if len(every) < needs.tasks:
            return f"./run.py sweep --tasks {len(every)}"
        return self.widen(list_text(every))

    def widen(self, every: str) -> str:
        """How to get at all of them."""
        raise NotImplementedError


class Affinity(Reach):
    """What this process's own mask leaves it."""

    name = "affinity"

    def read(self, root: Root, needs: Needs) -> PusOf | None:
        mine, every = facts.allowed(root), facts.online(root)
        return None if mine is None or every is None else (mine, every)

    def widen(self, every: str) -> str:
        return f"taskset -c {every} ./run.py sweep"


class Cpuset(Reach):
    """What the control group leaves us: taskset cannot get more."""

    name = "cpuset"

    def read(self, root: Root, needs: Needs) -> PusOf | None:
        mine, every = facts.cpuset(root), facts.online(root)
        return None if mine is None or every is None else (mine, every)

    def widen(self, every: str) -> str:
        return f"leave the container, or docker run --cpuset-cpus {every}"


class CpuMax(HostCheck[float | str]):
    """A quota stops every task of the group until the next period begins."""

    name = "cpu.max"

    def read(self, root: Root, needs: Needs) -> float | str | None:
        return facts.quota(root)

    def judge(self, value: float | str, needs: Needs) -> str:
        if isinstance(value, str):
            return OK
        return FATAL if value < needs.tasks else WARN

    def show(self, value: float | str) -> str:
        return "no limit" if isinstance(value, str) else f"{value:.2f} CPUs"

    def remedy(self, value: float | str, needs: Needs) -> str:
        return (
            "leave the container, or lift the quota:"
            " docker update --cpu-quota -1 CONTAINER"
        )


class Isolated(HostCheck[PusOf]):
    """Isolated PUs are out of a process's reach until it is bound to them."""

    name = "isolcpus"

    def read(self, root: Root, needs: Needs) -> PusOf | None:
        text, mine = root.read(f"{CPU}/isolated"), facts.allowed(root)
        if text is None or mine is None:
            return None
        return cpu_list(text), mine

    def judge(self, value: PusOf, needs: Needs) -> str:
        isolated, mine = value
        return OK if set(isolated) <= set(mine) else WARN

    def show(self, value: PusOf) -> str:
        return list_text(value[0])

    def remedy(self, value: PusOf, needs: Needs) -> str:
        return f"taskset -c {list_text(value[0])} ./run.py sweep"


class NohzFull(HostCheck[str]):
    """Where the tick is off, each entry to the kernel is accounted: dearer."""

    name = "nohz_full"

    def read(self, root: Root, needs: Needs) -> str | None:
        return facts.nohz_full(root)

    def judge(self, value: str, needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: str) -> str:
        return value or "none"

    def remedy(self, value: str, needs: Needs) -> str:
        return "boot without nohz_full=, or keep off: --place cpus:LIST of the others"


class RcuNocbs(HostCheck[str]):
    """Files closed on these PUs are freed elsewhere, by threads of the kernel."""

    name = "rcu_nocbs"

    def read(self, root: Root, needs: Needs) -> str | None:
        line = root.read("/proc/cmdline")
        if line is not None and "rcu_nocbs" in line.split():
            return "all"  # without a list it is all of them
        return facts.word(root, "rcu_nocbs")

    def judge(self, value: str, needs: Needs) -> str:
        return WARN if value else OK

    def show(self, value: str) -> str:
        return value or "none"

    def remedy(self, value: str, needs: Needs) -> str:
        return "boot without rcu_nocbs=, or keep off: --place cpus:LIST of the others"


CHECKS: list[AnyCheck] = [
    Governor(),
    Driver(),
    Turbo(),
    Smt(),
    Throttling(),
    Affinity(),
    Cpuset(),
    CpuMax(),
    Isolated(),
    NohzFull(),
    RcuNocbs(),
]
