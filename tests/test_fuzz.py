# SPDX-License-Identifier: GPL-2.0-only
"""Bad input to all that the runner reads: never a traceback, never in silence.

Each refusal is one line that names what is refused, with the status of a usage
error (2) or of what could not be done (3). In `make test` each has a few made-up
inputs, always the same; FDSCALE_FUZZ_SECONDS=N gives each N seconds of new ones.
"""
from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from conftest import BUILD, ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from made_folders import failed, run

from bench import calibrate, calibration, cli, doctor, drive, hold, kernel_build
from bench import kernel_counts, reproduce
from bench.calibration import Calibration
from bench.claims import load_claims
from bench.compare_format import FORMATS
from bench.host import read_host
from bench.kernel_count import Count
from bench.plan import Cell, Plan, load_plan
from bench.problem import COULD_NOT, NOT_PLAIN, USAGE, Problem
from bench.strict import json_of
from bench.sweep import Sweep

SECONDS = float(os.environ.get("FDSCALE_FUZZ_SECONDS", "0"))
STATUSES = {0, 1, 2, 3, 125}
MARK = "<img src=x onerror=alert(7)>"


def tried(
    strategy: st.SearchStrategy[Any], check: Callable[[Any], None], n: int
) -> None:
    """CHECK on N inputs, always the same; or for as long as was asked."""
    count = 0

    def counted(value: Any) -> None:
        nonlocal count
        count += 1
        check(value)

    given_ = given(strategy)(counted)
    quick = settings(max_examples=n, derandomize=True, deadline=None, database=None)
    if not SECONDS:
        quick(given_)()
        return
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        seed = random.SystemRandom().getrandbits(64)
        many = settings(quick, max_examples=300, derandomize=False)
        hypothesis.seed(seed)(many(given(strategy)(counted)))()
    print(f"{count} inputs in {SECONDS:g} s")


def main(*words: str) -> tuple[int, str, str]:
    """./run.py with these words, in this process: status, stdout, stderr."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    err = io.StringIO()
    try:
        # A file: where stdout fails, main() turns its descriptor elsewhere.
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as out:
            with contextlib.redirect_stdout(out.file), contextlib.redirect_stderr(err):
                try:
                    status = cli.main(list(words))
                except SystemExit as end:
                    status = int(str(end.code))
                out.flush()
            return status, Path(out.name).read_text(), err.getvalue()
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def must(words: tuple[str, ...], named: str = "") -> tuple[int, str]:
    """Of every command line; NAMED is in each refusal. The status, and stdout."""
    status, out, err = main(*words)
    assert status in STATUSES, (words, err)
    for line in (out + err).split("\n"):
        assert not NOT_PLAIN.search(line), (words, line)
    dry = "--dry-run" in words and "refused" in out  # a dry run answers on stdout
    if status in (USAGE, COULD_NOT) and not dry:
        assert named in err and err.strip(), (words, err)
        assert err.count("\n") == 1, (words, err)
    return status, out


NUMBERS = [
    0,
    -1,
    1,
    2,
    1.5,
    2.0,
    -0.0,
    1e308,
    5e-324,
    10**19,
    10**30,
    65536,
    2**31,
]
WORDS = ["", MARK, "\x1b[2J", "\ud800", "a\nb", "../../x", "é" * 70, "x" * 3000, "%s"]
WORDS += ["kernel", "model", "threads", "none", "low:64", "stock-6.12", "\x00", "a|b"]
SCALARS = st.sampled_from([None, True, False, *NUMBERS, *WORDS])
NASTY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["tasks", "a.b", MARK, "x\ny"]), inner, max_size=2
    ),
    max_leaves=4,
)


def spoil(draw: st.DrawFn, data: Any) -> None:
    """One value somewhere inside is replaced, removed, doubled, or has company."""
    at = data
    while True:
        keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inside = at[key] if isinstance(at[key], dict | list) else None
        if not inside or draw(st.integers(0, 3)) == 0:
            break
        at = inside
    deed = draw(st.integers(0, 5))
    if deed == 0:
        del at[key]
    elif deed == 1 and isinstance(at, list):
        at.append(copy.deepcopy(at[key]))
    elif deed == 2 and isinstance(at, dict):
        at[draw(st.sampled_from(WORDS))] = draw(NASTY)
    else:
        at[key] = draw(NASTY)


@st.composite
def spoilt(draw: st.DrawFn, data: Any) -> Any:
    """Good data with one to three faults, and a few without."""
    made = copy.deepcopy(data)
    for _ in range(draw(st.integers(0, 3))):
        spoil(draw, made)
    return made


PIECES = ["1e400", "NaN", "-Infinity", "[" * 2000, '{"a":' * 2000, "9" * 5000, "-", "é"]
PIECES += ['"\\ud800"', '"\\u0000"', "\x00", "\n", "\r", '"', "'''", "\\", "[[x]]", "="]
PIECES += [
    "a.b.c = 1\n",
    "inf",
    "1979-05-27",
    "0x10",
    "1_000",
    "\ufeff",
    "null",
    "x" * 99,
]


@st.composite
def torn(draw: st.DrawFn, text: str) -> str:
    """A good text with pieces cut out, and others put in."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 40)))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return text


