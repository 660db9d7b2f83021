# SPDX-License-Identifier: GPL-2.0-only
"""The figures that are not lines: the map, path length, and windows over time."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import looks
from bench.figure import WIDE, Page, Row, Sheet, Text, write
from bench.looks import CHAR, Axis
from bench.plot import LINE, Mark, Series, Titles, measured, place_marks
from bench.problem import COULD_NOT, Problem


@dataclass(frozen=True)
class Cell:
    """Who won at a number of tasks and a hold, by what ratio, and if that is sure.

    No winner: they were found to be the same.
    """

    tasks: int
    hold: str
    winner: str
    ratio: float
    sure: bool
    disturbed: bool = False


def tint(colour: str, share: float) -> str:
    """A colour mixed with white, `share` of it the colour."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - p)):02x}" for p in parts)


def gain(ratio: float) -> str:
    """By how much, in five characters or so."""
    if ratio >= 2:
        return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:.0f}x"
    digits = 1 if ratio < 1.0995 else 0
    return f"{100 * (ratio - 1):+.{digits}f}%"


def nothing(base: Path) -> Problem:
    """What to say when there is nothing to draw."""
    return Problem(COULD_NOT, f"figure {base.name}: nothing was measured for it")


def begin(
    page: Page, titles: Titles, sheet: Sheet, texts: list[Text], note: str = ""
) -> None:
    """Adds the titles above the plot and the texts beside it.

    Places of `texts` are from the upper left corner of the plot.
    """
    heads = [(titles.title, 16.0), (titles.subtitle, 12.0), (note, 12.0)]
    above = page.titles(heads)
    moved = [
        Text(one.text, one.size, page.left + one.x, page.above + one.y) for one in texts
    ]
    sheet.page(page, above + moved)


def draw_map(
    base: Path,
    cells: list[Cell],
    titles: Titles,
    columns: dict[int, str] | None = None,
    left_out: Sequence[str] = (),
) -> list[Path]:
    """Which variant wins at each number of tasks (across) and hold (up, as given).

    `columns` may give a number of tasks another name.
    A cell that is not sure is hatched; one that was not measured is blank. Those
    left out are named.
    """
    if not cells:
        raise nothing(base)
    tasks = sorted({cell.tasks for cell in cells})
    holds = list(dict.fromkeys(cell.hold for cell in cells))
    winners = sorted({cell.winner for cell in cells if cell.winner})
    page, sheet = Page(), Sheet()
    page.left = 44 + CHAR * max(len(hold) for hold in holds)
    page.right = 60 + CHAR * max(len(name) for name in [*winners, "inconclusive"])
    page.high = max(40.0 * len(holds), LINE * 1.5 * (len(winners) + 1))
    key = [Text(name, 12, WIDE + 52, 12 + 24 * i) for i, name in enumerate(winners)]
    key.append(Text("inconclusive", 12, WIDE + 52, 12 + 24.0 * len(winners)))
    note = "Colour and mark: the fastest. The number: by how much, to the next."
    if not all(cell.winner for cell in cells):
        note += " Grey: no difference."
    if any(cell.disturbed for cell in cells):
        note += " *: runs of the cell were disturbed."
    if left_out:
        note += f" Left out, since they do not conform: {', '.join(left_out)}."
    begin(page, titles, sheet, key, note)
    names = columns or {}
    across = [(float(i), names.get(n, str(n))) for i, n in enumerate(tasks)]
    sheet.axis("x", Axis(-0.5, len(tasks) - 0.5, 0, across))
    up = [(float(i), hold) for i, hold in enumerate(holds)]
    sheet.axis("y", Axis(-0.5, len(holds) - 0.5, 0, up))
    sheet.add("marks", "x height label", [])
    rows: list[Row] = []
    for i, name in enumerate(winners):
        style = looks.look(name)
        height = page.up(page.high - 12 - 24 * i)
        look = (name, style.colour, style.dash, style.mark)
        rows.append((*look, 0, 0, 0, height))
    sheet.add("series", "name colour dash mark shift endx endy height", rows)
    pale: list[Row] = [(tint(looks.look(name).colour, 0.4),) for name in winners]
    sheet.add("hatches", "colour", pale)
    squares: list[Row] = []
    for cell in cells:
        place = (tasks.index(cell.tasks), holds.index(cell.hold))
        series = winners.index(cell.winner) + 1 if cell.winner else 0
        winner = (series, int(cell.sure))
        said = (gain(cell.ratio) if cell.winner else "same") + " *" * cell.disturbed
        squares.append((*place, *winner, said, cell.ratio))
    sheet.add("cells", "across up series sure gain ratio", squares)
    xlabel, ylabel = ("", "") if names else ("tasks", "hold")
    sheet.settings |= {"xlabel": xlabel, "ylabel": ylabel, "names": 0}
    sheet.settings["unsure"] = page.up(page.high - 12 - 24 * len(winners))
    return write("map", base, sheet)


