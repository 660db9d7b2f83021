# SPDX-License-Identifier: GPL-2.0-only
"""The ready plans, the dry run, and what a driver opens and starts."""

import argparse
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, Run

from bench import cli
from bench.estimate import estimate
from bench.plan import CONFIG, Cell, Plan, load_plan
from bench.store import load

# The machines of the threads, CPUs numbered as Linux does on Intel.
MACHINES = {
    "icelake-160": "pack:2 [numa] l3:1 core:40 pu:2(indexes=2*80:1*2)",
    "sapphire-rapids-224": "pack:2 [numa] l3:1 core:56 pu:2(indexes=2*112:1*2)",
    "sierra-forest-256": "pack:2 l3:1 [numa] core:128 pu:1",
}
FILLED = {  # a package's cores, its PUs or all cores, all PUs
    "icelake-160": [40, 80, 160],
    "sapphire-rapids-224": [56, 112, 224],
    "sierra-forest-256": [128, 256],
}
PLANS = sorted(
    path.stem
    for path in CONFIG.glob("*.toml")
    if path.stem not in ("claims", "calibration", "profile")
)
NOT_PLANNED = {
    "compat",
    "help",
    "plan",
    "out",
    "resume",
    "dry_run",
    "json",
    "quiet",
    "verbose",
}


