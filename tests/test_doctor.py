# SPDX-License-Identifier: GPL-2.0-only
"""Every check of the doctor both ways, on a made-up /proc and /sys."""

import gzip
import io
import json
from pathlib import Path

import pytest
from fakeroot import CLOCK, CPU, HEAT, KERNEL, LIMITS, QUIET, STATUS, put, quiet

from bench.check import FATAL, OK, UNKNOWN, WARN, Check, Needs
from bench.doctor import CHECKS, doctor, record, run_checks, show
from bench.host import check_host
from bench.root import Root

Files = dict[str, str | None]

ALLOWED0 = STATUS.replace("0-3", "0")
MOUNT_CPU1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"
MOUNT_SET1 = "34 31 0:31 /docker/7 /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset"
GROUP = "sys/fs/cgroup/user.slice/bench"

# What makes each check speak up: files that differ from the quiet machine, what the
# plan needs, the state, and a part of the value and of the remedy.
BAD: list[tuple[str, Files, Needs, str, str, str]] = [
    (
        "governor",
        {f"{CPU}/cpufreq/policy1/scaling_governor": "powersave"},
        Needs(),
        WARN,
        "powersave (1)",
        "cpupower frequency-set -g performance",
    ),
    (
        "scaling driver",
        {f"{CPU}/cpufreq/policy{n}/scaling_driver": "pcc-cpufreq" for n in (0, 1)},
        Needs(),
        WARN,
        "pcc-cpufreq",
        "acpi-cpufreq",
    ),
    (
        "scaling driver",
        {f"{CPU}/cpufreq/policy1/scaling_driver": "acpi-cpufreq"},
        Needs(),
        WARN,
        "acpi-cpufreq, intel_pstate",
        "acpi-cpufreq",
    ),
    (
        "turbo",
        {f"{CPU}/intel_pstate/no_turbo": "0"},
        Needs(),
        WARN,
        "on",
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    (
        "turbo",
        {f"{CPU}/intel_pstate/no_turbo": None, f"{CPU}/cpufreq/boost": "1"},
        Needs(),
        WARN,
        "on",
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
    ),
    ("smt", {f"{CPU}/smt/control": "on"}, Needs(), WARN, "on", "--place cores"),
    (
        "throttling",
        {f"{CPU}/cpu1/{HEAT}/core_throttle_count": "7"},
        Needs(),
        WARN,
        "7 times",
        "thermal_throttle",
    ),
    (
        "affinity",
        {"proc/self/status": ALLOWED0},
        Needs(tasks=1),
        WARN,
        "0 of 0-3",
        "taskset -c 0-3",
    ),
    (
        "affinity",
        {"proc/self/status": ALLOWED0},
        Needs(tasks=2),
        FATAL,
        "0 of 0-3",
        "taskset -c 0-3",
    ),
    ("affinity", {}, Needs(tasks=5), FATAL, "0-3 of 0-3", "--tasks 4"),
    (
        "cpuset",
        {f"{GROUP}/cpuset.cpus.effective": "2-3"},
        Needs(tasks=2),
        WARN,
        "2-3 of 0-3",
        "--cpuset-cpus 0-3",
    ),
    (
        "cpuset",
        {
            "proc/self/cgroup": "3:cpuset:/docker/7\n0::/",
            "proc/self/mountinfo": MOUNT_SET1,
            "sys/fs/cgroup/cpuset/cpuset.cpus": "1",
        },
        Needs(tasks=2),
        FATAL,
        "1 of 0-3",
        "--cpuset-cpus 0-3",
    ),
    (
        "cpu.max",
        {f"{GROUP}/cpu.max": "350000 100000"},
        Needs(tasks=3),
        WARN,
        "3.50 CPUs",
        "--cpu-quota -1",
    ),
    (
        "cpu.max",  # the limit is an ancestor's
        {"sys/fs/cgroup/user.slice/cpu.max": "150000 100000"},
        Needs(tasks=2),
        FATAL,
        "1.50 CPUs",
        "--cpu-quota -1",
    ),
    (
        "cpu.max",
        {
            "proc/self/cgroup": "1:cpu,cpuacct:/job\n0::/",
            "proc/self/mountinfo": MOUNT_CPU1,
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        },
        Needs(),
        WARN,
        "0.50 CPUs",
        "--cpu-quota -1",
    ),
    (
        "isolcpus",
        {f"{CPU}/isolated": "1-3", "proc/self/status": ALLOWED0},
        Needs(),
        WARN,
        "1-3",
        "taskset -c 1-3",
    ),
    ("nohz_full", {f"{CPU}/nohz_full": "2-3"}, Needs(), WARN, "2-3", "nohz_full="),
    (
        "rcu_nocbs",
        {"proc/cmdline": "ro rcu_nocbs=1-3 quiet"},
        Needs(),
        WARN,
        "1-3",
        "rcu_nocbs=",
    ),
    ("rcu_nocbs", {"proc/cmdline": "rcu_nocbs"}, Needs(), WARN, "all", "rcu_nocbs="),
    (
        "mitigations",
        {f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI"},
        Needs(),
        WARN,
        "meltdown: Mitigation: PTI",
        "mitigations=off",
    ),
    (
        "mitigations",
        {f"{CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers; SMT disabled"},
        Needs(),
        WARN,
        "mds: Mitigation: Clear CPU buffers",
        "mitigations=off",
    ),
    (
        "aslr",
        {f"{KERNEL}/randomize_va_space": "0"},
        Needs(),
        WARN,
        "0",
        "sysctl kernel.randomize_va_space=2",
    ),
    (
        "aslr",
        {"proc/self/personality": "00040000"},
        Needs(),
        WARN,
        "off for this process",
        "without setarch -R",
    ),
    (
        "numa_balancing",
        {f"{KERNEL}/numa_balancing": "1"},
        Needs(),
        WARN,
        "1, 2 nodes",
        "sysctl kernel.numa_balancing=0",
    ),
    (
        "thp",
        {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"},
        Needs(),
        WARN,
        "always",
        "echo madvise | sudo tee",
    ),
    (
        "debug kernel",
        {"boot/config-6.12.9-amd64": "CONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y"},
        Needs(),
        WARN,
        "PROVE_LOCKING, KASAN",
        "CONFIG_KASAN",
    ),
    (
        "debug kernel",
        {"boot/config-6.12.9-amd64": None, "proc/lockdep": "all lock classes:"},
        Needs(),
        WARN,
        "PROVE_LOCKING",
        "CONFIG_PROVE_LOCKING",
    ),
    (
        "clocksource",
        {f"{CLOCK}/current_clocksource": "hpet"},
        Needs(),
        WARN,
        "hpet",
        "echo tsc | sudo tee",
    ),
    (
        "clocksource",
        {
            f"{CLOCK}/current_clocksource": "hpet",
            f"{CLOCK}/available_clocksource": "hpet acpi_pm",
        },
        Needs(),
        WARN,
        "hpet",
        "dmesg",
    ),
    (
        "microcode",
        {"proc/cpuinfo": "microcode\t: 0x2\n\nmicrocode\t: 0x3\n"},
        Needs(),
        WARN,
        "0x2, 0x3",
        "apt install",
    ),
    (
        "microcode",
        {f"{CPU}/vulnerabilities/old_microcode": "Vulnerable"},
        Needs(),
        WARN,
        "0xd0003a5 (old)",
        "apt install",
    ),
    (
        "irqbalance",
        {"proc/977/comm": "irqbalance"},
        Needs(),
        WARN,
        "running",
        "systemctl stop irqbalance",
    ),
    (
        "load",
        {"proc/loadavg": "0.51 0.2 0.1 2/400 9"},
        Needs(),
        WARN,
        "0.51 on 4 PUs",
        "top -b",
    ),
    (
        "steal",  # 30 ticks of 1540 asked for
        {"proc/stat": "cpu  1000 0 500 90000 20 0 10 30 0 0\n"},
        Needs(),
        WARN,
        "1.9% since boot",
        "calibrate",
    ),
    (
        "hypervisor",
        {
            "proc/cpuinfo": "model name : X\nflags : fpu hypervisor\n",
            "sys/class/dmi/id/sys_vendor": "QEMU",
        },
        Needs(),
        WARN,
        "QEMU",
        "calibrate",
    ),
    (
        "audit",
        {"proc/cmdline": "ro", "proc/555/comm": "auditd"},
        Needs(),
        WARN,
        "on",
        "auditctl -e 0",
    ),
    (
        "seccomp",
        {"proc/self/status": STATUS.replace("Seccomp:\t0", "Seccomp:\t2")},
        Needs(),
        WARN,
        "filter",
        "seccomp=unconfined",
    ),
    (
        "lsm",
        {"sys/kernel/security/lsm": "lockdown,capability,yama,selinux,bpf"},
        Needs(),
        WARN,
        "selinux",
        "selinux=0",
    ),
    (
        "lsm",
        {"proc/self/attr/current": "docker-default (enforce)"},
        Needs(),
        WARN,
        "apparmor",
        "apparmor=0",
    ),
    (
        "tmpdir",
        {"proc/self/mounts": "/dev/sda1 / ext4 rw 0 0\n"},
        Needs(),
        WARN,
        "/tmp (ext4)",
        "--tmpdir /dev/shm",
    ),
    (
        "tmpdir",
        {},
        Needs(tmpdir=Path("/nowhere")),
        FATAL,
        "/nowhere: no such directory",
        "--tmpdir /dev/shm",
    ),
    (
        "nofile",
        {},
        Needs(nofile=524289),
        FATAL,
        "soft 1024, hard 524288",
        "sudo prlimit --pid $$ --nofile=524289:524289",
    ),
    (
        "nofile",  # root in a container, without the capability
        {"proc/self/status": STATUS.replace("1000", "0")},
        Needs(nofile=524289),
        FATAL,
        "hard 524288",
        "--backend model",
    ),
    ("nr_open", {}, Needs(nofile=1048577), FATAL, "1048576", "fs.nr_open=1048640"),
    (
        "file-max",
        {"proc/sys/fs/file-max": "10000"},
        Needs(files=9000),
        FATAL,
        "10000 (1344 in use)",
        "sysctl fs.file-max=19344",
    ),
    ("ports", {}, Needs(ports=28233), FATAL, "32768-60999", "1024 65535"),
    (
        "perf_event_paranoid",
        {f"{KERNEL}/perf_event_paranoid": "2"},
        Needs(),
        WARN,
        "2",
        "sysctl kernel.perf_event_paranoid=1",
    ),
]

# Cases near the ones above that must stay silent.
GOOD: list[tuple[str, Files, Needs]] = [
    ("affinity", {}, Needs(tasks=4)),
    ("cpuset", {"proc/self/cgroup": "0::/"}, Needs(tasks=4)),
    ("cpu.max", {"proc/self/cgroup": "0::/"}, Needs(tasks=4)),
    ("isolcpus", {f"{CPU}/isolated": "1-3"}, Needs()),
    ("nohz_full", {f"{CPU}/nohz_full": "(null)"}, Needs()),
    ("nohz_full", {f"{CPU}/nohz_full": None}, Needs()),
    ("smt", {f"{CPU}/smt/control": "notsupported"}, Needs()),
    (
        "numa_balancing",
        {
            f"{KERNEL}/numa_balancing": "1",
            "sys/devices/system/node/node1/cpulist": None,
        },
        Needs(),
    ),
    ("clocksource", {f"{CLOCK}/current_clocksource": "kvm-clock"}, Needs()),
    ("load", {"proc/loadavg": "0.50 0.2 0.1 2/400 9"}, Needs()),
    ("steal", {"proc/stat": "cpu  1000 0 500 90000 20 0 10 15 0 0\n"}, Needs()),
    (
        "audit",
        {
            "proc/cmdline": "ro",
            "proc/555/comm": "auditd",
            "etc/audit/audit.rules": "-D\n-a never,task",
        },
        Needs(),
    ),
    ("audit", {"proc/cmdline": "ro", "proc/self/loginuid": None}, Needs()),
    ("tmpdir", {}, Needs(tmpdir=Path("/tmp"))),
    ("nofile", {}, Needs(nofile=524288)),
    (
        "nofile",
        {"proc/self/limits": LIMITS.replace("524288   ", "unlimited")},
        Needs(nofile=10**7),
    ),
    ("nr_open", {}, Needs(nofile=1048576)),
    ("file-max", {"proc/sys/fs/file-max": "10344"}, Needs(files=9000)),
    ("ports", {}, Needs(ports=28232)),
    (
        "perf_event_paranoid",
        {
            f"{KERNEL}/perf_event_paranoid": "3",
            "proc/self/status": STATUS.replace("0000000000000000", "0000004000000000"),
        },
        Needs(),
    ),
]


def one(prefix: Path, name: str, needs: Needs) -> Check:
    return next(c for c in CHECKS if c.name == name).run(Root(prefix), needs)


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_quiet_machine_is_ok(tmp_path: Path, name: str) -> None:
    check = one(quiet(tmp_path), name, Needs())
    assert (check.state, check.remedy) == (OK, None)
    assert check.value


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_nothing_readable_is_unknown(tmp_path: Path, name: str) -> None:
    check = one(tmp_path, name, Needs(tasks=9, nofile=9, files=9, ports=9))
    assert check == Check(name, UNKNOWN, None, None)


@pytest.mark.parametrize("name, files, needs, state, value, remedy", BAD)
def test_spoilt(
    tmp_path: Path,
    name: str,
    files: Files,
    needs: Needs,
    state: str,
    value: str,
    remedy: str,
) -> None:
    put(quiet(tmp_path), files)
    check = one(tmp_path, name, needs)
    assert check.state == state
    assert value in (check.value or "")
    assert remedy in (check.remedy or "")


@pytest.mark.parametrize("name, files, needs", GOOD)
def test_near_miss_is_ok(tmp_path: Path, name: str, files: Files, needs: Needs) -> None:
    put(quiet(tmp_path), files)
    check = one(tmp_path, name, needs)
    assert (check.state, check.remedy) == (OK, None)


def test_each_check_is_tried_both_ways() -> None:
    assert {check.name for check in CHECKS} == {case[0] for case in BAD}


def test_garbage_everywhere_is_no_crash(tmp_path: Path) -> None:
    put(tmp_path, {name: "\x7fnot what you think: [\n" for name in QUIET})
    checks = run_checks(Root(tmp_path), Needs(tasks=1, nofile=1, files=1, ports=1))
    assert len(checks) == len(CHECKS)


def test_compressed_config(tmp_path: Path) -> None:
    put(quiet(tmp_path), {"boot/config-6.12.9-amd64": None})
    data = gzip.compress(b"CONFIG_KCSAN=y\n")
    (tmp_path / "proc/config.gz").write_bytes(data)
    assert one(tmp_path, "debug kernel", Needs()).value == "KCSAN"
    (tmp_path / "proc/config.gz").write_bytes(data[:-12])
    assert one(tmp_path, "debug kernel", Needs()).state == UNKNOWN


@pytest.mark.parametrize("enabled, state", [("0", OK), ("1", WARN), ("2", WARN)])
def test_auditctl_is_believed(tmp_path: Path, enabled: str, state: str) -> None:
    put(quiet(tmp_path), {"proc/cmdline": "ro"})
    put(tmp_path, {"usr/sbin/auditctl": f"#!/bin/sh\necho enabled {enabled}"})
    (tmp_path / "usr/sbin/auditctl").chmod(0o755)
    assert one(tmp_path, "audit", Needs()).state == state


def test_status_says_fatal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = Root(quiet(tmp_path))
    assert doctor(root=root) == 0
    assert doctor(root=root, needs=Needs(tasks=4)) == 0
    assert doctor(root=root, needs=Needs(tasks=5)) == 3
    assert "fatal" in capsys.readouterr().out


def test_warnings_are_not_fatal(tmp_path: Path) -> None:
    put(quiet(tmp_path), {f"{CPU}/intel_pstate/no_turbo": "0"})
    assert doctor(root=Root(tmp_path)) == 0


def test_json_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(quiet(tmp_path), {"proc/loadavg": None})
    assert doctor(as_lines=True, root=Root(tmp_path)) == 0
    line = json.loads(capsys.readouterr().out)
    assert list(line) == ["checks"]
    assert [c["name"] for c in line["checks"]] == [c.name for c in CHECKS]
    for check in line["checks"]:
        assert list(check) == ["name", "state", "value", "remedy"]
    unknown = [c for c in line["checks"] if c["state"] == "unknown"]
    assert [c["name"] for c in unknown] == ["load"]


def test_record_has_the_shape_of_host_json(tmp_path: Path) -> None:
    host = record(Root(quiet(tmp_path)), Needs())
    assert check_host(host, "here") is host
    assert len(host["checks"]) == len(CHECKS)


def test_80_columns_and_no_colour_off_a_terminal(tmp_path: Path) -> None:
    quiet(tmp_path)
    for _, files, *_ in BAD:
        put(tmp_path, files)
    put(tmp_path, {"sys/kernel/security/lsm": ",".join(["selinux"] * 40)})
    out = io.StringIO()
    show(run_checks(Root(tmp_path), Needs(nofile=2**40)), out)
    lines = out.getvalue().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert not any(line != line.rstrip() for line in lines)
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("no_colour", [False, True])
def test_colour_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_colour: bool
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    show(run_checks(Root(quiet(tmp_path)), Needs()), out)
    assert ("\x1b[" in out.getvalue()) is not no_colour
