# SPDX-License-Identifier: GPL-2.0-only
"""Instructions per operation of every variant, exactly, in an emulated guest.

Two boots: the first counts by the guest's clock (one instruction is one
nanosecond), the second does the same again while a plugin of the emulator
counts the functions of the kernel.  Both must give the same numbers.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from bench.charts import draw_bars
from bench.kernel_build import Kernel
from bench.kernel_guest import Guest, Machine, boot, counting
from bench.kernel_initramfs import compiled
from bench.kernel_layout import PRESETS
from bench.plot import Titles
from bench.problem import COULD_NOT, USAGE, Problem
from bench.scratch import Scratch

SEARCHES = (
    "one-level",
    "two-level",
    "first-word-v2",
    "first-word",
    "next_fd-word",
    "next_fd-word-checked",
    "next_fd-line",
)
ALLOC_SWITCHES = ("sanity-read", "eager-expand", "end-late")  # bits 0, 1, 2
VARIANTS = ("stock-6.12", "patch-1", "patch-1-2", "series-v3", "merged-6.13")
ROWS = (
    "dup-close@none",
    "dup-close@low:64",
    "dup-close@low:64-40",
    "dup-close@low:100000",
    "dup-close@low:100000-5",
    "two-holes@low:100000",
    "yuma@low:66",
    "random-churn@none",
    "burst@none",
    "burst:reversed@none",
    "burst:random@none",
    "close-range@none",
    "open-close@none",
    "open-close@low:64",
    "dupfd:0@low:64",
    "dupfd:64@none",
    "dupfd:1000@low:64",
    "socket-unix@low:64",
    "socket-inet@low:64",
    "socketpair-close@low:64",
    "pipe-close@low:64",
    "eventfd-close@low:64",
    "epoll-close@low:64",
    "memfd-close@low:64",
    "timerfd-close@low:64",
    "accept-unix@low:64",
    "scm-rights@low:64",
    "openneg@low:64",
    "read1@low:64",
    "write1@low:64",
    "getppid@none",
    "dup2-churn@10000",
    "growth@10000",
)
FIXED = ("dup2-churn", "growth")  # after @ the number of turns; not marked
STRETCH = ("random-churn", "burst", "close-range")  # take a free stretch: no hole
MARKED = 5  # turns that the plugin sees, as in drivers/kernel/count.c
TURNS = {"two-holes": 2, "yuma": 2, "random-churn": 256}  # operations in one
# Turns that took another number: timer ticks are fewer. SLUB looks for a slab on
# other nodes or not by the clock (get_any_partial(): 23 times in 1024 it does not).
SELDOM = 0.02
BOOT_SECONDS = 3600  # a loop of a million turns takes long

# The kernel's functions that the plugin tells apart, by what they are for.
PARTS = {
    "alloc": r"fdv_alloc_\w+|fdv_tree_alloc|alloc_fd",
    "bit search": r"_?find_next_zero_bit",
    "expand": r"expand_files",
    "close": r"fdv_(?:tree_)?(?:pick|put)\w*|pick_file|file_close_fd_locked"
    r"|__put_unused_fd",
}


@dataclass
class Count:
    """One row and variant; all per operation."""

    row: str
    variant: str
    kernel: float  # instructions in the kernel
    own: float  # and in the user's loop
    # function -> (calls, instructions), where the plugin saw it
    functions: dict[str, tuple[float, float]] = field(default_factory=dict)
    other: float = 0.0  # what some turns took instead of `kernel`
    share: float = 0.0  # how many of them, of 1

    def part(self, name: str) -> float:
        """Instructions in one of PARTS."""
        pattern = re.compile(PARTS[name])
        return sum(n for f, (_, n) in self.functions.items() if pattern.fullmatch(f))


def search_and_switches(variant: str) -> tuple[str, frozenset[str]]:
    """What a variant's words amount to; the kernel refuses wrong ones itself."""
    first, *more = re.split("[+#]", variant)
    presets = {name: key for key, name in PRESETS.items()}
    presets["series-v5"] = presets["merged-6.13"]
    search, on = presets.get(first, (first, frozenset()))
    return search, on | set(more)


def check_words(variant: str) -> None:
    """Problem USAGE for a variant that no kernel has."""
    first, *more = re.split("[+#]", variant)
    firsts = [*SEARCHES, *dict.fromkeys(PRESETS.values()), "series-v5"]
    switches = [*ALLOC_SWITCHES, "cond-clear", "clone"]
    if first == "three-level":
        raise Problem(
            USAGE,
            "--variant: three-level is in the model only: its third bitmap would add "
            "instructions to every close of every variant",
        )
    if first not in firsts:
        raise Problem(USAGE, f"--variant: no '{first}'; there are: {' '.join(firsts)}")
    for word in more:
        if word not in switches:
            raise Problem(
                USAGE, f"--variant: no switch '{word}'; there are: {' '.join(switches)}"
            )


