# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of verdicts: pure functions on numbers, no input or output.

Rates are operations a second; a ratio is a variant's rate over the baseline's, so
above 1 is faster. Everything between runs happens on logarithms, where a ratio and
its inverse are equally far from "no difference". An *effect* is the size of a ratio
whichever way it points, as a fraction: 1.02 and 1/1.02 both are an effect of 0.02.
Functions raise ValueError for numbers that no measurement gives (a rate of zero).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special  # scipy.stats costs each start 0.4 s

MIN_RUNS = 5
MIN_BOOTS = 3
USEFUL_MARGIN = 0.02
# A cell that stops by itself is looked at after these many runs and no others.
STOP_FIRST, STOP_GROWTH = 12, 1.4
MAX_RUNS = 10_000
# Relative differences below this are made by floating point, not by a machine.
ROUNDING = 1e-9
# Bounds a factor of 10 away, in percent: two wild runs give more digits than sense.
WILD = 900

Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds that hold it; n is what was counted: runs or boots.

    low and high are nan when n is too small to tell anything of the spread.
    """

    estimate: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether there are bounds at all."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def half_width_percent(self) -> float:
        """N of "±N%". The bounds are equally far on the log scale: one N serves."""
        return 100 * (math.sqrt(self.high / self.low) - 1)

    def excludes(self, value: float) -> bool:
        """Whether value is outside; bounds that are not known exclude nothing."""
        return self.low > value or self.high < value


@dataclass(frozen=True, slots=True)
class Fairness:
    """How operations were shared: least and most of a task, spread, Jain's index.

    cv is the standard deviation of all tasks (not of a sample of them) over the mean;
    Jain's index is 1 for equal shares and 1/n when one of n tasks does everything.
    """

    least: float
    most: float
    cv: float
    jain: float
    starved: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """faster, slower, no difference beyond X%, or inconclusive; and the sentence."""

    word: str
    ratio: Interval
    text: str
    need: str = ""  # what would settle it: "12 s more"

    @property
    def settled(self) -> bool:
        """Whether the question is answered, one way or the other."""
        return self.word != "inconclusive"


# Most samples here are a few numbers, and there are many: numpy's price a call is
# several times that of the arithmetic.


def _logs(values: Numbers) -> list[float]:
    if len(values) == 0:
        raise ValueError("no values")
    if not all(0 < value < math.inf for value in values):
        raise ValueError("rates and ratios are positive numbers")
    return [math.log(value) for value in values]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float], lost: int = 1) -> float:
    """Of a sample; lost=0: of all there are."""
    if len(values) <= lost:
        return math.nan
    middle = _mean(values)
    return math.fsum((v - middle) ** 2 for v in values) / (len(values) - lost)


def effect(ratio: float) -> float:
    """The size of a ratio, whichever way it points, as a fraction."""
    return math.expm1(abs(math.log(ratio)))


@lru_cache(maxsize=4096)
def _t_quantile(level: float, degrees: float) -> float:
    return float(special.stdtrit(degrees, 0.5 + level / 2))


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where it passes zero between the two, as near as floats go."""
    while low < (middle := (low + high) / 2) < high:
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def _folded_quantile(level: float, mean: float) -> float:
    """Of the size of a normal number with this mean, not negative, and deviation 1."""
    one_side, both = special.ndtri([level, 0.5 + level / 2])

    def lacking(size: float) -> float:
        return float(special.ndtr(size - mean) - special.ndtr(-size - mean)) - level

    return _root(lacking, max(mean + one_side, 0), mean + both)


def location(values: Numbers) -> float:
    """The mean without the lowest and the highest fifth: what a run's windows say.

    Cuts at least one value on each side when there are three or more, so up to four
    values it is their median. Simulated against the mean, the median and
    Hodges-Lehmann at 10 and 50 windows: with normal noise its deviation is 7 to 8%
    above the mean's (the median's 20 to 25%), and with a tenth of the windows
    disturbed five times as much, or heavy tails, it is the narrowest of the four.
    Hodges-Lehmann has its edge only where nothing is disturbed, and needs all pairs.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    n = len(ordered)
    cut = max(1, n // 5) if n > 2 else 0
    return _mean(ordered[cut : n - cut])


def t_interval(values: Numbers, level: float = 0.95) -> Interval:
    """Student's interval of the geometric mean of values, one for each run."""
    logs = _logs(values)
    n = len(logs)
    middle = _mean(logs)
    if n < 2:
        return Interval(math.exp(middle), math.nan, math.nan, n)
    # The standard error: the deviation of one run would be sqrt(n) times too wide.
    error = math.sqrt(_variance(logs) / n)
    half = _t_quantile(level, n - 1) * error
    return Interval(
        math.exp(middle), math.exp(middle - half), math.exp(middle + half), n
    )


