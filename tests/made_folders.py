# SPDX-License-Identifier: GPL-2.0-only
"""Results folders made by hand, for the tests of what reads them."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.host import read_host

CELL = {
    "workload": "dup-close",
    "options": {},
    "backend": "model",
    "hold": "low:64",
    "place": "compact",
    "mode": "threads",
    "tasks": 2,
    "table_size": 128,
}
# Five runs within a few tenths of a percent of each other, geometric mean about 1.
CALM = (0.998, 1.001, 1.0, 1.002, 0.999)


def run(rates: dict[str, float], cell: dict[str, Any] = CELL, **more: Any) -> dict:
    """A run of three blocks; more replaces keys of the row."""
    windows = [
        {
            "variant": variant,
            "block": block,
            "ns": 10_000_000,
            "ops": [int(rate / 200), int(rate / 200)],
            "rate": rate,
            "switches": 0,
            "skewed": False,
            "redone": 0,
        }
        for block in range(3)
        for variant, rate in rates.items()
    ]
    row = {
        "schema": 1,
        "type": "run",
        "time": 1.0,
        "run": 0,
        "cell": cell,
        "variants": list(rates),
        "command": ["run", cell["workload"]],
        "setup": {"variants": list(rates), "fdsize": 128, "pus": [0, 1]},
        "windows": windows,
        "error": None,
        "recorded_ns": 10_000_000 * len(windows),
        "seconds": 2.0,
    }
    return row | more


def failed(cell: dict[str, Any] = CELL) -> dict:
    return run(
        {}, cell, error={"syscall": "dup", "errno": 24, "remedy": None, "text": "no"}
    )


def host(root: Path, **changed: Any) -> dict[str, Any]:
    """host.json of a machine that hides everything, with "cpu__model" and so on set."""
    made = read_host(root / "no-such-root")
    for key, value in changed.items():
        *path, last = key.split("__")
        at = made
        for part in path:
            at = at[part]
        at[last] = value
    return made


def folder(root: Path, name: str, rows: Sequence[dict], **changed: Any) -> str:
    made = root / name
    made.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (made / "results.jsonl").write_text(text)
    (made / "host.json").write_text(json.dumps(host(root, **changed)))
    return str(made)


def in_one(root: Path, by: float, name: str = "a", calm: Sequence[float] = CALM) -> str:
    """A folder where first-word has BY times the rate of two-level's 8 M/s."""
    rows = [run({"two-level": 8e6, "first-word": 8e6 * by * x}) for x in calm]
    return folder(root, name, rows)


def kernels(root: Path, old: Sequence[float], new: Sequence[float]) -> list[str]:
    """Folders of two kernels, one boot each, with these rates."""
    made = []
    for release, rates in (("6.12", old), ("6.13", new)):
        for boot, rate in enumerate(rates):
            rows = [run({"first-word": rate * x}) for x in CALM]
            name = f"v{release}-{boot}"
            made.append(
                folder(
                    root,
                    name,
                    rows,
                    kernel__release=release,
                    kernel__boot_id=name,
                )
            )
    return made
