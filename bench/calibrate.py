# SPDX-License-Identifier: GPL-2.0-only
"""What this host can tell apart: the baseline against its clone, again and again.

On the model the clone is a second compiled copy; on the kernel it is the same code
in other windows. Runs are measured for the time given; trials are then *resampled*
from them: a trial is as many runs as its time holds, put together from stretches of
consecutive runs that begin at random, so that what drifts stays together. It asks
for a precision and stops by itself, as `sweep --precision` does. Every other run
gives the threshold of A/A, the runs between are what trials are drawn from, so that
no run is judged by itself. A few runs resampled often are still a few runs: what
they had no part of (a noisy hour) is not in the answer.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bench import calibration, doctor, drive, plot, stats
from bench.calibration import Calibration
from bench.judge import CLONE
from bench.plan import Cell, Plan, common_slots
from bench.problem import COULD_NOT, DONE, Problem
from bench.progress import Progress
from bench.root import Root
from bench.store import Store, write_whole
from bench.summary import percent, wrapped

BLOCKS = 15  # of a run: short ones, for there is more between runs than within
STRETCH = 5  # consecutive runs that a trial takes as they came
LEAST_RUNS = 4 * stats.MIN_RUNS  # for a threshold and trials of their own
TIMES = (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)  # seconds of a trial
TRIAL = 20.0  # seconds of the trials that A/A and --inject are told of
PRECISION = 0.005  # asked for where nothing in particular is looked for
SHOWN = (0.002, 0.005, 0.012, 0.03, 0.1)  # effects of the figure
EFFECTS = np.geomspace(0.0002, 2.0, 150)  # that are tried for the smallest
POWER = 0.95
AFTER = 4.0  # seconds for the trials and the figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Looks:
    """What many trials show each time they are looked at: a row a trial."""

    means: Floats  # of the logs so far
    halves: Floats  # of the interval, on logs
    bounds: Floats  # what A/A stays below at this many runs, on logs; one row


class Trials:
    """Trials from a pool of runs: the logs of their ratios, in the order they came."""

    def __init__(self, pool: Floats, aa: Calibration, count: int, seed: int) -> None:
        self.pool = pool
        self.aa = aa
        self.count = count
        self.seed = seed
        self.seen: dict[int, Looks] = {}

    def runs(self, seconds: float) -> int:
        """How many a trial of so many seconds holds."""
        return int(seconds / self.aa.run_seconds)

    @property
    def held(self) -> float:
        """Seconds that the pool took: a trial of more would hold the same runs again,
        and take what they have in common for what is always so."""
        return float(self.pool.size * self.aa.run_seconds)

    def times(self) -> list[float]:
        """Of the curve: those of TIMES that the pool holds, else all that it does."""
        return [seconds for seconds in TIMES if seconds <= self.held] or [self.held]

    def draw(self, runs: int) -> Floats:
        """A row a trial; a stretch that meets the pool's end goes on at its start."""
        rng = np.random.default_rng(self.seed)
        starts = rng.integers(self.pool.size, size=(self.count, -(-runs // STRETCH)))
        places = (starts[:, :, None] + np.arange(STRETCH)) % self.pool.size
        drawn: Floats = self.pool[places.reshape(self.count, -1)[:, :runs]]
        return drawn

    def looks(self, runs: int) -> Looks:
        """At the sizes where a sweep may stop, and when the time is up."""
        if runs not in self.seen:
            drawn = self.draw(runs)
            sizes = np.array([*stats.stop_sizes(runs - 1), runs])
            parts = [drawn[:, :size] for size in sizes]
            errors = [np.std(part, axis=1, ddof=1) for part in parts]
            scale = stdtrit(sizes - 1, 0.975) / np.sqrt(sizes)
            self.seen[runs] = Looks(
                np.stack([np.mean(part, axis=1) for part in parts], axis=1),
                np.stack(errors, axis=1) * scale,
                np.log1p([self.aa.threshold(int(size)) for size in sizes]),
            )
        return self.seen[runs]

    def signs(self, runs: int, precision: float, shift: Floats | float = 0.0) -> Floats:
        """What each trial calls in the end: 1 faster, -1 slower, 0 nothing.

        shift is added to the log of each trial's ratio. By the rules of
        stats.stop_now and stats.difference, for all trials at once.
        """
        if runs < stats.MIN_RUNS:
            return np.zeros(self.count)
        looks = self.looks(runs)
        narrow = looks.halves <= np.log1p(precision)
        narrow[:, -1] = True
        end = np.argmax(narrow, axis=1)
        means = looks.means[np.arange(self.count), end] + shift
        needed = np.maximum(looks.halves[np.arange(self.count), end], looks.bounds[end])
        called: Floats = np.where(np.abs(means) > needed, np.sign(means), 0.0)
        return called

    def called(self, seconds: float, precision: float = PRECISION) -> tuple[int, int]:
        """How many trials of at most so many seconds say faster, and slower."""
        signs = self.signs(self.runs(seconds), precision)
        return int(np.sum(signs > 0)), int(np.sum(signs < 0))

    def power(self, seconds: float, effect: float) -> float:
        """How often it is found, put on top of every trial, up and down in turn.

        Half of it is the precision asked for.
        """
        way = np.where(np.arange(self.count) % 2, 1.0, -1.0)
        shift = way * np.log1p(effect)
        return float(np.mean(self.signs(self.runs(seconds), effect / 2, shift) == way))

    def smallest(self, seconds: float) -> float | None:
        """The effect that is found POWER of the time; None: not one."""
        low, high = 0, EFFECTS.size
        while low < high:
            middle = (low + high) // 2
            if self.power(seconds, float(EFFECTS[middle])) >= POWER:
                high = middle
            else:
                low = middle + 1
        return float(EFFECTS[low]) if low < EFFECTS.size else None


def log_ratios(records: list[dict[str, Any]]) -> Floats:
    """The clone over the baseline, one a run."""
    found = []
    for record in records:
        base, clone = record["variants"]
        pairs = stats.block_pairs(record["windows"], clone, base)
        found.append(np.log(stats.run_ratio(pairs)))
    return np.array(found)


def power_series(
    trials: Trials, injected: Trials | None, effect: float
) -> list[plot.Series]:
    """Of each effect, how often it is found in how much time."""
    times = trials.times()

    def line(name: str, shares: list[float]) -> plot.Series:
        points: list[plot.Point] = [
            (seconds, share, None, None) for seconds, share in zip(times, shares)
        ]
        return plot.Series(name, points)

    made = [
        line(f"{100 * e:g}%", [trials.power(seconds, e) for seconds in times])
        for e in SHOWN
    ]
    called = [sum(trials.called(s)) / trials.count for s in times]
    made.append(line("nothing (A/A)", called))
    if injected:
        found = [injected.called(s, effect / 2)[1] / injected.count for s in times]
        made.append(line(f"{100 * effect:g}% injected", found))
    return made


class Calibrate:
    """One calibration: measure, draw trials, say, keep."""

    def __init__(
        self,
        backend: str,
        mode: str,
        tasks: int,
        trials: int,
        max_time: float,
        inject: float,
        seed: int,
        quiet: bool,
    ) -> None:
        self.begun = time.monotonic()
        listing = drive.ask("list")
        self.plan = Plan()
        name = self.plan.variant[0] if backend == "model" else str(listing["kernel"])
        self.variants = [name, name + CLONE]
        slots = common_slots("none", mode, tasks)
        self.cell = Cell(
            *("dup-close", backend, "none", "compact", mode, tasks), table_size=slots
        )
        self.trials, self.inject, self.seed = trials, inject, seed
        self.max_time = max_time
        self.quiet = quiet
        self.failed: list[str] = []  # what the runs that failed say

    def measure(self, store: Store) -> list[list[dict[str, Any]]]:
        """A/A's runs, and with --inject in turn with them those of the slower clone.

        A run that fails is left out. Raises Problem where they are refused, and where
        the time held too few.
        """
        rng = random.Random(self.seed)
        end = self.begun + self.max_time - AFTER
        costs = [0.0, self.inject] if self.inject else [0.0]
        pools: list[list[dict[str, Any]]] = [[] for _ in costs]
        progress = Progress(0, self.quiet)
        while time.monotonic() < end:
            for pool, cost in zip(pools, costs):
                number = len(pool)
                record = drive.run_cell(
                    *(self.cell, self.variants, self.plan, number, BLOCKS),
                    *(rng.getrandbits(32), cost),
                )
                if cost:
                    # No run of the cell: compare is not to take it for one.
                    record["type"] = "injected"
                store.add(record)
                progress.total += 1
                if drive.is_hopeless(record):
                    raise Problem(record["error"]["status"], record["error"]["text"])
                if record["error"]:
                    self.failed.append(record["error"]["text"])
                else:
                    pool.append(record)
                progress.show(progress.total, str(self.cell), end - time.monotonic())
        progress.clear()
        if len(pools[0]) < LEAST_RUNS:
            text = f"--max-time {self.max_time:g}: held {len(pools[0])} runs of A/A"
            why = f" ({self.failed[-1]})" if self.failed else ""
            text += f"{why}, {LEAST_RUNS} are needed; give it more"
            raise Problem(COULD_NOT, text)
        return pools

    def found(self, host: dict[str, Any], records: list[dict[str, Any]]) -> Calibration:
        """From all runs of A/A; what it resolves is not known yet."""
        logs = log_ratios(records)
        seconds = sum(r["seconds"] for r in records) / len(records)
        return Calibration(
            hostname=str(host["hostname"]),
            release=str(host["kernel"]["release"]),
            backend=self.cell.backend,
            mode=self.cell.mode,
            tasks=self.cell.tasks,
            time=time.time(),
            runs=len(records),
            run_seconds=seconds,
            bias=float(np.mean(logs)),
            spread=stats.spread(np.exp(logs)),
            resolves=(),
            disturbed=sum(bool(r["disturbed"]) for r in records),
        )

    def run(self, out: Path) -> int:
        """./run.py calibrate; the exit status."""
        store = Store(out)
        needs = doctor.needs_of([self.cell], self.plan.hold_top)
        preset = drive.ask("list")["kernel"]
        host = doctor.record(Root(), needs, preset, drive.build_id())
        try:
            write_whole(out / "host.json", json.dumps(host, indent=1) + "\n")
            pools = self.measure(store)
        finally:
            store.close()
        every_other = self.found(host, pools[0][::2])
        trials = Trials(log_ratios(pools[0][1::2]), every_other, self.trials, self.seed)
        injected = None
        if self.inject:
            slower = log_ratios(pools[1])
            injected = Trials(slower, every_other, self.trials, self.seed)
        smallest = {seconds: trials.smallest(seconds) for seconds in trials.times()}
        whole = self.found(host, pools[0])
        pairs = tuple((s, e) for s, e in smallest.items() if e is not None)
        whole = replace(whole, resolves=pairs)
        text = self.text(whole, smallest, trials, injected)
        path = calibration.keep(whole)
        if path:
            text += wrapped(f"Kept in {path}") + "\n"
        write_whole(out / "summary.txt", text)
        print(text, end="", flush=True)
        if not self.quiet:
            print(f"Results in {out}", flush=True)
        self.draw(out, trials, injected, f"{whole.hostname}, kernel {whole.release}")
        return DONE

    def draw(
        self, out: Path, trials: Trials, injected: Trials | None, where: str
    ) -> None:
        """figures/power, the data beside it."""
        (out / "figures").mkdir(exist_ok=True)
        names = " against ".join(self.variants)
        subtitle = (
            f"{where}; {names}; {self.trials} trials a point, resampled from "
            f"{trials.pool.size} runs"
        )
        titles = plot.Titles(f"What is found here: {self.cell}", subtitle)
        lines = power_series(trials, injected, self.inject)
        plot.draw("power", out / "figures" / "power", lines, titles)

    def text(
        self,
        whole: Calibration,
        smallest: dict[float, float | None],
        trials: Trials,
        injected: Trials | None,
    ) -> str:
        """What is said of it, within 80 columns."""
        trial = min(TRIAL, trials.held)
        called = sum(trials.called(trial))
        parts = [
            f"{self.cell}",
            f"{self.variants[1]} against {self.variants[0]}, {whole.hostname}, "
            f"kernel {whole.release}",
            f"Measured {whole.runs} runs of A/A, {whole.run_seconds:.2f} s each, "
            f"{whole.runs * whole.run_seconds:.0f} s in all. Their ratios spread by "
            f"{100 * whole.spread:.2g}% and lie {100 * np.expm1(whole.bias):+.2g}% "
            "from 1 on average.",
            f"Trials are resampled, not measured one by one: each is drawn from the "
            f"same {trials.pool.size} runs ({trials.held:.0f} s) in stretches of "
            f"{STRETCH}; the other runs give the threshold.",
            f"A/A: a difference called in {called} of {trials.count} trials of at most "
            f"{trial:.0f} s, stopping at +-{100 * PRECISION:g}%.",
        ]
        if whole.disturbed:
            parts.append(
                f"Disturbed: {whole.disturbed} of {whole.runs} runs; they are in it: "
                "what it resolves is what it resolves when so busy."
            )
        if self.failed:
            parts.append(f"Left out: {len(self.failed)} failed runs: {self.failed[-1]}")
        if injected:
            ratio = stats.t_interval(np.exp(injected.pool))
            faster, slower = injected.called(trial, self.inject / 2)
            parts.append(
                f"Injected {100 * self.inject:g}%: measured as x{ratio.estimate:.4f}"
                f"{percent(ratio)} (x{1 / (1 + self.inject):.4f} is right) in "
                f"{ratio.n} runs; found in {slower} of {injected.count} "
                f"trials of at most {trial:.0f} s, called faster in "
                f"{faster}, stopping at +-{50 * self.inject:g}%."
            )
        text = "\n".join(wrapped(part) for part in parts)
        text += "\n\n  time of a trial   runs   smallest effect found 95 times in 100\n"
        for seconds, effect in smallest.items():
            runs = trials.runs(seconds)
            shown = f"{100 * effect:.2g}%" if effect else "none"
            text += f"  {seconds:>13.0f} s {runs:>6}   {shown}\n"
        return text + "\n" + wrapped(whole.sentence()) + "\n"
