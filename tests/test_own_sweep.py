# SPDX-License-Identifier: GPL-2.0-only
"""Users' own files in a sweep, and the lines of --compat."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from conftest import ROOT, Run
from test_own import CASES, mine, readme_example

from bench import compat
from bench.plan import Cell, load_plan
from bench.store import load

# Windows so long that a run has two of them, whatever else the host does.
QUICK = ("--hold", "none", "--tasks", "1", "--mode", "threads", "--window-ms", "500")
IDLE = "a window without an operation"
HANG = 900.0  # seconds: of a busy host, for the runner and gnuplot to get their turn


def is_idle(record: dict[str, Any]) -> bool:
    """Whether a run failed for the host's sake alone."""
    return bool(record["error"]) and record["error"]["text"].startswith(IDLE)


def sweep(
    run_py: Run, out: Path, *words: str, compat_with: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """A sweep, resumed while a busy host left runs out, as its remedy is."""
    done = run_py("sweep", *words, "--out", str(out), *compat_with, timeout=HANG)
    for _ in range(10):
        runs = [r for r in load(out) if r["type"] == "run"] if out.exists() else []
        last = {json.dumps([r["cell"], r["run"]]): r for r in runs}
        if not any(map(is_idle, last.values())):
            break
        done = run_py("sweep", "--resume", str(out), *compat_with, timeout=HANG)
    return done


def test_both_kinds_in_one_sweep(run_py: Run, tmp_path: Path) -> None:
    """Cells are known by the file's name, flag and content; resumed, they are done."""
    path = mine(tmp_path, readme_example())
    out = tmp_path / "results"
    words = ("--testcase", str(CASES / "counts.c"), "--workload-file", str(path))
    more = ("--variant", "two-level,merged-6.13", "--runs", "1")
    done = sweep(run_py, out, *words, *QUICK, *more)
    assert done.returncode == 0, done.stderr
    records = load(out)
    runs = [r for r in records if r["type"] == "run" and not is_idle(r)]
    assert len(runs) == 3
    kinds = {(r["cell"]["workload"], r["cell"]["backend"]) for r in runs}
    assert kinds == {("counts", "kernel"), ("mine", "kernel"), ("mine", "model")}
    for run in runs:
        flag, _, digest = run["cell"]["source"].partition(":")
        assert flag == (
            "testcase" if run["cell"]["workload"] == "counts" else words[2][2:]
        )
        assert run["setup"]["sha256"].startswith(digest) and len(digest) == 12
        assert run["windows"] and run["command"][1] == f"--{flag}"
        assert Path(run["command"][2]).is_absolute()
    assert "counts (testcase:" in done.stdout and "mine (workload-file:" in done.stdout
    again = run_py("sweep", "--resume", str(out), timeout=HANG)
    assert again.returncode == 0, again.stderr
    assert load(out) == records
    path.write_text(path.read_text() + "/* changed */\n")
    again = run_py("sweep", "--resume", str(out), timeout=HANG)
    assert again.returncode == 2 and "mine.c has changed since" in again.stderr
    assert load(out) == records


def test_a_plan_names_files(tmp_path: Path, run_py: Run) -> None:
    """Alone they are all there is; windows are a test case's."""
    plan = tmp_path / "plan.toml"
    plan.write_text(f'testcase = ["{CASES}/counts.c"]\ntasks = [1]\n')
    assert load_plan(plan).window_ms == 100 and not load_plan(plan).workload
    done = run_py("sweep", "--plan", str(plan), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    cells = [c["cell"] for c in json.loads(done.stdout)["cells"]]
    assert {c["workload"] for c in cells} == {"counts"} and len(cells) == 4
    plan.write_text('workload-file = ["nowhere.c"]\nworkload = ["dup-close"]\n')
    assert load_plan(plan).workload == ["dup-close"]
    done = run_py("sweep", "--plan", str(plan), "--dry-run")
    assert done.returncode == 2 and "nowhere.c: No such file" in done.stderr


def test_two_workloads_of_one_name(run_py: Run, tmp_path: Path) -> None:
    """Refused, unless the other is not asked for."""
    path = tmp_path / "dup-close.c"
    shutil.copy(ROOT / "drivers" / "workloads" / "dup-close.c", path)
    words = ("sweep", "--workload-file", str(path), "--dry-run")
    done = run_py(*words, "--workload", "dup-close")
    assert done.returncode == 2 and "rename the file" in done.stderr
    done = run_py(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert all(c["cell"]["source"] for c in json.loads(done.stdout)["cells"])


def test_a_file_that_does_not_compile(run_py: Run, tmp_path: Path) -> None:
    """Nothing is measured, nothing is made."""
    path = mine(tmp_path, "int x = y;\n")
    out = tmp_path / "results"
    done = run_py("sweep", "--workload-file", str(path), "--out", str(out))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "mine.c:1:" in done.stderr and not out.exists()


def test_a_case_that_dies_is_reported(run_py: Run, tmp_path: Path) -> None:
    """With what it said, and no number; the others are measured."""
    out = tmp_path / "results"
    cases = [str(CASES / f"{name}.c") for name in ("asserts", "counts")]
    done = sweep(run_py, out, "--testcase", *cases, *QUICK, "--runs", "1")
    assert done.returncode == 3
    report = " ".join(done.stdout.split())
    assert "Failed or refused" in report
    assert "test case asserts: assertion failed (SIGABRT): asserts.c:14" in report
    runs = [r for r in load(out) if r["type"] == "run"]
    told = [r["error"] for r in runs]
    assert {r["cell"]["workload"] for r in runs if r["windows"]} == {"counts"}, told


def averages(stdout: str) -> list[int]:
    """What a script for the other tool makes of the lines: it splits at the colon."""
    found = []
    for line in stdout.splitlines():
        if "testcase:" in line:
            _, _ = line.split(":")
        if "average:" in line:
            _, value = line.split(":")
            found.append(int(value))
    return found


def test_the_other_tools_lines(run_py: Run, tmp_path: Path) -> None:
    """In place of the summary: a description, a line a run, their mean."""
    words = ("--testcase", str(CASES / "counts.c"), *QUICK, "--runs", "2")
    lines_of = ("--compat", "will-it-scale")
    done = sweep(run_py, tmp_path / "results", *words, compat_with=lines_of)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["testcase:counting by steps", "warmup", "measurement"]
    totals = []
    for line in lines[3:-1]:
        match = re.fullmatch(r"min:(\d+) max:(\d+) total:(\d+)", line)
        assert match and match.group(1) == match.group(2) == match.group(3)
        totals.append(int(match.group(3)))
    assert len(totals) == 2 and lines[-1] == f"average:{sum(totals) // 2}"
    assert averages(done.stdout) == [sum(totals) // 2]


def test_lines_of_several_cells() -> None:
    """By hand: two tasks, two runs; what is told apart has no second colon."""
    one = Cell("dup-close", "kernel", "low:64", "compact", "threads", 2)
    two = Cell("dup-close", "kernel", "none", "compact", "threads", 2)

    def run(cell: Cell, number: int, ops: list[list[int]]) -> dict[str, object]:
        windows = [{"variant": "v", "ns": 500_000_000, "ops": o} for o in ops]
        return {
            **{"type": "run", "cell": cell.as_dict(), "run": number, "error": None},
            **{"variants": ["v"], "windows": windows, "setup": {}},
        }

    records = [
        run(one, 0, [[10, 30], [20, 40]]),
        run(one, 1, [[11, 31], [20, 40]]),
        run(two, 0, [[1, 2]]),
    ]
    text = compat.will_it_scale([one, two], records)
    first, second = text.split("testcase:")[1:]
    assert first.splitlines()[1:] == [
        *("warmup", "measurement"),
        *("min:30 max:70 total:100", "min:31 max:71 total:102", "average:101"),
    ]
    assert second.splitlines()[-1] == "average:6"
    assert averages(text) == [101, 6] and "hold low=64" in first
