# SPDX-License-Identifier: GPL-2.0-only
"""A user's own file in a driver of its own: --workload-file, --testcase."""

import json
import os
import re
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run
from test_driver import children_of
from test_workloads import processes_with

CASES = ROOT / "tests" / "cases"
SHORT = ("--windows", "3", "--window-ms", "10", "--json")
TASKS = min(2, len(os.sched_getaffinity(0)))
MODES = pytest.mark.parametrize("mode", ["threads", "processes"])


def events(done: "subprocess.CompletedProcess[str]", kind: str) -> list[dict[str, Any]]:
    """The events of a kind on stdout."""
    lines = (json.loads(line) for line in done.stdout.splitlines())
    return [e for e in lines if e["event"] == kind]


def readme_example() -> str:
    """The C of the README."""
    (block,) = re.findall(
        r"^```c\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S
    )
    return str(block)


def mine(tmp_path: Path, text: str, name: str = "mine.c") -> Path:
    """A file of a user's."""
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_the_readmes_example(fdscale: Run, tmp_path: Path, backend: str) -> None:
    """It compiles and counts on both backends, under the file's name."""
    assert len(readme_example().splitlines()) <= 24
    path = mine(tmp_path, readme_example(), "every-second.c")
    words = ("run", "--workload-file", str(path), "--backend", backend)
    done = fdscale(*words, *SHORT)
    assert done.returncode == 0, done.stderr
    (setup,) = events(done, "setup")
    assert setup["workload"] == "every-second" and len(setup["sha256"]) == 64
    windows = events(done, "window")
    assert len(windows) == 3 * len(setup["variants"])
    assert all(sum(w["ops"]) for w in windows)


def loops(program: str) -> list[list[str]]:
    """The instructions of each operate(), without where they and their data lie."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program],
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for body in re.findall(r"<operate>:\n(.*?)\n\n", done.stdout, re.S):
        lines = [line.partition(":")[2].partition("#")[0] for line in body.splitlines()]
        lines = [re.sub(r"\b[0-9a-f]+ (<)", r"\1", line) for line in lines]
        lines = [re.sub(r"0x[0-9a-f]+\(%rip\)", "(%rip)", line) for line in lines]
        found.append([line.strip() for line in lines if "nop" not in line])
    return found


def test_a_new_object_is_linked_into_users_drivers() -> None:
    """What links them is made anew with the objects, whose names are in it."""
    script = os.path.relpath(BUILD / "own-driver", ROOT)
    old = ("-o", "Makefile", "-o", "drivers/own.sh")
    words = ["make", "-n", *old, "-W", "drivers/harness/own.c", script]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f">{script}" in done.stdout


@pytest.mark.parametrize("folder", ["build", "asan"])
def test_the_loop_is_that_of_a_built_in(tmp_path: Path, folder: str) -> None:
    """dup-close.c from elsewhere: its operate() is the same instructions, twice."""
    fdscale = BUILD / "fdscale" if folder == "build" else BUILD / "asan" / "fdscale"
    text = (ROOT / "drivers" / "workloads" / "dup-close.c").read_text()
    words = ["list", "--workload-file", str(mine(tmp_path, text)), "--json"]
    done = subprocess.run([fdscale, *words], capture_output=True, check=True)
    own = loops(json.loads(done.stdout)["driver"])
    built_in = loops(str(fdscale))
    assert len(own) == 2 and all(len(loop) > 10 for loop in own)
    assert own[0] != own[1] and all(loop in built_in for loop in own)


def test_the_name_is_the_files_and_the_content_is_told(
    fdscale: Run, tmp_path: Path
) -> None:
    """A changed file, or header of its own, is another driver; the same is kept."""
    source = mine(tmp_path, '#include "part.h"\n' + readme_example(), "a b.c")
    words = ("list", "--workload-file", str(source), "--json")
    done = fdscale(*words)
    assert done.returncode == 2 and "named as the file" in done.stderr
    source = source.rename(tmp_path / "ab.c")
    words = ("list", "--workload-file", str(source), "--json")
    (tmp_path / "part.h").write_text("\n")
    first = json.loads(fdscale(*words).stdout)
    stamp = Path(first["driver"]).stat().st_mtime_ns
    again = json.loads(fdscale(*words).stdout)
    assert again == first and Path(first["driver"]).stat().st_mtime_ns == stamp
    (tmp_path / "part.h").write_text("/* changed */\n")
    changed = json.loads(fdscale(*words).stdout)
    assert changed["workloads"][0]["name"] == first["workloads"][0]["name"] == "ab"
    assert changed["workloads"][0]["source"] != first["workloads"][0]["source"]
    assert changed["driver"] != first["driver"]


OWN = """#include "harness/fd.h"
static int operate(struct task *t, uint64_t n) { return -1; }
"""


def test_an_operation_that_fails_without_a_word(fdscale: Run, tmp_path: Path) -> None:
    """operate() returned -1 and told nothing: no number of it."""
    path = mine(tmp_path, OWN + 'WORKLOAD(.about = "x", .operate = operate);\n')
    done = fdscale("run", "--workload-file", str(path), *SHORT)
    assert done.returncode == 3 and not events(done, "window")
    assert "operate() without task_fail()" in done.stderr


@pytest.mark.parametrize(
    "flag, text, named",
    [
        ("workload-file", '#include "harness/fd.h"\nint x = y;\n', "mine.c:2:"),
        ("workload-file", "int x;\n", "no WORKLOAD()"),
        ("workload-file", '#include "missing.h"\n', "missing.h"),
        ("workload-file", OWN + 'WORKLOAD(.about = "x");\n', "no .operate"),
        ("workload-file", OWN + "WORKLOAD(.operate = operate);\n", "no .about"),
        ("testcase", "void testcase(int *i, int n) { x = 1; }\n", "mine.c:1:"),
        ("testcase", "char *testcase_description;\n", "testcase'"),
    ],
)
def test_what_does_not_compile(
    fdscale: Run, tmp_path: Path, flag: str, text: str, named: str
) -> None:
    """Status 2, one line with the file and the compiler's first error."""
    path = mine(tmp_path, text)
    done = fdscale("run", f"--{flag}", str(path), *SHORT)
    assert done.returncode == 2 and not done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert str(path) in done.stderr and named in done.stderr


