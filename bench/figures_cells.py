# SPDX-License-Identifier: GPL-2.0-only
"""From the runs of cells to the numbers of the map, of tasks and of windows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bench import charts, plot, stats
from bench.judge import CLONE, CellResult, ratio_runs
from bench.plan import Cell
from bench.plot import Mark, Series

MOST_WINDOWS = 1500  # of a variant in a figure; beyond, whole runs are left out
MOST_RUNS_NAMED = 10

Runs = Mapping[Cell, list[dict[str, Any]]]


def whole(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that have numbers."""
    return [r for r in runs if not r["error"] and r["windows"]]


def in_map(result: CellResult) -> list[str]:
    """The variants that may win: what breaks the rules is left out."""
    return [
        v for v in result.variants if CLONE not in v and v not in result.nonconforming
    ]


def map_cell(result: CellResult, runs: list[dict[str, Any]]) -> charts.Cell:
    """Who is fastest in a cell, and by what ratio to the next; sure if a verdict is.

    Fastest by the ratio to the baseline, which is within blocks.
    """
    names = in_map(result)
    ratios = {
        name: judged.ratio.estimate if judged.ratio else 1.0
        for name, judged in result.variants.items()
        if name in names
    }
    first, second = sorted(ratios, key=lambda name: -ratios[name])[:2]
    good = whole(runs)
    ratio = stats.ratio_interval(ratio_runs(good, first, second))
    word = stats.verdict(ratio, result.threshold, len(good)).word
    by = max(ratio.estimate, 1.0)
    return charts.Cell(
        result.cell.tasks,
        result.cell.held,
        first,
        by,
        word == "faster",
        bool(result.disturbed),
    )


def task_rates(runs: list[dict[str, Any]], variant: str) -> list[plot.Point]:
    """The rate of each task with its interval over runs, from the least busy on."""
    by_run = []
    for run in whole(runs):
        mine = [w for w in run["windows"] if w["variant"] == variant]
        seconds = sum(w["ns"] for w in mine) / 1e9
        by_run.append([sum(ops) / seconds for ops in zip(*(w["ops"] for w in mine))])
    found = []
    for rates in zip(*by_run):
        if min(rates) > 0:
            one = stats.t_interval(rates)
            ends = (one.low, one.high) if one.known else (None, None)
            found.append((one.estimate, *ends))
        else:
            found.append((statistics.mean(rates), None, None))
    found.sort(key=lambda one: one[0])
    return [(rank, *one) for rank, one in enumerate(found, 1)]


def unsteady(result: CellResult, runs: list[dict[str, Any]]) -> float:
    """The widest spread of a variant's windows about the levels of their runs."""
    most = 0.0
    for variant in result.variants:
        logs: list[float] = []
        for run in whole(runs):
            rates = [w["rate"] for w in run["windows"] if w["variant"] == variant]
            if min(rates, default=0) > 0:
                own = np.log(rates)
                logs.extend(own - own.mean())
        if logs:
            most = max(most, math.sqrt(float(np.mean(np.square(logs)))))
    return most


def thinned(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Not more runs than can be seen, evenly taken."""
    each = max(len(r["windows"]) / len(r["variants"]) for r in runs)
    return runs[:: math.ceil(len(runs) * each / MOST_WINDOWS)]


def windows(
    runs: list[dict[str, Any]],
) -> tuple[list[Series], list[Mark], list[Series]]:
    """Rates over the time measured: a series a variant, where runs begin, and the
    windows during which something else ran on a task's PU."""
    points: dict[str, list[plot.Point]] = {v: [] for v in runs[0]["variants"]}
    odd: dict[str, list[plot.Point]] = {}
    begins = []
    at = 0.0
    for run in runs:
        begins.append(Mark(at, ""))
        for window in run["windows"]:
            seconds = window["ns"] / 1e9
            name = window["variant"]
            point = (at + seconds / 2, window["rate"], None, None)
            points.setdefault(name, []).append(point)
            if window["switches"]:
                odd.setdefault(name, []).append(point)
            at += seconds
    step = math.ceil(len(runs) / MOST_RUNS_NAMED)
    named = [
        Mark(m.x, f"run {r['run']}" if i % step == 0 else "")
        for i, (m, r) in enumerate(zip(begins, runs))
    ]
    shown = [Series(v, made) for v, made in points.items() if CLONE not in v]
    return shown, named, [Series(v, made) for v, made in odd.items() if CLONE not in v]
