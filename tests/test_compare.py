# SPDX-License-Identifier: GPL-2.0-only
"""compare: hand-made results folders, each format, and the gate's exit statuses."""
from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.compare import compare
from bench.compare_format import FORMATS, rate_text
from bench.host import read_host
from bench.problem import ANSWER_NO, COULD_NOT, DONE, INCONCLUSIVE, USAGE, Problem

CELL = {
    "workload": "dup-close",
    "options": {},
    "backend": "model",
    "hold": "low:64",
    "place": "compact",
    "mode": "threads",
    "tasks": 2,
    "table_size": 128,
}
# Five runs within a few tenths of a percent of each other, geometric mean about 1.
CALM = (0.998, 1.001, 1.0, 1.002, 0.999)


def run(rates: dict[str, float], cell: dict[str, Any] = CELL, **more: Any) -> dict:
    """A run of three blocks; more replaces keys of the row."""
    windows = [
        {
            "variant": variant,
            "block": block,
            "ns": 10_000_000,
            "ops": [int(rate / 200), int(rate / 200)],
            "rate": rate,
        }
        for block in range(3)
        for variant, rate in rates.items()
    ]
    row = {
        "schema": 1,
        "type": "run",
        "time": 1.0,
        "run": 0,
        "cell": cell,
        "setup": {"variants": list(rates), "fdsize": 128, "pus": [0, 1]},
        "windows": windows,
        "error": None,
        "seconds": 2.0,
    }
    return row | more


def failed(cell: dict[str, Any] = CELL) -> dict:
    return run({}, cell, error={"syscall": "dup", "errno": "EMFILE", "text": "no"})


def host(root: Path, **changed: Any) -> dict[str, Any]:
    """host.json of a machine that hides everything, with "cpu__model" and so on set."""
    made = read_host(root / "no-such-root")
    for key, value in changed.items():
        *path, last = key.split("__")
        at = made
        for part in path:
            at = at[part]
        at[last] = value
    return made


def folder(root: Path, name: str, rows: Sequence[dict], **changed: Any) -> str:
    made = root / name
    made.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (made / "results.jsonl").write_text(text)
    (made / "host.json").write_text(json.dumps(host(root, **changed)))
    return str(made)


def in_one(root: Path, by: float, name: str = "a", calm: Sequence[float] = CALM) -> str:
    """A folder where first-word has BY times the rate of two-level's 8 M/s."""
    rows = [run({"two-level": 8e6, "first-word": 8e6 * by * x}) for x in calm]
    return folder(root, name, rows)


def kernels(root: Path, old: Sequence[float], new: Sequence[float]) -> list[str]:
    """Folders of two kernels, one boot each, with these rates."""
    made = []
    for release, rates in (("6.12", old), ("6.13", new)):
        for boot, rate in enumerate(rates):
            rows = [run({"first-word": rate * x}) for x in CALM]
            name = f"v{release}-{boot}"
            made.append(
                folder(
                    root,
                    name,
                    rows,
                    kernel__release=release,
                    kernel__boot_id=name,
                )
            )
    return made


def only(path: Sequence[str], **options: Any) -> dict[str, Any]:
    """The one comparison, from the JSON."""
    found = json.loads(compare(path, fmt="json", **options)[0])
    assert len(found["comparisons"]) == 1
    item: dict[str, Any] = found["comparisons"][0]
    return item


# What is compared


def test_variants_of_one_folder(tmp_path: Path) -> None:
    item = only([in_one(tmp_path, 1.1)])
    # The geometric mean of CALM: logs -2.002 + 0.9995 + 0 + 1.998 - 1.0005 thousandths
    # = -0.005 / 5: 1 within a millionth.
    assert item["ratio"] == pytest.approx(1.1, rel=2e-6)
    assert item["verdict"] == "faster"
    assert (item["unit"], item["n"]) == ("run", 5)
    assert item["baseline"]["variant"] == "two-level"
    assert item["baseline"]["rate"] == pytest.approx(8e6)
    assert item["other"]["rate"] == pytest.approx(8.8e6, rel=1e-5)


