# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a results folder: which there are, and what is in each."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import plot
from bench.looks import safe_name
from bench.plan import Cell
from bench.stats import Interval
from bench.summary import CLONE, CellResult, groups


def file_name(group: Cell, kind: str) -> str:
    """A name that says what is in it."""
    words = [kind, group.name(), group.backend, group.hold, group.mode, group.place]
    return safe_name(*words)


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
            found.append(plot.Series(name, points, conformance(cells, name)))
    return found


def conformance(cells: list[CellResult], name: str) -> str:
    """Nothing, or that and why a variant does not conform."""
    return next((r.nonconforming[name] for r in cells if name in r.nonconforming), "")


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


Job = tuple[str, Path, list[plot.Series], plot.Titles, list[plot.Mark]]


def against_tasks(
    folder: Path, results: list[CellResult], topology: dict[str, Any], host: str
) -> list[Job]:
    """Rates and ratios against tasks: a figure for each workload and hold."""
    jobs: list[Job] = []
    for group, cells in groups(results).items():
        cells = [c for c in cells if c.variants]
        for kind in ("rate", "ratio"):
            lines = series(cells, kind)
            if not lines:
                continue
            title = (
                f"{group.name()}, {group.backend}, hold {group.hold}, "
                f"{group.mode}, {group.place}"
            )
            titles = plot.Titles(title, host, cells[0].baseline)
            base = folder / file_name(group, kind)
            places = marks(topology, cells)
            jobs.append((f"{kind}-vs-tasks", base, lines, titles, places))
    return jobs


def against_hold(folder: Path, results: list[CellResult], host: str) -> list[Job]:
    """Ratios against what is held, where at least three sizes were measured."""
    groups_: dict[Cell, list[tuple[int, CellResult]]] = {}
    for r in results:
        match = re.fullmatch(r"none|low:(\d+)", r.cell.hold)
        if match and r.variants:
            key = replace(r.cell, hold="", table_size=0)
            groups_.setdefault(key, []).append((int(match.group(1) or 0), r))
    jobs: list[Job] = []
    for key, sized in groups_.items():
        sized.sort(key=lambda pair: pair[0])
        names = dict.fromkeys(v for _, r in sized for v in r.variants if CLONE not in v)
        lines = []
        for name in names:
            judged = [
                (size, r.variants[name]) for size, r in sized if name in r.variants
            ]
            points = [point(size, j.ratio) for size, j in judged if j.ratio]
            if points:
                note = conformance([r for _, r in sized], name)
                lines.append(plot.Series(name, points, note))
        if len(sized) < 3 or not lines:
            continue
        unit = key.mode if key.tasks > 1 else "thread"
        title = f"{key.name()}, {key.backend}, {key.tasks} {unit}, {key.place}"
        titles = plot.Titles(title, host, sized[0][1].baseline)
        words = ("ratio-vs-hold", key.name(), key.backend, key.mode, str(key.tasks))
        base = folder / safe_name(*words)
        jobs.append(("ratio-vs-hold", base, lines, titles, []))
    return jobs


def draw_all(
    folder: Path, results: list[CellResult], topology: dict[str, Any], host: str
) -> list[Path]:
    """Every figure into folder/figures; two at a time, since gnuplot is slow."""
    figures = folder / "figures"
    jobs = against_tasks(figures, results, topology, host)
    jobs += against_hold(figures, results, host)
    if jobs:
        figures.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        drawn = pool.map(lambda job: plot.draw(*job), jobs)
        return [path for paths in drawn for path in paths]
