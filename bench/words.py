# SPDX-License-Identifier: GPL-2.0-only
"""Numbers in sentences."""

from __future__ import annotations


def count(n: int, what: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
