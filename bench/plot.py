# SPDX-License-Identifier: GPL-2.0-only
"""The figures: from series of numbers to a data file and two pictures."""

import math
from dataclasses import dataclass
from pathlib import Path

from bench import looks
from bench.figure import WIDE, Page, Row, Sheet, Text, write
from bench.looks import CHAR, Axis
from bench.problem import COULD_NOT, Problem

Value = float | None
Point = tuple[float, Value, Value, Value]

LINE = 16.0  # pixels from one name beside the plot to the next
BEYOND = "An interval that ends at the frame goes on beyond it."


@dataclass(frozen=True)
class Series:
    """A line: (x, y, low, high) each; y None breaks it, low None has no interval."""

    name: str
    points: list[Point]


@dataclass(frozen=True)
class Mark:
    """A labelled vertical line, such as the last number of tasks in one package."""

    x: float
    label: str


@dataclass(frozen=True)
class Titles:
    """What is above the plot; `baseline` is what ratios are taken to."""

    title: str
    subtitle: str = ""
    baseline: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of line figure: the words at its axes, and what its values are."""

    xlabel: str
    ylabel: str
    values: str  # rate, ratio


KINDS = {
    "rate-vs-tasks": Kind("tasks", "{unit}operations a second", "rate"),
    "ratio-vs-tasks": Kind("tasks", "rate, compared with {baseline}", "ratio"),
}


def place_marks(marks: list[Mark], axis: Axis) -> list[Row]:
    """Joins marks of one place and stacks labels that would touch: (x, row, label)."""
    labels: dict[float, str] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        if axis.low <= mark.x <= axis.high:
            old = labels.get(mark.x)
            labels[mark.x] = f"{old}, {mark.label}" if old else mark.label
    ends: list[float] = []
    rows: list[Row] = []
    for x, label in labels.items():
        centre, half = axis.fraction(x) * WIDE, (len(label) + 2) * CHAR / 2
        row = next((r for r, e in enumerate(ends) if centre - half >= e), len(ends))
        ends[row : row + 1] = [centre + half]
        rows.append((x, row, label))
    return rows


def reach(points: list[Point], floor: float) -> tuple[float, float]:
    """The least and most that the axis of the values should show, `floor` included.

    Intervals count, but not where they would leave the values less than half of
    the plot: the frame then cuts them.
    """
    values = [y for _, y, _, _ in points if y is not None] + [floor]
    low, high = min(values), max(values)
    room = max(0.5 * (high - low), 0.05 * abs(high))
    lows = [p[2] for p in points if p[2] is not None] + [low]
    highs = [p[3] for p in points if p[3] is not None] + [high]
    return max(min(lows), low - room), min(max(highs), high + room)


def value_axis(kind: Kind, points: list[Point]) -> tuple[Axis, float, str]:
    """The axis of the values, the unit of its numbers, and the unit's name."""
    if kind.values == "ratio":
        low, high = reach([logs(point) for point in points], 0.0)
        return looks.ratios(math.exp(low), math.exp(high)), 1.0, ""
    _, high = reach(points, 0.0)
    unit, word = looks.prefixed(high)
    return looks.linear(0.0, 1.05 * high or 1.0, unit), unit, word


def logs(point: Point) -> Point:
    """A point with the logarithms of its value and interval."""
    x, *values = point
    y, low, high = (math.log(v) if v else None for v in values)
    return x, y, low, high


def shifts(count: int, axis: Axis, places: list[float]) -> list[float]:
    """How far each series is moved sideways so that intervals do not hide others."""
    across = [axis.fraction(x) * WIDE for x in places]
    least = min(b - a for a, b in zip(across, across[1:]))
    pixel = min(14.0, 0.5 * least) / max(1, count - 1)
    moves = [(i - (count - 1) / 2) * pixel / WIDE for i in range(count)]
    if axis.log:
        return [(axis.high / axis.low) ** move for move in moves]
    return [(axis.high - axis.low) * move for move in moves]


