# SPDX-License-Identifier: GPL-2.0-only
"""Made-up but lifelike numbers for every figure: only tests may draw them."""

import math
import random
from collections.abc import Callable
from pathlib import Path

from bench import charts, plot
from bench.charts import Cell
from bench.plot import Mark, Point, Series, Titles

VARIANTS = [
    *("one-level", "two-level", "first-word-v2", "first-word", "next_fd-word"),
    *("next_fd-word-checked", "next_fd-line", "three-level", "stock-6.12"),
    *("series-v3", "merged-6.13", "first-word+cond-clear+sanity-read"),
]
TASKS = [1, 2, 4, 8, 16, 28, 32, 56, 64, 112, 128, 224]
MARKS = [
    *(Mark(28, "node 0"), Mark(56, "package 0"), Mark(56, "node 1")),
    Mark(112, "all cores, SMT from here"),
]
TITLES = Titles(
    "dup-close on the model, hold low:64, compact, threads",
    "2 x Intel Xeon 8280 (56 cores, 112 PUs), Linux 6.12.0-mine_1 #1",
    "two-level",
)


def scaling(rng: random.Random, tasks: list[int], height: float) -> list[Point]:
    """Rates that rise, bend and drop at the package, with intervals of all sizes."""
    points: list[Point] = []
    for count in tasks:
        rate = height * 4e6 * count / (1 + 0.09 * count) * (0.8 if count > 56 else 1)
        rate *= rng.gauss(1, 0.02)
        wide = rate * rng.choice([0.0005, 0.02, 0.06])
        points.append((count, rate, rate - wide, rate + wide))
    return points


def rates(tasks: list[int] = TASKS) -> list[Series]:
    """Twelve variants; where there are many counts, some points are missing or wild."""
    rng = random.Random(3)
    made = [
        Series(name, scaling(rng, tasks, 1 + 0.04 * i))
        for i, name in enumerate(VARIANTS)
    ]
    if len(tasks) > 5:
        made[3].points[5] = (28, None, None, None)
        made[5].points[-1] = (224, None, None, None)
        made[6].points[4] = (16, made[6].points[4][1], 1e5, 4e9)
    return made


def ratios(tasks: list[int] = TASKS) -> list[Series]:
    """The same, divided by the second."""

    def by(value: float | None, base: float | None) -> float | None:
        return value / base if value and base else None

    below = rates(tasks)[1].points
    return [
        Series(
            one.name,
            [
                (x, by(y, b[1]), by(low, b[1]), by(high, b[1]))
                for (x, y, low, high), b in zip(one.points, below)
            ],
        )
        for one in rates(tasks)
        if one.name != "two-level"
    ]


def along(places: list[float], names: list[str], rise: float) -> list[Series]:
    """Values that grow with a power of x, and intervals of a tenth."""
    return [
        Series(name, [(x, y, 0.95 * y, 1.05 * y) for x in places])
        for i, name in enumerate(names)
        for y in [1e-6 * (1 + i)]
    ] + [
        Series(
            "steep",
            [
                (x, 1e-6 * x**rise, 9e-7 * x**rise, 1.1e-6 * x**rise)
                for x in places
            ],
        )
    ]


def windows(rng: random.Random, name: str, drift: float, second: float) -> Series:
    """Windows with a drift, and a second level that some of them have."""
    return Series(
        name,
        [
            (
                0.02 * i,
                4e6
                * rng.gauss(1 + drift * i, 0.02)
                * (second if rng.random() < 0.4 else 1),
                None,
                None,
            )
            for i in range(200)
        ],
    )


def map_figure(base: Path) -> list[Path]:
    rng = random.Random(5)
    holds = ["none", "low:63", "low:64", "low:4096", "every:64", "random:0.5"]
    cells = [
        Cell(
            tasks,
            hold,
            rng.choice(VARIANTS[2:7]),
            1 + rng.expovariate(8),
            rng.random() > 0.3,
        )
        for hold in holds
        for tasks in TASKS
        if (hold, tasks) != ("low:64", 28)
    ]
    return charts.draw_map(base, cells, TITLES)


