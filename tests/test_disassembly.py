# SPDX-License-Identifier: GPL-2.0-only
"""What the compiler made of the variants: which calls there are under the lock."""

import re
import subprocess
from collections.abc import Iterator

import pytest
from conftest import BUILD

SEARCHES = (
    "one_level two_level first_word_v1 first_word_v2 first_word next_fd_word "
    "next_fd_word_checked next_fd_line three_level any_fd any_fd_split"
).split()
BASELINES = "two_level first_word next_fd_word".split()
ALLOCS = range(16)  # the sets of switches that make code of alloc
INLINE_SEARCH = 8
OPS = ("close", "unreserve", "dup3", "close_range")

# Waiting, growing and complaining are off the path; parts have a search of their own.
MAY_CALL = {
    *("next_zero", "queued_wait", "tas_wait", "table_expand", "table_complain"),
    *("files_put", "split_search", "split_alloc", "whole_take", "whole_drop"),
}


def expected() -> set[str]:
    """The functions of the four sets."""
    names = set()
    for lock in ("queued", "tas"):
        for of, searches in ((lock, SEARCHES), (f"{lock}_clone", BASELINES)):
            names |= {f"alloc_{s}_{i}_{of}" for s in searches for i in ALLOCS}
            shapes = "LOWEST" if of.endswith("clone") else "LOWEST TOP ANY SPLIT"
            names |= {
                f"{op}_SHAPE_{shape}{cond}_{of}"
                for op in OPS
                for shape in shapes.split()
                for cond in (0, 1)
            }
    return names


def functions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each function's name and instructions."""
    for part in re.split(r"\n(?=[0-9a-f]+ <)", text):
        head, *lines = part.splitlines()
        if name := re.fullmatch(r"[0-9a-f]+ <([^>]+)>:", head):
            yield name[1], [line.split("\t", 1)[-1] for line in lines]


@pytest.fixture(scope="module", name="code")
def disassembled() -> dict[str, list[str]]:
    """The program's functions; what is cut off one (.cold) counts as part of it."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", BUILD / "fdscale"],
        capture_output=True,
        text=True,
        check=True,
    )
    if "x86-64" not in done.stdout[:200]:
        pytest.skip("reads the instructions of x86-64")
    found: dict[str, list[str]] = {}
    for name, lines in functions(done.stdout):
        found.setdefault(name.split(".")[0], []).extend(lines)
    return found


def calls(lines: list[str], own: str) -> list[str]:
    """What is called, or jumped to outside; '*' where that is not in the code."""
    found = []
    for line in lines:
        jump = re.match(r"(?:\S+ )?(call|j\w+)\s+(\S+)(?:\s+<([^>+@.]+))?", line)
        if jump and jump[2].startswith("*"):
            found.append("*")
        elif jump and jump[3] and jump[3] != own:
            found.append(jump[3])
    return found


def test_no_indirect_call_in_any_variant(code: dict[str, list[str]]) -> None:
    assert expected() <= code.keys()
    for name in [*expected(), "next_zero", "split_search"]:
        assert set(calls(code[name], name)) <= MAY_CALL, name


def test_searches_of_unknown_length_are_calls(code: dict[str, list[str]]) -> None:
    """As in the kernel; and with inline-search none is."""
    for name in expected():
        parts = re.fullmatch(r"alloc_(\w+?)_(\d+)_(?:queued|tas)(?:_clone)?", name)
        if not parts or parts[1] == "any_fd_split":
            continue
        inlined = int(parts[2]) & INLINE_SEARCH
        assert ("next_zero" in calls(code[name], name)) == (not inlined), name
