# SPDX-License-Identifier: GPL-2.0-only
"""Claims as data, the verdicts on them, and `./run.py reproduce` as it is used."""

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from bench import counted, drive, kernel_build, reproduce
from bench.claims import Finding, claim_verdict, judge_direction, judge_size
from bench.claims import load_claims, question_verdict, settled
from bench.kernel_build import Kernel
from bench.kernel_count import Count
from bench.plan import CONFIG, Cell, expand
from bench.problem import Problem
from bench.findings import counted_finding, matches, pairs_of
from bench.reproduce import Answer, exit_status, lacking
from bench.stats import Interval

CASES = load_claims()


def test_every_row_of_the_threads_is_there() -> None:
    """What claims.md lists."""
    assert set(CASES) == {
        *("linus-dup2-churn", "eric-opensock", "kara-first-64", "first-vs-next"),
        *("yuma-stale-hint", "yuma-series", "guzik-cacheline", "guzik-lower-limit"),
        *("lkp-dup1", "lkp-dup1-threads", "lkp-open3", "hansen-write1"),
        *("yuan-three-level", "any-fd", "cna-open1-shape", "expand-stall"),
    }


def test_no_cell_of_a_claim_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that has the PUs: a cell that no host takes would settle nothing."""
    monkeypatch.setenv("HWLOC_SYNTHETIC", "pack:4 [numa] core:40 pu:2")
    topology, listing = drive.ask("topology"), drive.ask("list")
    for name, case in CASES.items():
        for part in case["settle"]:
            if part["by"] not in ("model", "kernel") or "max-time" not in part:
                continue
            plan = reproduce.plan_of(part, quick=True)
            cells = expand(plan, topology, listing)
            forms = part["variant"] if part["by"] == "model" else [listing["kernel"]]
            words = [drive.command(c, forms, plan, 1) for c in cells]
            for cell, said in zip(cells, drive.check(words)):
                assert said.get("status") != 2, (name, str(cell), said)


def test_path_length_is_no_evidence_where_the_lock_is() -> None:
    """A case about a lock's many waiters is not settled by instructions."""
    for name, case in CASES.items():
        locked = any(
            part["by"] == "kernel"
            and part["mode"] == ["threads"]
            and part.get("needs", {}).get("pus", 0) > 2
            for part in case["settle"]
        )
        for part in case["settle"]:
            if locked and part["by"] == "instructions":
                assert not any(f.get("settles", True) for f in part["find"]), name


WRONG = [
    # case, what is there, what instead, the key that is named, the reason, its line
    ("kara-first-64", 'who = "Jan Kara"\n', "", "", "'who' is a required", "[case.k"),
    ("kara-first-64", 'when = "25', "when = 2024 #", ".when", "2024 is not", "when"),
    ("kara-first-64", "who =", "whom =", ".whom", "'whom' was", "whom = "),
    ("guzik-lower-limit", '"rules"', '"rule"', ".settle.by", "'rule' is not", "by = "),
    ("eric-opensock", "size = 0.888", "size = 0", ".settle.find.size", "0 is", "size"),
    ("eric-opensock", "size = 0.888", "", ".settle.find.what", "or size", 'what = "48'),
    ("eric-opensock", "{ pus =", "{ pu =", ".settle.needs.pu", "'pu' was", "needs = "),
    (
        *("lkp-dup1", 'ask = "patch-1"', 'ask = "patch-7"', ".settle.find.ask"),
        *("'patch-7' is not among", "ask = "),
    ),
    ("first-vs-next", "rows = [", "rowz = [", ".settle.rowz", "'rowz' was", "rowz = "),
    (
        *("yuma-stale-hint", 'hold = ["low:66"]\n', "", ".settle"),
        *("'hold' is a required", "[[case.yuma-stale-hint.settle]]"),
    ),
]