def check_rows(rows: list[str]) -> None:
    """Problem USAGE for a row that the guest would refuse."""
    known = list(dict.fromkeys(r.split("@")[0] for r in ROWS))
    if not rows:
        raise Problem(USAGE, "--row: name one, or all")
    for row in rows:
        workload, _, hold = row.partition("@")
        if workload not in known:
            raise Problem(
                USAGE, f"--row: no '{workload}'; there are: {' '.join(known)}"
            )
        pattern, words = r"(none|low:\d+(-\d+)?)?", "none, low:N or low:N-FD"
        if workload in FIXED:
            pattern, words = r"[1-9]\d*", "the number of turns"
        elif workload.split(":")[0] in STRETCH:
            pattern, words = r"(none|low:\d+)?", "none or low:N"
        if not re.fullmatch(pattern, hold):
            raise Problem(USAGE, f"--row {row}: after @ goes {words}")


def own_function(variant: str, tree: str) -> str:
    """The function of the kernel that a variant must reach."""
    search, on = search_and_switches(variant)
    tree_search, tree_on = search_and_switches(tree)
    alloc = set(ALLOC_SWITCHES)
    if "clone" not in on and (search, on & alloc) == (tree_search, tree_on & alloc):
        return "fdv_tree_alloc"
    bits = sum(1 << i for i, name in enumerate(ALLOC_SWITCHES) if name in on)
    return f"fdv_alloc_{search.replace('-', '_')}_{bits}"


def searches_alone(tree: str) -> list[str]:
    """Every search with the tree's own switches: the search is all that differs."""
    _, on = search_and_switches(tree)
    return ["+".join([s, *sorted(on)]) for s in SEARCHES]


def command(rows: Iterable[str], variants: Iterable[str]) -> str:
    """The job of the guest."""
    return f"/bin/count --variants {','.join(variants)} --rows {','.join(rows)}"


def results(guest: Guest) -> list[Count]:
    """What the job printed; a Problem when it failed."""
    job = guest.jobs[0]
    if job.status:
        said = job.stderr.decode(errors="replace").strip()
        raise Problem(
            COULD_NOT, f"counting in the guest: {said or f'status {job.status}'}"
        )
    out = []
    for line in job.text().splitlines():
        d = json.loads(line)
        out.append(Count(**d))
    return out


