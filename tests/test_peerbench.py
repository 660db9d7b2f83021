# SPDX-License-Identifier: GPL-2.0-only
"""What `make bench PEER=DIR` says of a cell, from runs made up by hand."""

from typing import Any

from bench.peerbench import Round, row


def windows(rate: float, *, last: float | None = None) -> list[dict[str, Any]]:
    """Two blocks of both sides; the last window as told."""
    rates = [rate, rate, rate, rate if last is None else last]
    names = ["v", "v#clone"] * 2
    return [
        {"block": i // 2, "variant": name, "rate": rate}
        for i, (name, rate) in enumerate(zip(names, rates))
    ]


GOOD: list[Round] = [(windows(200 + i), "", [100 + i]) for i in range(6)]


def test_all_runs_count() -> None:
    """No line but the row; ours tells its two equal sides from 1.2%."""
    text = row(GOOD, "v")
    assert text.startswith("1.9") and text.count("%") == 2 and "\n" not in text
    assert "\u00b10.0% yes" in text


def test_runs_without_a_number_are_left_out_and_named() -> None:
    """A window without an operation on either side, no sample, a failed driver."""
    bad: list[Round] = [
        (windows(9e9, last=0), "", [100]),
        (windows(9e9, last=0), "", [100]),
        (windows(9e9), "", []),
        (windows(9e9), "", [0]),
        ([], "dup-close: EMFILE", [100]),
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
    nothing: list[Round] = [([], "dup-close: EMFILE", [])] * 6
    assert row(nothing, "v").splitlines() == [
        "no ratio",
        "    6 of 6 runs left out: theirs gave no number",
    ]
