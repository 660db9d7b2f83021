# SPDX-License-Identifier: GPL-2.0-only
"""Every check of the doctor both ways, on a made-up /proc and /sys."""

import gzip
import io
import json
from pathlib import Path

import pytest
from conftest import Run
from doctor_cases import BAD, GOOD, Files
from fakeroot import CPU, QUIET, put, quiet

from bench.check import OK, UNKNOWN, WARN, Check, Needs
from bench.doctor import CHECKS, doctor, needs_of, record, run_checks, show, taints
from bench.host import check_host
from bench.plan import Cell
from bench.root import Root


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


@pytest.mark.parametrize("name", ["irqbalance", "audit"])
def test_a_container_does_not_see_what_runs(tmp_path: Path, name: str) -> None:
    put(quiet(tmp_path), {"proc/cmdline": "ro", "proc/2/comm": "bash"})
    assert one(tmp_path, name, Needs()).state == UNKNOWN


def test_a_hidden_cgroup_is_no_free_pass(tmp_path: Path) -> None:
    gone = "30 23 0:26 / /sys/fs/elsewhere rw - cgroup2 cgroup2 rw"
    put(quiet(tmp_path), {"proc/self/mountinfo": gone})
    assert one(tmp_path, "cpu.max", Needs()).state == UNKNOWN


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
    assert check_host(host, "here") == host
    assert len(host["checks"]) == len(CHECKS)


def test_what_taints_is_said_in_a_line(tmp_path: Path) -> None:
    """What is at warn or fatal, by name and value; a quiet machine has nothing."""
    host = record(Root(quiet(tmp_path)), Needs())
    assert taints(host) == ""
    assert taints({}) == ""  # host.json from before
    put(tmp_path, {f"{CPU}/smt/control": "on"})
    host = record(Root(tmp_path), Needs(nofile=2**40))
    assert taints(host).startswith("The doctor warns of smt: on; nofile: soft ")


def test_needs_of_a_plan() -> None:
    """Tables of processes are apart, but their files are all the kernel's."""
    cells = [
        Cell("dup-close", "kernel", "low:100", "compact", "threads", 2),
        Cell("dup-close", "kernel", "low:50", "compact", "processes", 10),
        Cell("dup-close", "model", "low:1000000", "compact", "threads", 16),
    ]
    needs = needs_of(cells, 1024)
    assert needs.tasks == 16
    assert needs.nofile == 100 + 3 * 2 + 64
    assert needs.files == 10 * (50 + 3 + 64)


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
    hidden = run_checks(Root(tmp_path), Needs())
    for checks in (hidden, run_checks(Root(quiet(tmp_path)), Needs())):
        out = Terminal()
        show(checks, out)
        assert ("\x1b[" in out.getvalue()) is not no_colour


def test_a_plan_that_does_not_fit(run_py: Run, tmp_path: Path) -> None:
    """More descriptors than any host allows: fatal for this plan, and its status."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'workload = ["dup-close"]\nbackend = ["kernel"]\nhold = ["low:9000000"]\n'
        'mode = ["threads"]\ntasks = [1]\n'
    )
    done = run_py("doctor", "--plan", str(plan), "--json")
    assert done.returncode == 3
    checks = {c["name"]: c["state"] for c in json.loads(done.stdout)["checks"]}
    assert "fatal" in (checks["nofile"], checks["nr_open"])
