# SPDX-License-Identifier: GPL-2.0-only
"""The sweep: every cell, several runs, in random order, within the time given."""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import compat, doctor, drive, figure, figures, neighbours, own, stats
from bench import summary
from bench.calibration import Calibrations
from bench.estimate import FIXED_BLOCKS, LEAST_BLOCKS, PLAIN_RUN, SETTLING
from bench.estimate import estimate, is_fixed, outside
from bench.host import caution, differences, load_host, machine, measured_host
from bench.judge import by_cell, judge
from bench.plan import Cell, Plan, expand, variants_for
from bench.problem import COULD_NOT, DONE, INTERRUPTED, USAGE, Problem
from bench.profile import run_profile
from bench.progress import Progress, duration
from bench.root import Root
from bench.store import Store, load, write_whole
from bench.strict import unfit
from bench.words import count


class Pace:
    """How many blocks a run may have, learnt from the runs before it."""

    def __init__(self, plan: Plan, runs: int) -> None:
        self.plan = plan
        self.left = runs
        # A guest's windows may take a hundred times as long: seen in a short run first.
        self.guest = "FDSCALE_GUEST" in os.environ
        self.begun = time.monotonic()
        self.total = plan.max_time or runs * PLAIN_RUN
        self.start_up: dict[Cell, list[float]] = defaultdict(list)
        self.block: dict[Cell, float] = {}

    def time_left(self) -> float:
        """Seconds."""
        return self.total - (time.monotonic() - self.begun)

    def over(self) -> bool:
        """Whether the time that was set is up."""
        return bool(self.plan.max_time) and self.time_left() <= 0

    def blocks(self, cell: Cell, variants: int, fixed: bool) -> int:
        """For the next run of the cell; never fewer than two."""
        share = max(self.time_left(), 0.0) / max(self.left, 1)
        if not self.plan.max_time:
            share = PLAIN_RUN
        if self.plan.precision:  # more runs make it narrower than longer ones
            share = min(share, PLAIN_RUN)
        seen = self.start_up[cell]
        guess = outside(cell, variants, self.plan, fixed)
        share -= sum(seen) / len(seen) if seen else guess
        length = self.block.get(cell, 0.0)
        if not length and fixed:
            return FIXED_BLOCKS
        if not length and self.guest:
            return LEAST_BLOCKS
        length = length or variants * self.plan.window_ms / 1000 * SETTLING
        return max(LEAST_BLOCKS, min(100_000, int(share / length)))

    def seconds(
        self, cell: Cell, variants: int, fixed: bool, blocks: int
    ) -> float | None:
        """What such a run should take; None where nobody knows yet."""
        length = self.block.get(cell)
        if length is None and (fixed or self.guest):
            return None
        length = length or variants * self.plan.window_ms / 1000 * SETTLING
        seen = max(self.start_up[cell], default=0.0)
        return outside(cell, variants, self.plan, fixed) + seen + blocks * length

    def learn(self, cell: Cell, record: dict[str, Any], blocks: int) -> None:
        """From a run that went well."""
        self.left -= 1
        if record["error"]:
            return
        inside = record["recorded_ns"] / 1e9 * SETTLING
        if self.guest:
            inside = record["seconds"]
        self.block[cell] = max(inside / blocks, 1e-6)
        self.start_up[cell].append(max(record["seconds"] - inside, 0.0))


def narrow(runs: list[dict[str, Any]], plan: Plan, baseline: str) -> bool:
    """Whether every ratio of a cell (a lone variant's rate) is narrow enough."""
    good = [r for r in runs if not r["error"]]
    if not good:
        return False
    variants = good[0]["variants"]
    base = baseline if baseline in variants else variants[0]
    if len(variants) == 1:
        values = [stats.run_rate([w["rate"] for w in r["windows"]]) for r in good]
        return stats.stop_now(values, plan.precision)
    return all(
        stats.stop_now(
            [stats.run_ratio(stats.block_pairs(r["windows"], v, base)) for r in good],
            plan.precision,
        )
        for v in variants
        if v != base
    )


def once_narrow(runs: list[dict[str, Any]], plan: Plan, baseline: str) -> bool:
    """Whether it was at any of the looks that so many runs had."""
    good = [r for r in runs if not r["error"]]
    return any(narrow(good[:n], plan, baseline) for n in stats.stop_sizes(len(good)))