def test_the_ratio_is_taken_within_blocks(tmp_path: Path) -> None:
    # Each run has another speed, by up to 4 times; the ratio is 1.1 in all of them.
    rows = [run({"a": 1e6 * k, "b": 1.1e6 * k}) for k in (1, 2, 3, 4, 2)]
    item = only([folder(tmp_path, "f", rows)])
    assert item["ratio_low"] == pytest.approx(1.1)
    assert item["ratio_high"] == pytest.approx(1.1)
    assert item["baseline"]["rate_high"] > 2 * item["baseline"]["rate_low"]


def test_baseline_by_name(tmp_path: Path) -> None:
    path = in_one(tmp_path, 1.1)
    item = only([path], baseline="first-word")
    assert item["other"]["variant"] == "two-level"
    assert item["verdict"] == "slower"
    with pytest.raises(Problem, match="baseline v9: no variant of a; it has two-l"):
        compare([path], baseline="v9")


def test_one_boot_each_is_no_verdict(tmp_path: Path) -> None:
    item = only(kernels(tmp_path, [1e6], [2e6]))
    assert item["verdict"] == "inconclusive"
    assert "one boot each: not separated from reboot variance" in item["text"]
    assert item["ratio"] == pytest.approx(2)
    assert item["ratio_low"] is None


def test_boots_of_a_kernel_are_one_side(tmp_path: Path) -> None:
    made = kernels(tmp_path, [1e6, 1.01e6, 0.99e6], [2e6, 2.01e6, 1.99e6])
    item = only(made)
    assert item["verdict"] == "faster"
    assert (item["unit"], item["n"]) == ("boot", 3)
    assert item["other"]["side"] == "v6.13-0+v6.13-1+v6.13-2"
    assert only(made, baseline="v6.13-1")["verdict"] == "slower"
    with pytest.raises(Problem, match="baseline x: none of the folders v6.12-0, "):
        compare(made, baseline="x")


def test_more_runs_do_not_make_up_for_a_boot(tmp_path: Path) -> None:
    # Boots differ by 20% either way, runs within a boot by 0.2%.
    made = kernels(tmp_path, [1e6, 1.2e6, 0.8e6], [1.05e6, 1.25e6, 0.85e6])
    assert only(made)["verdict"] == "inconclusive"


def test_one_boot_in_two_folders_counts_runs(tmp_path: Path) -> None:
    made = [
        folder(
            tmp_path,
            name,
            [run({"a": rate * x}) for x in CALM],
            kernel__boot_id="the one",
        )
        for name, rate in (("monday", 1e6), ("tuesday", 1.5e6))
    ]
    item = only(made)
    assert (item["unit"], item["n"], item["verdict"]) == ("run", 5, "faster")


def test_the_presets_of_two_kernels_are_a_pair(tmp_path: Path) -> None:
    a = folder(tmp_path, "a", [run({"stock-6.12": 1e6})], kernel__release="6.12")
    b = folder(tmp_path, "b", [run({"merged-6.13": 2e6})], kernel__release="6.13")
    item = only([a, b])
    assert item["baseline"]["variant"] == "stock-6.12"
    assert item["other"]["variant"] == "merged-6.13"


def test_cells_without_a_partner_are_named(tmp_path: Path) -> None:
    lone = CELL | {"tasks": 1, "mode": "processes", "hold": "none"}
    a = folder(tmp_path, "a", [run({"x": 1e6}), run({"x": 1e6}, lone)])
    b = folder(tmp_path, "b", [run({"x": 1e6}), failed(), failed(lone)])
    text, status = compare([a, b])
    want = (
        "dup-close, model, none, compact, 1 process, table 128: every run failed in b"
    )
    assert f"Not compared: {want}" in " ".join(text.split())
    assert "Failed runs, left out: 2." in text
    assert status == DONE


