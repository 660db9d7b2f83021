# SPDX-License-Identifier: GPL-2.0-only
"""Claims and questions of the mail threads, put to the test on this host."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import calibration, charts, counted, drive, plot
from bench.calibration import Calibrations
from bench.claims import NONE_BEYOND, Finding, load_claims, settled, verdict
from bench.findings import base_finding, counted_finding, matches, measured
from bench.findings import ratio_text
from bench.judge import by_cell, judge
from bench.looks import safe_name
from bench.plan import Plan
from bench.problem import COULD_NOT, DONE, INTERRUPTED, USAGE, Problem
from bench.problem import INCONCLUSIVE as UNSURE
from bench.scratch import Scratch
from bench.stats import Interval
from bench.store import load, new_folder, write_whole
from bench.strict import kept
from bench.summary import WIDTH, wrapped
from bench.sweep import Sweep

MAPPED = 10**6  # the column of instructions in a map, to the right of all tasks
SHM = Path("/dev/shm")


@dataclass
class Answer:
    """A case, what was found, and the verdict."""

    name: str
    case: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    squares: list[charts.Cell] = field(default_factory=list)
    columns: dict[int, str] = field(default_factory=dict)
    status: int = DONE

    @property
    def verdict(self) -> str:
        """In the words for it."""
        return verdict(self.case["kind"], self.findings)

    @property
    def ours(self) -> list[str]:
        """The numbers that stand beside the one that was claimed."""
        told = [f for f in self.findings if f.headline and f.ratio]
        alike: dict[tuple[str, str], list[Finding]] = {}
        for f in told:
            alike.setdefault((f.by, f.what), []).append(f)
        return [
            f"{f.by}, {f.what}{apart(f, alike[f.by, f.what])}: {numbers(f)}"
            for f in told
        ]


def apart(f: Finding, alike: list[Finding]) -> str:
    """What of a finding's place tells it from the others of its name."""
    places = [set(other.where.split(", ")) for other in alike]
    own = [p for p in f.where.split(", ") if p not in set.intersection(*places)]
    return f" ({', '.join(own)})" if own else ""


def numbers(f: Finding) -> str:
    """A finding's ratio as a table shows it: exact ones have no interval."""
    if not f.ratio or f.by in ("instructions", "rules"):
        return f.lack or f.text
    few = "" if f.ratio.known else ", too few runs"
    return ratio_text(f.ratio) + few


def plan_of(part: dict[str, Any], quick: bool) -> Plan:
    """The sweep of a part."""
    keys = ("workload", "variant", "hold", "mode", "tasks", "options")
    plan = Plan(backend=[part["by"]], **{k: part[k] for k in keys if k in part})
    plan.table_size = part.get("table-size", [0])
    plan.runs = 5 if quick else 11
    plan.window_ms = 5 if quick else 10
    plan.max_time = float(part.get("max-time", 20.0)) * (1 if quick else 6)
    return plan


def tmpfs_at(folder: Path) -> bool:
    """Whether it is a tmpfs that can be written to."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    kinds = [m.split()[2] for m in mounts if m.split()[1] == str(folder)]
    return bool(kinds) and kinds[-1] == "tmpfs" and os.access(folder, os.W_OK)


@contextlib.contextmanager
def files_in(folder: Path | None) -> Iterator[None]:
    """The driver's temporary files go there."""
    before = tempfile.tempdir
    tempfile.tempdir = str(folder) if folder else before
    try:
        yield
    finally:
        tempfile.tempdir = before


def lacking(needs: dict[str, Any], pus: int, switch: bool) -> str:
    """What this host lacks for a part; "" when nothing."""
    lacks = []
    if pus < needs.get("pus", 0):
        lacks.append(f"{needs['pus']} PUs (here: {pus})")
    if needs.get("switch") and not switch:
        lacks.append("a kernel with the switch (./run.py kernel)")
    if needs.get("tmpfs") and not tmpfs_at(SHM):
        lacks.append(f"a tmpfs at {SHM}")
    if "other" in needs:
        lacks.append(needs["other"])
    return "needs " + " and ".join(lacks) if lacks else ""


