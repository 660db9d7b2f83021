# SPDX-License-Identifier: GPL-2.0-only
"""Every workload that the driver lists, with each word of its options.

A new file in drivers/workloads/ is tested here without a change.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import BUILD, ROOT, Run

SHORT = ("--windows", "3", "--window-ms", "10", "--json")
DENY = ROOT / "tests" / "deny.py"
TASKS = min(2, len(os.sched_getaffinity(0)))
LISTED = json.loads(
    subprocess.run(
        [BUILD / "fdscale", "list", "--json"], capture_output=True, check=True
    ).stdout
)["workloads"]

# What a host may lack, or a backend cannot do: refused with the reason.
MAY_REFUSE = {
    ("growth", "model", "--beside thread"),
    ("accept-storm", "kernel", "--family inet6"),
    ("read1", "kernel", "--watch ignored-mask"),
    ("write1", "kernel", "--watch ignored-mask"),
}


class Case(NamedTuple):
    """A workload on a backend in a mode, with one option that is not default."""

    workload: str
    backend: str
    mode: str
    option: str
    refused_in_threads: bool


def cases() -> list[Case]:
    """All there are."""
    found = []
    for w, mode in itertools.product(LISTED, ("threads", "processes")):
        options = [""]
        for o in w["options"]:
            words = o.get("choices", "").split()
            options += [f"--{o['name']} {c}" for c in words if c != o["default"]]
        for option in options:
            refused = w["processes_only"]
            found.append(Case(w["name"], w["backend"], mode, option, refused))
    return found


def events(done: "subprocess.CompletedProcess[str]", kind: str) -> list[dict[str, Any]]:
    """The events of a kind on stdout."""
    lines = (json.loads(line) for line in done.stdout.splitlines())
    return [e for e in lines if e["event"] == kind]


def processes_with(mark: str) -> list[str]:
    """What runs with the mark in its environment."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes():
                found.append(environ.parent.name)
        except OSError:
            continue  # gone, or another user's
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda c: " ".join(c[:4]))
def test_every_workload(fdscale: Run, tmp_path: Path, case: Case) -> None:
    """A short run counts operations, or is refused in one line.

    That no descriptor leaks is in it: the limit leaves no room for one.
    """
    mark = f"fdscale-test-{uuid.uuid4()}"
    words = ["run", case.workload, "--backend", case.backend, "--mode", case.mode]
    words += [*case.option.split(), "--tasks", str(TASKS), "--tmpdir", str(tmp_path)]
    done = fdscale(*words, *SHORT, env={"FDSCALE_TEST": mark})
    assert not list(tmp_path.iterdir())
    assert not processes_with(mark)
    windows = events(done, "window")
    if case.refused_in_threads and case.mode == "threads":
        assert done.returncode == 2 and "--mode processes" in done.stderr
        assert not done.stdout
        return
    if done.returncode == 3:
        assert (case.workload, case.backend, case.option) in MAY_REFUSE, done.stderr
        assert not windows and f"preparing {case.workload}: " in done.stderr
        assert len(done.stderr.splitlines()) == 1
        return
    assert done.returncode == 0, done.stderr
    assert len(windows) == 3 * len(events(done, "setup")[0]["variants"])
    for variant in {w["variant"] for w in windows}:
        assert sum(sum(w["ops"]) for w in windows if w["variant"] == variant) > 0


def test_yuma_has_one_hold(fdscale: Run) -> None:
    """The default is its own, another is refused with the one that works."""
    done = fdscale("run", "yuma", *SHORT)
    assert events(done, "setup")[0]["hold"] == "low:66"
    done = fdscale("run", "yuma", "--hold", "low:64")
    assert done.returncode == 2
    assert "low:66" in done.stderr and "low:64" in done.stderr


def test_yuma_needs_the_lowest(fdscale: Run) -> None:
    """any-fd gives another descriptor than the low one: no number comes of it."""
    words = ("run", "yuma", "--backend", "model", "--variant", "any-fd")
    done = fdscale(*words, *SHORT)
    assert done.returncode == 3 and "not the lowest" in done.stderr
    assert not events(done, "window")