@pytest.mark.parametrize("case, old, new, key, why, line", WRONG)
def test_wrong_entries(
    tmp_path: Path, case: str, old: str, new: str, key: str, why: str, line: str
) -> None:
    """Refused with the file, the line of the key or of its table, and the reason."""
    text = (CONFIG / "claims.toml").read_text()
    at = text.index(old, text.index(f"[case.{case}]"))
    path = tmp_path / "claims.toml"
    path.write_text(text[:at] + new + text[at + len(old) :])
    with pytest.raises(Problem) as refused:
        load_claims(path)
    said = str(refused.value)
    assert refused.value.status == 2
    assert f"claims {path}: line " in said and f": case.{case}{key}: " in said
    assert why in said
    number = int(re.findall(r"line (\d+):", said)[0])
    assert path.read_text().splitlines()[number - 1].startswith(line)
    # Of many equal lines, the one that was changed, or its table above.
    assert 0 <= text[:at].count("\n") + 1 - number <= 8


@pytest.mark.parametrize(
    "word, expect, claimed, verdict",
    [
        ("faster", "", 1.13, "reproduced"),
        ("slower", "", 1.13, "contradicted"),
        ("slower", "", 0.9, "reproduced"),
        ("no difference beyond 1.5%", "", 1.13, "contradicted"),
        ("no difference beyond 1.5%", "", 1.012, "inconclusive"),
        ("inconclusive", "", 1.13, "inconclusive"),
        ("no difference beyond 1.5%", "not faster", None, "reproduced"),
        ("slower", "not faster", None, "reproduced"),
        ("faster", "not faster", None, "contradicted"),
        ("faster", "faster", None, "reproduced"),
        ("faster", "", None, ""),
    ],
)
def test_direction(word: str, expect: str, claimed: float | None, verdict: str) -> None:
    """A word of ours against what was claimed."""
    assert judge_direction(word, expect, claimed) == verdict


@pytest.mark.parametrize(
    "low, high, claimed, verdict",
    [
        (1.08, 1.20, 1.13, "reproduced"),
        (1.01, 1.05, 1.13, "contradicted"),
        (1.30, 1.50, 1.13, "contradicted"),
        (1.05, 1.20, 1.13, "inconclusive"),
        (28.7, 39.8, 50.0, "reproduced"),
        (5.0, 9.0, 50.0, "contradicted"),
        (0.93, 0.96, 0.888, "inconclusive"),
        (1 / 1.2, 1 / 1.1, 0.888, "reproduced"),
        (math.nan, math.nan, 1.13, "inconclusive"),
    ],
)
def test_size(low: float, high: float, claimed: float, verdict: str) -> None:
    """Half the claimed effect to twice it, in its own direction."""
    assert judge_size(Interval((low + high) / 2, low, high, 5), claimed) == verdict


def finding(**words: Any) -> Finding:
    """One, of a model's cell that settles."""
    facts: dict[str, Any] = {"what": "a", "where": "", "by": "model"}
    facts |= {"settles": True, "headline": True}
    return Finding(**(facts | words))


def test_case_verdicts() -> None:
    """Direction and size apart; what has no cell here says why; signs are kept."""
    yes = finding(settles=True, headline=True, direction="reproduced", word="faster")
    no = finding(settles=True, headline=True, direction="contradicted", word="slower")
    lack = finding(settles=True, headline=True, lack="needs 160 PUs (here: 2)")
    aside = finding(settles=False, headline=True, word="faster")
    assert claim_verdict([yes, aside]) == "reproduced"
    assert claim_verdict([yes, no]) == "contradicted in 1 of 2, reproduced in 1 of 2"
    assert claim_verdict([lack, aside]) == "not testable here: needs 160 PUs (here: 2)"
    sized = finding(
        settles=True, headline=True, direction="reproduced", size="contradicted"
    )
    assert claim_verdict([sized]) == "direction reproduced; size contradicted"
    assert question_verdict([yes, no]) == "model: faster in 1, slower in 1"
    counted = finding(by="instructions", direction="reproduced", size="reproduced")
    elsewhere = finding(by="kernel", lack="needs 256 PUs (here: 2)")
    assert claim_verdict([elsewhere, counted]) == (
        "kernel: not testable here: needs 256 PUs (here: 2); "
        "instructions: direction reproduced, size reproduced"
    )
    more = [
        finding(by="instructions", word="slower", ratio=Interval(594 / n, 1, 1, 1))
        for n in (594, 597, 600)
    ]
    assert question_verdict(more[1:]) == "instructions: longer by 0.5% to 1.0%"
    assert question_verdict(more[:2]) == (
        "instructions: the same in 1, longer by 0.5% in 1"
    )
    same = [
        finding(settles=True, headline=True, word=f"no difference beyond {x}%")
        for x in (1.1, 1.9)
    ]
    assert question_verdict(same) == "model: no difference beyond 1.9%"


