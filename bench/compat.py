# SPDX-License-Identifier: GPL-2.0-only
"""--compat: results in the lines that scripts for other tools parse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.judge import by_cell
from bench.plan import Cell

FORMATS = ("will-it-scale",)


def task_rates(windows: list[dict[str, Any]]) -> list[int]:
    """Operations a second of each task, over all windows of a run."""
    seconds = sum(w["ns"] for w in windows) / 1e9
    return [round(sum(ops) / seconds) for ops in zip(*(w["ops"] for w in windows))]


def block(title: str, runs: list[list[dict[str, Any]]]) -> list[str]:
    """What one call of such a program prints: a line a run where it has one a second.

    Nothing is said between warm-up and measurement: ours is in no number.
    """
    lines = [f"testcase:{title}", "warmup", "measurement"]
    totals = []
    for windows in runs:
        rates = task_rates(windows)
        totals.append(sum(rates))
        lines.append(f"min:{min(rates)} max:{max(rates)} total:{totals[-1]}")
    return [*lines, f"average:{sum(totals) // len(totals)}"]


def title_of(cell: Cell, variant: str, setup: dict[str, Any], alone: bool) -> str:
    """The case's own description; of one among others, the cell and variant too.

    Scripts split that line at its colon: there is no second one.
    """
    described = str(setup.get("testcase", cell.name()))
    if alone and "testcase" in setup:
        return described
    return f"{described}, {variant}, {cell}".replace(":", "=")


def will_it_scale(cells: list[Cell], records: Iterable[dict[str, Any]]) -> str:
    """A block for each variant of each cell, in the plan's order."""
    runs = by_cell(records)
    found = []
    for cell in cells:
        good = [r for r in runs.get(cell, []) if not r["error"]]
        found += [(cell, good, v) for v in (good[0]["variants"] if good else [])]
    lines: list[str] = []
    for cell, good, variant in found:
        windows = [[w for w in r["windows"] if w["variant"] == variant] for r in good]
        title = title_of(cell, variant, good[0]["setup"], len(found) == 1)
        lines += block(title, windows)
    return "".join(line + "\n" for line in lines)
