# SPDX-License-Identifier: GPL-2.0-only
"""Hosts that lack what most have: each measures, or says in one line why not.

By mount namespaces and filters of the tests' own; as another user than root those
that need them are skipped.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, ROOT
from test_workloads import events

from bench.store import load

DENY = ROOT / "tests" / "deny.py"
SHORT = ("--windows", "3", "--window-ms", "10", "--json")
RUN = (str(BUILD / "fdscale"), "run", "dup-close", *SHORT)
SWEEP = (
    *(str(ROOT / "run.py"), "sweep", "--workload", "dup-close", "--tasks", "1"),
    *("--mode", "threads", "--hold", "none", "--runs", "1"),
)


# In a network namespace of its own: what is done there, and what is missing then.
UP = "ip link set lo up"
NETWORKS = [
    (
        f"{UP}; echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6",
        *("inet6", "bind to ::1: Cannot assign requested address"),
    ),
    ("true", "inet", "connect: Network is unreachable"),
]


def own_mounts() -> bool:
    """Whether a mount namespace can be made here."""
    words = ("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
    try:
        return not subprocess.run(words, capture_output=True, check=False).returncode
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not own_mounts(), reason="no mount namespace here")


def call(*words: str, **how: object) -> "subprocess.CompletedProcess[str]":
    """Run it, with its output."""
    env = os.environ | how.pop("env", {})  # type: ignore[operator]
    return subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def mounted(script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """In a mount namespace of its own, after the script changed it."""
    return call("unshare", "-m", "sh", "-ec", f'{script}\nexec "$@"', "sh", *words)


def measured(done: "subprocess.CompletedProcess[str]") -> dict[str, object]:
    """Three windows with operations; the setup event."""
    assert done.returncode == 0, done.stderr
    windows = events(done, "window")
    assert len(windows) == 3 and all(w["rate"] > 0 for w in windows)
    (setup,) = events(done, "setup")
    return setup


def refused(done: "subprocess.CompletedProcess[str]", *named: str) -> None:
    """Status 3 and one line that has all the words."""
    assert done.returncode == 3, (done.stdout, done.stderr)
    (line,) = done.stderr.splitlines()
    assert all(word in line for word in named), line


def test_one_cpu() -> None:
    """The last one only: two tasks do not fit, one is placed on it."""
    last = str(max(os.sched_getaffinity(0)))
    setup = measured(call("taskset", "-c", last, *RUN))
    assert setup["pus"] == [int(last)]
    done = call("taskset", "-c", last, *RUN, "--tasks", "2")
    assert done.returncode == 2 and "--oversubscribe" in done.stderr
    setup = measured(
        call("taskset", "-c", last, *RUN, "--tasks", "2", "--oversubscribe")
    )
    assert setup["pus"] == [int(last)] * 2


def test_a_low_soft_limit() -> None:
    """The child raises its own; the hard one binds, and is named."""
    measured(call("prlimit", "--nofile=64:4096", *RUN, "--hold", "low:1000"))
    done = call("prlimit", "--nofile=64:64", *RUN, "--hold", "low:1000")
    refused(done, "RLIMIT_NOFILE", "64", "ulimit -Hn", "--backend model")
    model = (*RUN, "--hold", "low:1000", "--backend", "model")
    assert call("prlimit", "--nofile=64:64", *model).returncode == 0


@needs_mounts
def test_nr_open_below_the_hard_limit(tmp_path: Path) -> None:
    """The smaller of the two binds, and is named."""
    fake = tmp_path / "nr_open"
    fake.write_text("4096\n")
    mount = f"mount --bind {fake} /proc/sys/fs/nr_open"
    done = mounted(mount, *RUN, "--hold", "low:5000")
    refused(done, "fs.nr_open is 4096", "sysctl fs.nr_open=")
    measured(mounted(mount, *RUN, "--hold", "low:1000"))


HIDDEN = {
    "no /proc": "mount -t tmpfs none /proc",
    "no /sys": "mount -t tmpfs none /sys",
    "neither": "mount -t tmpfs none /proc; mount -t tmpfs none /sys",
    "no /dev/shm": "mount -t tmpfs -o mode=000,ro none /dev/shm",
    "no /proc/self/fd": "mount -t tmpfs none /proc/sys; mount -t tmpfs none /proc/irq",
}


@needs_mounts
@pytest.mark.parametrize("script", HIDDEN.values(), ids=HIDDEN)
def test_partly_hidden(tmp_path: Path, script: str) -> None:
    """The driver, a sweep and the doctor do without; no traceback."""
    measured(mounted(script, *RUN))
    done = mounted(script, *SWEEP, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert all(not r["error"] for r in load(tmp_path / "out")[1:])
    done = mounted(script, str(ROOT / "run.py"), "doctor", "--json")
    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    states = {c["state"] for c in json.loads(done.stdout)["checks"]}
    assert states <= {"ok", "warn", "fatal", "unknown"}


@needs_mounts
def test_read_only_home(tmp_path: Path) -> None:
    """Nothing of a sweep is kept at home, nor of a figure."""
    home = tmp_path / "home"
    home.mkdir()
    script = f"mount -t tmpfs -o ro none {home}; export HOME={home}"
    done = mounted(script, *SWEEP, "--out", str(tmp_path / "out"))
    assert done.returncode == 0 and str(home) not in done.stderr, done.stderr


def test_a_containers_filter(tmp_path: Path) -> None:
    """Memory is not bound and it is said why; close_range has its stand-in."""
    calls = "mbind,set_mempolicy,get_mempolicy,perf_event_open,close_range,memfd_create"
    setup = measured(call(sys.executable, str(DENY), "EPERM", calls, *RUN))
    assert setup["memory_bound"] is not True
    done = call(
        *(sys.executable, str(DENY), "EPERM", calls, *SWEEP),
        *("--out", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr


def test_a_cell_that_a_filter_refuses(tmp_path: Path) -> None:
    """It is failed, with the reason; the others have their numbers; status 3."""
    words = (*SWEEP[:3], "accept-storm,dup-close", *SWEEP[4:], "--backend", "kernel")
    denied = (sys.executable, str(DENY), "EPERM", "accept4")
    done = call(*denied, *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 3, done.stderr
    assert "accept4: Operation not permitted" in " ".join(done.stdout.split())
    records = load(tmp_path / "out")[1:]
    found = {r["cell"]["workload"]: r for r in records}
    assert found["dup-close"]["windows"] and not found["dup-close"]["error"]
    assert found["accept-storm"]["error"] and not found["accept-storm"]["windows"]


@pytest.mark.parametrize("script, family, named", NETWORKS)
def test_a_network_that_lacks_it(script: str, family: str, named: str) -> None:
    """accept-storm is refused with the call and the reason; over unix it is not."""
    words = ("unshare", "-n", "sh", "-ec", f'{script}\nexec "$@"', "sh")
    probe = call(*words, "true")
    if probe.returncode:
        pytest.skip(probe.stderr.strip())
    run = (*RUN[:2], "accept-storm", *SHORT, "--family")
    refused(call(*words, *run, family), "preparing accept-storm: ", named)
    measured(call(*words, *run, "unix"))


@pytest.mark.skipif(os.getuid() != 0, reason="takes away a right of root's")
def test_no_right_to_fanotify() -> None:
    """The watch that takes it is refused, and names it; the others are not."""
    words = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all", *RUN[:2])
    done = call(*words, "read1", *SHORT, "--watch", "ignored-mask")
    refused(done, "preparing read1: fanotify_init", "CAP_SYS_ADMIN")
    measured(call(*words, "read1", *SHORT, "--watch", "parent"))


@pytest.fixture(name="open_folder")
def fixture_open_folder() -> Iterator[Path]:
    """That another user may write to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0, reason="as another user already")
