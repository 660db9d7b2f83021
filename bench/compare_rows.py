# SPDX-License-Identifier: GPL-2.0-only
"""What is compared with what: folders (kernels, hosts, dates), or variants in one.

In one folder the ratios are those within a block. Between folders the boot is the
unit, and folders of the same kernel are boots of one side; within one boot the run
is. bench/compare_format.py writes what is found here.
"""
from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import counters, stats, store
from bench.counters import PerOp
from bench.host import Difference, differences, load_host
from bench.plan import held
from bench.problem import ANSWER_NO, COULD_NOT, DONE, INCONCLUSIVE, USAGE, Problem

Cell = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]
# The runs of a cell by the boot they were made in.
Boots = dict[str, list[Mapping[str, Any]]]
# The effect that A/A stays below here, of a cell at a number of runs; None: unknown.
Threshold = Callable[[Cell, int], float | None]

ONE_TASK = {"threads": "thread", "processes": "process"}


@dataclass(frozen=True)
class Folder:
    """A results folder: its rows of type "run" in the order they came, its host."""

    name: str
    rows: Rows
    host: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One variant of a cell on one side; rates are operations a second, one a run."""

    side: str
    variant: str
    rates: tuple[float, ...]
    interval: stats.Interval
    fairness: stats.Fairness
    per_op: tuple[Mapping[str, PerOp], ...]  # by perf event, one a run

    @property
    def events(self) -> dict[str, PerOp]:
        """What an operation took of each event that was counted: the runs' mean."""
        return {
            event: PerOp(*(self.mean(event, side) for side in counters.SIDES))
            for event in dict.fromkeys(e for run in self.per_op for e in run)
            if any(run[event].known for run in self.per_op if event in run)
        }

    def mean(self, event: str, side: str) -> float | None:
        """Over the runs that counted it; None: no run did."""
        known = [
            n
            for run in self.per_op
            if event in run and (n := getattr(run[event], side)) is not None
        ]
        return sum(known) / len(known) if known else None

    @property
    def outliers(self) -> list[str]:
        """A label for each run's rate: "" for the ordinary ones."""
        return stats.outliers([math.log(rate) for rate in self.rates])

    @property
    def bimodal(self) -> bool:
        """Whether the runs fall into two heaps."""
        return stats.bimodal(self.rates)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: a variant against the baseline in a cell."""

    cell: Cell
    base: Measured
    other: Measured
    verdict: stats.Verdict
    unit: str  # what the interval is over: "run" or "boot"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that a format may show."""

    folders: tuple[Folder, ...]
    sides: tuple[str, ...]
    differences: tuple[tuple[str, str, Difference], ...]  # of two folders by name
    comparisons: tuple[Comparison, ...]
    missing: tuple[str, ...]  # cells and variants that one side has no results of
    alone: tuple[str, ...]  # cells with one variant: nothing to compare it with
    failed_runs: int
    not_counted: str = ""  # the reason for the first perf event that is missing
    opposite: bool = field(init=False)
    expected_false: float = field(init=False)

    def __post_init__(self) -> None:
        verdicts = [item.verdict for item in self.comparisons]
        object.__setattr__(self, "opposite", stats.opposite_signs(verdicts))
        by_chance = stats.expected_false(len(verdicts))
        object.__setattr__(self, "expected_false", by_chance)


def read_folder(path: str) -> Folder:
    """A results folder from disk."""
    at = Path(path)
    rows = [row for row in store.load(at) if row.get("type") == "run"]
    return Folder(at.resolve().name, rows, load_host(at / "host.json"))


def hold_of(cell: Cell) -> str:
    """A cell's hold in words."""
    return held(cell["hold"], cell.get("hold_top", 0))


def cell_name(cell: Cell) -> str:
    """A cell in words: "dupfd start=64, model, low:64, compact, 2 threads"."""
    options = "".join(f" {k}={v}" for k, v in sorted(cell.get("options", {}).items()))
    mode, tasks = cell["mode"], cell["tasks"]
    if tasks == 1:
        mode = ONE_TASK.get(mode, mode)
    source = f" ({cell['source']})" if cell.get("source") else ""
    words = [f"{cell['workload']}{source}{options}", cell["backend"], cell["hold"]]
    words += [cell["place"], f"{tasks} {mode}"]
    if cell.get("table_size"):
        words.append(f"table {cell['table_size']}")
    return ", ".join(words)


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def _usable(row: Mapping[str, Any]) -> bool:
    """No number comes from a run that failed, or in which a window stood still."""
    windows = row.get("windows") or []
    idle = any(window["rate"] == 0 for window in windows)
    return bool(windows) and not idle and not row.get("error")


