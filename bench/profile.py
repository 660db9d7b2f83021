# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of a cell goes: one more run of it, under perf.

perf samples by the clock that windows are timed by, so that only what falls into a
recorded window counts, for the variant that was in it. Nothing of such a run is a
result: being looked at costs time. config/profile.toml says what a symbol counts as.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from bench import drive
from bench.plan import CONFIG, Cell, Plan
from bench.scratch import Scratch

REST = "rest"
SECONDS = 1.0  # recorded, of a cell
LEAST = 100  # samples, for shares to be told
HIDDEN = 0.1  # of the samples without a symbol: then shares are not known
KERNEL = 1 << 63  # addresses from here up are the kernel's
SAMPLE = re.compile(r"\s*(\d+)\.(\d{9}):\s+([0-9a-f]+) ([^\s+]+)")


@dataclass(frozen=True)
class Profile:
    """Of one variant in one cell."""

    samples: int
    shares: dict[str, float]  # of lock, search, table, rest

    def __str__(self) -> str:
        return "/".join(f"{100 * share:.0f}" for share in self.shares.values()) + "%"


def classes() -> dict[str, list[str]]:
    """Patterns of symbols, by class, in order."""
    text = (CONFIG / "profile.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)
    return found


def class_of(symbol: str, known: Mapping[str, list[str]]) -> str:
    """lock, search, table or rest."""
    for name, patterns in known.items():
        if any(fnmatchcase(symbol, pattern) for pattern in patterns):
            return name
    return REST


def samples(script: str) -> list[tuple[int, int, str]]:
    """(ns, address, symbol) of each line of perf script -F time,ip,sym --ns."""
    found = (SAMPLE.match(line) for line in script.splitlines())
    return [(int(m[1]) * 10**9 + int(m[2]), int(m[3], 16), m[4]) for m in found if m]


def shares(
    taken: Iterable[tuple[int, int, str]], windows: list[dict[str, Any]]
) -> dict[str, Profile]:
    """By variant, of the samples inside its windows."""
    known = classes()
    ordered = sorted(windows, key=lambda w: int(w["from_ns"]))
    starts = [int(w["from_ns"]) for w in ordered]
    counts = {w["variant"]: Counter(dict.fromkeys([*known, REST], 0)) for w in windows}
    for when, _, symbol in taken:
        at = bisect_right(starts, when) - 1
        if at >= 0 and when < starts[at] + ordered[at]["ns"]:
            counts[ordered[at]["variant"]][class_of(symbol, known)] += 1
    return {
        variant: Profile(n, {c: k / n for c, k in found.items()})
        for variant, found in counts.items()
        if (n := found.total()) >= LEAST
    }


def obstacle(cell: Cell, taken: list[tuple[int, int, str]]) -> str:
    """Why samples tell nothing of the cell, or ""."""
    if not taken:
        return "perf took no sample"
    inside = [symbol for _, ip, symbol in taken if ip >= KERNEL]
    if cell.backend == "kernel" and not inside:
        return (
            "perf sees nothing of the kernel: sudo sysctl kernel.perf_event_paranoid=1"
        )
    if inside.count("[unknown]") > HIDDEN * len(taken):
        return "the kernel's symbols are hidden: sudo sysctl kernel.kptr_restrict=0"
    return ""


def perf_says(done: "subprocess.CompletedProcess[str]") -> str:
    """The start of what perf prints when it fails."""
    return " ".join(done.stderr.split()[:20]) or f"status {done.returncode}"


def probe(perf: str) -> str:
    """Why perf cannot record here, or ""; without it being the driver's fault."""
    with Scratch() as folder:
        words = [perf, "record", "-q", "-k", "mono", "-o", f"{folder}/data", "true"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"perf record: {perf_says(done)}" if done.returncode else ""


def take(
    perf: str, cell: Cell, variants: list[str], plan: Plan, seed: int
) -> tuple[dict[str, Any], str]:
    """The run's record, and the samples as perf script prints them."""
    blocks = max(2, int(SECONDS * 1000 / (plan.window_ms * len(variants))))
    with Scratch() as folder:
        data = str(folder / "data")
        under = [perf, "record", "-q", "-k", "mono", "-F", "997", "-o", data, "--"]
        record = drive.run_cell(cell, variants, plan, 0, blocks, seed, under=under)
        words = [perf, "script", "-i", data, "-F", "time,ip,sym", "--ns"]
        script = subprocess.run(words, capture_output=True, text=True, check=False)
    return record, script.stdout


def run_profile(
    cell: Cell, variants: list[str], plan: Plan, seed: int
) -> dict[str, Any]:
    """A record of type "profile" for results.jsonl: shares by variant, or why not."""
    perf = shutil.which("perf")
    why = probe(perf) if perf else "perf is not installed: sudo apt install linux-perf"
    if os.environ.get("FDSCALE_HOST"):
        why = "the cell ran in a guest, which perf on the host does not see into"
    found: dict[str, Profile] = {}
    if perf and not why:
        record, script = take(perf, cell, variants, plan, seed)
        taken = samples(script)
        if record["error"]:
            why = record["error"]["text"]
        else:
            why = obstacle(cell, taken)
        if not why:
            found = shares(taken, record["windows"])
        if not why and len(found) < len(variants):
            why = f"fewer than {LEAST} samples inside a variant's windows"
    return {
        "schema": 1,
        "type": "profile",
        "cell": cell.as_dict(),
        "variants": {
            variant: (
                {"samples": one.samples, "shares": one.shares}
                if (one := found.get(variant))
                else None
            )
            for variant in variants
        },
        "why": why or None,
    }


def profiles_of(record: Mapping[str, Any]) -> dict[str, Profile]:
    """What run_profile stored: the variants that have shares."""
    told = record["variants"].items()
    return {v: Profile(one["samples"], one["shares"]) for v, one in told if one}
