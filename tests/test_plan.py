# SPDX-License-Identifier: GPL-2.0-only
"""Plans: what they expand to, and how wrong ones are named."""

import os
from pathlib import Path
from typing import Any

import pytest

from bench.drive import command
from bench.plan import (
    Cell,
    Plan,
    common_slots,
    expand,
    load_plan,
    parse_percent,
    parse_tasks,
    task_counts,
    variants_for,
)
from bench.problem import Problem

WORKLOADS = [
    {
        "name": name,
        "backend": backend,
        "empty_table": name == "dup2-churn",
        "processes_only": name == "dup2-churn",
        "fixed_work": name == "dup2-churn",
    }
    for name in ("dup-close", "open-close", "dup2-churn")
    for backend in ("kernel", "model")
]
LISTING: dict[str, Any] = {
    "workloads": WORKLOADS,
    "kernel": "merged-6.13",
    "switch": False,
    "searches": [
        {"name": "two-level", "clone": True},
        {"name": "next_fd-line", "clone": False},
    ],
    "presets": [{"name": "stock-6.12", "clone": True}],
    "all": {"kernel": ["merged-6.13"], "model": ["two-level", "stock-6.12"]},
}
ICE_LAKE: dict[str, Any] = {
    "pus": 160,
    "usable": [
        {"pu": n, "core": n % 80, "package": n % 80 // 40, "node": n % 80 // 40}
        for n in range(160)
    ],
    "sizes": [
        {"tasks": 40, "what": "one package, one a core"},
        {"tasks": 80, "what": "one package"},
        {"tasks": 160, "what": "all PUs"},
    ],
}


def test_task_counts_are_topological() -> None:
    """Powers of two, and what fills a package's cores, its PUs, the machine."""
    expected = [1, 2, 4, 8, 16, 32, 40, 64, 80, 128, 160]
    assert task_counts(ICE_LAKE) == expected


def test_expand_multiplies() -> None:
    """Two holds, one mode, three counts, two backends; churn where it makes sense."""
    plan = Plan(workload=["dup-close"], mode=["threads"], tasks=[1, 2, 4])
    cells = expand(plan, ICE_LAKE, LISTING)
    assert len(cells) == len(set(cells)) == 2 * 2 * 3
    plan = Plan(workload=["dup2-churn"], tasks=[1])
    cells = expand(plan, ICE_LAKE, LISTING)
    assert {(c.mode, c.hold) for c in cells} == {("processes", "none")}


def test_what_was_asked_for_alone_is_left_to_the_driver() -> None:
    """No silent skipping: threads alone, a hold alone, are refused aloud later."""
    plan = Plan(workload=["dup2-churn"], mode=["threads"], hold=["low:9"], tasks=[1])
    assert len(expand(plan, ICE_LAKE, LISTING)) == 2


def test_compared_cells_have_one_table_size() -> None:
    """A curve over tasks has the size that its largest count needs."""
    plan = Plan(workload=["dup-close"], backend=["kernel"], hold=["low:64"])
    cells = expand(plan, ICE_LAKE, LISTING)
    sizes = {(c.mode, c.table_size) for c in cells}
    # threads: 64 + 2 x 160 in flight + 64 clear + 160 own files = 608
    # processes: 64 + 2 + 64 + 1 = 131
    assert sizes == {("threads", 1024), ("processes", 256)}


def test_common_slots_at_a_power_of_two() -> None:
    """61 held, one task: 61 + 3 + 64 is 128, and 128 slots hold 0..127."""
    assert common_slots("low:61", "threads", 1) == 128
    assert common_slots("low:62", "threads", 1) == 256


def test_options_multiply_by_workload() -> None:
    """A list of files is a cell each, of that workload only."""
    plan = Plan(
        workload=["dup-close", "open-close"],
        backend=["kernel"],
        hold=["none"],
        mode=["threads"],
        tasks=[1],
        options={"open-close": {"file": ["own", "shared"]}},
    )
    names = {c.name() for c in expand(plan, ICE_LAKE, LISTING)}
    assert names == {"dup-close", "open-close --file own", "open-close --file shared"}


MODEL = Cell("dup-close", "model", "none", "compact", "threads", 1)


@pytest.mark.parametrize(
    "variants, baseline, expected",
    [
        (["stock-6.12", "next_fd-line"], "", "stock-6.12#clone"),
        (["next_fd-line", "two-level+cond-clear"], "", None),
        (
            ["next_fd-line", "two-level+cond-clear"],
            "two-level+cond-clear",
            "two-level+cond-clear#clone",
        ),
        (["stock-6.12"], "", None),
    ],
)
def test_the_baselines_clone_comes_along(
    variants: list[str], baseline: str, expected: str | None
) -> None:
    """On the model, where there is a second copy and something to compare."""
    plan = Plan(variant=variants, baseline=baseline)
    more = [expected] if expected else []
    assert variants_for(MODEL, plan, LISTING) == variants + more


def test_the_kernel_has_one_form() -> None:
    """Whatever the plan names for the model."""
    kernel = Cell("dup-close", "kernel", "none", "compact", "threads", 1)
    assert variants_for(kernel, Plan(), LISTING) == ["merged-6.13"]
    switched = LISTING | {"switch": True}
    assert variants_for(kernel, Plan(), switched) == Plan().variant


def test_all_is_what_the_backend_has() -> None:
    """A kernel's switch has fewer than the model; without one it is what runs."""
    kernel = Cell("dup-close", "kernel", "none", "compact", "threads", 1)
    plan = Plan(variant=["stock-6.12", "all"])
    assert variants_for(kernel, plan, LISTING) == ["merged-6.13"]
    every = {"kernel": ["two-level", "stock-6.12"], "model": ["two-level"]}
    switched = LISTING | {"switch": True, "all": every}
    assert variants_for(kernel, plan, switched) == ["stock-6.12", "two-level"]
    clone = "stock-6.12#clone"
    assert variants_for(MODEL, plan, switched) == ["stock-6.12", "two-level", clone]


def test_cells_survive_json() -> None:
    """as_dict() and back."""
    cell = Cell("w", "model", "none", "compact", "threads", 2, (("file", "own"),), 64)
    assert Cell.from_dict(cell.as_dict()) == cell


@pytest.mark.parametrize("text", ["0", "-1", "abc", "1e9", "1,,2", "", "70000", "1.5"])
def test_wrong_task_counts(text: str) -> None:
    """Each names itself."""
    with pytest.raises(Problem, match="--tasks") as caught:
        parse_tasks(text)
    assert caught.value.status == 2


def test_task_lists() -> None:
    """Sorted, each once; auto stays."""
    assert parse_tasks("8,1,2,2") == [1, 2, 8]
    assert parse_tasks("auto") == "auto"


@pytest.mark.parametrize(
    "text, value", [("0.5%", 0.005), ("2", 0.02), ("0.5", 0.005), ("10%", 0.1)]
)
def test_percentages(text: str, value: float) -> None:
    """With or without the sign."""
    assert parse_percent("--precision", text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "x", "-1%", "0%", "100%", "1%%"])
