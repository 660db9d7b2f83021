# SPDX-License-Identifier: GPL-2.0-only
"""Calibration on simulated runs of a known spread, and what is kept of it."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import CELL, HOST, run

from bench import calibrate, calibration, compare_rows, drive, stats, summary
from bench.calibrate import Calibrate, Trials
from bench.calibration import Calibration, Calibrations
from bench.host import read_host
from bench.judge import judge
from bench.problem import Problem
from bench.store import load

SPREAD = 0.01
KEPT = Calibration(
    hostname="host/1",
    release="6.18",
    backend="model",
    mode="threads",
    tasks=2,
    time=1.75e9,
    runs=100,
    run_seconds=1.0,
    bias=0.0,
    spread=SPREAD,
    resolves=((5.0, 0.02), (30.0, 0.007)),
)
OF_KEPT = {"hostname": "host/1", "kernel": {"release": "6.18"}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "fdscale"


def trials(count: int, bias: float = 0.0, size: int = 5000) -> Trials:
    """From runs whose logs are normal."""
    pool = np.random.default_rng(1).normal(bias, SPREAD, size)
    return Trials(pool, KEPT, count, 2)


@pytest.mark.parametrize("precision", [0.0001, 0.005, 0.01])
@pytest.mark.parametrize("runs", [5, 11, 12, 40])
@pytest.mark.parametrize("shift", [0.0, 0.004, -0.008])
def test_a_trial_ends_as_a_sweep_does(
    runs: int, precision: float, shift: float
) -> None:
    """All at once gives what stop_now and verdict give run by run."""
    some = trials(60)
    expected = []
    for logs in some.draw(runs):
        ratios = np.exp(logs + shift)
        for size in range(5, runs + 1):
            if stats.stop_now(ratios[:size], precision):
                ratios = ratios[:size]
                break
        n = ratios.size
        found = stats.verdict(stats.t_interval(ratios), KEPT.threshold(n), n)
        expected.append({"faster": 1, "slower": -1}.get(found.word, 0))
    assert some.signs(runs, precision, shift).tolist() == expected


def test_stretches_are_consecutive() -> None:
    """What drifts stays together: places go up by one, round the end of the pool."""
    some = Trials(np.arange(7.0), KEPT, 50, 3)
    drawn = some.draw(12)
    assert drawn.shape == (50, 12)
    for row in drawn:
        for at in range(1, 12):
            if at % calibrate.STRETCH:
                assert row[at] == (row[at - 1] + 1) % 7
    assert {row[0] for row in drawn} == set(range(7))


def test_smallest_effect_by_hand() -> None:
    """At 30 runs of spread 1%: found when 1.645 errors beyond t(29) = 2.045 of them.

    The error is 1% / sqrt(30) = 0.183%, so (2.045 + 1.645) x 0.183% = 0.67%; the
    spread of a sample's own deviation adds a little. A fourth of it at 16 times the
    runs.
    """
    some = trials(2000)
    at_30 = some.smallest(30.0)
    assert at_30 is not None and 0.0064 < at_30 < 0.0076
    at_480 = some.smallest(480.0)
    assert at_480 is not None and 0.22 < at_480 / at_30 < 0.28


def test_no_trial_is_longer_than_the_pool() -> None:
    """100 runs of a second each; of 4, what is held is the only time."""
    some = Trials(np.zeros(100), KEPT, 10, 3)
    assert some.times() == [5.0, 10.0, 20.0, 30.0, 60.0]
    (line, *_) = calibrate.power_series(some, None, 0.0)
    assert [point[0] for point in line.points] == some.times()
    assert Trials(np.zeros(4), KEPT, 10, 3).times() == [4.0]


def test_power_by_hand() -> None:
    """Nothing is found in 4 runs; half where the effect is the interval's half-width.

    At 300 runs that is 1.968 x 1% / sqrt(300) = 0.1136%.
    """
    some = trials(2000)
    assert some.power(4.0, 0.5) == 0
    assert some.smallest(4.0) is None
    half = some.power(300.0, math.expm1(0.001136))
    assert 0.44 < half < 0.56
    powers = [some.power(30.0, effect) for effect in (0.001, 0.004, 0.007, 0.02)]
    assert powers == sorted(powers) and powers[-1] == 1


def test_nothing_is_called_5_times_in_100() -> None:
    """A/A with the stopping rule on; a bias that A/A has not shown is called."""
    assert sum(trials(2000).called(20.0)) / 2000 < 0.06
    faster, slower = trials(500, bias=0.02).called(20.0)
    assert faster > 475 and slower == 0


class Simulated:
    """In the driver's place: runs of spread 0.5%; the clone pays what is injected."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)
        self.now = 0.0

    def monotonic(self) -> float:
        """Time passes while a run is measured only: no host is too busy for it."""
        return self.now

    def time(self) -> float:
        return 1e9

    def ask(self, *words: str) -> dict[str, Any]:
        return {"kernel": "merged-6.13"}

    def run_cell(self, cell: Any, variants: Any, *rest: Any) -> dict[str, Any]:
        cost = rest[-1]
        self.now += 0.4
        rate = 1e6 * math.exp(self.rng.normal(0, 0.005)) / (1 + cost)
        windows = [
            {
                "variant": variant,
                "block": block,
                "ns": 10**6,
                "ops": [int(value / 1000)],
                "rate": value,
                "switches": 0,
                "skewed": False,
                "redone": 0,
            }
            for block in range(3)
            for variant, value in zip(variants, (1e6, rate))
        ]
        return {
            "schema": 1,
            "type": "run",
            "time": 0.0,
            "run": 0,
            "cell": cell.as_dict(),
            "variants": variants,
            "command": [],
            "setup": {"fdsize": 128},
            "windows": windows,
            "error": None,
            "disturbed": [],
            "recorded_ns": 6 * 10**6,
            "seconds": 0.4,
        }


