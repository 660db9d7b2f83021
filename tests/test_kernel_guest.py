# SPDX-License-Identifier: GPL-2.0-only
"""The guest: its report, its archive, its shape; and, where a kernel was built
(./run.py kernel build), what it counts and where it puts tasks."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import kernel_build, kernel_count, kernel_guest
from bench.host import caution, check_host, differences
from bench.kernel_build import Kernel
from bench.kernel_guest import QEMU, Machine, boot, counting, fastest, kvm_trouble
from bench.kernel_guest import parse_report
from bench.kernel_host import LOOK, guest_host
from bench.kernel_initramfs import compiled, initramfs
from bench.kernel_session import STDIN_CHUNK, Session, driver_jobs
from bench.problem import COULD_NOT, USAGE, Problem

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / os.environ.get("BUILD", "build") / "fdscale"
REPORT = b"fdscale-boot 0.42 4 6.1.0\n"


def frame(number: int, status: int, out: bytes, err: bytes = b"") -> bytes:
    """A job's frame as the guest writes it."""
    head = f"fdscale-job {number} {status} {len(out)} {len(err)}\n"
    return head.encode() + out + err + b"\n"


def test_a_report_is_read_by_its_lengths() -> None:
    tricky = b"fdscale-end 2\nfdscale-job 1 0 0 0\n\0\xff"
    data = REPORT + frame(0, 0, tricky, b"e") + frame(1, 7, b"") + b"fdscale-end 2\n"
    guest = parse_report(data, 2)
    assert guest
    assert (guest.boot_seconds, guest.cpus, guest.release) == (0.42, 4, "6.1.0")
    assert [(j.status, j.stdout, j.stderr) for j in guest.jobs] == [
        (0, tricky, b"e"),
        (7, b"", b""),
    ]


def test_a_report_that_is_cut_short_is_not_one() -> None:
    data = REPORT + frame(0, 0, b"abc") + b"fdscale-end 1\n"
    assert parse_report(data, 1)
    for length in range(len(data) - 1):
        assert parse_report(data[:length], 1) is None, length


@pytest.mark.parametrize(
    "machine, named",
    [
        (Machine(0), "--cpus"),
        (Machine(6, threads=4), "--cpus 6"),
        (Machine(8, sockets=2, nodes=3), "--nodes 3"),
        (Machine(4, sockets=2, nodes=4, threads=2), "--cpus 4"),
        (Machine(256), "--cpus 256"),
    ],
)
def test_a_shape_that_does_not_divide_is_refused(machine: Machine, named: str) -> None:
    with pytest.raises(Problem, match=re.escape(named)) as e:
        machine.check()
    assert e.value.status == USAGE


def test_nodes_cover_all_cpus_and_the_memory() -> None:
    words = " ".join(Machine(64, 2, 4, 2, 4096).arguments())
    assert "64,sockets=2,cores=16,threads=2" in words
    assert re.findall(r"cpus=(\d+-\d+)", words) == ["0-15", "16-31", "32-47", "48-63"]
    assert re.findall(r"size=(\d+)M", words) == ["1024"] * 4


def test_the_archive_is_one_that_cpio_reads(tmp_path: Path) -> None:
    if not Path("/bin/busybox").is_file():
        pytest.skip("busybox-static is not installed")
    data = initramfs(["true", "echo two"], {"/bin/dynamic": Path("/usr/bin/env")})
    done = subprocess.run(
        ["/bin/busybox", "cpio", "-idm"], cwd=tmp_path, input=data, capture_output=True
    )
    assert (tmp_path / "jobs").read_text() == "true\necho two\n", done.stderr
    assert os.access(tmp_path / "init", os.X_OK)
    assert os.readlink(tmp_path / "bin/sh") == "busybox"
    # A dynamic program has its loader and libraries with it.
    shell = f"cd / && exec {tmp_path}/lib64/ld-linux-x86-64.so.2 --list /usr/bin/env"
    assert list(tmp_path.glob("lib*/**/libc.so.6")), shell


def test_the_drivers_files_are_the_guests() -> None:
    words = ["run", "open-close", "--tmpdir", "/tmp/x y", "--hold", "low:64"]
    expected = "/bin/fdscale run open-close --tmpdir /tmp --hold low:64"
    assert driver_jobs(words, "") == [expected]


