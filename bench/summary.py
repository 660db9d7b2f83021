# SPDX-License-Identifier: GPL-2.0-only
"""From runs to what is said of them: rates, ratios, verdicts, fairness, tables."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench import counters, stats
from bench.counters import PerOp
from bench.plan import Cell
from bench.profile import Profile, profiles_of
from bench.stats import Fairness, Interval, Verdict
from bench.words import count

WIDTH = 80
ACROSS = 4  # variants side by side
COLUMN = 18
CLONE = "#clone"  # the baseline compiled a second time: A/A


# What A/A stays below here, of a cell at a number of runs, as calibrated; None: not.
Stored = Callable[[Cell, int], float | None]


@dataclass
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
    totals: list[float] = []
    for run in runs:
        for window in run["windows"]:
            if window["variant"] == variant:
                totals = totals or [0.0] * len(window["ops"])
                totals = [a + b for a, b in zip(totals, window["ops"])]
    return totals


def shares(totals: list[float], roles: list[str] | None = None) -> list[float]:
    """Each task's part of the whole, where 1 is an equal one.

    Tasks that do different things are compared with those that do the same.
    """
    names = roles or [""] * len(totals)
    peers = {n: [t for t, m in zip(totals, names) if m == n] for n in names}
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
    good = [r for r in runs if not r["error"] and r["windows"]]
    counts = Counter(r["error"]["text"] for r in runs if r["error"])
    failures = [f"{t} ({n} runs)" if n > 1 else t for t, n in counts.items()]
    variants = good[0]["variants"] if good else []
    chosen = baseline if baseline in variants else variants[0] if variants else ""
    seconds = sum(r["seconds"] for r in runs)
    fdsize = good[0]["setup"]["fdsize"] if good else 0
    threshold = aa_threshold(good, chosen)
    if threshold is None and stored and len(variants) > 1:
        threshold = stored(cell, len(good))
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


def human(rate: float) -> str:
    """Four digits and a unit: 12.34M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.4g}{unit}"
    return f"{rate:.4g}"


def percent(interval: Interval) -> str:
    """±half-width, or nothing where one run tells none."""
    if not interval.known:
        return ""
    half = interval.half_width_percent
    return f" ±{half:.1f}%" if half < 99.95 else " ±>100%"


def short_word(judged: Judged, runs: int) -> str:
    """The verdict in a column's width."""
    if judged.verdict is None:
        return "baseline"
    word = judged.verdict.word
    if word.startswith("no difference beyond "):
        return "same within " + word.removeprefix("no difference beyond ")
    return word if runs >= stats.MIN_RUNS else "too few runs"


def ratio_text(ratio: Interval | None) -> str:
    """x1.234 ±0.5%: the bounds are equally far on the log scale."""
    return "" if ratio is None else f"x{ratio.estimate:.4g}{percent(ratio)}"


def two_modes(runs: list[list[float]]) -> bool:
    """Whether the windows within runs fall into two heaps, whatever the runs do."""
    levels = [stats.run_rate(run) for run in runs]
    within = [rate / level for run, level in zip(runs, levels) for rate in run]
    return stats.bimodal(within)


def events_known(result: CellResult) -> list[tuple[str, str]]:
    """The perf events that some variant has a count of, and what heads their rows."""
    known = {
        e for j in result.variants.values() for e, n in j.per_op.items() if n.known
    }
    order = dict.fromkeys(e for j in result.variants.values() for e in j.per_op)
    return [(e, counters.SHORT.get(e, e)[:6]) for e in order if e in known]


