# SPDX-License-Identifier: GPL-2.0-only
"""The command line: words in, one exit status out."""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from bench import calibrate, compare, compat, doctor, drive, hold, kernel
from bench import report, reproduce, topo
from bench.calibration import threshold_in
from bench.compare_rows import read_folder
from bench.check import Needs
from bench.plan import CASE_WINDOW_MS, Plan, load_plan, parse_percent, parse_tasks
from bench.problem import COULD_NOT, DONE, INTERRUPTED, USAGE, Problem, one_line
from bench.sweep import Sweep, resumed

ABOUT = """\
Which way of finding the lowest free file descriptor is faster, for this load
on this machine, by how much, and how sure are we?
"""
EXAMPLES = """\
examples:
  ./run.py sweep --quick                    this host, in under a minute
  ./run.py sweep --backend model --hold none,low:64 --tasks 1,2
  ./run.py reproduce kara-first-64 --quick  "with the first 64 occupied?"
  ./run.py compare results/a results/b      two kernels, or two variants
  ./run.py report results/a                 all of it in one HTML file
  ./run.py doctor                           is this host fit to measure on?
  ./run.py COMMAND --help                   more examples, and every flag
"""
STATUS = """\
exit status: 0 done or yes, 1 the answer is no, 2 usage, 3 could not,
125 inconclusive, 130 interrupted
"""
SWEEP_EXAMPLES = """\
examples:
  ./run.py sweep                      what is sensible for this host
  ./run.py sweep --workload dup-close --tasks 1,2,8 --mode threads
  ./run.py sweep --backend model --variant two-level,first-word,next_fd-word \\
      --hold none,low:64,low:1000 --tasks 1
  ./run.py sweep --plan config/kara.toml --dry-run   what, and for how long
  ./run.py sweep --precision 0.5% --max-time 600     until the intervals are
  ./run.py sweep --resume results/x                  run what is missing
  ./run.py sweep --workload-file my.c --backend model
  ./run.py sweep --testcase will-it-scale/tests/dup1.c --tasks 2 \\
      --compat will-it-scale

Lists multiply: each workload with each backend, hold and number of tasks. What
is left out is as in config/full.toml, a few cells of it. Results go to
results/DATE-TIME: results.jsonl, host.json, summary.txt, figures/.
"""


class Parser(argparse.ArgumentParser):
    """argparse, with the one-line manner of the other messages."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {one_line(message)} (see --help)", file=sys.stderr)
        sys.exit(USAGE)


def words(text: str) -> list[str]:
    """'a,b' as a list; empty words are refused."""
    found = text.split(",")
    if not all(found) or len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"'{text}': an empty word, or one twice")
    return found


def whole(least: int, most: int) -> Callable[[str], int]:
    """A type for argparse: a whole number in a range."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,20}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not a whole number from {least} to {most}"
            )
        return int(text)

    return parse


