# SPDX-License-Identifier: GPL-2.0-only
"""What to measure: cells, from flags or a TOML plan, and the time they get."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import hold as holds
from bench import stats
from bench.problem import USAGE, Problem
from bench.strict import Validator, Wrong, text_of, toml_of, unfit

CASE_WINDOW_MS = 100  # of test cases, whose operations may be long
CONFIG = Path(__file__).resolve().parent.parent / "config"


def held(hold: str, top: int) -> str:
    """A hold in words: "every:3 below 1024"; top is 0 where the word says it all."""
    return f"{hold} below {top}" if top else hold


@dataclass(frozen=True)
class Cell:
    """One workload x backend x hold x placement x mode x number of tasks."""

    workload: str
    backend: str
    hold: str
    place: str
    mode: str
    tasks: int
    options: tuple[tuple[str, str], ...] = ()
    table_size: int = 0  # slots; 0: what the driver finds to fit
    source: str = ""  # a user's own file: its flag, a colon, its content's hash
    hold_top: int = 0  # where every:K and random:P end; 0: the hold has its own end

    def as_dict(self) -> dict[str, Any]:
        """As it stands in results.jsonl."""
        words = asdict(self) | {"options": dict(self.options)}
        if not self.source:
            del words["source"]
        return words

    @staticmethod
    def from_dict(d: dict[str, Any]) -> "Cell":
        """The inverse of as_dict()."""
        words: dict[str, Any] = {**d, "options": tuple(sorted(d["options"].items()))}
        return Cell(**words)

    def group(self) -> "Cell":
        """All but the number of tasks: the cells of one table and figure."""
        return replace(self, tasks=0)

    def order(self) -> tuple[Any, ...]:
        """Where it stands among others: what is held, and tasks, by number."""

        def by_number(text: str) -> list[str | int]:
            parts = re.split(r"([0-9]+)", text)
            return [int(p) if i % 2 else p for i, p in enumerate(parts)]

        options = [by_number(f"{k} {v}") for k, v in self.options]
        hold = by_number("" if self.hold == "none" else self.hold)
        first = (self.workload, options, self.backend, self.mode, self.place)
        return (*first, hold, self.table_size, self.tasks)

    def name(self) -> str:
        """The workload with its flags, as they are typed; a user's file told apart."""
        flags = [f"--{k} {v}" for k, v in self.options]
        source = [f"({self.source})"] if self.source else []
        return " ".join([self.workload, *source, *flags])

    @property
    def held(self) -> str:
        """The hold, with its end where that is not in the word."""
        return held(self.hold, self.hold_top)

    def __str__(self) -> str:
        one = {"threads": "thread", "processes": "process"}
        unit = self.mode if self.tasks != 1 else one[self.mode]
        size = f", {self.table_size} slots" if self.table_size else ""
        return (
            f"{self.name()}, {self.backend}, hold {self.held}, "
            f"{self.tasks} {unit}, {self.place}{size}"
        )


