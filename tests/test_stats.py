# SPDX-License-Identifier: GPL-2.0-only
"""The statistics: hand-worked values, and against a naive oracle."""
from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from bench import stats
from bench.stats import Interval, Verdict


RATES = st.floats(min_value=1e-3, max_value=1e9)


def interval_of(logs: Sequence[float]) -> Interval:
    """The interval of one-window runs with these log rates."""
    return stats.rate_interval([[math.exp(x)] for x in logs])


# Hand-worked values


def test_t_interval_by_hand() -> None:
    # Logs 0.1 0.2 0.3: mean 0.2, deviation sqrt((0.01 + 0 + 0.01) / 2) = 0.1,
    # standard error 0.1 / sqrt(3) = 0.057735; t(0.975, 2) = 4.302653 (tables);
    # half width 0.248414.
    got = interval_of([0.1, 0.2, 0.3])
    assert got.n == 3
    assert math.log(got.estimate) == pytest.approx(0.2)
    assert math.log(got.low) == pytest.approx(0.2 - 0.248414, abs=1e-6)
    assert math.log(got.high) == pytest.approx(0.2 + 0.248414, abs=1e-6)
    # exp(0.248414) = 1.28199
    assert got.half_width_percent == pytest.approx(28.199, abs=1e-2)


def test_ratio_interval_by_hand() -> None:
    # Two runs of three blocks. Ratios within blocks: 1.1 1.2 1.3 and 1.0 1.1 9.9
    # (a disturbed one); three values: the middle one of each run, 1.2 and 1.1.
    # Logs 0.182322 and 0.095310: mean 0.138816; deviation 0.087011 / sqrt(2) =
    # 0.061526; error 0.061526 / sqrt(2) = 0.043506; t(0.975, 1) = 12.7062.
    runs = [
        [(110.0, 100.0), (24.0, 20.0), (13.0, 10.0)],
        [(100.0, 100.0), (22.0, 20.0), (99.0, 10.0)],
    ]
    got = stats.ratio_interval(runs)
    assert got.estimate == pytest.approx(math.sqrt(1.2 * 1.1))
    assert math.log(got.low) == pytest.approx(0.138816 - 12.7062 * 0.043506, abs=1e-5)
    assert math.log(got.high) == pytest.approx(0.138816 + 12.7062 * 0.043506, abs=1e-5)
    assert got.n == 2


def test_a_run_is_located_on_logs() -> None:
    # 1 and 100: 10, as far from either; the plain mean would be 50.5.
    assert stats.run_rate([1.0, 100.0]) == pytest.approx(10)
    assert stats.run_ratio([(1.0, 1.0), (300.0, 3.0)]) == pytest.approx(10)


def test_drift_cancels_within_a_block() -> None:
    # The machine halves its speed from block to block; the ratio stays 3:2.
    runs = [[(3.0 / 2**k, 2.0 / 2**k) for k in range(9)]] * 2
    got = stats.ratio_interval(runs)
    assert (got.low, got.estimate, got.high) == pytest.approx((1.5, 1.5, 1.5))


def test_one_run_has_no_bounds() -> None:
    for got in (
        stats.rate_interval([[5.0, 5.0, 5.0]]),
        stats.ratio_interval([[(2.0, 1.0)]]),
    ):
        assert math.isnan(got.low) and math.isnan(got.high)
        assert not got.known
        assert not got.excludes(1)
        assert math.isnan(got.half_width_percent)
    assert got.estimate == pytest.approx(2)


def test_welch_by_hand() -> None:
    # Logs 1.0 1.1 1.2 against 0.8 0.9 1.0 1.1. Means 1.1, 0.95; variances 0.01 and
    # (0.0225 + 0.0025) * 2 / 3 = 0.0166667; over n: 0.00333333 and 0.00416667, sum
    # 0.0075, root 0.0866025. Degrees: 0.0075^2 / (0.00333333^2 / 2 +
    # 0.00416667^2 / 3) = 5.625e-5 / (5.55556e-6 + 5.78704e-6) = 4.95918.
    got = stats.welch_ratio(
        [math.exp(x) for x in (1.0, 1.1, 1.2)],
        [math.exp(x) for x in (0.8, 0.9, 1.0, 1.1)],
    )
    half = float(scipy_stats.t.ppf(0.975, 4.95918)) * 0.0866025
    assert math.log(got.estimate) == pytest.approx(0.15)
    assert math.log(got.low) == pytest.approx(0.15 - half, abs=1e-5)
    assert math.log(got.high) == pytest.approx(0.15 + half, abs=1e-5)
    assert got.n == 3