def dry(run_py: Run, *words: str, synthetic: str = "") -> dict[str, Any]:
    """The dry run's one JSON object."""
    env = {"HWLOC_SYNTHETIC": synthetic} if synthetic else None
    done = run_py("sweep", "--dry-run", "--json", *words, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_plans_asked_for_are_there() -> None:
    wanted = {"quick", "full", "first-vs-next", "kara", *MACHINES}
    assert wanted <= set(PLANS)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("machine", ["", *MACHINES])
def test_ready_plans_dry_run(run_py: Run, name: str, machine: str) -> None:
    """Here and on each machine of the threads: cells, none of them refused."""
    plan = CONFIG / f"{name}.toml"
    synthetic = MACHINES.get(machine, "")
    told = dry(run_py, "--plan", str(plan), synthetic=synthetic)
    assert told["cells"] and not [c for c in told["cells"] if c["refused"]]
    assert told["topology"] == (synthetic or "this system")
    time_ = told["estimate"]
    assert time_["measuring"] > 0 and time_["fit"] >= len(told["cells"])
    if name != "quick":  # made for a few PUs, and bound to a minute
        assert time_["fit"] == time_["runs"]


@pytest.mark.parametrize("name", MACHINES)
def test_a_machines_plan_counts_its_tasks(run_py: Run, name: str) -> None:
    """What fills a package, all cores, all PUs; in every curve, with all variants."""
    words: tuple[str, ...] = ("--plan", str(CONFIG / f"{name}.toml"))
    told = dry(run_py, *words, synthetic=MACHINES[name])
    curves: dict[str, set[int]] = {}
    for c in told["cells"]:
        key = json.dumps({k: v for k, v in c["cell"].items() if k != "tasks"})
        curves.setdefault(key, set()).add(c["cell"]["tasks"])
    for counts in curves.values():
        assert {1, 2, *FILLED[name]} <= counts and max(counts) == FILLED[name][-1]


def test_a_key_for_everything_a_flag_can_say() -> None:
    """Each flag of sweep that says what to measure is a key, and a field."""
    schema = json.loads((CONFIG / "schema" / "plan.json").read_text())
    commands = argparse.ArgumentParser().add_subparsers()
    cli.add_sweep(commands)
    flags = {a.dest for a in commands.choices["sweep"]._actions} - NOT_PLANNED
    keys = {key.replace("-", "_") for key in schema["properties"]}
    assert len(flags) > 10 and flags <= keys
    assert keys == set(vars(Plan()))


def test_a_plan_and_flags_say_the_same(run_py: Run, tmp_path: Path) -> None:
    """The same words, from a file or typed, are the same command lines."""
    lists = {
        "workload": ["dup-close"],
        "backend": ["model"],
        "variant": ["two-level", "one-level"],
        "hold": ["none", "low:9"],
        "place": ["cores"],
        "mode": ["processes"],
    }
    text = "".join(f"{k} = {json.dumps(v)}\n" for k, v in lists.items())
    text += "tasks = [1]\ntable-size = [512]\nruns = 3\nwindow-ms = 7\nseed = 5\n"
    text += 'baseline = "one-level"\nlock = "tas"\noversubscribe = true\nmax-time = 9\n'
    text += 'precision = "2%"\n'
    (tmp_path / "p.toml").write_text(text)
    flags = [w for k, v in lists.items() for w in (f"--{k}", ",".join(v))]
    flags += ["--tasks", "1", "--table-size", "512", "--runs", "3", "--window-ms", "7"]
    flags += ["--seed", "5", "--baseline", "one-level", "--lock", "tas"]
    flags += ["--oversubscribe", "--max-time", "9", "--precision", "2%"]
    told = dry(run_py, "--plan", str(tmp_path / "p.toml"))
    assert told == dry(run_py, *flags) and len(told["cells"]) == 2


def test_precision_alone_is_bounded(tmp_path: Path) -> None:
    """In a plan as by the flag."""
    path = tmp_path / "p.toml"
    path.write_text('precision = "1%"\n')
    assert load_plan(path).max_time == 600


REFUSED = [
    (["--tasks", "60000"], "has room for"),
    (["--place", "cpus:99999"], "no CPU 99999"),
    (["--hold", "low:90000000", "--backend", "kernel"], "descriptors and"),
    (["--hold", "half"], "'half'"),
    (["--workload", "dup2-churn", "--mode", "threads"], "--mode threads is refused"),
    (["--table-size", "100"], "100 is not a power of two"),
]


@pytest.mark.parametrize("words, why", REFUSED)
def test_refusals_are_the_drivers_own(
    run_py: Run, fdscale: Run, words: list[str], why: str
) -> None:
    """The dry run's text is what the driver says to the same command line."""
    base = ["--workload", "dup-close", "--tasks", "1", "--mode", "threads"]
    done = run_py("sweep", "--dry-run", "--json", *base, *words)
    cells = json.loads(done.stdout)["cells"]
    bad = [c for c in cells if c["refused"]]
    assert bad and why in bad[0]["refused"]
    said = fdscale(*bad[0]["command"])
    assert said.returncode in (2, 3) and said.stdout == ""
    assert done.returncode == said.returncode
    assert said.stderr == f"fdscale: {bad[0]['refused']}\n"


def test_dry_run_for_people(run_py: Run, tmp_path: Path) -> None:
    """-q leaves the cells out, -v adds the command lines; refusals always stand."""
    words: tuple[str, ...] = (
        "sweep",
        "--dry-run",
        "--workload",
        "dup-close",
        "--backend",
        "model",
    )
    words += ("--mode", "threads", "--tasks", "1,60000", "--hold", "none")
    said = {f: run_py(*words, *f.split()).stdout for f in ("", "-q", "-v")}
    for text in said.values():
        assert "refused: dup-close, model, hold none, 60000 threads" in text
        assert re.search(r"1 cell, 7 runs each, about 0:07", text)
    assert "1 thread," not in said["-q"] and "1 thread," in said[""]
    assert "fdscale run dup-close --backend model" in said["-v"]
    assert "fdscale run" not in said[""]
    short = run_py(*words, "--max-time", "0.2", "--tasks", "1")
    assert re.search(r"--max-time 0.2 is short: about \d of 7 runs", short.stdout)


@pytest.mark.parametrize(
    "line",
    ["rubbish", "{}", "[1]", "[]", '["dup-close", null]', '["--help"]', '["d\\u0000"]'],
)
def test_a_line_that_is_no_cell(fdscale: Run, line: str) -> None:
    """Gets an answer of its own, and the next is answered too."""
    for flavour in ("", "asan/"):
        done = subprocess.run(
            [BUILD / f"{flavour}fdscale", "run", "--dry-run"],
            input=f'{line}\n["dup-close","-xyz"]\n["dup-close"]\n',
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and done.stderr == ""
        answers = [json.loads(text) for text in done.stdout.splitlines()]
        assert [a["ok"] for a in answers] == [False, False, True]
        assert answers[0]["status"] == 2 and answers[0]["text"]
        assert "'-x'" in answers[1]["text"]


def test_ten_thousand_cells(run_py: Run) -> None:
    """Planned and checked in one driver, within seconds (make bench has the time)."""
    counts = ",".join(str(n) for n in range(1, 517))
    words = ["sweep", "--dry-run", "--json", "--workload", "dup-close"]
    words += ["--tasks", counts]
    words += ["--hold", "none,low:64,low:200", "--place", "compact,scatter"]
    begun = os.times()
    told = json.loads(run_py(*words, env={"HWLOC_SYNTHETIC": BIG}).stdout)
    ended = os.times()
    assert len(told["cells"]) == 516 * 3 * 2 * 2 * 2
    assert not [c for c in told["cells"] if c["refused"]]
    used = ended.children_user - begun.children_user
    assert used < 10, "seconds of CPU, not of the wall: the host may be busy"


BIG = "pack:2 group:3 [numa] l3:1 core:43 pu:2(indexes=2*258:1*2)"


def test_the_estimate_counts_what_there_is() -> None:
    """A second a run; --max-time instead; fewer runs where it is too short."""
    listing: dict[str, Any] = {
        "workloads": [{"name": "dup-close", "fixed_work": False}],
        "kernel": "merged-6.13",
        "switch": False,
        "searches": [],
        "presets": [],
        "all": {"kernel": ["merged-6.13"], "model": ["stock-6.12"]},
    }
    cells = [
        Cell("dup-close", "kernel", "none", "compact", "threads", n) for n in (1, 2)
    ]
    three = {cell: 3 for cell in cells}
    assert estimate(Plan(), three, listing).measuring == pytest.approx(6)
    given = estimate(Plan(max_time=60), three, listing)
    assert (given.measuring, given.runs, given.fit) == (60, 6, 6)
    long = estimate(Plan(window_ms=2000), three, listing)
    assert long.measuring > 6 * 2 * 2
    short = estimate(Plan(window_ms=2000, max_time=10), three, listing)
    assert 1 <= short.fit < 3 and short.measuring == 10
    assert given.figures > 0 and estimate(Plan(), {}, listing).measuring == 0


def test_cells_not_measured_are_said(run_py: Run, tmp_path: Path) -> None:
    """--max-time too short for all: one run at least, the others by name, status 3;
    --resume measures them."""
    out = tmp_path / "o"
    words: tuple[str, ...] = (
        "--workload",
        "dup-close",
        "--backend",
        "kernel",
        "--mode",
        "threads",
    )
    words += ("--tasks", "1", "--hold", "none,low:8,low:64", "--runs", "1")
    done = run_py("sweep", *words, "--max-time", "0.01", "--json", "--out", str(out))
    assert done.returncode == 3
    measured = [r for r in load(out) if r["type"] == "run"]
    missing = json.loads(done.stdout)["not_measured"]
    assert len(measured) == 1 and len(missing) == 2
    assert "2 of 3 cells were not measured; --resume" in done.stderr
    summary = (out / "summary.txt").read_text()
    for cell in missing:
        assert re.search(rf"Not measured\n(.*\n)*- .*hold {cell['hold']}", summary)
    for _ in range(2):  # each resume has the time of the plan: a cell
        done = run_py("sweep", "--resume", str(out), "-q")
    assert done.returncode == 0 and "Not measured" not in done.stdout


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_topology_is_loaded_once_whatever_the_tasks(tmp_path: Path) -> None:
    """Opens under /sys do not grow with the tasks.  (glibc looks at how many CPUs are
    online when threads wait for each other to allocate: not ours to count.)"""
    opens = []
    for tasks in (1, 64):
        log = tmp_path / f"{tasks}.strace"
        words = [str(BUILD / "fdscale"), "run", "dup-close", "--oversubscribe"]
        words += ["--tasks", str(tasks)]
        words += ["--windows", "1", "--window-ms", "1"]
        done = subprocess.run(
            ["strace", "-f", "-e", "trace=open,openat", "-o", log, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if "PTRACE" in done.stderr:
            pytest.skip("ptrace is not permitted")
        assert done.returncode == 0, done.stderr
        lines = log.read_text().splitlines()
        ours = [line for line in lines if '"/sys/' in line]
        opens.append(
            len([x for x in ours if "/sys/devices/system/cpu/online" not in x])
        )
    assert opens[0] == opens[1] > 0


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_2048_tasks_start(fdscale: Run, mode: str) -> None:
    """All of them, and all of them end."""
    words: tuple[str, ...] = (
        "run",
        "dup-close",
        "--tasks",
        "2048",
        "--mode",
        mode,
        "--oversubscribe",
    )
    done = fdscale(*words, "--windows", "1", "--window-ms", "5", "--json")
    events = [json.loads(text) for text in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert events[0]["tasks"] == 2048 and len(events[0]["pus"]) == 2048
    assert [len(e["ops"]) for e in events if e["event"] == "window"] == [2048]
    assert events[-1]["how"] == "done"
