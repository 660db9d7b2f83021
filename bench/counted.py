# SPDX-License-Identifier: GPL-2.0-only
"""Instructions per operation for claims: as `kernel count` kept them, or counted."""

from __future__ import annotations

from collections.abc import Iterable

from bench import kernel_build, kernel_count, kernel_counts
from bench.kernel_build import NEWEST, Kernel
from bench.kernel_count import Count
from bench.problem import COULD_NOT, Problem

NOT_BUILT = "the kernel lab is not built: ./run.py kernel build"
Pair = tuple[str, str]  # row and variant


def kept() -> dict[Pair, Count]:
    """All that is known of the newest kernel."""
    return {(c.row, c.variant): c for c in kernel_counts.found(NEWEST)}


def lab() -> Kernel:
    """The kernel to count in; raises Problem(COULD_NOT) where it is not built."""
    try:
        kernel = kernel_build.built(None, "direct")
    except Problem as problem:
        raise Problem(COULD_NOT, f"{NOT_BUILT} ({problem})") from None
    if not kernel:
        raise Problem(COULD_NOT, NOT_BUILT)
    return kernel


def add(missing: list[Pair]) -> None:
    """Count them, in two boots, and keep them."""
    kernel = lab()
    rows = list(dict.fromkeys(row for row, _ in missing))
    variants = list(dict.fromkeys(variant for _, variant in missing))
    kernel_build.say(f"counting; rows: {len(rows)}, variants: {len(variants)}")
    made, same = kernel_count.count(kernel, variants, rows)
    strays = kernel_count.strays(made, kernel.manifest["tree"])
    if not same or strays:
        why = "two boots differ" if not same else strays[0]
        raise Problem(COULD_NOT, f"counting instructions: {why}")
    kernel_counts.keep(kernel, made)


def counts(wanted: Iterable[Pair]) -> dict[Pair, Count]:
    """(row, variant) -> its count; raises Problem(COULD_NOT) where it can't be had."""
    pairs = list(dict.fromkeys(wanted))
    for _ in range(2):  # the first drops what was kept of another build
        missing = [pair for pair in pairs if pair not in kept()]
        if missing:
            add(missing)
    return kept()
