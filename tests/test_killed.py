# SPDX-License-Identifier: GPL-2.0-only
"""A sweep killed at random moments: what is on record stays, the rest is resumed.

FDSCALE_KILLS is how many moments (40; 200 before a release): each takes a second or
two of a CPU.  What was
killed is the runner, the driver or a task, by a signal drawn at random.
"""

import contextlib
import json
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import ROOT
from test_workloads import processes_with

from bench.store import load

KILLS = int(os.environ.get("FDSCALE_KILLS", "40"))
LANES = 4
# Two backends, threads and processes, one of fixed work: eight runs of a cell each.
WORDS = (
    *("--workload", "open-close,dup-close", "--backend", "kernel,model"),
    *("--hold", "low:8", "--tasks", "2", "--mode", "threads,processes"),
    *("--window-ms", "5", "--oversubscribe", "--runs", "1", "--max-time", "4"),
)
SIGNALS = {
    "runner": (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    "driver": (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV),
    "task": (signal.SIGKILL, signal.SIGSEGV),
}
LONGEST = 4.0  # seconds from the start to the kill
GONE = 20.0  # seconds in which all that was started must have ended


def parent(pid: str) -> str:
    """Of a process; "" when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[1]


def victims(mark: str, runner: int) -> dict[str, list[int]]:
    """Who there is to kill: by part, the pids."""
    found: dict[str, list[int]] = {"runner": [runner], "driver": [], "task": []}
    for pid in processes_with(mark):
        try:
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if name == "fdscale":
            part = "driver" if parent(pid) == str(runner) else "task"
            found[part].append(int(pid))
    return found


class Lane:
    """One results folder after the other, each killed and resumed until it is done."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir(parents=True)
        self.random = random.Random(seed)
        self.mark = f"fdscale-killed-{uuid.uuid4()}"
        self.env = os.environ | {
            "FDSCALE_TEST": self.mark,
            "TMPDIR": str(self.scratch),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        self.killed: Counter[str] = Counter()
        self.folders = 0

    def start(self, out: Path) -> "subprocess.Popen[bytes]":
        """A new sweep, or what is missing of it."""
        old = (out / "results.jsonl").exists() and load(out)
        words = ("--resume", str(out)) if old else (*WORDS, "--out", str(out))
        if out.exists() and not old:  # killed before the plan was on record
            for left in out.iterdir():
                left.unlink()
        return subprocess.Popen(
            [ROOT / "run.py", "sweep", "-q", *words],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        """At a random moment, someone, by some signal."""
        part = self.random.choice(list(SIGNALS))
        end = time.monotonic() + self.random.uniform(0, LONGEST)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.01)
        there: list[int] = []
        while not there and process.poll() is None:
            there = victims(self.mark, process.pid)[part]
        try:
            if there:
                os.kill(self.random.choice(there), self.random.choice(SIGNALS[part]))
                self.killed[part] += 1
        except ProcessLookupError:
            pass

    def nothing_runs(self) -> None:
        """Of all that was started."""
        end = time.monotonic() + GONE
        while processes_with(self.mark):
            assert time.monotonic() < end, "left running"
            time.sleep(0.05)

    def one_folder(self) -> None:
        """Until the sweep ends by itself with all its cells measured."""
        out = self.folder / f"out{self.folders}"
        before = b""
        for kills in range(1000):
            process = self.start(out)
            if kills < 12:
                self.kill(process)
            _, stderr = process.communicate(timeout=120)
            self.nothing_runs()
            # Python's own start, before the first line of ours, may print one.
            assert f'File "{ROOT}'.encode() not in stderr, stderr.decode()
            results = out / "results.jsonl"
            now = results.read_bytes() if results.exists() else b""
            assert now.startswith(before[: before.rfind(b"\n") + 1])
            before = now
            if process.returncode == 0:
                break
        runs = [r for r in load(out) if r["type"] == "run" and not r["error"]]
        cells = Counter(json.dumps([r["cell"], r["run"]]) for r in runs)
        assert len(cells) == 8 and set(cells.values()) == {1}
        assert (out / "summary.txt").exists()
        assert not list(self.scratch.iterdir())
        self.folders += 1


def knobs() -> dict[str, str]:
    """What a sweep might have changed of the machine."""
    names = "/proc/sys/fs/nr_open /proc/sys/fs/file-max /proc/sys/kernel/numa_balancing"
    names += " /proc/sys/kernel/randomize_va_space /proc/sys/kernel/perf_event_paranoid"
    paths = [*map(Path, names.split()), *Path("/sys/module").glob("file/parameters/*")]
    paths += Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")
    return {str(p): p.read_text(encoding="utf-8") for p in paths if p.exists()}


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Nothing on record is lost, no cell is measured twice, nothing is left."""
    seed = int(os.environ.get("FDSCALE_SEED", str(random.getrandbits(32))))
    print(f"FDSCALE_SEED={seed}")  # to see it again
    before = knobs()
    lanes = [Lane(tmp_path / f"lane{i}", seed + i) for i in range(LANES)]

    def run(lane: Lane) -> None:
        while lane.killed.total() * LANES < KILLS:
            lane.one_folder()

    with ThreadPoolExecutor(LANES) as pool:
        list(pool.map(run, lanes))
    killed: Counter[str] = sum((lane.killed for lane in lanes), Counter())
    print(f"killed: {dict(killed)}, folders: {sum(lane.folders for lane in lanes)}")
    assert killed.total() >= KILLS and set(killed) == set(SIGNALS)
    assert knobs() == before


def start_on_terminal(out: Path, env: dict[str, str]) -> tuple[int, int]:
    """A sweep of a minute with a terminal of its own; its pid and the other end."""
    words = (*WORDS, "--runs", "100", "--max-time", "60", "--out", str(out))
    pid, end = pty.fork()
    if not pid:
        os.execve(ROOT / "run.py", ["run.py", "sweep", *words], os.environ | env)
    return pid, end


def wait_for_runs(out: Path, terminal: int) -> None:
    """Until two are on record; what is said meanwhile is read and dropped."""
    results = out / "results.jsonl"
    while not results.exists() or results.read_bytes().count(b"\n") < 3:
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65536)


def test_the_terminal_is_closed(tmp_path: Path) -> None:
    """As Ctrl-C: what is on record stays and is summed up, nothing runs on."""
    mark = f"fdscale-closed-{uuid.uuid4()}"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"FDSCALE_TEST": mark, "TMPDIR": str(scratch), "TERM": "xterm"}
    out = tmp_path / "out"
    pid, terminal = start_on_terminal(out, env)
    wait_for_runs(out, terminal)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert not processes_with(mark)
    assert not list(scratch.iterdir())
    assert [r["error"] for r in load(out) if r["type"] == "run"][:2] == [None] * 2
    assert (out / "summary.txt").stat().st_size


def test_the_folder_is_removed(tmp_path: Path) -> None:
    """The sweep ends with the next run, in one line, and makes no new folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    out = tmp_path / "out"
    words = (*WORDS, "--runs", "100", "--max-time", "60", "--out", str(out))
    with subprocess.Popen(
        [ROOT / "run.py", "sweep", "-q", *words],
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        results = out / "results.jsonl"
        while not results.exists() or results.read_bytes().count(b"\n") < 2:
            assert process.poll() is None
            time.sleep(0.01)
        shutil.rmtree(out)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 3
    last = stderr.splitlines()[-1]
    assert str(results) in last and "removed" in last and "Traceback" not in stderr
    assert not out.exists() and not list(scratch.iterdir())


def test_no_hang_up(tmp_path: Path) -> None:
    """Under nohup the sweep, the driver and its tasks go on."""
    out = tmp_path / "out"
    words = (*WORDS[:-1], "2", "--runs", "2", "--out", str(out))
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    mark = f"fdscale-nohup-{uuid.uuid4()}"
    with subprocess.Popen(
        [*ignoring, ROOT / "run.py", "sweep", "-q", *words],
        env=os.environ | {"FDSCALE_TEST": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        hung_up: set[str] = set()
        while len(hung_up) < 3 and process.poll() is None:
            for part, pids in victims(mark, process.pid).items():
                for pid in pids if (out / "results.jsonl").exists() else []:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGHUP)
                        hung_up.add(part)
            time.sleep(0.01)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 3), stderr  # 3: not all in time, on a busy host
    assert "interrupted" not in stderr
    assert hung_up == {"runner", "driver", "task"}
    assert all(not r["error"] for r in load(out) if r["type"] == "run")