@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_dupfd_start_sizes_the_table(fdscale: Run, backend: str) -> None:
    """A start of 1000 is within the table from the beginning: nothing grows."""
    words = ("run", "dupfd", "--backend", backend, "--start", "1000")
    done = fdscale(*words, *SHORT)
    assert done.returncode == 0, done.stderr
    assert events(done, "setup")[0]["fdsize"] == 2048


@pytest.mark.parametrize("of, turns", [("last", 1), ("all", 32 * 16 - 4 + 1)])
@pytest.mark.parametrize("backend", ["kernel", "model"])
def test_growth_counts_dups(fdscale: Run, backend: str, of: str, turns: int) -> None:
    """Four doublings are made by the descriptor 32 x 2^4, the fourth by it alone."""
    words = ("run", "growth", "--backend", backend, "--doublings", "4", "--of", of)
    done = fdscale(*words, *SHORT)
    assert {tuple(w["ops"]) for w in events(done, "window")} == {(turns,)}


def test_a_range_needs_an_unbroken_hold(fdscale: Run) -> None:
    """close-range closes what it took and no more: 64 held stay held."""
    words = ("run", "close-range", "--hold", "low:64", "--size", "7")
    for backend in ("kernel", "model"):
        done = fdscale(*words, "--backend", backend, *SHORT)
        assert done.returncode == 0, done.stderr


def test_fileserver_tells_readers_from_writers(fdscale: Run) -> None:
    """Every third task writes; what each does stands in the setup event."""
    words = ("run", "fileserver", "--tasks", "6", "--readers", "2", "--files", "20")
    done = fdscale(*words, "--oversubscribe", *SHORT)
    assert done.returncode == 0, done.stderr
    assert events(done, "setup")[0]["roles"] == ["read", "read", "write"] * 2
    table = fdscale(*words, "--oversubscribe", *SHORT[:-1]).stdout
    assert re.search(r"^  read +\d+ on average$", table, re.M)
    assert re.search(r"^  write +\d+ on average$", table, re.M)


def test_accept_storm_leaves_no_connection(fdscale: Run) -> None:
    """Closed by a reset: nothing of 127.1/16 is left in TIME_WAIT."""
    done = fdscale("run", "accept-storm", "--family", "inet", *SHORT)
    assert done.returncode == 0, done.stderr
    sockets = Path("/proc/net/tcp").read_text(encoding="ascii")
    # Addresses are hexadecimal, the last byte first; state 06 is TIME_WAIT.
    assert not re.findall(r": [0-9A-F]{4}017F:.{4} .{13} 06 ", sockets)


def strace_works() -> bool:
    """It is there, and may trace."""
    strace = shutil.which("strace")
    return (
        bool(strace)
        and not subprocess.run(
            [str(strace), "-f", "-o", "/dev/null", "true"],
            capture_output=True,
            check=False,
        ).returncode
    )


needs_strace = pytest.mark.skipif(not strace_works(), reason="no strace here")


def strace(*words: str, **how: Any) -> "subprocess.CompletedProcess[str]":
    """The driver under strace, with strace's own words first."""
    return subprocess.run(
        ["strace", "-f", *words], capture_output=True, text=True, check=False, **how
    )