def test_what_the_driver_reads_comes_through_the_guests_shell(tmp_path: Path) -> None:
    text = "".join(f'["$(no)", "it\'s %s {n}"]\n' for n in range(5000))
    assert len(text) > 2 * STDIN_CHUNK
    stdin = tmp_path / "stdin"
    *writing, driver = driver_jobs(["run", "--dry-run"], text)
    assert driver == "/bin/fdscale run --dry-run </tmp/stdin"
    for job in writing:
        assert "\n" not in job and len(job) < 131072
        subprocess.run(["sh", "-c", job.replace("/tmp/stdin", str(stdin))], check=True)
    assert stdin.read_text() == text


# A QEMU that only knows what to say: the words of a boot without jobs' output.
FAKE = """#!/bin/sh
case "$*" in *"-accel kvm"*) ;; *) exit 9;; esac
for word; do case $word in file:*/report) report=${word#file:};; esac; done
%s
"""
WORKS = "printf 'fdscale-boot 0.4 1 6.12.1\\nfdscale-job 0 0 0 0\\n\\nfdscale-end 1\\n'"


@pytest.mark.parametrize(
    "deed, trouble",
    [
        (f"{WORKS} >$report", ""),
        ("echo 'kvm: no such thing' >&2; exit 1", "no such thing"),
        ("exec sleep 60", "no answer"),
    ],
)
def test_kvm_is_used_where_a_guest_boots_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, trouble: str
) -> None:
    if not Path("/bin/busybox").is_file():
        pytest.skip("busybox-static is not installed")
    (tmp_path / QEMU).write_text(FAKE % deed)
    (tmp_path / QEMU).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    device = tmp_path / "kvm"
    monkeypatch.setattr(kernel_guest, "KVM", device)
    monkeypatch.setattr(kernel_guest, "PROBE_SECONDS", 10 if not trouble else 0.5)
    image = tmp_path / "bzImage"
    assert "no answer" not in kvm_trouble(image) and str(device) in kvm_trouble(image)
    assert "tcg,thread=multi" in fastest(image)
    kvm_trouble.cache_clear()
    device.touch()
    assert (trouble in kvm_trouble(image)) and bool(kvm_trouble(image)) == bool(trouble)
    assert ("kvm" in fastest(image)) == (not trouble)
    kvm_trouble.cache_clear()


# A QEMU whose guest answers each job with what it was, "late" after a second.
GUEST = """#!/usr/bin/python3
import re, socket, sys, time
path = re.search(r"id=report,path=([^,]+)", " ".join(sys.argv))[1]
with socket.socket(socket.AF_UNIX) as s:
    s.bind(path)
    s.listen()
    wire = s.accept()[0].makefile("rw")
    print("fdscale-boot 0.1 1 6.12.1", file=wire, flush=True)
    for number, job in enumerate(wire):
        time.sleep(1 if "late" in job else 0)
        print(f"fdscale-job {number} 0 {len(job)} 0", file=wire)
        print(job, file=wire, flush=True)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with GUEST."""
    if not Path("/bin/busybox").is_file():
        pytest.skip("busybox-static is not installed")
    (tmp_path / QEMU).write_text(GUEST)
    (tmp_path / QEMU).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Session(tmp_path, {}, Machine(), ["-accel", "tcg"]) as session:
        yield session


def test_an_answer_that_comes_too_late_is_nobody_elses(fake: Session) -> None:
    assert fake.run("one").text() == "one\n"
    with pytest.raises(Problem, match="no answer from the guest"):
        fake.run("late", 0.1)
    with pytest.raises(Problem, match="no answer from the guest"):
        fake.run("next")


def test_the_session_outlives_a_driver_that_was_stopped(fake: Session) -> None:
    proxy = fake.environment()["FDSCALE_DRIVER"]
    env = {**os.environ, **fake.environment()}
    with subprocess.Popen([proxy, "late"], env=env) as stopped:
        while not fake.lock.locked():
            time.sleep(0.01)
        stopped.kill()
    done = subprocess.run([proxy, "on"], env=env, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"/bin/fdscale on\n")