class Sweep:
    """One sweep into one results folder."""

    def __init__(
        self,
        plan: Plan,
        quiet: bool = False,
        verbose: bool = False,
        before: list[dict[str, Any]] | None = None,
    ) -> None:
        """Before is what was measured of it already."""
        self.plan = plan
        self.begun = time.monotonic()
        self.listing = drive.ask("list")
        self.drivers = own.build(plan, self.listing)
        kind = ["--core-kind", plan.core_kind] if plan.core_kind else []
        self.topology = drive.ask("topology", *kind)
        self.check_words()
        self.check_switch()
        self.cells = expand(plan, self.topology, self.listing)
        self.records = list(before or [])
        self.earlier = len(self.records)
        self.profiles: list[dict[str, Any]] = []
        self.refused: set[Cell] = set()
        self.finished: set[Cell] = set()
        if plan.precision:
            for cell, runs in by_cell(self.records).items():
                if once_narrow(runs, plan, plan.baseline):
                    self.finished.add(cell)
        self.quiet = quiet
        self.verbose = verbose
        self.progress = Progress(len(self.cells) * plan.least_runs, quiet, verbose)

    def check_words(self) -> None:
        """Workloads and variants; all else is the driver's to refuse, cell by cell."""
        for keys, why in unfit(asdict(self.plan), []):
            flag = str(keys[0]).replace("_", "-")
            raise Problem(USAGE, f"--{flag}: {why}")
        known = sorted({w["name"] for w in self.listing["workloads"]})
        wrong = [w for w in (*self.plan.workload, *self.plan.options) if w not in known]
        if wrong:
            raise Problem(
                USAGE, f"no workload '{wrong[0]}'; there are: {' '.join(known)}"
            )
        named = {*self.plan.variant}
        if "all" in named:
            named.update(v for every in self.listing["all"].values() for v in every)
        if self.plan.baseline and self.plan.baseline not in named:
            raise Problem(
                USAGE,
                f"--baseline: '{self.plan.baseline}' is not among the variants "
                f"{','.join(self.plan.variant)}",
            )
        # A kernel without a switch is asked for the one form that it has, and would
        # never see a wrong word.
        served = next(
            w["name"] for w in self.listing["workloads"] if w["backend"] == "model"
        )
        words = ["run", served, "--backend", "model", "--variant"]
        for answer in drive.check([[*words, v] for v in self.plan.variant]):
            if not answer["ok"]:
                raise Problem(answer["status"], answer["text"])

    def check_switch(self) -> None:
        """Variants that a kernel without a switch cannot serve are not passed over
        in silence."""
        named, running = self.plan.variant, str(self.listing["kernel"])
        default = named == Plan().variant
        if "kernel" not in self.plan.backend or self.listing["switch"] or default:
            return
        others = [v for v in named if v.split("#")[0] != running]
        if not others:
            return
        text = (
            f"the running kernel is {running} and has no switch for "
            f"{','.join(others)}: ./run.py kernel load, or kernel patch and a boot"
        )
        if self.plan.backend == ["kernel"] and others == named != ["all"]:
            raise Problem(COULD_NOT, f"--variant: {text}")
        print(f"run.py: {text}; measured on it: {running}", file=sys.stderr)

    def commands(self) -> list[list[str]]:
        """The driver's command line for each cell."""
        plan = self.plan
        return [
            drive.command(c, variants_for(c, plan, self.listing), plan, plan.seed)
            for c in self.cells
        ]

    def answers(self, commands: list[list[str]]) -> list[dict[str, Any]]:
        """What the driver of each cell would say to its command line."""
        programs = [self.drivers.get(c.workload) for c in self.cells]
        told: dict[Path | None, Iterator[dict[str, Any]]] = {}
        for program in dict.fromkeys(programs):
            mine = [w for w, p in zip(commands, programs) if p == program]
            told[program] = iter(drive.check(mine, program))
        return [next(told[p]) for p in programs]

    @cached_property
    def refusals(self) -> dict[Cell, dict[str, Any]]:
        """The cells that the driver would refuse: its status and its words."""
        answers = zip(self.cells, self.answers(self.commands()))
        return {cell: answer for cell, answer in answers if not answer["ok"]}

    def ready(self) -> None:
        """Raises Problem where it should not start, before anything is made."""
        if self.topology["source"] != "this system":
            raise Problem(
                USAGE,
                "a sweep measures this machine: unset HWLOC_XMLFILE and "
                "HWLOC_SYNTHETIC, or add --dry-run to plan for another",
            )
        figure.find_gnuplot()
        wrong = [c for c, a in self.refusals.items() if a["status"] == USAGE]
        if not wrong and len(self.refusals) == len(self.cells):
            wrong = self.cells
        if wrong:
            answer = self.refusals[wrong[0]]
            which = str(wrong[0])
            if len(wrong) > 1:
                which = f"{count(len(wrong), 'cell')}, the first {which}"
            raise Problem(answer["status"], f"{answer['text']} ({which})")

    def missing(self) -> dict[Cell, int]:
        """How many runs each cell lacks; with --precision, at least."""
        have = Counter(cell for cell, _ in self.done())
        lacking = {
            cell: self.plan.least_runs - have[cell]
            for cell in self.cells
            if cell not in self.finished
        }
        return {cell: runs for cell, runs in lacking.items() if runs > 0}

    def dry_run(self, as_json: bool = False) -> tuple[str, int]:
        """The cells that lack runs, what the driver would refuse, the time; and the
        exit status that the sweep would have for that."""
        plan = self.plan
        status = max((a["status"] for a in self.refusals.values()), default=DONE)
        if any(a["status"] == USAGE for a in self.refusals.values()):
            status = USAGE  # a wrong word: nothing would be measured
        missing = self.missing()
        good = {c: n for c, n in missing.items() if c not in self.refusals}
        time_ = estimate(plan, good, self.listing)
        commands = dict(zip(self.cells, self.commands()))
        if as_json:
            cells = [
                {
                    "cell": cell.as_dict(),
                    "command": commands[cell],
                    "runs": runs,
                    "refused": self.refusals.get(cell, {}).get("text"),
                }
                for cell, runs in missing.items()
            ]
            told = {"schema": 1, "topology": self.topology["source"], "cells": cells}
            return json.dumps(told | {"estimate": asdict(time_)}), status
        lines = []
        for cell, runs in good.items():
            lacks = f"{count(runs, 'run')} of " if self.earlier else ""
            if not self.quiet:
                lines.append(f"{lacks}{cell}")
            if self.verbose:
                lines.append(f"  fdscale {shlex.join(commands[cell])}")
        refused = [f"refused: {c}: {a['text']}" for c, a in self.refusals.items()]
        total = f"{count(len(good), 'cell')}, {count(plan.least_runs, 'run')} each"
        if self.earlier:
            total = f"missing: {count(sum(good.values()), 'run')} of "
            total += count(len(good), "cell")
        if plan.precision:
            total += " or more"
        total += f", {'at most' if plan.precision else 'about'} "
        total += (
            f"{duration(time_.measuring)} and {duration(time_.figures)} for figures"
        )
        lines += [*refused, total]
        if refused:
            lines.append(
                f"{count(len(refused), 'cell')} would be refused, as said above"
                + (": nothing would be measured" if status == USAGE else "")
            )
        if time_.fit < time_.runs:
            lines.append(
                f"--max-time {plan.max_time:g} is short: about {time_.fit} of "
                f"{count(time_.runs, 'run')} fit"
            )
        if self.topology["source"] != "this system":
            lines.append(
                f"placed on {self.topology['source']}; the limits are this host's"
            )
        return "\n".join(lines), status

    def measure(self, store: Store) -> int:
        """All runs that are missing; DONE or INTERRUPTED.  All is in the store."""
        rng = random.Random(self.plan.seed)
        done = self.done()
        pace = Pace(self.plan, sum(self.missing().values()))
        run = 0
        try:
            while run < self.plan.runs or self.plan.precision:
                todo = [c for c in self.cells if c not in self.finished | self.refused]
                if not todo or pace.over():
                    break
                rng.shuffle(todo)
                if not run:  # what is refused takes no time from the others
                    todo.sort(key=lambda c: c not in self.refusals)
                if run >= self.plan.least_runs and pace.left <= 0:
                    pace.left = len(todo) * (stats.next_look(run) - run)
                for cell in todo:
                    seed = rng.getrandbits(32)
                    if pace.over():
                        break
                    if (cell, run) not in done:
                        self.one(cell, run, store, pace, seed)
                run += 1
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            self.progress.clear()
        return DONE

    def done(self) -> set[tuple[Cell, int]]:
        """The runs that are on record and whole; a failed one is made again."""
        return {
            (Cell.from_dict(r["cell"]), r["run"])
            for r in self.records
            if not r["error"]
        }

    def not_measured(self) -> list[Cell]:
        """Cells without any run, not even a failed one."""
        tried = {Cell.from_dict(r["cell"]) for r in self.records}
        return [c for c in self.cells if c not in tried]

    def one(self, cell: Cell, run: int, store: Store, pace: Pace, seed: int) -> None:
        """One run of one cell."""
        variants = variants_for(cell, self.plan, self.listing)
        fixed = is_fixed(cell, self.listing)
        blocks = pace.blocks(cell, len(variants), fixed)
        self.progress.show(len(self.records), self.telling(cell), pace.time_left())
        planned = pace.seconds(cell, len(variants), fixed, blocks)
        record = drive.run_cell(
            *(cell, variants, self.plan, run, blocks, seed),
            program=self.drivers.get(cell.workload),
            planned=planned,
        )
        store.add(record)
        self.records.append(record)
        pace.learn(cell, record, blocks)
        if drive.is_hopeless(record):
            self.refused.add(cell)
            pace.left -= self.plan.least_runs - run - 1
        elif self.plan.precision:
            mine = [r for r in self.records if Cell.from_dict(r["cell"]) == cell]
            if narrow(mine, self.plan, self.plan.baseline):
                self.finished.add(cell)

    def look_inside(self, store: Store) -> int:
        """Each measured cell once more, under perf; DONE or INTERRUPTED."""
        seen = {Cell.from_dict(r["cell"]) for r in self.profiles}
        whole = {Cell.from_dict(r["cell"]) for r in self.records if not r["error"]}
        try:
            for cell in self.cells:
                if cell not in whole - seen:
                    continue
                self.progress.show(len(self.records), f"perf: {cell}", 0)
                variants = variants_for(cell, self.plan, self.listing)
                found = run_profile(cell, variants, self.plan, self.plan.seed)
                store.add(found)
                self.profiles.append(found)
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            self.progress.clear()
        return DONE

    def telling(self, cell: Cell) -> str:
        """The cell, and the rate and interval of its first variant so far."""
        rates = []
        for record in self.records:
            if record["windows"] and Cell.from_dict(record["cell"]) == cell:
                first = record["variants"][0]
                rates.append(
                    [w["rate"] for w in record["windows"] if w["variant"] == first]
                )
        if not rates:
            return str(cell)
        interval = stats.rate_interval(rates)
        so_far = summary.human(interval.estimate) + summary.percent(interval)
        return f"{so_far} {cell}"

    def host_line(self, host: dict[str, Any], known: Calibrations) -> dict[str, str]:
        """What titles say of the machine."""
        return {
            "machine": machine(host, self.topology["pus"]),
            "kernel": f"{self.listing['release']} ({self.listing['kernel']})",
            "caution": caution(host),
            "resolves": known.resolves(self.cells),
            "taints": doctor.taints(host),
        }

    def collect(self, out: Path, resume: bool = False) -> int:
        """Measure into a results folder; DONE, COULD_NOT or INTERRUPTED."""
        store = Store(out, resume)
        others = ", ".join(map(str, neighbours.others(Root())))
        if others:
            said = (
                f"run.py: another fdscale (pid {others}) measures on this host: the "
                "runs of both will be marked; better wait for its end"
            )
            print(summary.wrapped(said), file=sys.stderr)
        self.host = this_host(self.listing)
        if "guest" not in self.host:  # that this host is fit says nothing of a guest
            needs = doctor.needs_of(self.cells, self.plan.hold_top)
            self.host |= doctor.findings(Root(), needs)
        if not resume:
            write_whole(out / "host.json", json.dumps(self.host, indent=1) + "\n")
            store.add({"schema": 1, "type": "plan", "plan": asdict(self.plan)})
        try:
            status = self.measure(store)
            if self.plan.profile and status == DONE:
                status = self.look_inside(store)
        finally:
            store.close()
        if not status and self.not_measured():
            return COULD_NOT
        whole = self.done()
        failed = [r for r in self.records if r["error"]]
        if any((Cell.from_dict(r["cell"]), r["run"]) not in whole for r in failed):
            return status or COULD_NOT
        return status

    def run(
        self,
        out: Path,
        as_json: bool = False,
        resume: bool = False,
        compat_with: str = "",
    ) -> int:
        """Measure, draw, summarise; the exit status."""
        self.ready()
        status = self.collect(out, resume)
        known = Calibrations(self.host)
        line = self.host_line(self.host, known)
        base = self.plan.baseline
        told = self.records + self.profiles
        results = judge(told, base, known.threshold)
        title = f"{line['machine']}, kernel {line['kernel']}"
        trouble = None
        more = ""
        try:
            place = figures.Place(title, self.topology["sizes"])
            found = figures.find(results, by_cell(self.records), place)
            drawn = figures.telling(found)
            figures.draw_all(out, drawn)
            if len(drawn) < len(found):
                left = len(found) - len(drawn)
                more = f"{count(len(drawn), 'figure')} in it, and {left} more of single"
                more += f" cells by:\n  ./run.py report {out} --figures"
        except Problem as problem:
            trouble = problem
        wall = time.monotonic() - self.begun
        text = summary.summary(
            *(told, line, self.cells, self.plan.least_runs, base, wall),
            *(known.threshold, self.earlier),
        )
        write_whole(out / "summary.txt", text)
        if compat_with:
            print(compat.will_it_scale(self.cells, self.records), end="", flush=True)
            for result in results:
                for failure in result.failures:
                    print(f"run.py: {result.cell}: {failure}", file=sys.stderr)
        elif as_json:
            answer = summary.as_json(results, line, wall)
            answer["not_measured"] = [c.as_dict() for c in self.not_measured()]
            print(json.dumps(answer), flush=True)
        else:
            print(text, end="", flush=True)
            if not self.quiet:
                print(f"Results in {out}", flush=True)
                if more:
                    print(more, flush=True)
        missing = len(self.not_measured())
        if missing:
            said = f"run.py: {missing} of {count(len(self.cells), 'cell')} were not "
            said += "measured; "
            if "guest" not in self.host:  # a guest's sweep ends with its boot
                said += f"--resume {out} runs what is missing, or "
            print(summary.wrapped(f"{said}give --max-time more"), file=sys.stderr)
        if trouble:
            raise trouble
        return status


