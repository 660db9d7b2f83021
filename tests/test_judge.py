# SPDX-License-Identifier: GPL-2.0-only
"""What is judged of hand-made runs: ratios, intervals, fairness."""

import math

import pytest
from made_runs import run

from bench.judge import judge


def test_ratio_is_taken_within_blocks() -> None:
    """Each run is 20% faster whatever else happened: the interval has no width."""
    runs = [run(i, base, int(base * 1.2)) for i, base in enumerate((1000, 3000, 500))]
    judged = judge(runs)[0].variants["fast"]
    assert judged.ratio
    assert judged.ratio.estimate == pytest.approx(1.2)
    assert judged.ratio.low == pytest.approx(1.2) == judged.ratio.high


def test_interval_over_runs_by_hand() -> None:
    """Ratios 1.1 and 1.21 over two runs: on logs, l and 2l with l = ln 1.1.

    Mean 1.5 l, deviation l / sqrt(2), standard error l / 2, t(1) = 12.706: the
    bounds are exp(1.5 l -+ 6.353 l).
    """
    runs = [run(0, 1000, 1100), run(1, 1000, 1210)]
    ratio = judge(runs)[0].variants["fast"].ratio
    step = math.log(1.1)
    assert ratio and ratio.n == 2
    assert ratio.estimate == pytest.approx(math.exp(1.5 * step))
    assert ratio.low == pytest.approx(math.exp((1.5 - 6.3531) * step), rel=1e-4)
    assert ratio.high == pytest.approx(math.exp((1.5 + 6.3531) * step), rel=1e-4)


def test_fairness_is_over_all_windows() -> None:
    """One task did 3 of 4 operations: shares 1.5 and 0.5, Jain 16 / (2 x 10)."""
    record = run(0, 1000, 1000)
    for w in record["windows"]:
        w["ops"] = [3000, 1000]
    judged = judge([record])[0].variants["slow"]
    assert judged.fairness.least == pytest.approx(0.5)
    assert judged.fairness.most == pytest.approx(1.5)
    assert judged.fairness.jain == pytest.approx(0.8)