def draw_bars(
    base: Path,
    variants: list[str],
    parts: list[tuple[str, list[float]]],
    titles: Titles,
) -> list[Path]:
    """Instructions per operation: a bar a variant, a piece a function.

    `parts` are functions with their instructions for each of `variants`. Those that
    differ most come first, so that they are seen; beyond eight they are drawn together.
    """
    if not variants or not parts:
        raise nothing(base)
    parts = sorted(parts, key=lambda part: (min(part[1]) - max(part[1]), -sum(part[1])))
    if len(parts) > 8:
        rest = [sum(column) for column in zip(*(values for _, values in parts[7:]))]
        parts = [*parts[:7], (f"{len(parts) - 7} others", rest)]
    totals = [sum(values[i] for _, values in parts) for i in range(len(variants))]
    page, sheet = Page(), Sheet()
    page.left = 24 + CHAR * max(len(name) for name in variants)
    page.right = 64 + CHAR * max(len(name) for name, _ in parts)
    page.high = max(30.0 * len(variants), 24.0 * len(parts))
    key = [Text(name, 12, WIDE + 52, 12 + 24 * i) for i, (name, _) in enumerate(parts)]
    begin(page, titles, sheet, key)
    axis = looks.linear(0.0, 1.1 * max(totals) or 1.0)
    sheet.axis("x", axis)
    last = len(variants) - 1
    up = [(float(last - i), name) for i, name in enumerate(variants)]
    sheet.axis("y", Axis(-0.5, last + 0.5, 0, up))
    sheet.add("marks", "x height label", [])
    rows: list[Row] = []
    for i, (name, _) in enumerate(parts):
        height = page.up(page.high - 12 - 24 * i)
        rows.append((name, looks.in_turn(i // 2).colour, 1, i % 2, 0, 0, 0, height))
    sheet.add("series", "name colour dash hatched shift endx endy height", rows)
    for i, (_, values) in enumerate(parts):
        pieces: list[Row] = []
        for j, value in enumerate(values):
            start = sum(earlier[j] for _, earlier in parts[:i])
            label = f"{value:.6g}"
            wide = value / (axis.high - axis.low) * WIDE
            shown = label if wide > CHAR * (len(label) + 1) else ""
            pieces.append((start, start + value, last - j, shown))
        sheet.tables.append((f"series {i + 1}", "from to up label", pieces))
    sums: list[Row] = [(t, last - j, f"{t:.6g}") for j, t in enumerate(totals)]
    sheet.add("totals", "to up label", sums)
    sheet.settings |= {"xlabel": "instructions per operation", "ylabel": "", "names": 0}
    return write("path-length", base, sheet)


def rates(one: Series) -> list[tuple[float, float]]:
    """Time and rate of the windows of a series."""
    return [(x, y) for x, y, _, _ in one.points if y is not None]


def limits(values: list[float]) -> tuple[float, float]:
    """A range for windows: all of them, unless a few are far from the rest."""
    values = sorted(values)
    few = 3 * len(values) // 100
    low, high = values[few], values[-1 - few]
    room = max(high - low, 0.02 * high)
    low, high = max(values[0], low - room), min(values[-1], high + room)
    margin = max(0.08 * (high - low), 0.01 * high)
    return max(0.0, low - margin), high + margin


def histogram(values: list[float], low: float, high: float) -> list[Row]:
    """How often each rate was seen: (from, to, share of the commonest); ends count."""
    bins = 24
    counts = [0] * bins
    for value in values:
        place = int((value - low) / (high - low) * bins)
        counts[min(bins - 1, max(0, place))] += 1
    size = (high - low) / bins
    return [
        (low + i * size, low + (i + 1) * size, count / max(counts))
        for i, count in enumerate(counts)
        if count
    ]


def draw_windows(
    base: Path,
    series: list[Series],
    titles: Titles,
    runs: Sequence[Mark] = (),
    disturbed: Sequence[Series] = (),
) -> list[Path]:
    """The windows of a cell: a strip a variant, x seconds, y operations a second.

    `runs` are where runs begin. `disturbed` are the windows that something
    interrupted; they are ringed, and need not be in `series` too. Beside each
    strip is how often each rate was seen.
    """
    every = {one.name: rates(one) for one in series if measured(one)}
    if not every:
        raise nothing(base)
    labels = {one.name: one.label for one in series}
    odd = {one.name: rates(one) for one in disturbed}
    points = [p for found in (every, odd) for one in found.values() for p in one]
    low, high = limits([rate for _, rate in points])
    unit, word = looks.prefixed(high)
    page, sheet = Page(), Sheet()
    strip, gap = (84.0, 26.0) if len(every) > 4 else (120.0, 26.0)
    page.right, page.high = 110.0, (strip + gap) * len(every) - gap
    most = max(p[0] for p in points)
    across = looks.linear(0.0, 1.01 * most or 1.0, label=looks.time)
    placed = place_marks(runs, across)
    page.above = LINE * (1 + max((row for _, row, _ in placed), default=-1)) + 16
    names = [
        Text(labels[name], 12, 0, (strip + gap) * i - 10)
        for i, name in enumerate(every)
    ]
    note = (
        f"{word}operations a second in each window, and how often each rate was seen. "
        "Ringed: other work ran on a task's PU. Thin lines: the median, and where "
        "runs begin."
    )
    begin(page, titles, sheet, names, note[0].upper() + note[1:])
    sheet.axis("x", across)
    sheet.axis("y", looks.linear(low, high, label=lambda v: f"{v / unit:.6g}", most=4))
    tops: list[Row] = [
        (x, page.up(page.high + 26 + LINE * row), label) for x, row, label in placed
    ]
    sheet.add("marks", "x height label", tops)
    rows: list[Row] = []
    for i, (name, found) in enumerate(every.items()):
        style = looks.look(name)
        middle = statistics.median(rate for _, rate in found)
        foot = page.up(page.high - (strip + gap) * i - strip)
        look = (labels[name], style.colour, style.dash, style.mark)
        rows.append((*look, 0, 0, middle, foot))
    sheet.add("series", "name colour dash mark shift none median foot", rows)
    for i, (name, found) in enumerate(every.items(), 1):
        ringed = set(odd.get(name, []))
        seen = sorted({*found, *ringed})
        flagged: list[Row] = [(*window, int(window in ringed)) for window in seen]
        sheet.tables.append((f"series {i}", "seconds rate disturbed", flagged))
        counts = histogram([rate for _, rate in found], low, high)
        sheet.tables.append((f"counts {i}", "from to share", counts))
    sheet.settings |= {
        "xlabel": "time measured, run after run",
        "ylabel": "",
        "names": 0,
    }
    sheet.settings["strip"] = strip / page.height
    return write("windows", base, sheet)
