# SPDX-License-Identifier: GPL-2.0-only
"""What was counted of each kernel, kept in the user's data folder.

A file a kernel and flavour; a later count replaces its rows and adds its own,
one of another build of that kernel replaces the file.
"""

import json
from dataclasses import asdict
from pathlib import Path

from bench import calibration
from bench.kernel_build import Kernel
from bench.kernel_count import Count
from bench.looks import safe_name
from bench.store import write_whole
from bench.strict import kept

SCHEMA = 1


def folder() -> Path:
    """$XDG_DATA_HOME/fdscale/counts, or ~/.local/share/fdscale/counts."""
    return calibration.folder() / "counts"


def load(path: Path) -> tuple[dict[str, str], list[Count]]:
    """The kernel and its counts in a file; nothing where it is not one of ours."""
    try:
        data = kept(path, "counts")
    except (OSError, ValueError):
        return {}, []
    return data["kernel"], [Count(**one) for one in data["counts"]]


def keep(kernel: Kernel, counts: list[Count]) -> Path:
    """Store what was counted; where it is."""
    words = {**kernel.manifest, "build": kernel.folder.name}
    path = folder() / f"{safe_name(words['release'], words['flavour'])}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    before, old = load(path)
    merged = {(c.row, c.variant): c for c in old if before == words}
    merged.update({(c.row, c.variant): c for c in counts})
    whole = {
        "schema": SCHEMA,
        "kernel": words,
        "counts": [asdict(c) for c in merged.values()],
    }
    write_whole(path, json.dumps(whole, indent=1) + "\n")
    return path


def found(version: str, flavour: str = "direct") -> list[Count]:
    """The counts of a kernel by its version, such as 6.12; none: not counted yet."""
    for path in sorted(folder().glob("*.json"), reverse=True):
        kernel, counts = load(path)
        release = kernel.get("release", "")
        if f"{release}.".startswith(f"{version}.") and kernel["flavour"] == flavour:
            return counts
    return []