def test_numbers_of_a_table() -> None:
    """Those of one name by what tells them apart; one run is no exact count."""
    case = CASES["kara-first-64"]
    known = Interval(1.02, 1.01, 1.03, 5)
    few = Interval(0.9, math.nan, math.nan, 1)
    count = Interval(0.99, 0.99, 0.99, 1)
    text = "longer: 600 against 594 instructions, +1.0%"
    places = ("dup-close, model, 1 thread", "dup-close, model, 2 threads")
    found = [finding(where=w, ratio=r) for w, r in zip(places, (known, few))]
    found.append(finding(by="instructions", ratio=count, text=text))
    assert Answer("x", case, found).ours == [
        "model, a (1 thread): +2.00% [+1.00%, +3.00%]",
        "model, a (2 threads): -10.0%, too few runs",
        f"instructions, a: {text}",
    ]


def test_exit_status() -> None:
    """125 when all are inconclusive, 3 when a cell failed, else 0."""
    unsure = finding(settles=True, headline=True, word="inconclusive")
    sure = finding(settles=True, headline=True, word="faster")
    failed = finding(settles=True, headline=True, lack="failed: open", fault=True)
    assert not settled([unsure]) and settled([unsure, sure])

    def status(*findings: Finding) -> int:
        return exit_status([Answer("x", {"kind": "question"}, [f]) for f in findings])

    assert status(unsure) == 125 and status(unsure, sure) == 0
    assert status(sure, failed) == 3


def test_what_a_host_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Named; nothing where it has all."""
    needs = {"pus": 160, "switch": True}
    assert lacking(needs, 160, True) == ""
    assert lacking(needs, 2, True) == "needs 160 PUs (here: 2)"
    assert "160 PUs" in lacking(needs, 2, False) and "switch" in lacking(
        needs, 2, False
    )
    monkeypatch.setattr(reproduce, "SHM", tmp_path / "no")
    assert "tmpfs" in lacking({"tmpfs": True}, 2, False)


CELL = Cell("w", "kernel", "none", "compact", "threads", 1, (("file", "a"),))


def run(number: int, rates: list[float], ops: list[int]) -> dict[str, Any]:
    """A run of one variant, its windows a second long."""
    windows = [
        {"variant": "v", "block": i, "ns": 10**9, "ops": ops, "rate": r}
        for i, r in enumerate(rates)
    ]
    setup = {"roles": ["read", "write"]}
    return {"run": number, "variants": ["v"], "setup": setup, "windows": windows}


def test_ratio_between_cells_is_by_round() -> None:
    """Runs of one round are paired; a round that one of them lacks is left out."""
    there = replace(CELL, options=(("file", "b"),))
    cells = {
        CELL: [run(0, [200.0], [150, 50]), run(1, [90.0], [80, 10])],
        there: [run(1, [30.0], [20, 10]), run(2, [1.0], [1, 0])],
    }
    find = {"what": "a over b", "over": {"file": "b"}}
    assert pairs_of(cells, CELL, find) == pytest.approx([3.0])
    assert pairs_of(cells, CELL, find | {"role": "read"}) == pytest.approx([4.0])
    assert matches(CELL, {"file": "a", "tasks": "most"}, 1)
    assert not matches(CELL, {"file": "b"}, 1)


def test_counts_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was counted once is not counted again; fewer instructions are faster."""
    words = {"tree": "stock-6.12", "release": "6.12.1", "flavour": "direct"}
    kernel = Kernel(tmp_path, words)
    calls = []

    def count(
        _: Kernel, variants: list[str], rows: list[str]
    ) -> tuple[list[Count], bool]:
        calls.append((variants, rows))
        return [Count(rows[0], v, 600.0 + len(v), 10.0) for v in variants], True

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_build, "built", lambda *_: kernel)
    monkeypatch.setattr(counted.kernel_count, "count", count)
    wanted = [("dup-close@none", "two-level"), ("dup-close@none", "one-level-")]
    known = counted.counts(wanted)
    assert counted.counts(wanted) == known and len(calls) == 1
    find = {
        "what": "x",
        "ask": "two-level",
        "against": "one-level-",
        "expect": "faster",
    }
    one = counted_finding(find, "dup-close@none", known)
    assert one.word == "faster" and one.direction == "reproduced"
    assert "609 against 610 instructions, -0.2%" in one.text


