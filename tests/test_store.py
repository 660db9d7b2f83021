# SPDX-License-Identifier: GPL-2.0-only
"""results.jsonl: what is wrong with a line is said by file, line and key."""

import json
import os
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_folders import failed, folder, run

from bench.compare_rows import make_report, read_folder
from bench.plan import CONFIG, Cell, Plan
from bench.problem import Problem
from bench.report import report
from bench.store import JUDGED, RESULTS, Checker, Store, load, shape
from bench.strict import Validator

SCHEMAS = json.loads((CONFIG / "schema" / "result.json").read_text())


def plan_line() -> dict[str, Any]:
    return {"schema": 1, "type": "plan", "plan": asdict(Plan())}


def refused(folder_: Path) -> str:
    """What load() says; always names the file."""
    with pytest.raises(Problem) as caught:
        load(folder_)
    assert caught.value.status == 2
    text = str(caught.value)
    assert text.startswith(str(folder_ / RESULTS)) and "\n" not in text
    return text


def test_good_lines_load(tmp_path: Path) -> None:
    """A plan, a run, a failed run."""
    rows = [plan_line(), run({"two-level": 1e6}), failed()]
    assert load(Path(folder(tmp_path, "f", rows))) == rows


def test_a_real_sweep_is_right_by_the_schema_itself(
    run_py: Any, tmp_path: Path
) -> None:
    """Each line, by the library alone, without the shortcut of shapes."""
    out = tmp_path / "o"
    words: tuple[str, ...] = (
        "--workload",
        "dup-close,dup2-churn",
        "--tasks",
        "1",
        "--runs",
        "1",
    )
    words = (*words, "--backend", "kernel")
    done = run_py("sweep", *words, "--hold", "none,low:90000000", "--out", str(out))
    assert done.returncode == 3
    records = [json.loads(text) for text in (out / RESULTS).read_text().splitlines()]
    assert {bool(r["error"]) for r in records[1:]} == {True, False}
    for record in records:
        jsonschema.validate(record, SCHEMAS[record["type"]], jsonschema.Draft7Validator)
    assert load(out) == records


@pytest.mark.parametrize(
    "path, value, named",
    [
        (["cell", "tasks"], "2", r"cell\.tasks: '2'"),
        (["cell", "mode"], "fibres", r"cell\.mode: 'fibres'"),
        (["cell", "colour"], "red", r"cell: .*colour"),
        (["windows", 2, "rate"], -1.0, r"windows\.2\.rate: -1"),
        (["windows", 2, "ops", 1], None, r"windows\.2\.ops\.1: None"),
        (["windows", 2, "ops", 1], True, r"windows\.2\.ops\.1: True"),
        (["setup", "fdsize"], None, r"setup\.fdsize: None"),
        (["error"], {}, r"error: 'syscall' is a required"),
        (["type"], "walk", r"type: 'walk' is not plan or run"),
    ],
)
def test_a_wrong_key_is_named(
    tmp_path: Path, path: list[Any], value: Any, named: str
) -> None:
    """In the third line, after good ones of almost the same shape."""
    good = run({"two-level": 1e6})
    bad = json.loads(json.dumps(good))
    at = bad
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    text = refused(Path(folder(tmp_path, "f", [good, good, bad, good])))
    assert re.search(r"line 3: " + named, text)


@pytest.mark.parametrize("key", ["backend", "hold", "place", "mode", "tasks"])
def test_a_plan_of_nothing_is_refused(tmp_path: Path, key: str) -> None:
    """--resume would find no cell in it."""
    plan = plan_line()
    plan["plan"][key] = []
    text = refused(Path(folder(tmp_path, "f", [plan])))
    assert re.search(rf"line 1: plan\.{key}: \[\]", text)


@pytest.mark.parametrize("key", SCHEMAS["run"]["required"][2:])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    """Whichever it is."""
    bad = run({"two-level": 1e6})
    del bad[key]
    text = refused(Path(folder(tmp_path, "f", [run({"two-level": 1e6}), bad])))
    assert f"line 2: '{key}' is a required property" in text


@pytest.mark.parametrize("schema", [0, 2, "1", None, 1.0, True])
def test_another_schema_is_refused_by_name(tmp_path: Path, schema: Any) -> None:
    """Older or newer."""
    row = run({"two-level": 1e6}) | {"schema": schema}
    text = refused(Path(folder(tmp_path, "f", [row])))
    assert f"line 1: schema {schema} of another fdscale; this one reads 1" in text


def test_the_first_lines_there_were_are_read(tmp_path: Path) -> None:
    """What has come since is not required: no size of a table, no events, no clock of
    a window, no end of a hold."""
    rows = [run({"two-level": 1e6, "first-word": 2e6}, run=n) for n in range(5)]
    for row in rows:
        row["cell"] = {k: v for k, v in row["cell"].items() if k != "table_size"}
        row["setup"] = {"fdsize": 128}
    old = {k: v for k, v in plan_line()["plan"].items() if k in ("workload", "variant")}
    first = {"schema": 1, "type": "plan", "plan": old | {"runs": 5}}
    at = Path(folder(tmp_path, "f", [first, *rows]))
    assert load(at) == [first, *rows]
    found = make_report([read_folder(str(at))]).comparisons
    assert [round(c.verdict.ratio.estimate, 6) for c in found] == [2.0]
    assert report([at]) == 0