def test_wrong_percentages(text: str) -> None:
    """Each names itself."""
    with pytest.raises(Problem, match="--precision"):
        parse_percent("--precision", text)


@pytest.mark.parametrize(
    "text, named",
    [
        ("", "empty"),
        ("runs = 5\nrnus = 6\n", r"line 2: rnus"),
        ("hold = ['none']\nbackend = ['kernl']\n", r"line 2: backend.*kernl"),
        ("tasks = [0]\n", r"line 1: tasks"),
        ("runs = 'many'\n", r"line 1: runs.*many"),
        ("runs = 5\nruns = \n", r"line 2"),
        ("hold = 'none'\n", r"line 1: hold"),
        ("[options.dup-close]\nblow = 64\n", r"line 2: options.dup-close.blow"),
        ("seed = 1\nruns = 7.0\n", r"line 2: runs: 7.0 is not of type 'integer'"),
        ("seed = 4294967296\n", r"line 1: seed"),
        ("runs = 5\nprecision = '0%'\n", r"line 2: precision: '0%'"),
        (f"seed = 1{'0' * 5000}\n", r"digits"),
        ("table-node = 65536\n", r"line 1: table-node"),
        ('hold = ["file:a\\u0000b"]\n', r"line 1: hold: a control character"),
        ('lock = "tas"\nplace = ["a\\nb"]\n', r"line 2: place: a control character"),
        ('["a\\nb"]\n', r"line 1: a.*nb: .*unexpected"),
        ("max-time = inf\n", r"line 1: max-time: inf"),
        (f"runs = {'[' * 5000}\n", r"nested too deep"),
        (f"baseline = '{'x' * (1 << 20)}'\n", r"larger than 1 MiB"),
        ("\udcff = 1\n", r"not UTF-8"),
    ],
)
def test_wrong_plans(tmp_path: Path, text: str, named: str) -> None:
    """The file, the line and the key."""
    path = tmp_path / "my plan.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Problem, match=named) as caught:
        load_plan(path)
    assert caught.value.status == 2 and str(path) in str(caught.value)


