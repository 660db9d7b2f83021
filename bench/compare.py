# SPDX-License-Identifier: GPL-2.0-only
"""Results against results, written down, with the exit status of a gate."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.compare_format import FORMATS
from bench.compare_rows import Folder, Threshold, gate, make_report, read_folder
from bench.problem import DONE, USAGE, Problem


def compare(
    folders: Sequence[str],
    baseline: str | None = None,
    fmt: str = "text",
    fail_if_slower: float | None = None,
    threshold: Threshold = lambda cell, runs: None,
    load: Callable[[str], Folder] = read_folder,
) -> tuple[str, int]:
    """What `./run.py compare` prints, and its exit status.

    fmt is a key of FORMATS; fail_if_slower is a fraction (0.01 is 1%).
    """
    write = FORMATS.get(fmt)
    if write is None:
        have = ", ".join(FORMATS)
        raise Problem(USAGE, f"format {fmt}: unknown; one of {have}")
    loaded = [load(path) for path in folders]
    try:
        report = make_report(loaded, baseline, threshold)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        names = ", ".join(folder.name for folder in loaded)
        text = f"{names}: a row of results.jsonl is damaged: {error!r}; remove it"
        raise Problem(USAGE, text) from error
    return write(report), DONE if fail_if_slower is None else gate(
        report, fail_if_slower
    )