def by_sweep(answer: Answer, part: dict[str, Any], folder: Path, work: Sweep) -> int:
    """Measure a part's cells; its findings go to the answer."""
    status = work.collect(folder)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    records = load(folder)
    stored = Calibrations(work.host).threshold
    every = by_cell(records)
    good = {c: [r for r in rs if not r["error"]] for c, rs in every.items()}
    good = {c: rs for c, rs in good.items() if rs}
    for cell in work.cells:
        if cell not in good:
            texts = [r["error"]["text"] for r in every.get(cell, [])] or [
                "no time left"
            ]
            lack = f"failed: {texts[0]}"
            made = base_finding(part["find"][0], str(cell), part["by"])
            answer.findings.append(replace(made, lack=lack, fault=True))
    most = max(c.tasks for c in work.cells)
    thresholds = {r.cell: r.threshold for r in judge(records, "", stored)}
    told = set()  # a find of all cells leaves out what one of the same name had
    for find in part["find"]:
        for cell in [c for c in work.cells if c in good]:
            new = (find["what"], cell) not in told
            if new and matches(cell, find.get("cell", {}), most):
                told.add((find["what"], cell))
                threshold = None if "over" in find else thresholds[cell]
                one = measured(good, cell, find, part["by"], threshold)
                answer.findings.append(one)
                if "map" in part and one.ratio:
                    label = f"{cell.workload} {cell.hold}"
                    square(answer, part, cell.tasks, label, one)
    return status


def square(
    answer: Answer, part: dict[str, Any], column: int, row: str, f: Finding
) -> None:
    """A finding of a map: who is faster, by what."""
    assert f.ratio
    first, second = part["map"]
    ratio = f.ratio.estimate
    unit = "task" if column == 1 else "tasks"
    names = {MAPPED: "instructions, 1 task"}
    answer.columns[column] = names.get(column, f"model, {column} {unit}")
    same = f.word.startswith(NONE_BEYOND)
    winner = "" if same else first if ratio > 1 else second
    answer.squares.append(
        charts.Cell(
            *(column, row, winner, max(ratio, 1 / ratio)),
            f.word in ("faster", "slower"),
        )
    )


def by_counting(answer: Answer, part: dict[str, Any]) -> int:
    """Instructions of each row; more than was claimed is slower."""
    wanted = [(r, v) for r in part["rows"] for v in part["variant"]]
    try:
        known = counted.counts(wanted)
    except Problem as problem:
        for find in part["find"]:
            made = base_finding(find, ", ".join(part["rows"]), part["by"])
            answer.findings.append(replace(made, lack=str(problem)))
        return DONE
    for find in part["find"]:
        for row in part["rows"]:
            one = counted_finding(find, row, known)
            answer.findings.append(one)
            if "map" in part:
                square(answer, part, MAPPED, row.replace("@", " "), one)
    return DONE


def by_rules(answer: Answer, part: dict[str, Any]) -> int:
    """Rules of fdscale check that a variant keeps or breaks."""
    for find in part["find"]:
        words = ("check", "--backend", "model", "--variant", find["ask"])
        done = drive.answers(*words)
        broken = find["rule"] in done["broken"]
        detail = next(r["detail"] for r in done["rules"] if r["rule"] == find["rule"])
        right = broken == find["broken"]
        text = f"{find['rule']} is {'broken: ' + detail if broken else 'kept'}"
        made = base_finding(find, "", "rules")
        answer.findings.append(
            replace(
                *(made,),
                ratio=Interval(1, 1, 1, 1),
                word="broken" if broken else "kept",
                text=text,
                direction="reproduced" if right else "contradicted",
            )
        )
    return DONE