def bars_figure(base: Path) -> list[Path]:
    names = ["entry", "dup", "alloc_fd", "find_next_zero_bit", "close_fd", "fput"]
    names += ["filp_close", "expand_files", "_raw_spin_lock", "expand"]
    parts = [(name, [20.0 + 9 * i] * 12) for i, name in enumerate(names)]
    parts[3] = ("find_next_zero_bit", [float(7 * (i % 4)) for i in range(12)])
    return charts.draw_bars(base, VARIANTS, parts, TITLES)


def windows_figure(base: Path) -> list[Path]:
    rng = random.Random(7)
    shown = [
        windows(rng, "two-level", 0, 1),
        windows(rng, "first-word", -0.001, 1),
        windows(rng, "next_fd-word", 0, 1.15),
    ]
    odd = [Series("first-word", [shown[1].points[40], (1.5, 1e5, None, None)])]
    runs = [Mark(0, "run 1"), Mark(2, "run 2")]
    return charts.draw_windows(base, shown, TITLES, runs, odd)


def hold_figure(base: Path) -> list[Path]:
    holds = [0, 63, 64, 65, 127, 128, 4095, 4096, 10000, 100000, 1000000]
    moved = [
        Series(one.name, [(h, *p[1:]) for h, p in zip(holds, one.points)])
        for one in ratios()
    ]
    return plot.draw("ratio-vs-hold", base, moved, TITLES)


def fairness_figure(base: Path) -> list[Path]:
    rng = random.Random(9)
    made = [
        Series(
            name,
            [
                (rank + 1, rate, None, None)
                for rank, rate in enumerate(
                    sorted(rng.gauss(1e6, 2e4 * (i + 1)) for _ in range(224))
                )
            ],
        )
        for i, name in enumerate(VARIANTS)
    ]
    return plot.draw("fairness", base, made, TITLES)


def power_figure(base: Path) -> list[Path]:
    made = [
        Series(
            name,
            [
                (s, p, max(0, p - 0.05), min(1, p + 0.05))
                for s in (1, 2, 5, 10, 30, 60, 300)
                for p in [1 - math.exp(-s * speed)]
            ],
        )
        for name, speed in (("1%", 0.01), ("2%", 0.04), ("5%", 0.3), ("none", 2e-4))
    ]
    return plot.draw("power", base, made, TITLES)


def line_figure(
    kind: str, made: Callable[[], list[Series]]
) -> Callable[[Path], list[Path]]:
    return lambda base: plot.draw(kind, base, made(), TITLES, MARKS)


SIZES = [float(128 << i) for i in range(14)]
TURNS = [1e3, 3e3, 1e4, 1.9e4, 5e4, 1e5, 3e5]
FIGURES: dict[str, tuple[str, Callable[[Path], list[Path]]]] = {
    "rates": ("rate-vs-tasks", line_figure("rate-vs-tasks", rates)),
    "ratios": ("ratio-vs-tasks", line_figure("ratio-vs-tasks", ratios)),
    "rates of one count": (
        "rate-vs-tasks",
        line_figure("rate-vs-tasks", lambda: rates([2])),
    ),
    "ratios of one count": (
        "ratio-vs-tasks",
        line_figure("ratio-vs-tasks", lambda: ratios([1])),
    ),
    "two counts": (
        "rate-vs-tasks",
        line_figure("rate-vs-tasks", lambda: rates([1, 2])),
    ),
    "holds": ("ratio-vs-hold", hold_figure),
    "map": ("map", map_figure),
    "fairness": ("fairness", fairness_figure),
    "windows": ("windows", windows_figure),
    "doublings": (
        "doublings",
        line_figure("doublings", lambda: along(SIZES, ["alone", "beside"], 1.1)),
    ),
    "path length": ("path-length", bars_figure),
    "churn": ("churn", line_figure("churn", lambda: along(TURNS, VARIANTS, 1.2))),
    "churn of one N": (
        "churn",
        line_figure("churn", lambda: along([19000.0], VARIANTS, 1.2)),
    ),
    "churn ratio": ("churn-ratio", line_figure("churn-ratio", ratios)),
    "power": ("power", power_figure),
}