def test_not_root(open_folder: Path) -> None:
    """Nothing of the main job needs root."""
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if call(*as_nobody, *RUN[:1], "list").returncode:
        pytest.skip("this tree cannot be read by others")
    env = {"HOME": str(open_folder), "TMPDIR": str(open_folder)}
    measured(call(*as_nobody, *RUN, env=env))
    done = call(*as_nobody, *SWEEP, "--out", str(open_folder / "out"), env=env)
    assert done.returncode == 0, done.stderr
    done = call(*as_nobody, str(ROOT / "run.py"), "doctor", "--json", env=env)
    assert json.loads(done.stdout)["checks"]


def test_a_locale_with_a_comma(tmp_path: Path) -> None:
    """1.5 stays 1.5 in all that is read again, and in the figures' data."""
    made = call(
        "localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")
    )
    if not (tmp_path / "de_DE.UTF-8").exists():
        pytest.skip(f"localedef: {made.stderr.strip()}")
    env = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    assert "," in call("printf", "%.1f", "1,5", env=env).stdout
    measured(call(*RUN, "--hold", "random:0.5", env=env))
    done = call(*SWEEP, "--backend", "model", "--out", str(tmp_path / "out"), env=env)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "out")[1]["windows"]
    for data in (tmp_path / "out" / "figures").glob("*.dat"):
        assert not re.search(r"(^|\s)\d+,\d+(\s|$)", data.read_text(encoding="utf-8"))


def test_spaces_in_names(tmp_path: Path) -> None:
    """In every folder and file that a user may name."""
    odd = tmp_path / "a b'c"
    odd.mkdir()
    (odd / "held fds").write_text("0\n1\n2\n7\n")
    hold = f"file:{odd}/held fds"
    measured(call(*RUN[:2], "open-close", *SHORT, "--tmpdir", str(odd), "--hold", hold))
    plan = odd / "my plan.toml"
    plan.write_text(
        f'workload = ["dup-close"]\nhold = ["{hold}"]\nruns = 1\ntasks = [1]\n'
    )
    env = {"TMPDIR": str(odd)}
    out = str(odd / "out put")
    words = ("sweep", "--plan", str(plan), "--out", out)
    done = call(str(ROOT / "run.py"), *words, env=env)
    assert done.returncode == 0, done.stderr
    done = call(str(ROOT / "run.py"), "report", out, env=env)
    assert done.returncode == 0, done.stderr
    assert (odd / "out put" / "report.html").exists()


