# SPDX-License-Identifier: GPL-2.0-only
"""./run.py kernel: words that are wrong, before anything is built or booted."""

import argparse
import socket
import threading
from pathlib import Path

import pytest

from bench import kernel, kernel_build, kernel_counts, kernel_session
from bench.kernel_count import PARTS, VARIANTS, Count, own_function, part_table
from bench.kernel_count import searches_alone, strays, table
from bench.problem import COULD_NOT, USAGE, Problem


def run(*words: str) -> int:
    """The status of `kernel WORDS`; Problem passes through."""
    parser = argparse.ArgumentParser()
    kernel.add_parser(parser.add_subparsers(), lambda words: len(words))
    args = parser.parse_args(["kernel", *words])
    status: int = args.call(args)
    return status


@pytest.fixture(autouse=True)
def never_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of this file that gets as far as building has failed."""

    def build(source: str | None, flavour: str) -> None:
        raise AssertionError("it builds")

    monkeypatch.setattr(kernel_build, "build", build)


@pytest.mark.parametrize(
    "words, named",
    [
        ("count --row nothing@none", "no 'nothing'"),
        ("count --row dup-close@full", "dup-close@full"),
        ("count --row dup2-churn@none", "dup2-churn@none"),
        ("count --row growth", "number of turns"),
        ("count --row burst:random@low:64-5", "none or low:N"),
        ("count --row ,", "--row"),
        ("count --variant fastest", "no 'fastest'"),
        ("count --variant two-level+fast", "no switch 'fast'"),
        ("count --variant three-level", "model only"),
        ("count --flavour plain --variant patch-1", "no switch"),
        ("sweep --cpus 6 --threads 4", "--cpus 6"),
        ("sweep --cpus 300", "300"),
        ("patch /nonexistent", "/nonexistent"),
    ],
)
def test_wrong_words_are_named(words: str, named: str) -> None:
    with pytest.raises(Problem, match=named) as e:
        run(*words.split())
    assert e.value.status == USAGE


@pytest.mark.parametrize(
    "source, status",
    [("no-such-folder", USAGE), ("6.999", COULD_NOT)],
)
def test_a_source_that_is_not_there(source: str, status: int) -> None:
    with pytest.raises(Problem, match=source) as e:
        kernel_build.find_source(source)
    assert e.value.status == status


@pytest.mark.parametrize("command", ["build", "count", "sweep", "load", "patch"])
def test_help_teaches_by_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        run(command, "--help")
    assert e.value.code == 0
    assert f"./run.py kernel {command}" in capsys.readouterr().out


def test_patch_show_and_undo_of_a_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parent / "kernel/file.c").read_text()
    (tmp_path / "fs").mkdir()
    path = tmp_path / "fs/file.c"
    path.write_text(text)
    assert run("patch", str(tmp_path), "--show") == 0
    assert capsys.readouterr().out == "stock-6.12\n"
    assert run("patch", str(tmp_path)) == 0
    assert path.read_text() != text
    assert run("patch", str(tmp_path), "--undo") == 0
    assert path.read_text() == text
    with pytest.raises(Problem, match="not in"):
        run("patch", str(tmp_path), "--undo")


@pytest.mark.parametrize(
    "variant, function",
    [
        ("stock-6.12", "fdv_tree_alloc"),
        ("two-level+eager-expand+sanity-read+cond-clear", "fdv_tree_alloc"),
        ("stock-6.12#clone", "fdv_alloc_two_level_3"),
        ("patch-1", "fdv_alloc_two_level_0"),
        ("series-v3", "fdv_alloc_first_word_4"),
        ("merged-6.13", "fdv_alloc_next_fd_word_0"),
        ("series-v5+sanity-read", "fdv_alloc_next_fd_word_1"),
    ],
)
def test_the_function_that_a_variant_must_reach(variant: str, function: str) -> None:
    assert own_function(variant, "stock-6.12") == function


def test_the_merged_trees_own_code_is_merged() -> None:
    assert own_function("merged-6.13", "merged-6.13") == "fdv_tree_alloc"
    assert own_function("stock-6.12", "merged-6.13") == "fdv_alloc_two_level_3"


def test_a_stray_is_told() -> None:
    right = Count("r@none", "patch-1", 1, 1, {"fdv_alloc_two_level_0": (1, 9)})
    wrong = Count("r@none", "patch-1", 1, 1, {"fdv_tree_alloc": (1, 9)})
    assert strays([right], "stock-6.12") == []
    assert len(strays([wrong], "stock-6.12")) == 1


def test_the_tables_show_every_number() -> None:
    functions = {"fdv_tree_alloc": (1.0, 80.0), "_find_next_zero_bit": (2.0, 40.0)}
    counts = [
        Count("dup-close@none", "stock-6.12", 640, 32, functions),
        Count("dup-close@none", "patch-1", 607.5, 32),
    ]
    lines = table(counts)
    assert lines[1].split() == ["stock-6.12", "patch-1", "user"]
    assert lines[2].split() == ["dup-close@none", "640", "607.5", "32"]
    parts = part_table(counts, "dup-close@none")
    assert parts[0].split("  ")[1:] == [*PARTS, "the rest"]
    assert parts[1].split() == ["stock-6.12", "80", "40", "0", "0", "520"]


def test_tables_fit_80_columns() -> None:
    """Names too long for heads are numbered, and the numbers explained."""
    row = "dup-close@low:100000-5"
    names = searches_alone("stock-6.12")
    functions = {"fdv_tree_alloc": (1.0, 80.0)}
    counts = [Count(row, v, 62504, 3408, functions) for v in names]
    lines = [*table(counts), *part_table(counts, row)]
    assert max(map(len, lines)) <= 80
    assert all(f"[{i}] {v}" in lines for i, v in enumerate(names, 1))
    counts = [Count(row, v, 62504, 3408, functions) for v in VARIANTS]
    assert max(map(len, table(counts))) <= 80
    assert table(counts)[1].split() == [*VARIANTS, "user"]


def test_what_differs_besides_the_variants_own_code_is_told() -> None:
    """Between turns, of which the table has the median, and between variants."""

    def told(first: Count, second: Count) -> list[str]:
        return table([first, second])[3:]

    def one(variant: str, kernel: float, alloc: float, share: float = 0) -> Count:
        functions = {"alloc_fd": (1.0, alloc)}
        return Count("pipe-close@low:64", variant, kernel, 9, functions, 7, share)

    assert told(one("a", 600, 80, 0.01), one("b", 580, 60)) == []
    (head, line) = told(one("a", 600, 80), one("b", 590, 60))
    assert line == "  pipe-close@low:64: variants differ by 10"
    assert "--row" in head and len(head) <= 80
    (_, line) = told(one("a", 600, 80, 0.25), one("b", 580, 60, 0.01))
    assert line == "  pipe-close@low:64: 25% of turns take another"


def test_counts_are_kept_and_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    words = {"release": "6.12.9", "flavour": "direct"}
    kernel = kernel_build.Kernel(tmp_path / "build-1", words)
    first = [Count("a@none", v, 1, 1, {"f": (1.0, 2.0)}) for v in ("p", "q")]
    path = kernel_counts.keep(kernel, first)
    assert path.parent == tmp_path / "fdscale/counts"
    again = Count("a@none", "q", 5, 1, {"f": (1.0, 2.0)})
    kernel_counts.keep(kernel, [again])
    kept = kernel_counts.found("6.12")
    assert [(c.variant, c.kernel) for c in kept] == [("p", 1), ("q", 5)]
    assert kept[1].part("alloc") == 0 and list(kept[1].functions["f"]) == [1.0, 2.0]
    assert kernel_counts.found("6.1") == []
    assert kernel_counts.found("6.12", "plain") == []
    # Another build's numbers are other numbers.
    kernel_counts.keep(kernel_build.Kernel(tmp_path / "build-2", words), [again])
    assert len(kernel_counts.found("6.12")) == 1


def test_a_proxy_that_was_stopped_ends_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to be told to it is dropped, and the next one is answered."""
    session = object.__new__(kernel_session.Session)
    session.door = socket.socket(socket.AF_UNIX)
    session.door.bind(str(tmp_path / "door"))
    session.door.listen()
    gone = threading.Event()

    def job(line: str, seconds: float = 0) -> kernel_session.Job:
        gone.wait()
        return kernel_session.Job(0, b"x", b"")

    monkeypatch.setattr(session, "run", job)
    serving = threading.Thread(target=session.serve, daemon=True)
    serving.start()
    for stopped in (True, False):
        with socket.socket(socket.AF_UNIX) as proxy:
            proxy.settimeout(20)
            proxy.connect(str(tmp_path / "door"))
            proxy.sendall(b'[["list"], ""]\n')
            if not stopped:
                assert proxy.makefile().read().startswith("[0, ")
        gone.set()
    session.door.shutdown(socket.SHUT_RDWR)
    session.door.close()
    serving.join(20)
    assert not serving.is_alive()


def test_windows_are_longer_where_pus_share_a_cpu() -> None:
    """16 PUs on a CPU: 16 x 10 ms, unless the words say how long, or come of a plan."""
    words = ["--workload", "dup-close"]
    assert kernel.longer_windows(words, 16) == ["--window-ms", "160", *words]
    assert kernel.longer_windows(words, 1) == words
    for said in (["--window-ms", "5"], ["--window-ms=5"], ["--plan", "x.toml"]):
        assert kernel.longer_windows(said, 16) == said
