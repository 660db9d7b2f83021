# SPDX-License-Identifier: GPL-2.0-only
"""Put the switch into a kernel tree, and take it out again.

The tree's own alloc_fd() and close path stay as they are under new names;
what calls them is led through the switch of drivers/kernel/fdscale_dispatch.h,
and our own variants are compiled beside them.  fs/file.c.orig is the original.
"""

import os
import re
import shutil
from pathlib import Path

from bench.kernel_layout import Layout, read_layout, unknown, without_comments
from bench.problem import COULD_NOT, USAGE, Problem

HEADERS = ("fdscale_dispatch.h", "fdscale_variants.h", "fdscale_knob.h")
SOURCES = Path(__file__).resolve().parent.parent / "drivers" / "kernel"
MARK = "/* fdscale: the switch is in; the original is file.c.orig */\n"
FLAVOURS = ("direct", "pointer")


def transformed(text: str, flavour: str) -> str:
    """The text of fs/file.c with the switch in it.  Problem if it is unknown."""
    if flavour not in FLAVOURS:
        raise Problem(USAGE, f"no flavour '{flavour}': there are {', '.join(FLAVOURS)}")
    layout = read_layout(text)
    code = without_comments(text)
    edits: list[tuple[int, int, str]] = []

    alloc, pick, put = layout.alloc, layout.pick, layout.put
    edits.append(
        (
            alloc.start,
            alloc.body,
            f"#define FDV_DIRECT {int(flavour == 'direct')}\n"
            f'#include "fdscale_dispatch.h"\n'
            "static noinline int fdv_tree_alloc(unsigned int start, "
            "unsigned int end, unsigned int flags)\n",
        )
    )
    edits.append(
        (
            pick.start,
            pick.body,
            "static noinline struct file *"
            "fdv_tree_pick(struct files_struct *files, unsigned int fd)\n",
        )
    )
    m = re.compile(r"\b__put_unused_fd\(").search(code, put.body, put.end)
    assert m  # read_layout() has seen it
    edits.append((*m.span(), "fdv_via(put)("))
    for m in re.finditer(rf"\b{pick.name}\b", code):
        if pick.start <= m.start() < pick.end or inside_export(code, m.start()):
            continue
        if code[m.end()] != "(" or m.start() < pick.end:
            raise unknown(f"{pick.name}() is used otherwise than called")
        edits.append((m.start(), m.end(), "fdv_via(pick)"))

    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return MARK + text + tail(layout)


def inside_export(code: str, at: int) -> bool:
    """Whether a name stands within EXPORT_SYMBOL...()."""
    return bool(re.search(r"\bEXPORT_SYMBOL\w*\($", code[:at]))


def tail(layout: Layout) -> str:
    """What follows the end of the original: our variants and the switch."""
    bits = [f"FDV_{s.replace('-', '_').upper()}" for s in sorted(layout.switches)]
    text = f"""
static noinline void fdv_tree_put(struct files_struct *files, unsigned int fd)
{{
\t__put_unused_fd(files, fd);
}}
#define fdv_expand(files, fd) expand_files(files, fd)
#define FDV_EXPAND_TELLS {int(layout.expand_tells)}
#define FDV_HAS_TREE 1
#define FDV_TREE "{layout.name}"
#define FDV_TREE_SEARCH FDV_SEARCH_{layout.search.replace("-", "_")}
#define FDV_TREE_SET ({" | ".join(bits) or "0u"})
#include "fdscale_variants.h"
#include "fdscale_knob.h"
"""
    if not layout.pick_is_static:
        text += f"""
struct file *{layout.pick.name}(struct files_struct *files, unsigned int fd)
{{
\treturn fdv_via(pick)(files, fd);
}}
"""
    return text


def file_c(tree: Path) -> Path:
    """The tree's fs/file.c, or a Problem that says what is wrong with DIR."""
    path = tree / "fs" / "file.c"
    if not path.is_file():
        raise Problem(USAGE, f"{tree}: no fs/file.c in it: name a kernel source tree")
    return path


def original(tree: Path) -> str:
    """The text of fs/file.c as it was before us."""
    path = file_c(tree)
    text = path.read_text(encoding="utf-8")
    kept = path.with_name("file.c.orig")
    if not text.startswith(MARK):
        return text
    if not kept.is_file():
        raise Problem(
            COULD_NOT, f"{kept} is gone: take fs/file.c from the source again"
        )
    return kept.read_text(encoding="utf-8")


def describe(tree: Path) -> Layout:
    """What a tree's own code is."""
    return read_layout(original(tree))


def write_if_new(path: Path, text: str) -> None:
    """Write by renaming; a file with this text keeps its time, for make."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def patch(tree: Path, flavour: str) -> Layout:
    """Put the switch in, or change its flavour."""
    path = file_c(tree)
    text = original(tree)
    layout = read_layout(text)
    new = transformed(text, flavour)
    kept = path.with_name("file.c.orig")
    if not path.read_text(encoding="utf-8").startswith(MARK):
        if kept.exists() and kept.read_text(encoding="utf-8") != text:
            raise Problem(
                COULD_NOT, f"{kept} is there and is not ours: move it out of the way"
            )
        shutil.copy2(path, kept)
    for name in HEADERS:
        write_if_new(path.with_name(name), (SOURCES / name).read_text(encoding="utf-8"))
    write_if_new(path, new)
    return layout


def restore(tree: Path) -> bool:
    """Take the switch out; False when it was not in."""
    path = file_c(tree)
    if not path.read_text(encoding="utf-8").startswith(MARK):
        return False
    original(tree)  # a Problem when the original is gone
    os.replace(path.with_name("file.c.orig"), path)
    path.touch()  # for make: what was built from ours is out of date
    for name in HEADERS:
        path.with_name(name).unlink(missing_ok=True)
    return True
