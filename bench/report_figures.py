# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a results folder as images inside a page."""
from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.looks import safe_name
from bench.plan import Cell

MOST_SVG = 4 << 20  # bytes of a figure; ours have a hundredth of it
CAPTIONS = {
    "rate": "operations a second against tasks",
    "ratio": "ratio to the baseline against tasks",
    "ratio-vs-hold": "ratio to the baseline against what is held",
}


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


def by_group(
    found: dict[str, Path], groups: Iterable[Cell]
) -> dict[Cell, list[Figure]]:
    """Takes the figures that belong to one table each out of those found.

    Names are KIND-GROUP, as bench/figures.py makes them; where one group's words end
    with another's, the longer is meant.
    """
    ends = {
        "-" + safe_name(g.name(), g.backend, g.hold, g.mode, g.place): g for g in groups
    }
    taken: dict[Cell, list[Figure]] = {}
    for name in list(found):
        end = max((end for end in ends if name.endswith(end)), key=len, default="")
        if end:
            group, word = ends[end], name.removesuffix(end)
            caption = f"hold {group.hold}: {CAPTIONS.get(word, word)}"
            taken.setdefault(group, []).append(figure(found.pop(name), caption))
    return taken


def rest(found: dict[str, Path]) -> list[Figure]:
    """The figures that belong to no one table."""
    shown = []
    for name, path in found.items():
        word = next((k for k in sorted(CAPTIONS)[::-1] if name.startswith(k)), "")
        end = name.removeprefix(word).strip("-")
        shown.append(figure(path, f"{end}: {CAPTIONS[word]}" if word else end))
    return shown
