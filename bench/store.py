# SPDX-License-Identifier: GPL-2.0-only
"""The results folder: results are stored as they come and never rewritten."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import re
from pathlib import Path
from typing import Any

from bench.plan import CONFIG
from bench.problem import COULD_NOT, USAGE, Problem
from bench.strict import Validator, check_regular, json_of, text_of

RESULTS = "results.jsonl"
SCHEMA = 1  # of a line
MOST = 1 << 30  # bytes of results that are read at once
HUGE = float(1 << 64)  # no number here: a count, a time, a rate
# A control character as JSON has it, after an even number of backslashes; or bare.
CONTROL = re.compile(
    r"(?<!\\)(?:\\\\)*\\(?:[bfnrt]|u00(?:[01].|7[fF]|[89].))|[\x7f-\x9f]"
)


def write_whole(path: Path, text: str) -> None:
    """A file beside the results, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)  # and "x" follows no link
        with open(fresh, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(fresh, path)
    except OSError as e:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise Problem(COULD_NOT, f"{path}: {e.strerror}") from None


def set_torn_aside(path: Path) -> None:
    """A last line without its end moves to results.torn: the next one needs a start."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with open(path.with_suffix(".torn"), "ab") as torn:
            torn.write(data[whole:] + b"\n")
        with open(path, "r+b") as results:
            results.truncate(whole)


def new_folder(out: Path, instead: str = "") -> None:
    """Make it; one that has something in it is refused, before anything is measured."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise Problem(USAGE, f"--out {out}: not empty; name a new folder{instead}")
    except OSError as e:
        raise Problem(USAGE, f"--out {out}: {e.strerror}") from None


class Store:
    """A results folder: made here, or, to resume, added to."""

    def __init__(self, folder: Path, resume: bool = False) -> None:
        self.folder = folder
        if not resume:
            new_folder(folder, ", or --resume it")
        try:
            self.file = open(folder / RESULTS, "a", encoding="utf-8")
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if resume:
                set_torn_aside(folder / RESULTS)
        except BlockingIOError:
            raise Problem(
                COULD_NOT, f"{folder}: another sweep is writing to it; wait for its end"
            ) from None
        except OSError as e:
            raise Problem(USAGE, f"--out {folder}: {e.strerror}") from None

    def add(self, record: dict[str, Any]) -> None:
        """One line, on disk before the next run starts."""
        try:
            self.file.write(json.dumps(record, separators=(",", ":")) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())
            names = os.fstat(self.file.fileno()).st_nlink
        except OSError as e:
            raise Problem(COULD_NOT, f"{self.folder / RESULTS}: {e.strerror}") from None
        if not names:
            raise Problem(
                COULD_NOT,
                f"{self.folder / RESULTS}: removed meanwhile, and what was in it; "
                "sweep again",
            )

    def close(self) -> None:
        """No more is added."""
        try:
            self.file.close()
        except OSError:
            pass  # a full disk: add() has said so


JUDGED = frozenset({"schema", "type", "backend", "mode"})  # keys of enum and const


def shape(value: Any) -> Any:
    """All that result.json can tell of a value: keys, types, the words it judges by
    name, whether a number is negative.  Lines of one shape are right or wrong alike.

    Raises ValueError where a number is beyond all that a run can give: 1e400 is inf.
    """
    if isinstance(value, dict):
        parts: list[Any] = []
        for k, v in value.items():
            kind = type(v)
            if kind is int or kind is float:
                if not -HUGE < v < HUGE:
                    raise ValueError(f"{k}: a number beyond 2^64")
                parts.append((k, kind, v if k in JUDGED else v < 0))
            elif kind is str:
                parts.append((k, v if k in JUDGED else kind))
            else:
                parts.append((k, shape(v)))
        return frozenset(parts)
    if isinstance(value, list):
        kinds = set(map(type, value))
        if kinds <= {int, float}:
            if value and not -HUGE < min(value) <= max(value) < HUGE:
                raise ValueError("a number beyond 2^64 in a list")
            return (list, *sorted(map(str, kinds)), bool(value) and min(value) < 0)
        return (list, frozenset(map(shape, value)))
    return (type(value), isinstance(value, int | float) and value < 0)


class Checker:
    """result.json against many lines: each shape is checked once."""

    def __init__(self) -> None:
        schemas = json.loads((CONFIG / "schema" / "result.json").read_text())
        self.validators = {
            kind: Validator(schemas[kind]) for kind in ("plan", "run", "profile")
        }
        # What calibrate measured with a cost added: no result of a sweep.
        self.validators["injected"] = self.validators["run"]
        self.right: set[Any] = set()

    def wrong(self, record: Any) -> str | None:
        """What is wrong with a line, the key first; None when nothing is."""
        if not isinstance(record, dict) or "schema" not in record:
            return "not a result"
        if record["schema"] != SCHEMA or type(record["schema"]) is not int:
            return (
                f"schema {record['schema']!s:.20} of another fdscale; this one reads "
                f"{SCHEMA}: use the one that wrote it"
            )
        validator = self.validators.get(str(record.get("type")))
        if not validator:
            known = " or ".join(self.validators)
            return f"type: {record.get('type')!r} is not {known}"
        form = shape(record)
        if form in self.right:
            return None
        for error in validator.iter_errors(record):
            key = ".".join(str(k) for k in error.absolute_path)
            return f"{key}: {error.message}" if key else error.message
        self.right.add(form)
        return None


def load(folder: Path) -> list[dict[str, Any]]:
    """The plan and the runs of a results folder; a torn last line is passed over.

    Raises Problem(USAGE) naming the file, and the line and key that are wrong.
    """
    path = folder / RESULTS
    check_regular(path)
    text = text_of(path, str(path), MOST)
    checker = Checker()
    records = []
    # What follows the last newline is "", or torn.
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            record = json_of(line)
            wrong = checker.wrong(record)
            odd = not line.isascii() or "\\" in line or "\x7f" in line
            if odd and not wrong and CONTROL.search(line):
                wrong = "a control character, which is part of no name"
        except ValueError as e:
            wrong = f"not a result: {e}"
        except RecursionError:
            wrong = "not a result: nested too deep"
        if wrong:
            raise Problem(USAGE, f"{path}: line {number}: {wrong[:200]}")
        records.append(record)
    gc.freeze()  # there are no cycles in JSON: not to be walked again and again
    return records
