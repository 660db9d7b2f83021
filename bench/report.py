# SPDX-License-Identifier: GPL-2.0-only
"""One HTML file out of results folders: what they say, and what it rests on.

Nothing in a folder is trusted: its text is escaped, its figures are images without
scripts, files outside of it are not read, and the page's own policy forbids every
request and every script but ours.
"""
from __future__ import annotations

import base64
import hashlib
import re
import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bench import stats, store, summary
from bench.compare_format import rate_text
from bench.compare_rows import (
    Comparison,
    Folder,
    Report,
    cell_name,
    hold_of,
    make_report,
)
from bench.figures import Place, draw_all, find, section
from bench.host import caution, load_host, machine
from bench.judge import CLONE, CellResult, Judged, by_cell, judge, task_totals
from bench.plan import Cell
from bench.problem import DONE, USAGE, Problem
from bench.report_figures import Figure, by_section, rest, svgs

TEMPLATES = Path(__file__).resolve().parent / "templates"
BAD_ROW = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
KINDS = ("faster", "slower", "same", "inconclusive")


@dataclass(frozen=True, slots=True)
class RawRun:
    """One run of a variant as it was recorded; rates in operations a second."""

    number: Any
    rate: float
    ratio: float | None  # to the baseline
    totals: list[float]  # operations of each task
    windows: list[float]
    command: Markup  # words, quoted for a shell


@dataclass(frozen=True, slots=True)
class Row:
    """One variant in one cell."""

    id: str
    variant: str
    cell: Cell
    unit: str
    result: CellResult
    judged: Judged
    word: str
    said: str  # what follows the word
    raw: list[RawRun]

    @property
    def role(self) -> str:
        """What the variant is here, where it is not simply compared."""
        if self.variant == self.result.baseline:
            return "baseline"
        return "A/A" if self.variant.endswith(CLONE) else ""

    @property
    def notes(self) -> list[str]:
        """Doubts about this row."""
        found = []
        if self.variant in self.result.nonconforming:
            found.append(self.result.nonconforming[self.variant])
        if self.judged.fairness.starved:
            found.append("starved tasks")
        if self.judged.bimodal:
            found.append("windows in two heaps")
        if self.judged.disturbed > self.judged.windows / 10:
            share = 100 * self.judged.disturbed // self.judged.windows
            found.append(f"{share}% of the windows interrupted")
        return found


@dataclass(frozen=True)
class Matrix:
    """Verdicts at a glance: a line a variant and hold, a column a number of tasks."""

    title: str
    link: str
    base: str
    tasks: list[int]
    lines: dict[tuple[str, str], dict[int, stats.Verdict]]


@dataclass(frozen=True)
class Section:
    """One workload, backend, mode and placement, with all its holds and tasks."""

    id: str
    group: Cell
    rows: list[Row]
    failures: list[str]
    figures: list[Figure]

    @property
    def matrix(self) -> Matrix:
        """What was said of the variants, without A/A."""
        lines: dict[tuple[str, str], dict[int, stats.Verdict]] = {}
        for row in self.rows:
            if not row.role and row.judged.verdict:
                line = lines.setdefault((row.variant, row.cell.held), {})
                line[row.cell.tasks] = row.judged.verdict
        return Matrix(
            title(self.group),
            self.id,
            self.rows[0].result.baseline if self.rows else "",
            sorted({tasks for line in lines.values() for tasks in line}),
            lines,
        )


@dataclass(frozen=True)
class Shown:
    """A results folder, ready to be written down."""

    folder: Folder
    results: list[CellResult]
    when: str
    sections: list[Section]
    figures: list[Figure]  # that belong to no section
    notes: list[str]

    @property
    def closing(self) -> str:
        """How many comparisons were made."""
        return summary.comparisons(self.results)

    @property
    def counts(self) -> dict[str, int]:
        """How many variants got which verdict."""
        return counted(
            row.word for s in self.sections for row in s.rows if not row.role
        )


def title(group: Cell) -> str:
    """What a section is about."""
    return f"{group.name()}, {group.backend}, {group.mode}, {group.place}"


def kind(word: str) -> str:
    """A verdict in one word; also its class in the style sheet."""
    return "same" if word.startswith("no difference") else word


def counted(words: Iterable[str]) -> dict[str, int]:
    """How often each kind of verdict was given, in the order of KINDS."""
    found = [kind(word) for word in words]
    return {word: found.count(word) for word in KINDS if word in found}


def after(verdict: stats.Verdict) -> str:
    """The sentence of a verdict without its first word."""
    return verdict.text.removeprefix(f"{verdict.word}: ")


