# SPDX-License-Identifier: GPL-2.0-only
"""The statistics on simulated data with known effects.

A simulated rate is held against bounds that leave the test itself less than one
chance in 10,000 to fail where the code is right, whatever the seed; the margin is
worked out beside each number of trials.
"""
from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy import stats as scipy_stats

from bench import stats


def simulated_runs(
    rng: np.random.Generator, effect: float, between: float, runs: int, blocks: int = 8
) -> list[list[tuple[float, float]]]:
    """Runs with a common effect, a deviation between runs, 7% noise within."""
    level = effect + between * rng.standard_normal((runs, 1))
    # A run's own speed, and drift from block to block: both cancel.
    base = rng.normal(14, 0.3, (runs, 1)) + 0.05 * rng.standard_normal((runs, blocks))
    noise = 0.07 * rng.standard_normal((runs, blocks))
    variant, baseline = np.exp(base + level + noise).tolist(), np.exp(base).tolist()
    return [list(zip(*pair)) for pair in zip(variant, baseline)]


@pytest.mark.parametrize("runs,between", [(5, 0.05), (8, 0.0), (12, 0.3)])
def test_coverage(runs: int, between: float) -> None:
    # 2000 trials: deviation sqrt(0.95 * 0.05 / 2000) = 0.49%, the bounds are 4.1 away.
    rng = np.random.default_rng(5)
    effect, trials, held = 0.02, 2000, 0
    for _ in range(trials):
        made = simulated_runs(rng, effect, between, runs)
        held += not stats.ratio_interval(made).excludes(math.exp(effect))
    assert 0.93 <= held / trials <= 0.97


def stopped(rng: np.random.Generator, deviation: float, precision: float) -> np.ndarray:
    """The ratios of A/A runs that were there when the rule said stop."""
    sizes = stats.stop_sizes(100)
    ratios = np.exp(deviation * rng.standard_normal(sizes[-1]))
    for size in sizes:
        if stats.stop_now(ratios[:size], precision):
            break
    taken: np.ndarray = ratios[:size]
    return taken


# The precision asked over the deviation of a run: coverage at its lowest (two of
# them); stops at once.
@pytest.mark.parametrize("asked,trials", [(0.5, 20_000), (0.4, 20_000), (1.5, 2000)])
def test_coverage_with_the_stopping_rule(asked: float, trials: int) -> None:
    # 20000 trials: 93.7% at worst is 0.7% above the bound, 4.1 deviations of
    # sqrt(0.937 * 0.063 / 20000) = 0.17%. 2000: as without the rule.
    rng = np.random.default_rng(6)
    deviation, held = 0.01, 0
    for _ in range(trials):
        ratios = stopped(rng, deviation, math.expm1(asked * deviation))
        held += not stats.t_interval(ratios).excludes(1)
    assert 0.93 <= held / trials <= 0.97


@pytest.mark.parametrize("asked", [0.4, 1.5])
def test_aa_with_the_stopping_rule_is_rarely_called(asked: float) -> None:
    # At most 5% of calls (the threshold's own level): simulated 4.7% and 3.6%;
    # 2000 trials leave sqrt(0.05 * 0.95 / 2000) = 0.49%, so 6.9% is 3.9 of them up.
    rng = np.random.default_rng(12)
    deviation, trials, called = 0.01, 2000, 0
    pool = np.exp(deviation * rng.standard_normal(2000))
    aa = {runs: stats.aa_threshold(pool, runs) for runs in stats.stop_sizes(100)}
    for _ in range(trials):
        ratios = stopped(rng, deviation, math.expm1(asked * deviation))
        word = stats.verdict(
            stats.t_interval(ratios), aa[len(ratios)], len(ratios)
        ).word
        called += word in ("faster", "slower")
    assert called / trials <= 0.069


def test_aa_is_rarely_called_and_the_minimal_effect_is_found() -> None:
    # The calls of `verdict` itself. A/A: at most 5% by the interval alone; 3000
    # trials leave sqrt(0.05 * 0.95 / 3000) = 0.4%, so 6.5% is 3.8 deviations up.
    # Power: 95% +- 1.6%, 4 deviations.
    rng = np.random.default_rng(7)
    trials, runs, deviation = 3000, 8, 0.02
    pool = np.exp(deviation * rng.standard_normal(2000))
    aa = stats.aa_threshold(pool.tolist(), runs)
    least = stats.minimal_effect(deviation, runs)
    called = found = 0
    for _ in range(trials):
        logs = deviation * rng.standard_normal(runs)
        ratio = stats.t_interval(np.exp(logs))
        called += stats.verdict(ratio, aa, runs).word in ("faster", "slower")
        ratio = stats.t_interval(np.exp(logs + math.log1p(least)))
        found += stats.verdict(ratio, aa, runs).word == "faster"
    assert called / trials <= 0.065
    assert 0.934 <= found / trials <= 0.966


