# SPDX-License-Identifier: GPL-2.0-only
"""`make bench PEER=DIR`: will-it-scale, built in DIR, beside ours, alternating.

Its samples are its own: a line a second, counted by its own process. The first is
left out (its tasks start in it), the rest of its warm-up is not waited for: a
negative number of seconds makes it stop within that. So its numbers here come of
the same program and loop, sooner than it would print an average.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import modelbench, stats
from bench.problem import USAGE, Problem

PEER = Path(os.environ.get("PEER") or "no peer")
ROUNDS = 6
EFFECT = 1.012
WARM_UP = 5  # its own: with -s N it stops after N + 6 samples
LIMIT = 60.0  # seconds until a program counts as hung; none takes more than a few
MODES = ("threads", "processes")
# Its cases and ours of the same loop.
SAME = {
    "dup1": ["dup-close"],
    "open1": ["open-close"],
    "open2": ["open-close", "--file", "dirs"],
    "open3": ["open-close", "--file", "shared"],
}


def ended(words: list[str], limit: float = LIMIT) -> tuple[str, str]:
    """What a program printed, and why that is not to be used: it failed, or hung and
    was killed with all that it had started."""
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as program:
        try:
            out, err = program.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return "", f"had not ended after {limit:g} s: killed"
        finally:
            # Its tasks too, which may outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    if program.returncode < 0:
        return out, f"killed by {signal.Signals(-program.returncode).name}"
    if program.returncode:
        said = err.strip().splitlines() or [f"exit status {program.returncode}"]
        return out, said[-1].removeprefix("fdscale: ")
    return out, ""


def theirs(case: str, mode: str, tasks: int, seconds: int) -> tuple[list[int], str]:
    """Operations in each second but the first; none where it failed, and why."""
    program = str(PEER / f"{case}_{mode}")
    out, said = ended([program, "-t", str(tasks), "-s", str(seconds - WARM_UP)])
    totals = [int(n) for n in re.findall(r"total:(\d+)", out)][1:]
    if said or not totals or not all(totals):
        return [], f"theirs gave no number{said and ': '}{said}"
    return totals, ""


def ours(words: list[str]) -> tuple[list[dict[str, Any]], str]:
    """The windows of one run of ours; none where it failed, and what it said."""
    out, said = ended([str(modelbench.DRIVER), "run", *words, "--json"])
    if said:
        return [], said
    lines = [json.loads(line) for line in out.splitlines()]
    return [e for e in lines if e["event"] == "window"], ""


def as_deep() -> bool:
    """Whether our files can lie as many folders deep as theirs, which are in /tmp
    itself: in a folder of ours in /, where that is the same file system."""
    return os.access("/", os.W_OK) and os.stat("/").st_dev == os.stat("/tmp").st_dev


def find() -> list[str]:
    """The cases that are built there; raises Problem(USAGE)."""
    cases = sorted(p.name.removesuffix("_threads") for p in PEER.glob("*_threads"))
    if not cases:
        raise Problem(
            USAGE, f"PEER={PEER}: no tests built there (dup1_threads, ..): make there"
        )
    return cases


def chosen(known: list[str]) -> list[str]:
    """Those of the known cases that CASES names; all where it names none."""
    named = os.environ.get("CASES", "").split()
    wrong = [case for case in named if case not in known]
    if wrong:
        raise Problem(USAGE, f"CASES: no {wrong[0]}; there are: {' '.join(known)}")
    return named or known


def tells(compare: Callable[[float], stats.Interval]) -> str:
    """The half-width of a comparison of two sides that are equal, and whether it
    finds nothing between them, but 1.2% where that is added to one side's numbers."""
    nothing, injected = compare(1.0), compare(EFFECT)
    if math.isnan(nothing.low):
        return "too few runs"
    found = injected.excludes(1) and not nothing.excludes(1)
    return f"±{nothing.half_width_percent:.1f}% {'yes' if found else 'no'}"