def rows(result: CellResult, names: list[str]) -> list[str]:
    """The lines of one number of tasks."""
    judged = [result.variants.get(n) for n in names]
    lines = [
        [human(j.rate.estimate) + percent(j.rate) if j else "-" for j in judged],
        [ratio_text(j.ratio) if j else "" for j in judged],
        [short_word(j, result.runs) if j else "" for j in judged],
        [j.verdict.need if j and j.verdict else "" for j in judged],
    ]
    if result.cell.tasks > 1:
        lines.append(
            [
                f"{j.fairness.least:.2f}..{j.fairness.most:.2f} J{j.fairness.jain:.3f}"
                if j
                else ""
                for j in judged
            ]
        )
    heads = [str(result.cell.tasks), "ratio", "", "needs", "tasks"]
    heads = heads[: len(lines)]
    for role in dict.fromkeys(r for j in judged if j for r in j.roles):
        found = [j.roles.get(role) if j else None for j in judged]
        lines.append([human(i.estimate) + percent(i) if i else "-" for i in found])
        heads.append(role[:6])
    for event, head in events_known(result):
        heads.append(head)
        lines.append([str(j.per_op[event]) if j else "" for j in judged])
    if result.profiles:
        heads.append("time")
        lines.append([str(result.profiles.get(n, "-")) for n in names])
    if result.threshold is not None:
        percents = 100 * result.threshold
        beyond = f"below {percents:.1f}%" if percents < stats.WILD else "tells nothing"
        lines[2][0] = f"A/A {beyond}" if names[0] == result.baseline else ""
    return [
        f"{head:>6}" + "".join(f"{text:>{COLUMN}}" for text in line).rstrip()
        for head, line in zip(heads, lines)
        if any(line)
    ]


def table(group: Cell, results: list[CellResult]) -> str:
    """The table of one workload and hold: tasks down, variants across."""
    done = [r for r in results if r.variants]
    sizes = sorted({r.fdsize for r in done})
    title = f"{group.name()} | {group.backend} | hold {group.held} | {group.mode}"
    slots = ", ".join(str(s) for s in sizes)
    runs = sorted({r.runs for r in done})
    lines = [
        title,
        f"placement {group.place}, table of {slots} slots, "
        + (count(runs[0], "run") if len(runs) == 1 else f"{runs[0]}..{runs[-1]} runs"),
    ]
    names = list(done[0].variants)
    base = done[0].baseline
    others = [n for n in names if n not in (base, base + CLONE)]
    first = True
    for start in range(0, max(len(others), 1), ACROSS - 1):
        shown = [base, *others[start : start + ACROSS - 1]] if base else names
        *above, last = header(shown)
        lines += [" " * 6 + line for line in above]
        lines.append((" tasks" if first else " " * 6) + last)
        for result in done:
            lines += rows(result, shown)
        first = False
    unlike = {n: why for r in done for n, why in r.nonconforming.items()}
    lines += [wrapped(f"  {n} {why}") for n, why in unlike.items()]
    spent = [f"{r.cell.tasks}: {r.seconds:.1f} s" for r in results]
    lines.append(wrapped("  cost by tasks: " + ", ".join(spent), "    "))
    return "\n".join(lines)


def header(names: list[str]) -> list[str]:
    """Names over their columns; a long one takes two lines, cut at a sign."""
    upper, lower = [], []
    for name in names:
        cut = 0
        if len(name) >= COLUMN:
            signs = [i + 1 for i in range(COLUMN - 1) if name[i] in "+-#"]
            cut = max((i for i in signs if i < COLUMN), default=COLUMN - 1)
        upper.append(name[:cut])
        lower.append(name[cut:][: COLUMN - 1])
    lines = [upper, lower] if any(upper) else [lower]
    return ["".join(f"{text:>{COLUMN}}" for text in line).rstrip() for line in lines]


