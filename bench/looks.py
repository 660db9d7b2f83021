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
from dataclasses import dataclass

BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILLION, PURPLE, GREY = "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f"
COLOURS = (BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE, GREY)
SOLID, DASH, DOT, DASHDOT, DASHDOTDOT = 1, 2, 3, 4, 5
MARKS = range(1, 16)

# Width of a character of 12-pixel text, in pixels; names take a little less.
CHAR = 7.1


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
    "series-v4": Look(BLUE, DASHDOT, 12),
    "series-v5": Look(BLUE, DOT, 12),
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


def look(name: str) -> Look:
    """The look of a variant, or of any other name a figure may carry.

    A known base with switches keeps the base's colour; which switches they are
    chooses dash and mark. Anything else is chosen by the checksum of the name.
    """
    if name in KNOWN:
        return KNOWN[name]
    base, *switches = name.split("+")
    if base in KNOWN and set(switches) <= set(SWITCHES):
        bits = sum(1 << SWITCHES.index(switch) for switch in set(switches))
        turn, dash = divmod(bits, 4)
        mark = (KNOWN[base].mark + 3 * dash + turn) % len(MARKS) + 1
        return Look(KNOWN[base].colour, dash + DASH, mark)
    number = zlib.crc32(name.encode())
    number, colour = divmod(number, len(COLOURS))
    number, mark = divmod(number, len(MARKS))
    return Look(COLOURS[colour], DASH + number % 4, mark + 1)


def safe_name(*words: str) -> str:
    """A file name out of words such as low:64 or first-word+cond-clear."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(words)).strip("-.") or "figure"


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


def linear(low: float, high: float, unit: float = 1.0) -> Axis:
    """An axis from low to high with round ticks, printed in units of `unit`."""
    size = step(high - low, 7)
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    ticks = [(i * size, f"{i * size / unit:.6g}") for i in range(first, last + 1)]
    return Axis(low, high, 0, ticks)


def short(value: float) -> str:
    """A number for a tick: 1024, 16k, 1M (powers of ten and two only lose no digit)."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * unit or (value >= unit and value % unit == 0):
            scaled = value / unit
            return f"{scaled:.4g}{letter}" if value >= 1e4 else f"{value:.6g}"
    return f"{value:.4g}"


def decades(low: float, high: float) -> Axis:
    """A logarithmic axis around low..high (both above 0) with ticks at powers of ten."""
    span = max(math.log10(high / low), 0.3)
    low, high = low / 10 ** (0.05 * span), high * 10 ** (0.05 * span)
    factors = (1.0,) if span > 2.5 else (1.0, 2.0, 5.0)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, round(span / 8))
    ticks = [
        (factor * 10.0**power, short(factor * 10.0**power))
        for power in powers
        for factor in factors
        if power % every == 0 and low <= factor * 10.0**power <= high
    ]
    return Axis(low, high, 10, ticks)


def measured(values: list[float], log: bool, width: float) -> Axis:
    """An axis with a tick at each measured value, `width` pixels long.

    A label that would touch its neighbour moves to a second line; one that fits
    on neither is left out, its tick is not.
    """
    values = sorted(set(values))
    low, high = values[0], values[-1]
    if log:
        room = (high / low) ** 0.04 if high > low else 2.0
        axis = Axis(low / room, high * room, 2, [])
    else:
        room = 0.04 * (high - low) or 1.0
        axis = Axis(low - room, high + room, 0, [])
    ends = [-math.inf, -math.inf]
    for value in values:
        text = short(value)
        half = (len(text) + 1) * CHAR / 2
        centre = axis.fraction(value) * width
        row = next((r for r in (0, 1) if centre - half >= ends[r]), None)
        if row is None:
            text = ""
        else:
            ends[row] = centre + half
            text = "\n" * row + text
        axis.ticks.append((value, text))
    return axis


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