def test_fairness_by_hand() -> None:
    # 1 2 3: mean 2, deviation of the three sqrt(2/3) = 0.816497, cv 0.408248;
    # Jain 6^2 / (3 * 14) = 0.857143. 1 is half of an equal share: not below it.
    got = stats.fairness([1, 2, 3])
    assert (got.least, got.most) == (1, 3)
    assert got.cv == pytest.approx(0.408248, abs=1e-6)
    assert got.jain == pytest.approx(0.857143, abs=1e-6)
    assert not got.starved
    alone = stats.fairness([8, 0, 0, 0])
    assert alone.jain == pytest.approx(0.25)
    assert alone.starved
    assert stats.fairness([7]) == stats.Fairness(7, 7, 0, 1, False)
    # Two tasks share a core, two have one each: 0.5 of 0.75.
    assert not stats.fairness([1, 1, 0.5, 0.5]).starved
    assert stats.fairness([10, 10, 3]).starved


def test_outliers_by_hand() -> None:
    # 1..9 and one more: quartiles move little. Of 1 2 3 4 5 6 7 8 9 20: q1 3.25,
    # q3 7.75, range 4.5; fences 7.75 + 6.75 = 14.5 and 7.75 + 13.5 = 21.25.
    assert stats.outliers([1, 2, 3, 4, 5, 6, 7, 8, 9, 20]) == [""] * 9 + ["high"]
    assert stats.outliers([1, 2, 3, 4, 5, 6, 7, 8, 9, 22]) == [""] * 9 + ["far high"]
    # Mirrored: fences 3.25 - 6.75 = -3.5 and -10.25.
    assert stats.outliers([-4, 2, 3, 4, 5, 6, 7, 8, 9, 10])[0] == "low"
    assert stats.outliers([-40, 2, 3, 4, 5, 6, 7, 8, 9, 10])[0] == "far low"
    assert stats.outliers([]) == []
    assert stats.outliers([5, 5, 5, 5]) == [""] * 4


def test_block_pairs_leaves_out_what_has_no_partner() -> None:
    windows = [
        {"variant": "b", "block": 1, "rate": 4.0},
        {"variant": "a", "block": 0, "rate": 1.0},
        {"variant": "b", "block": 0, "rate": 2.0},
        {"variant": "a", "block": 1, "rate": 3.0},
        {"variant": "c", "block": 1, "rate": 9.0},
        {"variant": "a", "block": 2, "rate": 5.0},
    ]
    pairs = stats.block_pairs(windows, "b", "a")
    assert pairs == [(2.0, 1.0), (4.0, 3.0)]
    assert stats.block_ratios(pairs) == [2.0, pytest.approx(4 / 3)]


def test_expected_false_by_hand() -> None:
    assert stats.expected_false(40) == pytest.approx(2)
    assert stats.expected_false(40, 0.99) == pytest.approx(0.4)


def test_aa_quantile_by_hand() -> None:
    # Effects 1% up and 1% down are the same size.
    assert stats.aa_quantile([1.01, 1 / 1.01, 1.01]) == pytest.approx(0.01)
    # 0..20 hundredths of log: the 95% quantile of 21 evenly spaced is the 20th, 0.19.
    ratios = [math.exp((-1) ** k * k / 100) for k in range(21)]
    assert stats.aa_quantile(ratios) == pytest.approx(math.expm1(0.19))