@needs_strace
@pytest.mark.parametrize(
    "words, call, error, named",
    [
        ("create-close --kind eventfd", "eventfd2", "ENOSYS", "eventfd: Function"),
        ("create-close --kind epoll", "epoll_create1", "EPERM", "epoll_create1: Op"),
        ("create-close --kind memfd", "memfd_create", "ENOSYS", "memfd_create: Fun"),
        ("create-close --kind timerfd", "timerfd_create", "EPERM", "timerfd_create"),
        ("create-close --kind socketpair", "socketpair", "EPERM", "socketpair: Op"),
        ("close-range", "close_range", "ENOSYS", "close_range: Function"),
        ("fork-copy --by unshare", "unshare", "EPERM", "unshare(CLONE_FILES): Op"),
        ("scm-rights", "socket", "EPERM", "socket: Operation not permitted"),
        ("accept-storm --family inet6", "socket", "EAFNOSUPPORT", "socket: Address"),
        ("accept-storm --family inet6", "bind", "EADDRNOTAVAIL", "::1: Cannot"),
        ("read1 --watch file", "inotify_init1", "EMFILE", "inotify_init1: Too many"),
        ("write1 --watch ignored-mask", "fanotify_init", "EPERM", "CAP_SYS_ADMIN"),
        ("openneg", "openat:when=200+", "EPERM", "open: Operation not permitted"),
        (
            "fileserver --readers 0 --files 1",
            "pwrite64:when=2+",
            "ENOSPC",
            "pwrite: No",
        ),
        ("fileserver", "pread64:when=9+", "EIO", "pread: Input/output error"),
        ("fileserver --readers 0 --files 1", "rename:when=2+", "EPERM", "rename: Op"),
    ],
)
def test_what_is_missing_gives_no_number(
    tmp_path: Path, words: str, call: str, error: str, named: str
) -> None:
    """Made to be missing by strace: status 3, the call and the reason, no window."""
    name, _, when = call.partition(":")
    inject = f"inject={name}:error={error}" + (f":{when}" if when else "")
    command = [BUILD / "fdscale", "run", *words.split(), "--tmpdir", tmp_path, *SHORT]
    done = strace("-e", inject, "-o", "/dev/null", *map(str, command))
    assert done.returncode == 3, done.stderr
    assert named in done.stderr and len(done.stderr.splitlines()) == 1
    assert not events(done, "window")
    assert not list(tmp_path.iterdir())


# One operation in system calls, of every workload: "openat:2=2" is openat with 2, that
# is O_RDWR, as argument 2. Tests count them by strace and refuse them by a filter.
CALLS: dict[str, dict[str, float]] = {
    "accept-storm": {"socket": 1, "connect": 1, "accept4": 1, "close": 2},
    "burst --size 5": {"dup": 5, "close": 5},
    "close-range --size 5": {"dup": 5, "close_range": 1},
    "create-close --kind socketpair": {"socketpair": 1, "close": 2},
    "create-close --kind pipe": {"pipe2": 1, "close": 2},
    "create-close --kind eventfd": {"eventfd2": 1, "close": 1},
    "create-close --kind epoll": {"epoll_create1": 1, "close": 1},
    "create-close --kind memfd": {"memfd_create": 1, "close": 1},
    "create-close --kind timerfd": {"timerfd_create": 1, "close": 1},
    "dup-close": {"dup": 1, "close": 1},
    "dup2-churn --turns 2000": {"close": 1, "dup2": 1, "dup": 1},
    "dupfd --start 64": {"fcntl:1=0": 1, "close": 1},
    "fget": {"dup2": 1, "close": 1},
    "fget --churners 0": {"pread64:2=1": 1},
    "fileserver --files 16": {"openat:2=0": 1, "pread64:2=16384": 1, "close": 1},
    "fileserver --files 16 --readers 0": {
        **{"openat:2=1": 0.5, "openat:2=0xc1": 0.5},
        **{"pwrite64": 1, "rename": 0.5, "close": 1},
    },
    "fork-copy --by fork": {"clone:0=0": 1, "wait4:2=0x40000000": 1},
    "fork-copy --by vfork": {"clone:0=0x4100": 1, "wait4:2=0x40000000": 1},
    "fork-copy --by unshare": {
        "clone:0=0x4500": 1,
        "unshare": 1,
        "wait4:2=0x40000000": 1,
    },
    "growth --of all --doublings 5": {"dup": 1},
    "open-close": {"openat:2=2": 1, "close": 1},
    "open-close --file null": {"openat:2=2": 1, "close": 1},
    "openneg": {"openat:2=0": 1},
    "random-churn --keep 10": {"openat:2=2": 1, "close": 1},
    "random-churn --by dup --keep 10": {"dup": 1, "close": 1},
    "read1": {"pread64:2=1": 1},
    "scm-rights": {"sendmsg": 1, "recvmsg": 1, "close": 1},
    "socket-storm": {"socket": 1, "close": 1},
    "socket-storm --sockets 10": {"socket": 1, "close": 1},
    "write1": {"pwrite64": 1},
    "yuma": {"dup": 2, "close": 2},
}
# What the set-up of one takes besides, and a kernel or a filter may lack.
SET_UP: dict[str, list[str]] = {
    "accept-storm": ["bind", "listen", "getsockname"],
    "accept-storm --family inet": ["setsockopt"],
    "fileserver": ["mkdir"],
    "growth --beside thread": ["clone3"],
    "read1 --watch parent": ["inotify_init1", "inotify_add_watch"],
    "scm-rights": ["socket", "bind", "connect"],
    "write1 --watch ignored-mask": ["fanotify_init", "fanotify_mark"],
}


