# SPDX-License-Identifier: GPL-2.0-only
"""Users' own files in a sweep: each has a driver of its own, built by the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import drive
from bench.plan import Cell, Plan
from bench.problem import USAGE, Problem


def build(plan: Plan, listing: dict[str, Any]) -> dict[str, Path]:
    """Build a driver for each file of the plan: the drivers, by workload.

    What they have stands in @listing afterwards, in place of what is built in under
    the same name. Raises Problem, as the driver does, for a file that is not there or
    does not compile, and where one name would be two workloads.
    """
    drivers: dict[str, Path] = {}
    files = [("workload-file", path) for path in plan.workload_file]
    files += [("testcase", path) for path in plan.testcase]
    for flag, path in files:
        found = drive.ask("list", f"--{flag}", path)
        name = found["workloads"][0]["name"]
        if name in drivers or name in plan.workload:
            raise Problem(
                USAGE,
                f"--{flag} {path}: another workload of this sweep is called {name}: "
                "rename the file, or sweep them apart",
            )
        drivers[name] = Path(found["driver"])
        others = [w for w in listing["workloads"] if w["name"] != name]
        listing["workloads"] = others + found["workloads"]
    return drivers


def check_same(cells: list[Cell], records: list[dict[str, Any]], folder: Path) -> None:
    """To resume a sweep its files have to be what they were: raises Problem(USAGE)."""
    now = {c.workload: c.source for c in cells}
    for record in records:
        cell = Cell.from_dict(record["cell"])
        if now.get(cell.workload, cell.source) != cell.source:
            raise Problem(
                USAGE,
                f"--resume {folder}: {cell.workload}.c has changed since; sweep into "
                "a new folder",
            )
