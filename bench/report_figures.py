# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a results folder as images inside a page."""
from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench import figures
from bench.plan import Cell

OTHERS = {
    "power": "how often an effect is found, against measuring time",
    "path-length": "instructions of an operation, by function",
}
MOST_SVG = 4 << 20  # bytes of a figure; ours have a hundredth of it


@dataclass(frozen=True)
class Figure:
    """An SVG, as the address of an image that holds it."""

    caption: str
    address: str


def svgs(folder: Path) -> dict[str, Path]:
    """The figures by name; a link that leads out of the folder is none."""
    inside = folder.resolve()
    return {
        path.stem: path
        for path in sorted((folder / "figures").glob("*.svg"))
        if path.resolve().is_relative_to(inside) and path.is_file()
        if path.stat().st_size <= MOST_SVG
    }


def figure(path: Path, caption: str) -> Figure:
    """An image: gnuplot uses the same ids in each of its files, and scripts in an
    image do not run."""
    text = base64.b64encode(path.read_bytes()).decode("ascii")
    return Figure(caption, f"data:image/svg+xml;base64,{text}")


def by_section(
    found: dict[str, Path], drawable: Iterable[figures.Figure]
) -> dict[Cell, list[Figure]]:
    """Takes what the results are known to give out of the figures found."""
    taken: dict[Cell, list[Figure]] = {}
    for one in drawable:
        if one.name in found:
            shown = figure(found.pop(one.name), one.caption)
            taken.setdefault(one.section, []).append(shown)
    return taken


def rest(found: dict[str, Path]) -> list[Figure]:
    """The other figures: of calibrations, of counts, or not ours."""
    return [
        figure(path, next((OTHERS[k] for k in OTHERS if name.startswith(k)), name))
        for name, path in found.items()
    ]
