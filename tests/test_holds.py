# SPDX-License-Identifier: GPL-2.0-only
"""What is held, captured, and where the table lives: through the doors."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run

from bench.hold import top_of
from bench.plan import common_slots, hold_end
from bench.store import load

SHORT = ("--windows", "2", "--window-ms", "2")
PUS = len(os.sched_getaffinity(0))
HELD = (0, 1, 2, 40, 41, 300)
SLEEPER = f"""
import os, time
for fd in {HELD[3:]}:
    os.dup2(0, fd)
os.closerange(3, 40)
print(flush=True)
time.sleep(600)
"""


@pytest.fixture(name="sleeper")
def a_process() -> Iterator[int]:
    """The PID of a process that has HELD open."""
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdout.readline()
        yield process.pid
        process.kill()


def started(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """The setup event of a run that went well, to its end."""
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "end" and events[-1]["how"] == "done"
    return dict(events[0])


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("backend", ["kernel", "model"])
@pytest.mark.parametrize(
    "hold, top",
    [
        ("every:4", 127),  # of 128, 127 is a hole
        ("every:1", 0),
        ("every:1000", 128),
        ("random:1", 128),
        ("random:0", 0),
    ],
)
def test_patterns_run(
    fdscale: Run, backend: str, mode: str, hold: str, top: int
) -> None:
    """Each runs, is exact before and after, and is recorded."""
    words = ("run", "dup-close", "--backend", backend, "--mode", mode, "--json")
    holds = ("--hold", hold, "--hold-top", "128", "--tasks", str(min(2, PUS)))
    found = started(fdscale(*words, *holds, *SHORT))
    assert found["hold"] == hold and found["hold_top"] == top


@pytest.mark.parametrize("workload", ["dup-close", "open-close", "socket-storm"])
def test_holes_last(fdscale: Run, workload: str) -> None:
    """The driver compares the table with the hold after the windows: see
    test_table.c for what it says when they differ."""
    words = ("run", workload, "--hold", "every:3", "--json")
    assert started(fdscale(*words, *SHORT))["hold_top"] == 1024


def test_default_top_and_order_of_flags(fdscale: Run) -> None:
    """1024 as --help says; --hold-top may come before or after."""
    assert "(1024)" in fdscale("run", "--help").stdout
    words = ("run", "dup-close", "--backend", "model", "--json", *SHORT)
    assert started(fdscale(*words, "--hold", "random:1"))["hold_top"] == 1024
    before = ("--hold-top", "64", "--hold", "random:1")
    after = ("--hold", "random:1", "--hold-top", "64")
    for flags in (before, after):
        assert started(fdscale(*words, *flags))["hold_top"] == 64


def test_seeded(fdscale: Run) -> None:
    """The seed decides what random:P takes, wherever it stands."""
    words = ("run", "dup-close", "--backend", "model", "--json", *SHORT)
    hold = ("--hold", "random:0.01", "--hold-top", "100000")
    tops = [
        started(fdscale(*words, *hold, "--seed", seed))["hold_top"]
        for seed in ("5", "5", "6", "7")
    ]
    assert tops[0] == tops[1] and len(set(tops)) > 1


@pytest.mark.parametrize(
    "flags, named",
    [
        (("--hold", "every:0"), ["every:K", "'0'"]),
        (("--hold", "every:x"), ["every:K", "'x'"]),
        (("--hold", "random:2"), ["random:P", "'2'"]),
        (("--hold", "random:-0.1"), ["random:P", "'-0.1'"]),
        (("--hold", "random:"), ["random:P", "''"]),
        (("--hold", "file:/nowhere/f"), ["/nowhere/f", "No such file"]),
        (("--hold", "pid:abc"), ["pid:PID", "'abc'"]),
        (("--hold", "pid:0"), ["pid:PID", "'0'"]),
        (("--hold", "pid:2147483647"), ["pid:2147483647", "no such process"]),
        (("--hold", "each:4"), ["'each:4'", "every:K", "random:P", "pid:PID"]),
        (("--hold", "every:4", "--hold-top", "0"), ["--hold-top", "'0'"]),
        (("--table-node", "4321"), ["--table-node 4321", "no such node"]),
        (("--table-node", "x"), ["--table-node", "'x'"]),
        (("--core-kind", "fast"), ["--core-kind", "fast", "P", "E"]),
    ],
)
def test_wrong_words(fdscale: Run, flags: tuple[str, ...], named: list[str]) -> None:
    """Status 2, one line with what is wrong and what is right."""
    done = fdscale("run", "dup-close", *flags)
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1
    for word in named:
        assert word in done.stderr


def test_malformed_file(fdscale: Run, tmp_path: Path) -> None:
    """The line is named."""
    pattern = tmp_path / "a file"
    pattern.write_text("0\n1\n\ntwo\n")
    done = fdscale("run", "dup-close", "--hold", f"file:{pattern}")
    assert done.returncode == 2
    assert f"{pattern}: line 4: 'two'" in done.stderr


def test_pid(fdscale: Run, sleeper: int) -> None:
    """A live process's descriptors, as they are now."""
    words = ("run", "dup-close", "--json", *SHORT, "--hold", f"pid:{sleeper}")
    for backend in ("kernel", "model"):
        found = started(fdscale(*words, "--backend", backend))
        assert found["hold_top"] == max(HELD) + 1
        assert found["fdsize"] == 512