def command_of(record: Mapping[str, Any]) -> Markup:
    """What to type to get the run again: every word quoted that needs it."""
    words = record.get("command") or []
    whole_line = ["build/fdscale", *words] if words else []
    return Markup("").join(map(word_of, whole_line))


@lru_cache(maxsize=4096)
def word_of(word: str) -> Markup:
    """One that a shell takes as it is; lines do not break inside of it."""
    return Markup("<b>%s</b> ") % shlex.quote(word)


def raw_run(
    record: dict[str, Any], variant: str, baseline: str, command: Markup
) -> RawRun:
    """What one run says of one variant."""
    rates = [w["rate"] for w in record["windows"] if w["variant"] == variant]
    pairs = stats.block_pairs(record["windows"], variant, baseline)
    return RawRun(
        record["run"],
        stats.run_rate(rates),
        stats.run_ratio(pairs) if variant != baseline and pairs else None,
        task_totals([record], variant),
        rates,
        command,
    )


def rows_of(result: CellResult, runs: Sequence[dict[str, Any]], id_: str) -> list[Row]:
    """Every variant of a cell."""
    cell = result.cell
    good = [r for r in runs if not r["error"] and r["windows"]]
    commands = [command_of(r) for r in good]
    unit = cell.mode
    if cell.tasks == 1:
        unit = {"threads": "thread", "processes": "process"}.get(unit, unit)
    return [
        Row(
            f"{id_}-{number}",
            variant,
            cell,
            unit,
            result,
            judged,
            judged.verdict.word if judged.verdict else "",
            after(judged.verdict) if judged.verdict else "",
            [
                raw_run(r, variant, result.baseline, command)
                for r, command in zip(good, commands)
            ],
        )
        for number, (variant, judged) in enumerate(result.variants.items())
    ]


def sections_of(
    results: list[CellResult],
    runs: Mapping[Cell, list[dict[str, Any]]],
    found: dict[str, Path],
    prefix: str,
) -> list[Section]:
    """Results by workload; takes the figures it shows out of those found."""
    grouped: dict[Cell, list[CellResult]] = {}
    for result in results:
        grouped.setdefault(section(result.cell), []).append(result)
    drawn = by_section(found, find(results, runs))
    sections = []
    for at, (group, cells) in enumerate(grouped.items()):
        id_ = f"{prefix}s{at}"
        rows = [
            row
            for number, result in enumerate(cells)
            for row in rows_of(result, runs[result.cell], f"{id_}c{number}")
        ]
        failures = [f"{r.cell}: {text}" for r in cells for text in r.failures]
        sections.append(Section(id_, group, rows, failures, drawn.get(group, [])))
    return sections


def damaged(folder: Path, error: Exception) -> Problem:
    """What to say of results that are not as they should be."""
    where = folder / store.RESULTS
    return Problem(USAGE, f"{where}: a row is damaged: {error!r}; remove it")


def show(path: Path, prefix: str) -> Shown:
    """Reads a folder; prefix makes its ids its own.

    Raises Problem(USAGE) naming the file that is missing or damaged.
    """
    records = store.load(path)
    host = load_host(path / "host.json")
    try:
        runs = by_cell(records)
        rows = [r for r in records if r["type"] == "run"]
        plans = [r["plan"] for r in records if r["type"] == "plan"]
        plan: dict[str, Any] = plans[0] if plans else {}
        results = judge(records, plan.get("baseline", ""))
        found = svgs(path)
        sections = sections_of(results, runs, found, prefix)
        when = (
            time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(rows[0]["time"]))
            if rows
            else "no run"
        )
        notes = summary.notes(results, plan.get("runs", 0))
    except BAD_ROW as e:
        raise damaged(path, e) from e
    except OSError as e:
        raise Problem(USAGE, f"{e.filename}: {e.strerror}") from e
    folder = Folder(path.resolve().name, rows, host)
    return Shown(folder, results, when, sections, rest(found), notes)


def compared(shown: Sequence[Shown]) -> tuple[Report | None, str]:
    """Folders against each other, or why there is nothing to compare."""
    if len(shown) < 2:
        return None, ""
    try:
        found = make_report([s.folder for s in shown])
        kept = tuple(c for c in found.comparisons if CLONE not in c.other.variant)
        return replace(found, comparisons=kept), ""
    except Problem as problem:
        return None, str(problem)
    except BAD_ROW as e:
        names = ", ".join(s.folder.name for s in shown)
        raise Problem(USAGE, f"{names}: a row of results.jsonl is damaged: {e!r}")


