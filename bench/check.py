# SPDX-License-Identifier: GPL-2.0-only
"""The form of a host check: read, judge, remedy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from bench.root import Root

OK = "ok"
WARN = "warn"
FATAL = "fatal"  # the plan cannot be carried out so
UNKNOWN = "unknown"

T = TypeVar("T")


@dataclass(frozen=True)
class Needs:
    """What a plan asks of the host; the defaults ask nothing."""

    tasks: int = 0  # most tasks of any cell, each on a PU of its own
    nofile: int = 0  # highest descriptor of one process, plus one
    files: int = 0  # open files, all processes together
    ports: int = 0  # ports in use at a time
    tmpdir: Path = Path("/tmp")


@dataclass(frozen=True)
class Check:
    """What was found. REMEDY is there when the state is warn or fatal."""

    name: str
    state: str
    value: str | None
    remedy: str | None


@dataclass(frozen=True)
class Setting:
    """A file of /proc or /sys and what to write into it."""

    path: str
    wanted: str


class HostCheck(Generic[T]):
    """One property of the host. A check overrides read, judge and remedy."""

    name: ClassVar[str]

    def read(self, root: Root, needs: Needs) -> T | None:
        """The value; None where the host does not show it."""
        raise NotImplementedError

    def judge(self, value: T, needs: Needs) -> str:
        """OK, WARN or FATAL."""
        raise NotImplementedError

    def show(self, value: T) -> str:
        return str(value)

    def remedy(self, value: T, needs: Needs) -> str:
        """A command, or what to boot or give instead."""
        raise NotImplementedError

    def settings(self, root: Root) -> list[Setting]:
        """What --fix may write when the state is WARN: reversible things only."""
        return []

    def run(self, root: Root, needs: Needs) -> Check:
        try:
            value = self.read(root, needs)
        except (OSError, ValueError, LookupError):
            value = None  # hidden in part, or not of the form we know
        if value is None:
            return Check(self.name, UNKNOWN, None, None)
        state = self.judge(value, needs)
        bad = state in (WARN, FATAL)
        remedy = self.remedy(value, needs) if bad else None
        return Check(self.name, state, self.show(value), remedy)


AnyCheck = HostCheck[Any]


def tee(value: str, path: str) -> str:
    """The command that writes VALUE into a file of the kernel's."""
    return f"echo {value} | sudo tee {path}"
