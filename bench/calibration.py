# SPDX-License-Identifier: GPL-2.0-only
"""What this host was found to resolve, kept in the user's data folder.

A file for each host name, kernel release, backend, mode and number of tasks. The
workload is not part of it: calibration is made on dup-close, the shortest operation
there is, and is taken for all. One task is one task, whatever the mode.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench import judge, stats
from bench.compare_rows import Folder
from bench.looks import safe_name
from bench.plan import Cell
from bench.problem import Problem
from bench.store import write_whole
from bench.strict import kept

SPOKEN = 30.0  # seconds: what tables say of a host, it resolves in so many


@dataclass(frozen=True)
class Calibration:
    """The baseline against its clone, as measured; times are seconds."""

    hostname: str
    release: str
    backend: str
    mode: str
    tasks: int
    time: float  # when, unix
    runs: int
    run_seconds: float  # what a run costs
    bias: float  # mean of the logs of the runs' ratios
    spread: float  # their standard deviation
    resolves: tuple[tuple[float, float], ...]  # (seconds, the smallest effect found)
    disturbed: int = 0  # of the runs

    def threshold(self, runs: int) -> float:
        """The effect that A/A stays below, 95 times in 100, at so many runs."""
        return stats.aa_bound(self.bias, self.spread, runs)

    def sentence(self) -> str:
        """ "This host resolves 0.7% in 30 s ..." """
        if not self.resolves:
            return ""
        at = min(self.resolves, key=lambda pair: abs(pair[0] - SPOKEN))
        unit = self.mode if self.tasks > 1 else "thread"
        day = time.strftime("%Y-%m-%d", time.localtime(self.time))
        if 2 * self.disturbed > self.runs:
            day += " while disturbed"
        return (
            f"This host resolves {100 * at[1]:.2g}% in {at[0]:.0f} s a cell "
            f"({self.backend}, {self.tasks} {unit}; calibrated {day})."
        )


def folder() -> Path:
    """$XDG_DATA_HOME/fdscale, or ~/.local/share/fdscale."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # The specification: a path that is not absolute is to be ignored.
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return home / "fdscale"


def path_of(hostname: str, release: str, backend: str, mode: str, tasks: int) -> Path:
    """The file of one calibration."""
    mode = mode if tasks > 1 else "one"
    name = safe_name(hostname, release, backend, mode, str(tasks))
    return folder() / f"{name}.json"


def keep(found: Calibration) -> str:
    """Where it was written; one line on stderr and "" where it can't be."""
    key = (found.hostname, found.release, found.backend, found.mode, found.tasks)
    try:
        path = path_of(*key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"schema": 1} | asdict(found), indent=1) + "\n")
        return str(path)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
    except (Problem, RuntimeError) as problem:  # RuntimeError: there is no home
        why = str(problem)
    print(f"run.py: calibration not kept: {why}", file=sys.stderr)
    return ""


def recall(
    hostname: str, release: str, backend: str, mode: str, tasks: int
) -> Calibration | None:
    """What was kept; a file that is damaged is named on stderr and passed over."""
    try:
        path = path_of(hostname, release, backend, mode, tasks)
        data = kept(path, "calibration")
        pairs = tuple((float(s), float(e)) for s, e in data.pop("resolves"))
        del data["schema"]
        found = Calibration(**data, resolves=pairs)
    except (OSError, RuntimeError):
        return None
    except ValueError:
        print(f"run.py: {path}: damaged; calibrate again", file=sys.stderr)
        return None
    return found if (found.hostname, found.release) == (hostname, release) else None


class Calibrations:
    """All that is known of the host that host.json describes; read as needed."""

    def __init__(self, host: Mapping[str, Any]) -> None:
        self.hostname = str(host.get("hostname"))
        self.release = str((host.get("kernel") or {}).get("release"))
        self.read: dict[tuple[str, str, int], Calibration | None] = {}

    def of(self, cell: Cell) -> Calibration | None:
        """The cell's backend, mode and number of tasks."""
        key = (cell.backend, cell.mode if cell.tasks > 1 else "threads", cell.tasks)
        if key not in self.read:
            self.read[key] = recall(self.hostname, self.release, *key)
        return self.read[key]

    def threshold(self, cell: Cell, runs: int) -> float | None:
        """judge.Stored."""
        found = self.of(cell)
        return found.threshold(runs) if found else None

    def resolves(self, cells: Iterable[Cell]) -> str:
        """A sentence for each calibration that these cells have."""
        known = (self.of(cell) for cell in cells)
        return " ".join(dict.fromkeys(c.sentence() for c in known if c))


def threshold_in(
    folders: Sequence[Folder], baseline: str | None
) -> Callable[[Mapping[str, Any], int], float | None]:
    """compare's threshold. In one folder: what its clones say, else as calibrated.

    Between folders it is None: calibration is of ratios within a block, and what a
    reboot or an hour does to a rate is not in it.
    """

    @cache
    def within() -> dict[Cell, float | None]:
        known = Calibrations(folders[0].host)
        runs = judge.by_cell(map(dict, folders[0].rows))
        return {
            cell: judge.threshold_of(cell, some, baseline or "", known.threshold)
            for cell, some in runs.items()
        }

    def threshold(cell: Mapping[str, Any], runs: int) -> float | None:
        if len(folders) > 1:
            return None
        return within().get(Cell.from_dict(dict(cell)))

    return threshold