def test_the_guests_facts_are_the_guests_and_its_host_is_in_them(
    tmp_path: Path,
) -> None:
    shell = ["sh", "-c", LOOK]
    said = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    lines = [x for x in said.splitlines() if "boot_id" not in x and "model n" not in x]
    lines += ["/proc/cpuinfo:model name\t: of a guest"]
    lines += ["/proc/sys/kernel/random/boot_id:0-1-2"]
    config = tmp_path / "config"
    config.write_text("CONFIG_KASAN=y\n")
    found = check_host(guest_host("\n".join(lines), "tcg", config, "patch-1"), "it")
    own = found["guest"]["host"]
    assert found["kernel"]["boot_id"] == "0-1-2" != own["kernel"]["boot_id"]
    assert found["kernel"]["preset"] == "patch-1"
    assert found["kernel"]["debug"] == ["KASAN"]
    assert found["cpu"]["pus"] == own["cpu"]["pus"]
    assert found["hypervisor"] == "QEMU (tcg)"
    assert "say nothing about speed" in caution(found)
    assert caution(own) == ""
    assert any(d.key == "hypervisor" and d.doubtful for d in differences(found, own))
    found["guest"]["accel"] = "kvm"
    assert "kvm" in caution(found) and "shares" not in caution(found)
    found["cpu"]["pus"] = own["cpu"]["pus"] + 1
    assert f"shares {own['cpu']['pus']} PUs" in caution(found)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel_build.NEEDS, "no-such-program", "no-such-package")
    with pytest.raises(Problem, match="apt-get install no-such-package") as e:
        kernel_build.need(kernel_build.NEEDS)
    assert e.value.status == COULD_NOT


def kernel(flavour: str, source: str = "6.12") -> Kernel:
    """A kernel from the cache; a skip where no guests are wanted."""
    if not os.environ.get("FDSCALE_GUEST_TESTS"):
        pytest.skip("boots guests, which takes minutes: make test-kernel")
    found = kernel_build.built(source, flavour)
    if not found:
        pytest.fail(f"not built: ./run.py kernel build --flavour {flavour}")
    return found


HOLDS = ["dup-close@none", "dup-close@low:64"]


@pytest.fixture(scope="module")
def counted() -> tuple[list[kernel_count.Count], bool, str]:
    """Two holds of every preset and every search, counted; the tree's name."""
    found = kernel("direct")
    tree = found.manifest["tree"]
    clone = [f"{tree}#clone"]
    variants = [*kernel_count.VARIANTS, *kernel_count.searches_alone(tree), *clone]
    return *kernel_count.count(found, variants, HOLDS), tree