def line(f: Finding) -> list[str]:
    """A finding on the terminal."""
    where = f"{f.where}: " if f.where else ""
    if f.lack:
        return [wrapped(f"  {where}{f.what}: {f.lack}", "      ")]
    words = [f.text]
    if f.size:
        claimed = f"x{f.claimed:g}" if f.claimed and f.claimed >= 2 else ""
        claimed = claimed or f"{100 * ((f.claimed or 1) - 1):+.3g}%"
        words.append(f"claimed {claimed}: direction {f.direction}, size {f.size}")
    elif f.direction:
        words.append(f.direction)
    return [wrapped(f"  {where}{f.what}: {'; '.join(words)}", "      ")]


Say = Callable[[str], None]


def measure(
    answer: Answer, number: int, quick: bool, out: Path, quiet: bool, say: Say
) -> None:
    """One part of a case."""
    part = answer.case["settle"][number]
    first = len(answer.findings)
    needs = part.get("needs", {})
    status = DONE
    if part["by"] == "instructions":
        status = by_counting(answer, part)
    elif part["by"] == "rules":
        status = by_rules(answer, part)
    else:
        pus = int(drive.ask("topology")["pus"])
        lack = lacking(needs, pus, bool(drive.ask("list")["switch"]))
        if lack:
            made = [base_finding(f, "", part["by"]) for f in part["find"]]
            answer.findings += [replace(f, lack=lack) for f in made]
        else:
            with files_in(SHM if needs.get("tmpfs") else None):
                work = Sweep(plan_of(part, quick), quiet)
                folder = out / f"{answer.name}-{number}"
                status = by_sweep(answer, part, folder, work)
    answer.status = answer.status or status
    say("\n" + wrapped(part["why"], ""))
    lacks = {f.lack for f in answer.findings[first:]}
    if len(lacks) == 1 and "" not in lacks:
        say(wrapped(f"  {lacks.pop()}", "      "))
        return
    for f in answer.findings[first:]:
        say("\n".join(line(f)))


def head(answer: Answer) -> str:
    """What was said, before what was found."""
    case = answer.case
    lines = [
        f"{answer.name}: {case['who']}, {case['when']} ({case['where']})",
        case["claim"],
        f"Machine: {case['machine']}. Baseline: {case['baseline']}.",
        f"Claimed: {case['number']}. Test: {case['test']}.",
    ]
    return "\n".join(wrapped(text, "  ") for text in lines)


def draw(answer: Answer, out: Path) -> list[Path]:
    """The map of a case that has one."""
    first, second = next(p["map"] for p in answer.case["settle"] if "map" in p)
    titles = plot.Titles(
        f"{first} or {second}: which is faster, and by how much",
        "model: operations a second; instructions: of the real kernel, exact",
        second,
    )
    (out / "figures").mkdir(parents=True, exist_ok=True)
    base = out / "figures" / safe_name(answer.name, "map")
    return charts.draw_map(base, answer.squares, titles, answer.columns)


def state_path(name: str) -> Path:
    """Where the last answer to a case is kept."""
    return calibration.folder() / f"claim-{safe_name(name)}.json"


def keep(answer: Answer, quick: bool) -> None:
    """The verdict for the list; a line on stderr where it can't be kept."""
    host = os.uname()
    data = {
        "schema": 1,
        "time": time.time(),
        "hostname": host.nodename,
        "release": host.release,
        "quick": quick,
        "verdict": answer.verdict,
        "ours": answer.ours,
    }
    try:
        path = state_path(answer.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(data, indent=1) + "\n")
    except (OSError, Problem, RuntimeError) as error:
        print(f"run.py: verdict not kept: {error}", file=sys.stderr)


def last(name: str) -> str:
    """The verdict that was kept of this host."""
    host = os.uname()
    try:
        data = kept(state_path(name), "claim")
        if data["hostname"] != host.nodename:
            return "not tried here"
        day = time.strftime("%Y-%m-%d", time.localtime(data["time"]))
        how = ", --quick" if data["quick"] else ""
        return f"{data['verdict']} ({day}, Linux {data['release']}{how})"
    except (OSError, ValueError, RuntimeError):
        return "not tried here"