@dataclass
class Plan:
    """A sweep, as asked for.  Lists multiply; times are seconds."""

    workload: list[str] = field(
        default_factory=lambda: ["dup-close", "open-close", "dup2-churn"]
    )
    workload_file: list[str] = field(default_factory=list)  # users' own, by path
    testcase: list[str] = field(default_factory=list)  # of will-it-scale's form
    backend: list[str] = field(default_factory=lambda: ["kernel", "model"])
    variant: list[str] = field(
        default_factory=lambda: ["stock-6.12", "series-v2", "series-v3", "merged-6.13"]
    )
    baseline: str = ""  # the first variant
    hold: list[str] = field(default_factory=lambda: ["none", "low:64"])
    hold_top: int = 1024  # the end of every:K and random:P
    place: list[str] = field(default_factory=lambda: ["compact"])
    core_kind: str = ""  # P or E; all
    table_node: int = -1  # the table's NUMA node; -1: as it comes
    mode: list[str] = field(default_factory=lambda: ["threads", "processes"])
    tasks: list[int] | str = "auto"
    table_size: list[int] = field(default_factory=lambda: [0])
    runs: int = 7
    window_ms: int = 10
    max_time: float = 0.0  # 0: a second a run
    precision: float = 0.0  # half-width of every ratio's interval; 0: not asked
    lock: str = "queued"
    oversubscribe: bool = False
    options: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    quick: bool = False
    profile: bool = False  # one more run of each cell, under perf
    seed: int = 0

    @property
    def least_runs(self) -> int:
        """Of a cell: --precision looks at none with fewer than STOP_FIRST."""
        return max(self.runs, stats.STOP_FIRST) if self.precision else self.runs

    def bound(self) -> None:
        """--precision goes on until it is reached, or for ten minutes."""
        if self.precision and not self.max_time:
            self.max_time = 600.0

    def words_for(self, cell: Cell) -> list[str]:
        """What names a cell's workload on the driver's command line."""
        flag = cell.source.partition(":")[0]
        if not flag:
            return [cell.workload]
        paths = self.testcase if flag == "testcase" else self.workload_file
        return [f"--{flag}", next(p for p in paths if Path(p).stem == cell.workload)]

    def quicken(self) -> "Plan":
        """--quick: five runs of short windows, 42 s in all, figures besides."""
        self.quick = True
        self.runs = min(self.runs, 5)
        self.window_ms = min(
            self.window_ms, CASE_WINDOW_MS // 2 if self.testcase else 5
        )
        self.max_time = self.max_time or 42.0
        return self


def line_of(text: str, keys: list[str]) -> int:
    """The line on which the last of nested keys stands, or 1."""
    at = 0
    lines = text.splitlines()
    for key in keys:
        here = re.compile(rf"""(^|[\s.\[{{"'])({re.escape(key)})["']?\s*[=\].]""")
        at = next((n for n in range(at, len(lines)) if here.search(lines[n])), at)
    return at + 1


def wrong_options(
    options: dict[str, Any], workloads: list[dict[str, Any]]
) -> Iterator[Wrong]:
    """Options that no workload of that name has, and words that they don't take."""
    known = {w["name"]: {o["name"]: o for o in w["options"]} for w in workloads}
    for name, given in options.items():
        if name not in known:
            there = " ".join(sorted(known))
            yield ["options", name], f"no workload '{name}'; there are: {there}"
            continue
        for key, words in given.items():
            at = ["options", name, key]
            if key not in known[name]:
                there = " ".join(known[name]) or "none"
                yield at, f"no option of {name}; it has: {there}"
                continue
            choices = known[name][key].get("choices")
            bad = [w for w in words if choices and w not in choices.split()]
            if bad:
                yield at, f"'{bad[0]}' is not one of: {choices}"


def wrong_in(
    data: dict[str, Any], workloads: list[dict[str, Any]] | None
) -> Iterator[Wrong]:
    """All that is wrong with a plan."""
    schema = json.loads((CONFIG / "schema" / "plan.json").read_text())
    right = True
    for error in Validator(schema).iter_errors(data):
        keys = list(error.absolute_path)
        unknown = re.search(r"'([^']+)' (?:was|were) unexpected", error.message)
        yield keys + ([unknown.group(1)] if unknown else []), error.message
        right = False
    yield from unfit(data, [])
    if right and workloads is not None:
        yield from wrong_options(data.get("options", {}), workloads)