def test_two_boots_count_the_same(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    assert counted[1]


def test_every_setting_reaches_its_own_code(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    counts, _, tree = counted
    assert kernel_count.strays(counts, tree) == []
    for one in counts:
        calls = [
            calls
            for name, (calls, _) in one.functions.items()
            if re.fullmatch(kernel_count.PARTS["alloc"], name)
        ]
        assert calls == [1.0], (one.variant, one.functions)


def test_the_parts_are_what_differs(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    rest = {
        (c.row, c.kernel - sum(c.part(p) for p in kernel_count.PARTS))
        for c in counted[0]
    }
    assert len(rest) == len(HOLDS), rest


def test_v3_falls_back_with_word_0_full_and_the_merged_form_does_not(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    by = {(c.row, c.variant): c.kernel for c in counted[0]}
    few, full = HOLDS
    assert by[full, "series-v3"] > by[few, "series-v3"]
    assert by[full, "series-v3"] > by[full, "patch-1-2"]
    assert by[full, "merged-6.13"] == by[few, "merged-6.13"] < by[full, "patch-1-2"]


def test_direct_costs_what_the_unmodified_kernel_does(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    plain, same = kernel_count.count(kernel("plain"), ["-"], HOLDS)
    assert same
    stock = {c.row: c.kernel for c in counted[0] if c.variant == counted[2]}
    assert {c.row: c.kernel for c in plain} == stock


def test_pointer_costs_the_same_more_for_all(
    counted: tuple[list[kernel_count.Count], bool, str]
) -> None:
    direct = {(c.row, c.variant): c.kernel for c in counted[0]}
    found, same = kernel_count.count(
        kernel("pointer"), list(dict.fromkeys(c.variant for c in counted[0])), HOLDS
    )
    assert same
    more = {c.kernel - direct[c.row, c.variant] for c in found}
    assert len(more) == 1, more
    assert 0 <= more.pop() <= 4


def test_the_switch_refuses_what_it_does_not_know_and_is_roots() -> None:
    knob = "/sys/module/fdscale/parameters/variant"
    jobs = [
        f"cat {knob}",
        f"echo series-v3+sanity-read > {knob}; cat {knob}",
        f"echo series-v9 > {knob}",
        f"echo two-level+ > {knob}",
        f"echo patch-1#clone > {knob}",
        f"cat {knob}",
        f"ls -l {knob} | cut -c1-10",
    ]
    guest = boot(kernel("direct").image, jobs, {}, Machine(), counting(), 900)
    texts = [j.text().strip() for j in guest.jobs]
    assert texts[:2] == ["stock-6.12", "series-v3+sanity-read"]
    assert all(j.status for j in guest.jobs[2:5])
    assert texts[5:] == ["series-v3+sanity-read", "-rw-------"]
    assert guest.boot_seconds < 10


def test_a_failing_count_is_a_problem() -> None:
    with pytest.raises(Problem, match="no-such"):
        kernel_count.count(kernel("direct"), ["no-such"], HOLDS)


@pytest.fixture(scope="module")
def big() -> Iterator[Session]:
    """A guest of 32 PUs in two packages, two threads a core, with the driver."""
    found = kernel("pointer")
    machine = Machine(32, sockets=2, nodes=2, threads=2)
    files = {"/bin/fdscale": DRIVER}
    with Session(found.image, files, machine, fastest(found.image)) as session:
        yield session


# The guest numbers siblings side by side: package 16 x p, core 2 x c, thread t.
FIRST, SECOND = list(range(0, 32, 2)), list(range(1, 32, 2))
PLACES = {
    "compact": FIRST[:8] + SECOND[:8] + FIRST[8:] + SECOND[8:],
    "cores": FIRST,
    "smt": list(range(32)),
    "scatter": [
        p for half in (FIRST, SECOND) for two in zip(half[:8], half[8:]) for p in two
    ],
    "node:1": FIRST[8:] + SECOND[8:],
    "package:0": FIRST[:8] + SECOND[:8],
    "cpus:31,0,17,4": [31, 0, 17, 4],
}


# What Linux says of each task while it runs: allowed PUs, and where it is. The
# shell's own words only: starting programs is slow in an emulator.
LOOK_ONCE = (
    "for t in /proc/[0-9]*/task/[0-9]*; do read -r c <$t/comm || continue; "
    "a=; case $c in fdscale*) while read -r k v; do case $k in "
    "Cpus_allowed_list:) a=$v;; esac; done <$t/status; "
    "read -r s <$t/stat || continue; set -- $s; echo $1 ${a:--} ${39} $3;; "
    "esac; done"
)


def looks_at(big: Session, run: str, enough: str) -> list[list[str]]:
    """What LOOK_ONCE says again and again of a run that lasts until @enough is true,
    a test on the file /tmp/look, or for a hundred looks."""
    job = big.run(
        f"{run} --windows 1000000 >/tmp/run 2>/tmp/errors & p=$!; : >/tmp/look; n=0; "
        f"while [ $n -lt 100 ] && [ -e /proc/$p/exe ]; do {LOOK_ONCE}; n=$((n+1)); "
        f"{enough} && break; done 2>/dev/null >>/tmp/look; kill -INT $p; wait $p; "
        "s=$?; cat /tmp/errors >&2; cat /tmp/look; exit $s"
    )
    assert job.status == 130, job.stderr
    looks = [x.split() for x in job.text().splitlines()]
    return [w for w in looks if len(w) == 4]


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("place", PLACES)
def test_every_policy_puts_every_task_where_it_should_be(
    big: Session, place: str, mode: str
) -> None:
    assert big.guest.cpus == 32
    expected = PLACES[place]
    run = (
        f"/bin/fdscale run dup-close --tasks {len(expected)} --place {place} "
        f"--mode {mode} --window-ms 10"
    )
    # The driver looks too, with getcpu, and fails where a task is elsewhere.
    job = big.run(f"{run} --windows 1 --json")
    assert job.status == 0, job.stderr
    setup = json.loads(job.text().splitlines()[0])
    assert setup["pus"] == expected
    assert setup["nodes"] == [p // 16 for p in expected]
    at_home = "awk '$2 == $3 { home[$2] } END { exit length(home) < %d }' /tmp/look"
    looks = looks_at(big, run, at_home % len(expected))
    bound = [w for w in looks if w[1].isdigit()]
    assert {int(allowed) for _, allowed, _, _ in bound} == set(expected)
    # A task may be seen on its way; once on its PU it is nowhere else.
    there: dict[str, str] = {}
    for task, allowed, at, _ in bound:
        if allowed == at:
            there[task] = at
        assert allowed == at or task not in there, (task, allowed, at)
    assert sorted(int(at) for at in there.values()) == sorted(expected)


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_unbound_tasks_may_go_anywhere(big: Session, mode: str) -> None:
    run = f"/bin/fdscale run dup-close --tasks 8 --place none --mode {mode}"
    job = big.run(f"{run} --windows 1 --window-ms 10 --json")
    assert job.status == 0, job.stderr
    assert json.loads(job.text().splitlines()[0])["place"] == "none"
    eight = "awk '{ seen[$1] } END { exit length(seen) < 8 }' /tmp/look"
    looks = looks_at(big, run, eight)
    assert len({task for task, *_ in looks}) >= 8
    assert {allowed for _, allowed, *_ in looks} == {"0-31"}


def test_too_many_tasks_are_refused_in_the_guest_as_anywhere(big: Session) -> None:
    proxy = big.environment()["FDSCALE_DRIVER"]
    words = [proxy, "run", "dup-close", "--tasks", "17", "--place", "cores"]
    env = {**os.environ, **big.environment()}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == USAGE
    assert done.stderr.startswith("fdscale: ")


def test_what_does_not_fit_is_refused_before_the_sweep(big: Session) -> None:
    """The runner has the driver judge its cells: over standard input."""
    proxy = big.environment()["FDSCALE_DRIVER"]
    words = [
        ["run", "dup-close", "--tasks", n, "--place", "cores"] for n in ("8", "17")
    ]
    done = subprocess.run(
        [proxy, "run", "--dry-run"],
        env={**os.environ, **big.environment()},
        input="".join(json.dumps(w[1:]) + "\n" for w in words),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(x)["ok"] for x in done.stdout.splitlines()]
    assert answers == [True, False]


def test_a_sweep_flips_the_switch_and_says_what_it_is_worth(
    big: Session, tmp_path: Path
) -> None:
    knob = "/sys/module/fdscale/parameters/variant"
    found = big.run(f"cat {knob}").text()
    host = guest_host(big.run(LOOK).text(), big.guest.accel, Path("/none"), "x")
    big.host.write_text(json.dumps(host))
    out = tmp_path / "out"
    words = ["--workload", "dup-close", "--backend", "kernel", "--mode", "threads"]
    words += ["--variant", "stock-6.12,patch-1,series-v3,merged-6.13", "--tasks", "1"]
    # Long windows: a PU of the guest may have to wait for one of the host.
    words += ["--hold", "none,low:64", "--runs", "2", "--window-ms", "500"]
    done = subprocess.run(
        [ROOT / "run.py", "sweep", *words, "--out", out],
        env={**os.environ, **big.environment()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    kept = check_host(json.loads((out / "host.json").read_text()), "host.json")
    assert kept["kernel"]["release"] == big.guest.release
    assert kept["guest"]["host"]["kernel"]["release"] == os.uname().release
    assert (kept["cpu"]["pus"], kept["cpu"]["packages"], kept["cpu"]["cores"]) == (
        *(32, 2, 16),
    )
    assert kept["memory"]["nodes"] == {"0": "0-15", "1": "16-31"}
    assert kept["limits"]["nofile_hard"] > 1_000_000
    if big.guest.accel == "tcg":
        assert "say nothing about speed" in " ".join(done.stdout.split())
    runs = [json.loads(x) for x in (out / "results.jsonl").read_text().splitlines()]
    runs = [r for r in runs if r["type"] == "run"]
    assert [r["error"] for r in runs] == [None] * 4
    for run in runs:
        assert {w["variant"] for w in run["windows"]} == set(run["variants"])
        assert len(run["variants"]) == 4
    assert big.run(f"cat {knob}").text() == found


@pytest.fixture(scope="module")
def huge() -> Iterator[Session]:
    """A guest of 64 PUs in two packages of two nodes."""
    found = kernel("pointer")
    machine = Machine(64, sockets=2, nodes=4, threads=2, memory=8192)
    files = {"/bin/fdscale": DRIVER}
    with Session(found.image, files, machine, fastest(found.image)) as session:
        yield session


@pytest.mark.parametrize("node", range(4))
def test_the_models_table_is_on_the_node_that_was_asked_for(
    huge: Session, node: int
) -> None:
    assert huge.guest.cpus == 64
    job = huge.run(
        "/bin/fdscale run dup-close --backend model --hold low:1000000 --place "
        f"node:{(node + 1) % 4} --table-node {node} --windows 100 --window-ms 10 "
        "--json >/tmp/run 2>/tmp/errors & p=$!; while [ -e /proc/$p/exe ]; do "
        "cat /proc/[0-9]*/numa_maps 2>/dev/null; done | grep -E 'dirty=[0-9]{4}' "
        ">/tmp/maps; wait $p; s=$?; cat /tmp/errors >&2; cat /tmp/maps; echo --; "
        "cat /tmp/run; exit $s"
    )
    maps, _, events = job.text().partition("--\n")
    assert job.status == 0, job.stderr
    setup = json.loads(events.splitlines()[0])
    assert setup["nodes"] == [(node + 1) % 4]
    assert (setup["table_node"], setup["table_there"]) == (node, True)
    # What Linux says of the mappings that large: the table's alone.
    assert maps
    for line in maps.splitlines():
        pages = {int(n): int(k) for n, k in re.findall(r" N(\d+)=(\d+)", line)}
        assert list(pages) == [node], line


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_2048_tasks_on_64_pus(huge: Session, mode: str) -> None:
    job = huge.run(
        f"/bin/fdscale run dup-close --tasks 2048 --mode {mode} --oversubscribe "
        "--place compact --windows 1 --window-ms 10 --json"
    )
    events = [json.loads(x) for x in job.text().splitlines()]
    assert job.status == 0, job.stderr
    assert [e["event"] for e in events][0::2] == ["setup", "end"]
    assert len(events[0]["pus"]) == 2048 and set(events[0]["pus"]) == set(range(64))
    assert len(events[1]["ops"]) == 2048 and sum(events[1]["ops"]) > 0


def test_a_million_held(huge: Session) -> None:
    variants = "stock-6.12,merged-6.13"
    job = huge.run(
        f"/bin/fdscale run dup-close --hold low:1000000 --variant {variants} "
        "--windows 2 --json"
    )
    events = [json.loads(x) for x in job.text().splitlines()]
    assert job.status == 0, job.stderr
    assert events[0]["fdsize"] == 1048576 * 2 or events[0]["fdsize"] == 1048576
    windows = [e for e in events if e["event"] == "window"]
    assert sorted(w["variant"] for w in windows) == sorted(variants.split(",") * 2)
    assert all(w["rate"] > 0 for w in windows)


def test_a_limit_of_1e9(big: Session) -> None:
    """A loop over so many descriptors, anywhere in the start-up, would not end."""
    job = big.run(
        "f=/proc/sys/fs/nr_open; n=$(cat $f); echo 1000000000 >$f; "
        "(ulimit -Hn 1000000000 && ulimit -Sn 1000000000 && ulimit -n && "
        "for b in kernel model; do /bin/fdscale run dup-close --backend $b "
        "--windows 1 --window-ms 10 --json || exit; done); s=$?; echo $n >$f; exit $s"
    )
    assert job.status == 0, job.stderr
    limit, *lines = job.text().splitlines()
    assert limit == "1000000000"
    ends = [e for e in map(json.loads, lines) if e["event"] == "end"]
    assert [e["how"] for e in ends] == ["done", "done"]


def test_compiling_twice_is_done_once() -> None:
    first = compiled("count.c", "-static")
    before = first.stat().st_mtime_ns
    assert compiled("count.c", "-static") == first
    assert first.stat().st_mtime_ns == before