def listing(known: dict[str, dict[str, Any]]) -> None:
    """The cases, and how each came out last."""
    for name, case in known.items():
        print(wrapped(f"{name} ({case['kind']}): {case['claim']}"))
        print(wrapped(f"  last: {last(name)}", "    "))


def one(
    name: str, case: dict[str, Any], quick: bool, out: Path, quiet: bool, say: Say
) -> Answer:
    """One case: the claim, what was found, the verdict."""
    answer = Answer(name, case)
    say(head(answer))
    for number in range(len(case["settle"])):
        measure(answer, number, quick, out, quiet, say)
    say("\n" + wrapped(f"Verdict: {answer.verdict}", "  "))
    say(wrapped(case["reading"], ""))
    return answer


def markdown(answers: list[Answer]) -> str:
    """A table for a page: a row a claim."""
    lines = ["| case | claimed | ours | verdict |", "|---|---|---|---|"]
    for a in answers:
        lacks = dict.fromkeys(f.lack for f in a.findings if f.lack and not f.fault)
        ours = "; ".join(a.ours) or "; ".join(lacks) or "none"
        cells = [f"{a.name} ({a.case['who']})", a.case["number"], ours, a.verdict]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines)


def as_json(answers: list[Answer]) -> str:
    """All of it, for programs."""

    def plain(f: Finding) -> dict[str, Any]:
        told_ = asdict(f)
        if f.ratio and not f.ratio.known:
            told_["ratio"] |= {"low": None, "high": None}
        return told_

    return json.dumps(
        {
            "schema": 1,
            "cases": [
                {
                    "case": a.name,
                    "kind": a.case["kind"],
                    "claimed": a.case["number"],
                    "verdict": a.verdict,
                    "findings": [plain(f) for f in a.findings],
                }
                for a in answers
            ],
        }
    )


def exit_status(answers: list[Answer]) -> int:
    """3 when a cell failed, 125 when nothing came out one way or the other."""
    if any(a.status or any(f.fault for f in a.findings) for a in answers):
        return COULD_NOT
    return DONE if any(settled(a.findings) for a in answers) else UNSURE


def count_first(cases: list[dict[str, Any]]) -> None:
    """All the rows that these cases take, in one go: a boot takes longer than a row.
    Where that fails each part says why."""
    parts = [p for c in cases for p in c["settle"] if p["by"] == "instructions"]
    with contextlib.suppress(Problem):
        counted.counts([(r, v) for p in parts for r in p["rows"] for v in p["variant"]])


def run(
    names: list[str],
    every: bool = False,
    quick: bool = False,
    out: Path | None = None,
    fmt: str = "text",
    quiet: bool = False,
) -> int:
    """./run.py reproduce; the exit status."""
    known = load_claims()
    for name in names:
        if name not in known:
            raise Problem(USAGE, f"no case '{name}'; there are: {' '.join(known)}")
    if every and names:
        raise Problem(USAGE, "--all and cases: name one or the other")
    if not names and not every:
        listing(known)
        return DONE
    names = list(known) if every else names

    def say(text: str) -> None:
        if fmt == "text":
            print(text, flush=True)

    if out:
        new_folder(out)
    answers = []
    count_first([known[name] for name in names])
    with Scratch() as scratch:
        for number, name in enumerate(names):
            if number:
                say("\n" + "-" * WIDTH + "\n")
            answer = one(name, known[name], quick, out or scratch, quiet, say)
            keep(answer, quick)
            answers.append(answer)
            if out and answer.squares:
                say(f"\n{draw(answer, out)[1]}")
    if fmt == "markdown":
        print(markdown(answers))
    if fmt == "json":
        print(as_json(answers))
    return exit_status(answers)
