# SPDX-License-Identifier: GPL-2.0-only
"""Perf events on the tasks: software ones go the way of the hardware's."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, Run
from made_folders import CALM, folder, run

from bench import counters, summary
from bench.compare import compare
from bench.compare_format import FORMATS
from bench.judge import judge

HOST = {"machine": "a machine, 2 PUs", "kernel": "6.18 (merged-6.13)"}
SHORT = ("--windows", "3", "--window-ms", "20", "--json", "--oversubscribe")


def told(stdout: str) -> tuple[Any, list[dict[str, Any]]]:
    """What the setup says of counters, and what each window has per operation."""
    lines = [json.loads(line) for line in stdout.splitlines()]
    setup = next(e for e in lines if e["event"] == "setup")
    return setup["counters"], [e["per_op"] for e in lines if e["event"] == "window"]


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_both_sides_of_all_tasks_and_their_children(fdscale: Run, mode: str) -> None:
    """Each operation forks: the parent sleeps at least once for the child's end, in
    the kernel; the child, a copy, faults in user space at least once. With the events
    of one task alone, of two, it would be half of that."""
    words = ("run", "fork-copy", "--by", "fork", "--tasks", "2", "--mode", mode)
    events = "context-switches,page-faults,task-clock"
    long = ("--window-ms", "300")
    done = fdscale(*words, *SHORT, *long, "--counters", events)
    assert done.returncode == 0, done.stderr
    why, windows = told(done.stdout)
    if why is not True:
        assert "perf_event_open" in why
        pytest.skip(why)
    # On a busy host a window may pass without an operation.
    known = [w for w in windows if w["task-clock"]["user"] is not None]
    assert known
    for window in known:
        assert window["context-switches"]["kernel"] > 0.9
        assert window["context-switches"]["user"] == 0
        assert window["page-faults"]["user"] > 0.9
        assert window["task-clock"]["user"] > 0


def test_fixed_work_is_counted_too(fdscale: Run) -> None:
    """A fresh process for each measurement: its events are its own."""
    words = ("run", "dup2-churn", "--backend", "model", "--turns", "5000", *SHORT)
    done = fdscale(*words, "--counters", "task-clock")
    why, windows = told(done.stdout)
    if why is not True:
        pytest.skip(why)
    assert windows and all(w["task-clock"]["user"] > 0 for w in windows)


def test_nulls_and_the_reason_where_there_are_none() -> None:
    """EACCES is the sysctl's; the run itself goes on."""
    strace = shutil.which("strace")
    assert strace, "strace is missing: make setup"
    inject = "inject=perf_event_open:error=EACCES"
    words = [strace, "-f", "-o", "/dev/null", "-e", inject, str(BUILD / "fdscale")]
    words += ["run", "dup-close", *SHORT]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    why, windows = told(done.stdout)
    assert "Permission denied" in why and "perf_event_paranoid" in why
    none = {"user": None, "kernel": None}
    for window in windows:
        assert window == {"instructions": none, "cycles": none, "cache-misses": none}


def test_no_counters(fdscale: Run) -> None:
    """Asked for none, it says nothing of them; a wrong word is named."""
    done = fdscale("run", "dup-close", *SHORT, "--counters", "none")
    assert told(done.stdout) == (True, [{}, {}, {}])
    done = fdscale("run", "dup-close", "--counters", "cycles,ticks")
    assert done.returncode == 2 and "'ticks' is not one of" in done.stderr


def counted(paths: dict[str, float | None], why: str = "") -> list[dict[str, Any]]:
    """Five runs: each variant took so many instructions in the kernel, 10 outside."""
    made = []
    for calm in CALM:
        row = run({variant: 8e6 * calm for variant in paths})
        row["setup"]["counters"] = why or True
        for window in row["windows"]:
            path = paths[window["variant"]]
            user = None if path is None else 10.0
            none = {"user": None, "kernel": None}
            window["per_op"] = {
                "instructions": {"user": user, "kernel": path},
                "cycles": {"user": user, "kernel": None},
                "cache-misses": none,
            }
            window |= {"switches": 0, "skewed": False, "redone": 0}
        made.append(row)
    return made


def test_windows_weigh_by_their_operations() -> None:
    """100 operations of 6, 300 of 10, and 600 that were not counted: 9 each."""
    made: list[dict[str, Any]] = [
        {"ops": [50, 50], "per_op": {"cycles": {"user": 6.0, "kernel": 1.0}}},
        {"ops": [300], "per_op": {"cycles": {"user": 10.0, "kernel": None}}},
        {"ops": [600], "per_op": {"cycles": {"user": None, "kernel": None}}},
        {"ops": [600]},
    ]
    found = counters.per_op(made)["cycles"]
    assert (found.user, found.kernel, found.total) == (9.0, 1.0, 10.0)
    assert str(counters.PerOp(None, 606.34)) == "?+606.3"
    assert counters.PerOp(None, 1.0).total is None
    assert counters.per_op([{"ops": [1]}]) == {}


def test_the_summary_shows_what_was_counted() -> None:
    """A row for each event that some variant has; one note for what is missing."""
    why = "cycles, kernel: perf_event_open: no"
    rows = counted({"two-level": 645.0, "first-word": 605.0}, why)
    text = summary.summary(rows, HOST, [], 5)
    line = next(line for line in text.splitlines() if line.startswith(" instr"))
    assert line.split() == ["instr", "10+645", "10+605"]
    assert "cycles" in text and " misses  " not in text
    assert text.count(why) == 1
    told = summary.as_json(judge(rows), HOST, 1.0)
    told = told["cells"][0]["variants"]["first-word"]["per_op"]
    assert told["instructions"] == {"user": 10.0, "kernel": 605.0}
    assert told["cache-misses"] == {"user": None, "kernel": None}


def test_nothing_counted_is_one_note() -> None:
    """No rows of nothing, and nothing of them in the legend."""
    rows = counted({"two-level": None, "first-word": None}, "instructions: none here")
    text = summary.summary(rows, HOST, [], 5)
    assert "'instr'" not in text
    assert text.count("- Not counted: instructions: none here") == 1


def test_compare_has_them_in_every_format(tmp_path: Path) -> None:
    """Path length is instructions of an operation, whatever LKP divides."""
    rows = counted({"two-level": 645.0, "first-word": 605.0})
    made = folder(tmp_path, "a", rows)
    said = {fmt: compare([made], fmt=fmt)[0] for fmt in FORMATS}
    assert "an operation (user+kernel): instructions 10+605, cycles 10+?" in (
        said["text"]
    )
    lkp = [line for line in said["lkp"].splitlines() if "path-length" in line][0]
    words = ["655", "-6.1%", "615", "perf-stat.overall.path-length"]
    assert lkp.split() == words
    assert "cycles_per_op" not in said["lkp"]  # of one side only
    other = json.loads(said["json"])["comparisons"][0]["other"]
    assert other["per_op"]["instructions"] == {"user": 10.0, "kernel": 605.0}
    assert "other_per_op_instructions_kernel" in said["csv"].splitlines()[0]
    assert "first-word.instructions_per_op_kernel: 605" in said["lkp-stats"]
    assert "10+605" in said["markdown"]
