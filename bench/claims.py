# SPDX-License-Identifier: GPL-2.0-only
"""The claims as data, and what may be said of them: no measuring, no printing."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import stats
from bench.plan import CONFIG
from bench.problem import USAGE, Problem
from bench.stats import Interval
from bench.strict import Validator, text_of, toml_of, unfit

REPRODUCED, CONTRADICTED = "reproduced", "contradicted"
INCONCLUSIVE, NOT_HERE = "inconclusive", "not testable here"
NONE_BEYOND = "no difference beyond "
# What each way of measuring takes beside the texts.
SWEEP = ("workload", "hold", "mode", "tasks")
TAKES = {
    "model": (*SWEEP, "variant"),
    "kernel": SWEEP,
    "instructions": ("rows", "variant"),
    "rules": (),
}


def line_of(text: str, path: list[Any]) -> int:
    """The line of a key, or the header of the table that it is in.

    @path is of keys and places in lists, as jsonschema gives it.
    """
    headers: Counter[str] = Counter()
    tables = [str(k) for k in path if not isinstance(k, int)]
    places = [k for k in path if isinstance(k, int)]
    best = 1
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+([^\[\]]+)\]+\s*$", line)
        if header:
            name = header.group(1)
            parts = name.split(".")
            if line.lstrip().startswith("[["):
                headers[name] += 1
                for inner in [k for k in headers if k.startswith(name + ".")]:
                    del headers[inner]
            here = [
                headers[".".join(parts[: i + 1])] - 1
                for i in range(len(parts))
                if headers[".".join(parts[: i + 1])]
            ]
            inside = parts == tables[: len(parts)] and here == places[: len(here)]
            if inside:
                best = number
            continue
        key = re.match(r'\s*"?([\w-]+)"?\s*=', line)
        if inside and key and key.group(1) in tables:
            return number
    return best


def refuse(path: Path, text: str, where: list[Any], why: str) -> Problem:
    """The file, the line, the key, and what is wrong."""
    keys = ".".join(str(k) for k in where if not isinstance(k, int))
    number = line_of(text, where)
    return Problem(USAGE, f"claims {path}: line {number}: {keys or 'file'}: {why}")


def sense(case: dict[str, Any]) -> tuple[list[Any], str] | None:
    """What the schema can't say: the key that is wrong, and why."""
    for i, part in enumerate(case["settle"]):
        for key in TAKES[part["by"]]:
            if key not in part:
                return ["settle", i], f"'{key}' is a required property of {part['by']}"
        named = [*part.get("variant", []), *part.get("map", [])]
        for k in part.get("map", []):
            if k not in part.get("variant", []):
                return ["settle", i, "map"], f"'{k}' is not among its variants"
        for j, find in enumerate(part["find"]):
            where = ["settle", i, "find", j]
            for key in ("ask", "against"):
                known = part["by"] == "rules" or find.get(key, "") in ("", *named)
                if not known:
                    return [*where, key], f"'{find[key]}' is not among its variants"
            said = {"expect", "size", "most", "broken"} & find.keys()
            if case["kind"] == "claim" and find.get("settles", True) and not said:
                return [*where, "what"], "what settles a claim has expect or size"
            if case["kind"] == "question" and said:
                return [*where, said.pop()], "a question claims nothing"
    if not any(f.get("headline") for part in case["settle"] for f in part["find"]):
        return ["settle"], "no find is the headline"
    return None