def _unfairness(fair: stats.Fairness) -> tuple[bool, float]:
    return not fair.starved, fair.jain


def _measured(side: str, variant: str, rows: Rows) -> Measured:
    """A variant in the runs of one cell."""
    runs, tasks, counted = [], [], []
    for row in rows:
        mine = [w for w in row["windows"] if w["variant"] == variant]
        runs.append([w["rate"] for w in mine])
        tasks.append([sum(ops) for ops in zip(*(w["ops"] for w in mine))])
        counted.append(counters.per_op(mine))
    worst = min((stats.fairness(ops) for ops in tasks), key=_unfairness)
    rates = tuple(stats.run_rate(run) for run in runs)
    interval = stats.t_interval(rates)
    return Measured(side, variant, rates, interval, worst, tuple(counted))


def _variants(rows: Rows) -> list[str]:
    """In the order in which the driver was given them."""
    found: dict[str, None] = {}
    for row in rows:
        named = (row.get("setup") or {}).get("variants") or []
        found.update(dict.fromkeys([*named, *(w["variant"] for w in row["windows"])]))
    return list(found)


def _cells(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The runs of each cell, failed ones too."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault(_key(row["cell"]), []).append(row)
    return cells


def _setup_notes(base: Rows, other: Rows) -> list[str]:
    """What the driver found different, though the cell is the same."""
    notes = []
    for key, name in (("fdsize", "table sizes"), ("pus", "PUs")):
        a, b = (
            {str((r.get("setup") or {}).get(key)) for r in s} for s in (base, other)
        )
        if a != b:
            said = " against ".join(" or ".join(sorted(side)) for side in (a, b))
            notes.append(f"{name} differ: {said}")
    return notes


def _unlike(rows: Rows, names: Sequence[str]) -> list[str]:
    """Which of the two variants does not conform, and why."""
    why: dict[str, str] = {}
    for row in rows:
        why |= (row.get("setup") or {}).get("nonconforming") or {}
    return [f"{n} {why[n]}" for n in dict.fromkeys(names) if n in why]


def _flags(*sides: Measured) -> list[str]:
    notes = []
    for side in sides:
        if side.fairness.starved:
            low, high = side.fairness.least, side.fairness.most
            notes.append(
                f"{side.variant}: a task starves: least {low:.0f} of most {high:.0f}"
            )
        odd = [f"{n} {label}" for n, label in enumerate(side.outliers) if label]
        if odd:
            notes.append(f"{side.variant}: outlying runs, kept: {', '.join(odd)}")
        if side.bimodal:
            notes.append(f"{side.variant}: runs fall into two heaps")
    return notes


def _seconds(rows: Rows) -> float | None:
    """What one more run costs."""
    known = [float(row["seconds"]) for row in rows if row.get("seconds")]
    return sum(known) / len(known) if known else None


def _inside(
    folder: Folder, baseline: str | None, threshold: Threshold
) -> tuple[str, list[Comparison], list[str], list[str]]:
    """Every variant against the baseline, cell by cell; what is missing, or alone."""
    known = _variants([row for row in folder.rows if _usable(row)])
    base_name = baseline or (known[0] if known else "")
    if baseline and baseline not in known:
        text = f"baseline {baseline}: no variant of {folder.name}; it has "
        raise Problem(USAGE, text + (", ".join(known) or "none"))
    comparisons, missing, alone = [], [], []
    for rows in _cells(folder.rows).values():
        cell = rows[0]["cell"]
        good = [row for row in rows if _usable(row)]
        names = _variants(good)
        if not good:
            missing.append(f"{cell_name(cell)}: every run failed")
            continue
        if len(names) == 1:
            alone.append(f"{cell_name(cell)}: {names[0]} only")
            continue
        if base_name not in names:
            missing.append(f"{cell_name(cell)}: no {base_name}")
            continue
        for name in names:
            paired = [
                (pairs, row)
                for row in good
                if (pairs := stats.block_pairs(row["windows"], name, base_name))
            ]
            if name == base_name:
                continue
            if not paired:
                missing.append(f"{cell_name(cell)}: no {name} beside {base_name}")
                continue
            ratio = stats.ratio_interval([pairs for pairs, _ in paired])
            used = [row for _, row in paired]
            verdict = stats.verdict(
                ratio, threshold(cell, ratio.n), ratio.n, run_seconds=_seconds(used)
            )
            base = _measured(folder.name, base_name, used)
            other = _measured(folder.name, name, used)
            unlike = _unlike(used, (base_name, name))
            notes = (*unlike, *_flags(base, other))
            comparisons.append(Comparison(cell, base, other, verdict, "run", notes))
    return base_name, comparisons, missing, alone


def _kernel(folder: Folder) -> tuple[Any, ...]:
    kernel = folder.host.get("kernel") or {}
    return folder.host.get("hostname"), kernel.get("release"), kernel.get("version")


def _boot(folder: Folder) -> str:
    """What tells boots apart; without a boot_id every folder counts as one."""
    return str((folder.host.get("kernel") or {}).get("boot_id") or folder.name)


def _sides(folders: Sequence[Folder]) -> list[list[Folder]]:
    """Folders of one kernel are boots of one side, unless there is one kernel only."""
    sides: dict[tuple[Any, ...], list[Folder]] = {}
    for folder in folders:
        sides.setdefault(_kernel(folder), []).append(folder)
    if len(sides) == 1:
        return [[folder] for folder in folders]
    return list(sides.values())


def _side_name(side: Sequence[Folder]) -> str:
    return "+".join(folder.name for folder in side)


def _pairs_of_names(base: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
    """Variants by name; one on each side are a pair whatever they are called, as a
    kernel without a switch has one, named by its preset."""
    if len(base) == len(other) == 1:
        return [(base[0], other[0])]
    return [(name, name) for name in base if name in other]


def _by_boot(side: Sequence[Folder]) -> dict[str, Boots]:
    """The usable runs of each cell, by boot; a cell whose runs all failed has none."""
    cells: dict[str, Boots] = {}
    for folder in side:
        for key, rows in _cells(folder.rows).items():
            boots = cells.setdefault(key, {})
            if good := [row for row in rows if _usable(row)]:
                boots.setdefault(_boot(folder), []).extend(good)
    return cells


def _runs(boots: Boots) -> list[Mapping[str, Any]]:
    return [row for rows in boots.values() for row in rows]


def _across(
    base: Sequence[Folder], other: Sequence[Folder], threshold: Threshold
) -> tuple[list[Comparison], list[str]]:
    """One side against the baseline's, in every cell and variant that both have."""
    comparisons, missing = [], []
    sides = _side_name(base), _side_name(other)
    cells = _by_boot(base), _by_boot(other)
    for key in dict.fromkeys([*cells[0], *cells[1]]):
        cell = json.loads(key)
        lost = [
            f"{cell_name(cell)}: every run failed in {side}"
            if key in found
            else f"{cell_name(cell)}: not measured in {side}"
            for side, found in zip(sides, cells)
            if not found.get(key)
        ]
        if lost:
            missing += lost
            continue
        boots = cells[0][key], cells[1][key]
        names = _pairs_of_names(_variants(_runs(boots[0])), _variants(_runs(boots[1])))
        if not names:
            missing.append(f"{cell_name(cell)}: no variant in common")
        for pair in names:
            old, new = (_with(some, name) for some, name in zip(boots, pair))
            if old and new:
                item = _between(cell, sides, pair, (old, new), threshold)
                comparisons.append(item)
            else:
                missing.append(f"{cell_name(cell)}: no window of {pair[1]}")
    return comparisons, missing


def _with(boots: Boots, variant: str) -> Boots:
    """The runs that measured the variant, in the boots that have any."""
    kept = {
        boot: [r for r in rows if any(w["variant"] == variant for w in r["windows"])]
        for boot, rows in boots.items()
    }
    return {boot: rows for boot, rows in kept.items() if rows}


def _boot_rate(variant: str, rows: Rows) -> float:
    """One rate for a boot: the geometric mean of its runs."""
    rates = [
        stats.run_rate([w["rate"] for w in row["windows"] if w["variant"] == variant])
        for row in rows
    ]
    return stats.t_interval(rates).estimate


def _between(
    cell: Cell,
    sides: tuple[str, str],
    names: tuple[str, str],
    boots: tuple[Boots, Boots],
    threshold: Threshold,
) -> Comparison:
    """One cell and variant, from the runs of each side by boot."""
    rows = _runs(boots[0]), _runs(boots[1])
    base, other = map(_measured, sides, names, rows)
    if len(boots[0].keys() | boots[1].keys()) == 1:
        unit = "run"
        ratio = stats.welch_ratio(other.rates, base.rates)
        least = min(len(other.rates), len(base.rates))
        verdict = stats.verdict(
            ratio, threshold(cell, least), least, run_seconds=_seconds(rows[1])
        )
    else:
        unit = "boot"
        old, new = (
            [_boot_rate(name, some) for some in by_boot.values()]
            for by_boot, name in zip(boots, names)
        )
        limit = threshold(cell, min(len(old), len(new)))
        verdict = stats.boots_verdict(new, old, limit)
        # Runs of one boot share what it drew: they do not narrow a rate either.
        base = replace(base, interval=stats.t_interval(old))
        other = replace(other, interval=stats.t_interval(new))
    unlike = _unlike([*rows[0], *rows[1]], names)
    notes = (*_setup_notes(*rows), *unlike, *_flags(base, other))
    return Comparison(cell, base, other, verdict, unit, notes)


def gate(report: Report, limit: float) -> int:
    """The exit status of --fail-if-slower LIMIT (a fraction of the baseline's rate).

    no: something is slower for certain, and by more than LIMIT as far as can be told.
    could not: a cell has no results on both sides. inconclusive: slower by LIMIT can
    not be excluded. Otherwise yes: also for what is slower by less than LIMIT.
    """
    unsure = False
    for item in report.comparisons:
        ratio = item.verdict.ratio
        if item.verdict.word == "slower" and ratio.estimate < 1 - limit:
            return ANSWER_NO
        if not item.verdict.settled:
            few = ratio.n < (stats.MIN_RUNS if item.unit == "run" else stats.MIN_BOOTS)
            unsure |= few or not ratio.low >= 1 - limit
    if report.missing:
        return COULD_NOT
    return INCONCLUSIVE if unsure else DONE


def make_report(
    folders: Sequence[Folder],
    baseline: str | None = None,
    threshold: Threshold = lambda cell, runs: None,
) -> Report:
    """Compare; baseline names a variant of the one folder, or one of the folders."""
    if not folders:
        raise Problem(USAGE, "compare: no folder; name one, or two or more")
    comparisons: list[Comparison] = []
    missing: list[str] = []
    alone: list[str] = []
    found: list[tuple[str, str, Difference]] = []
    if len(folders) == 1:
        base_name, comparisons, missing, alone = _inside(
            folders[0], baseline, threshold
        )
        sides = [base_name]
    else:
        grouped = _sides(folders)
        at = 0
        if baseline:
            names = [[folder.name for folder in side] for side in grouped]
            hits = [n for n, side in enumerate(names) if Path(baseline).name in side]
            if not hits:
                have = ", ".join(folder.name for folder in folders)
                raise Problem(USAGE, f"baseline {baseline}: none of the folders {have}")
            at = hits[0]
        base = grouped.pop(at)
        sides = [_side_name(base), *(_side_name(side) for side in grouped)]
        for side in grouped:
            some, lost = _across(base, side, threshold)
            comparisons += some
            missing += lost
        first = base[0]
        for folder in folders:
            found += [
                (first.name, folder.name, item)
                for item in differences(dict(first.host), dict(folder.host))
                if item.key != "kernel.boot_id"  # each boot has another; counted above
            ]
    failed = sum(not _usable(row) for folder in folders for row in folder.rows)
    if not comparisons:
        why = "".join(f": {said}" for said in (missing + alone)[:1])
        where = ", ".join(folder.name for folder in folders)
        text = f"{where}: nothing to compare{why}; measure the same cells on each side"
        raise Problem(USAGE if not failed else COULD_NOT, text)
    return Report(
        tuple(folders),
        tuple(sides),
        tuple(found),
        tuple(comparisons),
        tuple(missing),
        tuple(alone),
        failed,
        counters.why_not(row for folder in folders for row in folder.rows),
    )
