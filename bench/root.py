# SPDX-License-Identifier: GPL-2.0-only
"""Where /proc and /sys are read: below a prefix, so that a test can fake them."""

import os
import subprocess
from pathlib import Path

BIN_DIRS = ("usr/local/bin", "usr/bin", "bin", "usr/sbin", "sbin")


class Root:
    """A file system as the checks see it: whatever cannot be read is None."""

    def __init__(self, prefix: Path = Path("/")) -> None:
        self.prefix = prefix

    def path(self, name: str) -> Path:
        """Where the file called NAME (absolute) really is."""
        return self.prefix / name.lstrip("/")

    def exists(self, name: str) -> bool:
        return os.path.exists(self.path(name))

    def read(self, name: str) -> str | None:
        """The file's text without the white space around it."""
        try:
            return self.path(name).read_bytes().decode(errors="replace").strip()
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        """The first word of the file as a number."""
        try:
            return int((self.read(name) or "").split()[0])
        except (ValueError, IndexError):
            return None

    def glob(self, pattern: str) -> list[str]:
        """Names (absolute, below the prefix) that match, in order."""
        try:
            found = sorted(self.prefix.glob(pattern.lstrip("/")))
        except OSError:
            return []
        return ["/" + str(path.relative_to(self.prefix)) for path in found]

    def command(self, *words: str) -> str | None:
        """What a program found below the prefix prints; None when it fails."""
        for directory in BIN_DIRS:
            program = self.prefix / directory / words[0]
            if os.access(program, os.X_OK):
                break
        else:
            return None
        try:
            done = subprocess.run(
                [str(program), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.decode(errors="replace").strip()


def cpu_list(text: str) -> list[int]:
    """The kernel's list format, "0-3,8": the numbers. ValueError when it is not."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def list_text(cpus: list[int]) -> str:
    """Numbers as the kernel's list format; "none" for none."""
    parts: list[str] = []
    todo = sorted(set(cpus))
    while todo:
        run = 1
        while run < len(todo) and todo[run] == todo[0] + run:
            run += 1
        parts.append(str(todo[0]) if run == 1 else f"{todo[0]}-{todo[run - 1]}")
        todo = todo[run:]
    return ",".join(parts) or "none"


def chosen(text: str | None) -> str | None:
    """The choice in brackets, as in "always [madvise] never"; else all of it."""
    if text is None:
        return None
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text
