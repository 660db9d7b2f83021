# SPDX-License-Identifier: GPL-2.0-only
"""What marks a run as disturbed, on either side of each threshold."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from fakeroot import CPU, HEAT, put, quiet

from bench.disturbance import Snapshot, disturbed, snapshot
from bench.root import Root

BEFORE = Snapshot(
    time=100.0,
    own=3.0,
    pus=4,
    busy=50.0,
    steal=1.0,
    load=0.1,
    khz=2_400_000,
    throttles=5,
)
# Ten seconds later, two tasks of ours have worked and nobody else.
CALM = dataclasses.replace(BEFORE, time=110.0, own=23.0, busy=70.0, load=2.0)


def test_a_calm_run() -> None:
    assert disturbed(BEFORE, CALM) == []


@pytest.mark.parametrize(
    "change, words",
    [
        ({"busy": 71.1}, "others worked for 0.11 CPUs"),
        ({"steal": 1.21}, "the hypervisor stole 1.0% of the CPU time"),
        ({"khz": 2_270_000}, "the clock went from 2400 to 2270 MHz"),
        ({"khz": 2_530_000}, "the clock went from 2400 to 2530 MHz"),
        ({"throttles": 6}, "throttle counts rose by 1"),
    ],
)
def test_a_disturbed_run(change: dict[str, float], words: str) -> None:
    after = dataclasses.replace(CALM, **change)
    assert disturbed(BEFORE, after) == [words]


@pytest.mark.parametrize(
    "change",
    [
        {"busy": 70.9},
        {"busy": 69.0},  # the tick missed some of our own
        {"steal": 1.19},
        {"khz": 2_290_000},
        {"throttles": None},
        {"khz": None},
        {"busy": None},
        {"steal": None},
        {"pus": None},
    ],
)
def test_just_below(change: dict[str, float | None]) -> None:
    after = dataclasses.replace(CALM, **change)
    assert disturbed(BEFORE, after) == []


def test_a_large_machine_has_more_of_a_background() -> None:
    before = dataclasses.replace(BEFORE, pus=160)
    after = dataclasses.replace(CALM, pus=160, busy=85.0)
    assert disturbed(before, after) == []
    after = dataclasses.replace(after, busy=87.0)
    assert disturbed(before, after) == ["others worked for 1.70 CPUs"]


def test_several_reasons_are_all_told() -> None:
    after = dataclasses.replace(CALM, busy=80.0, steal=2.0, throttles=9)
    assert len(disturbed(BEFORE, after)) == 3


def test_snapshot_reads_what_is_there(tmp_path: Path) -> None:
    put(quiet(tmp_path), {f"{CPU}/cpu1/{HEAT}/core_throttle_count": "4"})
    now = snapshot(Root(tmp_path))
    tick = os.sysconf("SC_CLK_TCK")
    assert (now.busy, now.steal) == (1510 / tick, 0.0)
    assert (now.pus, now.load, now.khz, now.throttles) == (4, 0.05, 2_100_000, 4)
    assert json.loads(json.dumps(dataclasses.asdict(now)))["pus"] == 4


@pytest.mark.parametrize("governor", ["schedutil", "powersave", None])
def test_a_clock_that_varies_is_not_compared(
    tmp_path: Path, governor: str | None
) -> None:
    put(quiet(tmp_path), {f"{CPU}/cpu1/cpufreq/scaling_governor": governor})
    assert snapshot(Root(tmp_path)).khz is None


def test_snapshot_of_nothing(tmp_path: Path) -> None:
    now = snapshot(Root(tmp_path))
    assert (now.busy, now.steal, now.load, now.khz) == (None, None, None, None)
    assert disturbed(now, snapshot(Root(tmp_path))) == []


def test_own_work_counts_as_ours() -> None:
    before = snapshot(Root())
    total = 0
    while snapshot(Root()).own - before.own < 0.2:
        total += sum(range(1000))
    assert snapshot(Root()).own >= before.own + 0.2
