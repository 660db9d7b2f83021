# SPDX-License-Identifier: GPL-2.0-only
"""Settings of the host changed for a while, and put back whatever happens.

A keeper process changes them and puts them back when its standard input ends:
at the end of the with block, or because whoever started it was killed. It
writes the old values to a file first, so that the next run can put them back
if the keeper was killed too. A child that is forked from the user of fixed()
without an exec keeps the pipe open, and so the settings: use subprocess.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.check import Setting
from bench.problem import COULD_NOT, Problem
from bench.root import Root, chosen

# Gone after a reboot, as the settings are.
UNDO = "/run/fdscale-undo.json"
BUSY, NO_UNDO = 3, 4
WAIT = 3.0  # seconds for the keeper of a run just killed to finish
REPO = Path(__file__).resolve().parent.parent


def _lock(root: Root) -> int | None:
    """The undo file, open and ours alone; None while another run has it."""
    path = root.path(UNDO)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Removed between open and lock: the lock is on a file without a name.
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except FileNotFoundError:
            pass
        os.close(fd)


def _write(root: Root, path: str, value: str) -> bool:
    """Write one setting and see whether it holds."""
    try:
        # Not created when missing: only a kernel's file takes a setting.
        fd = os.open(root.path(path), os.O_WRONLY | os.O_TRUNC)
        with open(fd, "w", encoding="ascii") as file:
            file.write(value + "\n")
    except OSError:
        return False
    return chosen(root.read(path)) == value


def _record(root: Root, fd: int, settings: list[Setting]) -> None:
    """Write down, and onto the disk, what the settings are now."""
    old = [
        {**asdict(one), "old": value}
        for one in settings
        if (value := chosen(root.read(one.path))) is not None
    ]
    boot = root.read("/proc/sys/kernel/random/boot_id")
    os.write(fd, json.dumps({"boot_id": boot, "settings": old}).encode())
    os.fsync(fd)


def _restore(root: Root, fd: int) -> list[str]:
    """Put back what the locked undo file says, then remove it. What was done."""
    text = os.pread(fd, 1 << 20, 0)
    try:
        undo: dict[str, Any] = json.loads(text)
    except ValueError:
        undo = {"settings": []}  # torn: killed before anything was changed
    done = []
    if undo.get("boot_id") == root.read("/proc/sys/kernel/random/boot_id"):
        for one in undo["settings"]:
            now = chosen(root.read(one["path"]))
            if now == one["old"]:
                continue
            if now != one["wanted"]:
                done.append(f"{one['path']}: left at {now}: changed by somebody else")
            elif _write(root, one["path"], one["old"]):
                done.append(f"{one['path']}: back to {one['old']}")
            else:
                done.append(f"{one['path']}: could not be put back to {one['old']}")
    os.unlink(root.path(UNDO))
    os.close(fd)
    return done


def held(root: Root) -> list[dict[str, str]]:
    """The settings that a --fix holds now: path, wanted, old."""
    try:
        undo = json.loads(root.read(UNDO) or "")
    except ValueError:
        return []
    if undo["boot_id"] != root.read("/proc/sys/kernel/random/boot_id"):
        return []
    found: list[dict[str, str]] = undo["settings"]
    return found


def restore_stale(root: Root) -> list[str]:
    """Put back what a killed run left behind; what was done, a line each."""
    if not root.exists(UNDO):
        return []
    try:
        fd = _lock(root)
    except OSError:
        return [f"{UNDO}: another user's; if that run is over: sudo ./run.py doctor"]
    return [] if fd is None else _restore(root, fd)


def _keep(root: Root) -> int:
    """The keeper: settings on the first line of stdin, restored when it ends.

    Its status when nothing was changed: BUSY or NO_UNDO.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    settings = [Setting(**one) for one in json.loads(sys.stdin.readline())]
    end = time.monotonic() + WAIT
    stale: list[str] = []
    try:
        while (fd := _lock(root)) is None or os.fstat(fd).st_size:
            if fd is not None:
                stale = _restore(root, fd)
            elif time.monotonic() > end:
                return BUSY
            else:
                time.sleep(0.05)
    except OSError:
        return NO_UNDO
    _record(root, fd, settings)
    failed = [one.path for one in settings if not _write(root, one.path, one.wanted)]
    with contextlib.suppress(OSError):
        print(json.dumps({"stale": stale, "failed": failed}), flush=True)
    sys.stdin.read()
    done = _restore(root, fd)
    with contextlib.suppress(OSError):
        print(json.dumps({"done": done}), flush=True)
    return 0


@contextlib.contextmanager
def fixed(
    root: Root, settings: list[Setting], say: Callable[[str], None]
) -> Iterator[None]:
    """Hold SETTINGS for the length of the with block; SAY is told each step."""
    if not settings:
        say("nothing to fix")
        yield
        return
    for one in settings:
        say(f"{one.path}: {chosen(root.read(one.path))} to {one.wanted}, for now")
    keeper = subprocess.Popen(
        [sys.executable, "-m", "bench.fix", str(root.prefix.resolve())],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # out of reach of Ctrl-C and of a closed terminal
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    try:
        try:
            keeper.stdin.write(json.dumps([asdict(one) for one in settings]) + "\n")
            keeper.stdin.flush()
        except BrokenPipeError:
            pass
        answer = keeper.stdout.readline()
        if not answer:
            if keeper.wait() == BUSY:
                raise Problem(COULD_NOT, "--fix: another run holds it: let that end")
            raise Problem(COULD_NOT, f"--fix: cannot write {UNDO}: run it as root")
        began = json.loads(answer)
        for line in began["stale"]:
            say(f"left by a run that was killed: {line}")
        for path in began["failed"]:
            say(f"{path}: could not be changed (needs root?)")
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            keeper.stdin.close()
        last = keeper.stdout.readline()
        keeper.stdout.close()
        keeper.wait()
        done = json.loads(last)["done"] if last else restore_stale(root)
        for line in done:
            say(line)


if __name__ == "__main__":
    sys.exit(_keep(Root(Path(sys.argv[1]))))
