# SPDX-License-Identifier: GPL-2.0-only
"""Two sweeps at once on one host: told apart, and the dead are forgotten."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

from conftest import ROOT
from test_disturbance import BEFORE, CALM

from bench import neighbours
from bench.disturbance import disturbed, snapshot
from bench.root import Root

OTHER = """
import sys
from bench import neighbours
neighbours.announce()
neighbours.announce()
print("here", flush=True)
sys.stdin.read()
"""


def test_another_runner_marks_the_run_until_it_dies() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout and other.stdout.readline() == "here\n"
        assert other.pid in neighbours.others(Root())
        assert other.pid in snapshot(Root()).sweeps
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert other.pid not in neighbours.others(Root())


def test_this_one_is_no_neighbour() -> None:
    neighbours.announce()
    assert os.getpid() not in neighbours.others(Root())


def test_seen_before_or_after() -> None:
    for before, after in (([7], []), ([], [7]), ([7], [7])):
        told = disturbed(
            dataclasses.replace(BEFORE, sweeps=before),
            dataclasses.replace(CALM, sweeps=after),
        )
        assert told == ["another fdscale was measuring (pid 7)"]


def test_hidden(tmp_path: Path) -> None:
    assert not neighbours.others(Root(tmp_path))
