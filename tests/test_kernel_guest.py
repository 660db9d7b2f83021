# SPDX-License-Identifier: GPL-2.0-only
"""The guest: its report, its archive, its shape; and, where a kernel was built
(./run.py kernel build), what it counts and where it puts tasks."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import kernel_build, kernel_count
from bench.kernel_build import Kernel
from bench.kernel_guest import QEMU, Machine, boot, counting, fastest, parse_report
from bench.kernel_initramfs import compiled, initramfs
from bench.kernel_session import Session, driver_job
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
    job = driver_job(["run", "open-close", "--tmpdir", "/tmp/x y", "--hold", "low:64"])
    assert job == "/bin/fdscale run open-close --tmpdir /tmp --hold low:64"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel_build.NEEDS, "no-such-program", "no-such-package")
    with pytest.raises(Problem, match="apt-get install no-such-package") as e:
        kernel_build.need(kernel_build.NEEDS)
    assert e.value.status == COULD_NOT


def kernel(flavour: str, source: str = "6.12") -> Kernel:
    """A kernel from the cache, or a skip."""
    if not shutil.which(QEMU):
        pytest.skip("qemu-system-x86 is not installed")
    if not os.environ.get("FDSCALE_GUEST_TESTS"):
        pytest.skip("boots guests, which takes minutes: make test-kernel")
    try:
        found = kernel_build.built(source, flavour)
    except Problem as e:
        pytest.skip(str(e))
    if not found:
        pytest.skip(f"not built: ./run.py kernel build --flavour {flavour}")
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
    guest = boot(kernel("direct").image, jobs, {}, Machine(), counting(), 120)
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
    if not DRIVER.is_file():
        pytest.skip(f"{DRIVER} is not built")
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


@pytest.mark.parametrize("mode", ["threads", "processes"])
@pytest.mark.parametrize("place", PLACES)
def test_every_policy_puts_every_task_where_it_should_be(
    big: Session, place: str, mode: str
) -> None:
    assert big.guest.cpus == 32
    expected = PLACES[place]
    windows = 3 if mode == "threads" else 10  # long enough to see every task
    run = (
        f"/bin/fdscale run dup-close --tasks {len(expected)} --place {place} "
        f"--mode {mode} --windows {windows} --window-ms 10 --json"
    )
    # What Linux says of each task while it runs: allowed PUs, and where it is.
    # The shell's own words only: starting programs is slow in an emulator.
    look = (
        "for t in /proc/[0-9]*/task/[0-9]*; do read -r c <$t/comm || continue; "
        "a=; case $c in fdscale*) while read -r k v; do case $k in "
        "Cpus_allowed_list:) a=$v;; esac; done <$t/status; "
        "read -r s <$t/stat || continue; set -- $s; echo $1 ${a:--} ${39} $3;; "
        "esac; done"
    )
    job = big.run(
        f"{run} >/tmp/run 2>/tmp/errors & p=$!; "
        f"(while [ -e /proc/$p/exe ]; do {look}; done) 2>/dev/null >/tmp/look; "
        "wait $p; s=$?; cat /tmp/errors >&2; cat /tmp/look; echo --; cat /tmp/run; "
        "exit $s"
    )
    seen, _, events = job.text().partition("--\n")
    assert job.status == 0, job.stderr
    setup = json.loads(events.splitlines()[0])
    assert setup["pus"] == expected
    assert setup["nodes"] == [p // 16 for p in expected]
    looks = [x.split() for x in seen.splitlines()]
    bound = [w for w in looks if len(w) == 4 and w[1].isdigit()]
    assert {int(allowed) for _, allowed, _, _ in bound} == set(expected)
    # The driver looks too, with getcpu, and fails where a task is elsewhere.
    # Here: a task may be seen on its way; once on its PU it is nowhere else.
    there: set[str] = set()
    for task, allowed, at, _ in bound:
        if allowed == at:
            there.add(task)
        assert allowed == at or task not in there, (task, allowed, at)
    assert there


def test_too_many_tasks_are_refused_in_the_guest_as_anywhere(big: Session) -> None:
    proxy = big.environment()["FDSCALE_DRIVER"]
    words = [proxy, "run", "dup-close", "--tasks", "17", "--place", "cores"]
    env = {**os.environ, **big.environment()}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == USAGE
    assert done.stderr.startswith("fdscale: ")


def test_compiling_twice_is_done_once() -> None:
    first = compiled("count.c", "-static")
    before = first.stat().st_mtime_ns
    assert compiled("count.c", "-static") == first
    assert first.stat().st_mtime_ns == before
