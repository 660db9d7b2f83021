# SPDX-License-Identifier: GPL-2.0-only
"""What else happened on the host during a run: snapshots before and after it."""

import os
import time
from dataclasses import dataclass, field

from bench import facts, neighbours
from bench.root import Root

# A run is called disturbed from here on.
STEAL_SHARE = 0.01  # of the CPU time that was asked for: what A/A can still see
FOREIGN_CPUS = 0.1  # CPUs' worth of work of others, on small machines ...
FOREIGN_SHARE = 0.01  # ... and this share of the PUs on large ones, if more
FREQUENCY_SHIFT = 0.05  # of the clock: more than a steady governor lets it vary
# /proc/stat counts by sampling at the tick: below this many seconds it is noise.
LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Snapshot:
    """One moment; asdict() of it can be stored. None is what the host hides."""

    time: float  # seconds, monotonic
    own: float  # CPU seconds of this process and the children it waited for
    pus: int | None
    busy: float | None
    steal: float | None
    load: float | None  # the last minute's: stored, not judged (it holds our own)
    khz: int | None  # the clock of the PU that we are on; None if it is not steady
    throttles: int | None
    sweeps: list[int] = field(default_factory=list)  # pids of other runners


def steady_khz(root: Root) -> int | None:
    """The clock of the PU that runs this; None where the governor varies it.

    Of one PU only: older kernels wait 10 ms for each idle one that is asked.
    """
    stat = (root.read("/proc/self/stat") or "").rpartition(")")[2].split()
    if len(stat) < 37:
        return None
    where = f"{facts.CPU}/cpu{stat[36]}/cpufreq"
    if root.read(f"{where}/scaling_governor") not in ("performance", "userspace"):
        return None
    return root.number(f"{where}/scaling_cur_freq")


def snapshot(root: Root) -> Snapshot:
    """The host now. Taken before a driver starts and after it was waited for."""
    times = facts.cpu_times(root)
    pus = facts.online(root)
    load = (root.read("/proc/loadavg") or "").split()
    own = os.times()
    return Snapshot(
        time=time.monotonic(),
        own=sum(own[:4]),
        pus=len(pus) if pus else None,
        busy=times.busy if times else None,
        steal=times.steal if times else None,
        load=float(load[0]) if load else None,
        khz=steady_khz(root),
        throttles=facts.throttles(root),
        sweeps=neighbours.others(root),
    )


def _grown(before: float | None, after: float | None) -> float | None:
    """How much a counter grew; None when one of the readings is missing."""
    return None if before is None or after is None else after - before


def disturbed(before: Snapshot, after: Snapshot) -> list[str]:
    """Why the run between the two is to be marked; empty when it is not."""
    reasons = []
    wall = after.time - before.time
    busy = _grown(before.busy, after.busy)
    steal = _grown(before.steal, after.steal)
    if busy is not None and steal is not None and wall > 0:
        foreign = busy - (after.own - before.own)
        if steal > max(LEAST_SECONDS, STEAL_SHARE * (busy + steal)):
            share = steal / (busy + steal)
            reasons.append(f"the hypervisor stole {share:.1%} of the CPU time")
        least = max(FOREIGN_CPUS, FOREIGN_SHARE * (after.pus or 1))
        if foreign > max(LEAST_SECONDS, least * wall):
            reasons.append(f"others worked for {foreign / wall:.2f} CPUs")
    if before.khz and after.khz:
        if abs(after.khz / before.khz - 1) > FREQUENCY_SHIFT:
            reasons.append(
                f"the clock went from {before.khz // 1000} to {after.khz // 1000} MHz"
            )
    throttles = _grown(before.throttles, after.throttles)
    if throttles:
        reasons.append(f"throttle counts rose by {throttles:.0f}")
    for pid in sorted({*before.sweeps, *after.sweeps}):
        reasons.append(f"another fdscale was measuring (pid {pid})")
    return reasons
