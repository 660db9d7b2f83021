# SPDX-License-Identifier: GPL-2.0-only
"""From runs and counts to findings: one number of ours beside what was claimed."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from bench import stats
from bench.claims import Finding, judge_direction, judge_size
from bench.judge import ratio_runs, role_rate
from bench.kernel_build import NEWEST
from bench.kernel_count import Count
from bench.plan import Cell
from bench.stats import Interval


def ratio_text(ratio: Interval) -> str:
    """ "+1.9% [+1.2%, +2.6%]", or "x33.8 [28.7, 39.8]" where it is a multiple."""
    if 0.4 < ratio.estimate < 2.5:
        return stats.describe(ratio)
    if not ratio.known:
        return f"x{ratio.estimate:.3g}"
    return f"x{ratio.estimate:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]"


def told(judged: stats.Verdict, runs: int, threshold: float | None) -> str:
    """A verdict in one line, with what would settle it."""
    text = f"{judged.word}: {ratio_text(judged.ratio)}, {runs} run{'s' * (runs != 1)}"
    if threshold is None:
        text += ", not calibrated here"
    return text + (f"; needs {judged.need}" if judged.need else "")


def matches(cell: Cell, words: dict[str, Any], most: int) -> bool:
    """Whether a cell has all of these words; options count as words."""
    has = cell.as_dict() | dict(cell.options)
    return all(
        has.get(k.replace("-", "_"), has.get(k)) == (most if v == "most" else v)
        for k, v in words.items()
    )


def other_cell(cell: Cell, words: dict[str, Any]) -> Cell:
    """The cell that differs from this one in some words."""
    own = {k: v for k, v in words.items() if k in asdict(cell)}
    options = tuple((k, str(words.get(k, v))) for k, v in cell.options)
    return replace(cell, options=options, **own)


Runs = dict[Cell, list[dict[str, Any]]]


def rate_of(run: dict[str, Any], variant: str, role: str) -> float:
    """A run's rate, or that of the tasks of a role."""
    if role:
        return role_rate(run, variant, role)
    return stats.run_rate(
        [w["rate"] for w in run["windows"] if w["variant"] == variant]
    )


def pairs_of(cells: Runs, cell: Cell, find: dict[str, Any]) -> list[float]:
    """A ratio a run: within its blocks, or to the run of the same round elsewhere."""
    runs = cells[cell]
    role = find.get("role", "")
    ask = find.get("ask", runs[0]["variants"][0])
    if "over" in find:
        there = {r["run"]: r for r in cells.get(other_cell(cell, find["over"]), [])}
        both = [(r, there[r["run"]]) for r in runs if r["run"] in there]
        rates = [(rate_of(a, ask, role), rate_of(b, ask, role)) for a, b in both]
    elif role:
        rates = [
            (rate_of(r, ask, role), rate_of(r, find["against"], role)) for r in runs
        ]
    else:
        blocks = ratio_runs(runs, ask, find["against"])
        return [stats.run_ratio(b) for b in blocks]
    return [a / b for a, b in rates if a > 0 and b > 0]


def measured(
    cells: Runs, cell: Cell, find: dict[str, Any], by: str, threshold: float | None
) -> Finding:
    """A find in one cell."""
    made = base_finding(find, str(cell), by)
    ratios = pairs_of(cells, cell, find)
    if not ratios:
        return replace(made, lack="failed: no run of both", fault=True)
    ratio = stats.t_interval(ratios)
    seconds = sum(r["seconds"] for r in cells[cell]) / len(cells[cell])
    judged = stats.verdict(ratio, threshold, ratio.n, run_seconds=seconds)
    claimed = find.get("size")
    return replace(
        made,
        ratio=ratio,
        word=judged.word,
        text=told(judged, ratio.n, threshold),
        direction=judge_direction(judged.word, find.get("expect", ""), claimed),
        size=judge_size(ratio, claimed),
    )


def base_finding(find: dict[str, Any], where: str, by: str) -> Finding:
    """A finding without its number."""
    settles, headline = find.get("settles", True), find.get("headline", False)
    return Finding(
        *(find["what"], where, by, settles, headline), claimed=find.get("size")
    )


def shorter(ratio: float, a: float, b: float) -> tuple[str, str]:
    """The word for two counts, and the sentence; they are exact."""
    word = "no difference beyond 0.0%"
    if a != b:
        word = "faster" if ratio > 1 else "slower"
    if a == b:
        return word, f"the same: {a:g} instructions"
    said = {"faster": "shorter", "slower": "longer"}[word]
    return word, f"{said}: {a:g} against {b:g} instructions, {100 * (a / b - 1):+.1f}%"


def counted_finding(
    find: dict[str, Any], row: str, known: dict[tuple[str, str], Count]
) -> Finding:
    """A find in one row: a part of the path, or one variant over another."""
    made = base_finding(find, f"{row}, Linux {NEWEST}", "instructions")
    mine = known[row, find["ask"]]
    if "share" in find:
        share = mine.part(find["share"]) / mine.kernel
        under = share < find["most"]
        word = "reproduced" if under else "contradicted"
        text = f"{100 * share:.1f}% of {mine.kernel:g} instructions"
        return replace(
            made, ratio=Interval(share, share, share, 1), text=text, direction=word
        )
    other = known[row, find["against"]]
    a, b = mine.kernel, other.kernel
    ratio = Interval(b / a, b / a, b / a, 1)
    word, text = shorter(b / a, a, b)
    claimed = find.get("size")
    return replace(
        *(made,),
        ratio=ratio,
        word=word,
        text=text,
        direction=judge_direction(word, find.get("expect", ""), claimed),
        size=judge_size(ratio, claimed),
    )
