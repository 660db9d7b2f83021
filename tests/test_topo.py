# SPDX-License-Identifier: GPL-2.0-only
"""The drawing of where each task goes."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.topo import ranges, render


def machine(
    packages: int, l3s: int, cores: int, siblings: int, node: bool = True
) -> dict[str, Any]:
    """A machine as `topology --json` says it: each package a node, `l3s` L3s in
    each, `cores` cores in each of those, numbered as Linux does on Intel."""
    total = packages * l3s * cores
    usable = [
        {
            "pu": core + sibling * total,
            "core": core,
            "l3": core // cores,
            "node": core // (l3s * cores) if node else -1,
            "package": core // (l3s * cores),
            "sibling": sibling,
            "kind": 0,
        }
        for l3 in range(packages * l3s)
        for sibling in range(siblings)
        for core in range(l3 * cores, (l3 + 1) * cores)
    ]
    return {
        "source": "a machine of the test",
        "cpu_model": None,
        "packages": packages,
        "nodes": packages if node else 0,
        "l3s": packages * l3s,
        "cores": total,
        "pus": len(usable),
        "core_kinds": 1,
        "usable": usable,
    }


def compact(topology: dict[str, Any]) -> list[int]:
    return [pu["pu"] for pu in topology["usable"]]


@pytest.mark.parametrize(
    "numbers, text",
    [
        ([], ""),
        ([7], "7"),
        ([3, 2, 0, 1, 8], "0-3,8"),
        ([0, 4, 8, 12], "0-12:4"),
        ([0, 1, 2, 3, 16, 17, 18, 19], "0-3,16-19"),
        ([1, 5], "1,5"),
    ],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@given(st.sets(st.integers(0, 600)))
def test_ranges_say_the_same_numbers(numbers: set[int]) -> None:
    back: list[int] = []
    for part in filter(None, ranges(numbers).split(",")):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        back += range(int(first), int(last or first) + 1, int(step or 1))
    assert back == sorted(numbers)


def test_the_example_of_the_design() -> None:
    topology = machine(2, 1, 4, 2)
    text = render(topology, [0, 1, 2, 3, 8, 9, 10, 11, 4, 5])
    assert text.splitlines()[1:] == [
        "2 packages, 2 nodes, 2 L3s, 8 cores, 16 PUs",
        "10 tasks on 10 PUs of 6 cores",
        "a cell is a core: the task on each of its PUs, . where none",
        "",
        "package 0: 8 tasks, CPUs 0-3,8-11",
        "               CPU",
        "  node 0 L3 0    0  0+4  1+5  2+6  3+7",
        "",
        "package 1: 2 tasks, CPUs 4-7,12-15",
        "               CPU",
        "  node 1 L3 1    4  8+.  9+.  .+.  .+.",
    ]


def test_more_tasks_than_pus() -> None:
    text = render(machine(1, 1, 2, 1), [0, 1, 0, 1, 0])
    assert "5 tasks on 2 PUs of 2 cores" in text
    assert text.splitlines()[-1].split() == [
        "node",
        "0",
        "L3",
        "0",
        "0",
        "0,2..",
        "1,3",
    ]


def test_unbound_and_without_a_node() -> None:
    text = render(machine(2, 1, 2, 1, node=False), [-1, -1, -1])
    assert "3 tasks, not bound" in text
    assert "no node L3 1" in text
    assert "node 0" not in text and "0 nodes" not in text


def test_kinds_of_core_have_rows_of_their_own() -> None:
    topology = machine(1, 1, 4, 1)
    topology["core_kinds"] = 2
    for pu in topology["usable"][2:]:
        pu["kind"] = 1
    rows = render(topology, []).splitlines()[-2:]
    assert rows[0].split() == ["node", "0", "L3", "0", "P", "0", ".", "."]
    assert rows[1].split() == ["node", "0", "L3", "0", "E", "2", ".", "."]


def test_516_pus_on_one_screen() -> None:
    topology = machine(2, 3, 43, 2)
    text = render(topology, compact(topology))
    assert len(text.splitlines()) <= 60
    drawn = re.findall(r"(\d+)\+(\d+)", text)
    assert sorted(int(n) for pair in drawn for n in pair) == list(range(516))


@given(
    st.integers(1, 4),
    st.integers(1, 8),
    st.integers(1, 44),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 65536),
)
def test_no_line_is_wider_than_the_terminal(
    packages: int, l3s: int, cores: int, siblings: int, tasks: int
) -> None:
    topology = machine(packages, l3s, cores, siblings)
    order = compact(topology)
    pus = (order * (tasks // len(order) + 1))[:tasks]
    for width in (80, 120):
        lines = render(topology, pus, width).splitlines()
        assert max(map(len, lines)) <= width