def test_capture(run_py: Run, fdscale: Run, sleeper: int, tmp_path: Path) -> None:
    """What is captured is what the process has, and is a hold."""
    out = tmp_path / "server.fds"
    done = run_py("hold", "capture", str(sleeper), "--out", str(out))
    assert done.returncode == 0 and done.stdout == "", done.stderr
    numbers = [line for line in out.read_text().splitlines() if line[0] != "#"]
    assert tuple(map(int, numbers)) == HELD
    assert run_py("hold", "capture", str(sleeper)).stdout == out.read_text()
    assert top_of(out) == hold_end(f"file:{out}") == max(HELD) + 1
    done = fdscale("run", "dup-close", "--json", *SHORT, "--hold", f"file:{out}")
    assert started(done)["hold_top"] == max(HELD) + 1


@pytest.mark.parametrize(
    "words, status, named",
    [
        (("capture", "2147483647"), 2, "no such process"),
        (("capture", "me"), 2, "'me'"),
        (("capture",), 2, "PID"),
        ((), 2, "capture"),
        (("capture", "self", "--out", "/nowhere/at/all"), 3, "/nowhere/at/all"),
    ],
)
def test_capture_refuses(
    run_py: Run, words: tuple[str, ...], status: int, named: str
) -> None:
    """One line, the thing and the status."""
    mine = [str(os.getpid()) if word == "self" else word for word in words]
    done = run_py("hold", *mine)
    assert done.returncode == status and named in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("door", ["driver", "runner"])
