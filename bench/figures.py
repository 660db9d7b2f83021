# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a results folder: which there are, and what is in each.

A figure is there where the results have what it shows: no curve from one place, no
winner of one variant. What a curve shows is not drawn again at each of its places.
Of those that look into a cell, a sweep draws the most telling; `report --figures` all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench import charts, figures_cells, plot
from bench.figures_cells import Runs, in_map
from bench.judge import CLONE, CellResult, groups
from bench.looks import in_turn, safe_name
from bench.plan import Cell
from bench.plot import Series, Titles
from bench.stats import Interval

LEAST_SIZES = 3  # that are held, for a curve over them beside those over tasks
LEAST_TASKS = 4  # whose rates are worth a figure; of fewer the table has the shares
# The option that a workload's figures run along.
ALONG = {"dup2-churn": "turns", "growth": "doublings"}

Placed = list[tuple[float, CellResult]]  # cells, with where they stand on an axis
Draw = Callable[[Path], list[Path]]  # what is given is the base of the files' names


@dataclass(frozen=True)
class Figure:
    """One figure: the name of its files, what it is of, and how it is drawn."""

    name: str
    kind: str
    section: Cell  # the workload, backend, mode and placement that it belongs to
    caption: str
    draw: Draw
    trouble: Callable[[], float] | None = None  # to be seen inside of a cell, if it is


@dataclass(frozen=True)
class Place:
    """What is said of where the numbers come from."""

    host: str = ""
    sizes: Sequence[Mapping[str, Any]] = ()  # what fills up, at how many tasks


@cache
def section(cell: Cell) -> Cell:
    """What the cells that stand together in a report have in common."""
    return replace(cell, hold="", hold_top=0, tasks=0, table_size=0)


def family(cell: Cell) -> Cell:
    """The same, whatever the option is that the workload's figures run along."""
    kept = tuple(o for o in cell.options if o[0] != ALONG.get(cell.workload))
    return replace(section(cell), options=kept)


def unit(cell: Cell) -> str:
    """So many threads or processes."""
    one = {"threads": "thread", "processes": "process"}
    return f"{cell.tasks} {one[cell.mode] if cell.tasks == 1 else cell.mode}"


def words(cell: Cell) -> list[str]:
    """What is said of a cell, or of what several have in common, in order."""
    size = [f"{cell.table_size} slots"] if cell.table_size else []
    hold = [f"hold {cell.held}"] if cell.hold else []
    return [
        *(cell.name(), cell.backend, *hold, unit(cell) if cell.tasks else cell.mode),
        *(f"placement {cell.place}", *size),
    ]


def name(kind: str, cell: Cell, *more: str) -> str:
    """Of the files: it says what is in them."""
    plain = [w.removeprefix("hold ").removeprefix("placement ") for w in words(cell)]
    return safe_name(kind, *plain, *more)


def variants(cells: Iterable[CellResult]) -> list[str]:
    """In the order in which they were asked for; no clones."""
    names = dict.fromkeys(v for r in cells for v in r.variants)
    return [v for v in names if CLONE not in v]


def compared(cells: Iterable[CellResult]) -> bool:
    """Whether anything but a clone has a ratio."""
    return any(r.variants[v].ratio for r in cells for v in r.variants if CLONE not in v)


def point(x: float, interval: Interval) -> plot.Point:
    """A point with its interval, where there is one."""
    low = interval.low if interval.known else None
    high = interval.high if interval.known else None
    return (x, interval.estimate, low, high)


def conformance(cells: Iterable[CellResult], variant: str) -> str:
    """Nothing, or that and why a variant does not conform."""
    return next(
        (r.nonconforming[variant] for r in cells if variant in r.nonconforming), ""
    )


def rates(placed: Placed) -> list[Series]:
    """A line a variant."""
    cells = [r for _, r in placed]
    return [
        Series(
            v,
            [point(x, r.variants[v].rate) for x, r in placed if v in r.variants],
            conformance(cells, v),
        )
        for v in variants(cells)
    ]


def ratios(placed: Placed) -> list[Series]:
    """A line a variant but the baseline."""
    found = []
    cells = [r for _, r in placed]
    for v in variants(cells):
        judged = [(x, r.variants[v].ratio) for x, r in placed if v in r.variants]
        points = [point(x, ratio) for x, ratio in judged if ratio]
        if points:
            found.append(Series(v, points, conformance(cells, v)))
    return found


