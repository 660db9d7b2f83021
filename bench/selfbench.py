# SPDX-License-Identifier: GPL-2.0-only
"""`make bench`: what the tool itself costs, as ratios within one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import modelbench, peerbench, stats
from bench.problem import DONE, USAGE, Problem

ROOT = Path(__file__).resolve().parent.parent
LOOP = modelbench.BUILD / "tests" / "bench_loop"


def loop() -> None:
    """The measured loop against a bare one: 7 processes of 100 pairs."""
    runs = []
    for _ in range(7):
        done = subprocess.run([LOOP, "100"], capture_output=True, text=True, check=True)
        lines = [line.split() for line in done.stdout.splitlines()]
        runs.append([(float(a), float(b)) for a, b in lines])
    print("dup-close, one task: the harness's loop over a bare one (wanted: 0.99)")
    print(f"  {modelbench.said(stats.ratio_interval(runs))}, 7 runs")


def start_up() -> None:
    """exec() to all tasks at the start barrier, by the number of tasks."""
    print("start-up, ms from main() to all tasks ready (wanted at 1024: under 1000)")
    print(f"  {'tasks':>6}{'threads':>10}{'processes':>11}")
    for tasks in (1, 2, 16, 128, 1024, 2048):
        row = f"  {tasks:>6}"
        for mode, width in (("threads", 10), ("processes", 11)):
            took = [one_start(tasks, mode) for _ in range(3)]
            row += f"{sorted(took)[1]:>{width}.1f}"
        print(row, flush=True)


def one_start(tasks: int, mode: str) -> float:
    """Milliseconds; the run ends after one window."""
    words = ["run", "dup-close", "--tasks", str(tasks), "--mode", mode]
    words += ["--oversubscribe", "--windows", "1", "--window-ms", "1", "--json"]
    with subprocess.Popen(
        [modelbench.DRIVER, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        setup: dict[str, Any] = json.loads(process.stdout.readline())
        process.stdout.read()
    return float(setup["startup_ns"]) / 1e6


def quick_sweep() -> None:
    """How much of a quick sweep's wall time is inside recorded windows."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results"
        begun = time.monotonic()
        subprocess.run(
            [ROOT / "run.py", "sweep", "--quick", "-q", "--out", out],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        wall = time.monotonic() - begun
        lines = (out / "results.jsonl").read_text().splitlines()
    runs = [r for r in map(json.loads, lines) if r["type"] == "run"]
    inside = sum(r["recorded_ns"] for r in runs) / 1e9
    drivers = sum(r["seconds"] for r in runs)
    print("quick sweep (wanted: 75% inside windows, under 50 s)")
    print(f"  {wall:.1f} s, {100 * inside / wall:.0f}% inside recorded windows")
    print(
        f"  the rest: {drivers - inside:.1f} s in the drivers (start-up, warm-up, "
        f"settling), {wall - drivers:.1f} s in the runner and figures"
    )


def planning() -> None:
    """10,000 cells and more, each checked by the driver as it would start."""
    counts = ",".join(map(str, range(1, 517)))
    words = ["sweep", "--dry-run", "--json", "--workload", "dup-close"]
    words += ["--tasks", counts, "--place", "compact,scatter"]
    words += ["--hold", "none,low:64,low:200"]
    machine = "pack:2 group:3 [numa] l3:1 core:43 pu:2(indexes=2*258:1*2)"
    begun = time.monotonic()
    done = subprocess.run(
        [ROOT / "run.py", *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"HWLOC_SYNTHETIC": machine},
    )
    took = time.monotonic() - begun
    cells = len(json.loads(done.stdout)["cells"])
    print("sweep --dry-run on 516 PUs (wanted: 10,000 cells under 2 s)")
    print(f"  {cells} cells in {took:.2f} s: {10_000 * took / cells:.2f} s for 10,000")


PARTS: dict[str, Callable[[], None]] = {
    "loop": loop,
    "planning": planning,
    "start-up": start_up,
    "churn": modelbench.churn,
    "low64": modelbench.low_64,
    "path": modelbench.path_length,
    "million": modelbench.millions,
    "sweep": quick_sweep,
}


# With PEER=DIR: these, and the first of them where no part is named.
PEER_PARTS: dict[str, Callable[[], None]] = {
    "peer": peerbench.side_by_side,
    "testcases": peerbench.testcases,
}


def main(words: list[str]) -> int:
    """The parts named, or all of them; the exit status."""
    known = PARTS | PEER_PARTS
    wrong = [w for w in words if w not in known]
    if wrong:
        print(f"bench: no part '{wrong[0]}'; there are: {' '.join(known)}")
        return USAGE
    print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs")
    try:
        for name in words or (["peer"] if os.environ.get("PEER") else PARTS):
            known[name]()
            sys.stdout.flush()
    except Problem as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return problem.status
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
