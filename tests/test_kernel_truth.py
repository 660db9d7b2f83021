# SPDX-License-Identifier: GPL-2.0-only
"""In a guest whose kernel has the switch: the driver flips it, reads it back and
leaves it as it was; every variant keeps the rules."""

import json
import os
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest

from bench import kernel_count
from bench.kernel_count import SEARCHES, VARIANTS
from bench.kernel_guest import Machine, boot, counting, fastest
from bench.kernel_layout import PRESETS
from bench.kernel_session import Session
from test_kernel_guest import kernel

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / os.environ.get("BUILD", "build") / "fdscale"
KNOB = "/sys/module/fdscale/parameters/variant"
# first-word-v1 is not there, and three-level is the model's only.
ALL = {*SEARCHES, *PRESETS.values(), "series-v5"}
FOUND = "patch-1+sanity-read"


@pytest.fixture(scope="module")
def guest() -> Iterator[Session]:
    """Two PUs, the switch at FOUND."""
    found = kernel("pointer")
    if not DRIVER.is_file():
        pytest.skip(f"{DRIVER} is not built")
    files = {"/bin/fdscale": DRIVER}
    with Session(found.image, files, Machine(2), fastest(found.image)) as session:
        assert not session.run(f"echo {FOUND} > {KNOB}").status
        yield session


def test_every_variant_keeps_the_rules(guest: Session) -> None:
    """With room for millions of descriptors."""
    assert int(guest.run("ulimit -Hn").text()) >= 1_000_000
    done = guest.run("/bin/fdscale check --backend kernel --variant all --json")
    lines = [json.loads(line) for line in done.text().splitlines()]
    assert {x["variant"] for x in lines} == ALL, done.stderr
    assert [(x["variant"], x["broken"]) for x in lines if x["broken"]] == []
    assert done.status == 0
    assert guest.run(f"cat {KNOB}").text().strip() == FOUND


def test_windows_of_every_variant_and_the_switch_as_it_was(guest: Session) -> None:
    words = "--variant all --windows 3 --window-ms 5 --hold low:100000 --json"
    done = guest.run(f"/bin/fdscale run dup-close {words}")
    assert done.status == 0, done.stderr
    events = [json.loads(line) for line in done.text().splitlines()]
    seen = [e["variant"] for e in events if e["event"] == "window"]
    assert sorted(seen) == sorted(3 * [*ALL])
    assert guest.run(f"cat {KNOB}").text().strip() == FOUND


def test_the_switch_is_put_back_after_sigkill(guest: Session) -> None:
    """While the driver runs it is elsewhere; the keeper outlives the driver."""
    run = "/bin/fdscale run dup-close --variant series-v3 --windows 100000 --json"
    done = guest.run(
        f"{run} >/tmp/out & p=$!; "
        "until grep -q window /tmp/out; do sleep 0.2; done; "
        f"cat {KNOB}; kill -9 $p; wait $p; echo $?; "
        f"i=0; until [ $(cat {KNOB}) = {FOUND} ] || [ $i = 100 ]; "
        f"do i=$((i+1)); sleep 0.1; done; cat {KNOB}"
    )
    assert done.text().split() == ["series-v3", "137", FOUND], done.stderr


def test_a_variant_that_the_switch_lacks(guest: Session) -> None:
    done = guest.run("/bin/fdscale run dup-close --variant three-level")
    assert done.status == 2
    assert re.search(rb"switch has no three-level", done.stderr)
    assert guest.run(f"cat {KNOB}").text().strip() == FOUND


WORKLOADS = {
    "dup-close@none": "dup-close",
    "dup-close@low:64": "dup-close --hold low:64",
    "yuma@low:66": "yuma --hold low:66 --mode processes",
    "dupfd:64@none": "dupfd --start 64",
}


def test_the_model_has_the_kernels_order() -> None:
    """Wherever two presets differ by more than 2% in the kernel's instructions, the
    model's differ the same way: both in a guest whose time is instructions."""
    found = kernel("direct")
    counts, _ = kernel_count.count(found, list(VARIANTS), list(WORKLOADS))
    in_kernel = {(c.row, c.variant): c.kernel for c in counts}
    words = f"--backend model --variant {','.join(VARIANTS)} --windows 5 --json"
    jobs = [f"/bin/fdscale run {w} {words} --seed 1" for w in WORKLOADS.values()]
    files = {"/bin/fdscale": DRIVER}
    guest = boot(found.image, jobs, files, Machine(), counting(), 600)
    compared = 0
    for row, job in zip(WORKLOADS, guest.jobs):
        assert job.status == 0, job.stderr
        rates: dict[str, list[float]] = {v: [] for v in VARIANTS}
        for line in job.text().splitlines():
            event = json.loads(line)
            if event["event"] == "window":
                rates[event["variant"]].append(event["rate"])
        model = {v: 1e9 / median(rates[v]) for v in VARIANTS}
        for one, other in combinations(VARIANTS, 2):
            ratio = in_kernel[row, one] / in_kernel[row, other]
            if not 1 / 1.02 <= ratio <= 1.02:
                compared += 1
                assert (ratio > 1) == (model[one] > model[other]), (row, one, other)
    assert compared > 20
