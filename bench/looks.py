# SPDX-License-Identifier: GPL-2.0-only
"""How a figure looks: a variant's colour, dash and mark; ticks; where labels go.

A name looks the same in every figure, because its look is worked out from the
name alone. Colours are Okabe and Ito's (https://jfly.uni-koeln.de/color/), which
stay apart for colour-blind readers; mark and dash repeat what the colour says, for
print in black and white. Marks and dashes are gnuplot's point and dash types.
"""

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILLION, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f"
COLOURS = (BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE, GREY)
SOLID, DASH, DOT, DASHDOT, DASHDOTDOT = 1, 2, 3, 4, 5

# Width of a character of 12-pixel text, in pixels; names take a little less.
CHAR = 7.2
LONGEST_NAME = 200  # of a file; most file systems take 255 bytes, an ending included


@dataclass(frozen=True)
class Look:
    """Colour (#rrggbb), dash type and point type."""

    colour: str
    dash: int
    mark: int


# Searches are solid with full marks; a preset has the colour of its search, a
# dash, and the empty mark.
KNOWN = {
    "one-level": Look(GREY, SOLID, 3),
    "two-level": Look(BLACK, SOLID, 7),
    "first-word-v1": Look(PURPLE, SOLID, 2),
    "first-word-v2": Look(ORANGE, SOLID, 11),
    "first-word": Look(VERMILLION, SOLID, 5),
    "next_fd-word": Look(BLUE, SOLID, 9),
    "next_fd-word-checked": Look(SKY, SOLID, 13),
    "next_fd-line": Look(GREEN, SOLID, 15),
    "three-level": Look(PURPLE, SOLID, 1),
    "any-fd": Look(GREEN, DASHDOT, 6),
    "any-fd-split": Look(GREEN, DOT, 12),
    "stock-6.12": Look(BLACK, DASH, 6),
    "patch-1": Look(BLACK, DOT, 14),
    "patch-1-2": Look(BLACK, DASHDOT, 12),
    "series-v1": Look(PURPLE, DASH, 14),
    "series-v2": Look(ORANGE, DASH, 10),
    "series-v3": Look(VERMILLION, DASH, 4),
    "series-v4": Look(BLUE, DASHDOT, 14),
    "series-v5": Look(BLUE, DOT, 10),
    "merged-6.13": Look(BLUE, DASH, 8),
}
SWITCHES = (
    "cond-clear",
    "sanity-read",
    "eager-expand",
    "end-late",
    "split-lines",
    "inline-search",
)


# Dash and mark for all else: sixty pairs, neighbours in neither alike.
PAIRS = [(DASH + i % 4, 1 + 4 * i % 15) for i in range(60)]


def with_switches() -> dict[str, Look]:
    """The known names, and each of them with one switch: no two look the same.

    Where it can be the mark is the base's and the dash alone tells the switch, so
    that in black and white searches with one and the same switch stay apart.
    """
    table = dict(KNOWN)
    for at, (base, style) in enumerate(KNOWN.items()):
        own = [(dash, style.mark) for dash in range(DASH, DASHDOTDOT + 1)]
        pairs = own + PAIRS[at:] + PAIRS[:at]
        for switch in SWITCHES:
            taken = {
                (s.dash, s.mark) for s in table.values() if s.colour == style.colour
            }
            pair = next(pair for pair in pairs if pair not in taken)
            table[f"{base}+{switch}"] = Look(style.colour, *pair)
    return table


LOOKS = with_switches()