def test_aa_threshold_by_hand() -> None:
    # Logs +-0.01 in turn, 4 runs: no bias, deviation 0.01 * sqrt(4/3) = 0.011547;
    # at 4 runs error 0.0057735, 95% of |normal| is below 1.959964 of it: 0.0113159.
    ratios = [math.exp(x) for x in (0.01, -0.01, 0.01, -0.01)]
    assert math.log1p(stats.aa_threshold(ratios, 4)) == pytest.approx(
        0.0113159, rel=1e-5
    )
    # With a bias of 0.02 on top nearly all lies on one side: 0.02 + 1.644854 errors.
    biased = [1 / (ratio * math.exp(0.02)) for ratio in ratios]
    got = math.log1p(stats.aa_threshold(biased, 4))
    assert got == pytest.approx(0.02 + 1.644854 * 0.0057735, rel=1e-3)
    # A quarter of the error at 64 runs; a bias of one sign does not shrink at all.
    assert math.log1p(stats.aa_threshold(ratios, 64)) == pytest.approx(
        0.0113159 / 4, rel=1e-5
    )
    assert stats.aa_threshold([1.02, 1.02, 1.02], 1000) == pytest.approx(0.02)


@pytest.mark.parametrize("values", [[], [0.0], [-1.0], [math.nan], [math.inf]])
def test_impossible_rates_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError):
        stats.rate_interval([values])


# The three statistics that other tools have wrong


def test_known_bad_interval_of_the_deviation() -> None:
    # 25 runs, logs +-0.1 in turn about 0 (13 up, 12 down): mean 0.004; squares about
    # it 25 * 0.01 - 25 * 0.004^2 = 0.2496, deviation sqrt(0.2496 / 24) = 0.101980,
    # error 0.0203961, t(0.975, 24) = 2.063899: half width 0.042096. With the
    # deviation in its place it would be 5 times that, 0.2105.
    got = interval_of([0.1 if k % 2 == 0 else -0.1 for k in range(25)])
    assert math.log(got.high / got.low) / 2 == pytest.approx(0.042096, abs=1e-6)


def test_known_bad_median_with_swapped_branches() -> None:
    # Up to four values location is their median: the middle one of an odd number,
    # the mean of the middle two of an even one. Swapped, 1 2 10 would give 1.5 or 6,
    # and 1 2 4 10 would give 2 or 4.
    assert stats.location([10, 1, 2]) == 2
    assert stats.location([4, 10, 1, 2]) == 3
    assert stats.location([3, 1]) == 2
    assert stats.location([3]) == 3


def test_known_bad_path_length() -> None:
    # 10 s at 1,000,000 operations a second, 600 instructions each: 6e9 in all.
    # Divided by operations a second that is "6000", ten times too many, and twice
    # as many for a run twice as long.
    assert stats.per_operation(6e9, 10 * 1_000_000) == 600
    assert stats.per_operation(12e9, 20 * 1_000_000) == 600
    assert stats.per_operation(0, 5) == 0
    assert stats.per_operation(None, 5) is None
    with pytest.raises(ValueError):
        stats.per_operation(6e9, 0)


