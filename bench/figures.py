# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a results folder: which there are, and what is in each."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import plot
from bench.plan import Cell
from bench.stats import Interval
from bench.summary import CLONE, CellResult, groups


def file_name(group: Cell, kind: str) -> str:
    """A name that says what is in it, without signs that a shell minds."""
    words = [kind, group.name(), group.backend, group.hold, group.mode, group.place]
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(words)).strip("-")


def point(tasks: int, interval: Interval) -> plot.Point:
    """A point with its interval, where there is one."""
    low = interval.low if interval.known else None
    high = interval.high if interval.known else None
    return (float(tasks), interval.estimate, low, high)


def series(cells: list[CellResult], kind: str) -> list[plot.Series]:
    """A line a variant: rates, or ratios to the baseline."""
    names = dict.fromkeys(v for r in cells for v in r.variants if CLONE not in v)
    found = []
    for name in names:
        points = []
        for result in cells:
            judged = result.variants.get(name)
            interval = judged and (judged.ratio if kind == "ratio" else judged.rate)
            if interval:
                points.append(point(result.cell.tasks, interval))
        if points:
            found.append(plot.Series(name, points))
    return found


def marks(topology: dict[str, Any], cells: list[CellResult]) -> list[plot.Mark]:
    """Where a package, a node, the cores are full, within what was measured.

    Of what fills up at one number of tasks, the largest is named.
    """
    most = max(r.cell.tasks for r in cells)
    return [
        plot.Mark(float(s["tasks"]), str(s["what"]).split(", ")[-1])
        for s in topology["sizes"]
        if 1 < s["tasks"] <= most
    ]


def draw_all(
    folder: Path, results: list[CellResult], topology: dict[str, Any], host: str
) -> list[Path]:
    """Every figure into folder/figures; two at a time, since gnuplot is slow."""
    jobs = []
    for group, cells in groups(results).items():
        cells = [c for c in cells if c.variants]
        for kind in ("rate", "ratio"):
            lines = series(cells, kind)
            if not lines:
                continue
            titles = plot.Titles(
                f"{group.name()}, {group.backend}, hold {group.hold}, "
                f"{group.mode}, {group.place}",
                host,
                cells[0].baseline,
            )
            base = folder / "figures" / file_name(group, kind)
            jobs.append(
                (f"{kind}-vs-tasks", base, lines, titles, marks(topology, cells))
            )
    if jobs:
        (folder / "figures").mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        drawn = pool.map(lambda job: plot.draw(*job), jobs)
        return [path for paths in drawn for path in paths]
