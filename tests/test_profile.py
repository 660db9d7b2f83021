# SPDX-License-Identifier: GPL-2.0-only
"""sweep --profile: samples inside windows, by class; a reason where there are none."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import drive, profile, store, summary
from bench.judge import CellResult, Judged
from bench.plan import Cell, Plan
from bench.stats import Fairness, Interval

CELL = Cell("dup-close", "kernel", "none", "compact", "threads", 1)
HOST = {"machine": "a machine", "kernel": "6.18"}
UP = profile.KERNEL


def window(variant: str, start: int, ns: int) -> dict[str, Any]:
    return {"variant": variant, "from_ns": start, "ns": ns}


@pytest.mark.parametrize(
    "symbol, name",
    [
        ("native_queued_spin_lock_slowpath", "lock"),
        ("_raw_spin_lock", "lock"),
        ("queued_wait", "lock"),
        ("_find_next_zero_bit", "search"),
        ("next_zero", "search"),
        ("alloc_fd", "table"),
        ("alloc_two_level_3_queued_clone", "table"),
        ("file_close_fd_locked", "table"),
        ("do_syscall_64", "rest"),
        ("[unknown]", "rest"),
    ],
)
def test_what_a_symbol_counts_as(symbol: str, name: str) -> None:
    """config/profile.toml, in the words of kernels and of the model."""
    assert profile.class_of(symbol, profile.classes()) == name


def test_lines_of_perf_script() -> None:
    """Offsets behind a symbol, other lines, and fractions that begin with 0."""
    text = (
        " 1240.041768965:  ffffffff8144ab10 alloc_fd+0x10\n"
        "\n# a comment\n"
        " 7.000000001:            7f01aa07bd [unknown]\n"
    )
    assert profile.samples(text) == [
        (1240_041768965, 0xFFFFFFFF8144AB10, "alloc_fd"),
        (7_000000001, 0x7F01AA07BD, "[unknown]"),
    ]


def test_only_windows_count_and_for_their_variant() -> None:
    """200 samples in a's window, 100 in b's, as many between them and around."""
    windows = [window("b", 3000, 1000), window("a", 1000, 1000)]
    taken = [(1000 + 5 * i, UP, "alloc_fd") for i in range(150)]
    taken += [(1900 + i, UP, "_raw_spin_lock") for i in range(50)]
    taken += [(3000 + i, UP, "_find_next_zero_bit") for i in range(100)]
    taken += [(t, UP, "_raw_spin_lock") for t in (0, 999, 2000, 2999, 4000) * 20]
    found = profile.shares(taken, windows)
    assert found["a"].samples == 200 and found["b"].samples == 100
    assert found["a"].shares == {"lock": 0.25, "search": 0, "table": 0.75, "rest": 0}
    assert found["b"].shares["search"] == 1
    assert str(found["a"]) == "25/0/75/0%"
    few = profile.shares(taken[:99], windows)
    assert not few


def test_what_perf_cannot_see() -> None:
    """Shares of half the samples would be none of the cell."""
    outside = [(1, 0x7F0000000000, "__dup")] * 200
    assert "perf_event_paranoid" in profile.obstacle(CELL, outside)
    hidden = [(1, UP, "[unknown]")] * 50
    assert "kptr_restrict" in profile.obstacle(CELL, outside + hidden)
    assert profile.obstacle(CELL, [(1, UP, "alloc_fd")] * 200) == ""
    assert "no sample" in profile.obstacle(CELL, [])


def told(monkeypatch: pytest.MonkeyPatch, path: Path) -> dict[str, Any]:
    monkeypatch.setenv("PATH", str(path))
    found = profile.run_profile(CELL, ["merged-6.13"], Plan(), 1)
    assert store.Checker().wrong(found) is None
    return found


def test_without_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Null, the reason, the remedy; the sweep goes on."""
    found = told(monkeypatch, tmp_path)
    assert found["variants"] == {"merged-6.13": None}
    assert found["why"] == "perf is not installed: sudo apt install linux-perf"


def test_perf_that_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In perf's own words."""
    fake = tmp_path / "perf"
    fake.write_text("#!/bin/sh\necho 'Error:\nNo permission' >&2\nexit 255\n")
    fake.chmod(0o755)
    why = told(monkeypatch, tmp_path)["why"]
    assert why == "perf record: Error: No permission"


def test_the_summary_tells_both() -> None:
    """A row of shares, or one note."""
    shares = {"lock": 0.5, "search": 0.1, "table": 0.15, "rest": 0.25}
    result = CellResult(CELL, "v", 1, 1.0, 64, None)
    result.profiles = {"v": profile.Profile(1000, shares)}
    rate = Interval(1e6, 9e5, 1.1e6, 5)
    fair = Fairness(1, 1, 0, 1, False)
    judged = Judged(rate, None, None, fair, 1, 0, 0, 0, False, [])
    result.variants = {"v": judged}
    line = next(r for r in summary.rows(result, ["v"]) if r.startswith("  time"))
    assert line.split() == ["time", "50/10/15/25%"]
    result.not_profiled = "perf is not installed"
    assert "Not profiled: perf is not installed" in summary.notes([result], 1)[-1]


def test_perf_itself() -> None:
    """On this host it records, or says why not: nothing between."""
    done = subprocess.run(["perf", "--version"], capture_output=True, check=False)
    assert done.returncode == 0, "perf is missing: make setup"
    found = profile.run_profile(CELL, [running()], Plan(), 1)
    assert store.Checker().wrong(found) is None
    one = found["variants"][running()]
    assert bool(one) != bool(found["why"])
    if one:
        assert sum(one["shares"].values()) == pytest.approx(1)


def running() -> str:
    """The kernel's preset."""
    return str(drive.ask("list")["kernel"])
