# SPDX-License-Identifier: GPL-2.0-only
"""The shape of the summary, from hand-made runs."""

import re
from dataclasses import replace

import pytest
from made_runs import CELL, HOST, broken, run, window

from bench import figures, summary
from bench.judge import judge, judge_cell
from bench.plan import Cell


def test_broken_runs_give_no_number() -> None:
    """They are counted and named instead."""
    runs = [broken("open: too many open files"), broken("open: too many open files")]
    result = judge(runs)[0]
    assert not result.variants
    assert result.failures == ["open: too many open files (2 runs)"]
    text = summary.summary(runs, HOST, [CELL], 2)
    assert "Failed or refused" in text
    assert "open: too many open files (2 runs)" in " ".join(text.split())


def test_the_summary_reads_in_80_columns() -> None:
    """Verdict words, ratio, what was planned and not measured."""
    other = Cell("open-close", "kernel", "none", "compact", "threads", 2)
    runs = [run(i, 1000 + i, 1500 + i) for i in range(5)]
    text = summary.summary(runs, HOST, [CELL, other], 5, "slow", 2.0)
    assert max(map(len, text.splitlines())) <= 80
    assert "faster" in text and "x1.499" in text and "baseline" in text
    assert "Not measured\n- open-close" in text
    assert "1 comparison; 1 interval excludes 1" in text


def test_many_variants_wrap_with_the_baseline_repeated() -> None:
    """Seven of them: the baseline stands first in each part."""
    names = [f"v{i}" for i in range(7)]
    record = run(0, 1000, 1000)
    record["variants"] = names
    record["windows"] = [window(n, 0, [10, 10]) for n in names]
    table = summary.table(CELL.group(), judge([record]))
    heads = [line.split() for line in table.splitlines() if " v0 " in line]
    assert [h[-4:] for h in heads] == [
        ["v0", "v1", "v2", "v3"],
        ["v0", "v4", "v5", "v6"],
    ]


def test_the_clone_bounds_what_is_called() -> None:
    """A/A differs by 5% each time: 4% more is not called, 50% more is."""
    runs = []
    for number in range(6):
        record = run(number, 1000, 1040)
        record["variants"] = ["slow", "fast", "faster", "slow#clone"]
        for block in range(3):
            record["windows"].append(window("faster", block, [1500] * 2))
            record["windows"].append(window("slow#clone", block, [1050] * 2))
        for w in record["windows"]:
            rates = {"slow": 1000, "fast": 1040}
            w["ops"] = [rates.get(w["variant"], w["ops"][0])] * 2
            w["rate"] = sum(w["ops"]) * 1e3 * (1 + number / 1e4)
        runs.append(record)
    result = judge(runs)[0]
    assert result.threshold == pytest.approx(0.05, abs=1e-6)
    words = {n: j.verdict.word for n, j in result.variants.items() if j.verdict}
    assert words["fast"] == "inconclusive" and words["faster"] == "faster"
    text = summary.summary(runs, HOST, [CELL], 6)
    assert "A/A below 5.0%" in text and "#clone" not in text
    assert "2 comparisons" in text


def test_few_runs_are_no_verdict() -> None:
    """Four runs that all agree are not five."""
    runs = [run(i, 1000, 2000) for i in range(4)]
    text = summary.summary(runs, HOST, [CELL], 4)
    assert "too few runs" in text
    assert "No comparison: none has the 5 runs that it takes." in text
    alone = [run(i, 1000, 2000) | {"variants": ["slow"]} for i in range(5)]
    assert "a kernel without the switch" in summary.summary(alone, HOST, [CELL], 5)


def test_long_names_stay_apart() -> None:
    """Two variants that differ in the middle only are told apart in 80 columns."""
    names = ["first-word-v2+cond-clear", "first-word+cond-clear", "two-level"]
    lines = summary.header(names)
    assert [line.split() for line in lines] == [
        ["first-word-v2+", "first-word+cond-"],
        ["cond-clear", "clear", "two-level"],
    ]


@pytest.mark.parametrize(
    "rate, text",
    [(12.34, "12.34"), (1234, "1.234k"), (12_345_678, "12.35M"), (2e9, "2G")],
)
def test_human(rate: float, text: str) -> None:
    """Four digits."""
    assert summary.human(rate) == text


