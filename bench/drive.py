# SPDX-License-Identifier: GPL-2.0-only
"""Run build/fdscale: one call is one run of one cell."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import neighbours
from bench.disturbance import disturbed, snapshot
from bench.plan import Cell, Plan
from bench.problem import ANSWER_NO, COULD_NOT, INTERRUPTED, USAGE, Problem
from bench.root import Root
from bench.scratch import Scratch

DRIVER = Path(__file__).resolve().parent.parent / "build" / "fdscale"
GRACE = 5.0  # seconds that a driver told to stop has to clean up
# Seconds until a driver counts as hung, over those that its run was planned for: a
# window may be done again eight times, and other hosts are slower than estimate.py's.
LATE = 60.0
LATE_TIMES = 10.0


def driver_path() -> Path:
    """$FDSCALE_DRIVER or build/fdscale; raises Problem(COULD_NOT)."""
    path = Path(os.environ.get("FDSCALE_DRIVER", DRIVER))
    if not os.access(path, os.X_OK):
        raise Problem(COULD_NOT, f"{path} is not built: run make")
    return path


def build_id() -> str:
    """What tells one build of the driver from another."""
    return hashlib.sha256(driver_path().read_bytes()).hexdigest()[:16]


def spoken(
    command_line: Sequence[str | Path], told: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """A driver that measures nothing, told so much on stdin, and what it said."""
    return subprocess.run(
        command_line,
        input=told,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def ask(*words: str) -> dict[str, Any]:
    """The JSON object that a command of the driver prints.

    Raises Problem with the driver's own words and status.
    """
    done = spoken([driver_path(), *words, "--json"])
    if done.returncode:
        text = done.stderr.strip().removeprefix("fdscale: ")
        if "cannot open shared object" in text:
            library = text.split(": ")[2] if text.count(": ") > 1 else text
            raise Problem(COULD_NOT, f"{library} is missing: run make setup")
        raise Problem(done.returncode if done.returncode > 0 else COULD_NOT, text)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def answers(*words: str) -> dict[str, Any]:
    """As ask(), of a command whose answer may be no."""
    done = spoken([driver_path(), *words, "--json"])
    if done.returncode > ANSWER_NO or not done.stdout:
        text = done.stderr.strip().removeprefix("fdscale: ")
        raise Problem(COULD_NOT, text or f"{words[0]}: the driver said nothing")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return result


def command(cell: Cell, variants: list[str], plan: Plan, seed: int) -> list[str]:
    """The driver's command line for a run, as it can be typed by hand."""
    words = [
        *("run", *plan.words_for(cell), "--backend", cell.backend),
        *("--variant", ",".join(variants), "--hold", cell.hold),
        *("--place", cell.place, "--mode", cell.mode, "--tasks", str(cell.tasks)),
        *("--window-ms", str(plan.window_ms), "--seed", str(seed)),
    ]
    if cell.table_size:
        words += ["--table-size", str(cell.table_size)]
    if cell.backend == "model" and plan.lock != "queued":
        words += ["--lock", plan.lock]
    if cell.hold_top:
        words += ["--hold-top", str(cell.hold_top)]
    if plan.core_kind:
        words += ["--core-kind", plan.core_kind]
    if plan.table_node >= 0:
        words += ["--table-node", str(plan.table_node)]
    if plan.oversubscribe:
        words.append("--oversubscribe")
    for key, value in cell.options:
        words += [f"--{key}", value]
    return words


class Held:
    """Signals that end the runner, kept until it can be ended."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        handlers = {n: signal.getsignal(n) for n in ending}
        self.old = {n: handler for n, handler in handlers.items() if callable(handler)}
        for number in self.old:
            signal.signal(number, lambda number, frame: self.caught.append(number))

    def release(self) -> None:
        """The first of them acts now."""
        for number, handler in self.old.items():
            signal.signal(number, handler)
        if self.caught:
            signal.raise_signal(self.caught.pop())


class Driver:
    """The driver's process, its temporary folder, and their end.  Until finish(),
    which must be called, no signal ends the runner: none of them is left behind."""

    def __init__(
        self,
        words: list[str],
        under: Sequence[str] = (),
        program: Path | None = None,
    ) -> None:
        self.hung = False
        program = program or driver_path()
        self.held = Held()
        try:
            self.scratch = Scratch()
            try:
                self.process = self.start([*under, str(program), *words])
            except BaseException:
                self.scratch.drop()
                raise
        except BaseException:
            self.held.release()
            raise

    def start(self, words: list[str]) -> "subprocess.Popen[str]":
        """A group of its own: the terminal's Ctrl-C reaches the runner only, which
        then stops the driver in its own time."""
        return subprocess.Popen(
            [*words, "--json", "--tmpdir", str(self.scratch.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )

    def finish(self, limit: float | None = None) -> tuple[str, str]:
        """All it printed within so many seconds; the driver is gone afterwards,
        whatever happens."""
        try:
            self.held.release()
            return self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.hung = True
        finally:
            self.stop()
        return self.process.communicate()

    def stop(self) -> None:
        """Ask, wait, insist; then drop the folder."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(GRACE)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.scratch.drop()


