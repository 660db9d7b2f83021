# SPDX-License-Identifier: GPL-2.0-only
"""From runs to what is judged of them: rates, ratios, verdicts, fairness, by cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench import counters, stats
from bench.counters import PerOp
from bench.plan import Cell
from bench.profile import Profile, profiles_of
from bench.stats import Fairness, Interval, Verdict

CLONE = "#clone"  # the baseline compiled a second time: A/A

# What A/A stays below here, of a cell at a number of runs, as calibrated; None: not.
Stored = Callable[[Cell, int], float | None]


@dataclass(slots=True)
class Judged:
    """What one variant did in one cell."""

    rate: Interval
    ratio: Interval | None  # None for the baseline itself
    verdict: Verdict | None
    fairness: Fairness  # of the tasks' shares: 1 is an equal one
    windows: int
    disturbed: int  # windows with involuntary context switches
    skewed: int  # windows whose tasks did not start together
    redone: int  # windows that the driver did again
    bimodal: bool
    outliers: list[str]  # of each run: "", or "low", "far high", ...
    roles: dict[str, Interval] = field(default_factory=dict)  # rates of each
    per_op: dict[str, PerOp] = field(default_factory=dict)  # by perf event


@dataclass
class CellResult:
    """One cell, all its variants."""

    cell: Cell
    baseline: str
    runs: int
    seconds: float
    fdsize: int
    threshold: float | None  # the effect that A/A stays below; None: not measured
    variants: dict[str, Judged] = field(default_factory=dict)
    nonconforming: dict[str, str] = field(default_factory=dict)  # variant: why
    failures: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)  # why, one for each such run
    profiles: dict[str, Profile] = field(default_factory=dict)  # by variant
    not_profiled: str = ""  # why, where it was asked for
    table: str = ""  # --table-node: why it is not known to be there


def by_cell(records: Iterable[dict[str, Any]]) -> dict[Cell, list[dict[str, Any]]]:
    """The runs of each cell, in the order in which they were made."""
    cells: dict[Cell, list[dict[str, Any]]] = {}
    for record in records:
        if record["type"] == "run":
            cells.setdefault(Cell.from_dict(record["cell"]), []).append(record)
    return cells


def task_totals(runs: list[dict[str, Any]], variant: str) -> list[float]:
    """Operations of each task over all windows of a variant."""
    mine = (w["ops"] for r in runs for w in r["windows"] if w["variant"] == variant)
    return list(map(float, map(sum, zip(*mine))))


def shares(totals: list[float], roles: list[str] | None = None) -> list[float]:
    """Each task's part of the whole, where 1 is an equal one.

    Tasks that do different things are compared with those that do the same.
    """
    names = roles or [""] * len(totals)
    peers = {n: [t for t, m in zip(totals, names) if m == n] for n in set(names)}
    means = {n: sum(ts) / len(ts) or 1.0 for n, ts in peers.items()}
    return [t / means[n] for t, n in zip(totals, names)]


def roles_of(run: dict[str, Any]) -> list[str]:
    """What each task does, where they differ; else nothing."""
    return list(run["setup"].get("roles", []))


def role_rate(run: dict[str, Any], variant: str, role: str) -> float:
    """Operations a second of the tasks of a role in a run: a mean over its windows,
    since in a short one some of few writers may have done nothing."""
    mine = [i for i, name in enumerate(roles_of(run)) if name == role]
    windows = [w for w in run["windows"] if w["variant"] == variant]
    done: int = sum(w["ops"][i] for w in windows for i in mine)
    ns: int = sum(w["ns"] for w in windows)
    return done * 1e9 / ns


def role_rates(good: list[dict[str, Any]], variant: str) -> dict[str, Interval]:
    """The rate of each role, where each run has one."""
    found = {}
    for role in dict.fromkeys(roles_of(good[0])):
        rates = [role_rate(run, variant, role) for run in good]
        if all(rates):
            found[role] = stats.t_interval(rates)
    return found


def ratio_runs(
    good: list[dict[str, Any]], variant: str, baseline: str
) -> list[list[tuple[float, float]]]:
    """For each run, the rates of the two in each block."""
    return [stats.block_pairs(r["windows"], variant, baseline) for r in good]


def aa_threshold(good: list[dict[str, Any]], baseline: str) -> float | None:
    """The effect that the baseline's clone stays below here, 95 times in 100.

    None where no clone was measured, or too few runs to tell.
    """
    clone = baseline + CLONE
    if len(good) < 2 or clone not in good[0]["variants"]:
        return None
    pairs = ratio_runs(good, clone, baseline)
    return stats.aa_threshold([stats.run_ratio(p) for p in pairs], len(good))


def two_modes(runs: list[list[float]]) -> bool:
    """Whether the windows within runs fall into two heaps, whatever the runs do."""
    levels = [stats.run_rate(run) for run in runs]
    within = [rate / level for run, level in zip(runs, levels) for rate in run]
    return stats.bimodal(within)


def usable(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs that a number may come of."""
    return [r for r in runs if not r["error"] and r["windows"]]