def side_by_side() -> None:
    """dup1, open1, open2, open3: a ratio a cell, and what each can tell; four minutes.

    Ours: six runs of half a second, each with two sides in alternating windows, by
    the interval over their ratios. Theirs: six runs of one sample, the first, third
    and fifth against the others, as before against after, by Welch's interval over
    their logs (it has no rule of its own; this takes its runs as what they are).
    CASES names some of the four.
    """
    built = find()
    cases = chosen([case for case in SAME if case in built])
    kernel = json.loads(
        subprocess.run(
            [modelbench.DRIVER, "list", "--json"], capture_output=True, check=True
        ).stdout
    )["kernel"]
    pair = f"{kernel},{kernel}#clone"
    print(f"ours over theirs ({PEER}), operations a second, {ROUNDS} runs each;")
    print("the half-width of A/A, and whether 1.2% is told from nothing")
    print(f"  {'':<20}{'ratio [95%]':<28}{'ours':<14}theirs")
    depth = ["--tmpdir", "/"] if as_deep() else []
    if not depth:
        print("  our files lie a folder deeper than theirs: 3% of an open + close here")
    for case in cases:
        for mode in MODES:
            for tasks in (1, 2):
                words = [*SAME[case], "--mode", mode, "--tasks", str(tasks)]
                # A table of 64 slots as theirs is, and as long as a sample of theirs.
                words += ["--variant", pair, "--table-size", "64"]
                words += ["--windows", "5", "--window-ms", "100", *depth]
                rounds = []
                for _ in range(ROUNDS):
                    old = theirs(case, mode, tasks, 1)
                    rounds.append((*ours(words), *old))
                name = f"{case} {tasks} {mode}"
                print(f"  {name:<20}" + row(rounds, kernel), flush=True)


# What a run of ours gave (windows, or what it said), and one of theirs (samples,
# or why there are none).
Round = tuple[list[dict[str, Any]], str, list[int], str]


def lacking(windows: list[dict[str, Any]], said: str, _: list[int], why: str) -> str:
    """Why there is no ratio of such a run; empty where there is."""
    if why:
        return why
    if said or not windows:
        return f"ours: {said or 'no window'}"
    if not all(w["rate"] > 0 for w in windows):
        return "ours had a window without an operation"
    return ""


def row(rounds: list[Round], kernel: str) -> str:
    """What is said of a cell, with a line for each reason to leave runs out."""
    clone = f"{kernel}#clone"
    reasons = Counter(lacking(*each) for each in rounds)
    whole = [(each[0], each[2]) for each in rounds if not lacking(*each)]
    pairs = [stats.block_pairs(windows, clone, kernel) for windows, _ in whole]
    mine = [fmean(base for _, base in run) for run in pairs]
    other = [fmean(samples) for _, samples in whole]

    def by_ours(effect: float) -> stats.Interval:
        return stats.ratio_interval([[(a / effect, b) for a, b in p] for p in pairs])

    def by_theirs(effect: float) -> stats.Interval:
        return stats.welch_ratio(other[::2], [n / effect for n in other[1::2]])

    text = "no ratio"
    if len(whole) > 1:
        ratio = stats.ratio_interval([[both] for both in zip(mine, other)])
        text = f"{modelbench.said(ratio):<28}{tells(by_ours):<14}{tells(by_theirs)}"
    for reason, times in reasons.items():
        if reason:
            text += f"\n    {times} of {len(rounds)} runs left out: {reason}"
    return text


def testcases() -> None:
    """Every test of that suite by --testcase, beside its own program.

    CASES names some of them; two tasks, three runs each, alternating.
    """
    wanted = chosen(find())
    counts = {"built": 0, "ran": 0, "within": 0, "reported": 0}
    print(f"--testcase over {PEER}'s own, 2 tasks, 3 runs: ratio [95%]")
    for case in wanted:
        path = PEER / "tests" / f"{case}.c"
        built = subprocess.run(
            [modelbench.DRIVER, "list", "--testcase", path],
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            print(f"  {case:<20}{built.stderr.strip()}")
            continue
        counts["built"] += 1
        for mode in MODES:
            text, word = one_case(case, path, mode)
            counts["ran"] += word != "reported"
            if word in counts:
                counts[word] += 1
            print(f"  {case:<20}{mode:<11}{text}", flush=True)
    print("  " + ", ".join(f"{n} {word}" for word, n in counts.items()))


def one_case(case: str, path: Path, mode: str) -> tuple[str, str]:
    """What is said of a case in a mode, and the word to count it by."""
    pairs = []
    for _ in range(3):
        old, why = theirs(case, mode, 2, 1)
        windows, said = ours(["--testcase", str(path), "--mode", mode, "--tasks", "2"])
        if said:
            return said, "reported"
        if why:
            return why, "ran alone"
        # As theirs counts: all operations over all of the time.
        ops = sum(sum(w["ops"]) for w in windows)
        pairs.append((ops * 1e9 / sum(w["ns"] for w in windows), fmean(old)))
    ratio = stats.ratio_interval([[pair] for pair in pairs])
    word = "outside" if ratio.excludes(1) else "within"
    return f"{modelbench.said(ratio)} {word}", word
