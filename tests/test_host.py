# SPDX-License-Identifier: GPL-2.0-only
"""host.json: what is read, what is named, and what makes two hosts differ."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fakeroot import CPU, KERNEL, QUIET, put, quiet
from hypothesis import given
from hypothesis import strategies as st

from bench.host import check_host, differences, load_host, read_host
from bench.problem import Problem
from bench.root import Root, cpu_list, list_text


def test_quiet_machine(tmp_path: Path) -> None:
    host = check_host(read_host(quiet(tmp_path), "stock-6.12"), "fake")
    assert host["hostname"] == "quiet"
    assert host["distribution"] == "Debian GNU/Linux 12 (bookworm)"
    assert host["hypervisor"] == "none"
    cpu = host["cpu"]
    assert cpu["model"] == "Intel(R) Xeon(R) Test CPU"
    assert cpu["microcode"] == "0xd0003a5"
    counts = [cpu[k] for k in ("pus", "cores", "packages", "l3s", "nodes")]
    assert counts == [4, 4, 2, 2, 2]
    assert cpu["tsc"] == {"constant": True, "nonstop": True, "khz": None}
    kernel = host["kernel"]
    assert (kernel["release"], kernel["preset"]) == ("6.12.9-amd64", "stock-6.12")
    assert (kernel["boot_id"], kernel["debug"], kernel["aslr"]) == ("b1", [], 2)
    assert kernel["mitigations"]["meltdown"] == "Not affected"
    assert host["frequency"] == {
        "driver": "intel_pstate",
        "governor": "performance",
        "turbo": False,
        "min_khz": 800000,
        "max_khz": 2400000,
    }
    assert host["memory"] == {
        "total_kib": 65674352,
        "thp": "madvise",
        "nodes": {"0": "0-1", "1": "2-3"},
        "numa_balancing": 0,
    }
    assert host["limits"] == {
        "nofile_soft": 1024,
        "nofile_hard": 524288,
        "nr_open": 1048576,
        "file_max": 9223372036854775807,
        "ports": [32768, 60999],
        "perf_event_paranoid": 1,
        "affinity": "0-3",
        "seccomp": 0,
        "cgroup": 2,
        "cpu_max": "max",
        "cpuset": "0-3",
    }
    assert host["versions"]["gcc"] is None  # no gcc below that prefix


def test_programs_are_asked_their_version(tmp_path: Path) -> None:
    for name, words in {
        "gcc": "12.2.0",
        "hwloc-info": "hwloc-info 2.9.0",
        "gnuplot": "gnuplot 5.4 patchlevel 4",
    }.items():
        put(tmp_path, {f"usr/bin/{name}": f"#!/bin/sh\necho {words}"})
        (tmp_path / "usr/bin" / name).chmod(0o755)
    versions = read_host(tmp_path)["versions"]
    assert versions["gcc"] == "12.2.0"
    assert versions["hwloc"] == "2.9.0"
    assert versions["gnuplot"] == "5.4.4"


def leaves(value: Any) -> list[Any]:
    """What is at the ends of nested dictionaries."""
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    return [value]


def test_nothing_readable_is_null_not_a_crash(tmp_path: Path) -> None:
    host = check_host(read_host(tmp_path), "empty")
    for name in ("cpu", "frequency", "memory", "limits"):
        assert set(leaves(host[name])) == {None}
    assert host["kernel"]["preset"] == "unknown"
    assert host["kernel"]["release"] is None


@pytest.mark.parametrize("text", ["", "\x7fnot what you think: [\n", "a b c d e f"])
def test_garbage_is_null_not_a_crash(tmp_path: Path, text: str) -> None:
    put(tmp_path, {name: text for name in QUIET})
    check_host(read_host(tmp_path), "garbage")


@pytest.mark.parametrize("name", ["proc/cpuinfo", "proc/self/cgroup", f"{CPU}/online"])
def test_one_thing_hidden_leaves_the_rest(tmp_path: Path, name: str) -> None:
    put(quiet(tmp_path), {name: None})
    host = check_host(read_host(tmp_path), "partly hidden")
    assert host["memory"]["total_kib"] == 65674352


def test_this_host_has_the_shape() -> None:
    host = check_host(read_host(), "this host")
    assert host["kernel"]["release"]
    assert host["cpu"]["pus"]


def test_arm_has_no_model_name(tmp_path: Path) -> None:
    text = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    put(quiet(tmp_path), {"proc/cpuinfo": text})
    cpu = read_host(tmp_path)["cpu"]
    assert cpu["model"] == "implementer 0x41 part 0xd0c"
    assert (cpu["microcode"], cpu["tsc"]) == (None, None)


def test_a_host_does_not_differ_from_itself(tmp_path: Path) -> None:
    host = read_host(quiet(tmp_path))
    assert differences(host, json.loads(json.dumps(host))) == []


def test_differences(tmp_path: Path) -> None:
    a = read_host(quiet(tmp_path / "a"), "stock-6.12")
    put(
        quiet(tmp_path / "b"),
        {
            f"{KERNEL}/osrelease": "6.13.1-amd64",
            f"{KERNEL}/random/boot_id": "b2",
            f"{CPU}/intel_pstate/no_turbo": "0",
            f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI",
            f"{CPU}/vulnerabilities/tsa": "Not affected",
        },
    )
    b = read_host(tmp_path / "b", "merged-6.13")
    found = {d.key: d for d in differences(a, b)}
    assert set(found) == {
        "frequency.turbo",
        "kernel.mitigations.meltdown",
        "kernel.mitigations.tsa",
        "kernel.release",
        "kernel.preset",
        "kernel.boot_id",
        "kernel.debug",
    }
    turbo = found["frequency.turbo"]
    assert (turbo.a, turbo.b, turbo.doubtful) == (False, True, True)
    assert "clock" in turbo.why
    assert found["kernel.mitigations.meltdown"].doubtful
    # What is compared is no reason for doubt.
    for key in ("kernel.release", "kernel.preset", "kernel.boot_id"):
        assert (found[key].doubtful, found[key].why) == (False, "")
    # The other side does not say.
    assert not found["kernel.mitigations.tsa"].doubtful
    assert found["kernel.mitigations.tsa"].why.startswith("known of one of them only")
    assert found["kernel.debug"].b is None


def test_doubtful_differences_come_first(tmp_path: Path) -> None:
    a = read_host(quiet(tmp_path))
    b = json.loads(json.dumps(a))
    b["hostname"] = "other"
    b["versions"]["gcc"], a["versions"]["gcc"] = "13.1.0", "12.2.0"
    assert [d.key for d in differences(a, b)] == ["versions.gcc", "hostname"]


def test_checks_in_host_json_are_no_difference(tmp_path: Path) -> None:
    a = read_host(quiet(tmp_path))
    checks = [{"name": "load", "state": "ok", "value": "0", "remedy": None}]
    assert differences(a, {**a, "checks": checks}) == []


def test_load_host(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    host = read_host(quiet(tmp_path / "root"))
    path.write_text(json.dumps(host))
    assert load_host(path) == host


@pytest.mark.parametrize(
    "text, words",
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[]", "the whole"),
        ('{"schema": 1}', "the whole"),
        ('{"schema": 0}', "schema 0 of another fdscale"),
        ('{"schema": [1]}', "schema [1] of another fdscale"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": NaN}', "NaN is no number"),
        ("9" * 5000, "not JSON"),
    ],
)
def test_a_bad_host_json_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "host.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Problem) as caught:
        load_host(path)
    assert caught.value.status == 2
    assert str(path) in str(caught.value) and words in str(caught.value)


def test_a_bad_key_is_named(tmp_path: Path) -> None:
    host = read_host(quiet(tmp_path))
    host["cpu"]["pus"] = "four"
    with pytest.raises(Problem, match=r"A: cpu\.pus: 'four' is not of type"):
        check_host(host, "A")
    host["schema"] = 2
    host["cpu"]["pus"] = 4
    with pytest.raises(Problem, match="A: schema 2 of another fdscale; this one"):
        check_host(host, "A")


@pytest.mark.parametrize("value, named", [(float("inf"), "inf"), (2**64, "64 bits")])
def test_what_no_schema_refuses(tmp_path: Path, value: Any, named: str) -> None:
    host = read_host(quiet(tmp_path)) | {"more": {"deep": [value]}}
    with pytest.raises(Problem, match=rf"A: more\.deep\.0: .*{named}"):
        check_host(host, "A")


def test_words_are_fit_for_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    host = read_host(quiet(tmp_path / "root")) | {"a\nb": ["\x1b[2J", "\ud800", "é"]}
    path.write_text(json.dumps(host))
    assert load_host(path)["a; b"] == ["\\x1b[2J", "\\xd800", "é"]


def test_a_pipe_is_not_waited_at(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "host.json")
    with pytest.raises(Problem, match="host.json: not a regular file"):
        load_host(tmp_path / "host.json")


@given(st.sets(st.integers(0, 300)))
def test_cpu_lists_there_and_back(cpus: set[int]) -> None:
    text = list_text(list(cpus))
    assert cpu_list(text) == sorted(cpus) if cpus else text == "none"


def test_cpu_list_by_hand() -> None:
    assert cpu_list("0-2,8,10-11\n") == [0, 1, 2, 8, 10, 11]
    assert list_text([11, 0, 8, 1, 10, 2]) == "0-2,8,10-11"
    with pytest.raises(ValueError):
        cpu_list("0-x")


def test_a_command_that_fails_says_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"usr/bin/gcc": "#!/bin/sh\necho 1.2.3; exit 1"})
    assert Root(tmp_path).command("gcc", "--version") is None
    (tmp_path / "usr/bin/gcc").chmod(0o755)
    assert Root(tmp_path).command("gcc", "--version") is None
