# SPDX-License-Identifier: GPL-2.0-only
"""What one operation took of each perf event, in user space and in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench import stats

SIDES = ("user", "kernel")
SHORT = {"instructions": "instr", "cache-misses": "misses"}  # heads of rows


@dataclass(frozen=True)
class PerOp:
    """Of one event; None where it was not counted."""

    user: float | None
    kernel: float | None

    @property
    def total(self) -> float | None:
        """Both sides; half of it is no total."""
        if self.user is None or self.kernel is None:
            return None
        return self.user + self.kernel

    @property
    def known(self) -> bool:
        """Whether either side is."""
        return self.user is not None or self.kernel is not None

    def __str__(self) -> str:
        sides = (self.user, self.kernel)
        return "+".join("?" if n is None else f"{n:.4g}" for n in sides)


def _over(windows: list[Mapping[str, Any]], event: str, side: str) -> float | None:
    """The mean of an operation: windows with more operations weigh more."""
    counted = [
        (sum(w["ops"]), w["per_op"][event][side])
        for w in windows
        if w["per_op"].get(event, {}).get(side) is not None
    ]
    operations = sum(ops for ops, _ in counted)
    if not operations:
        return None
    return stats.per_operation(sum(ops * n for ops, n in counted), operations)


def per_op(windows: Iterable[Mapping[str, Any]]) -> dict[str, PerOp]:
    """By event, over some windows of one variant; events that nowhere counted too."""
    told = [w for w in windows if w.get("per_op")]
    events = dict.fromkeys(event for w in told for event in w["per_op"])
    return {e: PerOp(*(_over(told, e, side) for side in SIDES)) for e in events}


def why_not(runs: Iterable[Mapping[str, Any]]) -> str:
    """The driver's reason for a counter that is not there, or ""."""
    said = ((run.get("setup") or {}).get("counters") for run in runs)
    return next((why for why in said if isinstance(why, str)), "")