def test_nothing_in_common_is_a_problem(tmp_path: Path) -> None:
    a = folder(tmp_path, "a", [run({"x": 1e6})])
    b = folder(tmp_path, "b", [run({"x": 1e6}, CELL | {"tasks": 4})])
    with pytest.raises(Problem, match="a, b: nothing to compare: dup-close") as caught:
        compare([a, b])
    assert caught.value.status == USAGE
    c = folder(tmp_path, "c", [failed()])
    with pytest.raises(Problem, match="every run failed") as caught:
        compare([c])
    assert caught.value.status == COULD_NOT


def test_tables_and_pus_that_differ_are_noted(tmp_path: Path) -> None:
    a = folder(tmp_path, "a", [run({"x": 1e6})])
    other = {"variants": ["x"], "fdsize": 256, "pus": [0, 1]}
    b = folder(tmp_path, "b", [run({"x": 1e6}, setup=other)])
    assert only([a, b])["notes"] == ["table sizes differ: 128 against 256"]


def test_a_total_bought_by_starving_is_flagged(tmp_path: Path) -> None:
    rows = [run({"a": 1e6, "b": 2e6 * x}) for x in CALM]
    for window in rows[2]["windows"]:
        if window["variant"] == "b":
            window["ops"] = [19_000, 1_000]
    item = only([folder(tmp_path, "f", rows)])
    assert item["other"]["starved"] and not item["baseline"]["starved"]
    # three windows
    assert item["notes"] == ["b: a task starves: least 3000 of most 57000"]


def test_two_heaps_are_flagged(tmp_path: Path) -> None:
    speeds = [1.56, 4.05, 1.57, 4.09, 1.55, 4.1, 1.58, 4.0, 1.56, 4.06]
    rows = [run({"a": 1e6, "b": 1e6 * x}) for x in speeds]
    assert only([folder(tmp_path, "f", rows)])["notes"] == [
        "b: runs fall into two heaps"
    ]


def test_calibration_is_asked_for_cell_and_runs(tmp_path: Path) -> None:
    path = in_one(tmp_path, 1.1)
    asked = []

    def threshold(cell: Any, runs: int) -> float:
        asked.append((cell["hold"], runs))
        return 0.2

    assert only([path], threshold=threshold)["verdict"] == "inconclusive"
    assert asked == [("low:64", 5)]
    assert "not calibrated here" in only([path])["text"]


# Differences of the hosts


def test_doubtful_differences_stand_on_top_and_loudly(tmp_path: Path) -> None:
    a = folder(
        tmp_path, "a", [run({"x": 1e6})], cpu__microcode="0x1", limits__ports=[1, 9]
    )
    b = folder(
        tmp_path, "b", [run({"x": 1e6})], cpu__microcode="0x2", limits__ports=[2, 9]
    )
    for fmt in ("text", "markdown", "lkp"):
        text = compare([a, b], fmt=fmt)[0]
        assert text.index("WARNING") < text.index("cpu.microcode: 0x1 against 0x2")
        assert text.index("cpu.microcode") < text.index("limits.ports")
        assert text.index("limits.ports") < text.index("inconclusive")
    found = json.loads(compare([a, b], fmt="json")[0])["differences"]
    assert [(item["key"], item["doubtful"]) for item in found] == [
        ("cpu.microcode", True),
        ("limits.ports", False),
    ]
    assert "cpu.microcode" in compare([a, b], fmt="csv")[0].splitlines()[1]
    stats = compare([a, b], fmt="lkp-stats")[0]
    assert "fdscale.doubtful_differences: cpu.microcode\n" in stats


def test_equal_hosts_raise_no_warning(tmp_path: Path) -> None:
    a = folder(tmp_path, "a", [run({"x": 1e6})])
    b = folder(tmp_path, "b", [run({"x": 1e6})])
    text = compare([a, b])[0]
    assert "WARNING" not in text and "differ," not in text