def test_missing_plan(tmp_path: Path) -> None:
    """Named, and so is a folder or what is not text."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.toml", ".", "binary"):
        with pytest.raises(Problem) as caught:
            load_plan(tmp_path / name)
        assert caught.value.status == 2


def test_plan_says_all(tmp_path: Path) -> None:
    """Keys with dashes, and --quick as a key."""
    path = tmp_path / "plan.toml"
    path.write_text(
        'quick = true\nwindow-ms = 20\nmax-time = 9\nprecision = "1%"\n'
        'tasks = [1, 3]\nhold = ["low:64"]\n[options.open-close]\nfile = ["null"]\n'
    )
    plan = load_plan(path)
    assert plan.quick and plan.window_ms == 5 and plan.max_time == 9
    assert plan.precision == 0.01 and plan.tasks == [1, 3]
    assert plan.options == {"open-close": {"file": ["null"]}}


def test_a_workloads_own_hold_and_backend() -> None:
    """Its one hold once, its one backend; asked for alone, the driver refuses."""
    base = {"empty_table": False, "processes_only": True, "fixed_work": False}
    yuma = [
        base | {"name": "yuma", "backend": b, "hold": "low:66"}
        for b in ("kernel", "model")
    ]
    read = base | {"name": "read1", "backend": "kernel", "hold": None}
    listing = LISTING | {"workloads": [*yuma, read]}
    plan = Plan(workload=["yuma", "read1"], mode=["processes"], tasks=[1])
    found = [(c.workload, c.backend, c.hold) for c in expand(plan, ICE_LAKE, listing)]
    assert sorted(found) == [
        ("read1", "kernel", "low:64"),
        ("read1", "kernel", "none"),
        ("yuma", "kernel", "low:66"),
        ("yuma", "model", "low:66"),
    ]
    plan = Plan(workload=["yuma", "read1"], mode=["processes"], tasks=[1])
    plan.backend, plan.hold = ["model"], ["none"]
    found = [(c.workload, c.backend, c.hold) for c in expand(plan, ICE_LAKE, listing)]
    assert found == [("yuma", "model", "none"), ("read1", "model", "none")]


def test_a_table_sized_by_options_is_left_to_the_driver() -> None:
    """burst takes as many as its --size: a common size might not hold them."""
    facts = {"name": "burst", "backend": "model", "empty_table": False}
    facts |= {"processes_only": False, "sized_by_options": True}
    plan = Plan(workload=["burst"], backend=["model"], hold=["none"], tasks=[1, 2])
    cells = expand(plan, ICE_LAKE, LISTING | {"workloads": [facts]})
    assert {c.table_size for c in cells} == {0}


def test_the_end_of_a_hold_is_part_of_a_cell() -> None:
    """Two --hold-top are two cells, said so; a hold with an end of its own has none."""
    plan = Plan(workload=["dup-close"], backend=["model"], mode=["threads"], tasks=[1])
    plan.hold = ["low:64", "every:3"]
    plain, short = expand(plan, ICE_LAKE, LISTING)
    plan.hold_top = 2048
    same, longer = expand(plan, ICE_LAKE, LISTING)
    assert plain == same and plain.hold_top == 0
    assert short != longer and short.group() != longer.group()
    assert "hold every:3 below 2048," in str(longer)
    assert Cell.from_dict(longer.as_dict()) == longer
    words = command(longer, ["two-level"], Plan(), 1)
    assert words[words.index("--hold-top") + 1] == "2048"
    assert "--hold-top" not in command(plain, ["two-level"], plan, 1)


def test_a_live_processes_table_is_common_to_a_curve() -> None:
    """As large for one task as for many."""
    plan = Plan(workload=["dup-close"], backend=["model"], mode=["threads"])
    plan.hold, plan.tasks = [f"pid:{os.getpid()}"], [1, 100]
    (size,) = {c.table_size for c in expand(plan, ICE_LAKE, LISTING)}
    assert size >= 512
