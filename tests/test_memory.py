# SPDX-License-Identifier: GPL-2.0-only
"""Start and stop of the driver under valgrind's memcheck; leaks are looked for."""

import shutil
import subprocess

import pytest
from conftest import BUILD, runner

MEMCHECK = ("valgrind", "-q", "--error-exitcode=99", "--trace-children=yes")
SHORT = ("--windows", "2", "--window-ms", "5", "--json")
# The kernel's table shows valgrind's own descriptors: the task gives up for them when
# all is set up, and leaves what it has to its end.
REFUSED = "is open and not held"

needs_valgrind = pytest.mark.skipif(
    not shutil.which("valgrind"), reason="valgrind is missing: make setup"
)


def memcheck(leaks: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The driver under valgrind."""
    return subprocess.run(
        [*MEMCHECK, f"--leak-check={leaks}", BUILD / "fdscale", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_valgrind
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_start_and_stop(mode: str) -> None:
    """No error and nothing lost, in the coordinator and in a task."""
    words = ("run", "dup-close", "--backend", "model", "--mode", mode, *SHORT)
    done = memcheck("full", *words)
    assert done.returncode == 0 and not done.stderr, done.stderr


@needs_valgrind
def test_start_on_the_kernel() -> None:
    """No error up to the hold, and none on the way out of its failure."""
    done = memcheck("no", "run", "dup-close", "--backend", "kernel", *SHORT)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert REFUSED in line


@needs_valgrind
@pytest.mark.parametrize("words", ["list", "topology", "place --place smt --tasks 1"])
def test_what_does_not_measure(words: str) -> None:
    """The same of the other commands."""
    done = memcheck("full", *words.split())
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_leaks_are_looked_for() -> None:
    """By the driver with ASan, in all tests that take it."""
    done = runner(BUILD / "asan" / "fdscale")("list", env={"ASAN_OPTIONS": "help=1"})
    lines = (done.stdout + done.stderr).splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == "detect_leaks")
    assert "Current Value: true" in lines[at + 1]