def baseline_of(good: list[dict[str, Any]], asked: str) -> str:
    """The one that was asked for, where it was measured; else the first; or ""."""
    variants: list[str] = good[0]["variants"] if good else []
    return asked if asked in variants else variants[0] if variants else ""


def threshold_of(
    cell: Cell, runs: list[dict[str, Any]], baseline: str, stored: Stored | None
) -> float | None:
    """What A/A stays below: by the clone in the blocks, else as stored."""
    good = usable(runs)
    threshold = aa_threshold(good, baseline_of(good, baseline))
    if threshold is None and stored and good and len(good[0]["variants"]) > 1:
        threshold = stored(cell, len(good))
    return threshold


def judge_variant(
    good: list[dict[str, Any]], variant: str, baseline: str, threshold: float | None
) -> Judged:
    """One variant of a cell whose runs are all complete."""
    windows = [w for r in good for w in r["windows"] if w["variant"] == variant]
    rates = [[w["rate"] for w in r["windows"] if w["variant"] == variant] for r in good]
    ratio = verdict = None
    logs = [math.log(stats.run_rate(run)) for run in rates]
    if variant != baseline:
        pairs = ratio_runs(good, variant, baseline)
        logs = [math.log(stats.run_ratio(run)) for run in pairs]
        ratio = stats.ratio_interval(pairs)
        seconds = sum(r["seconds"] for r in good) / len(good)
        verdict = stats.verdict(ratio, threshold, len(good), run_seconds=seconds)
    return Judged(
        stats.rate_interval(rates),
        ratio,
        verdict,
        stats.fairness(shares(task_totals(good, variant), roles_of(good[0]))),
        len(windows),
        sum(w["switches"] > 0 for w in windows),
        sum(w["skewed"] for w in windows),
        sum(w["redone"] > 0 for w in windows),
        two_modes(rates),
        stats.outliers(logs),
        role_rates(good, variant),
        counters.per_op(windows),
    )


def judge_cell(
    cell: Cell,
    runs: list[dict[str, Any]],
    baseline: str = "",
    stored: Stored | None = None,
) -> CellResult:
    """All variants of a cell against its baseline (else its first variant).

    Where no clone was in the blocks, stored says what A/A stays below.
    """
    good = usable(runs)
    counts = Counter(r["error"]["text"] for r in runs if r["error"])
    failures = [f"{t} ({n} runs)" if n > 1 else t for t, n in counts.items()]
    variants = good[0]["variants"] if good else []
    chosen = baseline_of(good, baseline)
    seconds = sum(r["seconds"] for r in runs)
    fdsize = good[0]["setup"]["fdsize"] if good else 0
    threshold = threshold_of(cell, runs, chosen, stored)
    result = CellResult(
        cell, chosen, len(good), seconds, fdsize, threshold, failures=failures
    )
    if good:
        result.nonconforming = good[0]["setup"].get("nonconforming", {})
    reasons = [r.get("disturbed", []) for r in good]
    result.disturbed = ["; ".join(why) for why in reasons if why]
    there = [r["setup"].get("table_there", True) for r in good]
    result.table = next((str(t) for t in there if t is not True), "")
    for variant in variants:
        result.variants[variant] = judge_variant(good, variant, chosen, threshold)
    return result


def judge(
    records: Iterable[dict[str, Any]], baseline: str = "", stored: Stored | None = None
) -> list[CellResult]:
    """Every cell, by group and then by tasks."""
    records = list(records)
    results = [
        judge_cell(c, runs, baseline, stored) for c, runs in by_cell(records).items()
    ]
    looks = {Cell.from_dict(r["cell"]): r for r in records if r["type"] == "profile"}
    for result in results:
        if look := looks.get(result.cell):
            result.profiles = profiles_of(look)
            result.not_profiled = look["why"] or ""
    return sorted(results, key=lambda r: r.cell.order())


def groups(results: list[CellResult]) -> dict[Cell, list[CellResult]]:
    """The cells of each table and figure, by number of tasks."""
    found: dict[Cell, list[CellResult]] = {}
    for result in results:
        found.setdefault(result.cell.group(), []).append(result)
    return found
