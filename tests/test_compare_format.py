# SPDX-License-Identifier: GPL-2.0-only
"""compare: what each format looks like, and that programs can read it back."""
from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from made_folders import CALM, CELL, folder, in_one, kernels, run

from bench.compare import compare
from bench.compare_format import FORMATS, rate_text
from bench.problem import DONE


def test_text(tmp_path: Path) -> None:
    text, status = compare([in_one(tmp_path, 1.1)])
    assert text.splitlines()[:6] == [
        "a: variants against two-level",
        "",
        "dup-close, model, low:64, compact, 2 threads, table 128",
        "  two-level: 8.00 M/s ±0.0%, the baseline",
        "  first-word: 8.80 M/s ±0.2%",
        # Deviation of CALM's logs 0.001581, error 0.000707, t(4) 2.776: 0.00196
        "    faster: +10.00% [+9.78%, +10.22%], 5 runs, not calibrated here",
    ]
    assert "1 comparison at 95%: 0.05 would differ by chance alone." in text
    assert status == DONE


@pytest.mark.parametrize("fmt", ["text"])
def test_text_fits_80_columns(tmp_path: Path, fmt: str) -> None:
    long = CELL | {
        "options": {"kind": "socketpair", "number": str(10**9)},
        "place": "x" * 40,
    }
    names = {"next_fd-word-checked+cond-clear+sanity-read": 1e6, "two-level": 9e5}
    rows = [run(names, long) for _ in range(2)]
    a = folder(tmp_path, "an-archive-of-results-with-a-long-name", rows)
    b = folder(
        tmp_path,
        "b" * 50,
        rows,
        cpu__model="A processor of a very long name indeed, with its GHz",
        kernel__version="#1 SMP PREEMPT_DYNAMIC something something 2026-11-11",
    )
    for paths in ([a], [a, b]):
        for line in compare(paths, fmt=fmt)[0].splitlines():
            assert len(line) <= 80


def test_bounds_without_sense_are_not_printed(tmp_path: Path) -> None:
    rows = [run({"a": 1e6, "b": 1e6 * x}) for x in (1, 50)]
    text = compare([folder(tmp_path, "f", rows)])[0]
    assert "[bounds beyond a factor of 10], 2 runs" in text
    assert "±>900%" in text
    assert len(max(text.split(), key=len)) < 16


def test_long_lists_are_cut_except_in_json(tmp_path: Path) -> None:
    rows = [run({"a": 1e6}, CELL | {"tasks": n}) for n in range(1, 10)]
    path = folder(tmp_path, "f", [run({"a": 1e6, "b": 1e6}), *rows[2:]])
    text = compare([path])[0]
    assert text.count("Nothing beside it: dup-close") == 4
    assert "Nothing beside it: 3 more, all of them in json." in text
    assert len(json.loads(compare([path], fmt="json")[0])["alone"]) == 7


def test_opposite_signs_are_never_one_mean(tmp_path: Path) -> None:
    rows = [run({"a": 1e6, "up": 1.2e6 * x, "down": 0.8e6 * x}) for x in CALM]
    path = folder(tmp_path, "f", rows)
    assert "Both signs: 1 faster, 1 slower. No mean" in compare([path])[0]
    assert json.loads(compare([path], fmt="json")[0])["opposite_signs"] is True
    assert "Both signs" not in compare([in_one(tmp_path, 1.1)])[0]


def test_markdown_is_one_table(tmp_path: Path) -> None:
    text = compare([in_one(tmp_path, 1.1)], fmt="markdown")[0]
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert len({line.count("|") for line in table}) == 1
    assert (
        "| 8.00 M/s ±0.0% | first-word | 8.80 M/s ±0.2% | faster: +10.00%" in table[2]
    )


def test_csv_reads_back(tmp_path: Path) -> None:
    dup = CELL | {"workload": "dupfd", "options": {"start": "64"}}
    rows = [run({"a": 1e6, "b": 2e6 * x}, cell) for cell in (CELL, dup) for x in CALM]
    text = compare([folder(tmp_path, "f", rows)], fmt="csv")[0]
    one, two = csv.DictReader(io.StringIO(text))
    assert (one["workload"], one["hold"], one["tasks"]) == ("dup-close", "low:64", "2")
    assert two["options"] == "start=64"
    assert float(one["ratio"]) == pytest.approx(2, rel=1e-5)
    assert float(one["other_rate"]) == pytest.approx(2e6, rel=1e-5)
    assert one["verdict"] == "faster"


def test_json_has_no_nan(tmp_path: Path) -> None:
    path = folder(tmp_path, "f", [run({"a": 1e6, "b": 2e6})])

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads(compare([path], fmt="json")[0], parse_constant=refuse)
    assert found["comparisons"][0]["ratio_low"] is None


