# SPDX-License-Identifier: GPL-2.0-only
"""Instructions per operation, from the kernel lab: counted once, then kept.

They are the same in every boot, so what was counted of a kernel by a program is
kept beside that kernel, whose folder is named by its content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench import kernel_build, kernel_count
from bench.kernel_count import Count
from bench.problem import COULD_NOT, Problem
from bench.store import write_whole

COUNTER = Path(__file__).resolve().parent.parent / "drivers" / "kernel"
NOT_BUILT = "the kernel lab is not built: ./run.py kernel build"


def place(folder: Path) -> Path:
    """The file of the counts that today's program made."""
    h = hashlib.sha256()
    for name in ("count.c", "count_loops.h", "plugin.c"):
        h.update((COUNTER / name).read_bytes())
    return folder / f"counts-{h.hexdigest()[:16]}.json"


def kept(path: Path) -> dict[tuple[str, str], Count]:
    """What was counted; nothing where the file is damaged: it is made again."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        made = [Count(**d) for d in data]
    except (OSError, ValueError, TypeError):
        return {}
    return {(c.row, c.variant): c for c in made}


def counts(
    wanted: Iterable[tuple[str, str]],
) -> tuple[dict[tuple[str, str], Count], str]:
    """(row, variant) -> its count, and the kernel's release.

    What is not kept yet is counted, in two boots.  Raises Problem(COULD_NOT) where
    the kernel lab is not built.
    """
    try:
        kernel = kernel_build.built(None, "direct")
    except Problem as problem:
        raise Problem(COULD_NOT, f"{NOT_BUILT} ({problem})") from None
    if not kernel:
        raise Problem(COULD_NOT, NOT_BUILT)
    path = place(kernel.folder)
    known = kept(path)
    missing = [pair for pair in wanted if pair not in known]
    if missing:
        rows = list(dict.fromkeys(row for row, _ in missing))
        variants = list(dict.fromkeys(variant for _, variant in missing))
        kernel_build.say(f"counting {len(rows)} rows, {len(variants)} variants")
        made, same = kernel_count.count(kernel, variants, rows)
        strays = kernel_count.strays(made, kernel.manifest["tree"])
        if not same or strays:
            why = "two boots differ" if not same else strays[0]
            raise Problem(COULD_NOT, f"counting instructions: {why}")
        known |= {(c.row, c.variant): c for c in made}
        write_whole(path, json.dumps([asdict(c) for c in known.values()]) + "\n")
    return known, kernel.manifest["release"]