# Against a naive oracle


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_location_is_the_mean_of_the_middle(values: list[float]) -> None:
    kept = sorted(values)
    drop = max(1, len(values) // 5) if len(values) >= 3 else 0
    for _ in range(drop):
        kept.remove(min(kept))
        kept.remove(max(kept))
    want = statistics.fmean(kept)
    assert stats.location(values) == pytest.approx(want, abs=1e-6)
    assert stats.location([-x for x in values]) == pytest.approx(-want, abs=1e-6)


@given(st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=40), st.floats(1e6, 1e9))
def test_a_fifth_on_each_side_may_be_anything(values: list[float], wild: float) -> None:
    spoilt = sorted(values)
    for k in range(len(values) // 5):
        spoilt[k] = -wild
        spoilt[-1 - k] = wild * 3
    assert stats.location(spoilt) == pytest.approx(stats.location(values))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_quantiles_are_those_of_scipy(level: float) -> None:
    """t's at any degrees of freedom; the folded normal's at any bias and spread."""
    for degrees in (1, 2, 3.7, 4, 9, 29.5, 199):
        got = stats._t_quantile(level, degrees)
        assert got == pytest.approx(scipy_stats.t.ppf(0.5 + level / 2, degrees), 1e-12)
    for bias in (0, 1e-9, 0.001, -0.01, 0.3):
        for spread in (1e-6, 0.001, 0.02, 0.3):
            error = spread / math.sqrt(7)
            folded = scipy_stats.foldnorm(abs(bias) / error, scale=error)
            want = math.expm1(folded.ppf(level))
            assert stats.aa_bound(bias, spread, 7, level) == pytest.approx(want, 1e-12)


@given(st.lists(RATES, min_size=2, max_size=30))
def test_t_interval_against_scipy(rates: list[float]) -> None:
    got = stats.rate_interval([[rate] for rate in rates])
    logs = np.log(rates)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = scipy_stats.t.interval(
        0.95, len(logs) - 1, loc=statistics.fmean(logs), scale=error or 1e-300
    )
    assert math.log(got.low) == pytest.approx(low, abs=1e-9)
    assert math.log(got.high) == pytest.approx(high, abs=1e-9)
    assert got.low <= got.estimate * (1 + 1e-12)
    assert got.estimate <= got.high * (1 + 1e-12)


@given(
    st.lists(
        st.lists(st.tuples(RATES, RATES), min_size=1, max_size=6),
        min_size=2,
        max_size=8,
    )
)
def test_swapping_the_sides_inverts_the_ratio(
    runs: list[list[tuple[float, float]]]
) -> None:
    one = stats.ratio_interval(runs)
    other = stats.ratio_interval([[(b, a) for a, b in run] for run in runs])
    # On logs, as bounds of two wild runs leave the range of a double.
    assert math.log(one.estimate) == pytest.approx(-math.log(other.estimate), abs=1e-9)
    if 0 < one.low and one.high < math.inf:
        assert math.log(one.low) == pytest.approx(-math.log(other.high), abs=1e-6)


@given(
    st.lists(st.floats(1, 2), min_size=3, max_size=9),
    st.lists(st.floats(1, 2), min_size=3, max_size=9),
)
def test_welch_against_scipy(a: list[float], b: list[float]) -> None:
    got = stats.welch_ratio(a, b)
    if np.ptp(a) < 1e-6 or np.ptp(b) < 1e-6:
        return  # scipy has no p value for sides that do not vary
    p = scipy_stats.ttest_ind(np.log(a), np.log(b), equal_var=False).pvalue
    if abs(p - 0.05) > 1e-9:
        assert got.excludes(1) == (p < 0.05)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50).filter(sum))
def test_fairness_against_its_definition(ops: list[int]) -> None:
    got = stats.fairness(ops)
    mean = sum(ops) / len(ops)
    assert got.cv == pytest.approx(statistics.pstdev(ops) / mean, abs=1e-7)
    # Jain's index is 1 / (1 + cv^2), by way of the definition of the variance.
    assert got.jain == pytest.approx(1 / (1 + got.cv**2))
    assert got.starved == (min(ops) < mean / 2)


# Verdicts


def verdict(low: float, high: float, aa: float | None = 0.0, runs: int = 5) -> Verdict:
    ratio = Interval(math.sqrt(low * high), low, high, runs)
    return stats.verdict(ratio, aa, runs)


def test_a_difference_needs_all_three() -> None:
    assert verdict(1.03, 1.05, aa=0.01).word == "faster"
    assert verdict(1 / 1.05, 1 / 1.03, aa=0.01).word == "slower"
    # the interval holds 1
    assert verdict(0.99, 1.09, aa=0.01).word == "inconclusive"
    # A/A differs by as much
    assert verdict(1.03, 1.05, aa=0.05).word == "inconclusive"
    assert "A/A alone gives up to 5.0% here" in verdict(1.03, 1.05, aa=0.05).text
    # too few runs
    few = verdict(1.03, 1.05, aa=0.01, runs=4)
    assert few.word == "inconclusive"
    assert "at least 1 more run needed" in few.text


def test_rounding_is_no_difference() -> None:
    # Counted instructions are the same number every time.
    third = math.exp(math.log(1 / 3))
    ratio = stats.welch_ratio([third] * 5, [1 / 3] * 7)
    assert stats.verdict(ratio, None, 5).word.startswith("no difference beyond 0.")
    ratio = Interval(1 + 4e-16, 1 + 3e-16, 1 + 5e-16, 5)
    assert stats.verdict(ratio, None, 5).word.startswith("no difference beyond 0.")