def simulated(monkeypatch: pytest.MonkeyPatch, inject: float = 0.0) -> Calibrate:
    """A calibration of a hundred simulated runs."""
    fake = Simulated()
    monkeypatch.setattr(drive, "ask", fake.ask)
    monkeypatch.setattr(drive, "run_cell", fake.run_cell)
    monkeypatch.setattr(calibrate, "time", fake)
    monkeypatch.setattr(calibrate, "AFTER", 0.0)
    return Calibrate("kernel", "threads", 1, 200, 40.0, inject, 7, True)


def test_an_injected_cost_is_found(
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """1.2% is 17 errors of the mean of the 50 runs that 20 s hold."""
    out = tmp_path / "out"
    assert simulated(monkeypatch, 0.012).run(out) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "found in 200 of 200 trials" in text and "called faster in 0" in text
    assert "resampled" in text and "This host resolves" in text
    assert (out / "summary.txt").read_text().split() == text.split()
    assert max(map(len, (out / "summary.txt").read_text().splitlines())) <= 80
    assert {p.name for p in (out / "figures").iterdir()} == {
        "power.dat",
        "power.png",
        "power.svg",
    }
    assert "1.2% injected" in (out / "figures" / "power.dat").read_text()
    kinds = [record["type"] for record in load(out)]
    assert kinds.count("run") == kinds.count("injected") >= 20
    (kept,) = home.iterdir()
    data = json.loads(kept.read_text())
    assert data["backend"] == "kernel" and data["run_seconds"] == pytest.approx(0.4)
    assert 0.003 < data["spread"] < 0.007
    # compare sees the runs of A/A only.
    assert len(compare_rows.read_folder(str(out)).rows) == kinds.count("run")


def test_disturbed_runs_are_told_of(
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """How many of them, and with most so, wherever the calibration is named."""
    work = simulated(monkeypatch)
    whole = drive.run_cell

    def busy(*words: Any) -> dict[str, Any]:
        return whole(*words) | {"disturbed": ["load 5.0"]}

    monkeypatch.setattr(drive, "run_cell", busy)
    assert work.run(tmp_path / "out") == 0
    (kept,) = home.iterdir()
    runs = json.loads(kept.read_text())["runs"]
    text = " ".join(capsys.readouterr().out.split())
    assert f"Disturbed: {runs} of {runs} runs" in text
    assert re.search(r"calibrated \S+ while disturbed\)", text)
    half = replace(KEPT, disturbed=50)
    assert "while disturbed" not in half.sentence()
    assert "while disturbed" in replace(half, disturbed=51).sentence()


def test_too_few_runs_are_no_calibration(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said with the number, and nothing is kept."""
    work = simulated(monkeypatch)
    work.max_time = 0.0
    with pytest.raises(Problem, match="0 runs.*20 are needed") as caught:
        work.run(tmp_path / "out")
    assert caught.value.status == 3 and not home.exists()


def test_failed_runs_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every third fails after its start; what is refused ends it at once."""
    work = simulated(monkeypatch)
    whole = drive.run_cell
    error = {"status": 3, "text": "a window without an operation"}
    calls = []

    def failing(*words: Any) -> dict[str, Any]:
        record = whole(*words)
        calls.append(record)
        if len(calls) % 3:
            return record
        return record | {"error": error, "windows": [], "setup": {}}

    monkeypatch.setattr(drive, "run_cell", failing)
    assert work.run(tmp_path / "out") == 0
    text = " ".join(capsys.readouterr().out.split())
    failed = len(calls) // 3
    assert f"Left out: {failed} failed runs: a window without" in text
    assert f"Measured {len(calls) - failed} runs" in text

    def refusing(*words: Any) -> dict[str, Any]:
        refusal = {"status": 2, "text": "task 2: no PU left"}
        return whole(*words) | {"error": refusal, "windows": [], "setup": None}

    monkeypatch.setattr(drive, "run_cell", refusing)
    with pytest.raises(Problem, match="no PU left") as caught:
        simulated_refusal = Calibrate("model", "threads", 1, 20, 9.0, 0.0, 1, True)
        simulated_refusal.run(tmp_path / "refused")
    assert caught.value.status == 2


def test_kept_and_recalled(home: Path) -> None:
    """By host, release, backend, mode and tasks, and for no other."""
    path = calibration.keep(KEPT)
    assert Path(path).parent == home
    assert calibration.recall("host/1", "6.18", "model", "threads", 2) == KEPT
    for other in (
        ("host/1", "6.19", "model", "threads", 2),
        ("host/1", "6.18", "kernel", "threads", 2),
        ("host/1", "6.18", "model", "processes", 2),
        ("host/1", "6.18", "model", "threads", 3),
        ("host-1", "6.18", "model", "threads", 2),  # of the same file name
    ):
        assert calibration.recall(*other) is None
    known = Calibrations(OF_KEPT)
    # 1.96 x 1% / sqrt(25)
    assert known.threshold(CELL, 25) == pytest.approx(math.expm1(0.00392), rel=1e-3)
    assert "resolves 0.7% in 30 s" in known.resolves([CELL, CELL])
    assert known.resolves([CELL, CELL]).count("resolves") == 1


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 1}', "\x00"])
def test_a_damaged_file_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the sweep goes on without."""
    path = Path(calibration.keep(KEPT))
    path.write_text(text)
    assert calibration.recall("host/1", "6.18", "model", "threads", 2) is None
    said = capsys.readouterr().err
    assert str(path) in said and len(said.splitlines()) == 1


def test_a_home_that_cannot_be_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line; the calibration is still told."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert simulated(monkeypatch).run(tmp_path / "out") == 0
    said = capsys.readouterr()
    assert re.fullmatch(r"run.py: calibration not kept: .*file.*\n", said.err)
    assert "This host resolves" in said.out and "Kept in" not in said.out


def test_a_relative_data_home_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the XDG specification has it."""
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert calibration.folder() == tmp_path / ".local/share/fdscale"


def test_verdicts_use_what_was_kept() -> None:
    """4% more within an A/A of 1% is called, within one of 100% it is not."""
    runs = [run(i, 1000, 1040 + i) for i in range(6)]
    words = []
    for bias in (0.01, 1.0):
        kept = replace(KEPT, bias=bias)
        calibration.keep(kept)
        (result,) = judge(runs, "", Calibrations(OF_KEPT).threshold)
        assert result.threshold == pytest.approx(kept.threshold(6))
        verdict = result.variants["fast"].verdict
        assert verdict and "not calibrated" not in verdict.text
        words.append(verdict.word)
    assert words == ["faster", "inconclusive"]
    (alone,) = judge(runs)
    assert alone.threshold is None
    host = HOST | {"resolves": Calibrations(OF_KEPT).resolves([CELL])}
    assert "resolves 0.7% in 30 s" in summary.summary(runs, host, [CELL], 6)


def test_compare_uses_it_inside_one_folder(tmp_path: Path) -> None:
    """And not between folders, of which it says nothing."""
    calibration.keep(KEPT)
    runs = [run(i, 1000, 1040 + i) for i in range(6)]
    lines = [json.dumps(record) + "\n" for record in runs]
    (tmp_path / "results.jsonl").write_text("".join(lines))
    host = read_host()
    host["hostname"], host["kernel"]["release"] = "host/1", "6.18"
    (tmp_path / "host.json").write_text(json.dumps(host))
    folder = compare_rows.read_folder(str(tmp_path))
    one = calibration.threshold_in([folder], None)
    assert one(CELL.as_dict(), 6) == pytest.approx(KEPT.threshold(6))
    two = calibration.threshold_in([folder, folder], None)
    assert two(CELL.as_dict(), 6) is None