def test_another_users_process(door: str, tmp_path: Path) -> None:
    """Status 3: it could not be looked at, and root could."""
    driver = tmp_path / "fdscale"
    driver.write_bytes((BUILD / "fdscale").read_bytes())
    for path in (driver, tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    user = 65534 if os.geteuid() == 0 else None
    if door == "driver":
        words = [str(driver), "run", "dup-close", "--hold", "pid:1"]
    else:
        code = "import sys; from bench.cli import main; sys.exit(main(sys.argv[1:]))"
        words = [sys.executable, "-c", code, "hold", "capture", "1"]
    done = subprocess.run(
        words, cwd=ROOT, user=user, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "another user's process" in done.stderr and "root" in done.stderr


def test_sizes_are_common_to_a_curve(tmp_path: Path) -> None:
    """As the driver's rule has it, from the pattern's end."""
    assert hold_end("every:4", 500) == hold_end("random:0.1", 500) == 500
    assert common_slots("every:4", "threads", 1, 189) == 256
    assert common_slots("every:4", "threads", 1, 190) == 512
    assert hold_end(f"file:{tmp_path}/none") == 0
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as live:
        most = max(map(int, os.listdir(f"/proc/{live.pid}/fd")))
        assert hold_end(f"pid:{live.pid}") == most + 1
        live.kill()
    assert hold_end(f"pid:{live.pid}") == hold_end("pid:x") == 0


def test_sweep_with_holes(run_py: Run, tmp_path: Path) -> None:
    """The flags reach the driver, and the cells of a curve have one size."""
    out = tmp_path / "out"
    words = ("sweep", "--workload", "dup-close", "--backend", "model", "--mode")
    holds = ("threads", "--hold", "every:4,random:0.5", "--hold-top", "180")
    rest = ("--table-node", "0", "--runs", "1", "--tasks", "1")
    done = run_py(*words, *holds, *rest, "--out", str(out))
    assert done.returncode == 0, done.stderr
    runs = [r for r in load(out) if r["type"] == "run"]
    assert {r["cell"]["hold"] for r in runs} == {"every:4", "random:0.5"}
    for record in runs:
        assert record["error"] is None
        assert record["setup"]["fdsize"] == 256
        assert 170 < record["setup"]["hold_top"] <= 180
        assert record["setup"]["table_node"] == 0


@pytest.mark.parametrize("place", ["compact", "none"])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_table_node(fdscale: Run, mode: str, place: str) -> None:
    """On the model the pages are where they were asked for; then tasks run
    where they were placed."""
    words = ("run", "dup-close", "--backend", "model", "--table-node", "0", "--json")
    place_words = ("--mode", mode, "--place", place, "--tasks", str(min(2, PUS)))
    found = started(fdscale(*words, *place_words, "--hold", "low:3000", *SHORT))
    assert found["table_node"] == 0
    assert found["table_there"] is True
    assert "table_node" not in started(fdscale("run", "dup-close", "--json", *SHORT))


def test_table_node_of_a_kernel(fdscale: Run) -> None:
    """Asked for, and not known to be there."""
    words = ("run", "dup-close", "--table-node", "0", *SHORT)
    assert "does not tell" in started(fdscale(*words, "--json"))["table_there"]
    assert "does not tell" in fdscale(*words).stderr


def test_table_node_of_a_table_that_grows(fdscale: Run) -> None:
    """Its task grows it, where that runs."""
    done = fdscale("run", "dup2-churn", "--table-node", "0")
    assert done.returncode == 2 and "--place node:0" in done.stderr


def test_core_kind(fdscale: Run) -> None:
    """P are the fastest, E the others; a machine of one kind has neither."""
    hybrid = {"HWLOC_XMLFILE": "tests/placements/hybrid-intel.xml"}
    words = ("place", "--tasks", "4", "--json", "--core-kind")
    assert json.loads(fdscale(*words, "P", env=hybrid).stdout)["pus"] == [0, 2, 1, 3]
    assert json.loads(fdscale(*words, "E", env=hybrid).stdout)["pus"] == [4, 5, 6, 7]
    done = fdscale("place", "--tasks", "5", "--core-kind", "E", env=hybrid)
    assert done.returncode == 2 and "room for 4" in done.stderr
    found = json.loads(
        fdscale("topology", "--core-kind", "P", "--json", env=hybrid).stdout
    )
    assert found["pus"] == 4 and found["cores"] == 2
    done = fdscale("topology", "--json", "--core-kind", "x", env=hybrid)
    assert done.returncode == 2 and "--core-kind" in done.stderr
    same = {"HWLOC_SYNTHETIC": "pack:1 core:4 pu:1"}
    done = fdscale(*words, "E", env=same)
    assert done.returncode == 3 and "--core-kind E" in done.stderr
