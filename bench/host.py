# SPDX-License-Identifier: GPL-2.0-only
"""host.json: what a machine is, so that any two result folders can be compared."""

import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from bench import facts
from bench.problem import USAGE, Problem
from bench.root import Root, list_text
from bench.strict import check_regular, json_of, tame, text_of, unfit

REPO = Path(__file__).resolve().parent.parent
SCHEMA = REPO / "config" / "schema" / "host.json"


def _safe(read: Callable[[Root], Any], root: Root) -> Any:
    """What READ finds; None too when a file does not have the form it expects."""
    try:
        return read(root)
    except (OSError, ValueError, LookupError):
        return None


def _first_number(text: str | None) -> str | None:
    """The version in what a program says of itself."""
    match = re.search(r"\d+(\.\d+)+", text.splitlines()[0]) if text else None
    return match[0] if match else None


def _fdscale() -> str | None:
    """This tree's version, as git describes it; also for root in a user's tree."""
    git = ["git", "-c", f"safe.directory={REPO}", "-C", str(REPO)]
    try:
        done = subprocess.run(
            [*git, "describe", "--always", "--dirty", "--tags"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _distribution(root: Root) -> str | None:
    text = root.read("/etc/os-release") or root.read("/usr/lib/os-release") or ""
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return match[1] if match else None


def _tsc(root: Root) -> dict[str, Any] | None:
    flags = facts.cpuinfo(root).get("flags")
    if flags is None:
        return None
    return {
        "constant": "constant_tsc" in flags.split(),
        "nonstop": "nonstop_tsc" in flags.split(),
        "khz": root.number(f"{facts.CPU}/cpu0/tsc_freq_khz"),
    }


def _bound(name: str) -> Callable[[Root], int | None]:
    """The slowest ("min") or fastest ("max") clock of any CPU, in kHz."""
    pick = min if name == "min" else max

    def read(root: Root) -> int | None:
        names = root.glob(f"{facts.CPU}/cpufreq/policy*/scaling_{name}_freq")
        return pick(n for path in names if (n := root.number(path)) is not None)

    return read


def _cpuset(root: Root) -> str | None:
    cpus = facts.cpuset(root)
    return None if cpus is None else list_text(cpus)


def _nodes(root: Root) -> dict[str, str] | None:
    found = facts.nodes(root)
    return {str(n): cpus for n, cpus in found.items()} if found else None


def _governors(root: Root) -> str | None:
    found = facts.governors(root)
    return "+".join(found) if found else None


def _joined(read: Callable[[Root], list[str] | None]) -> Callable[[Root], str | None]:
    def text(root: Root) -> str | None:
        found = read(root)
        return None if found is None else ",".join(found)

    return text


def read_host(
    root: Path = Path("/"), preset: str = "unknown", driver: str | None = None
) -> dict[str, Any]:
    """The machine below ROOT, in the shape of config/schema/host.json.

    PRESET is the running kernel's, as the driver names it (drivers/harness/kernel.c);
    DRIVER tells the driver's build from others.
    """
    at = Root(root)

    def get(read: Callable[[Root], Any]) -> Any:
        return _safe(read, at)

    release = at.read("/proc/sys/kernel/osrelease")
    limits = get(facts.nofile) or (None, None)
    group = get(lambda r: facts.cgroup(r, "cpu"))
    return {
        "schema": 1,
        "hostname": at.read("/proc/sys/kernel/hostname"),
        "machine": at.read("/proc/sys/kernel/arch") or os.uname().machine,
        "distribution": _distribution(at),
        "hypervisor": get(facts.hypervisor),
        "cpu": {
            "model": get(facts.cpu_model),
            "microcode": get(_joined(facts.microcodes)),
            "online": at.read(f"{facts.CPU}/online"),
            **(get(facts.topology) or dict.fromkeys(("pus", *facts.TOPOLOGY, "nodes"))),
            "smt": get(facts.smt),
            "tsc": get(_tsc),
        },
        "kernel": {
            "release": release,
            "version": at.read("/proc/sys/kernel/version"),
            "preset": preset,
            "command_line": at.read("/proc/cmdline"),
            "boot_id": at.read("/proc/sys/kernel/random/boot_id"),
            "debug": get(facts.debug_options),
            "lsm": get(_joined(facts.lsms)),
            "mitigations": get(facts.mitigations),
            "isolated": at.read(f"{facts.CPU}/isolated"),
            "nohz_full": facts.nohz_full(at),
            "clocksource": at.read(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource"
            ),
            "aslr": at.number("/proc/sys/kernel/randomize_va_space"),
        },
        "frequency": {
            "driver": get(_joined(facts.drivers)),
            "governor": get(_governors),
            "turbo": get(facts.turbo),
            "min_khz": get(_bound("min")),
            "max_khz": get(_bound("max")),
        },
        "memory": {
            "total_kib": get(facts.memory_kib),
            "thp": get(facts.thp),
            "nodes": get(_nodes),
            "numa_balancing": at.number("/proc/sys/kernel/numa_balancing"),
        },
        "limits": {
            "nofile_soft": limits[0],
            "nofile_hard": limits[1],
            "nr_open": at.number("/proc/sys/fs/nr_open"),
            "file_max": at.number("/proc/sys/fs/file-max"),
            "ports": get(facts.ports),
            "perf_event_paranoid": at.number("/proc/sys/kernel/perf_event_paranoid"),
            "affinity": get(facts.affinity_text),
            "seccomp": get(facts.seccomp),
            "cgroup": group.version if group else None,
            "cpu_max": get(facts.quota),
            "cpuset": get(_cpuset),
        },
        "versions": {
            "fdscale": _fdscale(),
            "driver": driver,
            "python": platform.python_version(),
            "gcc": _first_number(at.command("gcc", "-dumpfullversion")),
            "hwloc": _first_number(at.command("hwloc-info", "--version")),
            "gnuplot": _first_number(
                (at.command("gnuplot", "--version") or "").replace(" patchlevel ", ".")
            ),
        },
    }


def measured_host(preset: str = "unknown", driver: str | None = None) -> dict[str, Any]:
    """The machine that the driver runs on: this one, or the guest of `kernel sweep`
    ($FDSCALE_HOST, made by bench/kernel_session.py)."""
    given = os.environ.get("FDSCALE_HOST")
    if not given:
        return read_host(preset=preset, driver=driver)
    host = load_host(Path(given))
    host["versions"]["driver"] = driver
    return host


def machine(host: Mapping[str, Any], pus: int) -> str:
    """What stands over tables and figures: the CPU, and PUS of them."""
    accel = host["guest"]["accel"] if "guest" in host else ""
    if accel == "tcg":  # short: it stands over every figure
        return f"emulated guest (its times are not speed), {pus} PUs"
    if accel:
        return (
            f"{host['cpu']['model'] or 'unknown CPU'}, {pus} PUs of a guest ({accel})"
        )
    return f"{host['cpu']['model'] or 'unknown CPU'}, {pus} PUs"


def caution(host: Mapping[str, Any]) -> str:
    """What the times of a guest are worth; "" outside one."""
    guest = host.get("guest")
    if not guest:
        return ""
    pus, real = host["cpu"]["pus"] or 0, guest["host"]["cpu"]["pus"] or 0
    if guest["accel"] == "tcg":
        return (
            f"Measured in an emulated guest (TCG) of {pus} PUs on a host of {real}: "
            "its times, rates and verdicts say nothing about speed. Placement, the "
            "table and what each call does are real."
        )
    shared = f", which shares {real} PUs: its times are not {pus} PUs'" * (pus > real)
    return f"Measured in a guest ({guest['accel']}) of {pus} PUs{shared}."


def check_host(host: Any, name: str) -> dict[str, Any]:
    """HOST, tame, when it has the shape of host.json; NAME is whose it is."""
    if isinstance(host, dict) and host.get("schema", 1) != 1:
        raise Problem(
            USAGE,
            f"{name}: schema {host['schema']!s:.20} of another fdscale; this one reads "
            "1: use the one that wrote it",
        )
    schema = json_of(SCHEMA.read_text())
    host = tame(host)
    wrong = unfit(host, [])
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(host)
    )
    if error is not None:
        wrong = [(list(error.absolute_path), error.message)]
    for keys, why in wrong:
        key = ".".join(map(str, keys))[:200] or "the whole"
        raise Problem(USAGE, f"{name}: {key}: {why[:200]}")
    assert isinstance(host, dict)
    return host


def load_host(path: Path) -> dict[str, Any]:
    """host.json of a results folder, checked."""
    check_regular(path)
    try:
        host = json_of(text_of(path, str(path)))
        return check_host(host, str(path))
    except ValueError as error:
        raise Problem(USAGE, f"{path}: not JSON: {error}") from error
    except RecursionError:
        raise Problem(USAGE, f"{path}: nested too deep") from None


@dataclass(frozen=True)
class Difference:
    """One key in which two hosts differ."""

    key: str  # as in "cpu.model"
    a: Any
    b: Any
    doubtful: bool  # it may explain a difference in the results by itself
    why: str  # what it does to them; "" when it does nothing


# What may explain a difference of results by itself, and how. A prefix counts for
# everything below it.
DOUBTS = {
    "machine": "another instruction set",
    "guest.accel": "an emulated guest's times say nothing about speed",
    "hypervisor": "a hypervisor takes part in one of them only, or another one",
    "cpu.model": "another processor",
    "cpu.microcode": "microcode sets what entering the kernel costs",
    "cpu.pus": "another number of PUs: placements differ",
    "cpu.cores": "another number of cores: placements differ",
    "cpu.packages": "another number of packages: placements differ",
    "cpu.l3s": "last-level caches are shared otherwise",
    "cpu.nodes": "another number of NUMA nodes",
    "cpu.smt": "cores are shared by siblings in one of them only",
    "kernel.debug": "debug options change the path that is measured",
    "kernel.lsm": "security modules are called at every open",
    "kernel.mitigations": "mitigations set what a syscall costs",
    "kernel.nohz_full": "context tracking makes every syscall cost more",
    "kernel.clocksource": "reading the clock costs otherwise",
    "kernel.aslr": "layouts vary from run to run in one of them only",
    "frequency": "the clock rate is ruled otherwise",
    "memory.thp": "large tables lie in pages of another size",
    "memory.numa_balancing": "pages may move during a window",
    "limits.affinity": "other PUs may be used: placements differ",
    "limits.seccomp": "a filter runs on every syscall",
    "limits.cpu_max": "a quota stops tasks during a window",
    "versions.fdscale": "another driver: code and measuring may differ",
    "versions.driver": "another build of the driver: code lies elsewhere",
    "versions.gcc": "another compiler: forms equal in work may differ by 5%",
}
IGNORED = {"schema", "checks", "fixed"}


def _flat(host: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by points."""
    flat: dict[str, Any] = {}
    for key, value in host.items():
        if not prefix and key in IGNORED:
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _doubt(key: str) -> str:
    parts = key.split(".")
    for n in range(len(parts), 0, -1):
        why = DOUBTS.get(".".join(parts[:n]))
        if why:
            return why
    return ""


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[Difference]:
    """In what two hosts differ: doubtful ones first, else in host.json's order.

    What only one of them knows is listed, but doubted of neither.
    """
    left, right = _flat(a), _flat(b)
    found = []
    for key in [*left, *(key for key in right if key not in left)]:
        x, y = left.get(key), right.get(key)
        if x == y:
            continue
        why = _doubt(key)
        known = x is not None and y is not None
        if why and not known:
            why = "known of one of them only: " + why
        found.append(Difference(key, x, y, bool(why) and known, why))
    return sorted(found, key=lambda difference: not difference.doubtful)
