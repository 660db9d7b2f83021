# SPDX-License-Identifier: GPL-2.0-only
"""How figures look: names told apart, labels and ticks that do not touch."""

import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import looks

SINGLE = [f"{base}+{switch}" for base in looks.KNOWN for switch in looks.SWITCHES]
NUMBERS = st.floats(-1e6, 1e6)


def test_known_names_differ_in_black_and_white() -> None:
    pairs = {(one.dash, one.mark) for one in looks.KNOWN.values()}
    assert len(pairs) == len(looks.KNOWN)


def test_names_with_one_switch_differ_from_all_others() -> None:
    names = [*looks.KNOWN, *SINGLE]
    assert len({looks.look(name) for name in names}) == len(names)


@pytest.mark.parametrize("switch", ["cond-clear", "sanity-read"])
def test_searches_with_the_same_switch_differ_in_black_and_white(switch: str) -> None:
    """A figure of searches that all have it is the usual one."""
    shown = [looks.look(f"{base}+{switch}") for base in looks.KNOWN]
    searches = [n for n, one in enumerate(looks.KNOWN.values()) if one.dash == 1]
    assert len({(shown[n].dash, shown[n].mark) for n in searches}) == len(searches) > 5


@pytest.mark.parametrize("count", [0, 1, 2, 3, 6])
def test_switches_keep_the_colour_of_the_base(count: int) -> None:
    for base, style in looks.KNOWN.items():
        for switches in combinations(looks.SWITCHES, count):
            assert looks.look("+".join([base, *switches])).colour == style.colour


def test_more_switches_never_look_like_a_known_name() -> None:
    taken = {looks.look(name) for name in [*looks.KNOWN, *SINGLE]}
    for base in looks.KNOWN:
        for switches in combinations(looks.SWITCHES, 2):
            assert looks.look("+".join([base, *switches])) not in taken


def test_order_of_switches_does_not_matter() -> None:
    one = looks.look("two-level+end-late+cond-clear")
    assert one == looks.look("two-level+cond-clear+end-late")


def test_colours_are_the_ones_of_okabe_and_ito_and_grey() -> None:
    okabe_ito = {
        *("#000000", "#e69f00", "#56b4e9", "#009e73"),
        *("#0072b2", "#d55e00", "#cc79a7"),
    }
    found = {looks.look(f"name {i}").colour for i in range(200)}
    assert found == okabe_ito | {"#7f7f7f"}


@given(st.text())
def test_any_name_has_a_look_gnuplot_knows(name: str) -> None:
    one = looks.look(name)
    assert one.colour in looks.COLOURS and 1 <= one.dash <= 5 and 1 <= one.mark <= 15


def test_a_look_is_the_same_in_every_process() -> None:
    names = ["mine", "first-word+cond-clear+sanity-read", "series-v5"]
    code = f"from bench.looks import look; print([look(n) for n in {names!r}])"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {str([looks.look(name) for name in names]) + "\n"}


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.floats(0.1, 100))
def test_spread_leaves_a_gap_and_keeps_the_order(
    wanted: list[float], gap: float
) -> None:
    placed = looks.spread(wanted, gap, -2e6, 2e6)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    for below, above in zip(order, order[1:]):
        assert placed[above] - placed[below] >= gap - 1e-6


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.floats(1, 50))
def test_spread_stays_within_when_there_is_room(
    wanted: list[float], gap: float
) -> None:
    high = gap * len(wanted)
    placed = looks.spread(wanted, gap, 0.0, high)
    assert min(placed) >= -1e-6 and max(placed) <= high + 1e-6


def test_spread_moves_only_what_is_crowded_and_that_evenly() -> None:
    placed = looks.spread([100.0, 10.0, 10.0, 50.0], 16.0, 0.0, 200.0)
    assert placed == [100.0, 2.0, 18.0, 50.0]


def test_spread_begins_at_the_low_end_where_there_is_no_room() -> None:
    assert looks.spread([5.0, 5.0, 5.0], 10.0, 0.0, 12.0) == [0.0, 10.0, 20.0]


