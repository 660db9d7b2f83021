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

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
DRIVER = BUILD / "fdscale"
SEARCHES = ("two-level", "first-word-v2", "first-word", "next_fd-word")


def said(ratio: stats.Interval) -> str:
    """A ratio and its interval, in full."""
    return f"{ratio.estimate:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]"


def events(words: Sequence[str], driver: Path = DRIVER) -> list[dict[str, Any]]:
    """One run of the driver."""
    done = subprocess.run(
        [driver, "run", *words, "--json"], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def windows(words: Sequence[str], driver: Path = DRIVER) -> list[dict[str, Any]]:
    """The recorded windows of one run."""
    return [e for e in events(words, driver) if e["event"] == "window"]


def churn() -> None:
    """dup2-churn: what a turn takes, how much of it is searching, and the ratio.

    A turn of one-level reads up to N/64 words and N/128 on average, one of
    two-level up to N/4096: the searches are up to 64 times apart, the turns are
    less so for what both have: three calls, growth, the process. any-fd, which has
    its word in hand, shows that part alone.
    """
    print("dup2-churn on the model: ns a turn, and how many times as fast two-level is")
    print(f"  {'turns':>8}{'any-fd':>8}{'two-level':>11}{'one-level':>11}", end="")
    print(f"{'two-level over one-level [95%]':>34}{'commands':>10}")
    for turns, measures, runs in (
        (1000, 40, 5),
        (10_000, 20, 5),
        (100_000, 3, 5),
        (1_000_000, 1, 3),
    ):
        words = ["dup2-churn", "--backend", "model", "--turns", str(turns)]
        words += ["--windows", str(measures)]
        names = ("any-fd", "two-level", "one-level")
        found = [windows([*words, "--variant", ",".join(names)]) for _ in range(runs)]
        ns = {
            name: 1e9
            / stats.rate_interval(
                [[w["rate"] for w in run if w["variant"] == name] for run in found]
            ).estimate
            for name in names
        }
        pairs = [stats.block_pairs(run, "two-level", "one-level") for run in found]
        ratio = said(stats.ratio_interval(pairs))
        whole = whole_commands(words, 2 if turns > 100_000 else 10)
        took = f"{ns['any-fd']:>8.0f}{ns['two-level']:>11.0f}{ns['one-level']:>11.0f}"
        print(f"  {turns:>8}{took}{ratio:>34}{whole:>10.2f}", flush=True)


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


def shuffled(number: int) -> Path:
    """The driver with its functions in an order of its own."""
    ours = ("BUILD", "SHUFFLE", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS")
    env = {k: v for k, v in os.environ.items() if k not in ours}
    subprocess.run(
        ["make", "-s", f"SHUFFLE={number}", "all"], cwd=ROOT, env=env, check=True
    )
    return ROOT / "build" / f"shuffle-{number}" / "fdscale"


def low_64() -> None:
    """Searches at low:64 with one set of switches, called and inlined.

    The differences are of the size that code placement makes, so each run is of
    another build: the interval is over them.
    """
    drivers = [shuffled(number) for number in range(1, 6)]
    print("dup-close on the model, low:64, one task: ratio to two-level [95%]")
    print(f"over {len(drivers)} builds, functions in another order in each")
    names = [f"{s}+cond-clear" for s in SEARCHES]
    names += [f"{s}+inline-search" for s in names]
    base = names[0]
    for size in (128, 4096):
        for blown in (0, 64):
            words = ["dup-close", "--backend", "model", "--hold", "low:64"]
            words += ["--table-size", str(size), "--blow", str(blown)]
            words += ["--variant", ",".join(names), "--windows", "12"]
            runs = [windows(words, driver) for driver in drivers]
            print(f"  {size} slots, {'64 KiB written between' if blown else 'warm'}")
            for name in names[1:]:
                pairs = [stats.block_pairs(run, name, base) for run in runs]
                ratio = said(stats.ratio_interval(pairs))
                print(f"    {name:<40}{ratio}", flush=True)


def instructions(variant: str, loop: str, hole: int, top: int) -> float:
    """Of a turn, by callgrind: the difference of two lengths."""
    counts = []
    for turns in (1000, 2000):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            + [str(BUILD / "tests" / "bench_path"), variant]
            + [loop, str(hole), str(top), str(turns)],
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
    for what, loop, hole, top, pairs in (
        ("few", "pair", 3, 3, 1),
        ("0..63", "pair", 64, 64, 1),
        ("0..63, hole at 40", "pair", 40, 64, 1),
        ("100,000, at top", "pair", 100_000, 100_000, 1),
        ("100,000, hole at 5", "pair", 5, 100_000, 1),
        ("5 and top, in turn", "stale", 5, 100_000, 2),
        ("2015 loop, a turn", "churn", 100_000, 100_000, 1),
    ):
        # The row's own switches: stock-6.12's, as in the kernels counted.
        counts = [
            instructions(f"{n}+sanity-read+eager-expand", loop, hole, top) / pairs
            for n in names
        ]
        print(f"  {what:<18}" + "".join(f"{c:>14.1f}" for c in counts), flush=True)


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
