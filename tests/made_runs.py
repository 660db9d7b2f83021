# SPDX-License-Identifier: GPL-2.0-only
"""Runs made by hand of one cell, two variants, three blocks."""

from typing import Any

from bench.plan import Cell

CELL = Cell("dup-close", "model", "low:64", "compact", "threads", 2, (), 256)
HOST = {"machine": "a machine, 2 PUs", "kernel": "6.18 (merged-6.13)"}


def window(variant: str, block: int, ops: list[int]) -> dict[str, Any]:
    """A window of 1 ms."""
    rate = sum(ops) * 1e3
    return {
        "event": "window",
        "variant": variant,
        "block": block,
        "ns": 1_000_000,
        "ops": ops,
        "rate": rate,
        "switches": 0,
        "skewed": False,
        "redone": 0,
    }


def run(number: int, base: int, other: int, cell: Cell = CELL) -> dict[str, Any]:
    """Three blocks; the second block is disturbed for both variants alike."""
    windows = []
    for block, factor in enumerate((1, 0.5, 1)):
        windows.append(window("slow", block, [int(base * factor)] * 2))
        windows.append(window("fast", block, [int(other * factor)] * 2))
    return {
        "schema": 1,
        "type": "run",
        "time": 0.0,
        "command": [],
        "run": number,
        "cell": cell.as_dict(),
        "variants": ["slow", "fast"],
        "setup": {"fdsize": 256},
        "windows": windows,
        "error": None,
        "recorded_ns": 6_000_000,
        "seconds": 0.1,
    }


def broken(text: str) -> dict[str, Any]:
    """A run that failed."""
    error = {"syscall": "open", "errno": 24, "status": 3, "text": text}
    return run(0, 1, 1) | {"windows": [], "setup": None, "error": error}