def load_plan(path: Path, workloads: list[dict[str, Any]] | None = None) -> Plan:
    """A plan from TOML, checked against config/schema/plan.json and, where they are
    given, the driver's workloads.

    Raises Problem(USAGE) naming the file, the line and the key.
    """
    what = f"plan {path}"
    text = text_of(path, what)
    data = toml_of(text, what)
    if not data:
        raise Problem(USAGE, f"{what}: empty; see config/*.toml for ready ones")
    for path_, why in wrong_in(data, workloads):
        keys = [str(k) for k in path_ if not isinstance(k, int)]
        where = ".".join(keys)[:200] or "plan"
        line = line_of(text, keys)
        raise Problem(USAGE, f"{what}: line {line}: {where}: {why[:200]}")
    data = {k.replace("-", "_"): v for k, v in data.items()}
    quick = data.pop("quick", False)
    for key in {"workload_file", "testcase"} & data.keys():
        data.setdefault("workload", [])
        data[key] = [str(Path(p).resolve()) for p in data[key]]
    if "testcase" in data:
        data.setdefault("window_ms", CASE_WINDOW_MS)
    if "precision" in data:
        line = line_of(text, ["precision"])
        where = f"{what}: line {line}: precision"
        data["precision"] = parse_percent(where, data["precision"])
    plan = Plan(**data)
    plan.bound()
    return plan.quicken() if quick else plan


def parse_percent(what: str, text: str) -> float:
    """'0.5%' as 0.005; raises Problem(USAGE)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%?", text)
    value = float(match.group(1)) if match else 0.0
    if not 0 < value < 100:
        raise Problem(USAGE, f"{what}: '{text}' is not a percentage such as 0.5%")
    return value / 100


def parse_tasks(text: str) -> list[int] | str:
    """'auto' or '1,2,8'; raises Problem(USAGE)."""
    if text == "auto":
        return text
    counts = []
    for word in text.split(","):
        if not re.fullmatch(r"[0-9]{1,5}", word) or not 1 <= int(word) <= 65536:
            raise Problem(
                USAGE,
                f"--tasks: '{word}' is not a whole number from 1 to 65536, or auto",
            )
        counts.append(int(word))
    return sorted(set(counts))


def room(place: str, topology: dict[str, Any]) -> int:
    """How many tasks a placement takes, one a PU; where the driver refuses it, all."""
    usable = topology["usable"]
    kind, _, number = place.partition(":")
    if place == "cores":
        return len({pu["core"] for pu in usable})
    if kind in ("node", "package") and re.fullmatch("[0-9]{1,9}", number):
        found = sum(pu[kind] == int(number) for pu in usable)
    else:  # the driver refuses what is no list, and what it can't use of one
        parts = re.findall(
            "([0-9]{1,9})(?:-([0-9]{1,9}))?", number if kind == "cpus" else ""
        )
        found = sum(int(last or first) - int(first) + 1 for first, last in parts)
    most: int = len(usable)
    return min(int(found), most) if found > 0 else most


def task_counts(topology: dict[str, Any], place: str = "compact") -> list[int]:
    """1, 2, 4, ... and what fills an L3, a node, a package, all cores, all PUs, as
    far as the placement goes."""
    most = room(place, topology)
    powers = itertools.takewhile(lambda n: n <= most, (1 << i for i in range(17)))
    sizes = (int(s["tasks"]) for s in topology["sizes"])
    return sorted({*powers, *(n for n in sizes if n <= most), most})


def counts_for(plan: Plan, place: str, topology: dict[str, Any]) -> list[int]:
    """The numbers of tasks that a plan has for a placement."""
    if isinstance(plan.tasks, str):
        return task_counts(topology, place)
    return plan.tasks


def cell_options(plan: Plan, workload: str) -> list[tuple[tuple[str, str], ...]]:
    """Every combination of the options that the plan gives for a workload."""
    given = plan.options.get(workload, {})
    lists = [[(key, value) for value in values] for key, values in given.items()]
    return [tuple(sorted(c)) for c in itertools.product(*lists)]


def takes_top(hold: str) -> bool:
    """Whether --hold-top is the hold's end."""
    return hold.startswith(("every:", "random:"))


