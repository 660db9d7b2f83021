# SPDX-License-Identifier: GPL-2.0-only
"""The pattern of a live process's descriptors, as --hold file:F reads it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.problem import COULD_NOT, DONE, USAGE, Problem


LONGEST = 1 << 16  # bytes of a line in a pattern's file: comments


def open_in(pid: int) -> list[int]:
    """The descriptors that a process has open now, in order.

    Raises Problem: USAGE where there is no such process, COULD_NOT where it may
    not be looked at or has none.
    """
    folder = f"/proc/{pid}/fd"
    try:
        found = sorted(int(name) for name in os.listdir(folder))
    except (FileNotFoundError, ProcessLookupError):
        raise Problem(USAGE, f"hold capture {pid}: no such process") from None
    except PermissionError:
        raise Problem(
            COULD_NOT, f"hold capture {pid}: another user's process: run this as root"
        ) from None
    except OSError as e:
        raise Problem(COULD_NOT, f"hold capture {pid}: {e.strerror}") from None
    if not found:
        raise Problem(
            COULD_NOT,
            f"hold capture {pid}: it has nothing open (a kernel's thread, or ended)",
        )
    return found


def capture(pid: int, out: Path | None) -> int:
    """./run.py hold capture: one descriptor a line, to a file or to stdout."""
    found = open_in(pid)
    text = f"# process {pid}: {len(found)} descriptors\n"
    text += "".join(f"{fd}\n" for fd in found)
    if not out:
        print(text, end="")
        return DONE
    try:
        out.write_text(text, encoding="ascii")
    except OSError as e:
        raise Problem(COULD_NOT, f"--out {out}: {e.strerror}") from None
    return DONE


def top_now(pid: str) -> int:
    """One above the highest descriptor that a live process has now; 0 where it may
    not be looked at, which is the driver's to say."""
    try:
        return open_in(int(pid))[-1] + 1
    except (ValueError, Problem):
        return 0


def top_of(path: Path) -> int:
    """One above the highest descriptor in a pattern file; 0 where it is none.

    What is wrong with the file is the driver's to say (hold_parse.c reads alike).
    """
    top = 0
    try:
        with open(path, "rb") as file:
            while line := file.readline(LONGEST):
                line = line.removesuffix(b"\n").removesuffix(b"\r")
                if not line or line.startswith(b"#"):
                    continue
                found = re.fullmatch(rb"0*([0-9]{1,8})", line)
                if not found:
                    return 0
                top = max(top, int(found[1]) + 1)
    except (OSError, ValueError):
        return 0
    return top
