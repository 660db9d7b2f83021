# SPDX-License-Identifier: GPL-2.0-only
"""socket-storm: every family and type, what it keeps, what it refuses."""

import errno
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run

SHORT = ("--windows", "2", "--window-ms", "2")
PUS = len(os.sched_getaffinity(0))
FAMILIES = {
    "inet": socket.AF_INET,
    "inet6": socket.AF_INET6,
    "unix": socket.AF_UNIX,
}
TYPES = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM}


def events(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    """The lines of a run that went well: its table was the hold to the end."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def missing(family: str, kind: str) -> bool:
    """This kernel has no such sockets."""
    try:
        socket.socket(FAMILIES[family], TYPES[kind]).close()
    except OSError as e:
        assert e.errno == errno.EAFNOSUPPORT
        return True
    return False


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_families(fdscale: Run, backend: str, family: str, kind: str) -> None:
    """Each is measured, or refused with the reason and no number."""
    words = ("run", "socket-storm", "--family", family, "--type", kind, "--json")
    done = fdscale(*words, "--backend", backend, *SHORT)
    if backend == "kernel" and missing(family, kind):
        assert done.returncode == 3 and done.stdout == ""
        assert f"--family {family}" in done.stderr
        return
    setup, *windows, _ = events(done)
    assert setup["options"]["family"] == family and setup["options"]["type"] == kind
    assert sum(sum(w["ops"]) for w in windows) > 0


def test_a_missing_family_is_refused() -> None:
    """Before the start, named, with the others; no number."""
    words = ("run", "socket-storm", "--json", *SHORT, "--family")
    no_inet6 = [sys.executable, str(ROOT / "tests" / "deny.py"), "EAFNOSUPPORT"]
    no_inet6 += [f"socket:0={int(socket.AF_INET6)}", str(BUILD / "fdscale"), *words]
    done = subprocess.run(
        [*no_inet6, "inet6"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and done.stdout == ""
    assert "--family inet6" in done.stderr and "unix" in done.stderr
    done = subprocess.run(
        [*no_inet6, "unix"], capture_output=True, text=True, check=False
    )
    assert events(done)


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("backend", ["kernel", "model"])
@pytest.mark.parametrize("hold", ["none", "low:64", "every:5"])
def test_kept_sockets(fdscale: Run, backend: str, mode: str, hold: str) -> None:
    """The table is sized for what is kept, and is the hold again at the end."""
    tasks = min(2, PUS)
    words = ("run", "socket-storm", "--backend", backend, "--mode", mode, "--json")
    kept = ("--sockets", "300", "--blow", "4", "--tasks", str(tasks), "--hold", hold)
    setup, *windows, end = events(fdscale(*words, *kept, *SHORT))
    one_table = tasks if mode == "threads" else 1
    top = setup["hold_top"] + 300 * one_table + 64 + one_table
    assert setup["fdsize"] == 1 << (top - 1).bit_length()
    assert setup["options"]["sockets"] == 300 and setup["options"]["blow"] == 4
    assert end["how"] == "done" and windows


def test_nothing_is_left_behind(fdscale: Run) -> None:
    """Thousands of TCP sockets, and not one port or TIME_WAIT of them."""
    left = Path("/proc/net/tcp")
    if not left.exists():
        pytest.skip("/proc/net/tcp: no such file")

    def time_wait() -> int:
        return sum(line.split()[3] == "06" for line in left.open(encoding="ascii"))

    before = time_wait()
    words = ("run", "socket-storm", "--windows", "4", "--window-ms", "50", "--json")
    done = events(fdscale(*words))
    assert sum(sum(e["ops"]) for e in done if e["event"] == "window") > 1000
    assert time_wait() < before + 100


def test_too_much_memory_is_refused(fdscale: Run) -> None:
    """Before the start: how much, and how much there is."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    each = min(hard, 20000) - 1000
    meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    (free,) = [line for line in meminfo.splitlines() if "MemAvailable" in line]
    tasks = int(free.split()[1]) // 4 // each * 2
    if tasks > 65536:
        pytest.skip(f"{free}: more than 65536 tasks can be refused for")
    words = ("run", "socket-storm", "--mode", "processes", "--oversubscribe")
    done = fdscale(*words, "--tasks", str(max(tasks, 1)), "--sockets", str(each))
    assert done.returncode == 3 and done.stdout == ""
    assert "MemAvailable" in done.stderr and str(each) in done.stderr


def test_more_than_the_limit(fdscale: Run) -> None:
    """Descriptors that do not fit under RLIMIT_NOFILE, or in the table asked for."""
    done = fdscale("run", "socket-storm", "--sockets", "50000000")
    assert done.returncode == 3 and "descriptors" in done.stderr
    done = fdscale("run", "socket-storm", "--sockets", "100", "--table-size", "64")
    assert done.returncode == 2 and "--table-size" in done.stderr


@pytest.mark.parametrize(
    "flags, named",
    [
        (("--family", "ipx"), ["'ipx'", "inet inet6 unix"]),
        (("--type", "raw"), ["'raw'", "stream dgram"]),
        (("--sockets", "-1"), ["--sockets", "'-1'"]),
        (("--blow", "x"), ["--blow", "'x'"]),
        (("--port", "80"), ["--port", "--family --type --sockets --blow"]),
    ],
)
def test_wrong_words(fdscale: Run, flags: tuple[str, ...], named: list[str]) -> None:
    """Status 2 and the right ones."""
    done = fdscale("run", "socket-storm", *flags)
    assert done.returncode == 2 and done.stdout == ""
    for word in named:
        assert word in done.stderr
