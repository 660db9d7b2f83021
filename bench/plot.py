# SPDX-License-Identifier: GPL-2.0-only
"""The figures: from series of numbers to a data file and two pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import looks
from bench.figure import FAR, WIDE, Page, Row, Sheet, Text, write
from bench.looks import CHAR, Axis, Look
from bench.problem import COULD_NOT, Problem

Value = float | None
Point = tuple[float, Value, Value, Value]

LINE = 16.0  # pixels from one name beside the plot to the next
STEEP = 30.0  # rates further apart than this are drawn on a logarithmic axis
BEYOND = "An interval that ends at the frame goes on beyond it."
UNKNOWN = "Where no interval is drawn, none is known."
WIDEST = 1e4  # its ends over each other, of an interval whose numbers are worth reading


@dataclass(frozen=True)
class Series:
    """A line: (x, y, low, high) each; y None breaks it, low None has no interval."""

    name: str
    points: list[Point]
    note: str = ""  # what the legend has to say beside the name
    look: Look | None = None  # where it is not the name's

    @property
    def label(self) -> str:
        """As it stands in the legend."""
        return f"{self.name} ({self.note})" if self.note else self.name


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
    """A kind of line figure: the words at its axes and what is along them."""

    xlabel: str
    ylabel: str  # {unit}: million and so on; {baseline}: what it is compared with
    one: str  # how the single place is called when there is but one
    values: str  # rate, ratio, time (seconds) or share (0..1)
    across: str = "counts"  # log: always logarithmic; holds: looks.apart(); rank
    variants: bool = True  # whether the series are variants


KINDS = {
    "rate-vs-tasks": Kind("tasks", "{unit}operations a second", "{x} tasks", "rate"),
    "ratio-vs-tasks": Kind(
        "tasks", "rate, compared with {baseline}", "{x} tasks", "ratio"
    ),
    "ratio-vs-hold": Kind(
        "descriptors held (logarithmic; close ones are drawn apart)",
        "rate, compared with {baseline}",
        "{x} descriptors held",
        "ratio",
        "holds",
    ),
    "fairness": Kind(
        "tasks, from the least busy to the busiest",
        "{unit}operations a second of a task",
        "one task",
        "rate",
        "rank",
    ),
    "doublings": Kind(
        "descriptors after the doubling (logarithmic)",
        "time of the doubling (logarithmic)",
        "to {x} descriptors",
        "time",
        "log",
        variants=False,
    ),
    "churn": Kind(
        "turns N (logarithmic)",
        "time of N turns (logarithmic)",
        "{x} turns",
        "time",
        "log",
    ),
    "churn-ratio": Kind(
        "turns N (logarithmic)",
        "turns a second, compared with {baseline}",
        "{x} turns",
        "ratio",
        "log",
    ),
    "power": Kind(
        "measuring time (s, logarithmic)",
        "power: how often the effect is found",
        "{x} s of measuring",
        "share",
        "log",
        variants=False,
    ),
}


def place_marks(marks: Sequence[Mark], axis: Axis) -> list[tuple[float, int, str]]:
    """Joins marks of one place and stacks labels that would touch: (x, row, label)."""
    labels: dict[float, str] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        if axis.low <= mark.x <= axis.high:
            old = labels.get(mark.x)
            labels[mark.x] = f"{old}, {mark.label}" if old else mark.label
    ends: list[float] = []
    rows = []
    for x, label in labels.items():
        centre, half = axis.fraction(x) * WIDE, (len(label) + 2) * CHAR / 2
        row = next((r for r, e in enumerate(ends) if centre - half >= e), len(ends))
        ends[row : row + 1] = [centre + half]
        rows.append((x, row, label))
    return rows


def reach(points: list[Point], held: list[float]) -> tuple[float, float]:
    """The least and most that the axis of the values should show, `held` included.

    Intervals count, but not where they would leave the values less than half of
    the plot: the frame then cuts them.
    """
    values = [y for _, y, _, _ in points if y is not None] + held
    low, high = min(values), max(values)
    room = max(0.5 * (high - low), 0.05 * abs(high))
    lows = [p[2] for p in points if p[2] is not None] + [low]
    highs = [p[3] for p in points if p[3] is not None] + [high]
    return max(min(lows), low - room), min(max(highs), high + room)


def value_axis(values: str, points: list[Point]) -> tuple[Axis, float, str]:
    """The axis of the values, the unit of its numbers, and the unit's name."""
    if values == "ratio":
        low, high = reach([logs(point) for point in points], [0.0])
        return looks.ratios(math.exp(low), math.exp(high)), 1.0, ""
    if values == "time":
        low, high = reach([logs(point) for point in points], [])
        return looks.times(math.exp(low), math.exp(high)), 1.0, ""
    if values == "share":
        ticks = [(i / 5, f"{20 * i}%") for i in range(6)]
        return Axis(0.0, 1.04, 0, ticks), 1.0, ""
    rates = [y for _, y, _, _ in points if y is not None]
    bounds = [v for _, *ends in points for v in ends if v is not None]
    if min(bounds) > 0 and max(rates) > STEEP * min(rates):
        low, high = (math.exp(v) for v in reach([logs(p) for p in points], []))
        unit, word = looks.prefixed(high)
        axis = looks.times(low, high, label=lambda v: f"{v / unit:.3g}")
        return axis, unit, word
    _, high = reach(points, [0.0])
    unit, word = looks.prefixed(high)
    axis = looks.linear(0.0, 1.05 * high or 1.0, label=lambda v: f"{v / unit:.6g}")
    return axis, unit, word


