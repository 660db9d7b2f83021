# SPDX-License-Identifier: GPL-2.0-only
"""Progress: a line that updates where a terminal can, plain lines elsewhere."""

import io
import sys

import pytest

from bench import progress
from bench.progress import Progress


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


def said(monkeypatch: pytest.MonkeyPatch, out: io.StringIO, term: str) -> str:
    """What two runs write, when plain lines need not wait."""
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(progress, "PLAIN_EVERY", 0.0)
    monkeypatch.setenv("TERM", term)
    shown = Progress(2, quiet=False)
    for done in (0, 1):
        shown.show(done, "a cell", 2.0 - done)
    shown.clear()
    return out.getvalue()


PLAIN = "0/2 runs, 0:02 left: a cell\n1/2 runs, 0:01 left: a cell\n"


def test_a_terminal_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(monkeypatch, Terminal(), "xterm")
    assert text.endswith("\r\033[K") and "\n" not in text


def test_a_pipe_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, io.StringIO(), "xterm") == PLAIN


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, Terminal(), "dumb") == PLAIN


WHOLE = "1/2 runs, 0:02 left: dup-close, model, hold low:64, 1 thread"


@pytest.mark.parametrize(
    "width, shown",
    [
        (80, WHOLE),
        (61, WHOLE),
        (60, WHOLE.removesuffix(", 1 thread")),
        (45, "1/2 runs, 0:02 left: dup-close, model"),
        (25, WHOLE[:24]),
    ],
)
def test_a_narrow_terminal_gets_whole_words(
    width: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", f"{width}")
    Progress(2, quiet=False).show(1, WHOLE.split(": ", 1)[1], 2.0)
    assert out.getvalue() == f"\r\033[K{shown}"