def times(placed: Placed, per_turn: bool = False) -> list[Series]:
    """A line a variant: how long a task takes for what is at x, or for x turns."""
    tasks = {x: r.cell.tasks for x, r in placed}

    def time(point: plot.Point) -> plot.Point:
        x, y, low, high = point
        work = tasks[x] * (x if per_turn else 1)
        y, low, high = (work / v if v else None for v in (y, high, low))
        return (x, y, low, high)

    return [Series(s.name, list(map(time, s.points)), s.note) for s in rates(placed)]


class Finder:
    """Looks through results for what can be drawn."""

    def __init__(self, results: list[CellResult], runs: Runs, place: Place) -> None:
        self.results = [r for r in results if r.variants]
        self.runs = runs
        self.place = place
        self.figures: list[Figure] = []
        self.shown: set[Cell] = set()  # by a curve over something else than tasks
        seen: dict[Cell, int] = {}
        for r in self.results:
            cell = replace(r.cell, table_size=0)
            seen[cell] = seen.get(cell, 0) + 1
        # Where one hold has tables of several sizes, the size is what was asked for.
        self.sized = {section(cell) for cell, n in seen.items() if n > 1}

    def across(self, cell: Cell) -> Cell:
        """What the cells of all holds and tasks have in common."""
        size = cell.table_size if section(cell) in self.sized else 0
        return replace(section(cell), table_size=size)

    def gathered(self, key: Callable[[Cell], Cell]) -> dict[Cell, list[CellResult]]:
        """The cells of each key."""
        found: dict[Cell, list[CellResult]] = {}
        for result in self.results:
            found.setdefault(key(result.cell), []).append(result)
        return found

    def add(
        self,
        kind: str,
        head: Cell,
        caption: str,
        first: CellResult,
        draw: Draw,
        trouble: Callable[[], float] | None = None,
    ) -> None:
        """One figure more; head has what is the same in all of it."""
        where = section(first.cell)
        self.figures.append(
            Figure(name(kind, head), kind, where, caption, draw, trouble)
        )

    def lines(
        self,
        kind: str,
        head: Cell,
        placed: Placed,
        series: Callable[[Placed], list[Series]],
        marks: Sequence[plot.Mark] = (),
    ) -> Draw:
        """Draws lines; they are computed when they are drawn."""
        said = ", ".join(words(head))
        titles = Titles(said, self.place.host, placed[0][1].baseline)
        return lambda base: plot.draw(kind, base, series(placed), titles, marks)

    def marks(self, placed: Placed) -> list[plot.Mark]:
        """Where a package, a node, the cores are full, within what was measured.

        Of what fills up at one number of tasks, the largest is named.
        """
        most = max(tasks for tasks, _ in placed)
        return [
            plot.Mark(float(s["tasks"]), str(s["what"]).split(", ")[-1])
            for s in self.place.sizes
            if 1 < s["tasks"] <= most
        ]

    def of_one_variant(self) -> set[Cell]:
        """Rates against tasks, a line a hold: where there is but one variant. Returns
        the sections that are shown so."""
        shown = set()
        for across, cells in self.gathered(self.across).items():
            held: dict[str, Placed] = {}
            for r in cells:
                held.setdefault(r.cell.held, []).append((float(r.cell.tasks), r))
            names = variants(cells)
            if len(names) > 1 or len(held) < 2 or max(map(len, held.values())) < 2:
                continue
            placed = [one for line in held.values() for one in line]
            said = f"{names[0]}: {', '.join(words(across))}"
            titles = Titles(said, self.place.host)
            draw = partial(self.draw_held, held, titles, self.marks(placed))
            caption = f"{names[0]}: operations a second against tasks"
            self.add("rate", across, caption, cells[0], draw)
            shown.add(across)
        return shown

    def draw_held(
        self,
        held: dict[str, Placed],
        titles: Titles,
        marks: Sequence[plot.Mark],
        base: Path,
    ) -> list[Path]:
        """From cells of one variant to a line a hold."""
        series = [
            replace(line, name=f"hold {hold}", look=in_turn(n))
            for n, (hold, placed) in enumerate(held.items())
            for line in rates(placed)
        ]
        return plot.draw("rate-vs-tasks", base, series, titles, marks)

    def against_tasks(self) -> None:
        """Rates and ratios of each workload and hold. At one number of tasks there
        are dots for the ratios, where no curve shows them."""
        one_variant = self.of_one_variant()
        for group, cells in groups(self.results).items():
            first = cells[0]
            if self.across(first.cell) in one_variant:
                continue
            head = replace(group, table_size=self.across(group).table_size)
            placed: Placed = [(float(r.cell.tasks), r) for r in cells]
            along = "against tasks"
            kinds = []
            if len(cells) > 1:
                kinds.append(("rate", "operations a second", rates))
            elif first.cell in self.shown:
                continue
            else:
                head = replace(head, tasks=first.cell.tasks)
                along = f"of {unit(first.cell)}"
            if compared(cells):
                kinds.append(("ratio", "ratio to the baseline", ratios))
            for kind, what, series in kinds:
                draw = self.lines(
                    f"{kind}-vs-tasks", head, placed, series, self.marks(placed)
                )
                caption = f"hold {group.held}: {what} {along}"
                self.add(kind, head, caption, first, draw)

    def against_hold(self) -> None:
        """Ratios against what is held, at the fewest tasks and at the most."""
        for across, cells in self.gathered(self.across).items():
            counts = [r.cell.tasks for r in cells]
            ends = sorted({min(counts), max(counts)})
            least = LEAST_SIZES if len(ends) > 1 else 2
            for tasks in ends:
                placed = [
                    (float(match.group(1) or 0), r)
                    for r in cells
                    if r.cell.tasks == tasks
                    if (match := re.fullmatch(r"none|low:([0-9]+)", r.cell.hold))
                ]
                alike = [r for _, r in placed]
                if len(placed) < least or not compared(alike):
                    continue
                self.shown |= {r.cell for r in alike}
                head = replace(across, tasks=tasks)
                draw = self.lines("ratio-vs-hold", head, placed, ratios)
                caption = f"{unit(head)}: ratio to the baseline against what is held"
                self.add("ratio-vs-hold", head, caption, alike[0], draw)

    def maps(self) -> None:
        """Who wins where, of at least two tasks, holds and variants."""
        for across, cells in self.gathered(self.across).items():
            fit = [r for r in cells if len(in_map(r)) > 1]
            holds, tasks = {r.cell.held for r in fit}, {r.cell.tasks for r in fit}
            if min(len(holds), len(tasks)) > 1:
                caption = "the fastest variant by tasks and hold, and by how much"
                draw = partial(self.draw_map, across, fit)
                self.add("map", across, caption, fit[0], draw)

    def draw_map(self, head: Cell, cells: list[CellResult], base: Path) -> list[Path]:
        """From runs to a map."""
        squares = [figures_cells.map_cell(r, self.runs[r.cell]) for r in cells]
        out = [v for v in variants(cells) if conformance(cells, v)]
        said = f"The fastest variant: {', '.join(words(head))}"
        titles = Titles(said, self.place.host)
        return charts.draw_map(base, squares, titles, left_out=out)

    def along(self, workload: str) -> dict[Cell, Placed]:
        """The cells of families that have several places along their option."""
        found = {}
        families = self.gathered(lambda cell: replace(family(cell), tasks=cell.tasks))
        for head, cells in families.items():
            option = ALONG[workload]
            placed = [
                (float(dict(r.cell.options)[option]), r)
                for r in cells
                if head.workload == workload and option in dict(r.cell.options)
            ]
            if len(placed) > 1:
                found[head] = sorted(placed, key=lambda one: one[0])
        return found

    def churn(self) -> None:
        """The 2015 loop against its turns: how long they take, and ratios."""
        for head, placed in self.along("dup2-churn").items():
            first = placed[0][1]
            self.shown |= {r.cell for _, r in placed}
            draw = self.lines("churn", head, placed, partial(times, per_turn=True))
            caption = f"{unit(head)}: time of all turns against their number"
            self.add("churn", head, caption, first, draw)
            if compared(r for _, r in placed):
                draw = self.lines("churn-ratio", head, placed, ratios)
                caption = f"{unit(head)}: ratio to the baseline against the turns"
                self.add("churn-ratio", head, caption, first, draw)

    def doublings(self) -> None:
        """The time of each doubling: a line a variant, or where the table grew in
        several ways, a figure a variant and a line a way."""
        found: dict[Cell, dict[str, Placed]] = {}
        for head, placed in self.along("growth").items():
            if ("of", "all") in head.options:
                continue
            self.shown |= {r.cell for _, r in placed}
            rest = tuple(o for o in head.options if o[0] not in ("beside", "pregrown"))
            way = ", ".join(WAYS[o] for o in head.options if o in WAYS) or "alone"
            sized: Placed = [(64 * 2**doublings, r) for doublings, r in placed]
            found.setdefault(replace(head, options=rest), {})[way] = sized
        for head, ways in found.items():
            placed = [one for sized in ways.values() for one in sized]
            caption = f"{unit(head)}: the time of each doubling"
            if len(ways) == 1:
                draw = self.lines("doublings", head, placed, times)
                self.add("doublings", head, caption, placed[0][1], draw)
                continue
            names = variants(r for _, r in placed)
            for one in names:
                draw = self.lines(
                    "doublings", head, placed, partial(in_ways, one, ways)
                )
                kind = f"doublings-{one}" if len(names) > 1 else "doublings"
                self.add(kind, head, f"{one}, {caption}", placed[0][1], draw)

    def of_cells(self) -> None:
        """Of each family, the windows of its least steady cell, and the tasks of its
        least fair one."""
        for head, cells in self.gathered(family).items():
            caption = "each window of the least steady cell, over time"
            draw = partial(self.draw_windows, cells)
            trouble = partial(self.most_unsteady, cells)
            self.add("windows", head, caption, cells[0], draw, trouble)
            shared = [r for r in cells if r.cell.tasks >= LEAST_TASKS]
            if shared:
                caption = "the rate of each task in the least fair cell, sorted"
                draw = partial(self.draw_fairness, shared)
                trouble = partial(most_unfair, shared)
                self.add("fairness", head, caption, shared[0], draw, trouble)

    def unsteady(self, result: CellResult) -> float:
        """How far a cell's windows spread."""
        return figures_cells.unsteady(result, self.runs[result.cell])

    def most_unsteady(self, cells: list[CellResult]) -> float:
        """The same of the least steady one."""
        return max(map(self.unsteady, cells))

    def draw_windows(self, cells: list[CellResult], base: Path) -> list[Path]:
        """From runs to windows."""
        worst = max(cells, key=self.unsteady)
        good = figures_cells.whole(self.runs[worst.cell])
        kept = figures_cells.thinned(good)
        shown, begins, odd = figures_cells.windows(kept)
        said = f"The least steady cell: {worst.cell}"
        if len(kept) < len(good):
            said += f"; {len(kept)} of its {len(good)} runs"
        shown = [Series(s.name, s.points, conformance([worst], s.name)) for s in shown]
        titles = Titles(said, self.place.host)
        return charts.draw_windows(base, shown, titles, begins, odd)

    def draw_fairness(self, cells: list[CellResult], base: Path) -> list[Path]:
        """From runs to tasks."""
        worst = max(cells, key=unfair)
        series = [
            Series(
                v,
                figures_cells.task_rates(self.runs[worst.cell], v),
                conformance([worst], v),
            )
            for v in variants([worst])
        ]
        titles = Titles(f"The least fair cell: {worst.cell}", self.place.host)
        return plot.draw("fairness", base, series, titles)