def hold_end(hold: str, top: int = 1024) -> int:
    """The descriptors below this one may be held; 0 where only the driver knows.

    @top is --hold-top.  A live process counts as it is now.
    """
    if hold == "none":
        return 3
    if takes_top(hold):
        return top
    if hold.startswith("file:"):
        return holds.top_of(Path(hold.removeprefix("file:")))
    if hold.startswith("pid:"):
        return holds.top_now(hold.removeprefix("pid:"))
    match = re.fullmatch("low:([0-9]{1,9})", hold)
    return int(match.group(1)) if match else 0


def common_slots(hold: str, mode: str, most_tasks: int, top: int = 1024) -> int:
    """One table size for all task counts of a curve: what the largest needs.

    The driver's own rule (size.c): the hold, two descriptors a task in flight,
    64 clear, a source a task; processes have a table each.
    """
    tasks = most_tasks if mode == "threads" else 1
    end = hold_end(hold, top)
    return 1 << (end + 3 * tasks + 64 - 1).bit_length() if end else 0


def expand(plan: Plan, topology: dict[str, Any], listing: dict[str, Any]) -> list[Cell]:
    """The plan's cells.

    A combination that makes no sense for a workload by what it is (dup2-churn
    in threads) is left out where a list multiplied it into being; where nothing
    else was asked for, the driver's refusal is the user's to see.
    """
    facts = {(w["name"], w["backend"]): w for w in listing["workloads"]}
    own = dict.fromkeys(w["name"] for w in listing["workloads"] if "source" in w)
    counts_of = {place: counts_for(plan, place, topology) for place in plan.place}
    most = max(max(counts) for counts in counts_of.values())
    cells: list[Cell] = []
    for workload, backend, hold, place, mode, size in itertools.product(
        [*plan.workload, *own],
        plan.backend,
        plan.hold,
        plan.place,
        plan.mode,
        plan.table_size,
    ):
        about = facts.get((workload, backend))
        if not about and len(plan.backend) > 1:
            continue  # the other backend alone serves it
        about = about or next(w for key, w in facts.items() if key[0] == workload)
        if about.get("hold") and len(plan.hold) > 1:
            if hold != plan.hold[0]:
                continue
            hold = about["hold"]  # the one it has a meaning with
        counts = counts_of[place]
        if not size and not (about["empty_table"] or about.get("sized_by_options")):
            size = common_slots(hold, mode, most, plan.hold_top)
        top = plan.hold_top if takes_top(hold) else 0
        if about["empty_table"] and hold != "none" and "none" in plan.hold:
            continue
        if about["processes_only"] and mode == "threads":
            if "processes" in plan.mode:
                continue
        source = about.get("source", "")
        for options in cell_options(plan, workload):
            for tasks in counts:
                cell = Cell(
                    *(workload, backend, hold, place, mode, tasks, options, size),
                    *(source, top),
                )
                if plan.quick and mode == "processes" and tasks == 1:
                    if "threads" in plan.mode and not about["processes_only"]:
                        continue  # one process is one thread
                cells.append(cell)
    return cells


def variants_for(cell: Cell, plan: Plan, listing: dict[str, Any]) -> list[str]:
    """What the driver is asked for.

    The running kernel has the one form it has, or a switch for all. On the model
    the baseline's clone comes along where there is one: A/A in the same blocks
    tells what to believe.
    """
    every = listing["all"][cell.backend]
    named = [w for v in plan.variant for w in (every if v == "all" else [v])]
    named = list(dict.fromkeys(named))
    if cell.backend == "kernel" and not listing["switch"]:
        running = [str(listing["kernel"])]
        named = [v for v in named if v.split("#")[0] == running[0]]
        return named if len(named) > 1 else running
    if cell.backend == "kernel":
        return named
    baseline = plan.baseline or named[0]
    cloned = {
        w["name"] for k in ("searches", "presets") for w in listing[k] if w["clone"]
    }
    clone = f"{baseline}#clone"
    if len(named) > 1 and baseline.split("+")[0] in cloned:
        return list(dict.fromkeys([*named, clone]))
    return named