@pytest.mark.parametrize(
    "words, named",
    [
        (("run", "--testcase", "/nowhere/x.c"), "/nowhere/x.c: No such file"),
        (("run", "--testcase", str(ROOT / "Makefile")), "not a C file"),
        (("run", "--tasks", "1", "--workload-file"), "needs a file"),
        (
            ("run", "--testcase", str(CASES / "counts.c"), "--backend", "model"),
            "no such workload on the model",
        ),
        (
            ("run", "--testcase", str(CASES / "counts.c"), "--table-node", "0"),
            "--table-node",
        ),
    ],
)
def test_wrong_words(fdscale: Run, words: tuple[str, ...], named: str) -> None:
    """Named, with status 2."""
    done = fdscale(*words)
    assert done.returncode == 2 and named in done.stderr
    assert len(done.stderr.splitlines()) == 1


def run_case(fdscale: Run, name: str, mode: str, *more: str, **env: str) -> Any:
    """A short run of a case of ours."""
    mark = f"fdscale-test-{uuid.uuid4()}"
    words: tuple[str, ...] = ("run", "--testcase", str(CASES / f"{name}.c"))
    words += ("--mode", mode, "--tasks", str(TASKS), *SHORT, *more)
    # What a case dies of is its own affair, not ASan's.
    asan = "handle_segv=0:handle_sigbus=0:detect_leaks=0"
    env = {"FDSCALE_TEST": mark, "ASAN_OPTIONS": asan, **env}
    done = fdscale(*words, env=env)
    assert not processes_with(mark)
    return done


@MODES
def test_a_case_counts(fdscale: Run, mode: str) -> None:
    """Its own increments, with a header of its folder: by threes."""
    done = run_case(fdscale, "counts", mode)
    assert done.returncode == 0, done.stderr
    (setup,) = events(done, "setup")
    assert setup["testcase"] == "counting by steps" and len(setup["pus"]) == TASKS
    for window in events(done, "window"):
        assert len(window["ops"]) == TASKS
        assert any(window["ops"]) and not any(n % 3 for n in window["ops"])
        rate = sum(window["ops"]) * 1e9 / window["ns"]
        assert window["rate"] == pytest.approx(rate, rel=1e-9)
        assert window["skewed"] or window["skew_ns"] * 100 <= 10_000_000


@MODES
def test_prepare_and_cleanup(fdscale: Run, tmp_path: Path, mode: str) -> None:
    """Once each, around all tasks; what prepare left open is open in the tasks."""
    path = tmp_path / "happened"
    done = run_case(fdscale, "prepares", mode, FDSCALE_CASE_FILE=str(path))
    assert done.returncode == 0, done.stderr
    first, *tasks, last = path.read_text().splitlines()
    assert first == f"prepared {TASKS}" and last == "cleaned up"
    assert sorted(tasks) == [f"task {i} of {TASKS}" for i in range(TASKS)]


@MODES
@pytest.mark.parametrize("helper", ["answers", "asserts", "dies"])
def test_helpers(fdscale: Run, mode: str, helper: str) -> None:
    """new_task() is a thread among threads, a process among processes."""
    more = () if helper == "answers" else ("--windows", "100000")
    done = run_case(fdscale, "helped", mode, *more, FDSCALE_CASE_HELPER=helper)
    if helper == "answers":
        assert done.returncode == 0, done.stderr
        assert all(sum(w["ops"]) for w in events(done, "window"))
        return
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1
    assert "test case helped: " in done.stderr
    named = "helped.c:29: helper: " if helper == "asserts" else "signal 7 (Bus error)"
    assert named in done.stderr


