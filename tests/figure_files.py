# SPDX-License-Identifier: GPL-2.0-only
"""Reads back what a figure's files hold, for tests."""

import shlex
import xml.etree.ElementTree as ET
from pathlib import Path


def tables(path: Path) -> dict[str, list[list[str]]]:
    """The tables of a data file, as text."""
    found: dict[str, list[list[str]]] = {}
    for part in path.read_text(encoding="utf-8").split("\n\n\n")[1:]:
        name, columns, *rows = part.strip("\n").split("\n")
        assert name.startswith("# ") and columns.startswith("#: ")
        found[name[2:]] = [shlex.split(row) for row in rows]
        assert {len(row) for row in found[name[2:]]} == {len(columns.split()) - 1}
    return found


def settings(path: Path) -> dict[str, str]:
    return {key: value for key, value in tables(path)["settings"]}


def words(path: Path) -> list[str]:
    """All texts of an SVG."""
    return [
        "".join(one.itertext()).strip()
        for one in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    ]


def paths(svg: Path, colour: str) -> list[list[tuple[float, float]]]:
    """The corners of the lines in a colour, such as "0, 0, 0", of an SVG."""
    found = []
    for one in ET.parse(svg).iter("{http://www.w3.org/2000/svg}path"):
        stroke = one.get("stroke", "").replace(" ", "")
        if stroke in (f"rgb({colour.replace(' ', '')})", colour):
            for piece in one.get("d", "").split("M")[1:]:
                corners = piece.replace("L", " ").replace("Z", " ").split()
                found.append([(float(x), float(y)) for x, y in map(pair, corners)])
    return found


def pair(corner: str) -> list[str]:
    return corner.split(",")