@pytest.mark.parametrize(
    "old, new, named",
    [
        ('"rate":1000000.0', '"rate":1e400', "rate: a number beyond 2^64"),
        ('"rate":1000000.0', '"rate":-1e400', "rate: a number beyond 2^64"),
        ('"rate":1000000.0', f'"rate":1{"0" * 30}', "rate: a number beyond 2^64"),
        ('"rate":1000000.0', f'"rate":{"9" * 5000}', "digits"),
        ('"rate":1000000.0', '"rate":Infinity', "Infinity is no number in JSON"),
        ('"ops":[5000', '"ops":[1e400', "a number beyond 2^64 in a list"),
        ('"run":0', '"run":0.0', "run: 0.0 is not of type 'integer'"),
        ('"dup-close"', '"dup\\u001b[2J"', "a control character"),
        ('"dup-close"', '"dup\\nclose"', "a control character"),
        ('"dup-close"', '"dup\x7f"', "a control character"),
        ('"dup-close"', '"dup\u0085"', "a control character"),
        ('"dup-close"', f'{"[" * 100_000}', "nested too deep"),
        ('"time":1.0', f'"time":{"[" * 600}{"]" * 600}', "time: "),
    ],
)
def test_what_would_do_harm_later(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    """Numbers that overflow what is made of them, words that act on a terminal."""
    good = json.dumps(run({"two-level": 1e6}), separators=(",", ":"))
    assert old in good
    path = Path(folder(tmp_path, "f", []))
    (path / RESULTS).write_text(good + "\n" + good.replace(old, new) + "\n")
    assert named in refused(path) and "line 2: " in refused(path)


@pytest.mark.parametrize("text", ["a\\\\nb", "é", "\\u00e9", "\\ud83d\\ude00", 'a\\"b'])
def test_what_does_none(tmp_path: Path, text: str) -> None:
    """A backslash, letters and quotes, however they are written."""
    row = json.dumps(run({"two-level": 1e6})).replace("low:64", f"file:{text}")
    path = Path(folder(tmp_path, "f", []))
    (path / RESULTS).write_text(row + "\n")
    assert load(path) == [json.loads(row)]


def test_a_pipe_is_not_waited_at(tmp_path: Path) -> None:
    """Nor is what never ends read."""
    os.mkfifo(tmp_path / RESULTS)
    assert "not a regular file" in refused(tmp_path)
    (tmp_path / RESULTS).unlink()
    (tmp_path / RESULTS).symlink_to("/dev/zero")
    assert "not a regular file" in refused(tmp_path)


@pytest.mark.parametrize("line", ["[]", "{}", "x", '{"schema":1,"time":NaN}', ""])
def test_what_is_no_result(tmp_path: Path, line: str) -> None:
    """Between good lines: a torn line is the last, or it is damage."""
    path = Path(folder(tmp_path, "f", [run({"two-level": 1e6})]))
    with open(path / RESULTS, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    assert "line 2: not a result" in refused(path)


def test_a_torn_last_line(tmp_path: Path) -> None:
    """Passed over when read, set aside when resumed, at whichever byte it tore."""
    rows = [plan_line(), run({"two-level": 1e6})]
    path = Path(folder(tmp_path, "f", rows))
    whole = (path / RESULTS).read_bytes()
    end_of_first = whole.index(b"\n") + 1
    for length in (end_of_first + 1, len(whole) - 10, len(whole) - 1):
        (path / RESULTS).write_bytes(whole[:length])
        assert load(path) == rows[:1]
        Store(path, resume=True).close()
        assert (path / RESULTS).read_bytes() == whole[:end_of_first]
        torn = (path / "results.torn").read_bytes().splitlines()
        assert torn[-1] == whole[end_of_first:length]


def test_the_schema_knows_every_field() -> None:
    """Of a cell and of a plan: those are made from what stands in the file."""
    cell = SCHEMAS["run"]["properties"]["cell"]["properties"]
    plan = SCHEMAS["plan"]["properties"]["plan"]["properties"]
    assert set(cell) == {f.name for f in fields(Cell)}
    assert set(plan) == {f.name for f in fields(Plan)}


def judging(schema: Any, key: str = "") -> list[tuple[str, str, Any]]:
    """(word of the schema, the key it judges, its value), all the way down."""
    found = []
    if isinstance(schema, dict):
        for word, value in schema.items():
            if word == "properties":
                for name, inner in value.items():
                    found += judging(inner, name)
            elif isinstance(value, dict):
                found += judging(value, key)
            elif word not in ("description", "title", "$schema"):
                found.append((word, key, value))
    return found


def test_a_shape_holds_all_that_the_schema_judges() -> None:
    """Else a wrong line of a right line's shape would pass."""
    for word, key, value in [
        j for kind in ("plan", "run") for j in judging(SCHEMAS[kind])
    ]:
        if word in ("const", "enum"):
            assert key in JUDGED
        elif word == "minimum":
            assert value == 0
        elif word == "minItems":  # a shape tells an empty list from others
            assert value == 1
        else:
            assert word in ("type", "required", "additionalProperties")


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(-1, 1), st.text("ab")
)


@given(st.data())
def test_the_shortcut_judges_as_the_schema_does(data: st.DataObject) -> None:
    """A value anywhere in a line is replaced; a checker that saw the good line, and
    the library, agree on the result."""
    record = json.loads(json.dumps(run({"two-level": 1e6, "first-word": 2e6})))
    checker = Checker()
    assert checker.wrong(record) is None
    at = record
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not at[key] or not isinstance(at[key], dict | list):
            break
        if data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(st.one_of(SCALARS, st.lists(SCALARS, max_size=2)))
    right = Validator(SCHEMAS["run"]).is_valid(record)
    assert (checker.wrong(record) is None) == right


def test_shapes_are_few() -> None:
    """Other numbers, other variants, more windows: the same shape."""
    one = run({"two-level": 1e6})
    other = run({"first-word": 3e6, "one-level": 2e6}) | {"run": 7}
    assert shape(one) == shape(other)
    assert shape(one) != shape(run({"two-level": -1e6}))