@needs_mounts
def test_a_full_disk(tmp_path: Path) -> None:
    """Said in one line; with space again, --resume measures what is missing."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = f"""mount -t tmpfs -o size=64k none {disk}
    "$@" --out {disk}/out && exit 9
    mount -o remount,size=64m {disk}
    {ROOT}/run.py sweep -q --resume {disk}/out
    status=$?
    cp -r {disk}/out {kept}
    exit $status
    """
    more = ("--runs", "100", "--window-ms", "1", "--max-time", "5", "-q")
    done = call("unshare", "-m", "sh", "-uc", script, "sh", *SWEEP[:-2], *more)
    assert done.returncode in (0, 3), done.stderr
    assert "results.jsonl: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    runs = [r for r in load(kept) if r["type"] == "run"]
    seen = [json.dumps([r["cell"], r["run"]]) for r in runs if not r["error"]]
    assert len(seen) == len(set(seen)) > 1
    assert (kept / "summary.txt").exists()


def descriptor_calls(limit: str, log: Path, *words: str) -> int:
    """How many calls that take a descriptor a command makes, with its children."""
    calls = "trace=close,close_range,fcntl,dup2,dup3"
    done = call(
        *("prlimit", f"--nofile={limit}", "strace", "-f", "--seccomp-bpf"),
        *("-e", "signal=none", "-e", calls, "-o", str(log), *words),
    )
    if "ptrace" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return len(re.findall(r"^\d+ +\w+\(", log.read_text("utf-8", "replace"), re.M))


def test_start_up_loops_over_no_descriptors(tmp_path: Path) -> None:
    """Neither the driver's nor the runner's, whatever the limit."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= most < 8192:
        pytest.skip(f"the hard limit is {most}")
    most = 1 << 20 if most < 0 else most
    log = tmp_path / "calls"
    model = (*RUN, "--backend", "model")
    few, many = (
        descriptor_calls(limit, log, *model)
        for limit in (f"64:{most}", f"{most}:{most}")
    )
    assert 0 < few and abs(many - few) < 64, (few, many)
    words = (*SWEEP, "--backend", "model", "--window-ms", "5", "--max-time", "1")
    few, many = (
        descriptor_calls(limit, log, *words, "--out", str(tmp_path / limit[:2]))
        for limit in (f"64:{most}", f"{most}:{most}")
    )
    assert 0 < few and abs(many - few) < most / 2, (few, many)


CPU_GROUPS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@pytest.fixture(name="half_a_cpu")
def fixture_half_a_cpu() -> Iterator[Path]:
    """The file by which a process enters a cgroup with a quota of half a CPU."""
    for top in CPU_GROUPS:
        group = top / f"fdscale-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            for name, text in (
                ("cpu.cfs_quota_us", "50000"),
                ("cpu.max", "50000 100000"),
            ):
                if (group / name).exists():
                    (group / name).write_text(text)
                    yield group / "cgroup.procs"
                    return
        finally:
            group.rmdir()
    pytest.skip("no cgroup with a quota can be made here")


def test_a_quota_is_said(half_a_cpu: Path, tmp_path: Path) -> None:
    """By the doctor, and on top of what a sweep measured under it."""
    enter = ("sh", "-ec", f'echo $$ >{half_a_cpu}; exec "$@"', "sh")
    done = call(*enter, str(ROOT / "run.py"), "doctor", "--json")
    (check,) = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "cpu.max"]
    assert check["state"] == "warn" and check["value"] == "0.50 CPUs"
    words = (*SWEEP, "--backend", "model", "--max-time", "1")
    done = call(*enter, *words, "--out", str(tmp_path / "out"))
    assert "cpu.max" in done.stdout and "0.50 CPUs" in done.stdout, done.stderr


def test_no_cpu_0(tmp_path: Path) -> None:
    """Offline, or in a cpuset of the last ones: tasks go where they may."""
    xml = tmp_path / "last.xml"
    whole = {"HWLOC_SYNTHETIC": "pack:2 core:4 pu:2"}
    done = call("lstopo-no-graphics", "--restrict", "0xf0f0", str(xml), env=whole)
    if not xml.exists():
        pytest.skip(f"lstopo: {done.stderr.strip()}")
    env = {"HWLOC_XMLFILE": str(xml), "HWLOC_THISSYSTEM": "0"}
    for place, pus in (
        ("compact", [4, 6, 5, 7, 12, 14, 13, 15]),
        ("smt", [4, 5, 6, 7, 12, 13, 14, 15]),
        ("scatter", [4, 12, 6, 14, 5, 13, 7, 15]),
        ("cores", [4, 6, 12, 14]),
    ):
        words = ("place", "--place", place, "--tasks", str(len(pus)), "--json")
        done = call(RUN[0], *words, env=env)
        assert json.loads(done.stdout)["pus"] == pus, (place, done.stderr)
    done = call(RUN[0], "place", "--place", "cpus:0", "--tasks", "1", env=env)
    assert done.returncode == 2 and "0" in done.stderr
