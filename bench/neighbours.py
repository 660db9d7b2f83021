# SPDX-License-Identifier: GPL-2.0-only
"""Other runners that measure on this host: their results and ours are marked.

Each has a name in the abstract socket space while it lives: no file is left, and a
dead owner holds nothing.  A container with a network of its own is not seen.
"""

import os
import re
import socket

from bench.root import Root

NAME = "fdscale-measures-"
_own: list[socket.socket] = []


def announce() -> None:
    """Say that this process measures, until it ends; more calls do nothing."""
    if _own:
        return
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    _own.append(name)
    try:
        name.bind(f"\0{NAME}{os.getpid()}")
    except OSError:
        pass  # the same pid in another pid namespace: it is told by that name


def others(root: Root) -> list[int]:
    """The pids of those that measure besides this process."""
    names = root.read("/proc/net/unix") or ""
    pids = {int(n) for n in re.findall(f"@{NAME}([0-9]+)$", names, re.M)}
    return sorted(pids - {os.getpid()})
