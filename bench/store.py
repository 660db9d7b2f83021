# SPDX-License-Identifier: GPL-2.0-only
"""The results folder: results are stored as they come and never rewritten."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from bench.problem import COULD_NOT, USAGE, Problem

RESULTS = "results.jsonl"


def write_whole(path: Path, text: str) -> None:
    """A file beside the results, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        with open(fresh, "x", encoding="utf-8") as file:  # follows no link
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


class Store:
    """A results folder: made here, or, to resume, added to."""

    def __init__(self, folder: Path, resume: bool = False) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not resume and any(folder.iterdir()):
                raise Problem(
                    USAGE,
                    f"--out {folder}: not empty; name a new folder, or --resume it",
                )
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
        except OSError as e:
            raise Problem(COULD_NOT, f"{self.folder / RESULTS}: {e.strerror}") from None

    def close(self) -> None:
        """No more is added."""
        try:
            self.file.close()
        except OSError:
            pass  # a full disk: add() has said so


def load(folder: Path) -> list[dict[str, Any]]:
    """The runs of a results folder; a torn last line is set aside.

    Raises Problem(USAGE) naming the file, and the line where one is not ours.
    """
    path = folder / RESULTS
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
        raise Problem(USAGE, f"{path}: {why}") from None
    lines = text.split("\n")
    torn = lines.pop()  # "" when the file ends in a newline
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            record = None
        if not isinstance(record, dict) or record.get("schema") != 1:
            raise Problem(USAGE, f"{path}: line {number}: not a result of schema 1")
        records.append(record)
    del torn
    return records
