# SPDX-License-Identifier: GPL-2.0-only
"""Temporary folders: each is locked while its owner lives, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from pathlib import Path

from bench.problem import COULD_NOT, Problem

PREFIX = "fdscale-run-"


def lock(folder: Path) -> int | None:
    """An open, locked folder; None where another holds it, or it is gone."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.lstat(folder)):
            return fd
    os.close(fd)
    return None


@functools.cache
def drop_stale(where: Path) -> None:
    """Remove our own folders there whose owner was killed; once a process."""
    for folder in where.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            fd = lock(folder) if folder.lstat().st_uid == os.geteuid() else None
            if fd is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(fd)


class Scratch:
    """A fresh folder in $TMPDIR until it is dropped."""

    def __init__(self) -> None:
        """Raises Problem(COULD_NOT)."""
        where = Path(tempfile.gettempdir())
        drop_stale(where)
        fd: int | None = None
        while fd is None:  # another may take it for stale before it is locked
            try:
                self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
            except OSError as e:
                raise Problem(COULD_NOT, f"{where}: {e.strerror}") from None
            fd = lock(self.path)
        self.fd = fd

    def drop(self) -> None:
        """The folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.fd)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *what: object) -> None:
        self.drop()