def this_host(listing: dict[str, Any]) -> dict[str, Any]:
    """The host that the driver runs on, and which build of it that is."""
    return measured_host(listing["kernel"], drive.build_id())


# What makes other runs of the same cell, besides what host.py doubts.
SAME_RUNS = ("kernel.release", "kernel.boot_id", "cpu.online", "limits.cpuset")
# What does nothing to them where the driver is the same build.
OF_THE_BUILD = ("versions.fdscale", "versions.gcc")


def check_host_same(folder: Path, new: dict[str, Any]) -> None:
    """Raises Problem(USAGE) where runs made now are not runs of the same cells."""
    old = load_host(folder / "host.json")
    found = [d for d in differences(old, new) if d.doubtful or d.key in SAME_RUNS]
    if old["versions"].get("driver") == new["versions"]["driver"]:
        found = [d for d in found if d.key not in OF_THE_BUILD]
    if found:
        what = "; ".join(f"{d.key} was {d.a}, is {d.b}" for d in found[:3])
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise Problem(
            USAGE, f"--resume {folder}: {what}{more}: sweep into a new folder, compare"
        )


def resumed(folder: Path, quiet: bool, verbose: bool, max_time: float | None) -> Sweep:
    """The sweep whose results are in the folder, with what it measured already.

    Raises Problem(USAGE) where that is no sweep's folder, or the host or the driver
    has changed: runs of two boots or kernels are not runs of one cell.
    """
    records = load(folder)
    plans = [r["plan"] for r in records if r["type"] == "plan"]
    if not plans:
        raise Problem(
            USAGE,
            f"--resume {folder}: no plan in it: nothing was measured; remove it and "
            "sweep again",
        )
    check_host_same(folder, this_host(drive.ask("list")))
    plan = Plan(**plans[0])
    plan.max_time = max_time or plan.max_time
    before = [r for r in records if r["type"] == "run"]
    work = Sweep(plan, quiet, verbose, before)
    work.profiles = [r for r in records if r["type"] == "profile"]
    own.check_same(work.cells, work.records, folder)
    return work