def unfair(result: CellResult) -> float:
    """How unlike a cell's tasks are; 0 when they are alike."""
    return 1 - min(j.fairness.jain for j in result.variants.values())


def most_unfair(cells: list[CellResult]) -> float:
    """The same of the least fair one."""
    return max(map(unfair, cells))


# Ways of growing, by the options of the workload.
WAYS = {
    ("beside", "thread"): "beside a thread",
    ("pregrown", "yes"): "grown beforehand",
}


def in_ways(variant: str, ways: Mapping[str, Placed], _: Placed) -> list[Series]:
    """A line a way of growing, of one variant."""
    return [
        Series(way, one.points)
        for way, placed in ways.items()
        for one in times(placed)
        if one.name == variant
    ]


def find(results: list[CellResult], runs: Runs, place: Place = Place()) -> list[Figure]:
    """All that can be drawn; nothing is drawn yet."""
    finder = Finder(results, runs, place)
    finder.maps()
    finder.against_hold()
    finder.churn()
    finder.doublings()
    finder.against_tasks()
    finder.of_cells()
    return finder.figures


def telling(found: Iterable[Figure]) -> list[Figure]:
    """Those that a sweep draws: of each kind that looks into a cell, the one with the
    most trouble a backend."""
    inside: dict[tuple[str, str], list[Figure]] = {}
    kept = []
    for one in found:
        if one.trouble:
            inside.setdefault((one.kind, one.section.backend), []).append(one)
        else:
            kept.append(one)

    def trouble(one: Figure) -> float:
        return one.trouble() if one.trouble else 0.0

    return kept + [max(alike, key=trouble) for alike in inside.values()]


def draw_all(folder: Path, found: Sequence[Figure]) -> None:
    """Every figure into folder/figures; two at a time, since gnuplot is slow."""
    base = folder / "figures"
    if found:
        base.mkdir(exist_ok=True)

    def draw(figure: Figure) -> list[Path]:
        return figure.draw(base / figure.name)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(draw, found))