def test_lkp_is_the_table_that_its_readers_know(tmp_path: Path) -> None:
    # Rates of 8 M/s, and 10 M/s with a deviation of 20%: 8 to 12 in even steps of 1
    # have sqrt(10 / 4) = 1.58, 16% of the mean.
    rows = [run({"old": 8e6, "new": k * 1e6}) for k in (8, 9, 10, 11, 12)]
    text = compare([folder(tmp_path, "f", rows, hostname="box")], fmt="lkp")[0]
    lines = text.splitlines()
    assert lines[0] == "=" * 89
    assert lines[1].endswith("/nr_task/place/table_size/tbox_group/test/testcase:")
    assert lines[2].endswith("low:64/thread/2/compact/128/box/dup-close/fdscale")
    at = lines.index("variant: ")
    assert lines[at + 1 : at + 3] == ["  old", "  new"]
    table = lines[at + 4 :]
    assert table[:7] == [
        "old              new",
        "---------------- --------------------------- ",
        "         %stddev     %change         %stddev",
        "             \\          |                \\  ",
        "   8000000           +25.0%   10000000 ± 16%  fdscale.2.threads",
        "   4000000           +25.0%    5000000 ± 16%  fdscale.per_task_ops",
        "   8000000           +25.0%   10000000 ± 16%  fdscale.workload",
    ]
    assert table[7].startswith("  new against old: ")


def test_lkp_between_kernels_has_a_column_each(tmp_path: Path) -> None:
    made = []
    for name in ("v1", "v2"):
        rows = [run({"a": 1e6, "b": 2e6})]
        made.append(folder(tmp_path, name, rows, kernel__release=name))
    lines = compare(made, fmt="lkp")[0].splitlines()
    # one table for each variant, which is a parameter here
    heads = [at for at, line in enumerate(lines) if line.startswith("v1   ")]
    assert [lines[at] for at in heads] == ["v1" + " " * 15 + "v2"] * 2
    cases = [line for line in lines if line.endswith("/fdscale")]
    assert [case.split("/")[-2] for case in cases] == ["a", "b"]
    assert lines[lines.index(cases[0]) - 1].endswith("/test/variant/testcase:")
    assert [line for line in lines if line == "commit: "] == ["commit: "] * 2


def test_lkp_stats_are_key_value_lines(tmp_path: Path) -> None:
    text = compare([in_one(tmp_path, 1.1)], fmt="lkp-stats")[0]
    found = dict(line.split(": ") for line in text.splitlines())
    assert len(found) == len(text.splitlines())
    stem = "fdscale.dup-close.model.low-64.compact.threads.2.table=128"
    assert float(found[f"{stem}.two-level.ops_per_s"]) == 8e6
    ratio = found[f"{stem}.first-word.against.two-level.ratio"]
    assert float(ratio) == pytest.approx(1.1, rel=1e-5)
    assert found[f"{stem}.first-word.against.two-level.verdict"] == "faster"
    assert not any(" " in key or ":" in key for key in found)


@pytest.mark.parametrize(
    "rate,text",
    [
        (8.333e6, "8.33 M/s"),
        (999_499, "999 k/s"),
        (999_600, "1.00 M/s"),
        (9.999e3, "10.0 k/s"),
        (12.3, "12.3 /s"),
        (0.5, "0.500 /s"),
        (2.5e9, "2.50 G/s"),
    ],
)
def test_rate_text(rate: float, text: str) -> None:
    assert rate_text(rate) == text


def test_every_format_takes_every_report(tmp_path: Path) -> None:
    one = [in_one(tmp_path, 1.1)]
    two = kernels(tmp_path, [1e6, 1e6], [2e6])
    for fmt in FORMATS:
        for paths in (one, two):
            text = compare(paths, fmt=fmt)[0]
            assert text.endswith("\n") and not text.endswith("\n\n")
            assert "nan" not in text


@pytest.mark.parametrize("form", [f for f in FORMATS if f != "lkp-stats"])
def test_a_guests_times_are_called_what_they_are(tmp_path: Path, form: str) -> None:
    rows = [run({"two-level": 8e6, "first-word": 8e6 * x}) for x in CALM]
    made = folder(tmp_path, "guest", rows)
    path = Path(made) / "host.json"
    host = json.loads(path.read_text())
    for guest in (None, {"accel": "tcg", "host": host}):
        path.write_text(json.dumps(host | ({"guest": guest} if guest else {})))
        text, _ = compare([made], None, form, None)
        said = "say nothing about speed" in " ".join(text.split())
        assert said == bool(guest)
