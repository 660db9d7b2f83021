# SPDX-License-Identifier: GPL-2.0-only
"""The switch in fs/file.c: what is recognised, what is refused, and undoing it.

A made-up file in the shape of fs/file.c shows the refusals; Debian's source
packages, where they are installed, show that real ones are recognised.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from bench import kernel_transform
from bench.kernel_layout import functions, read_layout
from bench.problem import COULD_NOT, USAGE, Problem

MADE_UP = (Path(__file__).parent / "kernel/file.c").read_text()


@cache
def debian(version: str) -> str:
    """fs/file.c of a Debian source package; skips where it is not installed."""
    package = f"linux-source-{version}"
    archive = Path(f"/usr/src/{package}.tar.xz")
    if not archive.is_file():
        pytest.skip(f"{package} is not installed (apt-get install {package})")
    name = f"{package}/fs/file.c"
    command = f"tar -xJOf {archive} --occurrence=1 {name}"
    done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module", params=["6.1", "6.12"])
def real(request: pytest.FixtureRequest) -> str:
    """Each Debian kernel's fs/file.c."""
    return debian(request.param)


def tree_of(folder: Path, text: str) -> Path:
    """A tree with this fs/file.c and nothing else."""
    (folder / "fs").mkdir()
    (folder / "fs/file.c").write_text(text)
    return folder


def with_fast_path(text: str) -> str:
    """The change that was merged for 6.13, made here on the text of 6.12."""
    edits = [
        # the rest of the word of start first
        (
            r"(unsigned int bitbit = start / BITS_PER_LONG;\n)(\n\tbitbit = )",
            r"\1\tunsigned int bit;\n\n"
            "\tbit = find_next_zero_bit(&fdt->open_fds[bitbit], BITS_PER_LONG,\n"
            "\t\t\t\t start & (BITS_PER_LONG - 1));\n"
            "\tif (bit < BITS_PER_LONG)\n"
            r"\t\treturn bit + bitbit * BITS_PER_LONG;\n\2",
        ),
        # no read of the slot
        (r"#if 1\n\t/\* Sanity check \*/.*?#endif\n", ""),
        # expand only where it must
        (
            r"\terror = expand_files\(files, fd\);\n\tif \(error < 0\)\n\t\tgoto out;\n"
            r".*?\tif \(error\)\n\t\tgoto repeat;\n",
            "\tif (unlikely(fd >= fdt->max_fds)) {\n"
            "\t\terror = expand_files(files, fd);\n"
            "\t\tif (error < 0)\n\t\t\tgoto out;\n\t\tgoto repeat;\n\t}\n",
        ),
        # clear the full bit if it is set
        (
            r"\t__clear_bit\(fd / BITS_PER_LONG, fdt->full_fds_bits\);\n",
            "\tfd /= BITS_PER_LONG;\n"
            "\tif (test_bit(fd, fdt->full_fds_bits))\n"
            "\t\t__clear_bit(fd, fdt->full_fds_bits);\n",
        ),
    ]
    for pattern, new in edits:
        text, n = re.subn(pattern, new, text, count=1, flags=re.S)
        assert n == 1, pattern
    return text


def test_made_up_file_is_recognised() -> None:
    layout = read_layout(MADE_UP)
    assert layout.name == "stock-6.12"
    assert layout.pick.name == "pick_file"
    assert layout.expand_tells


@pytest.mark.parametrize(
    "old, new, name",
    [
        (
            "\t__clear_bit(fd / 64,",
            "\tif (test_bit(n, fdt->full_fds_bits))\n\t\t__clear_bit(fd / 64,",
            "two-level+cond-clear+eager-expand+sanity-read",
        ),
        (
            '\tif (rcu_access_pointer(fdt->fd[fd]) != NULL)\n\t\tprintk("oops");\n',
            "",
            "two-level+eager-expand",
        ),
        (
            '\tif (rcu_access_pointer(fdt->fd[fd]) != NULL)\n\t\tprintk("oops");\n',
            "\tVFS_BUG_ON(fdt->fd[fd]);\n",
            "two-level+eager-expand",
        ),
        (
            "\terror = expand_files(files, fd);\n",
            "\tif (fd >= fdt->max_fds) {\n"
            "\t\terror = expand_files(files, fd);\n\t}\n",
            "two-level+sanity-read",
        ),
    ],
)
def test_switches_are_seen_one_by_one(old: str, new: str, name: str) -> None:
    assert old in MADE_UP
    assert read_layout(MADE_UP.replace(old, new)).name == name