def load_claims(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """The cases by name; raises Problem(USAGE) naming the file, line and key."""
    path = path or CONFIG / "claims.toml"
    text = text_of(path, f"claims {path}")
    data = toml_of(text, f"claims {path}")
    schema = json.loads((CONFIG / "schema" / "claims.json").read_text())
    for error in Validator(schema).iter_errors(data):
        where = list(error.absolute_path)
        unknown = re.search(r"'([^']+)' (?:was|were) unexpected", error.message)
        if unknown:
            where.append(unknown.group(1))
        raise refuse(path, text, where, error.message[:200])
    for where, why in unfit(data, []):
        raise refuse(path, text, where, why)
    cases: dict[str, dict[str, Any]] = data["case"]
    for name, case in cases.items():
        wrong = sense(case)
        if wrong:
            raise refuse(path, text, ["case", name, *wrong[0]], wrong[1])
    return cases


@dataclass(frozen=True)
class Finding:
    """One number of ours beside what was claimed of it."""

    what: str
    where: str  # the cell, or the row of a count
    by: str
    settles: bool
    headline: bool
    ratio: Interval | None = None
    word: str = ""  # faster, slower, no difference beyond X, inconclusive
    text: str = ""  # the same in full
    direction: str = ""  # of the verdicts above; "": nothing was claimed
    size: str = ""
    claimed: float | None = None
    lack: str = ""  # why it was not measured; then there is no number
    fault: bool = False  # it ought to have been


def judge_direction(word: str, expect: str, claimed: float | None) -> str:
    """A word of ours against the direction that was claimed, or that of a ratio."""
    if claimed:
        expect = "faster" if claimed > 1 else "slower"
    if not expect or word == INCONCLUSIVE:
        return word and expect and INCONCLUSIVE
    if expect == "not faster":
        return CONTRADICTED if word == "faster" else REPRODUCED
    if word.startswith(NONE_BEYOND):
        beyond = float(word.removeprefix(NONE_BEYOND).rstrip("%")) / 100
        # A claim smaller than what is told apart is not refuted.
        small = claimed is not None and stats.effect(claimed) <= beyond
        return INCONCLUSIVE if small else CONTRADICTED
    return REPRODUCED if word == expect else CONTRADICTED


def judge_size(ratio: Interval, claimed: float | None) -> str:
    """Reproduced: the whole interval is between half the claimed effect and twice it;
    contradicted: all of it is outside.  An effect is counted from 1, in the claimed
    direction: of x50 the half is x25.5, of +13% it is +6.5%."""
    if not claimed:
        return ""
    if not ratio.known or 1 < ratio.n < stats.MIN_RUNS:
        return INCONCLUSIVE
    low, high = ratio.low, ratio.high
    if claimed < 1:
        low, high, claimed = 1 / high, 1 / low, 1 / claimed
    least, most = 1 + (claimed - 1) / 2, 1 + (claimed - 1) * 2
    if least <= low and high <= most:
        return REPRODUCED
    return CONTRADICTED if high < least or low > most else INCONCLUSIVE


def found(words: list[str]) -> str:
    """One word for many: all alike, or what contradicts, with how many."""
    counts = Counter(w for w in words if w)
    if not counts:
        return ""
    if len(counts) == 1:
        return next(iter(counts))
    order = [w for w in (CONTRADICTED, REPRODUCED, INCONCLUSIVE) if counts[w]]
    total = sum(counts.values())
    return ", ".join(f"{w} in {counts[w]} of {total}" for w in order)


def by_way(findings: list[Finding]) -> dict[str, list[Finding]]:
    """Apart by how they were measured."""
    ways: dict[str, list[Finding]] = {}
    for f in findings:
        ways.setdefault(f.by, []).append(f)
    return ways


def not_here(findings: list[Finding]) -> str:
    """Why these were not measured."""
    return f"{NOT_HERE}: {'; '.join(dict.fromkeys(f.lack for f in findings if f.lack))}"


def judged(findings: list[Finding]) -> str:
    """Direction and size apart; or why that can't be had here."""
    tested = [f for f in findings if not f.lack]
    if not tested:
        return not_here(findings)
    direction = found([f.direction for f in tested])
    size = found([f.size for f in tested])
    text = direction if not size else f"direction {direction}; size {size}"
    lacks = len(tested) < len(findings)
    return f"{text} (a part is {not_here(findings)})" if lacks else text


def claim_verdict(findings: list[Finding]) -> str:
    """What settles it, each way of measuring for itself where there are more."""
    mine = [f for f in findings if f.settles]
    ways = by_way(mine)
    if len(ways) == 1 or all(f.lack for f in mine):
        return judged(mine)
    return "; ".join(f"{w}: {judged(fs).replace('; ', ', ')}" for w, fs in ways.items())


def lengths(findings: list[Finding]) -> str:
    """What counts of instructions say: they are no time, and exact."""
    spans: dict[str, list[float]] = {}
    for f in findings:
        more = 100 * (1 / f.ratio.estimate - 1) if f.ratio else 0.0
        word = "the same" if not more else "longer" if more > 0 else "shorter"
        spans.setdefault(word, []).append(abs(more))
    told = []
    for word, spread in spans.items():
        low, high = (f"{n:.1f}%" for n in (min(spread), max(spread)))
        span = low if low == high else f"{low} to {high}"
        many = f" in {len(spread)}" if len(spans) > 1 else ""
        told.append(word + (f" by {span}" if word != "the same" else "") + many)
    return ", ".join(told)


def question_verdict(findings: list[Finding]) -> str:
    """The comparison words of what settles it; signs are kept apart."""
    mine = [f for f in findings if f.settles]
    tested = [f for f in mine if not f.lack]
    if not tested:
        return not_here(mine)
    told = []
    for way, some in by_way(tested).items():
        words = [f.word for f in some]
        counts = Counter(kinds(words))
        parts = [w if n == len(words) else f"{w} in {n}" for w, n in counts.items()]
        text = lengths(some) if way == "instructions" else ", ".join(parts)
        told.append(f"{way}: {text}")
    return "; ".join(told)


def kinds(words: list[str]) -> list[str]:
    """Words with one bound for all that differ in nothing: the widest."""
    none = [w for w in words if w.startswith(NONE_BEYOND)]
    widest = max(
        none, key=lambda w: float(w.removeprefix(NONE_BEYOND).rstrip("%")), default=""
    )
    return [widest if w in none else w for w in words]


def verdict(kind: str, findings: list[Finding]) -> str:
    """The verdict on a case."""
    return claim_verdict(findings) if kind == "claim" else question_verdict(findings)


def settled(findings: list[Finding]) -> bool:
    """Whether anything that settles it came out one way or the other."""
    mine = [f for f in findings if f.settles]
    return not mine or any(f.lack or f.word != INCONCLUSIVE for f in mine)
