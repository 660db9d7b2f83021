# SPDX-License-Identifier: GPL-2.0-only
"""What a tree's fs/file.c holds: its functions found by what they are.

A function counts as found when there is one definition with the signature
asked for and its body has the shape that is known: the calls it makes, the
bitmaps it searches, in that order.  Anything else is a Problem that names the
function: nothing is guessed.
"""

import re
from dataclasses import dataclass

from bench.problem import COULD_NOT, Problem

UNSIGNED = r"unsigned(?:\s+int)?"

# The presets by (search, switches), as in drivers/kernel/fdscale_knob.h.
PRESETS = {
    ("two-level", frozenset({"sanity-read", "eager-expand"})): "stock-6.12",
    ("two-level", frozenset()): "patch-1",
    ("two-level", frozenset({"cond-clear"})): "patch-1-2",
    ("first-word-v2", frozenset({"cond-clear", "end-late"})): "series-v2",
    ("first-word", frozenset({"cond-clear", "end-late"})): "series-v3",
    ("next_fd-word", frozenset({"cond-clear"})): "merged-6.13",
}

# What alloc_fd() may call; a call that is not here is a layout not known.
ALLOC_CALLS = {
    "if",
    "likely",
    "unlikely",
    "spin_lock",
    "spin_unlock",
    "files_fdtable",
    "find_next_fd",
    "expand_files",
    "__set_open_fd",
    "__set_close_on_exec",
    "__clear_close_on_exec",
    "rcu_access_pointer",
    "rcu_assign_pointer",
    "printk",
    "VFS_BUG_ON",
    "VFS_WARN_ON_ONCE",
}


def unknown(what: str) -> Problem:
    """The tree is not one we know: what was looked for and not found."""
    return Problem(
        COULD_NOT,
        f"fs/file.c: {what}: a layout not known here, so nothing was changed; "
        "known are Debian's 6.1 and 6.12 and the form merged for 6.13",
    )


@dataclass(frozen=True)
class Function:
    """A definition at file scope: the spans are offsets in the text."""

    name: str
    start: int
    body: int
    end: int
    head: str  # everything before the body, blanks squeezed
    code: str  # the body without comments, blanks squeezed

    def calls(self) -> list[str]:
        """The names followed by an opening bracket, in order."""
        return re.findall(r"\b(\w+)\s*\(", self.code)


@dataclass(frozen=True)
class Layout:
    """The functions, and what they amount to."""

    alloc: Function
    pick: Function
    put: Function
    pick_is_static: bool
    search: str
    switches: frozenset[str]
    expand_tells: bool  # expand_files() returns 1 after it expanded

    @property
    def name(self) -> str:
        """The preset, or the search with its switches."""
        words = [self.search, *sorted(self.switches)]
        return PRESETS.get((self.search, self.switches), "+".join(words))


def without_comments(text: str) -> str:
    """The text with comments blanked, every offset kept."""

    def blank(m: re.Match[str]) -> str:
        if m[0].startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", m[0])
        return m[0]

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def squeeze(text: str) -> str:
    """One blank for many, none at the edges."""
    return re.sub(r"\s+", " ", text).strip()


def functions(text: str) -> list[Function]:
    """Every function defined in a text written in the kernel's manner."""
    code = without_comments(text)
    found = []
    for m in re.finditer(
        r"^(?!\s)((?:[\w*]+[ \t*\n]+)+\**(\w+)\s*\([^;{}()]*\)[^;{}=]*?)^\{.*?^\}\n",
        code,
        re.M | re.S,
    ):
        body = m.end(1)
        found.append(
            Function(
                m[2],
                m.start(),
                body,
                m.end(),
                squeeze(m[1]),
                squeeze(code[body : m.end()]),
            )
        )
    return found


def only(found: list[Function], name: str, head: str) -> Function:
    """The one definition of a name, whose head must match."""
    named = [f for f in found if f.name == name]
    if len(named) != 1:
        raise unknown(f"{len(named)} definitions of {name}()")
    if not re.fullmatch(head, named[0].head):
        raise unknown(f"{name}() is declared as '{named[0].head}'")
    return named[0]


def search_of(find: Function) -> str:
    """Which search find_next_fd() is, by the bitmaps it looks into."""
    argument = r"((?:[^(),]|\([^()]*\))+)"
    call = rf"find_next_zero_bit\({argument}, {argument}, {argument}\)"
    looks = re.findall(call, find.code)
    first = [(bitmap.strip(), size) for bitmap, size, _ in looks]
    two_level = [("fdt->full_fds_bits", "maxbit"), ("fdt->open_fds", "maxfd")]
    word = [("&fdt->open_fds[bitbit]", "BITS_PER_LONG")]
    reads = find.code.count("open_fds")
    if set(find.calls()) <= {"if", "likely", "unlikely", "find_next_zero_bit"}:
        if first == two_level and reads == 1:
            return "two-level"
        inside = looks and re.fullmatch(
            r"start & \(BITS_PER_LONG ?- ?1\)|start % BITS_PER_LONG", looks[0][2]
        )
        if first == word + two_level and reads == 2 and inside:
            return "next_fd-word"
    raise unknown("find_next_fd() is neither the two-level search nor next_fd-word")