def test_every_workload_has_its_calls_counted() -> None:
    """A new one of the kernel takes a line in CALLS."""
    kernels = {w["name"] for w in LISTED if w["backend"] == "kernel"}
    assert {words.split()[0] for words in CALLS} == kernels


@pytest.mark.parametrize(
    "words, rule",
    # Without close no program starts.
    [(w, rule) for w in CALLS for rule in CALLS[w] if rule != "close"]
    + [(w, rule) for w in SET_UP for rule in SET_UP[w]],
)
def test_a_call_that_a_filter_refuses_gives_no_number(
    tmp_path: Path, words: str, rule: str
) -> None:
    """EPERM by seccomp: status 3 and one line with the reason, no window, no file."""
    command = ["run", *words.split(), "--tmpdir", str(tmp_path), *SHORT]
    done = subprocess.run(
        [sys.executable, DENY, "EPERM", rule, BUILD / "fdscale", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Operation not permitted" in done.stderr
    assert not events(done, "window")
    assert not list(tmp_path.iterdir())


def counts(path: Path) -> dict[str, tuple[int, int]]:
    """The calls of each name in the table of strace -c, and how many failed."""
    rows = re.findall(
        r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d*) +(\w+)$", path.read_text(), re.M
    )
    return {name: (int(calls), int(errors or 0)) for calls, errors, name in rows}


@needs_strace
@pytest.mark.parametrize("words", CALLS)
def test_calls_are_what_is_counted(tmp_path: Path, words: str) -> None:
    """strace counts as many as the windows, and the unrecorded besides.

    Unrecorded are the warm-up (eight rounds of half a window at most), the
    moments after a switch, windows done again, and a few calls of the set-up.
    """
    calls: dict[str, float] = {}
    for rule, each in CALLS[words].items():
        name = rule.partition(":")[0]
        calls[name] = calls.get(name, 0) + each
    out = tmp_path / "calls"
    command = [str(BUILD / "fdscale"), "run", *words.split(), "--json"]
    command += ["--windows", "40", "--window-ms", "10", "--tmpdir", str(tmp_path)]
    setup = 200
    for attempt in range(4):
        done = strace("-c", "-o", str(out), *command)
        assert done.returncode == 0, done.stderr
        windows = events(done, "window")
        ops = sum(w["ops"][0] for w in windows)
        again = sum(w["redone"] for w in windows)
        most = ops * 1.5 * (1 + again / len(windows))
        found = counts(out)
        for name, each in calls.items():
            made, failed = found[name]
            assert made >= ops * each
            assert failed <= setup or words == "openneg"
        # A busy host slows the windows, not the warm-up: not four times in turn.
        if all(found[name][0] <= most * each + setup for name, each in calls.items()):
            break
    else:
        raise AssertionError(f"{found} where the windows have {ops}")
    rates = [found[name][0] / each for name, each in calls.items()]
    assert max(rates) - min(rates) <= setup