def test_disturbed_runs_are_kept_and_marked() -> None:
    """Both count; one is named with its reason."""
    quiet, noisy = run(0, 1000, 1100), run(1, 1000, 1100)
    quiet["disturbed"] = []
    noisy["disturbed"] = ["others worked for 1.50 CPUs", "throttle counts rose by 3"]
    (result,) = judge([quiet, noisy])
    assert result.runs == 2
    text = " ".join(summary.summary([quiet, noisy], HOST, [CELL], 2).split())
    assert "Runs that were disturbed (kept): 1 of 2 in dup-close" in text
    assert "(others worked for 1.50 CPUs; throttle counts rose by 3)" in text


def test_the_table_says_what_is_needed_and_what_was_spent() -> None:
    """Ratios of 1.0 and 1.2 in turn: the mean is known to no better than 8%."""
    runs = [run(i, 1000, 1000 + 200 * (i % 2)) for i in range(6)]
    (result,) = judge(runs)
    verdict = result.variants["fast"].verdict
    assert verdict and verdict.word == "inconclusive"
    table = summary.table(CELL.group(), [result])
    (needs,) = [line for line in table.splitlines() if line.startswith(" needs")]
    seconds = needs.split()[1]
    assert needs.split()[1:] == [seconds, "s", "more"] and int(seconds) > 0
    assert f"about {seconds} s more would do" in verdict.text
    assert "cost by tasks: 2: 0.6 s" in table
    few = summary.table(CELL.group(), judge(runs[:3]))
    assert "2 more runs" in few


def test_opposite_signs_are_told_apart() -> None:
    """One cell faster, one slower: counted, never averaged."""
    other = Cell("open-close", "model", "low:64", "compact", "threads", 2, (), 256)
    runs = [run(i, 1000 + i, 1500) for i in range(5)]
    runs += [run(i, 1500, 1000 + i, other) for i in range(5)]
    text = " ".join(summary.summary(runs, HOST, [CELL, other], 5).split())
    assert "1 faster, 1 slower: no mean of them" in text
    assert "too few runs" not in text
    few = " ".join(summary.summary(runs[:9], HOST, [CELL, other], 5).split())
    assert "1 comparison; " in few and "1 more: too few runs." in few
    alone = summary.summary(runs[:5], HOST, [CELL], 5)
    assert "no mean of them" not in alone


def test_roles_are_told_apart() -> None:
    """A task that reads and one that writes: each has its rate, neither starves."""
    runs = [run(i, 1000, 1000) for i in range(3)]
    for one in runs:
        one["setup"]["roles"] = ["read", "write"]
        for w in one["windows"]:
            w["ops"] = [900, 100 if w["variant"] == "slow" else 50]
    judged = judge(runs)[0].variants
    assert judged["slow"].roles["read"].estimate == pytest.approx(900e3)
    assert judged["fast"].roles["write"].estimate == pytest.approx(50e3)
    assert judged["fast"].fairness.jain == pytest.approx(1)
    assert not judged["fast"].fairness.starved
    text = summary.summary(runs, HOST, [CELL], 3)
    assert re.search(r"^  read +900k ±0.0% +900k ±0.0%$", text, re.M)
    assert re.search(r"^ write +100k ±0.0% +50k ±0.0%$", text, re.M)


def test_what_does_not_conform_says_so_in_its_table() -> None:
    runs = [run(i, 100, 110) for i in range(5)]
    why = "does not conform: not the lowest descriptor"
    for record in runs:
        record["setup"]["nonconforming"] = {"fast": why}
    result = judge_cell(CELL, runs)
    assert f"\n  fast {why}\n" in summary.table(CELL.group(), [result])
    assert figures.rates([(2.0, result)])[1].label == f"fast ({why})"
    assert figures.rates([(2.0, result)])[0].label == "slow"


def test_a_table_elsewhere_is_noted() -> None:
    """--table-node: what the driver says of a table that is not known to be there."""
    here, there = run(0, 100, 120), run(1, 100, 120)
    here["setup"] |= {"table_node": 1, "table_there": True}
    assert not summary.notes([judge_cell(CELL, [here])], 1)
    there["setup"] |= {"table_node": 1, "table_there": "pages on another node: 3"}
    (said,) = summary.notes([judge_cell(CELL, [here, there])], 2)
    assert said.startswith("Not known to be on its --table-node (pages on another")


def test_a_late_start_of_one_task_is_not_called_apart() -> None:
    for tasks, said in ((1, "began over 1% late"), (2, "tasks started over 1% apart")):
        runs = [run(n, 1000, 1100, replace(CELL, tasks=tasks)) for n in range(5)]
        for one in runs:
            one["windows"][0]["skewed"] = True
        found = "\n".join(summary.notes(judge(runs), 5))
        assert said in found and found.count("over 1%") == 1