def seconds(text: str) -> float:
    """A type for argparse: a positive time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def add_sweep(commands: Any) -> None:
    """`sweep` and its flags; a flag that is not given leaves the plan's word."""
    p = commands.add_parser(
        "sweep",
        help="measure every cell of a plan, summarise, draw",
        description="Measure cells: workloads x backends x holds x tasks.",
        epilog=SWEEP_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--plan", type=Path, metavar="FILE", help="a TOML plan")
    p.add_argument(
        "--workload", type=words, metavar="W,..", help="dup-close, open-close, .."
    )
    p.add_argument(
        "--workload-file",
        type=Path,
        nargs="+",
        metavar="F.c",
        help="workloads of your own, compiled on demand",
    )
    p.add_argument(
        "--testcase",
        type=Path,
        nargs="+",
        metavar="F.c",
        help="test cases of will-it-scale, as they are",
    )
    p.add_argument("--backend", type=words, metavar="B,..", help="kernel, model")
    p.add_argument("--variant", type=words, metavar="V,..", help="see ./run.py list")
    p.add_argument(
        "--baseline", metavar="V", help="compare with it (the first variant)"
    )
    p.add_argument(
        "--hold", type=words, metavar="H,..", help="none, low:N, every:K, .."
    )
    p.add_argument(
        "--hold-top",
        type=whole(1, 10**8),
        metavar="N",
        help="end of every:K, random:P",
    )
    p.add_argument("--place", type=words, metavar="P,..", help="compact, scatter, ..")
    p.add_argument(
        "--core-kind", choices=("P", "E"), help="these of hybrid cores alone"
    )
    p.add_argument(
        "--table-node",
        type=whole(0, 65535),
        metavar="N",
        help="NUMA node of its memory",
    )
    p.add_argument("--mode", type=words, metavar="M,..", help="threads, processes")
    p.add_argument("--tasks", metavar="N,..|auto", help="auto: by the topology")
    p.add_argument(
        "--table-size",
        type=whole(64, 1 << 30),
        metavar="N",
        help="slots (what all need)",
    )
    p.add_argument("--runs", type=whole(1, 1000), metavar="N", help="of each cell (7)")
    p.add_argument(
        "--window-ms", type=whole(1, 600000), metavar="N", help="of each window (10)"
    )
    p.add_argument("--max-time", type=seconds, metavar="S", help="seconds in all")
    p.add_argument("--precision", metavar="P%", help="more runs until +-P%%")
    p.add_argument("--lock", choices=("queued", "tas"), help="the model's (queued)")
    p.add_argument(
        "--oversubscribe", action="store_true", default=None, help="more tasks than PUs"
    )
    p.add_argument("--quick", action="store_true", help="under 50 s on 2 cores")
    p.add_argument(
        "--profile",
        action="store_true",
        default=None,
        help="afterwards each cell once more, under perf: shares of lock and search",
    )
    p.add_argument(
        "--seed", type=whole(0, 2**32 - 1), metavar="N", help="the same order again"
    )
    p.add_argument("--out", type=Path, metavar="DIR", help="the results folder")
    p.add_argument("--resume", type=Path, metavar="DIR", help="run what is missing")
    p.add_argument("--dry-run", action="store_true", help="print, measure nothing")
    p.add_argument("--json", action="store_true", help="the summary as JSON")
    p.add_argument(
        "--compat",
        choices=compat.FORMATS,
        default="",
        help="its lines, for scripts, in place of the summary",
    )
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    p.add_argument("-v", "--verbose", action="store_true", help="a line a run")
    p.set_defaults(call=sweep)


def check_choice(flag: str, given: list[str], known: tuple[str, ...]) -> None:
    """Raises Problem(USAGE) that names the wrong word and the right ones."""
    for word in given:
        if word not in known:
            raise Problem(USAGE, f"{flag}: '{word}' is not one of: {' '.join(known)}")


def plan_from(args: argparse.Namespace) -> Plan:
    """The plan file, then the flags over it."""
    plan = Plan()
    if args.plan:
        plan = load_plan(args.plan, drive.ask("list")["workloads"])
    for key in (
        *("workload", "backend", "variant", "baseline", "hold", "place", "mode"),
        *(
            "hold_top",
            "core_kind",
            "table_node",
            "runs",
            "window_ms",
            "max_time",
            "lock",
            "oversubscribe",
            "profile",
            "seed",
        ),
    ):
        value = getattr(args, key)
        if value is not None:
            setattr(plan, key, value)
    if args.workload_file or args.testcase:
        plan.workload = args.workload or []
        plan.workload_file = [str(p.resolve()) for p in args.workload_file or []]
        plan.testcase = [str(p.resolve()) for p in args.testcase or []]
        if args.testcase and not args.window_ms and not args.plan:
            plan.window_ms = CASE_WINDOW_MS
    if args.tasks is not None:
        plan.tasks = parse_tasks(args.tasks)
    if args.table_size is not None:
        plan.table_size = [args.table_size]
    if args.precision is not None:
        plan.precision = parse_percent("--precision", args.precision)
        plan.bound()
    check_choice("--backend", plan.backend, ("kernel", "model"))
    check_choice("--mode", plan.mode, ("threads", "processes"))
    if args.seed is None and not plan.seed:
        plan.seed = random.SystemRandom().getrandbits(32)
    return plan.quicken() if args.quick else plan


# What can be said anew of a sweep that is resumed: its plan says the rest.
WITH_RESUME = {
    "compat",
    "call",
    "resume",
    "max_time",
    "dry_run",
    "json",
    "quiet",
    "verbose",
}


def check_resume(args: argparse.Namespace) -> None:
    """Raises Problem(USAGE) where --resume is given with what it would not obey."""
    given = [
        "--" + key.replace("_", "-")
        for key, value in vars(args).items()
        if key not in WITH_RESUME and value is not None and value is not False
    ]
    if given:
        raise Problem(
            USAGE,
            f"--resume goes on with the plan in {args.resume}: leave out "
            f"{' '.join(given)}; only --max-time and --dry-run go with it",
        )


def sweep(args: argparse.Namespace) -> int:
    """./run.py sweep."""
    if args.resume:
        check_resume(args)
        work = resumed(args.resume, args.quiet, args.verbose, args.max_time)
    else:
        work = Sweep(plan_from(args), args.quiet, args.verbose)
    if args.dry_run:
        text, status = work.dry_run(args.json)
        print(text)
        return status
    if args.resume:
        return work.run(args.resume, args.json, True, args.compat)
    out = args.out or Path("results") / time.strftime("%Y%m%d-%H%M%S")
    return work.run(out, args.json, False, args.compat)


def add_reproduce(commands: Any) -> None:
    """`reproduce` and its flags."""
    p = commands.add_parser(
        "reproduce",
        help="put a claim of the lists to the test",
        description="Without a case: the cases there are, and the last verdicts.",
        epilog="examples:\n  ./run.py reproduce kara-first-64 --quick\n"
        "  ./run.py reproduce --all --quick --format markdown\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("case", nargs="*", metavar="CASE", help="its name, or more")
    p.add_argument("--all", action="store_true", help="every case")
    p.add_argument("--quick", action="store_true", help="all in under six minutes")
    p.add_argument("--out", type=Path, metavar="DIR", help="keep the results there")
    p.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    p.set_defaults(
        call=lambda a: reproduce.run(a.case, a.all, a.quick, a.out, a.format, a.quiet)
    )


def add_calibrate(commands: Any) -> None:
    """`calibrate` and its flags."""
    p = commands.add_parser(
        "calibrate",
        help="the smallest effect that this host can find",
        description="The baseline against its clone: how often a difference is\n"
        "called, and the smallest effect found 95 times in 100 for a given time.\n"
        "Kept for later sweeps.",
        epilog="examples:\n  ./run.py calibrate --quick\n"
        "  ./run.py calibrate --backend kernel --inject 1.2% --max-time 300\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--backend", default="model", metavar="B", help="kernel, model")
    p.add_argument("--mode", default="threads", metavar="M", help="threads, processes")
    p.add_argument("--tasks", type=whole(1, 65536), default=1, metavar="N", help="(1)")
    p.add_argument(
        "--trials",
        type=whole(20, 100000),
        default=200,
        metavar="N",
        help="to draw (200)",
    )
    p.add_argument("--max-time", type=seconds, metavar="S", help="seconds in all (120)")
    p.add_argument("--inject", metavar="P%", help="add a known cost, and look for it")
    p.add_argument("--quick", action="store_true", help="40 s")
    p.add_argument(
        "--seed", type=whole(0, 2**32 - 1), metavar="N", help="the same trials again"
    )
    p.add_argument("--out", type=Path, metavar="DIR", help="the results folder")
    p.add_argument("-q", "--quiet", action="store_true", help="no progress")
    p.set_defaults(call=calibrated)


def calibrated(args: argparse.Namespace) -> int:
    """./run.py calibrate."""
    check_choice("--backend", [args.backend], ("kernel", "model"))
    check_choice("--mode", [args.mode], ("threads", "processes"))
    inject = parse_percent("--inject", args.inject) if args.inject else 0.0
    seed = args.seed
    if seed is None:
        seed = random.SystemRandom().getrandbits(32)
    work = calibrate.Calibrate(
        *(args.backend, args.mode, args.tasks, args.trials),
        args.max_time or (40.0 if args.quick else 120.0),
        *(inject, seed, args.quiet),
    )
    name = time.strftime("calibrate-%Y%m%d-%H%M%S")
    return work.run(args.out or Path("results") / name)


def add_doctor(commands: Any) -> None:
    """`doctor` and its flags."""
    p = commands.add_parser(
        "doctor",
        help="is this host fit to measure on?",
        description="Looks, and says what to change; changes nothing without --fix.\n"
        "Status 0: fit; 1: something would spoil what is measured.",
        epilog="examples:\n  ./run.py doctor\n"
        "  ./run.py doctor --fix -- ./run.py sweep --quick\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--json", action="store_true", help="the checks as JSON")
    p.add_argument(
        "--fix",
        action="store_true",
        help="change what is reversible while COMMAND runs (or until Enter), then "
        "put it back",
    )
    p.add_argument("--plan", type=Path, metavar="FILE", help="is it for this plan?")
    p.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    p.set_defaults(call=diagnose)


def diagnose(args: argparse.Namespace) -> int:
    """./run.py doctor."""
    needs = Needs()
    if args.plan:
        work = Sweep(load_plan(args.plan))
        needs = doctor.needs_of(work.cells, work.plan.hold_top)
    return doctor.doctor(args.json, args.fix, needs, tuple(args.command))


def add_compare(commands: Any) -> None:
    """`compare` and its flags."""
    p = commands.add_parser(
        "compare",
        help="result folders against each other, or variants inside one",
        description="A table, and a verdict on each row. One folder: its variants\n"
        "against a baseline. Two or more: the same variants across kernels, boots or\n"
        "builds.",
        epilog="examples:\n  ./run.py compare results/before results/after\n"
        "  ./run.py compare results/x --baseline stock-6.12 --format markdown\n"
        "  ./run.py compare A B --fail-if-slower 1%\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("folder", nargs="+", metavar="DIR", help="of a sweep")
    p.add_argument("--baseline", metavar="V", help="what others are compared with")
    p.add_argument(
        "--format", default="text", metavar="F", help=", ".join(compare.FORMATS)
    )
    p.add_argument(
        "--fail-if-slower", metavar="P%", help="status 1 when slower by more"
    )
    p.set_defaults(call=compared)


def compared(args: argparse.Namespace) -> int:
    """./run.py compare."""
    limit = args.fail_if_slower
    if limit is not None:
        limit = parse_percent("--fail-if-slower", limit)
    read = {path: read_folder(path) for path in args.folder}
    text, status = compare.compare(
        *(args.folder, args.baseline, args.format, limit),
        threshold_in([read[path] for path in args.folder], args.baseline),
        read.__getitem__,
    )
    print(text)
    return status


def add_report(commands: Any) -> None:
    """`report` and its flags."""
    p = commands.add_parser(
        "report",
        help="one HTML file: verdicts, figures, tables, raw numbers, commands",
        description="Opens in any browser, asks no network. Two folders or more are\n"
        "compared, too.",
        epilog="examples:\n  ./run.py report results/x\n"
        "  ./run.py report results/x --figures    those the sweep left out, too\n"
        "  ./run.py report results/before results/after --out both.html\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("folder", nargs="+", type=Path, metavar="DIR", help="of a sweep")
    p.add_argument("--out", type=Path, metavar="FILE", help="(DIR/report.html)")
    p.add_argument(
        "--figures",
        action="store_true",
        help="first draw the figures of cells that the sweep left out",
    )
    p.set_defaults(call=lambda a: report.report(a.folder, a.out, a.figures))


def listing(args: argparse.Namespace) -> int:
    """./run.py list: what the driver has."""
    found = drive.ask("list")
    if args.json:
        print(json.dumps(found))
        return DONE
    return drive.show("list")


def add_topo(commands: Any) -> None:
    """`topo` and its flags."""
    p = commands.add_parser(
        "topo",
        help="where each task goes on this machine, or on another",
        description="Obeys HWLOC_XMLFILE and HWLOC_SYNTHETIC.",
        epilog="examples:\n  ./run.py topo\n  ./run.py topo --place smt --tasks 2\n"
        "  HWLOC_SYNTHETIC='pack:2 [numa] l3:1 core:56 pu:2' \\\n"
        "      ./run.py topo --place scatter --tasks 32\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "--place",
        default="compact",
        metavar="P",
        help="compact, cores, smt, scatter, ..",
    )
    p.add_argument("--tasks", type=whole(1, 65536), metavar="N", help="(all PUs)")
    p.add_argument("--oversubscribe", action="store_true", help="more tasks than PUs")
    p.set_defaults(call=show_topo)


def show_topo(args: argparse.Namespace) -> int:
    """./run.py topo."""
    machine = drive.ask("topology")
    pus: list[int] = []
    if args.tasks or args.place != "compact":
        flags = ["--oversubscribe"] if args.oversubscribe else []
        tasks = str(args.tasks or 1)
        pus = drive.ask("place", "--place", args.place, "--tasks", tasks, *flags)["pus"]
    print(topo.render(machine, pus))
    return DONE


def add_hold(commands: Any) -> None:
    """`hold capture` and its flags."""
    p = commands.add_parser(
        "hold",
        help="the descriptors of a live process",
        epilog="example:\n  ./run.py hold capture 1234 --out server.fds\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    deeds = p.add_subparsers(metavar="capture", required=True)
    p = deeds.add_parser(
        "capture",
        help="write them down, one a line",
        epilog="example:\n  ./run.py hold capture 1234 --out server.fds\n"
        "  ./run.py sweep --hold none,file:server.fds\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "pid", type=whole(1, 2**31 - 1), metavar="PID", help="of the process"
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="(stdout)")
    p.set_defaults(call=lambda a: hold.capture(a.pid, a.out))


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        prog="run.py",
        description=ABOUT + "\n" + EXAMPLES,
        epilog=STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    add_sweep(commands)
    add_reproduce(commands)
    add_compare(commands)
    add_report(commands)
    add_calibrate(commands)
    add_topo(commands)
    add_doctor(commands)
    kernel.add_parser(commands, lambda words: main(["sweep", *words]))
    add_hold(commands)
    p = commands.add_parser(
        "list",
        help="workloads, variants, switches, presets",
        epilog="examples:\n  ./run.py list\n  ./run.py list --json | jq .presets\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--json", action="store_true", help="for programs")
    p.set_defaults(call=listing)
    return top


def interrupt(number: int, frame: object) -> None:
    """Ctrl-C, SIGTERM and SIGHUP end a sweep alike: nothing measured is lost."""
    for fd in (1, 2):
        try:
            os.write(fd, b"")
        except OSError:  # the terminal is closed: the last words are no failure
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run a command; every Problem is one line on stderr and its status."""
    given = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:
        print("run.py: stdout is closed", file=sys.stderr)
        return COULD_NOT
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may not be UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, interrupt)
        if not given:
            parser().print_help()
            return USAGE
        args = parser().parse_args(given)
        status: int = args.call(args)
        sys.stdout.flush()
        return status
    except Problem as problem:
        print(f"run.py: {problem}", file=sys.stderr)
        return problem.status
    except KeyboardInterrupt:
        print("run.py: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on: the rest of the output goes nowhere, quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return COULD_NOT
    except OSError as e:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = f"{e.filename}: " if e.filename else ""
        print(f"run.py: {one_line(what + str(e.strerror))}", file=sys.stderr)
        return COULD_NOT
    except ModuleNotFoundError as e:
        print(f"run.py: python3-{e.name} is missing: make setup", file=sys.stderr)
        return COULD_NOT