def logs(point: Point) -> Point:
    """A point with the logarithms of its value and interval, which are above 0."""
    x, *values = point
    y, low, high = (None if v is None else math.log(v) for v in values)
    return x, y, low, high


def cleaned(one: Series, positive: bool) -> Series:
    """The series without what can't be drawn, sorted by x.

    That is values that are no number, and where a logarithm is taken values of 0
    or less; an interval that reaches there goes on without an end.
    """
    points: list[Point] = []
    for x, y, low, high in sorted(one.points, key=lambda point: point[0]):
        if y is None or not math.isfinite(y) or (positive and y <= 0):
            y = None
        if y is None or low is None or high is None or low != low or high != high:
            low = high = None
        elif positive:
            low = max(low, 1 / FAR)
        points.append((x, y, low, high))
    return replace(one, points=points)


def across_axis(across: str, places: list[float]) -> tuple[Axis, list[float]]:
    """The axis along which series run, and where on it the places are drawn."""
    if across == "rank":
        return looks.linear(0.5, places[-1] + 0.5, least=1.0, most=12), places
    if across == "holds":
        return looks.apart(places, WIDE)
    log = across == "log" or places[-1] >= 8 * places[0]
    return looks.measured(places, log and places[0] > 0, WIDE), places


def shifts(count: int, axis: Axis, places: list[float]) -> list[float]:
    """How far each series is moved sideways so that intervals do not hide others."""
    across = [axis.fraction(x) * WIDE for x in places]
    least = min(b - a for a, b in zip(across, across[1:]))
    pixel = min(3.0, 14.0 / count, 0.5 * least / count)
    moves = [(i - (count - 1) / 2) * pixel / WIDE for i in range(count)]
    if axis.log:
        return [(axis.high / axis.low) ** move for move in moves]
    return [(axis.high - axis.low) * move for move in moves]


def measured(one: Series) -> list[Point]:
    """The points that have a value."""
    return [p for p in one.points if p[1] is not None]


def number(point: Point, values: str, unit: float) -> str:
    """A value and its interval in words."""
    _, y, low, high = point
    if y and low is not None and high is not None and high > WIDEST * max(low, 0.0):
        return number((*point[:2], None, None), values, unit) + "  (tells nothing)"
    shown = []
    for value in point[1:]:
        if value is None:
            continue
        if values == "ratio" and 0.4 < value < 2.6:
            shown.append(f"{100 * (value - 1):+.1f}%")
        elif values == "ratio":
            shown.append(f"{value:.3g}x" if value < 100 else f"{value:.0f}x")
        elif values == "time":
            shown.append(looks.time(value))
        elif values == "share":
            shown.append(f"{100 * value:.1f}%")
        else:
            shown.append(f"{value / unit:#.4g}".rstrip("."))
    return shown[0] + (f"  ({shown[1]} to {shown[2]})" if len(shown) == 3 else "")


