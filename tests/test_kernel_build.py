# SPDX-License-Identifier: GPL-2.0-only
"""./run.py kernel build of a tree whose Makefile only pretends: what is copied,
patched and kept, and that a second call does nothing."""

from pathlib import Path

import pytest

from bench import kernel_build
from bench.kernel_transform import MARK
from bench.problem import COULD_NOT, Problem

SOURCE = (Path(__file__).parent / "kernel/file.c").read_text()
# The "kernel" is the fs/file.c that it was built from; each build leaves a line.
MAKEFILE = """\
tinyconfig:
\ttouch $(O)/.config
olddefconfig:
\ttrue
bzImage:
\tmkdir -p $(O)/arch/x86/boot $(O)/include/config
\tcp fs/file.c $(O)/arch/x86/boot/bzImage
\techo 6.99.0 > $(O)/include/config/kernel.release
\tgcc -c -x c /dev/null -o $(O)/vmlinux
\techo built >> $(O)/times
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree; the cache is beside it."""
    monkeypatch.setenv("FDSCALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_build, "NEEDS", {})
    folder = tmp_path / "linux"
    (folder / "fs").mkdir(parents=True)
    (folder / "fs/file.c").write_text(SOURCE)
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


def builds(tmp_path: Path) -> int:
    """How often make made a kernel."""
    return sum(
        len(p.read_text().split()) for p in tmp_path.glob("cache/source-*/build/times")
    )


def test_a_second_call_does_nothing(tree: Path, tmp_path: Path) -> None:
    first = kernel_build.build(str(tree), "direct")
    words = first.manifest
    assert words["release"] == "6.99.0" and words["tree"] == "stock-6.12"
    assert words["source"] == str(tree) and words["flavour"] == "direct"
    assert first.image.read_text().startswith(MARK)
    again = kernel_build.build(str(tree), "direct")
    assert again == first and builds(tmp_path) == 1
    assert kernel_build.built(str(tree), "direct") == first


def test_the_tree_itself_is_left_alone(tree: Path, tmp_path: Path) -> None:
    kernel_build.build(str(tree), "pointer")
    assert sorted(p.name for p in tree.rglob("*")) == ["Makefile", "file.c", "fs"]
    assert (tree / "fs/file.c").read_text() == SOURCE


def test_flavours_and_changes_are_kernels_of_their_own(
    tree: Path, tmp_path: Path
) -> None:
    direct = kernel_build.build(str(tree), "direct")
    plain = kernel_build.build(str(tree), "plain")
    assert plain.image.read_text() == SOURCE
    (tree / "fs/file.c").write_text(f"{SOURCE}/* changed */\n")
    changed = kernel_build.build(str(tree), "plain")
    assert changed.folder != plain.folder != direct.folder
    assert changed.image.read_text().endswith("/* changed */\n")
    assert plain.image.read_text() == SOURCE
    assert builds(tmp_path) == 3


def test_a_build_that_fails_names_the_error_and_leaves_no_kernel(tree: Path) -> None:
    broken = MAKEFILE.replace(
        "\tgcc", "\t@echo 'fs/file.c:7: error: oops'; false\n\tgcc"
    )
    (tree / "Makefile").write_text(broken)
    with pytest.raises(Problem, match="fs/file.c:7: error: oops") as e:
        kernel_build.build(str(tree), "direct")
    assert e.value.status == COULD_NOT
    assert kernel_build.built(str(tree), "direct") is None
    (tree / "Makefile").write_text(MAKEFILE)
    assert kernel_build.build(str(tree), "direct").image.is_file()


def test_an_unknown_tree_is_not_built(tree: Path, tmp_path: Path) -> None:
    (tree / "fs/file.c").write_text(SOURCE.replace("int alloc_fd(", "long alloc_fd("))
    with pytest.raises(Problem, match="alloc_fd"):
        kernel_build.build(str(tree), "direct")
    assert builds(tmp_path) == 0
