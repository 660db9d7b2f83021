# SPDX-License-Identifier: GPL-2.0-only
"""compare: what is compared with what, and the gate's exit statuses."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_folders import CALM, CELL, failed, folder, in_one, kernels, run

from bench.compare import compare
from bench.problem import ANSWER_NO, COULD_NOT, DONE, INCONCLUSIVE, USAGE, Problem


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
    # nor do five runs of one boot give the rate any bounds
    assert item["other"]["runs"] == 5
    assert item["baseline"]["rate_low"] is None
    assert item["other"]["rate_low"] is None


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


def test_a_run_without_a_window_is_a_failed_one(tmp_path: Path) -> None:
    rows = [run({"a": 1e6, "b": 1e6}), run({"a": 1e6, "b": 1e6}, windows=[])]
    text = compare([folder(tmp_path, "f", rows)])[0]
    assert "Failed runs, left out: 1." in text
    assert ", 1 run," in text


def test_a_window_that_stood_still_spoils_its_run(tmp_path: Path) -> None:
    rows = [run({"a": 1e6, "b": 1e6}) for _ in range(3)]
    rows[1]["windows"][2]["rate"] = 0.0
    text = compare([folder(tmp_path, "f", rows)])[0]
    assert "Failed runs, left out: 1." in text
    assert ", 2 runs," in text


def test_a_variant_alone_is_no_failure(tmp_path: Path) -> None:
    # A kernel without the switch has one variant; the model beside it has several.
    alone = CELL | {"backend": "kernel"}
    rows = [run({"a": 1e6, "b": 1.1e6 * x}) for x in CALM]
    path = folder(tmp_path, "f", rows + [run({"merged-6.13": 1e6}, alone)])
    text, status = compare([path], fail_if_slower=0.01)
    assert status == DONE
    want = "dup-close, kernel, low:64, compact, 2 threads, table 128: merged-6.13 only."
    assert f"Nothing beside it: {want}" in " ".join(text.split())
    with pytest.raises(
        Problem, match="nothing to compare: dup-close.*merged-6.13 only"
    ):
        compare([folder(tmp_path, "g", [run({"merged-6.13": 1e6}, alone)])])


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
    a = folder(tmp_path, "a", [run({"x": 1e6})], kernel__boot_id="one")
    b = folder(tmp_path, "b", [run({"x": 1e6})], kernel__boot_id="other")
    text = compare([a, b])[0]
    assert "WARNING" not in text and "differ," not in text


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
        (1.1, CALM[:4], 0.01, INCONCLUSIVE),
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
    with pytest.raises(Problem, match="results.jsonl: line 1: not a result"):
        compare([str(path.parent)])


@pytest.mark.parametrize("rate", [-1.0, None, "fast"])
def test_a_damaged_row_is_one_line(tmp_path: Path, rate: Any) -> None:
    rows = [run({"a": 1e6, "b": 2e6})]
    for window in rows[0]["windows"]:
        window["rate"] = rate
    with pytest.raises(Problem, match=r"f/results.jsonl: line 1: windows\.0\.rate"):
        compare([folder(tmp_path, "f", rows)])