class Lines:
    """A line figure on its way to paper."""

    def __init__(
        self, kind: Kind, series: list[Series], titles: Titles, missing: list[str]
    ) -> None:
        self.kind, self.series = kind, series
        self.page, self.sheet = Page(), Sheet()
        points = [point for one in series for point in measured(one)]
        self.places = sorted({point[0] for point in points})
        self.values, self.unit, word = value_axis(kind.values, points)
        self.ylabel = kind.ylabel.format(unit=word, baseline=titles.baseline)
        if kind.values == "rate" and self.values.log:
            self.ylabel += " (logarithmic)"
        self.heads = [(titles.title, 16.0), (titles.subtitle, 12.0)]
        ends = [end for point in points for end in point[2:] if end is not None]
        if any(self.values.clip(end) != end for end in ends):
            self.heads.append((BEYOND, 12.0))
        intervals = kind.values != "share" and (ends or kind.across != "rank")
        if intervals and len(ends) < 2 * len(points):
            self.heads.append((UNKNOWN, 12.0))
        if missing:
            self.heads.append(("Nothing measured: " + ", ".join(missing), 12.0))

    def lay_out(self, marks: Sequence[Mark]) -> Sheet:
        """The data file: lines, or rows of dots where all points have one x."""
        if len(self.places) > 1:
            drawn = self.lines(marks)
        else:
            self.dots()
            drawn = {x: x for x in self.places}
        for place, one in enumerate(self.series, 1):
            rows: list[Row] = [(*p, drawn.get(p[0])) for p in one.points]
            self.sheet.tables.append((f"series {place}", "x y low high drawn", rows))
        return self.sheet

    def described(self) -> list[Row]:
        """The names with their looks, as the table of series begins."""
        rows: list[Row] = []
        for place, one in enumerate(self.series):
            style = one.look or looks.look(one.name)
            if not self.kind.variants and not looks.is_variant(one.name):
                style = looks.in_turn(place)
            rows.append((one.label, style.colour, style.dash, style.mark))
        return rows

    def lines(self, marks: Sequence[Mark]) -> dict[float, float]:
        """A line a series, with the names to the right; where each x is drawn."""
        page, sheet, values = self.page, self.sheet, self.values
        across, places = across_axis(self.kind.across, self.places)
        drawn = dict(zip(self.places, places))
        page.right = 76 + CHAR * max(len(one.label) for one in self.series)
        page.high = max(page.high, LINE * len(self.series), CHAR * len(self.ylabel))
        placed = place_marks(marks, across)
        page.above = LINE * (1 + max((row for _, row, _ in placed), default=-1))
        sheet.page(page, page.titles(self.heads))
        sheet.axis("x", across)
        sheet.axis("y", values)
        tops: list[Row] = [
            (x, page.up(page.high + 10 + LINE * row), label) for x, row, label in placed
        ]
        sheet.add("marks", "x height label", tops)
        ends = [(drawn[x], values.clip(y)) for x, y in map(last, self.series)]
        wanted = [values.fraction(y) * page.high for _, y in ends]
        labels = looks.spread(wanted, LINE, LINE / 2, page.high - LINE / 2)
        moves = shifts(len(ends), across, places)
        rows: list[Row] = []
        for row, (x, y), label, move in zip(self.described(), ends, labels, moves):
            x = x * move if across.log else x + move
            rows.append((*row, move, x, y, page.up(label)))
        sheet.add("series", "name colour dash mark shift endx endy height", rows)
        sheet.settings |= {"xlabel": self.kind.xlabel, "ylabel": self.ylabel}
        none = self.kind.across == "holds" and self.places[0] == 0
        sheet.settings |= {"names": 1, "none": int(none)}
        sheet.settings["every"] = 1 + len(self.places) // 40
        return drawn

    def dots(self) -> None:
        """A row a series, best on top, with the numbers to the right."""
        page, sheet, series = self.page, self.sheet, self.series
        values = self.values
        order = sorted(series, key=lambda one: last(one)[1])
        if self.kind.values == "time":
            order.reverse()
            _, high = reach([p for one in series for p in measured(one)], [0.0])
            values = looks.linear(0.0, 1.05 * high, label=looks.time)
        numbers = [number(measured(o)[-1], self.kind.values, self.unit) for o in series]
        page.left = 24 + CHAR * max(len(one.label) for one in series)
        page.right = 24 + CHAR * max(len(text) for text in numbers)
        page.high = max(72.0, 24.0 * len(series))
        texts = page.titles(self.heads)
        rows: list[Row] = []
        for one, row, text in zip(series, self.described(), numbers):
            rank = order.index(one)
            up = (rank + 0.5) * page.high / len(series)
            right, down = page.left + WIDE + 14, page.above + page.high - up
            texts.append(Text(text, 12.0, right, down))
            rows.append((*row, 0, 0, rank, page.up(up)))
        sheet.page(page, texts)
        sheet.axis("x", values)
        names = [(float(rank), one.label) for rank, one in enumerate(order)]
        sheet.axis("y", Axis(-0.5, len(series) - 0.5, 0, names))
        sheet.add("marks", "x height label", [])
        sheet.add("series", "name colour dash mark shift endx endy height", rows)
        place = self.kind.one.format(x=looks.short(self.places[0]))
        if self.places[0] == 1:
            place = place.removesuffix("s")
        sheet.settings |= {"xlabel": f"{self.ylabel}, {place}", "ylabel": ""}
        sheet.settings |= {"names": 0, "none": 0, "every": 1}


def last(one: Series) -> tuple[float, float]:
    """Where the line of a series ends."""
    x, y, _, _ = measured(one)[-1]
    return x, y or 0.0


def draw(
    kind: str,
    base: Path,
    series: Sequence[Series],
    titles: Titles,
    marks: Sequence[Mark] = (),
) -> list[Path]:
    """Writes base.dat, base.png and base.svg and returns them; `kind` is of KINDS.

    A series without any value is named, not drawn. When none has one, or gnuplot
    is missing or fails, a Problem says so and nothing is written.
    """
    logarithm = KINDS[kind].values in ("ratio", "time")
    clean = [cleaned(one, logarithm) for one in series]
    shown = [one for one in clean if measured(one)]
    if not shown:
        raise Problem(COULD_NOT, f"figure {base.name}: nothing was measured for it")
    missing = [one.name for one in clean if not measured(one)]
    return write(kind, base, Lines(KINDS[kind], shown, titles, missing).lay_out(marks))
