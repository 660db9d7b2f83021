# SPDX-License-Identifier: GPL-2.0-only
"""build/fdscale as scripts see it: events, statuses, refusals."""

import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT, Run

SHORT = ("--windows", "3", "--window-ms", "5")
PUS = len(os.sched_getaffinity(0))


def events(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    """The lines of a run that went well."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("backend", ["kernel", "model"])
@pytest.mark.parametrize("workload", ["dup-close", "open-close", "dup2-churn"])
def test_run_events(fdscale: Run, workload: str, backend: str, mode: str) -> None:
    """Every workload, backend and mode: setup, windows that add up, end."""
    if workload == "dup2-churn" and mode == "threads":
        pytest.skip("refused: see test_churn_refuses_threads")
    tasks = min(2, PUS)
    words = ("run", workload, "--backend", backend, "--mode", mode, "--json")
    setup, *windows, end = events(fdscale(*words, "--tasks", str(tasks), *SHORT))
    assert setup["event"] == "setup" and setup["schema"] == 1
    assert setup["workload"] == workload and setup["mode"] == mode
    assert len(setup["pus"]) == len(setup["nodes"]) == tasks
    assert set(setup["pus"]) <= os.sched_getaffinity(0)
    assert setup["memory_bound"] is True or isinstance(setup["memory_bound"], str)
    assert len(windows) == 3 * len(setup["variants"])
    for block in range(3):
        mine = [w["variant"] for w in windows if w["block"] == block]
        assert sorted(mine) == sorted(setup["variants"])
    for window in windows:
        assert window["event"] == "window" and len(window["ops"]) == tasks
        rate = sum(window["ops"]) * 1e9 / window["ns"]
        assert window["rate"] == pytest.approx(rate, rel=1e-9)
    assert end["event"] == "end" and end["how"] == "done"
    assert end["recorded_ns"] == sum(w["ns"] for w in windows)


@pytest.mark.parametrize("workload", ["dup-close", "dup2-churn"])
@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_injected_time_is_the_clones(fdscale: Run, workload: str, backend: str) -> None:
    """A clone spins for its share of every window, and nothing else does."""
    name = "merged-6.13"
    if backend == "kernel":
        name = json.loads(fdscale("list", "--json").stdout)["kernel"]
    words = ("run", workload, "--backend", backend, "--json", "--inject", "25%")
    clone = f"{name}#clone"
    setup, *windows, _ = events(fdscale(*words, "--variant", f"{name},{clone}", *SHORT))
    assert setup["inject"] == 0.25
    for window in windows:
        if window["variant"] == clone:
            # A fifth of the whole is 25% of the rest; 1 us may be owed at the end.
            enough = 0.2 * window["ns"] - 1000
            assert window["injected_ns"] >= enough or window["skewed"]
        else:
            assert window["injected_ns"] == 0


def test_injection_needs_a_clone(fdscale: Run) -> None:
    """Else it would be measured, found to be nothing, and believed."""
    done = fdscale("run", "dup-close", "--inject", "1.2%")
    assert done.returncode == 2 and "#clone" in done.stderr
    done = fdscale("run", "dup-close", "--inject", "a lot")
    assert done.returncode == 2 and "'a lot'" in done.stderr


@pytest.mark.parametrize("kind", ["own", "shared", "null", "dirs"])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_open_close_files(fdscale: Run, tmp_path: Path, kind: str, mode: str) -> None:
    """Each kind of file runs, and nothing is left in the folder."""
    words = ("run", "open-close", "--file", kind, "--mode", mode, "--json")
    done = fdscale(
        *words, "--tasks", str(min(2, PUS)), *SHORT, "--tmpdir", str(tmp_path)
    )
    assert events(done)[0]["options"] == {"file": kind}
    assert not list(tmp_path.iterdir())


def test_fixed_work_counts_turns(fdscale: Run) -> None:
    """dup2-churn does what was asked, turn for turn."""
    words = ("run", "dup2-churn", "--turns", "777", "--windows", "2", "--json")
    windows = [e for e in events(fdscale(*words)) if e["event"] == "window"]
    assert [w["ops"] for w in windows] == [[777], [777]]


@pytest.mark.parametrize("size", [64, 128, 4096])
@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_table_size(fdscale: Run, backend: str, size: int) -> None:
    """The size that was asked for is what the table has."""
    words = ("run", "dup-close", "--backend", backend, "--table-size", str(size))
    assert events(fdscale(*words, "--json", *SHORT))[0]["fdsize"] == size


def test_inherited_descriptors_do_not_matter() -> None:
    """A table is inherited in size (facts): ours is as asked all the same."""
    high = os.dup2(0, 1000)
    try:
        done = subprocess.run(
            [str(BUILD / "fdscale"), "run", "dup-close", "--json", *SHORT]
            + ["--table-size", "64"],
            capture_output=True,
            text=True,
            pass_fds=[high],
            check=False,
        )
        assert events(done)[0]["fdsize"] == 64
    finally:
        os.close(high)


def test_soft_limit_is_raised_in_the_child(fdscale: Run) -> None:
    """A soft limit of 64 does not stop a hold of 500 below the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        done = fdscale("run", "dup-close", "--hold", "low:500", "--json", *SHORT)
        assert events(done)[0]["fdsize"] == 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "words, named",
    [
        (("run",), ["WORKLOAD"]),
        (("run", "dup-clos"), ["dup-clos", "dup-close", "open-close", "dup2-churn"]),
        (("run", "dup-close", "--backend", "kernl"), ["kernl", "kernel model"]),
        (("run", "dup-close", "--mode", "fibres"), ["fibres", "threads processes"]),
        (("run", "dup-close", "--place", "dense"), ["dense", "compact", "scatter"]),
        (("run", "dup-close", "--hold", "low:-1"), ["low:N", "'-1'"]),
        (("run", "dup-close", "--hold", "low:x"), ["low:N", "'x'"]),
        (("run", "dup-close", "--hold", "high:3"), ["high:3", "none", "low:N"]),
        (("run", "dup-close", "--tasks", "0"), ["--tasks", "'0'"]),
        (("run", "dup-close", "--tasks", "-1"), ["--tasks", "'-1'"]),
        (("run", "dup-close", "--tasks", "abc"), ["--tasks", "'abc'"]),
        (("run", "dup-close", "--tasks", "1e9"), ["--tasks", "'1e9'"]),
        (("run", "dup-close", "--tasks", "1000000000"), ["--tasks", "65536"]),
        (("run", "dup-close", "--tasks", "60000"), ["60000", "--oversubscribe"]),
        (("run", "dup-close", "--windows", "0"), ["--windows"]),
        (("run", "dup-close", "--table-size", "100"), ["100", "power of two"]),
        (("run", "dup-close", "--turns", "5"), ["--turns", "--blow"]),
        (("run", "dup-close", "--tasks"), ["--tasks", "value"]),
        (("run", "dup-close", "extra"), ["extra"]),
        (("run", "open-close", "--file", "mine"), ["mine", "own shared null dirs"]),
        (("run", "dup2-churn", "--hold", "low:9"), ["empty table", "low:9"]),
        (
            ("run", "dup-close", "--backend", "model", "--variant", "third-word"),
            ["third-word", "next_fd-word", "merged-6.13"],
        ),
        (
            ("run", "dup-close", "--backend", "model", "--variant", "two-level+fast"),
            ["fast", "cond-clear"],
        ),
        (("place", "--place", "cores", "--tasks", "0"), ["--tasks"]),
        (("place", "--policy", "cores"), ["--policy", "--place"]),
        (("list", "everything"), ["everything"]),
        (("measure",), ["measure", "run"]),
        (("measure\nthis",), ["measure?this"]),
        (("run", "dup-close", "--back", "model"), ["--backend model", "spell"]),
        (
            ("run", "dup-close", "--backend", "model", "--back", "kernel"),
            ["--backend kernel", "once"],
        ),
        (("run", "dup-close", "--hold", "file:\udcff"), ["file:?", "UTF-8"]),
        (("run", "dup-close", "--tmpdir", "a\tb"), ["a?b", "control"]),
        (("run", "dup-close", "-\udcff"), ["UTF-8"]),
        (("place", "--place", "x" + "é" * 60), ["unknown", "compact"]),
        (("check", "--variant", "zz"), ["zz", "next_fd-word"]),
        (("run", "dup-close", "--lock", "tas"), ["--lock", "model"]),
        (("run", "dup-close", "--seed", "18446744073709551615"), ["--seed"]),
    ],
)
def test_wrong_words_are_named(
    fdscale: Run, words: tuple[str, ...], named: list[str]
) -> None:
    """Status 2, one line with the word and the right ones, nothing on stdout."""
    done = fdscale(*words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1
    for word in named:
        assert word in done.stderr


@pytest.mark.parametrize("word", ["--help", "-h", "--hel"])
def test_help_by_any_name(fdscale: Run, word: str) -> None:
    """Getopt completes words: what it makes of --hel is no option of a workload."""
    done = fdscale("run", "dup-close", word)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("usage: fdscale run")


@pytest.mark.parametrize(
    "name, named",
    [
        ("no-complete.xml", "hwloc fails on it"),
        ("twice.xml", "PU 0 is in it twice"),
    ],
)
def test_a_topology_that_hwloc_takes_amiss(fdscale: Run, name: str, named: str) -> None:
    """It crashes on the first, and has nothing against the second."""
    path = str(ROOT / "tests" / "corpus" / "topology" / name)
    done = fdscale("topology", env={"HWLOC_XMLFILE": path})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert path in done.stderr and named in done.stderr


def test_a_topology_without_end(fdscale: Run) -> None:
    """Nobody waits for a billion PUs, or for their memory."""
    done = fdscale("topology", env={"HWLOC_SYNTHETIC": "pack:1000 core:1000 pu:1000"})
    assert done.returncode == 2 and "more than 8192 PUs" in done.stderr
    done = fdscale("topology", env={"HWLOC_SYNTHETIC": "pack:8 core:512 pu:2"})
    assert done.returncode == 0 and "8192 PUs" in done.stdout


def test_churn_refuses_threads(fdscale: Run) -> None:
    """And says why, and what to use."""
    done = fdscale("run", "dup2-churn", "--mode", "threads")
    assert done.returncode == 2
    assert "--mode processes" in done.stderr and "EBADF" in done.stderr


def test_hold_beyond_the_hard_limit(fdscale: Run) -> None:
    """Refused before it starts, with what binds, its value and the remedy."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    nr_open = int(Path("/proc/sys/fs/nr_open").read_text())
    done = fdscale("run", "dup-close", "--hold", f"low:{nr_open}", "--json")
    assert done.returncode == 3 and done.stdout == ""
    assert f"fs.nr_open is {nr_open}" in done.stderr and "sysctl" in done.stderr
    if hard + 100 < nr_open:
        done = fdscale("run", "dup-close", "--hold", f"low:{hard}", "--json")
        assert done.returncode == 3 and done.stdout == ""
        assert f"RLIMIT_NOFILE is {hard}" in done.stderr and "ulimit" in done.stderr
    words = ("run", "dup-close", "--backend", "model", "--hold", f"low:{hard}")
    assert events(fdscale(*words, "--json", *SHORT))


def test_another_kernels_variant(fdscale: Run) -> None:
    """A right word that this kernel cannot serve is 'could not'."""
    running = json.loads(fdscale("list", "--json").stdout)["kernel"]
    other = "stock-6.12" if running != "stock-6.12" else "merged-6.13"
    done = fdscale("run", "dup-close", "--variant", other)
    assert done.returncode == 3
    assert running in done.stderr and "--backend model" in done.stderr


def test_queued_lock_oversubscribed(fdscale: Run) -> None:
    """FIFO waiters that can be preempted stop everybody: refused, tas is not."""
    words = ("run", "dup-close", "--backend", "model", "--oversubscribe", "--tasks")
    done = fdscale(*words, str(PUS + 1))
    assert done.returncode == 2 and "--lock tas" in done.stderr
    done = fdscale(*words, str(PUS + 1), "--lock", "tas", "--json", *SHORT)
    assert len(events(done)[0]["pus"]) == PUS + 1


def test_tmpdir_that_cannot_be_written(fdscale: Run) -> None:
    """Named, with status 3."""
    done = fdscale("run", "open-close", "--tmpdir", "/nowhere/at all")
    assert done.returncode == 3 and "/nowhere/at all" in done.stderr


def test_full_stdout(fdscale: Run) -> None:
    """Results that could not be written are no success."""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [BUILD / "fdscale", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3 and "stdout" in done.stderr


def test_foreign_topology_places_and_does_not_run(fdscale: Run) -> None:
    """place and topology obey HWLOC_SYNTHETIC; run would bind to what is not."""
    env = {"HWLOC_SYNTHETIC": "pack:2 core:4 pu:1"}
    done = fdscale("place", "--place", "scatter", "--tasks", "4", "--json", env=env)
    assert json.loads(done.stdout) == {"pus": [0, 4, 1, 5]}
    done = fdscale("topology", "--json", env=env)
    assert json.loads(done.stdout)["pus"] == 8
    done = fdscale("run", "dup-close", env=env)
    assert done.returncode == 2 and "HWLOC_SYNTHETIC" in done.stderr


def children_of(pid: int) -> list[int]:
    """The processes that have it as their parent."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_killed(tmp_path: Path, kill: signal.Signals, mode: str) -> None:
    """No task outlives the coordinator; asked to stop, it cleans up and says so."""
    words = ["run", "open-close", "--mode", mode, "--tasks", str(min(2, PUS))]
    words += ["--windows", "100000", "--json", "--tmpdir", str(tmp_path)]
    with subprocess.Popen(
        [BUILD / "fdscale", *words], stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout
        assert '"setup"' in driver.stdout.readline()
        assert '"window"' in driver.stdout.readline()
        tasks = children_of(driver.pid)
        assert tasks
        driver.send_signal(kill)
        rest = driver.stdout.read()
        status = driver.wait(30)
    for _ in range(100):
        left = [t for t in tasks if Path(f"/proc/{t}").exists()]
        if not left:
            break
        time.sleep(0.05)
    assert not left
    if kill == signal.SIGKILL:
        assert status == -kill
        return
    assert status == 130
    assert json.loads(rest.splitlines()[-1])["how"] == "interrupted"
    assert not list(tmp_path.iterdir())


def test_a_failing_call_breaks_the_window(tmp_path: Path) -> None:
    """The file goes while it is opened: syscall, errno and remedy, no end of run."""
    words = ["run", "open-close", "--windows", "100000", "--json"]
    with subprocess.Popen(
        [BUILD / "fdscale", *words, "--tmpdir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout and driver.stderr
        driver.stdout.readline()
        driver.stdout.readline()
        (next(tmp_path.iterdir()) / "0").unlink()
        lines = [json.loads(line) for line in driver.stdout.read().splitlines()]
        stderr = driver.stderr.read()
        assert driver.wait(30) == 3
    error = [e for e in lines if e["event"] == "error"]
    assert error[0]["syscall"] == "open" and error[0]["errno"] == 2
    assert "--tmpdir" in error[0]["remedy"]
    assert lines[-1]["how"] == "failed"
    assert re.fullmatch(r"fdscale: open-close: task 0: open: .*\n", stderr)


@pytest.mark.parametrize(
    "workload, calls", [("dup-close", 2), ("yuma", 4), ("fork-copy", 1), ("fget", 2)]
)
def test_think_is_spent_outside_the_lock(
    fdscale: Run, workload: str, calls: int
) -> None:
    """Calls with 1 ms each: so much an operation at least, whatever the table takes.

    The spin is calibrated by its fastest try, so that it may only take longer.
    """
    words = ("run", workload, "--backend", "model", "--mode", "processes", "--json")
    done = fdscale(*words, "--think", "1000000", "--windows", "2", "--window-ms", "50")
    setup, *rest = events(done)
    assert setup["think_ns"] == 1_000_000
    rates = [e["rate"] for e in rest if e["event"] == "window"]
    assert rates and max(rates) <= 2000 / calls


def test_think_as_the_kernel(fdscale: Run) -> None:
    """Worked out here; a number of nanoseconds that the events tell."""
    words = ("run", "dup-close", "--backend", "model", "--think", "kernel", "--json")
    setup = events(fdscale(*words, *SHORT))[0]
    assert setup["think_ns"] >= 0 and setup["backend"] == "model"
    done = fdscale("run", "dup-close", "--think", "100")
    assert done.returncode == 2 and "--think" in done.stderr


def test_ten_million_held(fdscale: Run) -> None:
    """On the model there is no limit but memory; the events tell how much."""
    words = ("run", "dup-close", "--backend", "model", "--hold", "low:10000000")
    setup = events(fdscale(*words, "--variant", "three-level", "--json", *SHORT))[0]
    # A pointer a slot and the bitmaps: 2^24 x (8 + 2/8) bytes and what they need.
    assert setup["fdsize"] == 1 << 24
    assert 1 << 27 < setup["table_bytes"] < 1 << 28


@pytest.fixture
def knob(tmp_path: Path) -> Path:
    """A file that stands for a kernel's switch: what is written is read back."""
    path = tmp_path / "variant"
    path.write_text("merged-6.13\n")
    return path


def test_the_switch_is_flipped_and_put_back(fdscale: Run, knob: Path) -> None:
    """Windows of every variant; afterwards the switch is as it was found."""
    words = ("run", "dup-close", "--variant", "stock-6.12,series-v3", "--json")
    done = fdscale(*words, *SHORT, env={"FDSCALE_KNOB": str(knob)})
    variants = [e["variant"] for e in events(done) if e["event"] == "window"]
    assert sorted(variants) == ["series-v3"] * 3 + ["stock-6.12"] * 3
    assert knob.read_text().splitlines()[0] == "merged-6.13"


def test_all_is_what_the_switch_has(fdscale: Run, knob: Path) -> None:
    """Of what it lists beside itself, what conforms."""
    words = ("search two-level", "search first-word-v1", "preset patch-1")
    knob.with_name("words").write_text("".join(f"{w}\n" for w in words))
    env = {"FDSCALE_KNOB": str(knob)}
    done = fdscale("run", "dup-close", "--variant", "all", "--json", *SHORT, env=env)
    assert events(done)[0]["variants"] == ["two-level", "patch-1"]
    done = fdscale("check", "--variant", "all", "--json", env=env)
    assert done.returncode == 0, done.stderr
    names = [json.loads(line)["variant"] for line in done.stdout.splitlines()]
    assert names == ["two-level", "patch-1"]
    assert knob.read_text().splitlines()[0] == "merged-6.13"


def test_a_switch_that_does_not_obey(fdscale: Run, tmp_path: Path) -> None:
    """What does not read back as written is no measurement."""
    words = ("run", "dup-close", "--variant", "stock-6.12", *SHORT)
    done = fdscale(*words, env={"FDSCALE_KNOB": "/dev/zero"})
    assert done.returncode == 3 and "/dev/zero" in done.stderr


def test_the_switch_is_put_back_after_sigkill(knob: Path) -> None:
    """By the keeper, which outlives the driver."""
    words = ["run", "dup-close", "--variant", "stock-6.12", "--windows", "100000"]
    with subprocess.Popen(
        [BUILD / "fdscale", *words, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"FDSCALE_KNOB": str(knob)},
    ) as driver:
        assert driver.stdout
        driver.stdout.readline()
        driver.stdout.readline()
        assert knob.read_text().splitlines()[0] == "stock-6.12"
        driver.kill()
    for _ in range(100):
        if knob.read_text().splitlines()[0] == "merged-6.13":
            return
        time.sleep(0.05)
    raise AssertionError(knob.read_text())


def test_help_fits_80_columns(fdscale: Run) -> None:
    """And teaches by example."""
    for words in (("--help",), ("run", "--help"), ("list",)):
        done = fdscale(*words)
        assert done.returncode == 0
        long = [line for line in done.stdout.splitlines() if len(line) > 80]
        assert not long


def test_what_does_not_conform_is_labelled(fdscale: Run) -> None:
    """In the list, in a table, and in what a results folder keeps."""
    why = "does not conform: not the lowest descriptor"
    lines = fdscale("list").stdout.splitlines()
    for name in ("any-fd", "any-fd-split"):
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
        assert why in lines[at + 1] + lines[at + 2]
    searches = json.loads(fdscale("list", "--json").stdout)["searches"]
    said = {s["name"]: s.get("nonconforming") for s in searches}
    assert {n for n, why in said.items() if why} == {
        "first-word-v1",
        "any-fd",
        "any-fd-split",
    }
    variants = ("--variant", "two-level,any-fd")
    words = ("run", "dup-close", "--backend", "model", *SHORT, *variants)
    assert f"\nany-fd {why}\n" in fdscale(*words).stdout
    setup = events(fdscale(*words, "--json"))[0]
    assert setup["nonconforming"] == {"any-fd": why}


@pytest.mark.parametrize(
    "names, named",
    [
        (",", "none named"),
        ("two-level,two-level", "'two-level' twice"),
        (",".join(f"two-level+{'+'.join(['cond-clear'] * n)}" for n in range(99)), ""),
    ],
)
def test_check_takes_the_names_that_run_takes(
    fdscale: Run, names: str, named: str
) -> None:
    """None, one twice, more than there is room for: refused, nothing is left out."""
    for command in (("check",), ("run", "dup-close")):
        done = fdscale(*command, "--backend", "model", "--variant", names)
        assert done.returncode == 2 and not done.stdout
        assert named in done.stderr and len(done.stderr.splitlines()) == 1
