# SPDX-License-Identifier: GPL-2.0-only
"""`make bench`: what the model shows of the searches, as ratios within one run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import stats

BUILD = Path(__file__).resolve().parent.parent / os.environ.get("BUILD", "build")
DRIVER = BUILD / "fdscale"
SEARCHES = ("two-level", "first-word-v2", "first-word", "next_fd-word")


def said(ratio: stats.Interval) -> str:
    """A ratio and its interval, in full."""
    return f"{ratio.estimate:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]"


def events(words: Sequence[str]) -> list[dict[str, Any]]:
    """One run of the driver."""
    done = subprocess.run(
        [DRIVER, "run", *words, "--json"], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def windows(words: Sequence[str]) -> list[dict[str, Any]]:
    """The recorded windows of one run."""
    return [e for e in events(words) if e["event"] == "window"]


def churn() -> None:
    """dup2-churn, two-level over one-level: turns a second, and whole commands.

    A turn of one-level reads up to N/64 words and N/128 on average, one of
    two-level up to N/4096: far below 64 where the fixed cost of the three calls,
    of growth and of the process counts.
    """
    print("dup2-churn on the model: how many times as fast two-level is, by turns")
    print(f"  {'turns':>8}{'turns a second [95%]':>32}{'whole commands':>18}")
    for turns, measures, runs in (
        (1000, 40, 5),
        (10_000, 20, 5),
        (100_000, 3, 5),
        (1_000_000, 1, 3),
    ):
        words = ["dup2-churn", "--backend", "model", "--turns", str(turns)]
        words += ["--windows", str(measures)]
        both = [*words, "--variant", "one-level,two-level"]
        pairs = [
            stats.block_pairs(windows(both), "two-level", "one-level")
            for _ in range(runs)
        ]
        ratio = said(stats.ratio_interval(pairs))
        whole = whole_commands(words, 2 if turns > 100_000 else 10)
        print(f"  {turns:>8}{ratio:>32}{whole:>18.2f}", flush=True)


def whole_commands(words: list[str], runs: int) -> float:
    """hyperfine's mean of the one-level command over that of the two-level one."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "hyperfine.json"
        commands = [
            " ".join([str(DRIVER), "run", *words, "--variant", variant])
            for variant in ("one-level", "two-level")
        ]
        subprocess.run(
            ["hyperfine", "-N", "--style", "none", "--runs", str(runs)]
            + ["--export-json", str(out), *commands],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        one, two = json.loads(out.read_text())["results"]
    return float(one["mean"]) / float(two["mean"])


def low_64() -> None:
    """Searches at low:64 with one set of switches, called and inlined."""
    print("dup-close on the model, low:64, one task: ratio to two-level [95%]")
    names = [f"{s}+cond-clear" for s in SEARCHES]
    names += [f"{s}+inline-search" for s in names]
    base = names[0]
    for size in (128, 4096):
        for blown in (0, 64):
            words = ["dup-close", "--backend", "model", "--hold", "low:64"]
            words += ["--table-size", str(size), "--blow", str(blown)]
            words += ["--variant", ",".join(names), "--windows", "12"]
            runs = [windows(words) for _ in range(5)]
            print(f"  {size} slots, {'64 KiB written between' if blown else 'warm'}")
            for name in names[1:]:
                pairs = [stats.block_pairs(run, name, base) for run in runs]
                ratio = said(stats.ratio_interval(pairs))
                print(f"    {name:<40}{ratio}", flush=True)


def instructions(variant: str, hole: int, top: int) -> float:
    """Of a dup + close pair, by callgrind: the difference of two lengths."""
    counts = []
    for turns in (1000, 2000):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            + [str(BUILD / "tests" / "bench_path"), variant]
            + [str(hole), str(top), str(turns)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = re.search(r"Collected : (\d+)", done.stderr)
        counts.append(int(found.group(1)) if found else 0)
    return (counts[1] - counts[0]) / 1000


def path_length() -> None:
    """Instructions of dup + close on the model, by callgrind."""
    names = ["two-level", "first-word", "next_fd-word", "next_fd-word-checked"]
    names.append("one-level")
    print("path length on the model, instructions of dup + close (callgrind)")
    print(f"  {'held':<18}" + "".join(f"{n[:13]:>14}" for n in names))
    for what, hole, top in (
        ("few", 3, 3),
        ("0..63", 64, 64),
        ("0..63, hole at 40", 40, 64),
        ("100,000, at top", 100_000, 100_000),
        ("100,000, hole at 5", 5, 100_000),
    ):
        # The row's own switches: stock-6.12's, as in the kernels counted.
        counts = [
            instructions(f"{n}+sanity-read+eager-expand", hole, top) for n in names
        ]
        print(f"  {what:<18}" + "".join(f"{c:>14.0f}" for c in counts), flush=True)


def millions() -> None:
    """Ten million held, and what a third level is worth."""
    words = ["dup-close", "--backend", "model", "--hold", "low:10000000"]
    setup = events([*words, "--variant", "next_fd-word", "--windows", "1"])[0]
    print(
        f"10,000,000 held: ready in {setup['startup_ns'] / 1e9:.2f} s, "
        f"{setup['table_bytes'] / 1e6:.0f} MB"
    )
    print("yuma (a low hole and the top in turn): three-level over next_fd-word")
    for held in (10_000, 100_000, 1_000_000, 10_000_000):
        words = ["yuma", "--backend", "model", "--hold", f"low:{held}"]
        words += ["--variant", "next_fd-word,three-level", "--windows", "20"]
        pairs = [
            stats.block_pairs(windows(words), "three-level", "next_fd-word")
            for _ in range(5)
        ]
        print(f"  low:{held:<10}{said(stats.ratio_interval(pairs))}", flush=True)