def check(
    commands: list[list[str]], program: Path | None = None
) -> list[dict[str, Any]]:
    """What the driver would say to each command line: {"ok": true}, or its refusal.

    One process, which measures nothing; it obeys HWLOC_XMLFILE, HWLOC_SYNTHETIC.
    """
    program = program or driver_path()
    lines = "".join(json.dumps(words[1:]) + "\n" for words in commands)
    done = spoken([program, "run", "--dry-run"], lines)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(commands):
        text = done.stderr.strip().removeprefix("fdscale: ") or "ended early"
        if done.returncode < 0:
            text = f"killed by {signal.Signals(-done.returncode).name}"
        raise Problem(COULD_NOT, f"{program} run --dry-run: {text}")
    return answers


def read_events(stdout: str) -> list[dict[str, Any]]:
    """The driver's lines; what it was writing when it died is left out."""
    events = []
    for line in stdout.splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return events


def failure(events: list[dict[str, Any]], stderr: str, status: int) -> dict[str, Any]:
    """What went wrong, for the record."""
    lines = [
        line.removeprefix("fdscale: ")
        for line in stderr.strip().splitlines()
        if not line.startswith("fdscale: memory not bound")
    ]
    text = lines[-1] if lines else f"the driver ended with status {status}"
    for event in events:
        if event["event"] == "error":
            return {k: event[k] for k in ("syscall", "errno", "remedy")} | {
                "killed": False,
                "status": COULD_NOT,
                "text": text,
            }
    if status < 0:
        text = f"the driver was killed by {signal.Signals(-status).name}"
    return {
        "syscall": None,
        "errno": None,
        "remedy": None,
        "killed": status < 0,
        "status": status if status > 0 else COULD_NOT,
        "text": text,
    }


def idle(windows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """A window in which nothing was done has no rate to compare."""
    if all(w["rate"] > 0 for w in windows):
        return None
    text = (
        "a window without an operation: the CPUs are busy with other work; stop it, "
        "or take longer windows (--window-ms)"
    )
    return {
        "syscall": None,
        "errno": None,
        "remedy": "stop what else runs, or --window-ms more",
        "killed": False,
        "status": COULD_NOT,
        "text": text,
    }


def hang(planned: float, limit: float) -> dict[str, Any]:
    """A driver that did not come back has no number, and no second try."""
    text = (
        f"the driver had not ended after {limit:.0f} s, planned were {planned:.1f} s: "
        "killed; the host is stopped or far too busy, or the workload hangs"
    )
    return {
        "syscall": None,
        "errno": None,
        "remedy": "run its command line by hand, see where it waits",
        "killed": True,
        "hung": True,
        "status": COULD_NOT,
        "text": text,
    }


def run_cell(
    cell: Cell,
    variants: list[str],
    plan: Plan,
    run: int,
    blocks: int,
    seed: int,
    inject: float = 0.0,
    under: Sequence[str] = (),
    program: Path | None = None,
    planned: float | None = None,
) -> dict[str, Any]:
    """One run: the record that results.jsonl keeps.

    inject is a cost added to the clones among the variants, as a fraction; under is
    a program with its words that runs the driver; program is the driver, of a user's
    own file; planned the seconds that the run should take, None where nobody knows.

    A driver that fails gives a record with `error` and no windows: no number
    comes from a broken run.  Ctrl-C passes through, with the driver stopped.
    """
    words = command(cell, variants, plan, seed)
    if blocks:
        words += ["--windows", str(blocks)]
    if inject:
        words += ["--inject", f"{100 * inject:.6g}%"]
    neighbours.announce()
    begun = time.time()
    start = time.monotonic()
    before = snapshot(Root())
    driver = Driver(words, under, program)
    limit = None if planned is None else LATE + LATE_TIMES * planned
    stdout, stderr = driver.finish(limit)
    after = snapshot(Root())
    status = driver.process.returncode
    events = read_events(stdout)
    if status == INTERRUPTED and not driver.hung:
        raise KeyboardInterrupt
    setup = [e for e in events if e["event"] == "setup"]
    windows = [e for e in events if e["event"] == "window"]
    error = failure(events, stderr, status) if status else idle(windows)
    if driver.hung and planned is not None and limit is not None:
        error = hang(planned, limit)
    end = [e for e in events if e["event"] == "end"]
    return {
        "schema": 1,
        "type": "run",
        "time": begun,
        "run": run,
        "cell": cell.as_dict(),
        "variants": variants,
        "command": words,
        "setup": setup[0] if setup else None,
        "windows": [] if error else windows,
        "error": error,
        "recorded_ns": end[0]["recorded_ns"] if end and not error else 0,
        "disturbed": disturbed(before, after),
        "around": [asdict(before), asdict(after)],
        "seconds": time.monotonic() - start,
    }


def is_hopeless(record: dict[str, Any]) -> bool:
    """Refused before it started, or hung: more runs would say the same."""
    error = record["error"]
    if error and error.get("hung"):
        return True
    if not error or record["setup"] is not None:
        return False
    return error["status"] in (USAGE, COULD_NOT) and not error.get("killed")


def show(*words: str) -> int:
    """Let the driver print for itself; its exit status."""
    return subprocess.run([driver_path(), *words], check=False).returncode