def test_no_difference_names_the_larger_bound_rounded_up() -> None:
    # 1/0.99 - 1 = 1.0101%: the larger in magnitude of -1.01% and +0.5%.
    got = verdict(0.99, 1.005, aa=0.0)
    assert got.word == "no difference beyond 1.1%"
    # never less than A/A itself
    assert verdict(0.999, 1.001, aa=0.015).word == "no difference beyond 1.5%"
    # a difference too small for A/A, but within the margin for sure
    assert verdict(1.001, 1.003, aa=0.004).word == "no difference beyond 0.4%"
    # wider than what is of use
    assert verdict(0.97, 1.01).word == "inconclusive"


def test_a_verdict_says_when_there_was_no_calibration() -> None:
    got = verdict(1.03, 1.05, aa=None)
    assert got.word == "faster"
    assert "not calibrated here" in got.text
    assert "not calibrated" not in verdict(1.03, 1.05, aa=0.01).text


def test_one_run_is_inconclusive() -> None:
    got = stats.verdict(stats.ratio_interval([[(2.0, 1.0)]]), 0.01, 1)
    assert got.word == "inconclusive"
    assert "at least 4 more runs needed" in got.text
    assert "nan" not in got.text


def test_more_runs_by_hand() -> None:
    # Spread 0.05 per run on logs, 5 runs, estimate 0.04: half width t(4) * 0.05 /
    # sqrt(5) = 2.776445 * 0.0223607 = 0.0620832. 8 runs: t(7) = 2.364624, 0.0418009,
    # still more than 0.04; 9 runs: t(8) = 2.306004, 0.0384334. So 4 more.
    half = 0.0620832
    ratio = Interval(math.exp(0.04), math.exp(0.04 - half), math.exp(0.04 + half), 5)
    assert stats.more_runs(ratio, 0.0) == 4
    got = stats.verdict(ratio, 0.0, 5)
    assert got.text.endswith("about 4 more runs would do")
    got = stats.verdict(ratio, 0.0, 5, run_seconds=2.6)
    assert got.text.endswith("about 11 s more would do")


def test_more_runs_gives_up() -> None:
    # An estimate on the edge of the margin needs endless runs for either answer
    # while A/A itself is as large at any number.
    assert stats.more_runs(Interval(1.0, math.nan, math.nan, 1), None) is None
    assert stats.more_runs(Interval(1.0, 1e-6, 1e6, 5), None) is None


def test_boots_are_the_unit() -> None:
    one = stats.boots_verdict([1e6], [1.1e6], 0.01)
    assert one.word == "inconclusive"
    assert one.text.endswith("one boot each: not separated from reboot variance")
    two = stats.boots_verdict([1e6, 1.01e6], [2e6, 2.1e6, 2.2e6], 0.01)
    assert two.word == "inconclusive"
    assert "2 against 3 boots: not separated from reboot variance" in two.text
    three = stats.boots_verdict([2e6, 2.02e6, 2.01e6], [1e6, 1.01e6, 1.02e6], 0.01)
    assert three.word == "faster"
    assert "3 boots" in three.text


def test_opposite_signs() -> None:
    up, down = verdict(1.03, 1.05), verdict(0.95, 0.97)
    flat, unsure = verdict(0.999, 1.001), verdict(0.9, 1.1)
    assert stats.opposite_signs([up, flat, down])
    assert not stats.opposite_signs([up, flat, unsure, up])
    assert not stats.opposite_signs([down, unsure])
    assert not stats.opposite_signs([])


def test_stop_sizes() -> None:
    # 12 times 1.4 is 16.8, then 23.52, 32.928, 46.0992
    assert stats.stop_sizes(46) == [12, 17, 24, 33, 46]
    assert stats.stop_sizes(11) == []
    assert not stats.stop_now([1.0] * 11, 0.5)
    assert stats.stop_now([1.0] * 12, 0.001)
    assert not stats.stop_now([1.0] * 13, 0.5)
    assert not stats.stop_now([1.0, 2.0] * 6, 0.01)