def run_rate(rates: Numbers) -> float:
    """One number for a run: the location of its windows' rates, taken on logs."""
    return math.exp(location(_logs(rates)))


def rate_interval(runs: Sequence[Sequence[float]], level: float = 0.95) -> Interval:
    """The rate of a cell: each run is the list of its windows' rates."""
    return t_interval([run_rate(run) for run in runs], level)


def block_pairs(
    windows: Iterable[Mapping[str, Any]], variant: str, baseline: str
) -> list[tuple[float, float]]:
    """(rate of variant, rate of baseline) of every block of a run that has both."""
    blocks: dict[int, dict[str, float]] = {}
    for window in windows:
        blocks.setdefault(window["block"], {})[window["variant"]] = window["rate"]
    return [
        (block[variant], block[baseline])
        for _, block in sorted(blocks.items())
        if variant in block and baseline in block
    ]


def block_ratios(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """The ratio within each block: what drifts slower than a block cancels."""
    return [variant / baseline for variant, baseline in pairs]


def run_ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """One ratio for a run: the location of its blocks' ratios, taken on logs."""
    return math.exp(location(_logs(block_ratios(pairs))))


def ratio_interval(
    runs: Sequence[Sequence[tuple[float, float]]], level: float = 0.95
) -> Interval:
    """Variant over baseline: each run is a list of (variant, baseline), one a block.

    t at every number of runs: it covers what it says at 5, and from 20 on
    nothing else is narrower by an amount that matters.
    """
    return t_interval([run_ratio(run) for run in runs], level)


def welch_ratio(
    boots_a: Sequence[float], boots_b: Sequence[float], level: float = 0.95
) -> Interval:
    """A over B from one rate per boot, each side with a variance of its own.

    n is the smaller number of boots. Below MIN_BOOTS on a side there are no bounds:
    what a reboot does is then not separated from what the change does.
    """
    a, b = _logs(boots_a), _logs(boots_b)
    n = min(len(a), len(b))
    middle = _mean(a) - _mean(b)
    if n < MIN_BOOTS:
        return Interval(math.exp(middle), math.nan, math.nan, n)
    va, vb = _variance(a) / len(a), _variance(b) / len(b)
    half = 0.0
    if va + vb > 0:
        degrees = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
        half = _t_quantile(level, degrees) * math.sqrt(va + vb)
    return Interval(
        math.exp(middle), math.exp(middle - half), math.exp(middle + half), n
    )


def fairness(ops_per_task: Sequence[float]) -> Fairness:
    """Shares of the tasks of one window, or of a run's windows summed per task.

    Starved: some task did less than half of an equal share. Two tasks on one core
    beside others that have a core each stay above that; a lock that passes by a
    task, or a task that was not running, does not.
    """
    ops = [float(done) for done in ops_per_task]
    mean = _mean(ops) if ops else 0
    if mean <= 0:
        raise ValueError("no task did anything")
    return Fairness(
        least=min(ops),
        most=max(ops),
        cv=math.sqrt(_variance(ops, 0)) / mean,
        jain=math.fsum(ops) ** 2 / (len(ops) * math.fsum(x * x for x in ops)),
        starved=min(ops) < mean / 2,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    low = ordered[int(at)]
    return low + (ordered[math.ceil(at)] - low) * (at % 1)


def outliers(values: Sequence[float]) -> list[str]:
    """A label for each value, by Tukey's fences: "" for the ordinary ones.

    "low" and "high" lie beyond 1.5 interquartile ranges, "far low" and "far high"
    beyond 3. Labels only: nothing is dropped, `location` copes with them.
    """
    if not values:
        return []
    ordered = sorted(values)
    q1, q3 = _quantile(ordered, 0.25), _quantile(ordered, 0.75)
    labels = []
    for value in values:
        out = max(q1 - value, value - q3)
        side = "low" if value < q1 else "high"
        far = "far " if out > 3 * (q3 - q1) else ""
        labels.append(far + side if out > 1.5 * (q3 - q1) else "")
    return labels


def bimodal(values: Sequence[float]) -> bool:
    """Whether the values fall into two heaps, each a fifth of them or more.

    The best split in two leaves some variance within the parts; the share it
    explains is compared with what a flat distribution gives, the widest shape with
    one heap: 0.75 for endless data, 0.75 + 0.64/sqrt(n) in 99 of 100 samples of n
    (simulated, n from 8 to 1000). So at most 1% of flat, and fewer of bell-shaped,
    samples are flagged. Below 8 values it cannot tell and says no.
    """
    n = len(values)
    if n < 8:
        return False
    ordered = np.sort(np.asarray(values, dtype=float))
    middle = ordered.mean()
    ordered = ordered - middle
    total = float(np.sum(ordered**2))
    if total <= n * (ROUNDING * middle) ** 2:
        return False
    least = math.ceil(n / 5)
    size = np.arange(least, n - least + 1)
    between = np.cumsum(ordered)[size - 1] ** 2 * (1 / size + 1 / (n - size))
    return float(between.max()) / total > 0.75 + 0.64 / math.sqrt(n)


def more_runs(
    ratio: Interval, aa_threshold: float | None, margin: float = USEFUL_MARGIN
) -> int | None:
    """About how many runs more would settle it, if the estimate and spread stay.

    Settled is either a difference called or none within margin, whichever comes
    first. None: not within MAX_RUNS, or there is no spread to go by.
    """
    if not ratio.known:
        return None
    middle = abs(math.log(ratio.estimate))
    half = math.log(ratio.high / ratio.low) / 2
    spread = half * math.sqrt(ratio.n) / _t_quantile(0.95, ratio.n - 1)
    found = math.log1p(aa_threshold or 0) * math.sqrt(ratio.n)
    runs = max(ratio.n + 1, MIN_RUNS)
    while runs <= MAX_RUNS:
        half = _t_quantile(0.95, runs - 1) * spread / math.sqrt(runs)
        aa = found / math.sqrt(runs)
        if middle > max(half, aa) or max(middle + half, aa) <= math.log1p(margin):
            return runs - ratio.n
        runs += max(1, runs // 50)
    return None


def _signed(ratio: float, digits: int) -> str:
    return f"{100 * (ratio - 1):+.{digits}f}%"


def describe(ratio: Interval) -> str:
    """ "+1.9% [+1.2%, +2.6%]", with two digits when the interval is below ±1%."""
    if not ratio.known:
        return _signed(ratio.estimate, 1)
    if ratio.half_width_percent > WILD:
        return f"{_signed(ratio.estimate, 1)} [bounds beyond a factor of 10]"
    digits = 2 if ratio.half_width_percent < 1 else 1
    low, high = _signed(ratio.low, digits), _signed(ratio.high, digits)
    return f"{_signed(ratio.estimate, digits)} [{low}, {high}]"


def difference(ratio: Interval, aa_threshold: float | None) -> str:
    """The word for a difference that may be called, given runs enough; or ""."""
    size = effect(ratio.estimate)
    if ratio.excludes(1) and size > max(aa_threshold or 0, ROUNDING):
        return "faster" if ratio.estimate > 1 else "slower"
    return ""


def verdict(
    ratio: Interval,
    aa_threshold: float | None,
    runs: int,
    min_runs: int = MIN_RUNS,
    margin: float = USEFUL_MARGIN,
    run_seconds: float | None = None,
    unit: str = "runs",
) -> Verdict:
    """What may be said of variant over baseline.

    aa_threshold: the effect that A/A stays below 95 times in 100 here at this number
    of runs, as a fraction; None where it was not measured, and the text says so.
    A difference needs min_runs, an interval that excludes 1 and an effect above
    aa_threshold. "no difference beyond X%" needs the interval and aa_threshold within
    ±X, and X within margin: a wider one says nothing that is of use. run_seconds is
    what one more run costs, to name the time that would do.
    """
    text = f"{describe(ratio)}, {runs} {unit if runs != 1 else unit[:-1]}"
    if aa_threshold is None:
        text += ", not calibrated here"
    if runs < min_runs or not ratio.known:
        lacking = max(min_runs - runs, 1)
        few = f"{lacking} more {unit if lacking != 1 else unit[:-1]}"
        text += f"; at least {few} needed"
        return Verdict("inconclusive", ratio, f"inconclusive: {text}", few)
    word = difference(ratio, aa_threshold)
    if word:
        return Verdict(word, ratio, f"{word}: {text}")
    beyond = max(effect(ratio.low), effect(ratio.high), aa_threshold or 0)
    if beyond <= margin:
        # Rounded up, so that what is said stays true.
        shown = math.ceil(beyond * 1000 - 1e-9) / 10
        word = f"no difference beyond {shown:.1f}%"
        return Verdict(word, ratio, f"{word}: {text}")
    if ratio.excludes(1):
        text += f"; A/A alone gives up to {100 * (aa_threshold or 0):.1f}% here"
    more = more_runs(ratio, aa_threshold, margin)
    if more is None:
        need = f"over {MAX_RUNS} {unit}"
        text += f"; not settled by {MAX_RUNS} {unit}"
    elif run_seconds is None:
        need = f"{more} more {unit if more != 1 else unit[:-1]}"
        text += f"; about {need} would do"
    else:
        need = f"{math.ceil(more * run_seconds)} s more"
        text += f"; about {need} would do"
    return Verdict("inconclusive", ratio, f"inconclusive: {text}", need)


def boots_verdict(
    boots_a: Sequence[float], boots_b: Sequence[float], aa_threshold: float | None
) -> Verdict:
    """A against B across reboots: the boot is the unit, few boots are no verdict."""
    ratio = welch_ratio(boots_a, boots_b)
    if not ratio.known:
        if len(boots_a) == len(boots_b) == 1:
            count = "one boot each"
        else:
            count = f"{len(boots_a)} against {len(boots_b)} boots"
        text = f"{count}: not separated from reboot variance"
        text = f"inconclusive: {describe(ratio)}; {text}"
        return Verdict("inconclusive", ratio, text)
    return verdict(ratio, aa_threshold, ratio.n, MIN_BOOTS, unit="boots")


def opposite_signs(verdicts: Iterable[Verdict]) -> bool:
    """Whether some are faster and some slower: one mean of them would be a lie."""
    return {"faster", "slower"} <= {item.word for item in verdicts}


def expected_false(comparisons: int, level: float = 0.95) -> float:
    """How many of so many comparisons would differ by chance, with nothing to find."""
    return comparisons * (1 - level)


def spread(ratios: Numbers) -> float:
    """The standard deviation of the logs of per-run ratios, a sample's (n - 1)."""
    return math.sqrt(_variance(_logs(ratios)))


def aa_quantile(ratios: Numbers, level: float = 0.95) -> float:
    """The effect that A/A stays below at this level, from the ratios of many trials."""
    return float(np.expm1(np.quantile(np.abs(_logs(ratios)), level)))


def aa_threshold(run_ratios: Numbers, runs: int, level: float = 0.95) -> float:
    """The same at any number of runs, from the ratios of single A/A runs."""
    bias = _mean(_logs(run_ratios))
    return aa_bound(bias, spread(run_ratios), runs, level)


def aa_bound(bias: float, run_spread: float, runs: int, level: float = 0.95) -> float:
    """aa_threshold from the mean and the spread of the logs of A/A's run ratios.

    Normal theory on logs: a bias that does not go away (code placement is one) and a
    spread that shrinks with the root of the runs; |effect| is then folded normal.
    """
    error = run_spread / math.sqrt(runs)
    if error <= 0:
        return math.expm1(abs(bias))
    return math.expm1(error * _folded_quantile(level, abs(bias) / error))


def minimal_effect(
    run_spread: float, runs: int, level: float = 0.95, power: float = 0.95
) -> float:
    """The smallest effect that so many runs find with this power, as a fraction.

    run_spread is `spread` of A/A's per-run ratios. Found means called by `verdict`:
    the t interval excludes 1 and the effect exceeds A/A's quantile at this level.
    """
    if runs < MIN_RUNS:
        return math.inf
    ranks = (np.arange(4000) + 0.5) / 4000
    sampled = np.sqrt(special.chdtri(runs - 1, 1 - ranks) / (runs - 1))
    needed = np.maximum(
        _t_quantile(level, runs - 1) * sampled, special.ndtri(0.5 + level / 2)
    )

    def lacking(shift: float) -> float:
        return float(np.mean(special.ndtr(shift - needed))) - power

    shift = _root(lacking, 0, 1e4)
    return math.expm1(shift * run_spread / math.sqrt(runs))


def stop_sizes(limit: int) -> list[int]:
    """The numbers of runs, up to limit, at which a cell may stop by itself."""
    sizes = []
    size = float(STOP_FIRST)
    while round(size) <= limit:
        sizes.append(round(size))
        size *= STOP_GROWTH
    return sizes


def next_look(runs: int) -> int:
    """At how many runs, more than these, it is looked next whether to stop."""
    most = max(STOP_FIRST, 2 * runs)  # STOP_GROWTH is less than two
    return next(size for size in stop_sizes(most) if size > runs)


def stop_now(ratios: Numbers, precision: float, level: float = 0.95) -> bool:
    """Whether the interval of these per-run ratios is as narrow as asked (±precision).

    Stopping as soon as it looks narrow prefers the samples whose spread came out
    small: looked at after every run from the fifth, a 95% interval covers 92% at
    worst. So it is looked at from STOP_FIRST runs on and at `stop_sizes` only, which
    covers 93.7% at worst over all precisions (simulated; tests hold it to 93%).
    """
    if len(ratios) not in stop_sizes(len(ratios)):
        return False
    return t_interval(ratios, level).half_width_percent <= 100 * precision


def per_operation(count: float | None, operations: float) -> float | None:
    """A counter's total over the operations it was counted in: path length for
    instructions. Not over operations a second, which is off by the run's length.
    None, for a counter that this machine lacks, stays None.
    """
    if operations <= 0:
        raise ValueError("no operations to share a count among")
    return None if count is None else count / operations