def boxes(axis: looks.Axis, width: float) -> list[tuple[int, float, float]]:
    """Line, left and right end of the labels of ticks, at 7.64 pixels a digit."""
    found = []
    for place, label in axis.ticks:
        text = label.lstrip("\n")
        half = 7.64 * len(text) / 2
        centre = axis.fraction(place) * width
        if text:
            found.append((label.count("\n"), centre - half, centre + half))
    return found


@given(
    st.lists(st.integers(1, 300), min_size=2, max_size=20, unique=True),
    st.booleans(),
)
def test_labels_of_measured_ticks_do_not_touch(counts: list[int], log: bool) -> None:
    places = sorted(float(count) for count in counts)
    axis = looks.measured(places, log, 620)
    assert [place for place, _ in axis.ticks] == places
    for line in (0, 1):
        row = [box for box in boxes(axis, 620) if box[0] == line]
        assert all(a[2] < b[1] for a, b in zip(row, row[1:]))


def test_every_usual_task_count_is_labelled() -> None:
    counts = [1, 2, 4, 8, 16, 28, 32, 56, 64, 112, 128, 224]
    axis = looks.measured([float(count) for count in counts], True, 620)
    assert [text.strip() for _, text in axis.ticks] == [str(c) for c in counts]


def test_holds_that_are_close_are_drawn_apart_and_none_on_its_own() -> None:
    holds = [0.0, 63, 64, 65, 127, 128, 4095, 4096, 1e5, 1e6]
    axis, places = looks.apart(holds, 620)
    gaps = [b - a for a, b in zip(places, places[1:])]
    assert min(gaps) >= 34 - 1e-9
    assert gaps[0] > 60
    assert places[-1] - places[-2] == pytest.approx(
        (620 - 20 - 20 - 68) * math.log(10) / math.log(1e6 / 63), rel=0.05
    )
    assert axis.ticks[0] == (places[0], "none")


@pytest.mark.parametrize("high", [1.001, 1.08, 1.9, 3.0, 40.0, 5000.0])
@pytest.mark.parametrize("low", [1.0, 0.98, 0.6, 0.1, 0.001])
def test_axis_of_ratios_is_symmetric_and_shows_one(low: float, high: float) -> None:
    axis = looks.ratios(low, high)
    assert axis.low < low and axis.high > high
    assert 1.0 in dict(axis.ticks) and dict(axis.ticks)[1.0] == "same"
    assert 2 <= len(axis.ticks) <= 10
    wide = looks.Axis(0.25, 4.0, axis.log, [])
    assert wide.fraction(2.0) - 0.5 == pytest.approx(0.5 - wide.fraction(0.5))


def test_ticks_of_ratios_say_what_they_are() -> None:
    labels = dict(looks.ratios(0.97, 1.04).ticks)
    for place, text in labels.items():
        if text != "same":
            assert float(text.rstrip("%")) == pytest.approx(100 * (place - 1))
    assert dict(looks.ratios(0.2, 5.0).ticks)[0.5] == "1/2"
    assert dict(looks.ratios(0.2, 5.0).ticks)[4.0] == "4x"


@pytest.mark.parametrize("low,high", [(1e-9, 1e3), (0.02, 0.02), (1e-6, 3e-6)])
def test_axis_of_times_holds_them_and_has_ticks(low: float, high: float) -> None:
    axis = looks.times(low, high)
    assert axis.low < low and axis.high > high
    assert 2 <= len(axis.ticks) <= 12


def test_times_in_words() -> None:
    words = [looks.time(s) for s in (0.0, 2.5e-8, 3e-6, 0.0133, 1.0, 90.0)]
    assert words == ["0", "25 ns", "3 us", "13.3 ms", "1 s", "90 s"]


def test_whole_numbers_lose_no_digit() -> None:
    values = (1, 4096, 16384, 65536, 10000, 19000, 1e6, 1048576)
    words = ["1", "4096", "16384", "65536", "10k", "19k", "1M", "1048576"]
    assert [looks.short(value) for value in values] == words


@pytest.mark.parametrize(
    "words,name",
    [
        (("rate", "dup-close", "low:64"), "rate-dup-close-low-64"),
        (("a+b_c.d",), "a+b_c.d"),
        (("../../etc/x y'z\"",), "etc-x-y-z"),
        (("",), "figure"),
    ],
)
def test_file_names_are_safe(words: tuple[str, ...], name: str) -> None:
    assert looks.safe_name(*words) == name
