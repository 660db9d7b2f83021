# SPDX-License-Identifier: GPL-2.0-only
"""Every figure: data file, pictures, drawn again by hand, and what goes wrong."""

import math
import os
import struct
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from figure_files import paths, settings, tables, words
from made_up import (
    FIGURES,
    MARKS,
    TASKS,
    TITLES,
    VARIANTS,
    along,
    bars_figure,
    map_figure,
    rates,
    ratios,
    windows_figure,
)

from bench import charts, figure, looks, plot
from bench.charts import Cell
from bench.plot import Mark, Series, Titles
from bench.problem import COULD_NOT, Problem

ODD = "a\\n_b^c {/Bold d} $e `f` %g #h 'i' <j> & k"


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn in a folder of its own."""

    kind: str
    dat: Path
    png: Path
    svg: Path


@pytest.fixture(scope="module", params=FIGURES)
def drawn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Drawn:
    kind, make = FIGURES[request.param]
    return Drawn(kind, *make(tmp_path_factory.mktemp("drawn") / "name"))


def test_three_files_and_nothing_else(drawn: Drawn) -> None:
    names = sorted(path.name for path in drawn.dat.parent.iterdir())
    assert names == ["name.dat", "name.png", "name.svg"]
    assert [drawn.dat.name, drawn.png.name, drawn.svg.name] == names


def test_script_by_hand_draws_the_same(drawn: Drawn, tmp_path: Path) -> None:
    script = os.path.relpath(figure.PLOTS / f"{drawn.kind}.gp", tmp_path)
    data = os.path.relpath(drawn.dat, tmp_path)
    for picture in (drawn.png, drawn.svg):
        again = tmp_path / f"again{picture.suffix}"
        done = subprocess.run(
            ["gnuplot", "-e", f"data='{data}'; out='{again.name}'", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert again.read_bytes() == picture.read_bytes()


def test_pictures_are_whole_and_show_titles_and_names(drawn: Drawn) -> None:
    size = settings(drawn.dat)["width"], settings(drawn.dat)["height"]
    head = drawn.png.read_bytes()
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and head[-8:-4] == b"IEND"
    assert struct.unpack(">II", head[16:24]) == (int(size[0]), int(size[1]))
    root = ET.parse(drawn.svg).getroot()
    assert (root.get("width"), root.get("height")) == size
    shown = words(drawn.svg)
    assert TITLES.title in shown
    assert " ".join(shown).count("Linux 6.12.0-mine_1") == 1
    for row in tables(drawn.dat)["series"]:
        assert row[0] in shown


def test_every_variant_has_its_colour(drawn: Drawn) -> None:
    text = drawn.svg.read_text(encoding="utf-8").lower().replace(" ", "")
    for name, colour, *_ in tables(drawn.dat)["series"]:
        if looks.is_variant(name):
            assert colour == looks.look(name).colour
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        assert colour == "#000000" or f"rgb({red},{green},{blue})" in text


def test_all_text_lies_on_the_page(drawn: Drawn) -> None:
    width = float(settings(drawn.dat)["width"])
    height = float(settings(drawn.dat)["height"])
    space = "{http://www.w3.org/2000/svg}"
    share = {"start": 0.0, "middle": 0.5, "end": 1.0}
    seen = 0
    for group in ET.parse(drawn.svg).iter(f"{space}g"):
        said = "".join(text.text or "" for text in group.findall(f"{space}text"))
        place = group.get("transform", "")
        if not said or "rotate" in place:
            continue
        x, y = map(float, place.split("(")[1].split(")")[0].split(","))
        wide = len(said) * 7.0 * float(group.get("font-size", "")) / 12
        left = x - share[group.get("text-anchor", "")] * wide
        assert 0 <= left and left + wide <= width + 1, said
        assert 8 <= y <= height - 2, said
        seen += 1
    assert seen > 5


def test_data_file_to_the_letter(tmp_path: Path) -> None:
    made = [
        Series("two-level", [(1, 4e6, 3.9e6, 4.1e6), (2, None, None, None)]),
        Series("mine", [(1, 5e6, None, None), (2, 6e6, 5.5e6, 6.25e6)], "by hand"),
    ]
    dat, _, _ = plot.draw("rate-vs-tasks", tmp_path / "x", made, TITLES, [Mark(1, "b")])
    text = dat.read_text(encoding="utf-8")
    assert text.startswith(
        "# fdscale, rate-vs-tasks. To draw it again, in its folder:\n"
        "# gnuplot -e \"data='x.dat'; out='again.png'\" "
        f"{figure.PLOTS}/rate-vs-tasks.gp\n"
    )
    typed = text.splitlines()[1].removeprefix("# ")
    subprocess.run(typed, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / "again.png").read_bytes() == dat.with_suffix(".png").read_bytes()
    assert text.endswith(
        "\n\n\n# series 1\n#: x y low high drawn\n"
        "1 4000000 3900000 4100000 1\n2 NaN NaN NaN 2\n"
        "\n\n# series 2\n#: x y low high drawn\n"
        "1 5000000 NaN NaN 1\n2 6000000 5500000 6250000 2\n"
    )
    assert '\n\n\n# xticks\n#: position label\n1 "1"\n2 "2"\n\n\n' in text
    assert tables(dat)["series"][0][:4] == ["two-level", "#000000", "1", "7"]
    assert tables(dat)["series"][1][0] == "mine (by hand)"
    said = settings(dat)
    assert said["xlabel"] == "tasks"
    assert said["ylabel"] == "million operations a second"
    assert (said["ylow"], said["series"], said["marks"]) == ("0", "2", "1")
    assert [row[0] for row in tables(dat)["texts"]] == [
        TITLES.title,
        TITLES.subtitle,
        plot.UNKNOWN,
    ]


@pytest.mark.parametrize("count", [1, 2, 12, 40])
def test_names_beside_the_lines_do_not_overlap(count: int, tmp_path: Path) -> None:
    made = [
        Series(f"variant {i}", [(1, 1e6 + i % 3, None, None), (2, 2e6, None, None)])
        for i in range(count)
    ]
    dat, _, _ = plot.draw("rate-vs-tasks", tmp_path / "x", made, TITLES)
    high = float(settings(dat)["height"])
    places = sorted(high * float(row[7]) for row in tables(dat)["series"])
    assert all(b - a >= 15.9 for a, b in zip(places, places[1:]))
    assert places[0] > 60 and places[-1] < high * float(settings(dat)["plottop"])


def test_labels_of_boundaries_do_not_overlap(tmp_path: Path) -> None:
    dat, _, _ = plot.draw("rate-vs-tasks", tmp_path / "x", rates(), TITLES, MARKS)
    rows = tables(dat)["marks"]
    assert [row[2] for row in rows] == ["node 0", "package 0, node 1", MARKS[3].label]
    axis = looks.measured([float(t) for t in TASKS], True, 620)
    taken: dict[str, float] = {}
    for x, height, label in rows:
        centre, half = 620 * axis.fraction(float(x)), 3.6 * len(label)
        assert centre - half >= taken.get(height, -math.inf)
        taken[height] = centre + half
    assert len(taken) == 2


def test_a_boundary_outside_of_what_was_measured_is_not_drawn(tmp_path: Path) -> None:
    some = [Mark(0.5, "a"), Mark(4, "b"), Mark(999, "c")]
    dat, _, _ = plot.draw("rate-vs-tasks", tmp_path / "x", rates(), TITLES, some)
    assert [row[2] for row in tables(dat)["marks"]] == ["b"]


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    made = [Series(ODD, [(1, 1.0, 0.9, 1.1), (2, 1.1, 1.0, 1.2)])]
    titles = Titles("title " + ODD, "subtitle " + ODD, ODD)
    marks = [Mark(2, "mark " + ODD)]
    _, _, svg = plot.draw("ratio-vs-tasks", tmp_path / "x", made, titles, marks)
    shown = words(svg)
    ylabel = f"rate, compared with {ODD}"
    for text in (ODD, titles.title, titles.subtitle, marks[0].label, ylabel):
        assert text in shown
    one = [Series(ODD, [(1, 1.0, 0.9, 1.1)])]
    _, _, svg = plot.draw("ratio-vs-tasks", tmp_path / "y", one, titles)
    assert ODD in words(svg)


def test_braces_mean_nothing_in_a_png(tmp_path: Path) -> None:
    made = [Series("a", [(1, 1.0, None, None)])]
    shown = {
        plot.draw("rate-vs-tasks", tmp_path / "x", made, Titles(title))[1].read_bytes()
        for title in ("ab", "{ab}", "a{/Bold b}")
    }
    assert len(shown) == 3


def test_double_quotes_and_line_ends_do_no_harm(tmp_path: Path) -> None:
    made = [Series('x"y\r\nz', [(1, 1.0, None, None), (2, 1.0, None, None)])]
    dat, _, svg = plot.draw("rate-vs-tasks", tmp_path / "x", made, Titles('"'))
    assert len(tables(dat)["series"]) == 1
    assert {"x''y", "z", "''"} <= set(words(svg))


@pytest.mark.parametrize("kind", ["ratio-vs-tasks", "ratio-vs-hold", "churn-ratio"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_black_line_is_where_the_ratio_is_one(
    kind: str, count: int, tmp_path: Path
) -> None:
    points = [(x, 1.5, 1.4, 1.6) for x in (64, 128, 4096)]
    made = [Series("next_fd-word", list(points[:count]))]
    dat, _, svg = plot.draw(kind, tmp_path / "x", made, TITLES)
    said = {key: float(v) for key, v in settings(dat).items() if key[0] in "pwh"}
    left, right = said["plotleft"] * said["width"], said["plotright"] * said["width"]
    top, foot = ((1 - said[end]) * said["height"] for end in ("plottop", "plotbottom"))
    axis = looks.ratios(1.0, 1.6)
    if count == 1:
        across = left + axis.fraction(1.0) * (right - left)
        corners = [(across, foot), (across, top)]
    else:
        up = foot + axis.fraction(1.0) * (top - foot)
        corners = [(left, up), (right, up)]
    assert any(
        all(
            a == pytest.approx(b, abs=0.6)
            for one, two in zip(line, corners)
            for a, b in zip(one, two)
        )
        for line in paths(svg, "0, 0, 0")
        if len(line) == 2
    )


def test_no_line_leads_to_the_hold_none(tmp_path: Path) -> None:
    holds = [(x, 1.5, None, None) for x in (0, 63, 64, 1000)]
    made = [Series("next_fd-word", list(holds))]
    dat, _, svg = plot.draw("ratio-vs-hold", tmp_path / "x", made, TITLES)
    drawn = [float(row[4]) for row in tables(dat)["series 1"]]
    assert drawn[0] == 20
    blue = [line for line in paths(svg, "0, 114, 178") if len(line) == 3]
    assert len(blue) == 1
    assert [x - 84 for x, _ in blue[0]] == pytest.approx(drawn[1:], abs=0.6)
    assert "none" in words(svg) and "//" in words(svg)


def test_one_count_is_a_row_of_dots_best_on_top(tmp_path: Path) -> None:
    dat, _, svg = plot.draw("ratio-vs-tasks", tmp_path / "x", ratios([1]), TITLES)
    best_last = sorted(ratios([1]), key=lambda one: one.points[0][1] or 0)
    assert [row[1] for row in tables(dat)["yticks"]] == [o.name for o in best_last]
    assert settings(dat)["xlabel"] == "rate, compared with two-level, 1 task"
    value = best_last[-1].points[0][1] or 0
    assert any(text.startswith(f"{100 * value - 100:+.1f}%  (") for text in words(svg))


def test_times_of_one_count_are_sorted_the_other_way(tmp_path: Path) -> None:
    made = along([19000.0], VARIANTS[:3], 1.2)
    dat, _, _ = plot.draw("churn", tmp_path / "x", made, TITLES)
    assert [row[1] for row in tables(dat)["yticks"]][-1] == VARIANTS[0]
    assert settings(dat)["xlow"] == "0"


def test_an_enormous_interval_does_not_flatten_the_rest(tmp_path: Path) -> None:
    dat, _, _ = plot.draw("rate-vs-tasks", tmp_path / "x", rates(), TITLES)
    most = max(p[1] or 0 for one in rates() for p in one.points)
    assert most < float(settings(dat)["yhigh"]) < 2 * most
    assert plot.BEYOND in [row[0] for row in tables(dat)["texts"]]


@pytest.mark.parametrize("kind", ["rate-vs-tasks", "ratio-vs-tasks", "churn"])
def test_values_that_are_no_numbers(kind: str, tmp_path: Path) -> None:
    nan, inf = math.nan, math.inf
    made = [
        Series("a", [(1, 1.0, 0.9, inf), (2, nan, 1, 1), (4, 1.2, -1, 1.3)]),
        Series("b", [(8, inf, 1, 2), (1, 1.1, nan, 2), (2, 1.1, 1.1, 1.1)]),
        Series("never", [(1, None, None, None)]),
    ]
    dat, _, svg = plot.draw(kind, tmp_path / "x", made, TITLES)
    found = tables(dat)
    assert [row[1] for row in found["series 1"]] == ["1", "NaN", "1.2"]
    assert found["series 1"][0][3] == "1e+300"
    assert found["series 2"][0][:4] == ["1", "1.1", "NaN", "NaN"]
    assert [row[0] for row in found["series"]] == ["a", "b"]
    shown = words(svg)
    for text in ("Nothing measured: never", plot.BEYOND, plot.UNKNOWN):
        assert text in shown


def test_where_a_logarithm_is_taken_zero_is_missing(tmp_path: Path) -> None:
    made = [Series("a", [(1, 0.0, 0, 0), (2, 1.0, 0.0, 2.0), (3, 2.0, 1.0, 2.0)])]
    dat, _, _ = plot.draw("ratio-vs-tasks", tmp_path / "x", made, TITLES)
    assert [row[1:4] for row in tables(dat)["series 1"]] == [
        ["NaN", "NaN", "NaN"],
        ["1", "1e-300", "2"],
        ["2", "1", "2"],
    ]


def test_windows_are_flagged_and_counted(tmp_path: Path) -> None:
    dat, _, _ = windows_figure(tmp_path / "x")
    rows = tables(dat)["series 2"]
    flagged = [row[0] for row in rows if row[2] == "1"]
    assert flagged == ["0.8", "1.5"] and len(rows) == 201
    shares = [float(row[2]) for row in tables(dat)["counts 3"]]
    assert max(shares) == 1.0 and min(shares) > 0
    names = [row[0] for row in tables(dat)["series"]]
    assert names == ["two-level", "first-word", "next_fd-word"]


def test_map_says_who_won_by_how_much_and_how_sure(tmp_path: Path) -> None:
    cells = [
        Cell(8, "none", "first-word", 1.034, False),
        Cell(1, "none", "next_fd-word", 2.31, True),
        Cell(8, "low:64", "next_fd-word", 1.26, True),
    ]
    dat, _, svg = charts.draw_map(tmp_path / "x", cells, TITLES)
    assert tables(dat)["cells"] == [
        ["1", "0", "1", "0", "+3.4%", "1.034"],
        ["0", "0", "2", "1", "2.3x", "2.31"],
        ["1", "1", "2", "1", "+26%", "1.26"],
    ]
    assert {"+3.4%", "2.3x", "+26%", "low:64", "inconclusive"} <= set(words(svg))


def test_bars_keep_the_sum_and_show_what_differs_first(tmp_path: Path) -> None:
    dat, _, svg = bars_figure(tmp_path / "x")
    found = tables(dat)
    assert found["series"][0][0] == "find_next_zero_bit"
    assert found["series"][-1][0] == "3 others"
    total = sum(20 + 9 * i for i in range(10)) - (20 + 27)
    assert [row[0] for row in found["totals"]] == [
        str(total + 7 * (i % 4)) for i in range(12)
    ]
    ends = [row[1] for row in found["series 8"]]
    assert ends == [row[0] for row in found["totals"]]
    assert str(total + 21) in words(svg)


def fake_gnuplot(folder: Path, body: str) -> str:
    """A folder for PATH with a gnuplot that does something else."""
    folder.mkdir()
    (folder / "gnuplot").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "gnuplot").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize(
    "body,text",
    [
        (
            "printf '\\nplot x\\n^\\n\"a.gp\" line 3: no such thing\\n\\n' >&2; exit 1",
            'figure x: gnuplot failed: "a.gp" line 3: no such thing',
        ),
        ("exit 7", "figure x: gnuplot failed: it said nothing"),
        ("exit 0", "figure x: gnuplot failed: it said nothing"),
        ("touch figure.png figure.svg", "figure x: gnuplot failed: it said nothing"),
        ("sleep 9", "figure x: gnuplot had not finished after 0.2 s"),
    ],
)
def test_gnuplot_fails(
    body: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {
        p: p.read_bytes() for p in plot.draw("churn", tmp_path / "x", rates(), TITLES)
    }
    monkeypatch.setenv("PATH", fake_gnuplot(tmp_path / "bin", body))
    monkeypatch.setattr(figure, "SECONDS", 0.2)
    with pytest.raises(Problem) as caught:
        plot.draw("rate-vs-tasks", tmp_path / "x", rates(), TITLES)
    assert (str(caught.value), caught.value.status) == (text, COULD_NOT)
    left = {p: p.read_bytes() for p in tmp_path.iterdir() if p.name != "bin"}
    assert left == old


def test_gnuplot_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="install the package gnuplot-nox") as caught:
        map_figure(tmp_path / "x")
    assert caught.value.status == COULD_NOT
    assert list(tmp_path.iterdir()) == []


def test_folder_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="x: No such file or directory: .*/gone"):
        plot.draw("churn", tmp_path / "gone" / "x", rates(), TITLES)


@pytest.mark.parametrize(
    "make",
    [
        lambda base: plot.draw("churn", base, [], TITLES),
        lambda base: plot.draw(
            "churn", base, [Series("a", [(1, None, None, None)])], TITLES
        ),
        lambda base: charts.draw_map(base, [], TITLES),
        lambda base: charts.draw_bars(base, [], [], TITLES),
        lambda base: charts.draw_windows(base, [Series("a", [])], TITLES),
    ],
)
def test_nothing_measured(make: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises(Problem, match="^figure x: nothing was measured for it$"):
        make(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_name_of_the_file_is_made_safe(tmp_path: Path) -> None:
    paths = plot.draw("churn", tmp_path / "low:64 a'b", rates(), TITLES)
    assert paths[0] == tmp_path / "low-64-a-b.dat"


@pytest.mark.parametrize("given", ["", "data='x.dat'", "out='x.png'"])
def test_script_without_its_variables_says_how(given: str, tmp_path: Path) -> None:
    for script in sorted(figure.PLOTS.glob("*.gp")):
        if script.name == "lines.gp":
            continue
        done = subprocess.run(
            ["gnuplot", "-e", given, script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("usage: gnuplot -e \"data='NAME.dat'; out=")
        assert list(tmp_path.iterdir()) == []


def test_every_script_is_drawn_by_a_test() -> None:
    scripts = {path.stem for path in figure.PLOTS.glob("*.gp")} - {"style", "lines"}
    assert scripts == {kind for kind, _ in FIGURES.values()}


def test_rates_far_apart_get_a_logarithmic_axis(tmp_path: Path) -> None:
    """On a linear one, all that is at the second place would lie on the line at 0."""
    points = [(1.0, 50e6, 49e6, 51e6), (2.0, 1e6, 0.9e6, 1.1e6)]
    for factor, named in ((1.0, "(logarithmic)"), (10.0, "operations a second")):
        steep: list[plot.Point] = [
            (x, y * (factor if x == 2 else 1), None, None) for x, y, _, _ in points
        ]
        base = tmp_path / f"steep-{factor:.0f}"
        series = [plot.Series("two-level", steep)]
        plot.draw("rate-vs-tasks", base, series, plot.Titles("steep"))
        text = base.with_suffix(".dat").read_text()
        assert named in text
        assert ("(logarithmic)" in text) == (factor == 1.0)
        assert "none is known" in text


def test_a_long_title_ends_with_no_lone_word() -> None:
    text = "dup-close, model, hold low:64, 1 thread, placement compact, 256 slots"
    for pixels in range(200, 500, 20):
        lines = figure.evenly(text, pixels, 7.0)
        assert " ".join(lines) == text and max(map(len, lines)) <= pixels / 7
        assert len(lines) == len(figure.wrapped(text, pixels, 7.0))
        assert len(lines) == 1 or len(lines[-1].split()) > 1


def test_an_interval_that_tells_nothing_is_not_spelt_out() -> None:
    point = (1.0, 6e6, 9e4, 3.794e14)
    assert plot.number(point, "rate", 1e6) == "6.000  (tells nothing)"
    assert plot.number((1.0, 1.2, 1e-9, 1e9), "ratio", 1) == "+20.0%  (tells nothing)"
    near = plot.number((1.0, 6e6, 5e6, 7e6), "rate", 1e6)
    assert near == "6.000  (5.000 to 7.000)"


def test_a_large_factor_is_a_whole_number() -> None:
    assert [charts.gain(r) for r in (2.14, 47.4, 123.4)] == ["2.1x", "47x", "123x"]
    assert plot.number((1.0, 1234.5, None, None), "ratio", 1) == "1234x"