def alloc_switches(alloc: Function) -> set[str]:
    """The switches that alloc_fd() has on."""
    strange = set(alloc.calls()) - ALLOC_CALLS
    if strange:
        raise unknown(f"alloc_fd() calls {', '.join(sorted(strange))}()")
    order = [
        "spin_lock(&files->file_lock)",
        "files_fdtable(files)",
        "files->next_fd",
        "find_next_fd(fdt, fd)",
        "expand_files(files, fd)",
        "files->next_fd = fd + 1",
        "__set_open_fd(fd, fdt",
        "spin_unlock(&files->file_lock)",
    ]
    at = [alloc.code.find(piece) for piece in order]
    if -1 in at or at != sorted(at):
        missing = order[at.index(-1)] if -1 in at else "its steps in order"
        raise unknown(f"alloc_fd() has not {missing}")
    for once in ("find_next_fd(", "expand_files(", "fd >= end"):
        if alloc.code.count(once) != 1:
            raise unknown(f"alloc_fd() has not one {once.rstrip('(')}")

    on = set()
    lazy = r"fd >= fdt->max_fds\)?\) \{ error = expand_files"
    eager = r"[;}] error = expand_files\(files, fd\);"
    if not re.search(lazy, alloc.code):
        if not re.search(eager, alloc.code):
            raise unknown("alloc_fd() calls expand_files() in a way of its own")
        on.add("eager-expand")
    if alloc.code.find("fd >= end") > alloc.code.find("expand_files("):
        on.add("end-late")
    checked = re.sub(r"VFS_\w+\([^;]*;", "", alloc.code)
    if "fdt->fd[fd]" in checked:
        on.add("sanity-read")
    return on


def clears_if_set(clear: Function) -> bool:
    """Whether the close path looks at the full bit before it clears it."""
    if clear.code.count("__clear_bit(") != 2 or "full_fds_bits" not in clear.code:
        raise unknown("__clear_open_fd() does not clear an open and a full bit")
    tests = clear.code.count("test_bit(")
    if tests > 1 or (tests and "full_fds_bits" not in clear.code.split("test_bit(")[1]):
        raise unknown("__clear_open_fd() tests something else than the full bit")
    return tests == 1


def read_layout(text: str) -> Layout:
    """Find everything, or a Problem."""
    found = functions(text)
    fdtable = r"struct fdtable ?\* ?fdt"
    files = r"struct files_struct ?\* ?files"
    find = only(
        found,
        "find_next_fd",
        rf"static (?:inline )?unsigned int find_next_fd"
        rf"\((?:const )?{fdtable}, unsigned int start\)",
    )
    alloc = only(
        found,
        "alloc_fd",
        rf"static int alloc_fd\({UNSIGNED} start, {UNSIGNED} end, {UNSIGNED} flags\)",
    )
    clear = only(
        found,
        "__clear_open_fd",
        rf"static inline void __clear_open_fd\(unsigned int fd, {fdtable}\)",
    )
    release = only(
        found,
        "__put_unused_fd",
        rf"static void __put_unused_fd\({files}, unsigned int fd\)",
    )
    if "__clear_open_fd(fd, fdt)" not in release.code or (
        "if (fd < files->next_fd) files->next_fd = fd;" not in release.code
    ):
        raise unknown("__put_unused_fd() does not clear the bit and lower next_fd")
    put = only(found, "put_unused_fd", r"void put_unused_fd\(unsigned int fd\)")
    if put.code.count("__put_unused_fd(files, fd)") != 1:
        raise unknown("put_unused_fd() has not one __put_unused_fd")

    # The close path has had two names: known by what it does.
    head = rf"(static )?struct file ?\*\w+\({files}, {UNSIGNED} fd\)"
    picks = [
        f
        for f in found
        if re.fullmatch(head, f.head)
        and f.code.count("__put_unused_fd(files, fd)") == 1
        and "rcu_assign_pointer(fdt->fd[fd], NULL)" in f.code
        and "return NULL" in f.code
        and "ERR_PTR" not in f.code
    ]
    if len(picks) != 1:
        raise unknown(f"{len(picks)} functions that take a file out of its slot")
    expand = only(found, "expand_fdtable", rf"static int expand_fdtable\({files}, .*")
    only(found, "expand_files", rf"static int expand_files\({files}, .*")
    last = re.findall(r"return (\d+);", expand.code)
    if last not in (["0"], ["1"]):
        raise unknown("expand_fdtable() does not end in 'return 0' or 'return 1'")

    switches = alloc_switches(alloc)
    if clears_if_set(clear):
        switches.add("cond-clear")
    return Layout(
        alloc,
        picks[0],
        put,
        picks[0].head.startswith("static "),
        search_of(find),
        frozenset(switches),
        last == ["1"],
    )
