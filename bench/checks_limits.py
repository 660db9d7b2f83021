# SPDX-License-Identifier: GPL-2.0-only
"""Checks of limits: descriptors, files, ports, counters, and the place for files."""

import os
from dataclasses import dataclass

from bench import facts
from bench.check import FATAL, OK, WARN, AnyCheck, HostCheck, Needs
from bench.root import Root

CAP_SYS_RESOURCE = 24
CAP_SYS_ADMIN = 21
CAP_PERFMON = 38


@dataclass(frozen=True)
class Place:
    """The directory for files: its file system, and whether we may write there."""

    kind: str
    path: str
    there: bool
    writable: bool


class Tmpdir(HostCheck[Place]):
    """On a disk or a network, opening a file is mostly that file system's work."""

    name = "tmpdir"
    FAST = ("tmpfs", "ramfs")

    def read(self, root: Root, needs: Needs) -> Place | None:
        mounts = root.read("/proc/self/mounts")
        if mounts is None:
            return None
        where = root.path(str(needs.tmpdir))
        inside = os.path.realpath(where)
        prefix = os.path.realpath(root.prefix).rstrip("/")
        inside = inside.removeprefix(prefix) or "/"
        kind, longest = "", -1
        for line in mounts.splitlines():
            _, point, name = line.split()[:3]
            point = point.replace("\\040", " ")
            below = inside == point or inside.startswith(point.rstrip("/") + "/")
            # Of two mounts on one point, the later one is on top.
            if below and len(point) >= longest:
                kind, longest = name, len(point)
        return Place(
            kind, str(needs.tmpdir), os.path.isdir(where), os.access(where, os.W_OK)
        )

    def judge(self, value: Place, needs: Needs) -> str:
        if not (value.there and value.writable):
            return FATAL
        return OK if value.kind in self.FAST else WARN

    def show(self, value: Place) -> str:
        if not value.there:
            return f"{value.path}: no such directory"
        if not value.writable:
            return f"{value.path}: not writable"
        return f"{value.path} ({value.kind})"

    def remedy(self, value: Place, needs: Needs) -> str:
        return "TMPDIR=/dev/shm in the environment"


@dataclass(frozen=True)
class Nofile:
    """RLIMIT_NOFILE; -1 is unlimited."""

    soft: int
    hard: int
    may_raise: bool  # this process has CAP_SYS_RESOURCE
    root: bool


class NofileLimit(HostCheck[Nofile]):
    """The driver raises the soft limit to the hard one by itself."""

    name = "nofile"

    def read(self, root: Root, needs: Needs) -> Nofile | None:
        limits = facts.nofile(root)
        if limits is None:
            return None
        uid = facts.fields(root.read("/proc/self/status")).get("Uid", "-1").split()
        may = facts.capable(root, CAP_SYS_RESOURCE)
        return Nofile(*limits, may, uid[0] == "0")

    def judge(self, value: Nofile, needs: Needs) -> str:
        return FATAL if 0 <= value.hard < needs.nofile else OK

    def show(self, value: Nofile) -> str:
        soft, hard = (str(n) if n >= 0 else "none" for n in (value.soft, value.hard))
        return f"soft {soft}, hard {hard}"

    def remedy(self, value: Nofile, needs: Needs) -> str:
        if value.root and not value.may_raise:
            return (
                "root may not raise it here (no CAP_SYS_RESOURCE):"
                " hold less, or --backend model"
            )
        sudo = "" if value.may_raise else "sudo "
        return f"{sudo}prlimit --pid $$ --nofile={needs.nofile}:{needs.nofile}"


class NrOpen(HostCheck[int]):
    """The most that RLIMIT_NOFILE can be raised to."""

    name = "nr_open"

    def read(self, root: Root, needs: Needs) -> int | None:
        return root.number("/proc/sys/fs/nr_open")

    def judge(self, value: int, needs: Needs) -> str:
        return FATAL if value < needs.nofile else OK

    def remedy(self, value: int, needs: Needs) -> str:
        return f"sudo sysctl fs.nr_open={-(-needs.nofile // 64) * 64}"


class FileMax(HostCheck[tuple[int, int]]):
    """Open files of the whole system: the limit, and those in use."""

    name = "file-max"

    def read(self, root: Root, needs: Needs) -> tuple[int, int] | None:
        most = root.number("/proc/sys/fs/file-max")
        used = root.number("/proc/sys/fs/file-nr")
        return None if most is None else (most, used or 0)

    def judge(self, value: tuple[int, int], needs: Needs) -> str:
        most, used = value
        return FATAL if most - used < needs.files else OK

    def show(self, value: tuple[int, int]) -> str:
        most, used = value
        return f"{most} ({used} in use)" if most < 2**62 else "no limit"

    def remedy(self, value: tuple[int, int], needs: Needs) -> str:
        return f"sudo sysctl fs.file-max={value[1] + 2 * needs.files}"


class Ports(HostCheck[list[int]]):
    """Ports for outgoing connections; each waits 60 s before it is free again."""

    name = "ports"

    def read(self, root: Root, needs: Needs) -> list[int] | None:
        return facts.ports(root)

    def judge(self, value: list[int], needs: Needs) -> str:
        return FATAL if value[1] - value[0] + 1 < needs.ports else OK

    def show(self, value: list[int]) -> str:
        return f"{value[0]}-{value[1]}"

    def remedy(self, value: list[int], needs: Needs) -> str:
        return 'sudo sysctl net.ipv4.ip_local_port_range="1024 65535"'


class Perf(HostCheck[tuple[int, bool]]):
    """From 2 on, an unprivileged process sees no counts of the kernel's work."""

    name = "perf_event_paranoid"

    def read(self, root: Root, needs: Needs) -> tuple[int, bool] | None:
        level = root.number("/proc/sys/kernel/perf_event_paranoid")
        if level is None:
            return None
        able = any(facts.capable(root, n) for n in (CAP_PERFMON, CAP_SYS_ADMIN))
        return level, able

    def judge(self, value: tuple[int, bool], needs: Needs) -> str:
        level, able = value
        return OK if able or level < 2 else WARN

    def show(self, value: tuple[int, bool]) -> str:
        level, able = value
        return f"{level} (not for us: privileged)" if able else str(level)

    def remedy(self, value: tuple[int, bool], needs: Needs) -> str:
        return "sudo sysctl kernel.perf_event_paranoid=1"


class Pmu(HostCheck[list[str]]):
    """Counters of instructions and cycles; without them those are null."""

    name = "hardware counters"

    def read(self, root: Root, needs: Needs) -> list[str] | None:
        where = "/sys/bus/event_source/devices"
        return [n.rsplit("/", 1)[1] for n in root.glob(f"{where}/*")] or None

    def found(self, value: list[str]) -> list[str]:
        """cpu; cpu_core and cpu_atom on hybrids; armv8_... and the like on ARM."""
        return [n for n in value if n in ("cpu", "cpu_core", "cpu_atom") or "arm" in n]

    def judge(self, value: list[str], needs: Needs) -> str:
        return OK if self.found(value) else WARN

    def show(self, value: list[str]) -> str:
        return ", ".join(self.found(value)) or "none"

    def remedy(self, value: list[str], needs: Needs) -> str:
        return "let the hypervisor pass them on; or ./run.py kernel count"


CHECKS: list[AnyCheck] = [
    Tmpdir(),
    NofileLimit(),
    NrOpen(),
    FileMax(),
    Ports(),
    Perf(),
    Pmu(),
]