def functions_of(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """The functions that the plugin is to tell apart, with their bounds."""
    pattern = re.compile("|".join(PARTS.values()))
    found: dict[str, tuple[int, int]] = {}
    for name, (at, size) in kernel.symbols().items():
        if pattern.fullmatch(name):
            found[name] = (at, at + size)
    return found


def read_stretches(text: str, counts: list[Count]) -> None:
    """Give each count the functions of its marked stretches, in order."""
    marked = [c for c in counts if c.row.split("@")[0] not in FIXED]
    lines = text.splitlines()
    if len(lines) != MARKED * len(marked):
        raise Problem(
            COULD_NOT,
            f"the plugin saw {len(lines)} stretches, not {MARKED * len(marked)}",
        )
    for i, one in enumerate(marked):
        seen: dict[str, list[tuple[int, int]]] = {}
        for line in lines[i * MARKED : (i + 1) * MARKED]:
            for word in line.split():
                name, _, numbers = word.partition("=")
                calls, instructions = numbers.split("/")
                seen.setdefault(name, []).append((int(calls), int(instructions)))
        turn = TURNS.get(one.row.split("@")[0], 1)
        for name, pairs in seen.items():
            pairs += [(0, 0)] * (MARKED - len(pairs))
            one.functions[name] = (
                median(c for c, _ in pairs) / turn,
                median(n for _, n in pairs) / turn,
            )


def count(
    kernel: Kernel, variants: list[str], rows: list[str]
) -> tuple[list[Count], bool]:
    """The table, and whether two boots gave the same one."""
    program = {"/bin/count": compiled("count.c", "-static")}
    job = [command(rows, variants)]

    def run(more: list[str]) -> list[Count]:
        accel = [*counting(), *more]
        return results(boot(kernel.image, job, program, Machine(), accel, BOOT_SECONDS))

    first = run([])
    if all(row.split("@")[0] in FIXED for row in rows):  # long ones, with no marks
        return first, [asdict(c) for c in first] == [asdict(c) for c in run([])]
    plugin = compiled("plugin.c", "-shared", "-fPIC")
    with Scratch() as folder:
        out = folder / "stretches"
        bounds = [
            f"f={name}:{start:x}:{end:x}"
            for name, (start, end) in functions_of(kernel).items()
        ]
        second = run(["-plugin", ",".join([str(plugin), f"out={out}", *bounds])])
        same = [asdict(c) for c in first] == [asdict(c) for c in second]
        read_stretches(out.read_text(), second)
    return second, same


def strays(counts: list[Count], tree: str) -> list[str]:
    """Where a setting did not reach its own code, by the calls that were counted."""
    out = []
    for one in counts:
        called = {
            name
            for name, (calls, _) in one.functions.items()
            if calls and re.fullmatch(PARTS["alloc"], name)
        }
        if one.variant == "-" or not called:
            continue
        expected = own_function(one.variant, tree)
        if called != {expected}:
            out.append(
                f"{one.row} {one.variant}: ran {', '.join(sorted(called))}, "
                f"not {expected}"
            )
    return out


def short_names(variants: list[str], fit: bool) -> dict[str, str]:
    """The variants by name where the names fit, else by number."""
    return {v: v if fit else f"[{i}]" for i, v in enumerate(variants, 1)}


def legend(names: dict[str, str]) -> list[str]:
    """What the numbers stand for."""
    return [f"{short} {v}" for v, short in names.items() if short != v]


def table(counts: list[Count]) -> list[str]:
    """Lines to print: a row a workload and hold, a column a variant."""
    variants = list(dict.fromkeys(c.variant for c in counts))
    by = {(c.row, c.variant): c for c in counts}
    rows = list(dict.fromkeys(c.row for c in counts))
    wide = max(map(len, rows))
    longest = {v: max(len(number(by[r, v].kernel)) for r in rows) for v in variants}
    fit = sum(max(len(v), longest[v]) + 1 for v in variants) <= 74 - wide
    names = short_names(variants, fit)
    widths = [max(len(names[v]), longest[v]) for v in variants]
    head = " ".join(names[v].rjust(w) for v, w in zip(variants, widths))
    lines = ["instructions an operation in the kernel; user: the loop's own, besides"]
    lines += [*legend(names), f"{''.ljust(wide)} {head}  user"]
    for row in rows:
        cells = [by[row, v] for v in variants]
        shown = " ".join(number(c.kernel).rjust(w) for c, w in zip(cells, widths))
        own = {number(c.own) for c in cells}
        lines.append(f"{row.ljust(wide)} {shown}  {'/'.join(sorted(own)).rjust(4)}")
    return [*lines, *uneven(counts)]


def uneven(counts: list[Count]) -> list[str]:
    """A line for each row where more than the variants' own code differs: between
    the columns, or between turns, of which the table has the median."""
    lines = []
    for row in dict.fromkeys(c.row for c in counts):
        seen = [c for c in counts if c.row == row]
        rests = [parts_of(c)["the rest"] for c in seen if c.functions] or [0.0]
        apart, share = max(rests) - min(rests), max(c.share for c in seen)
        said = [f"variants differ by {number(apart)}"] if apart >= 1 else []
        said += [f"{share:.0%} of turns take another"] if share > SELDOM else []
        if said:
            lines.append(f"  {row}: {', '.join(said)}")
    head = "outside alloc and close, by what the slabs hold (--row shows the parts):"
    return [head, *lines] if lines else []


def number(value: float) -> str:
    """Whole where it is whole."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.005 else f"{value:.1f}"


def parts_of(one: Count) -> dict[str, float]:
    """Instructions of each part of the path, and of the rest of it."""
    parts = {p: one.part(p) for p in PARTS}
    return {**parts, "the rest": one.kernel - sum(parts.values())}


def part_table(counts: list[Count], row: str) -> list[str]:
    """Lines to print: for one row, what each part of the path took."""
    chosen = [c for c in counts if c.row == row and c.functions]
    if not chosen:
        return []
    variants = [c.variant for c in chosen]
    names = short_names(variants, max(map(len, variants)) <= 36)
    wide = max(len(row), *map(len, names.values()))
    lines = ["  ".join([row.ljust(wide), *parts_of(chosen[0])])]
    for c in chosen:
        values = [number(v).rjust(len(h)) for h, v in parts_of(c).items()]
        lines.append("  ".join([names[c.variant].ljust(wide), *values]))
    return lines


def draw(base: Path, counts: list[Count], row: str, machine: str) -> list[Path]:
    """The figure of one row: a bar a variant, a piece a part of the path."""
    chosen = [c for c in counts if c.row == row and c.functions]
    parts = {p: [parts_of(c)[p] for c in chosen] for p in [*PARTS, "the rest"]}
    titles = Titles(f"{row}: instructions an operation", machine)
    shown = [(p, values) for p, values in parts.items() if any(values)]
    return draw_bars(base, [c.variant for c in chosen], shown, titles)