def test_reproduce_is_told_and_kept(run_py: Run, tmp_path: Path) -> None:
    """The claim, ours, the verdict; the list has it afterwards; no clone is shown."""
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "FDSCALE_CACHE": str(tmp_path)}
    words = ("guzik-lower-limit", "guzik-cacheline", "lkp-open3", "--quick", "-q")
    done = run_py("reproduce", *words, env=env)
    assert done.returncode in (0, 125), done.stderr
    text = " ".join(done.stdout.split())
    assert "Mateusz Guzik, 15 June 2024" in text
    assert "emfile-lowered-limit is broken" in text
    assert "Verdict: reproduced" in text
    assert "#clone" not in text
    if len(os.sched_getaffinity(0)) < 224:
        assert "Verdict: not testable here: needs 224 PUs" in text
    assert "the kernel lab is not built" in text
    assert re.search(r"split lines over stock: (faster|slower|no diff|inconc)", text)
    assert max(map(len, done.stdout.splitlines())) <= 80
    listed = " ".join(run_py("reproduce", env=env).stdout.split())
    assert "last: reproduced (20" in listed and "last: not tried here" in listed


def test_reproduce_for_a_page_and_for_programs(run_py: Run, tmp_path: Path) -> None:
    """A row a claim; the same numbers unrounded."""
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "FDSCALE_CACHE": str(tmp_path)}
    done = run_py("reproduce", "guzik-lower-limit", "--format", "markdown", env=env)
    assert done.stdout.splitlines()[0] == "| case | claimed | ours | verdict |"
    assert "| guzik-lower-limit (Mateusz Guzik) | a broken rule |" in done.stdout
    done = run_py("reproduce", "guzik-lower-limit", "--format", "json", env=env)
    case = json.loads(done.stdout)["cases"][0]
    assert case["verdict"] == "reproduced" and len(case["findings"]) == 3
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    for folder, why in (("old", "not empty"), ("old/file", "File exists")):
        words = ("guzik-lower-limit", "--out", str(tmp_path / folder))
        done = run_py("reproduce", *words, env=env)
        assert done.returncode == 2 and not done.stdout and why in done.stderr
    done = run_py("reproduce", "--all", "guzik-lower-limit")
    assert done.returncode == 2 and "--all" in done.stderr


def test_the_map_of_a_case(tmp_path: Path) -> None:
    """Who is faster where; what is not told apart is not sure."""
    case = CASES["first-vs-next"]
    part = next(p for p in case["settle"] if "map" in p)
    answer = Answer("first-vs-next", case)
    told = [("dup-close none", 1, 1.004, "no difference beyond 0.9%")]
    told += [("dup-close low:64", n, 0.8, "slower") for n in (1, 2, reproduce.MAPPED)]
    for row, column, ratio, word in told:
        one = finding(settles=False, headline=True, word=word)
        one = replace(one, ratio=Interval(ratio, ratio, ratio, 5))
        reproduce.square(answer, part, column, row, one)
    assert [(s.winner, s.sure) for s in answer.squares] == [("", False)] + 3 * [
        ("next_fd-word+cond-clear", True)
    ]
    drawn = reproduce.draw(answer, tmp_path)
    text = drawn[0].read_text(encoding="utf-8")
    assert '0 0 0 0 "same"' in text
    for label in ("model, 1 task", "model, 2 tasks", "instructions, 1 task"):
        assert f'"{label}"' in text
