# SPDX-License-Identifier: GPL-2.0-only
"""What is said of judged cells: tables, notes, the summary as text and as JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bench import counters, stats
from bench.judge import CLONE, CellResult, Judged, Stored, groups, judge
from bench.plan import Cell
from bench.stats import Interval
from bench.words import count

WIDTH = 80
ACROSS = 4  # variants side by side
COLUMN = 18


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
        if skewed and r.cell.tasks == 1:
            note("Windows that began over 1% late", f"{skewed} in {name}")
        elif skewed:
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
    ratios = [
        (j.ratio, r.runs)
        for r in results
        for name, j in r.variants.items()
        if j.ratio and not name.endswith(CLONE)
    ]
    made = [i for i, runs in ratios if i.known and runs >= stats.MIN_RUNS]
    if not made:
        if any(sum(CLONE not in v for v in r.variants) > 1 for r in results):
            return f"No comparison: none has the {stats.MIN_RUNS} runs that it takes."
        why = "no cell has two variants (a kernel without the switch has one form)"
        return f"No comparison: {why}."
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
    if len(made) < len(ratios):
        text += f" {len(ratios) - len(made)} more: too few runs."
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
    measured = {r.cell for r in results}
    missing = [str(c) for c in planned if c not in measured]
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
