# SPDX-License-Identifier: GPL-2.0-only
"""Each call of each workload is made to fail, with each error that may come.

By tests/c/fail.c, preloaded: what a workload calls is learnt from a run without a
failure, so that a new workload is tested without a change here.
"""

import errno
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run
from test_workloads import LISTED, events

FAIL = BUILD / "tests" / "fail.so"
ERRORS = "EMFILE ENFILE ENOMEM EINTR EADDRNOTAVAIL ECONNREFUSED EIO ENOSPC".split()
OFTEN = 10  # CALLED_OFTEN of fail.c: the failure comes when it has warmed up
WINDOWS = ("--windows", "4", "--window-ms", "10", "--json")
# What a call is named in the message, where that is not its name.
NAMED = {"fcntl": "F_DUPFD", "pipe": "pipe", "eventfd": "eventfd"}


def workloads() -> list[tuple[str, ...]]:
    """The kernel's workloads, each with each word of its options."""
    found: list[tuple[str, ...]] = []
    for w in (w for w in LISTED if w["backend"] == "kernel"):
        mode = "processes" if w["processes_only"] else "threads"
        words = ("run", w["name"], "--mode", mode, *WINDOWS)
        found.append(words)
        for o in w["options"]:
            choices = o.get("choices", "").split()
            found += [
                (*words, f"--{o['name']}", c) for c in choices if c != o["default"]
            ]
    return found


def failing(call: str, error: str, after: int = OFTEN) -> dict[str, str]:
    """The environment in which a call fails."""
    fail = f"{call}:{getattr(errno, error)}:{after}"
    return {"LD_PRELOAD": str(FAIL), "FDSCALE_FAIL": fail}


def drive(words: tuple[str, ...], **env: str) -> "subprocess.CompletedProcess[str]":
    """The driver, in an environment."""
    return subprocess.run(
        [BUILD / "fdscale", *words],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", workloads(), ids=lambda w: " ".join(w[1:]))
def test_every_call_with_every_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The window is no window, the call and the error are named once, status 3."""
    called = tmp_path / "called"
    called.touch()
    tmpdir = tmp_path / "tmp"
    tmpdir.mkdir()
    words = (*words, "--tmpdir", str(tmpdir))
    whole = drive(words, LD_PRELOAD=str(FAIL), FDSCALE_CALLED=str(called))
    if whole.returncode == 3 and "preparing" in whole.stderr:
        pytest.skip(whole.stderr.strip())
    assert whole.returncode == 0, whole.stderr
    calls = sorted(set(called.read_text(encoding="ascii").split()))
    assert calls, "the workload makes no call that fail.c knows"
    for call, error in itertools.product(calls, ERRORS):
        if (call, error) == ("waitpid", "EINTR"):
            continue  # made again, as it must be
        done = drive(words, **failing(call, error))
        told = f"{call} {error}: {done.stderr}"
        assert done.returncode == 3, told
        assert len(done.stderr.splitlines()) == 1, told
        assert os.strerror(getattr(errno, error)) in done.stderr, told
        assert NAMED.get(call, call) in done.stderr, told
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = [e["event"] for e in lines]
        if "setup" in kinds:  # else it was while it prepared
            assert kinds[-2:] == ["error", "end"] and kinds.count("error") == 1, told
            assert lines[-2]["errno"] == getattr(errno, error)
            assert lines[-1]["how"] == "failed"
        assert not list(tmpdir.iterdir()), told


def test_one_thread_of_two_fails(tmp_path: Path) -> None:
    """The other does not hide it, and the run ends."""
    words = ("run", "dup-close", "--tasks", "2", "--oversubscribe", *WINDOWS)
    done = drive(words, **failing("dup", "EMFILE", 5000))
    assert done.returncode == 3 and "Too many open files" in done.stderr
    assert [e["syscall"] for e in events(done, "error")] == ["dup"]


def driver_that_fails(path: Path, env: dict[str, str]) -> str:
    """A driver whose runs of socket-storm fail, and no others."""
    settings = " ".join(f"{k}='{v}'" for k, v in env.items())
    path.write_text(
        f"""#!/bin/sh
[ "$2" != socket-storm ] || export {settings}
exec '{BUILD}/fdscale' "$@"
""",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


def test_a_failing_cell_stops_no_other(run_py: Run, tmp_path: Path) -> None:
    """Its reason once, with the count of runs; the other cell is whole; status 3."""
    out = tmp_path / "out"
    driver = driver_that_fails(tmp_path / "driver", failing("socket", "ENFILE"))
    words = ["sweep", "--workload", "socket-storm,dup-close", "--hold", "none"]
    words += ["--backend", "kernel", "--mode", "threads"]
    words += ["--tasks", "1", "--runs", "3", "--out", str(out)]
    done = run_py(*words, env={"FDSCALE_DRIVER": driver})
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("Too many open files in system") == 1, done.stdout
    assert "3 runs" in reason(done.stdout)
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [r for r in map(json.loads, lines) if r["type"] == "run"]
    assert len(of(runs, "dup-close")) == 3 and len(of(runs, "socket-storm")) == 3
    assert any(r["windows"] for r in of(runs, "dup-close"))
    for run in of(runs, "dup-close"):  # on a busy host a window may be idle
        assert run["windows"] or "without an operation" in run["error"]["text"]
    assert all(not r["windows"] and r["error"] for r in of(runs, "socket-storm"))


def of(runs: list[dict[str, Any]], workload: str) -> list[dict[str, Any]]:
    """The runs of a workload."""
    return [r for r in runs if r["cell"]["workload"] == workload]


def reason(summary: str) -> str:
    """The paragraph of the summary that has the failure."""
    return next(p for p in summary.split("\n\n") if "Too many open files" in p)


def test_the_library_is_there() -> None:
    """Else nothing above would fail."""
    assert FAIL.exists() and FAIL.is_relative_to(ROOT)