def look(name: str) -> Look:
    """The look of a variant, or of any other name a figure may carry.

    A known base keeps its colour with any switches. Dash and mark of more than one
    switch, and all three of a name not known, are chosen by a checksum of it.
    """
    base, *switches = name.split("+")
    name = "+".join([base, *sorted(switches)])
    if name in LOOKS:
        return LOOKS[name]
    number = zlib.crc32(name.encode())
    colour = LOOKS[base].colour if base in LOOKS else COLOURS[number % len(COLOURS)]
    taken = {(s.dash, s.mark) for s in LOOKS.values() if s.colour == colour}
    free = [pair for pair in PAIRS if pair not in taken]
    return Look(colour, *free[number // len(COLOURS) % len(free)])


def is_variant(name: str) -> bool:
    """Whether it is a variant of the project, with or without switches."""
    return name.split("+")[0] in KNOWN


def in_turn(place: int) -> Look:
    """The look of the nth of things that are no variants and stay in one figure."""
    colours = (BLUE, VERMILLION, GREEN, PURPLE, BLACK, SKY, ORANGE, GREY)
    turn, at = divmod(place, len(colours))
    marks = (7, 5, 9, 13, 11, 6, 4, 8)
    return Look(colours[at], SOLID + turn % 5, marks[at])


def safe_name(*words: str) -> str:
    """A file name out of words such as low:64 or first-word+cond-clear."""
    text = re.sub(r"[^A-Za-z0-9._+]+", "-", "-".join(words)).strip("-.")
    if len(text) > LONGEST_NAME:
        text = f"{text[:LONGEST_NAME]}-{zlib.crc32(text.encode()):08x}"
    return text or "figure"


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Moves positions apart until all are `gap` from each other, as little as can be.

    Least squares for the given order; the result stays within low..high where
    there is room for all, and begins at low where there is not.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    groups: list[tuple[float, int]] = []  # (mean of first position wanted, members)
    for rank, i in enumerate(order):
        mean, size = wanted[i] - rank * gap, 1
        while groups and groups[-1][0] >= mean:
            other, members = groups.pop()
            mean = (mean * size + other * members) / (size + members)
            size += members
        groups.append((mean, size))
    last = max(low, high - (len(wanted) - 1) * gap)
    firsts = [min(max(mean, low), last) for mean, size in groups for _ in range(size)]
    placed = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        placed[i] = firsts[rank] + rank * gap
    return placed


@dataclass(frozen=True)
class Axis:
    """A range, its logarithm's base (0 = linear), and labelled ticks."""

    low: float
    high: float
    log: int
    ticks: list[tuple[float, str]]

    def fraction(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log(v) for v in (low, high, max(value, low)))
        return min(1.0, max(0.0, (value - low) / (high - low)))

    def clip(self, value: float) -> float:
        """The value, or the end of the range that it is beyond."""
        return min(self.high, max(self.low, value))


def prefixed(value: float) -> tuple[float, str]:
    """The unit to print numbers up to `value` in, and its name before a noun."""
    for unit, word in ((1e9, "billion "), (1e6, "million "), (1e3, "thousand ")):
        if value >= unit:
            return unit, word
    return 1.0, ""


def step(span: float, most: int) -> float:
    """The least of 1, 2, 5 times a power of ten that fits at most `most` times."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * k for k in (1, 2, 5, 10) if span / (power * k) <= most)


def linear(
    low: float,
    high: float,
    least: float = 0.0,
    most: int = 7,
    label: Callable[[float], str] = "{:.6g}".format,
) -> Axis:
    """An axis with `most` round ticks or fewer, at least `least` apart."""
    size = max(step(high - low, most), least)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return Axis(
        low, high, 0, [(i * size, label(i * size)) for i in range(first, last + 1)]
    )


def short(value: float) -> str:
    """A whole number for a tick: 16384, 100k, 1M; never at the cost of a digit."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * unit and value % unit == 0 or value == unit >= 1e6:
            return f"{value / unit:.10g}{letter}"
    return f"{value:.10g}"


def time(seconds: float) -> str:
    """Seconds with three digits in the unit that suits them."""
    if seconds == 0:
        return "0"
    for unit, word in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {word}"
    return f"{seconds * 1e9:.3g} ns"


def times(low: float, high: float, label: Callable[[float], str] = time) -> Axis:
    """A logarithmic axis for seconds or rates (above 0): ticks at 1, or 1, 2, 5, 10."""
    room = max(1.05, (8 * low / high) ** 0.5, (high / low) ** 0.04)
    low, high = low / room, high * room
    span = math.log10(high / low)
    factors = (1, 2, 5) if span < 3 else (1,)
    every = math.ceil(span / 10)
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for factor in factors:
            value = factor * 10.0**power
            if power % every == 0 and low <= value <= high:
                ticks.append((value, label(value * (1 + 1e-9))))
    return Axis(low, high, 10, ticks)


def measured(values: list[float], log: bool, width: float) -> Axis:
    """An axis with a tick at each measured value, `width` pixels long."""
    low, high = values[0], values[-1]
    if log:
        room = (high / low) ** 0.04 if high > low else 2.0
        axis = Axis(low / room, high * room, 2, [])
    else:
        room = 0.04 * (high - low) or 1.0
        axis = Axis(low - room, high + room, 0, [])
    return stagger(axis, values, [short(value) for value in values], width)


def stagger(axis: Axis, places: list[float], texts: list[str], width: float) -> Axis:
    """The axis with ticks: a label that would touch its neighbour is on a second line.

    One that fits on neither is left out, its tick is not.
    """
    ends = [-math.inf, -math.inf]
    ticks = []
    for place, text in zip(places, texts):
        half = (len(text) + 1.5) * CHAR / 2
        centre = axis.fraction(place) * width
        row = next((r for r in (0, 1) if centre - half >= ends[r]), None)
        if row is not None:
            ends[row] = centre + half
        ticks.append((place, "" if row is None else "\n" * row + text))
    return replace(axis, ticks=ticks)


def apart(values: list[float], width: float) -> tuple[Axis, list[float]]:
    """A logarithmic axis whose values are told apart, and where on it each is drawn.

    63, 64 and 65 matter and would lie on each other, so places are moved until
    there is room between them. 0 (the hold `none`) has one of its own on the left.
    """
    gap = min(34.0, width / len(values))
    positive = [value for value in values if value > 0] or [1.0]
    first = 20.0 if len(positive) == len(values) else 20.0 + 2 * gap
    span = math.log(positive[-1] / positive[0])
    wanted = [
        first + (width - 20 - first) * math.log(value / positive[0]) / span
        if span
        else width / 2
        for value in positive
    ]
    places = spread(wanted, gap, first, width - 20)
    if len(positive) < len(values):
        places.insert(0, 20.0)
    texts = [short(value) if value else "none" for value in values]
    return stagger(Axis(0.0, width, 0, []), places, texts, width), places


def ratios(low: float, high: float) -> Axis:
    """A logarithmic axis for ratios: as far from 1 to a half as from 1 to two.

    Both ends are given with 1 between them. Ticks are percentages near 1, factors
    further away.
    """
    room = max(0.06 * math.log(high / low), 0.005)
    low, high = low / math.exp(room), high * math.exp(room)
    if low > 0.4 and high < 2.6:
        size = step(high - low, 8)
        first, last = math.ceil((low - 1) / size), math.floor((high - 1) / size)
        ticks = [
            (1 + i * size, f"{100 * i * size:+.4g}%" if i else "same")
            for i in range(first, last + 1)
        ]
        return Axis(low, high, 2, ticks)
    most, every = math.log2(high / low), 1
    while most / every > 8:
        every *= 2
    ticks = []
    for i in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1):
        if i % every == 0:
            text = "same" if i == 0 else f"{2**i}x" if i > 0 else f"1/{2**-i}"
            ticks.append((2.0**i, text))
    return Axis(low, high, 2, ticks)