@pytest.mark.parametrize("runs", [5, 8, 30])
def test_minimal_effect_against_an_integral(runs: int) -> None:
    # Over the deviation u that a sample shows, in units of the true one: called when
    # the mean exceeds both t * u and A/A's quantile (1.959964) standard errors.
    shift = math.log1p(stats.minimal_effect(0.02, runs)) * math.sqrt(runs) / 0.02
    t = scipy_stats.t.ppf(0.975, runs - 1)

    def called(u: float) -> float:
        density = scipy_stats.chi.pdf(u * math.sqrt(runs - 1), runs - 1)
        over = scipy_stats.norm.cdf(shift - max(t * u, 1.959964))
        return float(density * math.sqrt(runs - 1) * over)

    edge = 1.959964 / t
    power = integrate.quad(called, 0, edge)[0] + integrate.quad(called, edge, 6)[0]
    assert power == pytest.approx(0.95, abs=2e-4)


@pytest.mark.parametrize("runs", [5, 12, 100])
def test_minimal_effect_against_scipy(runs: int) -> None:
    """The same definition by scipy.stats and scipy's root finder."""
    ranks = (np.arange(4000) + 0.5) / 4000
    sampled = np.sqrt(scipy_stats.chi2.ppf(ranks, runs - 1) / (runs - 1))
    needed = np.maximum(
        scipy_stats.t.ppf(0.975, runs - 1) * sampled, 1.9599639845400538
    )
    shift = optimize.brentq(
        lambda at: np.mean(scipy_stats.norm.cdf(at - needed)) - 0.95, 0, 1e4, xtol=1e-13
    )
    want = math.expm1(shift * 0.02 / math.sqrt(runs))
    assert stats.minimal_effect(0.02, runs) == pytest.approx(want, 1e-12)


def test_minimal_effect_shrinks_with_runs() -> None:
    effects = [stats.minimal_effect(0.02, runs) for runs in (5, 10, 20, 80)]
    assert effects == sorted(effects, reverse=True)
    # With many runs t is normal: 1.959964 + 1.644854 = 3.604818 standard errors.
    want = math.expm1(3.604818 * 0.02 / math.sqrt(5000))
    assert stats.minimal_effect(0.02, 5000) == pytest.approx(want, rel=0.01)
    # Fewer runs than a verdict needs find nothing.
    assert stats.minimal_effect(0.02, stats.MIN_RUNS - 1) == math.inf


@pytest.mark.parametrize("size", [8, 20, 100])
def test_bimodal_is_rarely_flagged_on_one_heap(size: int) -> None:
    # 4000 samples, at most 1% of flat ones: 1.6% is 3.8 deviations of 0.16% up.
    rng = np.random.default_rng(8)
    trials = 4000
    flat = sum(stats.bimodal(rng.random(size).tolist()) for _ in range(trials))
    assert flat / trials <= 0.016
    bell = sum(stats.bimodal(rng.normal(size=size).tolist()) for _ in range(trials))
    assert bell / trials <= 0.016
    tail = sum(stats.bimodal(rng.exponential(size=size).tolist()) for _ in range(1000))
    assert tail / 1000 <= 0.022


def test_bimodal_finds_two_heaps() -> None:
    rng = np.random.default_rng(9)
    slow, fast = rng.normal(1.56, 0.1, 6), rng.normal(4.09, 0.1, 8)
    assert stats.bimodal([*slow, *fast])
    # a single outlier is not a heap, nor are equal values or a handful
    assert not stats.bimodal([*fast, *fast, 1.0])
    assert not stats.bimodal([1.0] * 20)
    assert not stats.bimodal([1e6, math.nextafter(1e6, 2e6)] * 10)
    assert not stats.bimodal([1, 1, 9, 9])


@pytest.mark.parametrize("disturbed", [0.0, 0.1])
def test_location_is_narrower_where_windows_are_disturbed(disturbed: float) -> None:
    # What its docstring says of 50 windows; simulated 0.152 to 0.141, 0.169 to 0.258.
    rng = np.random.default_rng(10)
    noise = rng.standard_normal((2000, 50))
    noise[rng.random(noise.shape) < disturbed] *= 5
    ours = np.std([stats.location(row) for row in noise])
    plain = np.std(noise.mean(axis=1))
    assert ours < plain * (0.75 if disturbed else 1.12)
