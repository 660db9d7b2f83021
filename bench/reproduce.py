# SPDX-License-Identifier: GPL-2.0-only
"""Claims and questions of the mail threads, put to the test on this host."""

from __future__ import annotations

import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from bench import summary
from bench.calibration import Calibrations
from bench.plan import CONFIG, Plan
from bench.problem import DONE, USAGE, Problem
from bench.store import load
from bench.summary import CellResult, wrapped
from bench.sweep import Sweep


def cases() -> dict[str, dict[str, Any]]:
    """config/claims.toml, by name."""
    data = tomllib.loads((CONFIG / "claims.toml").read_text(encoding="utf-8"))
    return data["case"]  # type: ignore[no-any-return]


def plans(case: dict[str, Any], quick: bool) -> list[tuple[str, Plan]]:
    """The sweeps that settle it, each with what it is for."""
    found = []
    for part in case["settle"]:
        words = {k.replace("-", "_"): v for k, v in part.items() if k != "why"}
        plan = Plan(**words)
        plan.runs = 5 if quick else 11
        plan.window_ms = 5 if quick else 10
        plan.max_time = float(part["max_time"] if "max_time" in part else 20)
        if not quick:
            plan.max_time *= 6
        found.append((part["why"], plan))
    return found


def line(result: CellResult) -> list[str]:
    """A cell and what its variants did."""
    lines = [str(result.cell)]
    for name, judged in result.variants.items():
        rate = summary.human(judged.rate.estimate) + summary.percent(judged.rate)
        text = judged.verdict.text if judged.verdict else "baseline"
        lines.append(wrapped(f"  {name}: {rate}/s; {text}", "      "))
    lines += [wrapped(f"  {failure}", "    ") for failure in result.failures]
    return lines


def tally(ask: str, results: list[CellResult]) -> str:
    """How often the variant in question was called what; signs are kept apart."""
    words: Counter[str] = Counter()
    for result in results:
        judged = result.variants.get(ask)
        if judged and judged.verdict:
            words[judged.verdict.word.split(" beyond")[0]] += 1
    counts = ", ".join(f"{word} in {n}" for word, n in words.most_common())
    against = results[0].baseline if results else "nothing"
    return f"Answer: {ask} against {against}, by cells: {counts or 'no cell'}."


def answer(name: str, case: dict[str, Any], quick: bool, out: Path, quiet: bool) -> int:
    """One case: the claim, then what was found."""
    print(wrapped(f"{name}: {case['who']}, {case['when']} ({case['where']})", ""))
    print(wrapped(case["claim"], ""))
    worst = DONE
    seen: list[CellResult] = []
    for number, (why, plan) in enumerate(plans(case, quick)):
        folder = out / f"{name}-{number}"
        work = Sweep(plan, quiet)
        status = work.collect(folder)
        worst = worst or status
        print("\n" + wrapped(why, ""))
        stored = Calibrations(work.host).threshold
        results = summary.judge(load(folder), plan.baseline, stored)
        for result in results:
            print("\n".join(line(result)))
        seen += [r for r in results if case["ask"] in r.variants]
        if status:
            break
    print("\n" + wrapped(tally(case["ask"], seen), ""))
    print(wrapped(case["reading"], ""))
    return worst


def run(names: list[str], quick: bool, out: Path | None, quiet: bool) -> int:
    """./run.py reproduce; the exit status."""
    known = cases()
    for name in names:
        if name not in known:
            raise Problem(USAGE, f"no case '{name}'; there are: {' '.join(known)}")
    if not names:
        for name, case in known.items():
            print(wrapped(f"{name}: {case['claim']}"))
        return DONE
    worst = DONE
    with tempfile.TemporaryDirectory(prefix="fdscale-reproduce-") as scratch:
        for name in names:
            status = answer(name, known[name], quick, out or Path(scratch), quiet)
            worst = worst or status
    return worst