@pytest.mark.parametrize(
    "old, new, named",
    [
        ("static int alloc_fd(", "static int alloc_an_fd(", "alloc_fd"),
        ("unsigned end,", "unsigned long end,", "alloc_fd"),
        ("\t__set_open_fd(fd, fdt);\n", "\tset_it(fd, fdt);\n", "set_it"),
        (
            "goto out;\n\terror",
            "goto out;\n\tfd = find_next_fd(fdt, 9);\n\terror",
            "find_next_fd",
        ),
        ("fdt->open_fds, maxfd", "fdt->open_fds, maxfd / 2", "find_next_fd"),
        (
            "\treturn find_next_zero_bit",
            "\tlook(fdt);\n\treturn find_next_zero_bit",
            "find_next_fd",
        ),
        ("\t\tfiles->next_fd = fd;\n", "\t\tfiles->next_fd = 0;\n", "__put_unused_fd"),
        ("\treturn 1;\n", "\treturn ok;\n", "expand_fdtable"),
        ("\t__clear_bit(fd, fdt->open_fds);\n", "", "__clear_open_fd"),
        ("\t\treturn NULL;\n", "\t\treturn ERR_PTR(-EBADF);\n", "0 functions"),
    ],
)
def test_what_is_not_known_is_refused_by_name(old: str, new: str, named: str) -> None:
    assert old in MADE_UP
    with pytest.raises(Problem) as e:
        read_layout(MADE_UP.replace(old, new))
    assert e.value.status == COULD_NOT
    assert named in str(e.value)
    assert "\n" not in str(e.value)


def test_two_definitions_are_refused() -> None:
    twice = MADE_UP + MADE_UP[MADE_UP.index("void put_unused_fd") :]
    with pytest.raises(Problem, match="2 definitions of put_unused_fd"):
        read_layout(twice)


def test_a_refused_tree_is_left_alone(tmp_path: Path) -> None:
    text = MADE_UP.replace("static int alloc_fd(", "static long alloc_fd(")
    tree = tree_of(tmp_path, text)
    with pytest.raises(Problem):
        kernel_transform.patch(tree, "direct")
    assert [p.name for p in (tree / "fs").iterdir()] == ["file.c"]
    assert (tree / "fs/file.c").read_text() == text


def test_debian_kernels_are_stock(real: str) -> None:
    layout = read_layout(real)
    assert layout.name == "stock-6.12"
    assert layout.expand_tells


def test_the_merged_form_is_named_by_its_preset() -> None:
    assert read_layout(with_fast_path(debian("6.12"))).name == "merged-6.13"


@pytest.mark.parametrize("flavour", kernel_transform.FLAVOURS)
def test_everything_that_called_is_led_through_the_switch(
    real: str, flavour: str
) -> None:
    layout = read_layout(real)
    text = kernel_transform.transformed(real, flavour)
    found = {f.name: f for f in functions(text)}
    assert "alloc_fd" not in found
    assert {"fdv_tree_alloc", "fdv_tree_pick", "fdv_tree_put"} <= set(found)
    for name, f in found.items():
        if name not in ("fdv_tree_pick", layout.pick.name):
            assert layout.pick.name not in f.calls(), name
    # The tree's own code is its own: the bodies are untouched.
    assert found["fdv_tree_alloc"].code == layout.alloc.code
    assert found["fdv_tree_pick"].code == layout.pick.code
    assert f"FDV_DIRECT {int(flavour == 'direct')}\n" in text


def test_patch_change_and_undo(real: str, tmp_path: Path) -> None:
    tree = tree_of(tmp_path, real)
    path = tree / "fs/file.c"
    kernel_transform.patch(tree, "direct")
    direct = path.read_text()
    assert (tree / "fs/file.c.orig").read_text() == real
    assert direct != real
    kernel_transform.patch(tree, "pointer")
    assert path.read_text() not in (direct, real)
    kernel_transform.patch(tree, "direct")
    assert path.read_text() == direct
    assert kernel_transform.describe(tree).name == "stock-6.12"
    assert kernel_transform.restore(tree)
    assert path.read_text() == real
    assert [p.name for p in (tree / "fs").iterdir()] == ["file.c"]
    assert not kernel_transform.restore(tree)


def test_patching_again_keeps_the_time_for_make(real: str, tmp_path: Path) -> None:
    tree = tree_of(tmp_path, real)
    kernel_transform.patch(tree, "direct")
    before = (tree / "fs/file.c").stat().st_mtime_ns
    kernel_transform.patch(tree, "direct")
    assert (tree / "fs/file.c").stat().st_mtime_ns == before


def test_somebody_elses_original_is_not_overwritten(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, MADE_UP)
    (tree / "fs/file.c.orig").write_text("mine")
    with pytest.raises(Problem, match="file.c.orig"):
        kernel_transform.patch(tree, "direct")
    assert (tree / "fs/file.c").read_text() == MADE_UP


def test_a_folder_that_is_no_tree(tmp_path: Path) -> None:
    with pytest.raises(Problem) as e:
        kernel_transform.patch(tmp_path, "direct")
    assert e.value.status == USAGE
    assert str(tmp_path) in str(e.value)


def test_a_wrong_flavour_names_the_right_ones() -> None:
    with pytest.raises(Problem, match="direct, pointer") as e:
        kernel_transform.transformed(MADE_UP, "plain")
    assert e.value.status == USAGE