def toml(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if value is None:
        return "1979-05-27"
    if isinstance(value, str):
        return json.dumps(
            value.replace("\ud800", "\ufffd"), ensure_ascii=False
        ).replace("\x7f", "\\u007f")
    return json.dumps(value)


def write(path: Path, text: str) -> Path:
    """As it is, surrogates as bytes that are not UTF-8."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


PLAN = {
    "workload": ["dup-close", "dupfd"],
    "backend": ["model"],
    "variant": ["two-level", "first-word+cond-clear"],
    "baseline": "two-level",
    "hold": ["none", "every:3"],
    "hold-top": 1024,
    "place": ["compact"],
    "mode": ["threads"],
    "tasks": [1, 2],
    "table-node": 0,
    "table-size": [0, 128],
    "runs": 5,
    "window-ms": 10,
    "max-time": 1.5,
    "precision": "1%",
    "lock": "tas",
    "oversubscribe": True,
    "quick": False,
    "seed": 3,
    "options": {"dupfd": {"start": ["0", "64"]}},
}


def plan_texts() -> st.SearchStrategy[str]:
    """Plans with wrong values, and texts that are no TOML."""
    whole = [p.read_text() for p in sorted((ROOT / "config").glob("*.toml"))]
    lines = spoilt(PLAN).map(
        lambda plan: "".join(f"{toml(k)} = {toml(v)}\n" for k, v in plan.items())
    )
    return lines | st.sampled_from(whole).flatmap(torn)


def check_types(plan: Plan) -> None:
    """Each value is of the kind that the plan has by default."""
    for key, default in asdict(Plan()).items():
        value = getattr(plan, key)
        if key == "tasks":
            assert value == "auto" or all(type(n) is int for n in value)
        elif isinstance(default, float):
            assert type(value) in (int, float)
        else:
            assert type(value) is type(default), key
        if isinstance(default, list) and key != "table_size":
            assert all(type(word) is str for word in value), key


def test_plans(tmp_path: Path) -> None:
    """Read, or refused by file and line."""

    def check(text: str) -> None:
        path = write(tmp_path / "plan.toml", text)
        try:
            check_types(load_plan(path, LISTING["workloads"]))
        except Problem as problem:
            assert problem.status == USAGE
            assert str(problem).startswith(f"plan {path}: "), str(problem)
            assert len(str(problem)) < 1500 and not NOT_PLAIN.search(str(problem))

    LISTING = drive.ask("list")
    tried(plan_texts(), check, 150)


def test_plans_as_far_as_the_cells(tmp_path: Path) -> None:
    """What is read as a plan is one to the driver, too, or refused in its words."""

    def check(text: str) -> None:
        path = write(tmp_path / "plan.toml", text)
        must(("sweep", "--plan", str(path), "--dry-run", "-q"))

    tried(plan_texts(), check, 15)


def test_claims(tmp_path: Path) -> None:
    """config/claims.toml, read, or refused by file and line."""

    def check(text: str) -> None:
        path = write(tmp_path / "claims.toml", text)
        try:
            load_claims(path)
        except Problem as problem:
            assert problem.status == USAGE
            assert str(problem).startswith(f"claims {path}: "), str(problem)

    tried(torn((ROOT / "config" / "claims.toml").read_text()), check, 15)


HOST = read_host()
ROWS: list[Any] = [
    {"schema": 1, "type": "plan", "plan": asdict(Plan())},
    *(run({"two-level": 1e6 + n, "first-word": 2e6 + n}, run=n) for n in range(5)),
    failed(),
]


@st.composite
def folders(draw: st.DrawFn) -> tuple[list[str], str]:
    """The lines of results.jsonl, and host.json."""
    rows = draw(spoilt(ROWS))
    lines = [json.dumps(row) for row in rows]
    tear = draw(st.booleans())
    if lines and tear:
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = draw(torn(lines[at]))
    host = json.dumps(draw(spoilt(HOST)))
    if draw(st.integers(0, 9)) == 0:
        host = draw(torn(host))
    return lines, host


def stored(at: Path, made: tuple[list[str], str]) -> str:
    """As a results folder."""
    at.mkdir(exist_ok=True)
    write(at / "results.jsonl", "".join(line + "\n" for line in made[0]))
    write(at / "host.json", made[1])
    return str(at)


def test_a_strangers_folder(tmp_path: Path) -> None:
    """compare in each format, and report: an answer that is what it says it is, or
    the file is named."""

    def check(drawn: tuple[Any, str, bool]) -> None:
        made, fmt, two = drawn
        names = [stored(tmp_path / "a", made)]
        if two:
            good = [json.dumps(row) for row in ROWS], json.dumps(HOST)
            names.append(stored(tmp_path / "b", good))
        status, out = must(("compare", *names, "--format", fmt), "a")
        if fmt == "json" and status == 0:
            json_of(out)
        page = tmp_path / "page.html"
        page.unlink(missing_ok=True)
        status, _ = must(("report", *names, "--out", str(page)), "a")
        if status == 0:
            text = page.read_bytes().decode()
            assert MARK not in text and text.count("<script") == 1
        assert {p.name for p in tmp_path.iterdir()} <= {"a", "b", "page.html"}

    tried(st.tuples(folders(), st.sampled_from([*FORMATS]), st.booleans()), check, 60)


def test_resume_of_a_strangers_folder(tmp_path: Path) -> None:
    """Its plan is refused as any plan is, before anything is measured."""
    host = HOST | {"versions": HOST["versions"] | {"driver": drive.build_id()}}
    host["kernel"]["preset"] = drive.ask("list")["kernel"]

    def check(rows: list[Any]) -> None:
        made = [json.dumps(row) for row in rows], json.dumps(host)
        name = stored(tmp_path / "a", made)
        must(("sweep", "--resume", name, "--dry-run", "-q"))

    plan = asdict(Plan()) | {"backend": ["model"], "tasks": [1]}
    row = {"schema": 1, "type": "plan", "plan": plan}
    tried(spoilt([row, ROWS[1]]), check, 15)


KEPT_CELL = Cell("dup-close", "model", "none", "compact", "threads", 1)
KEPT = {
    "calibration": asdict(
        Calibration(
            "h", "6.1", "model", "threads", 1, 1.0, 7, 0.1, 0.0, 0.01, ((30, 1),)
        )
    ),
    "claim": {
        "time": 1.0,
        "hostname": os.uname().nodename,
        "release": "6.1",
        "quick": True,
        "verdict": "reproduced",
        "ours": [],
    },
    "counts": {
        "kernel": {"release": "6.12.1", "flavour": "direct"},
        "counts": [asdict(Count("r", "v", 1.0, 2.0, {"f": (1.0, 2.0)}))],
    },
}


def test_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of former runs, in the user's own folder: read, or passed over."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "fdscale" / "counts").mkdir(parents=True)
    paths = [
        calibration.path_of("h", "6.1", "model", "threads", 1),
        reproduce.state_path("case"),
        tmp_path / "fdscale" / "counts" / "one.json",
    ]
    host = {"hostname": "h", "kernel": {"release": "6.1"}}

    def read() -> tuple[str, str, list[Count]]:
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            known = calibration.Calibrations(host)
            threshold = known.threshold(KEPT_CELL, 7)
            said = known.resolves([KEPT_CELL])
        assert threshold is not None or not said
        assert err.getvalue().count("\n") <= 1
        counts = kernel_counts.found("6.12")
        for count in counts:
            count.part("alloc")
        return said, reproduce.last("case"), counts

    def check(kept: list[str]) -> None:
        for path, text in zip(paths, kept):
            write(path, text)
        read()

    whole = [json.dumps({"schema": 1} | one) for one in KEPT.values()]
    check(whole)
    assert "resolves" in read()[0] and "reproduced" in read()[1] and read()[2]
    each = [
        spoilt({"schema": 1} | data).map(json.dumps) | torn(text)
        for data, text in zip(KEPT.values(), whole)
    ]
    tried(st.tuples(*each).map(list), check, 60)


LINES = [b"0", b"7", b"64", b"99999999", b"100000000", b"#", b"# x", b"", b"-1", b"+1"]
LINES += [
    b" 3",
    b"3 ",
    b"1_0",
    b"0x1",
    b"12\r13",
    b"1\x002",
    b"\xff",
    b"007",
    b"9" * 400,
]


def test_hold_files(tmp_path: Path) -> None:
    """The runner sizes a curve's tables by what the driver will hold."""
    path = tmp_path / "held"
    ends = st.sampled_from([b"\n", b"\r\n", b"\n", b"\r"])
    parts = st.lists(st.tuples(st.sampled_from(LINES), ends), max_size=5)

    def check(many: list[list[tuple[bytes, bytes]]]) -> None:
        paths = [tmp_path / f"held-{n}" for n in range(len(many))]
        for path, lines in zip(paths, many):
            path.write_bytes(b"".join(a + b for a, b in lines))
        words = ["run", "dup-close", "--backend", "model", "--hold"]
        answers = drive.check([[*words, f"file:{path}"] for path in paths])
        for path, answer in zip(paths, answers):
            refused = not answer["ok"] and answer["status"] == USAGE
            assert (hold.top_of(path) == 0) == refused, (path.read_bytes(), answer)
            if refused:
                assert str(path) in answer["text"]

    tried(st.lists(parts, min_size=1, max_size=8), check, 20)
    for text, top in ((b"3\n", 4), (b"0\n\r", 1), (b"7\r\n# 9\r\n", 8), (b"9\r1\n", 0)):
        path.write_bytes(text)
        assert hold.top_of(path) == top


FLAGS = """--plan --workload --workload-file --testcase --backend --variant --baseline
--hold --hold-top --place --core-kind --table-node --mode --tasks --table-size --runs
--window-ms --max-time --precision --lock --oversubscribe --quick --profile --seed --out
--resume --json --compat -q -v --format --fail-if-slower --inject --trials --all --row
--source --flavour --cpus --sockets --nodes --threads --memory --show --undo --plan=
--hold= --tas --""".split()
COMMANDS = ["sweep --dry-run", "compare", "report", "reproduce", "calibrate", "topo"]
COMMANDS += ["hold capture", "hold", "list", "kernel build", "kernel count", "kernel"]
COMMANDS += [
    "kernel sweep",
    "kernel patch",
    "doctor",
    "",
    "--help",
    "nonsense",
    "sweep",
]
VALUES = [
    "1",
    "0",
    "-1",
    "auto",
    "1,2",
    "all",
    "none",
    "model",
    "kernel",
    "low:64",
    "1%",
]
VALUES += ["low:" + "9" * 5000, "file:/", "pid:1", "cpus:0-999999999", "1e400", "nan"]
VALUES += ["²", "dup-close", "dup-close@low:64", "config/quick.toml", "/", "/dev/null"]
VALUES += [
    "two-level,all",
    "9" * 5000,
    "text",
    "json",
    "node:0",
    "\udcff",
    "tests/corpus",
]


def stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would measure, build or ask for root is far enough."""

    def enough(*words: Any, **more: Any) -> Any:
        raise Problem(COULD_NOT, "enough")

    monkeypatch.setattr(Sweep, "run", enough)
    monkeypatch.setattr(calibrate.Calibrate, "run", enough)
    monkeypatch.setattr(kernel_build, "build", enough)
    monkeypatch.setattr(reproduce, "count_first", enough)
    monkeypatch.setattr(doctor, "doctor", enough)


def test_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command lines: whatever they say, an answer or one line."""
    stubs(monkeypatch)
    # What the kernel passes on: no NUL, and bytes as Python has them.
    typed = [w for w in WORDS if "\0" not in w and "\ud800" not in w]
    one = st.sampled_from(FLAGS + VALUES + typed)
    rest = st.lists(one, max_size=6)

    def check(drawn: tuple[str, list[str]]) -> None:
        command, words = drawn
        if command or words:  # without any, it is the help
            must((*command.split(), *words))

    tried(st.tuples(st.sampled_from(COMMANDS), rest), check, 120)


def inputs(name: str) -> list[Path]:
    """Of a C fuzzer; a topology's are those of the placement tests, too."""
    found = sorted((ROOT / "tests" / "corpus" / name).iterdir())
    if name == "topology":
        found += sorted((ROOT / "tests" / "placements").glob("*.xml"))
    return found


@pytest.mark.parametrize("name", ["hold", "options", "topology"])
def test_what_c_parses(name: str) -> None:
    """The inputs that `make fuzz` begins with, and those that it found."""
    done = subprocess.run(
        [BUILD / "asan" / "tests" / f"fuzz_{name}", *inputs(name)],
        env=os.environ | {"UBSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{len(inputs(name))} inputs\n"