def wrapped(text: str, indent: str = "  ") -> str:
    """A note within the width."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


NAMED = 4  # cells named in a note; the others are counted


def notes(results: list[CellResult], planned_runs: int) -> list[str]:
    """What a reader must know before believing a table: a line a kind of trouble."""
    found: dict[str, list[str]] = {}

    def note(what: str, where: str) -> None:
        found.setdefault(what, []).append(where)

    for r in results:
        name = str(r.cell)
        for variant, j in r.variants.items():
            if j.fairness.starved:
                share = f"{variant} {j.fairness.least:.2f} in {name}"
                note("Starved tasks (the least busy's share)", share)
            odd = [f"{n} {label}" for n, label in enumerate(j.outliers) if label]
            if odd:
                note(
                    "Outlying runs (kept)", f"{variant} run {', '.join(odd)} in {name}"
                )
            if j.bimodal:
                note(
                    "Windows in two heaps: no one number tells it",
                    f"{variant} in {name}",
                )
        if r.not_profiled:
            note(f"Not profiled: {r.not_profiled}", name)
        if r.table:
            note(f"Not known to be on its --table-node ({r.table})", name)
        if r.disturbed:
            share = f"{len(r.disturbed)} of {r.runs} in {name} ({r.disturbed[0]})"
            note("Runs that were disturbed (kept)", share)
        disturbed = sum(j.disturbed for j in r.variants.values())
        skewed = sum(j.skewed for j in r.variants.values())
        redone = sum(j.redone for j in r.variants.values())
        windows = sum(j.windows for j in r.variants.values())
        if windows and disturbed > windows / 10:
            share = f"{100 * disturbed // windows}% in {name}"
            note("Windows with involuntary context switches", share)
        if windows and redone > windows / 10:
            share = f"{100 * redone // windows}% in {name}"
            note("Windows done again: no common start, or nothing done", share)
        if skewed:
            note("Windows whose tasks started over 1% apart", f"{skewed} in {name}")
        in_flight = r.cell.tasks * 2 + 3
        if r.cell.mode == "threads" and r.cell.hold == "none" and in_flight > 64:
            note("Hold none does not stay within word 0", name)
        if r.variants and r.runs < planned_runs:
            note(
                "Fewer good runs than planned", f"{r.runs} of {planned_runs} in {name}"
            )
    lines = []
    for what, where in found.items():
        lines.append(f"{what}: {some(where)}")
    return lines


def not_counted(records: list[dict[str, Any]]) -> list[str]:
    """One line where a perf event is missing, with the first reason given."""
    why = counters.why_not(records)
    return [f"Not counted: {why}"] if why else []


def alike(said: Iterable[tuple[str, str]]) -> list[str]:
    """A line a text, with the cells that it was said of."""
    found: dict[str, list[str]] = {}
    for text, cell in said:
        found.setdefault(text, []).append(cell)
    return [
        f"{cells[0]}: {text}"
        if len(cells) == 1
        else f"{text}: {count(len(cells), 'cell')}: {some(cells)}"
        for text, cells in found.items()
    ]


def some(names: list[str]) -> str:
    """The first few; the others are counted."""
    more = f"; and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(names[:NAMED]) + more


def comparisons(results: list[CellResult]) -> str:
    """How many were made, and how many would differ by chance."""
    made = [
        j.ratio
        for r in results
        for name, j in r.variants.items()
        if j.ratio and j.ratio.known and r.runs >= stats.MIN_RUNS
        if not name.endswith(CLONE)
    ]
    if not made:
        why = f"no cell has two variants and {stats.MIN_RUNS} runs"
        return f"No comparison: {why} (a kernel without the switch has one form)."
    excluding = sum(ratio.excludes(1) for ratio in made)
    chance = stats.expected_false(len(made))
    text = (
        f"{count(len(made), 'comparison')}; {count(excluding, 'interval')} "
        f"exclude{'s' if excluding == 1 else ''} 1, about "
        f"{chance:.1f} would by chance alone."
    )
    called = Counter(
        j.verdict.word
        for r in results
        for name, j in r.variants.items()
        if j.verdict and not name.endswith(CLONE)
    )
    if called["faster"] and called["slower"]:
        text += (
            f" {called['faster']} faster, {called['slower']} slower: no mean of them "
            "is an answer."
        )
    return text


LEGEND = (
    "Operations a second with the 95% interval over runs; under it the ratio to "
    "the first column's variant with its interval, the verdict, and the tasks' "
    "shares: least..most busy (1 is fair) and Jain's index. 'A/A below X': the "
    "baseline and a second copy of itself, in the same blocks, differ by less than "
    "X 95 times in 100 (else as calibrated); no smaller difference is called. "
    "'needs': what would settle it."
)
COUNTED = (
    "'instr', 'cycles', 'misses': what an operation took of them, in user space + in "
    "the kernel."
)
PROFILED = (
    "'time': where it went by perf, in one more run: lock / bit search / the rest of "
    "the table (a search of one word is inlined there) / all else."
)


def summary(
    records: list[dict[str, Any]],
    host: dict[str, str],
    planned: list[Cell],
    planned_runs: int,
    baseline: str = "",
    wall: float = 0.0,
    stored: Stored | None = None,
    earlier: int = 0,
) -> str:
    """The whole summary, 80 columns, fit for a mail; host has what stands on top.

    The first records, earlier in number, were made before the time that wall counts.
    """
    results = judge(records, baseline, stored)
    top = f"{host['machine']}\nkernel {host['kernel']}"
    for said in ("caution", "resolves", "taints"):
        if host.get(said):
            top += "\n" + wrapped(host[said])
    legend = LEGEND
    if any(events_known(r) for r in results):
        legend += " " + COUNTED
    if any(r.profiles for r in results):
        legend += " " + PROFILED
    parts = [top, wrapped(legend, "")]
    for group, cells in groups(results).items():
        if any(r.variants for r in cells):
            parts.append(table(group, cells))
    failed = alike((text, str(r.cell)) for r in results for text in r.failures)
    missing = [str(c) for c in planned if c not in {r.cell for r in results}]
    for title, lines in (
        ("Notes", notes(results, planned_runs) + not_counted(records)),
        ("Failed or refused", failed),
        ("Not measured", missing),
    ):
        if lines:
            parts.append("\n".join([title, *(wrapped(f"- {line}") for line in lines)]))
    end = wrapped(comparisons(results), "")
    if wall:
        recent = [r for r in records[earlier:] if r["type"] == "run"]
        inside = sum(r["recorded_ns"] for r in recent) / 1e9
        since = "since --resume" if earlier else "in all"
        share = 100 * inside / wall
        end += "\n" + wrapped(
            f"{wall:.0f} s {since}, {inside:.0f} s of it ({share:.0f}%) "
            "inside recorded windows; the rest is start-up, warm-up, settling and "
            "figures.",
            "",
        )
    parts.append(end)
    return "\n\n".join(parts) + "\n"


def as_json(
    results: list[CellResult], host: dict[str, str], wall: float
) -> dict[str, Any]:
    """The summary for a program: the same numbers, unrounded."""

    def interval(i: Interval | None) -> dict[str, Any] | None:
        if i is None:
            return None
        low, high = (i.low, i.high) if i.known else (None, None)
        return {"estimate": i.estimate, "low": low, "high": high, "n": i.n}

    return {
        "schema": 1,
        "host": host,
        "seconds": wall,
        "cells": [
            {
                "cell": r.cell.as_dict(),
                "baseline": r.baseline,
                "runs": r.runs,
                "fdsize": r.fdsize,
                "aa_threshold": r.threshold,
                "seconds": r.seconds,
                "failures": r.failures,
                "not_profiled": r.not_profiled or None,
                "disturbed_runs": r.disturbed,
                "variants": {
                    name: {
                        "rate": interval(j.rate),
                        "ratio": interval(j.ratio),
                        "verdict": j.verdict.word if j.verdict else None,
                        "text": j.verdict.text if j.verdict else None,
                        "need": (j.verdict.need or None) if j.verdict else None,
                        "fairness": asdict(j.fairness),
                        "roles": {n: interval(i) for n, i in j.roles.items()},
                        "windows": j.windows,
                        "disturbed": j.disturbed,
                        "bimodal": j.bimodal,
                        "outliers": j.outliers,
                        "profile": asdict(p) if (p := r.profiles.get(name)) else None,
                        "per_op": {e: asdict(n) for e, n in j.per_op.items()},
                    }
                    for name, j in r.variants.items()
                },
            }
            for r in results
        ],
    }
