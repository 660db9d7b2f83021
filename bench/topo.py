# SPDX-License-Identifier: GPL-2.0-only
"""Where each task goes, drawn for a terminal.

Takes what `build/fdscale topology --json` and `place --json` print. A package
is a block, what shares a node and an L3 is a row of it, a core is a cell.
"""

from collections.abc import Iterable
from typing import Any

UNBOUND = -1  # PLACE_NONE and TOPOLOGY_NONE of drivers/harness
IDLE = "."


def ranges(numbers: Iterable[int]) -> str:
    """[0, 1, 2, 3, 8] as "0-3,8", and [0, 4, 8] as "0-8:4"."""
    left = sorted(numbers)
    parts = []
    while left:
        step = left[1] - left[0] if len(left) > 1 else 1
        n = 1
        while n < len(left) and left[n] - left[n - 1] == step:
            n += 1
        if n == 2 and step > 1:
            n = 1
        if n == 1:
            parts.append(str(left[0]))
        else:
            parts.append(f"{left[0]}-{left[n - 1]}" + (f":{step}" if step > 1 else ""))
        left = left[n:]
    return ",".join(parts)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def _sibling(pu: dict[str, Any]) -> int:
    return int(pu["sibling"])


def _label(pu: dict[str, Any], kinds: int) -> str:
    parts = ["no node" if pu["node"] == UNBOUND else f"node {pu['node']}"]
    if pu["l3"] != UNBOUND:
        parts.append(f"L3 {pu['l3']}")
    if kinds > 1:
        parts.append("E" if pu["kind"] else "P")
    return "  " + " ".join(parts)


def _on_pu(tasks: list[int]) -> str:
    """The tasks of a PU: "7", "7,23", and "7,23.." when there are more."""
    if not tasks:
        return IDLE
    return ",".join(map(str, tasks[:2])) + (".." if len(tasks) > 2 else "")


def _per_line(room: int, width: int) -> int:
    """Cells a line: a round number where one fits, so that they can be counted."""
    fit = max(1, room // width)
    return next((n for n in (20, 16, 10, 8) if n <= fit), fit)


def _headline(topology: dict[str, Any], pus: list[int], width: int) -> list[str]:
    counts = ", ".join(
        _count(topology[key], word)
        for key, word in (
            ("packages", "package"),
            ("nodes", "node"),
            ("l3s", "L3"),
            ("cores", "core"),
            ("pus", "PU"),
        )
        if topology[key]
    )
    source = topology.get("cpu_model") or topology["source"]
    lines = [_clip(source, width), counts]
    if UNBOUND in pus:
        lines.append(
            f"{_count(len(pus), 'task')}, not bound: any PU may run any of them"
        )
    elif pus:
        core = {pu["pu"]: pu["core"] for pu in topology["usable"]}
        cores = len({core[pu] for pu in pus})
        lines.append(
            f"{_count(len(pus), 'task')} on {_count(len(set(pus)), 'PU')}"
            f" of {_count(cores, 'core')}"
        )
        lines.append(
            f"a cell is a core: the task on each of its PUs, {IDLE} where none"
        )
    return lines


def render(topology: dict[str, Any], pus: list[int], width: int = 80) -> str:
    """Draw the machine with task i on CPU pus[i]; no line exceeds the width.

    An empty list, or one of unbound tasks, shows the machine alone.
    """
    on: dict[int, list[int]] = {}
    for task, cpu in enumerate(pus):
        on.setdefault(cpu, []).append(task)
    packages: dict[int, dict[str, dict[int, list[dict[str, Any]]]]] = {}
    for pu in topology["usable"]:
        row = _label(pu, topology.get("core_kinds", 1))
        cores = packages.setdefault(pu["package"], {}).setdefault(row, {})
        cores.setdefault(pu["core"], []).append(pu)

    label_width = max(len(label) for by in packages.values() for label in by)
    cpu_width = 2 + max(3, *(len(str(pu["pu"])) for pu in topology["usable"]))
    room = width - label_width - cpu_width

    def cell(core: list[dict[str, Any]]) -> str:
        ordered = sorted(core, key=_sibling)
        text = "+".join(_on_pu(on.get(pu["pu"], [])) for pu in ordered)
        return _clip(text, room - 2)

    every = [
        core for by in packages.values() for c in by.values() for core in c.values()
    ]
    cells = {core[0]["core"]: cell(core) for core in every}
    cell_width = 2 + max(map(len, cells.values()))
    per_line = _per_line(room, cell_width)

    lines = _headline(topology, pus, width)
    for package, by_label in packages.items():
        members = [
            pu["pu"] for c in by_label.values() for core in c.values() for pu in core
        ]
        busy = sum(len(on.get(cpu, [])) for cpu in members)
        name = "no package" if package == UNBOUND else f"package {package}"
        head = f"{name}: CPUs {ranges(members)}"
        if pus and UNBOUND not in pus:
            head = f"{name}: {_count(busy, 'task')}, CPUs {ranges(members)}"
        lines += ["", _clip(head, width)]
        lines.append(" " * label_width + "CPU".rjust(cpu_width))
        for label, by_core in by_label.items():
            in_row = list(by_core.values())
            for start in range(0, len(in_row), per_line):
                line = in_row[start : start + per_line]
                first = min(line[0], key=_sibling)["pu"]
                lines.append(
                    (label if start == 0 else "").ljust(label_width)
                    + str(first).rjust(cpu_width)
                    + "".join(cells[core[0]["core"]].rjust(cell_width) for core in line)
                )
    return "\n".join(lines) + "\n"
