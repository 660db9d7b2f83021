# SPDX-License-Identifier: GPL-2.0-only
"""Every command's help: by example, in 80 columns, each flag explained."""
from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest
from conftest import Run

from bench.cli import parser


def commands(
    of: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The words of every command, the program alone first."""
    yield words
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from commands(inner, (*words, name))


ALL = list(commands(parser()))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_teaches_by_example(words: tuple[str, ...], run_py: Run) -> None:
    done = run_py(*words, "--help", env={"COLUMNS": "80"})
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert done.stdout.isascii()
    typed = [line for line in lines if line.strip().startswith(("./run", "sudo ./run"))]
    assert any(" ".join(("run.py", *words)) in line for line in typed)
    assert "%%" not in done.stdout


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_flag_says_what_it_is(words: tuple[str, ...]) -> None:
    found = parser()
    for word in words:
        inner = next(
            a for a in found._actions if isinstance(a, argparse._SubParsersAction)
        )
        found = inner.choices[word]
    for action in found._actions:
        silent = isinstance(action, argparse._SubParsersAction)
        assert silent or action.help or action.choices, action.option_strings


def test_run_py_alone_shows_its_help(run_py: Run) -> None:
    alone, asked = run_py(), run_py("--help")
    assert alone.returncode == 2 and alone.stdout == asked.stdout


def test_there_are_as_many_commands_as_the_house_has() -> None:
    assert {words[0] for words in ALL if words} >= {
        *("sweep", "reproduce", "compare", "report", "calibrate", "topo", "doctor"),
        *("kernel", "hold", "list"),
    }
