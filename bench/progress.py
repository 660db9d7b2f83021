# SPDX-License-Identifier: GPL-2.0-only
"""Progress on stderr: one line that updates on a terminal, plain lines else."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time

PLAIN_EVERY = 10.0  # seconds between lines when stderr is not a terminal


def duration(seconds: float) -> str:
    """1:05, or 2:03:04."""
    minutes, s = divmod(max(0, round(seconds)), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


class Progress:
    """What is measured now, what is done, what is left."""

    def __init__(self, total: int, quiet: bool, verbose: bool = False) -> None:
        self.total = total
        self.quiet = quiet
        self.verbose = verbose
        dumb = os.environ.get("TERM", "dumb") == "dumb"  # it has no way back
        self.terminal = sys.stderr.isatty() and not dumb
        self.begun = time.monotonic()
        self.said = self.begun

    def show(self, done: int, what: str, left: float) -> None:
        """@left: seconds."""
        if self.quiet:
            return
        now = time.monotonic()
        line = f"{done}/{self.total} runs, {duration(left)} left: {what}"
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            if len(line) > width:  # without its last words, where some of it is left
                whole = line[: width + 1].rpartition(", ")[0]
                line = whole if ": " in whole else line[:width]
            self.draw(line)
        elif self.verbose or now - self.said >= PLAIN_EVERY:
            self.said = now
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """The line makes way for what follows."""
        if self.terminal and not self.quiet:
            self.draw("")

    @staticmethod
    def draw(line: str) -> None:
        """In the place of the last one; a terminal that was closed is no failure."""
        with contextlib.suppress(OSError):
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
