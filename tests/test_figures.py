# SPDX-License-Identifier: GPL-2.0-only
"""Which figures a results folder has, and what is in them."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from figure_files import settings, tables, words
from made_folders import CALM, CELL, run

from bench import figures, looks
from bench.figures import Figure, Place
from bench.figures_cells import MOST_WINDOWS, thinned
from bench.judge import by_cell, groups, judge

HOST = "A CPU, 2 PUs, kernel 6.1 (stock-6.12)"
ANY = {"any-fd": 3e6}
WHY = "does not conform: not the lowest descriptor"
SPEEDS = {"two-level": 1e6, "first-word": 1.1e6, "two-level#clone": 1e6}


def record(
    number: int, cell: dict[str, Any], rates: dict[str, float]
) -> dict[str, Any]:
    """A run as `sweep` records it; the second task does half as much again."""
    row = run({v: r * CALM[number] for v, r in rates.items()}, cell, run=number)
    for i, window in enumerate(row["windows"]):
        window.update(redone=0, skewed=False, switches=int(i == 0))
        window["ops"] = [1000 * (2 + t) for t in range(cell["tasks"])]
    row["setup"]["nonconforming"] = {"any-fd": WHY} if "any-fd" in rates else {}
    return row


def found(
    cells: Sequence[dict[str, Any]], rates: Sequence[dict[str, float]] = ()
) -> dict[str, Figure]:
    """The figures of five runs of each cell."""
    rows = [
        record(n, cell, rates[i] if rates else SPEEDS)
        for n in range(5)
        for i, cell in enumerate(cells)
    ]
    place = Place(HOST, [{"tasks": 2, "what": "all PUs"}])
    return {one.name: one for one in figures.find(judge(rows), by_cell(rows), place)}


def cells(holds: Sequence[str], tasks: Sequence[int], **more: Any) -> list[dict]:
    return [CELL | {"hold": h, "tasks": t} | more for h in holds for t in tasks]


def test_one_place_gives_dots_and_no_curve() -> None:
    names = set(found(cells(["low:64"], [1])))
    assert names == {
        "ratio-dup-close-model-low-64-1-thread-compact",
        "windows-dup-close-model-threads-compact",
    }


def test_one_variant_has_no_ratio_and_a_line_a_hold(tmp_path: Path) -> None:
    speeds = [{"merged-6.13": rate} for rate in (4e6, 3e6, 2e6, 1e6)]
    made = found(cells(["none", "low:64"], [1, 2], backend="kernel"), speeds)
    rate = "rate-dup-close-kernel-threads-compact"
    assert set(made) == {rate, "windows-dup-close-kernel-threads-compact"}
    dat, _, svg = made[rate].draw(tmp_path / "x")
    lines = tables(dat)
    assert [row[0] for row in lines["series"]] == ["hold none", "hold low:64"]
    assert len({tuple(row[1:4]) for row in lines["series"]}) == 2
    drawn = [[float(row[1]) for row in lines[f"series {i}"]] for i in (1, 2)]
    assert drawn == [pytest.approx([4e6, 3e6], 1e-3), pytest.approx([2e6, 1e6], 1e-3)]
    assert any("merged-6.13" in text for text in words(svg))


def test_two_holds_at_one_number_of_tasks_share_a_figure() -> None:
    assert set(found(cells(["none", "low:64"], [2]))) == {
        "ratio-vs-hold-dup-close-model-2-threads-compact",
        "windows-dup-close-model-threads-compact",
    }


def test_a_sweep_draws_the_most_telling_of_those_that_look_into_a_cell() -> None:
    """One a backend and kind; the middle workload has the most unequal windows and
    tasks."""
    rows = []
    for at, workload in enumerate(("dup-close", "open-close", "yuma")):
        for n in range(5):
            row = record(n, CELL | {"workload": workload, "tasks": 4}, SPEEDS)
            row["windows"][0]["rate"] *= (1.0, 1.5, 1.1)[at]
            row["windows"][0]["ops"][3] += (0, 9000, 1000)[at]
            rows.append(row)
    all_ = figures.find(judge(rows), by_cell(rows))
    kept = [f.name for f in figures.telling(all_)]
    assert len(all_) == 3 * 3 and len(kept) == 3 + 2
    assert kept[3:] == [
        "windows-open-close-model-threads-compact",
        "fairness-open-close-model-threads-compact",
    ]


def test_holds_and_tasks_give_curves_and_a_map(tmp_path: Path) -> None:
    made = found(cells(["none", "low:64", "low:1000"], [1, 2, 4]))
    end = "model-threads-compact"
    assert set(made) == {
        f"map-dup-close-{end}",
        f"windows-dup-close-{end}",
        f"fairness-dup-close-{end}",
        "ratio-vs-hold-dup-close-model-1-thread-compact",
        "ratio-vs-hold-dup-close-model-4-threads-compact",
        *(
            f"{kind}-dup-close-model-{hold}-threads-compact"
            for kind in ("rate", "ratio")
            for hold in ("none", "low-64", "low-1000")
        ),
    }
    assert len({one.section for one in made.values()}) == 1
    for name, one in made.items():
        dat, _, svg = one.draw(tmp_path / name)
        shown = words(svg)
        assert HOST in shown
        assert any("dup-close, model" in text for text in shown)
    dat, *_ = made["rate-dup-close-model-none-threads-compact"].draw(tmp_path / "x")
    assert [row[2] for row in tables(dat)["marks"]] == ["all PUs"]


def test_a_curve_is_not_drawn_again_as_dots() -> None:
    made = found(cells(["none", "low:64", "low:1000"], [1]))
    assert set(made) == {
        "ratio-vs-hold-dup-close-model-1-thread-compact",
        "windows-dup-close-model-threads-compact",
    }


def test_two_sizes_of_table_are_told_apart() -> None:
    made = cells(["low:64"], [1, 2]) + cells(["low:64"], [1, 2], table_size=4096)
    names = set(found(made))
    for kind in ("rate", "ratio"):
        for size in (128, 4096):
            name = f"{kind}-dup-close-model-low-64-threads-compact-{size}-slots"
            assert name in names
    rows = [record(n, cell, SPEEDS) for n in range(5) for cell in made]
    assert len(groups(judge(rows))) == 2


CHURN = {
    "workload": "dup2-churn",
    "hold": "none",
    "mode": "processes",
    "tasks": 1,
    "table_size": 0,
}


def churn(turns: int) -> dict[str, Any]:
    return CELL | CHURN | {"options": {"turns": str(turns)}}


def test_the_2015_loop_against_its_turns(tmp_path: Path) -> None:
    """1000 turns in 1 ms and 100,000 in a second; the other takes half of it."""
    speeds: list[dict[str, float]] = [
        {"one-level": 1e6, "two-level": 2e6},
        {"one-level": 1e5, "two-level": 2e5},
    ]
    made = found([churn(1000), churn(100_000)], speeds)
    end = "dup2-churn-model-1-process-compact"
    windows = "windows-dup2-churn-model-processes-compact"
    assert set(made) == {f"churn-{end}", f"churn-ratio-{end}", windows}
    dat, *_ = made[f"churn-{end}"].draw(tmp_path / "churn")
    assert settings(dat)["xlog"] != "0" and settings(dat)["ylog"] != "0"
    assert "logarithmic" in settings(dat)["xlabel"] + settings(dat)["ylabel"]
    rows = [[float(x) for x in row] for row in tables(dat)["series 1"]]
    assert [row[0] for row in rows] == [1000, 100_000]
    assert [row[1] for row in rows] == pytest.approx([1e-3, 1], rel=1e-5)
    assert all(low < y < high for _, y, low, high, _ in rows)
    dat, *_ = made[f"churn-ratio-{end}"].draw(tmp_path / "ratio")
    assert [float(r[1]) for r in tables(dat)["series 1"]] == pytest.approx([2, 2])


def grown(doublings: int, **options: str) -> dict[str, Any]:
    given = {"doublings": str(doublings)} | options
    return CELL | CHURN | {"workload": "growth", "backend": "kernel", "options": given}


def test_the_time_of_each_doubling(tmp_path: Path) -> None:
    """Two processes grow a table each at the rate that both have together."""
    ways = {"none": [2e6, 1e6], "thread": [200.0, 200.0]}
    alike = [grown(d, beside=b) | {"tasks": 2} for b in ways for d in (1, 8)]
    speeds = [{"merged-6.13": rate} for rates in ways.values() for rate in rates]
    made = found(alike, speeds)
    name = "doublings-growth-kernel-2-processes-compact"
    assert [n for n in made if n.startswith("doublings")] == [name]
    dat, *_ = made[name].draw(tmp_path / "x")
    assert [row[0] for row in tables(dat)["series"]] == ["alone", "beside a thread"]
    times = [
        [(float(x), float(y)) for x, y, *_ in tables(dat)[f"series {i}"]]
        for i in (1, 2)
    ]
    assert times[0] == [
        (128, pytest.approx(1e-6, rel=1e-5)),
        (16384, pytest.approx(2e-6, rel=1e-5)),
    ]
    assert [y for _, y in times[1]] == pytest.approx([0.01] * 2, rel=1e-5)


def test_doublings_of_variants() -> None:
    """One way of growing: a line a variant. Several: a figure a variant."""
    one_way = [grown(d) for d in (1, 2, 3)]
    assert "doublings-growth-kernel-1-process-compact" in found(one_way)
    two_ways = [grown(d, pregrown=p) for d in (1, 2) for p in ("no", "yes")]
    names = [n for n in found(two_ways) if n.startswith("doublings")]
    assert names == [
        "doublings-two-level-growth-kernel-1-process-compact",
        "doublings-first-word-growth-kernel-1-process-compact",
    ]
    whole = [grown(d, of="all") for d in (1, 2)]
    assert not [n for n in found(whole) if n.startswith("doublings")]


def test_the_map_says_who_wins_and_where_it_is_not_sure(tmp_path: Path) -> None:
    """Rules kept: first-word by 10% over the next; or all alike."""
    clear = {"two-level": 1e6, "first-word": 1.1e6} | ANY
    alike = {"two-level": 1e6, "first-word": 1e6} | ANY
    made = found(cells(["none", "low:64"], [1, 2]), [clear, alike, clear, clear])
    dat, _, svg = made["map-dup-close-model-threads-compact"].draw(tmp_path / "x")
    names = [row[0] for row in tables(dat)["series"]]
    squares = {
        (int(row[0]), int(row[1])): (names[int(row[2]) - 1], row[3], row[4])
        for row in tables(dat)["cells"]
    }
    assert squares[0, 0] == squares[0, 1] == ("first-word", "1", "+10%")
    assert squares[1, 0][1:] == ("0", "+0.0%")
    said = " ".join(words(svg))
    assert "they do not conform: any-fd." in said
    assert [row[1] for row in tables(dat)["yticks"]] == ["none", "low:64"]


def test_the_map_marks_what_was_disturbed(tmp_path: Path) -> None:
    made = cells(["none", "low:64"], [1, 2])
    rows = [record(n, cell, SPEEDS) for n in range(5) for cell in made]
    for stars in (0, 1):
        one = figures.find(judge(rows), by_cell(rows))[0]
        dat, _, svg = one.draw(tmp_path / "x")
        marked = [row[:2] for row in tables(dat)["cells"] if row[4].endswith(" *")]
        assert marked == [["1", "1"]] * stars
        assert ("disturbed" in " ".join(words(svg))) == bool(stars)
        rows[3]["disturbed"] = ["others worked for 1.00 CPUs"]


def test_tasks_are_sorted_and_windows_in_order(tmp_path: Path) -> None:
    made = found(cells(["none"], [1, 4]))
    dat, *_ = made["fairness-dup-close-model-threads-compact"].draw(tmp_path / "x")
    rows = [[float(x) for x in row] for row in tables(dat)["series 1"]]
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    # 2, 3, 4 and 5 thousand operations in each window of 10 ms
    assert [row[1] for row in rows] == pytest.approx([2e5, 3e5, 4e5, 5e5])
    dat, *_ = made["windows-dup-close-model-threads-compact"].draw(tmp_path / "y")
    found_ = tables(dat)
    assert [row[0] for row in found_["series"]] == ["two-level", "first-word"]
    seconds = [float(row[0]) for row in found_["series 1"]]
    assert len(seconds) == 15 and seconds == sorted(seconds)
    assert [row[2] for row in found_["series 1"]].count("1") == 5
    assert [row[2] for row in found_["marks"]] == [f"run {n}" for n in range(5)]


def test_a_task_that_did_nothing_is_drawn_without_interval() -> None:
    rows = [record(n, CELL, SPEEDS) for n in range(5)]
    for row in rows:
        for window in row["windows"]:
            window["ops"] = [0, 500]
    first, second = figures.figures_cells.task_rates(rows, "two-level")
    assert first == (1, 0.0, None, None)
    assert second[1] == pytest.approx(5e4) and second[2] is not None


def test_many_windows_are_thinned_by_whole_runs() -> None:
    rows = [record(n % 5, CELL, SPEEDS) for n in range(2000)]
    kept = thinned(rows)
    assert MOST_WINDOWS / 2 < sum(len(r["windows"]) for r in kept) / 3 <= MOST_WINDOWS
    assert thinned(rows[:100]) == rows[:100]


def test_what_does_not_conform_says_so_everywhere(tmp_path: Path) -> None:
    made = found(cells(["none"], [1, 2]), [SPEEDS | ANY, SPEEDS | ANY])
    for name, one in made.items():
        dat, _, svg = one.draw(tmp_path / name)
        assert f"any-fd ({WHY})" in words(svg)
        style = [row[1:4] for row in tables(dat)["series"] if "any-fd" in row[0]]
        known = looks.look("any-fd")
        assert style == [[known.colour, str(known.dash), str(known.mark)]]


def test_two_figures_never_have_one_name() -> None:
    options = [{"file": "own"}, {"file": "shared"}]
    made = [
        c | {"workload": "open-close", "options": o, "place": p}
        for o in options
        for p in ("compact", "scatter")
        for c in cells(["none", "low:64", "low:1000"], [1, 2])
    ]
    rows = [record(n, cell, SPEEDS) for n in range(5) for cell in made]
    all_ = figures.find(judge(rows), by_cell(rows))
    assert len({one.name for one in all_}) == len(all_) == 4 * (6 + 1 + 2 + 1)
