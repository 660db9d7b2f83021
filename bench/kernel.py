# SPDX-License-Identifier: GPL-2.0-only
"""./run.py kernel ...: the words, and what is printed."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import drive, kernel_build, kernel_count, kernel_counts, kernel_livepatch
from bench import kernel_transform
from bench.host import caution
from bench.kernel_build import Kernel
from bench.kernel_guest import Machine, fastest, kvm_trouble
from bench.kernel_host import LOOK, guest_host
from bench.kernel_session import Session
from bench.looks import safe_name
from bench.plan import Plan
from bench.problem import ANSWER_NO, COULD_NOT, DONE, USAGE, Problem

DRIVER = Path(__file__).resolve().parent.parent / "build" / "fdscale"

EXAMPLES = """\
The real kernel, with every variant behind one switch.

examples:
  ./run.py kernel count                    exact instructions, on any host
  ./run.py kernel sweep --cpus 64 --sockets 2 --threads 2 -- --tasks 1,32,64
  sudo ./run.py kernel load                the running kernel, by livepatch
  ./run.py kernel patch ~/src/linux        your own tree, for bare metal
"""
BUILD = """\
Build a small kernel with the switch in it: about eight minutes with two cores,
then nothing. It is kept in $FDSCALE_CACHE, else in ~/.cache/fdscale.

examples:
  ./run.py kernel build                    Debian's linux-source-6.12
  ./run.py kernel build --source 6.1       Debian's linux-source-6.1
  ./run.py kernel build --source ~/src/linux --flavour pointer

flavours: direct adds no instruction, for counting; pointer can be switched at
any time, for measuring; plain is the kernel as it is, to compare with.
"""
COUNT = """\
Instructions per operation of every variant, in an emulated guest that counts
them: the same number in every boot, on every host. It boots twice and compares.

examples:
  ./run.py kernel count                    presets, every workload and hold
  ./run.py kernel count --variant searches one search against another
  ./run.py kernel count --row dup-close@low:64 --variant stock-6.12,series-v3
  ./run.py kernel count --row dup2-churn@100000 --variant one-level,two-level
  ./run.py kernel count --source 6.1 --json

A row is WORKLOAD@HOLD: none, low:N, or low:N-FD where FD is free again.
What is counted is kept in ~/.local/share/fdscale/counts, with a figure.
Exit status 1 when two boots differ or a variant did not reach its own code.
"""
SWEEP = """\
The sweep in a guest with as many CPUs as you like, in nodes and packages: the
driver on a real Linux. What follows -- are the words of ./run.py sweep.

examples:
  ./run.py kernel sweep --cpus 64 --sockets 2 --nodes 4 --threads 2
  ./run.py kernel sweep --cpus 32 -- --workload dup-close --variant \\
      stock-6.12,merged-6.13 --tasks 1,16,32 --out results/guest
  ./run.py kernel sweep --cpus 16 --sockets 2 -- --dry-run

KVM is used where a probe shows that it works. Without it the guest is emulated:
placement, tables and instructions are real, times are not, and all output says
so.
"""
LOAD = """\
Put the switch into the running kernel as a livepatch, without a reboot: for
Debian's 6.1 and 6.12 and kernels like them. Needs root and the headers.

examples:
  sudo ./run.py kernel load
  sudo ./run.py sweep --backend kernel --variant stock-6.12,merged-6.13
  sudo ./run.py kernel unload

Every variant pays the same for the way through the livepatch (about 80
instructions a call), so differences are right and ratios are smaller.
"""
UNLOAD = """\
Take the livepatch out of the running kernel.

example:
  sudo ./run.py kernel unload
"""
PATCH = """\
Put the switch into a kernel tree of your own: fs/file.c is changed, the
original is kept as fs/file.c.orig. A tree that is not understood is left as it
is.

examples:
  ./run.py kernel patch ~/src/linux            then build and boot it as usual
  ./run.py kernel patch ~/src/linux --flavour direct
  ./run.py kernel patch ~/src/linux --undo
  ./run.py kernel patch ~/src/linux --show     what the tree has, by its preset