def matrices(report: Report) -> list[Matrix]:
    """The verdicts between folders, a matrix a workload and side."""
    found: dict[tuple[str, str], Matrix] = {}
    for item in report.comparisons:
        cell = Cell.from_dict(dict(item.cell))
        name, side = title(cell), item.other.side
        if (name, side) not in found:
            head = f"{name}: {side} against {item.base.side}"
            found[name, side] = Matrix(head, "table", "", [], {})
        matrix = found[name, side]
        matrix.lines.setdefault((item.other.variant, cell.held), {})[
            cell.tasks
        ] = item.verdict
        if cell.tasks not in matrix.tasks:
            matrix.tasks.append(cell.tasks)
            matrix.tasks.sort()
    return list(found.values())


def few(report: Report) -> list[str]:
    """Why comparisons have no interval."""
    texts = [c.verdict.text for c in report.comparisons if not c.verdict.ratio.known]
    return list(dict.fromkeys(text.partition("; ")[2] for text in texts))


# By cell, in the page's order: variant, folder, id of a row.
Index = dict[Cell, list[tuple[str, str, str]]]


def index_of(shown: Sequence[Shown]) -> Index:
    """Where on the page the rows of each cell are."""
    index: Index = defaultdict(list)
    for s in shown:
        for part in s.sections:
            for row in part.rows:
                index[row.cell].append((row.variant, s.folder.name, row.id))
    return index


def places(item: Comparison, index: Index) -> list[tuple[str, str]]:
    """Where on the page the runs behind a comparison are: (folder, id)."""
    names = (item.base.variant, item.other.variant)
    rows = index.get(Cell.from_dict(dict(item.cell)), [])
    return [(folder, id_) for variant, folder, id_ in rows if variant in names]


def flat(host: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """The facts of host.json in words; what is not known is left out."""
    for key, value in host.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        elif value not in (None, "", []) and key not in ("checks", "fixed", "schema"):
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            yield prefix + key, str(text)


def whole(numbers: Iterable[float]) -> str:
    """In full, without decimals."""
    all_ = tuple(numbers)
    return " ".join(["%.0f"] * len(all_)) % all_


def policy(style: str, script: str) -> str:
    """What the page may do: show its own images, run this script, nothing else."""

    def allowed(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    return (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {allowed(style)}; script-src {allowed(script)}"
    )


def choices(shown: Sequence[Shown]) -> dict[str, list[Any]]:
    """What can be filtered by, in the order in which the page has it."""
    rows = [row for s in shown for section in s.sections for row in section.rows]
    return {
        "variant": list(dict.fromkeys(row.variant for row in rows)),
        "hold": list(dict.fromkeys(row.cell.held for row in rows)),
        "tasks": sorted({row.cell.tasks for row in rows}),
    }


def render(shown: Sequence[Shown]) -> str:
    """The page."""
    index = index_of(shown)
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        human=summary.human,
        percent=summary.percent,
        ratio=summary.ratio_text,
        rate=rate_text,
        after=after,
        kind=kind,
        counted=counted,
        title=title,
        describe=stats.describe,
        cell=cell_name,
        hold=hold_of,
        flat=flat,
        caution=caution,
        whole=whole,
    )
    style, script = ((TEMPLATES / f"report.{x}").read_text() for x in ("css", "js"))
    report, why_not = compared(shown)
    page = env.get_template("report.html").render(
        shown=shown,
        report=report,
        why_not=why_not,
        matrices=matrices(report) if report else [],
        few=few(report) if report else [],
        places=lambda item: places(item, index),
        choices=choices(shown),
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
    )
    # Half a surrogate pair is a string in JSON, and no text.
    return re.sub("[\ud800-\udfff]", "?", page)


def draw_missing(folder: Path) -> None:
    """The figures that its sweep left out, into the folder."""
    records = store.load(folder)
    host = load_host(folder / "host.json")
    try:
        plans = [r["plan"] for r in records if r["type"] == "plan"]
        results = judge(records, plans[0].get("baseline", "") if plans else "")
        kernel = f"kernel {host['kernel']['release']} ({host['kernel']['preset']})"
        place = Place(f"{machine(host, host['cpu']['pus'] or 0)}, {kernel}")
        drawn = svgs(folder)
        found = find(results, by_cell(records), place)
    except BAD_ROW as e:
        raise damaged(folder, e) from e
    draw_all(folder, [one for one in found if one.name not in drawn])


def report(
    folders: Sequence[Path], out: Path | None = None, all_figures: bool = False
) -> int:
    """./run.py report: writes the page (DIR/report.html) and says where it is."""
    if all_figures:
        for path in folders:
            draw_missing(path)
    shown = [show(path, f"f{n}") for n, path in enumerate(folders)]
    target = out or folders[0] / "report.html"
    if target.is_dir():
        raise Problem(USAGE, f"--out {target}: a folder; name a file")
    store.write_whole(target, render(shown))
    print(f"Report in {target}")
    return DONE
