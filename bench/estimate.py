# SPDX-License-Identifier: GPL-2.0-only
"""How long runs take before any was seen: constants learnt on two virtual CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.plan import Cell, Plan, variants_for

START_UP = 0.03  # seconds: exec, topology, the hold, the end
A_TASK = {"threads": 50e-6, "processes": 200e-6}  # seconds more to start each
WARM_UP = 3  # rounds of half a window a variant
SETTLING = 1.07  # a window with its settling and the wait between, over itself
FIXED_WORK = 0.02  # seconds of a measurement of fixed work, its process included
FIXED_BLOCKS = 3  # of fixed work, until its length is known
LEAST_BLOCKS = 2
PLAIN_RUN = 1.0  # seconds of a run when no time was given
FIGURE = 0.08  # seconds


def is_fixed(cell: Cell, listing: dict[str, Any]) -> bool:
    """Whether its workload does a number of turns, in no window."""
    return any(
        w["name"] == cell.workload and w["fixed_work"] for w in listing["workloads"]
    )


def outside(cell: Cell, variants: int, plan: Plan, fixed: bool) -> float:
    """Seconds of a run outside what it records."""
    half = FIXED_WORK if fixed else WARM_UP * SETTLING * plan.window_ms / 2000
    return START_UP + cell.tasks * A_TASK[cell.mode] + variants * half


def least_run(cell: Cell, variants: int, plan: Plan, fixed: bool) -> float:
    """Seconds of the shortest run that the sweep makes."""
    if fixed:
        inside = FIXED_BLOCKS * FIXED_WORK
    else:
        inside = LEAST_BLOCKS * SETTLING * plan.window_ms / 1000
    return outside(cell, variants, plan, fixed) + variants * inside


@dataclass
class Estimate:
    """Of a sweep; seconds."""

    runs: int  # asked for
    fit: int  # runs for which there is time
    measuring: float
    figures: float


def estimate(plan: Plan, runs: dict[Cell, int], listing: dict[str, Any]) -> Estimate:
    """For the runs that each cell would have.  --max-time is filled, then it binds.

    A host that is busy, or slower than the one the constants are from, takes
    longer without --max-time, and makes fewer runs with it.
    """
    fixed = {w["name"] for w in listing["workloads"] if w["fixed_work"]}
    shortest = plain = 0.0
    drawn: set[tuple[Cell, str]] = set()
    for cell, number in runs.items():
        variants = len(variants_for(cell, plan, listing))
        least = least_run(cell, variants, plan, cell.workload in fixed)
        shortest += number * least
        plain += number * max(least, PLAIN_RUN)
        kinds = ("rate", "ratio") if variants > 1 else ("rate",)
        drawn |= {(cell.group(), kind) for kind in kinds}
    wanted = fit = sum(runs.values())
    measuring = plain
    if plan.max_time and runs:
        measuring = plan.max_time
        if shortest > plan.max_time:
            fit = max(1, int(wanted * plan.max_time / shortest))
    return Estimate(wanted, fit, measuring, len(drawn) * FIGURE)
