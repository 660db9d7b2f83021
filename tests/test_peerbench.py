# SPDX-License-Identifier: GPL-2.0-only
"""What `make bench PEER=DIR` says of a cell, from runs made up by hand."""

import time
from pathlib import Path
from typing import Any

import pytest

from bench import peerbench
from bench.peerbench import Round, ended, row, theirs


def windows(rate: float, *, last: float | None = None) -> list[dict[str, Any]]:
    """Two blocks of both sides; the last window as told."""
    rates = [rate, rate, rate, rate if last is None else last]
    names = ["v", "v#clone"] * 2
    return [
        {"block": i // 2, "variant": name, "rate": rate}
        for i, (name, rate) in enumerate(zip(names, rates))
    ]


GOOD: list[Round] = [(windows(200 + i), "", [100 + i], "") for i in range(6)]


def test_all_runs_count() -> None:
    """No line but the row; ours tells its two equal sides from 1.2%."""
    text = row(GOOD, "v")
    assert text.startswith("1.9") and text.count("%") == 2 and "\n" not in text
    assert "\u00b10.0% yes" in text


def test_runs_without_a_number_are_left_out_and_named() -> None:
    """A window without an operation on either side, no sample, a failed driver."""
    bad: list[Round] = [
        (windows(9e9, last=0), "", [100], ""),
        (windows(9e9, last=0), "", [100], ""),
        (windows(9e9), "", [], "theirs gave no number"),
        (windows(9e9), "", [], "theirs gave no number"),
        ([], "dup-close: EMFILE", [100], ""),
    ]
    first, *rest = row(GOOD + bad, "v").splitlines()
    assert first == row(GOOD, "v")
    assert rest == [
        "    2 of 11 runs left out: ours had a window without an operation",
        "    2 of 11 runs left out: theirs gave no number",
        "    1 of 11 runs left out: ours: dup-close: EMFILE",
    ]


def test_what_is_left_may_be_too_little() -> None:
    """Said, in place of an interval that is none."""
    assert "too few runs" in row(GOOD[:5], "v") and "nan" not in row(GOOD[:5], "v")
    assert row(GOOD[:1], "v") == "no ratio"
    nothing: list[Round] = [([], "dup-close: EMFILE", [], "theirs gave no number")] * 6
    assert row(nothing, "v").splitlines() == [
        "no ratio",
        "    6 of 6 runs left out: theirs gave no number",
    ]


@pytest.mark.parametrize(
    "script, said",
    [
        ("echo total:7; echo total:9", ""),
        ("echo total:7", "theirs gave no number"),
        ("echo total:7; echo total:0", "theirs gave no number"),
        ("echo a >&2; echo b >&2; exit 3", "theirs gave no number: b"),
        ("exit 3", "theirs gave no number: exit status 3"),
        ("kill -ABRT $$", "theirs gave no number: killed by SIGABRT"),
    ],
)
def test_why_theirs_gave_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    """The reason stands beside it."""
    program = tmp_path / "mine_threads"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(peerbench, "PEER", tmp_path)
    assert theirs("mine", "threads", 2, 1) == ([] if said else [9], said)


def test_a_program_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    """It is killed, with the tasks that it started, and that is said."""
    path = tmp_path / "task"
    script = f"sleep 300 & echo $! > {path}; echo total:1; wait"
    assert ended(["sh", "-c", script], 0.5) == (
        *("", "had not ended after 0.5 s: killed"),
    )
    state = Path(f"/proc/{path.read_text().strip()}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("its task is still there")