def lines(
    series: list[Series],
    places: list[float],
    values: Axis,
    marks: list[Mark],
    heads: list[tuple[str, float]],
    page: Page,
    sheet: Sheet,
) -> None:
    """Lays out a line a series, with the names to the right, where the lines end."""
    log = places[0] > 0 and places[-1] >= 8 * places[0]
    across = looks.measured(places, log, WIDE)
    page.right = 76 + CHAR * max(len(one.name) for one in series)
    page.high = max(page.high, LINE * len(series))
    placed = place_marks(marks, across)
    page.above = LINE * (1 + max((row for _, row, _ in placed), default=-1))
    sheet.page(page, page.titles(heads))
    sheet.axis("x", across)
    sheet.axis("y", values)
    sheet.add(
        "marks",
        "x height label",
        [(x, page.up(page.high + 10 + LINE * row), label) for x, row, label in placed],
    )
    ends = [[p for p in one.points if p[1] is not None][-1] for one in series]
    tops = [values.clip(p[1] or 0.0) for p in ends]
    wanted = [values.fraction(y) * page.high for y in tops]
    labels = looks.spread(wanted, LINE, LINE / 2, page.high - LINE / 2)
    moves = shifts(len(series), across, places)
    rows: list[Row] = []
    for one, end, y, label, move in zip(series, ends, tops, labels, moves):
        x = end[0] * move if across.log else end[0] + move
        rows.append((*described(one.name), move, x, y, page.up(label)))
    sheet.add("series", "name colour dash mark shift endx endy height", rows)


def dots(
    series: list[Series],
    values: Axis,
    unit: float,
    heads: list[tuple[str, float]],
    page: Page,
    sheet: Sheet,
) -> None:
    """Lays out a row a series, best on top, with the numbers to the right."""
    order = sorted(series, key=lambda one: value_of(one)[1] or 0.0)
    page.left = 24 + CHAR * max(len(one.name) for one in series)
    page.high = max(72.0, 24.0 * len(series))
    numbers = [number(value_of(one), unit, values.log > 0) for one in series]
    page.right = 24 + CHAR * max(len(text) for text in numbers)
    texts = page.titles(heads)
    rows: list[Row] = []
    for one, text in zip(series, numbers):
        rank = order.index(one)
        middle = (rank + 0.5) * page.high / len(series)
        texts.append(Text(text, 12.0, page.left + WIDE + 14, page.above + page.high - middle))
        rows.append((*described(one.name), 0, 0, rank, page.up(middle)))
    sheet.page(page, texts)
    sheet.axis("x", values)
    names = [(float(rank), one.name) for rank, one in enumerate(order)]
    sheet.axis("y", Axis(-0.5, len(series) - 0.5, 0, names))
    sheet.add("marks", "", [])
    sheet.add("series", "name colour dash mark shift endx endy height", rows)


def described(name: str) -> Row:
    """A name with its look, as the table of series begins."""
    style = looks.look(name)
    return name, style.colour, style.dash, style.mark


def value_of(one: Series) -> Point:
    """The one point of a series that has a value."""
    return next(p for p in one.points if p[1] is not None)


def number(point: Point, unit: float, ratio: bool) -> str:
    """A value and its interval in words."""
    _, value, low, high = point
    if ratio:
        shown = [f"{100 * (v - 1):+.1f}%" for v in (value, low, high) if v is not None]
    else:
        shown = [f"{v / unit:.4g}" for v in (value, low, high) if v is not None]
    return shown[0] + (f"  ({shown[1]} to {shown[2]})" if len(shown) == 3 else "")


def draw(
    kind: str, base: Path, series: list[Series], titles: Titles, marks: list[Mark]
) -> list[Path]:
    """Writes base.dat, base.png and base.svg and returns them.

    A series without any value is not drawn. When none has one, or gnuplot is
    missing or fails, a Problem says so and nothing is written.
    """
    shape, page, sheet = KINDS[kind], Page(), Sheet()
    shown = [one for one in series if any(p[1] is not None for p in one.points)]
    if not shown:
        raise Problem(COULD_NOT, f"figure {base.name}: nothing was measured for it")
    points = [p for one in shown for p in one.points if p[1] is not None]
    values, unit, word = value_axis(shape, points)
    ylabel = shape.ylabel.format(unit=word, baseline=titles.baseline)
    heads = [(titles.title, 16.0), (titles.subtitle, 12.0)]
    if any((p[2] or values.low) < values.low or (p[3] or 0) > values.high for p in points):
        heads.append((BEYOND, 12.0))
    places = sorted({p[0] for p in points})
    if len(places) == 1:
        xlabel = f"{ylabel}, {looks.short(places[0])} {shape.xlabel}"
        dots(shown, values, unit, heads, page, sheet)
        sheet.settings |= {"xlabel": xlabel, "ylabel": "", "dots": 1}
    else:
        lines(shown, places, values, marks, heads, page, sheet)
        sheet.settings |= {"xlabel": shape.xlabel, "ylabel": ylabel, "dots": 0}
    for place, one in enumerate(shown, 1):
        sheet.tables.append((f"series {place}", "x y low high", list(one.points)))
    return write(kind, base, sheet)
