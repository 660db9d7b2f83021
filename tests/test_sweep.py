# SPDX-License-Identifier: GPL-2.0-only
"""A sweep's beginning and end: what it refuses to start, resumes, and leaves."""

import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run

from bench import drive, stats
from bench.plan import Cell, Plan, load_plan
from bench.problem import Problem
from bench.root import Root
from bench.scratch import PREFIX, Scratch, lock
from bench.store import load
from bench.summary import alike
from bench.sweep import Pace, check_host_same, once_narrow

TINY: tuple[str, ...] = (
    "--workload",
    "dup-close",
    "--backend",
    "model",
    "--mode",
    "threads",
)
TINY += (
    "--tasks",
    "1",
    "--hold",
    "none",
    "--variant",
    "two-level",
    "--window-ms",
    "20",
)


@pytest.fixture(name="swept", scope="module")
def swept_once(run_py: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder of two runs of one cell."""
    out = tmp_path_factory.mktemp("swept") / "o"
    words = ("sweep", *TINY, "--runs", "2", "--out", str(out), "-q")
    done = run_py(*words)
    assert done.returncode == 0, done.stderr
    return out


def copied(folder: Path, to: Path) -> Path:
    """A results folder without its figures."""
    to.mkdir()
    for name in ("results.jsonl", "host.json"):
        (to / name).write_bytes((folder / name).read_bytes())
    return to


@pytest.mark.parametrize(
    "words, named",
    [
        (["--variant", "third-word"], "third-word"),
        (["--variant", "third-word", "--backend", "kernel"], "third-word"),
        (["--hold", "none,half"], "'half'"),
        (["--place", "compat"], "compat"),
        (["--place", "cpus:99999"], "CPU 99999"),
        (["--tasks", "1,60000"], "60000 tasks asked"),
        (["--table-size", "100"], "not a power of two"),
    ],
)
def test_a_wrong_word_makes_nothing(
    run_py: Run, tmp_path: Path, words: list[str], named: str
) -> None:
    """Status 2 and one line, before there is a folder."""
    out = tmp_path / "o"
    done = run_py("sweep", *TINY, *words, "--out", str(out))
    assert done.returncode == 2 and named in done.stderr and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and not out.exists()


def test_nothing_that_could_be_measured(run_py: Run, tmp_path: Path) -> None:
    """All cells beyond the limits: said at once, with the status of what failed."""
    out = tmp_path / "o"
    words = ("--backend", "kernel", "--hold", "low:50000000,low:60000000")
    done = run_py("sweep", *TINY[:2], *words, "--out", str(out))
    assert done.returncode == 3 and not out.exists() and done.stdout == ""
    assert "fs.nr_open" in done.stderr and "cells, the first" in done.stderr


@pytest.mark.parametrize("variable", ["HWLOC_SYNTHETIC", "HWLOC_XMLFILE"])
def test_another_machine_is_planned_not_measured(
    run_py: Run, tmp_path: Path, variable: str
) -> None:
    """Refused once, before it starts; --dry-run is for that."""
    source = {
        "HWLOC_SYNTHETIC": "pack:2 core:4 pu:2",
        "HWLOC_XMLFILE": str(ROOT / "tests/placements/uneven.xml"),
    }
    out = tmp_path / "o"
    env = {variable: source[variable]}
    done = run_py("sweep", *TINY, "--tasks", "4", "--out", str(out), env=env)
    assert done.returncode == 2 and not out.exists()
    assert variable in done.stderr and len(done.stderr.splitlines()) == 1
    planned = run_py("sweep", *TINY, "--tasks", "4", "--dry-run", env=env)
    assert planned.returncode == 0 and "1 cell, 7 runs each" in planned.stdout


WRONG_PLANS = [
    ('hold = ["none"]\n[options.dup-close]\nfil = ["null"]\n', 3, "dup-close.fil"),
    ('[options]\nopen-close.fil = ["null"]\n', 2, "open-close.fil"),
    ('[options.open-close]\nfile = ["null",\n "nul"]\n', 2, "open-close.file"),
    ('runs = 2\n[options.open-clos]\nfile = ["null"]\n', 2, "options.open-clos"),
    ("runs = 3\nmax-time = nan\n", 2, "max-time"),
    ("max-time = inf\n", 1, "max-time"),
    ("max-time = -inf\n", 1, "max-time"),
    ("runs = nan\n", 1, "runs"),
]


@pytest.mark.parametrize("text, line, key", WRONG_PLANS)
def test_a_wrong_plan_is_named_by_line_and_key(
    run_py: Run, tmp_path: Path, text: str, line: int, key: str
) -> None:
    """Status 2, the line, the key; nothing is made."""
    path = tmp_path / "p.toml"
    path.write_text(text)
    done = run_py("sweep", "--plan", str(path), "--out", str(tmp_path / "o"))
    assert done.returncode == 2 and not (tmp_path / "o").exists()
    assert f"{path}: line {line}: " in done.stderr and f"{key}: " in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_right_options_pass(tmp_path: Path) -> None:
    """The same shapes, with words that there are."""
    path = tmp_path / "p.toml"
    path.write_text('[options]\nopen-close.file = ["null", "own"]\n')
    known = drive.ask("list")["workloads"]
    assert load_plan(path, known).options["open-close"] == {"file": ["null", "own"]}


@pytest.mark.parametrize(
    "words",
    [
        ("--workload", "dup-close"),
        ("--runs", "9"),
        ("--seed", "0"),
        ("--table-node", "0"),
        ("--quick",),
        ("--oversubscribe",),
        ("--out", "elsewhere"),
    ],
)
def test_resume_obeys_no_other_plan(
    run_py: Run, swept: Path, words: tuple[str, ...]
) -> None:
    """What it would not obey is refused by name."""
    done = run_py("sweep", "--resume", str(swept), *words)
    assert done.returncode == 2 and f"leave out {words[0]}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_resume_dry_run_says_what_is_missing(
    run_py: Run, swept: Path, tmp_path: Path
) -> None:
    """Nothing of a whole folder; the run that a torn one lacks; nothing is changed."""
    done = run_py("sweep", "--resume", str(swept), "--dry-run")
    assert done.returncode == 0
    assert (
        done.stdout == "missing: 0 runs of 0 cells, about 0:00 and 0:00 for figures\n"
    )
    torn = copied(swept, tmp_path / "torn")
    lines = (torn / "results.jsonl").read_text().splitlines(keepends=True)
    (torn / "results.jsonl").write_text("".join(lines[:2]) + lines[2][:9])
    done = run_py("sweep", "--resume", str(torn), "--dry-run")
    assert "1 run of dup-close, model, hold none, 1 thread" in done.stdout
    assert "missing: 1 run of 1 cell, about 0:01" in done.stdout
    assert (torn / "results.jsonl").read_text().endswith(lines[2][:9])
    told = run_py("sweep", "--resume", str(torn), "--dry-run", "--json").stdout
    assert [c["runs"] for c in json.loads(told)["cells"]] == [1]


def test_the_share_after_resume_is_of_this_time(run_py: Run, tmp_path: Path) -> None:
    """Runs of an earlier time are in no share of this one's seconds."""
    out = tmp_path / "o"
    words = ("--runs", "1", "--tasks", "1", "--hold", "none,low:9,low:64")
    run_py("sweep", *TINY, *words, "--max-time", "3", "--out", str(out))
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    (out / "results.jsonl").write_text("".join(lines[:-1]))
    done = run_py("sweep", "--resume", str(out), "--max-time", "0.5")
    assert done.returncode == 0, done.stderr
    new = json.loads((out / "results.jsonl").read_text().splitlines()[-1])
    inside = round(new["recorded_ns"] / 1e9)
    assert f"s since --resume, {inside} s of it" in done.stdout


@pytest.mark.parametrize(
    "part, key, value, refused",
    [
        ("kernel", "boot_id", "another", True),
        ("kernel", "release", "6.1.0", True),
        ("limits", "affinity", "7", True),
        ("limits", "cpuset", "7-9", True),
        ("cpu", "online", "7", True),
        ("frequency", "governor", "powersave", True),
        ("versions", "driver", "0123456789abcdef", True),
        ("versions", "fdscale", "v0", False),
        ("memory", "total_kib", 1, False),
    ],
)
def test_resume_on_what_has_changed(
    tmp_path: Path, swept: Path, part: str, key: str, value: Any, refused: bool
) -> None:
    """Runs of another boot, build or share of the host are not of the same cells."""
    now = json.loads((swept / "host.json").read_text())
    now["frequency"]["governor"] = "performance"
    then = json.loads(json.dumps(now))
    then[part][key] = value
    (tmp_path / "host.json").write_text(json.dumps(then))
    if not refused:
        check_host_same(tmp_path, now)
        return
    with pytest.raises(Problem, match=f"{part}.{key} was {value}, is ") as caught:
        check_host_same(tmp_path, now)
    assert caught.value.status == 2


def test_another_driver_does_not_resume(
    run_py: Run, swept: Path, tmp_path: Path
) -> None:
    """A rebuilt one lays its code elsewhere."""
    other = tmp_path / "fdscale"
    other.write_bytes((BUILD / "fdscale").read_bytes() + b"\n")
    other.chmod(0o755)
    env = {"FDSCALE_DRIVER": str(other)}
    done = run_py("sweep", "--resume", str(swept), env=env)
    assert done.returncode == 2 and "versions.driver was" in done.stderr


def shape(value: Any) -> Any:
    """The keys, and the keys below them."""
    if isinstance(value, dict) and value:
        return {k: shape(v) for k, v in value.items() if k not in ("mitigations",)}
    return None


def test_host_json_is_the_doctors_record(run_py: Run, swept: Path) -> None:
    """Checks and all, so that any two folders have the same fields."""
    host = json.loads((swept / "host.json").read_text())
    checks = json.loads(run_py("doctor", "--json").stdout)["checks"]
    assert [c["name"] for c in host["checks"]] == [c["name"] for c in checks]
    assert host["versions"]["driver"] == drive.build_id()
    assert host["kernel"]["preset"] == drive.ask("list")["kernel"]


def test_equal_refusals_are_one_line() -> None:
    """With the cells counted, the first few named."""
    said = [("too large", f"cell {n}") for n in range(9)] + [("other", "cell 3")]
    assert alike(said) == [
        "too large: 9 cells: cell 0; cell 1; cell 2; cell 3; and 5 more",
        "cell 3: other",
    ]


def test_precision_plans_for_its_first_look() -> None:
    """Time is shared by twelve runs, not by seven; no run is longer than a plain one;
    then up to the next look."""
    plan = Plan(precision=0.01, max_time=600)
    assert plan.least_runs == stats.STOP_FIRST == 12
    assert Plan(runs=20, precision=0.01).least_runs == 20
    assert Plan().least_runs == 7
    assert [stats.next_look(n) for n in (0, 11, 12, 16, 17, 24)] == [
        *(12, 12, 17, 17, 24, 33)
    ]
    cell = Cell("dup-close", "model", "none", "compact", "threads", 1)
    few = Pace(plan, 12).blocks(cell, 2, False)
    assert few <= 1.0 / 0.02
    assert Pace(Plan(precision=0.01, max_time=0.5), 12).blocks(cell, 2, False) == 2


def test_a_cell_narrow_at_a_look_is_not_measured_again() -> None:
    """Runs after the look, of a sweep that was resumed, do not undo it."""

    def run(rate: float) -> dict[str, Any]:
        windows = [{"variant": "a", "block": 0, "rate": rate}]
        return {"error": None, "variants": ["a"], "windows": windows}

    plan = Plan(precision=0.01)
    steady = [run(100 + n % 2 / 100) for n in range(12)]
    assert once_narrow(steady, plan, "") and once_narrow([*steady, run(500)], plan, "")
    assert not once_narrow(steady[:11], plan, "")
    assert not once_narrow([run(100 + n) for n in range(12)], plan, "")


def fake_driver(folder: Path, run: str) -> dict[str, str]:
    """A driver that says what the real one does, but runs otherwise."""
    path = folder / "fdscale"
    path.write_text(
        f'#!/bin/sh\n[ "$2" = dup-close ] || exec {BUILD}/fdscale "$@"\n{run}\n'
    )
    path.chmod(0o755)
    return {"FDSCALE_DRIVER": str(path)}


def test_a_driver_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, recorded with the reason, and not tried again."""
    for name, value in fake_driver(tmp_path, "trap '' INT; sleep 600 & wait").items():
        monkeypatch.setenv(name, value)
    for name, seconds in (("LATE", 0.3), ("GRACE", 0.2)):
        monkeypatch.setattr(drive, name, seconds)
    cell = Cell("dup-close", "model", "none", "compact", "threads", 1)
    record = drive.run_cell(cell, ["two-level"], Plan(), 0, 2, 1, planned=0.01)
    assert record["windows"] == [] and record["error"]["killed"]
    assert "had not ended after 0 s" in record["error"]["text"]
    assert drive.is_hopeless(record)
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("fdscale-run-none"))


def test_a_run_has_a_time_that_it_was_planned_for() -> None:
    """Known for windows; of fixed work, once a run was seen."""
    pace = Pace(Plan(window_ms=100), 2)
    cell = Cell("dup-close", "model", "none", "compact", "threads", 1)
    seconds = pace.seconds(cell, 2, False, 10)
    assert seconds and 2 < seconds < 4
    assert pace.seconds(cell, 2, True, 10) is None
    pace.block[cell] = 3.0
    known = pace.seconds(cell, 2, True, 10)
    assert known and known > 30


def test_a_cells_first_run_in_a_guest_is_short_and_has_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a window costs where PUs are emulated is seen first, then planned with."""
    cell = Cell("dup-close", "kernel", "none", "compact", "threads", 32)
    plan = Plan(window_ms=20, max_time=60)
    assert Pace(plan, 2).blocks(cell, 2, False) > 100
    monkeypatch.setenv("FDSCALE_GUEST", "/door")
    pace = Pace(plan, 2)
    assert (pace.blocks(cell, 2, False), pace.seconds(cell, 2, False, 2)) == (2, None)
    pace.learn(cell, {"error": None, "recorded_ns": 80e6, "seconds": 40.0}, 2)
    assert pace.blocks(cell, 2, False) == 2
    planned = pace.seconds(cell, 2, False, 2)
    assert planned and 40 < planned < 50
    pace.learn(cell, {"error": None, "recorded_ns": 80e6, "seconds": 0.2}, 2)
    assert pace.blocks(cell, 2, False) > 2


def test_a_dead_owners_folder_goes(tmp_path: Path) -> None:
    """The next start removes it; one whose owner lives, or another's, stays."""
    env = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    code = "from bench.scratch import Scratch; s = Scratch(); (s.path / 'f').touch(); "

    def start(then: str) -> "subprocess.Popen[str]":
        words = ["python3", "-c", f"{code}print(s.path, flush=True); {then}"]
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)

    def says(process: "subprocess.Popen[str]") -> Path:
        assert process.stdout
        return Path(process.stdout.readline().strip())

    foreign = tmp_path / "other"
    foreign.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(foreign)
    with start("import time; time.sleep(600)") as dead:
        left = says(dead)
        dead.kill()
    assert (left / "f").exists()
    with start("import time; time.sleep(600)") as first, start("s.drop()") as second:
        kept, gone = says(first), says(second)
        second.wait()
        assert not left.exists() and kept.exists() and not gone.exists()
        first.kill()
    assert foreign.is_dir() and (tmp_path / f"{PREFIX}link").is_symlink()


