# SPDX-License-Identifier: GPL-2.0-only
"""`./run.py doctor`: is this host fit to measure on, and what to do about it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.text import Text

from bench import checks_cpu, checks_kernel, checks_limits
from bench.check import FATAL, OK, UNKNOWN, WARN, AnyCheck, Check, Needs, Setting
from bench.fix import fixed, held, restore_stale
from bench.host import read_host
from bench.plan import Cell, hold_end
from bench.problem import COULD_NOT, DONE, INTERRUPTED, USAGE, Problem
from bench.root import Root

CHECKS: list[AnyCheck] = [
    *checks_cpu.CHECKS,
    *checks_kernel.CHECKS,
    *checks_limits.CHECKS,
]
COLOURS = {OK: "green", WARN: "yellow", FATAL: "bold red", UNKNOWN: "dim"}
WIDTH = 80
HIDDEN = "not shown by this host"


def run_checks(root: Root, needs: Needs) -> list[Check]:
    """Every check, in the order in which they are shown."""
    return [check.run(root, needs) for check in CHECKS]


def as_json(checks: list[Check]) -> dict[str, Any]:
    """The shape of design.md: {"checks": [{"name", "state", "value", "remedy"}]}."""
    return {"checks": [asdict(check) for check in checks]}


def needs_of(cells: Iterable[Cell], top: int) -> Needs:
    """What these cells ask of the host; top is the plan's --hold-top.

    By the driver's own rule (size.c), roughly: it refuses by itself what is short.
    """
    tasks = nofile = files = 0
    for cell in cells:
        tables = cell.tasks if cell.mode == "processes" else 1
        tasks = max(tasks, cell.tasks)
        if cell.backend == "kernel":
            each = hold_end(cell.hold, top) + 3 * cell.tasks // tables + 64
            nofile, files = max(nofile, each), max(files, each * tables)
    return Needs(tasks, nofile, files, tmpdir=Path(tempfile.gettempdir()))


def findings(root: Root, needs: Needs) -> dict[str, Any]:
    """What host.json holds of the doctor's: the checks, and what --fix holds."""
    return {**as_json(run_checks(root, needs)), "fixed": held(root)}


def record(
    root: Root, needs: Needs, preset: str = "unknown", driver: str | None = None
) -> dict[str, Any]:
    """host.json: the host, and what the doctor finds."""
    return {**read_host(root.prefix, preset, driver), **findings(root, needs)}


def taints(host: Mapping[str, Any]) -> str:
    """What a reader of the results is to know of the host: host.json, in a line."""
    bad = [c for c in host.get("checks") or [] if c["state"] in (WARN, FATAL)]
    told = [f"{c['name']}: {c['value']}" for c in bad]
    text = f"The doctor warns of {'; '.join(told)}." if told else ""
    for one in host.get("fixed") or []:
        text += f" Held by --fix: {one['path']} at {one['wanted']}, was {one['old']}."
    return text.strip()


def wanted(root: Root, needs: Needs) -> list[Setting]:
    """What --fix would write: the reversible remedies of what is at warn."""
    return [
        setting
        for check in CHECKS
        if check.run(root, needs).state == WARN
        for setting in check.settings(root)
    ]


def show(checks: list[Check], out: TextIO) -> None:
    """The checks in 80 columns; in colour on a terminal without NO_COLOR."""
    # rich would leave bold and dim to who asks for no colour.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=out, width=WIDTH, highlight=False, color_system=colours)
    longest = max(len(check.name) for check in checks)
    for check in checks:
        line = Text(f"{check.state:8}", COLOURS[check.state])
        line.append(f"{check.name:{longest}}  {check.value or HIDDEN}", "none")
        lines = line.wrap(console, WIDTH)
        if check.remedy is not None:
            lines.extend(Text(f"  {check.remedy}").wrap(console, WIDTH))
        for part in lines:
            part.rstrip()
            console.print(part, soft_wrap=True)
    counts = {state: sum(c.state == state for c in checks) for state in COLOURS}
    console.print(", ".join(f"{count} {state}" for state, count in counts.items()))


@contextlib.contextmanager
def fixing(root: Root, needs: Needs) -> Iterator[None]:
    """What --fix does, for the length of the with block; told on stderr."""

    def say(line: str) -> None:
        print(f"fix: {line}", file=sys.stderr, flush=True)

    for line in restore_stale(root):
        say(f"left by a run that was killed: {line}")
    with fixed(root, wanted(root, needs), say):
        yield


def _while_fixed(command: tuple[str, ...]) -> int:
    """Run COMMAND to its end; without one, wait for Enter or the end of stdin."""
    if not command:
        if sys.stdin.isatty():
            print("fix: held until you press Enter", file=sys.stderr, flush=True)
        sys.stdin.readline()
        return DONE
    try:
        status = subprocess.run(command).returncode
    except OSError as error:
        raise Problem(USAGE, f"{command[0]}: {error.strerror}") from error
    return status if status >= 0 else 128 - status  # as a shell tells of a signal


def doctor(
    as_lines: bool = False,
    fix: bool = False,
    needs: Needs = Needs(),
    command: tuple[str, ...] = (),
    root: Root = Root(),
) -> int:
    """Print the checks, as JSON or for people; the exit status.

    With FIX, what is reversible is changed first and put back when COMMAND ends,
    or, without one, when standard input does.
    """
    for line in restore_stale(root):
        print(f"left by a run that was killed: {line}", file=sys.stderr)
    try:
        with fixing(root, needs) if fix else contextlib.nullcontext():
            checks = run_checks(root, needs)
            if as_lines:
                print(json.dumps(as_json(checks)), flush=True)
            else:
                show(checks, sys.stdout)
                sys.stdout.flush()
            if fix:
                status = _while_fixed(command)
                if command:
                    return status
    except KeyboardInterrupt:
        return INTERRUPTED
    return COULD_NOT if any(check.state == FATAL for check in checks) else DONE