@MODES
@pytest.mark.parametrize(
    "name, end, named",
    [
        ("asserts", "", "asserts.c:14: testcase: *iterations < 20000"),
        ("dies", "signal", "killed by signal 11 (Segmentation fault)"),
        ("dies", "daemon", "killed by signal 11 (Segmentation fault)"),
        ("dies", "exit", "ended with exit status 7"),
        ("dies", "prepare", "testcase_prepare() was killed by signal 11"),
        ("dies", "return", "testcase() returned in task"),
        ("dies", "wait", "nothing was counted in 9 windows of"),
    ],
)
def test_a_case_that_ends(
    fdscale: Run, name: str, end: str, named: str, mode: str
) -> None:
    """Reported with its name and the reason, in one line; no run without its end."""
    more = ("--windows", "100000")
    done = run_case(fdscale, name, mode, *more, FDSCALE_CASE_END=end)
    assert done.returncode == 3
    assert f"test case {name}: " in done.stderr and named in done.stderr
    assert len(done.stderr.splitlines()) == 1
    if events(done, "end"):
        assert events(done, "end")[0]["how"] == "failed"


def test_no_number_of_a_broken_run() -> None:
    """For people neither: no table when the case asserted."""
    words = ["run", "--testcase", str(CASES / "asserts.c"), "--windows", "100000"]
    done = subprocess.run(
        [BUILD / "fdscale", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and not done.stdout


@MODES
def test_one_task_is_alone_in_its_table(tmp_path: Path, mode: str) -> None:
    """One thread, whose table is the hold and what the case opened."""
    path = tmp_path / "happened"
    words = ["run", "--testcase", str(CASES / "prepares.c"), "--mode", mode]
    words += ["--hold", "low:70", "--windows", "100000", "--json"]
    with subprocess.Popen(
        [BUILD / "fdscale", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"FDSCALE_CASE_FILE": str(path)},
    ) as driver:
        assert driver.stdout
        setup = json.loads(driver.stdout.readline())
        driver.stdout.readline()
        ((task,),) = [children_of(child) for child in children_of(driver.pid)]
        threads = list(Path(f"/proc/{task}/task").iterdir())
        held = set()
        for fd in Path(f"/proc/{task}/fd").iterdir():
            held.add(int(fd.name))
        driver.terminate()
        driver.stdout.read()
        assert driver.wait(30) == 130
    assert len(threads) == 1 and setup["fdsize"] == 128
    # 70 is what prepare keeps, 71 what the loop opens.
    assert held - {71} == set(range(71))
    assert path.read_text().endswith("cleaned up\n")


@pytest.mark.parametrize("kill", ["INT", "TERM", "KILL"])
def test_a_killed_run_cleans_up(tmp_path: Path, kill: str) -> None:
    """testcase_cleanup() runs though the coordinator is gone, and no task is left."""
    path = tmp_path / "happened"
    mark = f"fdscale-test-{uuid.uuid4()}"
    words = ["run", "--testcase", str(CASES / "prepares.c"), "--mode", "processes"]
    words += ["--tasks", str(TASKS), "--windows", "100000", "--json"]
    env = {"FDSCALE_CASE_FILE": str(path), "FDSCALE_TEST": mark}
    with subprocess.Popen(
        [BUILD / "fdscale", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    ) as driver:
        assert driver.stdout
        driver.stdout.readline()
        driver.stdout.readline()
        subprocess.run(["kill", f"-{kill}", str(driver.pid)], check=True)
        driver.stdout.read()
        driver.wait(30)
    for _ in range(100):
        if not processes_with(mark):
            break
        time.sleep(0.05)
    assert not processes_with(mark)
    assert path.read_text().splitlines().count("cleaned up") == 1


def test_a_switch_is_flipped_while_the_case_stands(
    fdscale: Run, tmp_path: Path
) -> None:
    """Variants by the kernel's switch; it is put back as it was found."""
    knob = tmp_path / "variant"
    knob.write_text("merged-6.13\n")
    more = ("--variant", "stock-6.12,series-v3")
    done = run_case(fdscale, "counts", "threads", *more, FDSCALE_KNOB=str(knob))
    assert done.returncode == 0, done.stderr
    variants = [w["variant"] for w in events(done, "window")]
    assert sorted(variants) == ["series-v3"] * 3 + ["stock-6.12"] * 3
    assert all(sum(w["ops"]) for w in events(done, "window"))
    assert knob.read_text().splitlines()[0] == "merged-6.13"