# Formats


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
        "options": {"kind": "socketpair", "number": 10**9},
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
    dup = CELL | {"workload": "dupfd", "options": {"start": 64}}
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


# The gate


WILD = (0.7, 1.3, 1.0, 0.8, 1.2)


@pytest.mark.parametrize(
    "by,calm,limit,status",
    [
        (1.1, CALM, 0.01, DONE),
        (0.9, CALM, 0.01, ANSWER_NO),
        (0.9, CALM, 0.2, DONE),  # slower, by less than was asked
        (0.995, CALM, 0.01, DONE),
        (1.0, CALM, 0.01, DONE),
        (1.0, WILD, 0.01, INCONCLUSIVE),
        (1.0, WILD, 0.6, DONE),  # too wide to say more, but not slower by 60%
        (0.5, CALM[:4], 0.01, INCONCLUSIVE),  # too few runs
    ],
)
def test_gate(
    tmp_path: Path, by: float, calm: Sequence[float], limit: float, status: int
) -> None:
    path = in_one(tmp_path, by, calm=calm)
    assert compare([path], fail_if_slower=limit)[1] == status
    assert compare([path])[1] == DONE


def test_gate_order(tmp_path: Path) -> None:
    """A no outweighs a failed cell, and that an inconclusive one."""
    other = CELL | {"tasks": 4}
    lost = [failed(CELL | {"tasks": 8})]
    slow = [run({"a": 1e6, "b": 0.9e6 * x}) for x in CALM]
    unsure = [run({"a": 1e6, "b": 1e6 * x}, other) for x in WILD]
    for name, rows, status in (
        ("all", lost + unsure + slow, ANSWER_NO),
        ("two", lost + unsure, COULD_NOT),
        ("one", unsure, INCONCLUSIVE),
    ):
        path = folder(tmp_path, name, rows)
        assert compare([path], fail_if_slower=0.01)[1] == status


def test_gate_between_single_boots_is_inconclusive(tmp_path: Path) -> None:
    made = kernels(tmp_path, [2e6], [1e6])
    assert compare(made, fail_if_slower=0.01)[1] == INCONCLUSIVE


# What the user got wrong


def test_problems_name_the_thing(tmp_path: Path) -> None:
    good = in_one(tmp_path, 1.1)
    cases: list[tuple[list[str], str, str]] = [
        ([], "text", "no folder"),
        ([good], "xml", "format xml: unknown; one of text, markdown, csv, json, lkp"),
        ([str(tmp_path / "none")], "text", "none/results.jsonl: No such file"),
    ]
    for paths, fmt, said in cases:
        with pytest.raises(Problem, match=said) as caught:
            compare(paths, fmt=fmt)
        assert caught.value.status == USAGE


def test_a_torn_last_line_is_passed_over_and_no_other(tmp_path: Path) -> None:
    path = Path(in_one(tmp_path, 1.1)) / "results.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole[:50])
    assert only([str(path.parent)])["n"] == 5
    path.write_text(whole[:50] + "\n" + whole)
    with pytest.raises(Problem, match="results.jsonl:1: not JSON"):
        compare([str(path.parent)])


@pytest.mark.parametrize("rate", [0.0, -1.0, None, "fast"])
def test_a_damaged_row_is_one_line(tmp_path: Path, rate: Any) -> None:
    rows = [run({"a": 1e6, "b": 2e6})]
    for window in rows[0]["windows"]:
        window["rate"] = rate
    with pytest.raises(Problem, match="f: a row of results.jsonl is damaged"):
        compare([folder(tmp_path, "f", rows)])


def test_every_format_takes_every_report(tmp_path: Path) -> None:
    one = [in_one(tmp_path, 1.1)]
    two = kernels(tmp_path, [1e6, 1e6], [2e6])
    for fmt in FORMATS:
        for paths in (one, two):
            text = compare(paths, fmt=fmt)[0]
            assert text.endswith("\n") and not text.endswith("\n\n")
            assert "nan" not in text