Booted, the kernel has /sys/module/fdscale/parameters/variant, for root.
"""


def listed(text: str) -> list[str]:
    """'a,b' as a list without empty words."""
    return [w for w in text.split(",") if w]


def add_parser(
    subparsers: Any,
    sweep: Callable[[list[str]], int],
) -> None:
    """Add `kernel` with its commands; @sweep runs ./run.py sweep with words.

    Each sets `call`, a function of the parsed words that returns the exit status
    or raises Problem.
    """

    def command(name: str, about: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = inside.add_parser(
            name,
            description=about,
            help=about.split(":")[0].split(".")[0].replace("\n", " "),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        return made

    top = subparsers.add_parser(
        "kernel",
        help="the real kernel, all variants behind one switch",
        description=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inside = top.add_subparsers(dest="kernel_command", required=True, metavar="COMMAND")

    def source(p: argparse.ArgumentParser) -> None:
        p.add_argument(
            "--source",
            metavar="VERSION|DIR",
            help=f"Debian's linux-source-VERSION, or a tree ({kernel_build.NEWEST})",
        )

    p = command("build", BUILD)
    source(p)
    p.add_argument("--flavour", choices=kernel_build.FLAVOURS, default="direct")
    p.set_defaults(call=run_build)

    p = command("count", COUNT)
    source(p)
    p.add_argument("--flavour", choices=kernel_build.FLAVOURS, default="direct")
    p.add_argument(
        "--variant", default="presets", help="V,V.. or presets or searches (presets)"
    )
    p.add_argument("--row", default="all", help="WORKLOAD@HOLD,.. (all)")
    p.add_argument("--json", action="store_true", help="one object a line")
    p.set_defaults(call=run_count)

    p = command("sweep", SWEEP)
    source(p)
    for name, value, about in (
        ("cpus", 16, "PUs of the guest"),
        ("sockets", 1, "packages they are in"),
        ("nodes", 0, "NUMA nodes (one a package)"),
        ("threads", 1, "PUs of a core"),
        ("memory", 0, "MiB (64 a PU, at least 2048)"),
    ):
        p.add_argument(f"--{name}", type=int, default=value, metavar="N", help=about)
    p.add_argument("words", nargs="*", metavar="-- WORDS", help="of ./run.py sweep")
    p.set_defaults(call=lambda args: run_sweep(args, sweep))

    p = command("load", LOAD)
    p.set_defaults(call=run_load)
    p = command("unload", UNLOAD)
    p.set_defaults(call=run_unload)

    p = command("patch", PATCH)
    p.add_argument("tree", type=Path, metavar="DIR", help="of the kernel's source")
    p.add_argument("--flavour", choices=kernel_transform.FLAVOURS, default="pointer")
    what = p.add_mutually_exclusive_group()
    what.add_argument("--undo", action="store_true", help="take the switch out")
    what.add_argument("--show", action="store_true", help="change nothing")
    p.set_defaults(call=run_patch)


def run_build(args: argparse.Namespace) -> int:
    """kernel build."""
    kernel = kernel_build.build(args.source, args.flavour)
    words = kernel.manifest
    print(f"{kernel.image}: {words['release']}, {words['flavour']}, {words['tree']}")
    return DONE


def check_variants(text: str, flavour: str) -> None:
    """Problem USAGE before anything is built."""
    if text in ("presets", "searches"):
        return
    if flavour == "plain":
        raise Problem(USAGE, "--variant: a plain kernel has no switch")
    if not listed(text):
        raise Problem(USAGE, "--variant: name one, or presets, or searches")
    for variant in listed(text):
        kernel_count.check_words(variant)


def chosen_variants(text: str, kernel: Kernel) -> list[str]:
    """The variants that a word or a list means."""
    if kernel.manifest["flavour"] == "plain":
        return ["-"]
    if text == "presets":
        return list(kernel_count.VARIANTS)
    if text == "searches":
        return kernel_count.searches_alone(kernel.manifest["tree"])
    return listed(text)


def run_count(args: argparse.Namespace) -> int:
    """kernel count."""
    rows = list(kernel_count.ROWS) if args.row == "all" else listed(args.row)
    kernel_count.check_rows(rows)
    check_variants(args.variant, args.flavour)
    kernel = kernel_build.build(args.source, args.flavour)
    variants = chosen_variants(args.variant, kernel)
    counts, same = kernel_count.count(kernel, variants, rows)
    strays = kernel_count.strays(counts, kernel.manifest["tree"])
    words = kernel.manifest
    title = f"Linux {words['release']}, {words['tree']}, {words['flavour']}"
    marked = [c.row for c in counts if c.functions]
    shown = list(dict.fromkeys(marked))[:2]
    kept = None
    if same and not strays:
        kept = kernel_counts.keep(kernel, counts)
        for row in shown:
            base = kept.with_suffix(f".{safe_name(row)}")
            kernel_count.draw(base, counts, row, title)
    if args.json:
        for one in counts:
            print(json.dumps({**words, **asdict(one)}))
    else:
        print(title)
        print("\n".join(kernel_count.table(counts)))
        for row in shown:
            print("\n".join(["", *kernel_count.part_table(counts, row)]))
        print()
        print("two boots: " + ("the same numbers" if same else "NOT the same numbers"))
        if words["flavour"] != "plain" and marked and not strays:
            print("every variant ran its own code, by the calls counted")
    for stray in strays:
        print(f"kernel: {stray}", file=sys.stderr)
    if kept and not args.json:
        print(f"Numbers and figures in {kept.with_suffix('.*')}")
    return DONE if same and not strays else ANSWER_NO


def longer_windows(words: list[str], share: float) -> list[str]:
    """For SHARE PUs of a guest on a CPU of the host: the sweep's words, windows
    that many times as long put before them, where they do not say how long.

    A PU gets the host's CPU for milliseconds, then waits for the others' turns.
    """
    said = ("--window-ms", "--plan", "--resume", "--quick", "--testcase")
    if share <= 1 or any(w.split("=")[0] in said for w in words):
        return words
    return ["--window-ms", str(round(share * Plan().window_ms)), *words]


def run_sweep(args: argparse.Namespace, sweep: Callable[[list[str]], int]) -> int:
    """kernel sweep."""
    nodes = args.nodes or args.sockets
    memory = args.memory or max(2048, 64 * args.cpus)
    machine = Machine(args.cpus, args.sockets, nodes, args.threads, memory)
    machine.check()
    if not DRIVER.is_file():
        raise Problem(COULD_NOT, f"{DRIVER} is not built: run make")
    kernel = kernel_build.build(args.source, "pointer")
    accel = fastest(kernel.image)
    with Session(kernel.image, {"/bin/fdscale": DRIVER}, machine, accel) as session:
        guest = session.guest
        kernel_build.say(
            f"guest with Linux {guest.release}, {guest.cpus} PUs, up in "
            f"{guest.host_seconds:.0f} s with {guest.accel}"
        )
        if guest.cpus != args.cpus:
            raise Problem(COULD_NOT, f"{guest.cpus} of {args.cpus} PUs came up")
        if guest.accel == "tcg":
            kernel_build.say(f"no KVM: {kvm_trouble(kernel.image)}")
        preset = drive.ask("list")["kernel"]
        config = kernel.folder / "config"
        host = guest_host(session.run(LOOK).text(), guest.accel, config, preset)
        session.host.write_text(json.dumps(host))
        kernel_build.say(caution(host))
        words = args.words
        if guest.accel == "tcg":
            words = longer_windows(words, guest.cpus / len(os.sched_getaffinity(0)))
        if words != args.words:
            kernel_build.say(f"windows of {words[1]} ms: its PUs share the host's CPUs")
        return sweep(words)


def run_load(_: argparse.Namespace) -> int:
    """kernel load."""
    print(f"the switch is {kernel_livepatch.load()}")
    return DONE


def run_unload(_: argparse.Namespace) -> int:
    """kernel unload."""
    kernel_livepatch.unload()
    print("the kernel is as it was")
    return DONE


def run_patch(args: argparse.Namespace) -> int:
    """kernel patch."""
    if args.show:
        print(kernel_transform.describe(args.tree).name)
    elif args.undo:
        if not kernel_transform.restore(args.tree):
            raise Problem(COULD_NOT, f"{args.tree}: the switch is not in: nothing done")
        print(f"{args.tree}/fs/file.c is as it was")
    else:
        layout = kernel_transform.patch(args.tree, args.flavour)
        print(f"{args.tree}/fs/file.c: {layout.name}, and the switch ({args.flavour})")
    return DONE
