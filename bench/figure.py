# SPDX-License-Identifier: GPL-2.0-only
"""A figure's page and data file, and the call of gnuplot that draws it.

The data file holds all that the picture shows, so that the script run by hand
gives the same picture. Text is shown as it is, whatever is in it.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench import looks
from bench.problem import COULD_NOT, Problem

PLOTS = Path(__file__).resolve().parent.parent / "plots"
WIDE = 620.0  # of the plot itself, in pixels
TITLE_CHAR = 0.56  # of a size, is as wide as a character of a sentence
SPACE = 1 << 20  # bytes: more than any picture
SECONDS = 60  # that gnuplot may take; it takes a tenth of one

FAR = 1e300  # stands for an interval without an end: gnuplot reads no infinity

Row = tuple[object, ...]


@dataclass(frozen=True)
class Text:
    """A line of text: its size, and its place from the page's upper left corner."""

    text: str
    size: float
    x: float
    y: float


@dataclass
class Page:
    """Sizes in pixels: names to the left and right of the plot, titles above."""

    left: float = 84.0
    right: float = 24.0
    high: float = 360.0
    above: float = 0.0
    below: float = 64.0

    @property
    def width(self) -> float:
        """Of the whole page."""
        return round(self.left + WIDE + self.right)

    @property
    def height(self) -> float:
        """Of the whole page."""
        return round(self.above + self.high + self.below)

    def up(self, pixels: float) -> float:
        """The height on the page (0..1) of what is `pixels` above the axis."""
        return (self.below + pixels) / self.height

    def titles(self, titles: list[tuple[str, float]]) -> list[Text]:
        """Makes room above the plot for titles (text, size), wrapped to fit."""
        placed, down = [], 8.0
        for text, size in titles:
            for line in evenly(text, self.width - 24, size * TITLE_CHAR):
                placed.append(Text(line, size, 12.0, down + size * 0.6))
                down += size * 1.4
        self.above += down + 8
        return placed


@dataclass
class Sheet:
    """The data file as it grows: settings, and named tables of rows."""

    settings: dict[str, object] = field(default_factory=dict)
    tables: list[tuple[str, str, list[Row]]] = field(default_factory=list)

    def add(self, name: str, columns: str, rows: list[Row]) -> None:
        """Adds a table, and its length as a setting; gnuplot can't read empty ones."""
        self.settings[name] = len(rows)
        if rows:
            self.tables.append((name, columns, rows))

    def axis(self, letter: str, axis: looks.Axis) -> None:
        """Adds the range and the ticks of axis x or y."""
        self.settings[f"{letter}low"] = axis.low
        self.settings[f"{letter}high"] = axis.high
        self.settings[f"{letter}log"] = axis.log
        # gnuplot takes the label of a tick for a format.
        ticks: list[Row] = [(at, text.replace("%", "%%")) for at, text in axis.ticks]
        self.add(f"{letter}ticks", "position label", ticks)

    def page(self, page: Page, texts: list[Text]) -> None:
        """Adds the page's sizes, and texts placed on it."""
        self.settings["width"] = page.width
        self.settings["height"] = page.height
        self.settings["plotleft"] = page.left / page.width
        self.settings["plotright"] = (page.left + WIDE) / page.width
        self.settings["plottop"] = page.up(page.high)
        self.settings["plotbottom"] = page.up(0)
        rows: list[Row] = [
            (one.text, one.size, one.x / page.width, 1 - one.y / page.height)
            for one in texts
        ]
        self.add("texts", "text size across up", rows)

    def text(self, kind: str, name: str) -> str:
        """The file: comments say how to draw it again and what the columns are."""
        script = shlex.quote(str(PLOTS / f"{kind}.gp"))
        parts = [
            f"# fdscale, {kind}. To draw it again, in its folder:\n"
            f"# gnuplot -e \"data='{name}.dat'; out='again.png'\" {script}\n"
        ]
        settings: list[Row] = list(self.settings.items())
        for name, columns, rows in [("settings", "key value", settings), *self.tables]:
            lines = [" ".join(cell(value) for value in row) for row in rows]
            parts.append("\n".join([f"# {name}", f"#: {columns}", *lines]) + "\n")
        return "\n\n".join(parts)


def cell(value: object) -> str:
    """A value as gnuplot reads it; text is quoted, nothing in it is special."""
    if value is None:
        return "NaN"
    if isinstance(value, (int, float)):
        return f"{min(FAR, max(-FAR, value)):.10g}"
    text = str(value).replace("\\", "\\\\").replace('"', "''")
    return '"' + "\\n".join(text.splitlines()) + '"'


def wrapped(text: str, pixels: float, char: float) -> list[str]:
    """Splits text into lines that fit; a word longer than a line is split too."""
    most = max(1, int(pixels / char))
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += " " + word
        else:
            lines += [word[i : i + most] for i in range(0, len(word), most)]
    return lines


def evenly(text: str, pixels: float, char: float) -> list[str]:
    """The same in lines of like lengths: no word is alone on the last one."""
    lines = wrapped(text, pixels, char)
    for most in range(int(pixels / char) - 1, 0, -1):
        narrower = wrapped(text, most, 1)
        if len(lines) < 2 or len(narrower) > len(lines):
            break
        lines = narrower
    return lines


def write(kind: str, base: Path, sheet: Sheet) -> list[Path]:
    """Writes base.dat, base.png and base.svg, whole or not at all; returns them.

    The name is made safe for any file system first. A missing or failing gnuplot,
    or a folder that can't be written, is a Problem.
    """
    name = looks.safe_name(base.name)
    try:
        with tempfile.TemporaryDirectory(prefix=".figure-", dir=base.parent) as made:
            folder = Path(made)
            (folder / "figure.dat").write_text(sheet.text(kind, name), encoding="utf-8")
            run_gnuplot(kind, name, folder)
            paths = []
            for ending in (".dat", ".png", ".svg"):
                path = base.parent / (name + ending)
                (folder / f"figure{ending}").replace(path)
                paths.append(path)
    except OSError as error:
        text = f"figure {name}: {error.strerror}: {error.filename or base.parent}"
        raise Problem(COULD_NOT, text) from error
    return paths


def find_gnuplot() -> str:
    """Its path; raises Problem(COULD_NOT)."""
    gnuplot = shutil.which("gnuplot")
    if gnuplot is None:
        raise Problem(COULD_NOT, "gnuplot is missing: install the package gnuplot-nox")
    return gnuplot


def try_space(folder: Path) -> None:
    """Raises OSError where a full disk or quota may be why gnuplot said nothing."""
    with open(folder / "space", "wb") as file:
        file.write(bytes(SPACE))
        file.flush()
        os.fsync(file.fileno())


def run_gnuplot(kind: str, name: str, folder: Path) -> None:
    """Draws figure.dat of a folder, with one call for both pictures."""
    gnuplot = find_gnuplot()
    script = str(PLOTS / f"{kind}.gp")
    command = [gnuplot, "--default-settings"]
    for ending in ("png", "svg"):
        command += ["-e", f"data='figure.dat'; out='figure.{ending}'", script]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        text = f"figure {name}: gnuplot had not finished after {SECONDS} s"
        raise Problem(COULD_NOT, text) from error
    drawn = [folder / "figure.png", folder / "figure.svg"]
    if done.returncode or not all(p.is_file() and p.stat().st_size for p in drawn):
        try_space(folder)
        said = [line.strip() for line in done.stderr.splitlines()]
        text = next((line for line in reversed(said) if line), "it said nothing")
        raise Problem(COULD_NOT, f"figure {name}: gnuplot failed: {text}")