def test_a_locked_folder_is_another_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lock; none for a file, or for what is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Scratch() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert lock(folder) is None
    assert not folder.exists() and lock(folder) is None


def test_killed_sweeps_leave_no_folder_for_long(run_py: Run, tmp_path: Path) -> None:
    """kill -9: the driver ends by itself, the next sweep removes what is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = os.environ | {"TMPDIR": str(scratch)}
    words = [str(ROOT / "run.py"), "sweep", *TINY, "--out", str(tmp_path / "a")]
    with subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL) as process:
        while not list(scratch.glob("fdscale-run-*")):
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    done = run_py(
        *("sweep", *TINY, "--runs", "1", "--max-time", "0.2"),
        *("--out", str(tmp_path / "b")),
        env={"TMPDIR": str(scratch)},
    )
    assert done.returncode == 0, done.stderr
    assert not list(scratch.iterdir())


def test_a_full_disk_is_named_when_drawing(tmp_path: Path) -> None:
    """gnuplot says nothing of it; we do.  (A mount of its own, where one may be
    made.)"""
    code = (
        "import pathlib, sys; from bench import figure\n"
        f"where = pathlib.Path({str(tmp_path)!r})\n"
        "try: figure.write('rate-vs-tasks', where / 'x', figure.Sheet())\n"
        "except figure.Problem as p: print(p.status, p)\n"
    )
    shell = f'mount -t tmpfs -o size=16k t "{tmp_path}" && exec python3 -c "$0"'
    words = ["unshare", "-rm", "sh", "-c", shell, code]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode and "ermission" in done.stderr + done.stdout:
        pytest.skip("no mount namespace here")
    assert done.stdout.startswith("3 figure x: No space left on device"), done.stderr
    assert Root().exists("/proc")


def test_records_of_a_sweep_are_by_the_schema(swept: Path) -> None:
    """What this fdscale writes, this one reads."""
    assert [r["type"] for r in load(swept)] == ["plan", "run", "run"]
