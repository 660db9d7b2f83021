# SPDX-License-Identifier: GPL-2.0-only
"""--fix on a made-up /proc and /sys: changed, and put back whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakeroot import CPU, KERNEL, put, quiet

from bench.check import Needs, Setting
from bench.doctor import doctor, fixing, record, taints, wanted
from bench.fix import UNDO, fixed, held, restore_stale
from bench.host import check_host
from bench.problem import Problem
from bench.root import Root

REPO = Path(__file__).resolve().parent.parent
GOVERNOR = f"{CPU}/cpufreq/policy1/scaling_governor"
TURBO = f"{CPU}/intel_pstate/no_turbo"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
NUMA = f"{KERNEL}/numa_balancing"
ASLR = f"{KERNEL}/randomize_va_space"
OLD: dict[str, str | None] = {
    GOVERNOR: "powersave",
    TURBO: "0",
    THP: "[always] madvise never",
    NUMA: "1",
    ASLR: "0",
}
FIXED = {GOVERNOR: "performance", TURBO: "1", THP: "madvise", NUMA: "0", ASLR: "2"}
BACK = {GOVERNOR: "powersave", TURBO: "0", THP: "always", NUMA: "1", ASLR: "0"}

HOLD = """
import sys
from pathlib import Path
from bench.check import Needs
from bench.doctor import wanted
from bench.fix import fixed
from bench.root import Root
root = Root(Path(sys.argv[1]))
with fixed(root, wanted(root, Needs()), lambda line: None):
    print("held", flush=True)
    sys.stdin.readline()
"""


def now(prefix: Path) -> dict[str, str]:
    return {name: (prefix / name).read_text().strip() for name in OLD}


def wait_for(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    put(quiet(tmp_path), OLD)
    return tmp_path


@pytest.fixture
def holder(spoilt: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the fixes on the made-up machine."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(spoilt)],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def keeper(parent: int) -> int:
    """The only child of PARENT."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    assert len(children) == 1
    return int(children[0])


def test_only_what_is_wrong_and_reversible_is_wanted(spoilt: Path) -> None:
    found = {one.path: one.wanted for one in wanted(Root(spoilt), Needs())}
    assert found == {"/" + name: value for name, value in FIXED.items()}


def test_a_quiet_machine_wants_nothing(tmp_path: Path) -> None:
    assert wanted(Root(quiet(tmp_path)), Needs()) == []


def test_changed_inside_and_back_after(spoilt: Path) -> None:
    root = Root(spoilt)
    said: list[str] = []
    with fixed(root, wanted(root, Needs()), said.append):
        assert now(spoilt) == FIXED
        assert f"/{GOVERNOR}: powersave to performance, for now" in said
        undo = json.loads(root.path(UNDO).read_text())
        assert {one["path"]: one["old"] for one in undo["settings"]} == {
            "/" + name: value for name, value in BACK.items()
        }
    assert now(spoilt) == BACK
    assert f"/{GOVERNOR}: back to powersave" in said
    assert not root.exists(UNDO)


def test_back_after_an_exception(spoilt: Path) -> None:
    root = Root(spoilt)
    with pytest.raises(RuntimeError):
        with fixed(root, wanted(root, Needs()), lambda line: None):
            raise RuntimeError
    assert now(spoilt) == BACK


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_back_when_the_parent_is_killed(
    spoilt: Path, holder: subprocess.Popen[str], number: int
) -> None:
    assert now(spoilt) == FIXED
    holder.send_signal(number)
    holder.wait()
    assert wait_for(lambda: not Root(spoilt).exists(UNDO))
    assert now(spoilt) == BACK


def test_the_keeper_outlives_ctrl_c(
    spoilt: Path, holder: subprocess.Popen[str]
) -> None:
    child = keeper(holder.pid)
    assert os.getpgid(child) != os.getpgid(holder.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(child, number)
    holder.kill()
    assert wait_for(lambda: not Root(spoilt).exists(UNDO))
    assert now(spoilt) == BACK


def kill_both(holder: subprocess.Popen[str]) -> None:
    """The worst case: nobody is left to put anything back."""
    child = keeper(holder.pid)
    os.kill(holder.pid, signal.SIGSTOP)  # it must not see its keeper die
    os.kill(child, signal.SIGKILL)
    holder.kill()
    holder.wait()
    # Dying takes a moment, and only then is the lock on the undo file free.
    assert wait_for(lambda: dead(child))


def dead(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
    except OSError:
        return True


def test_a_later_run_puts_back_what_was_left(
    spoilt: Path, holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kill_both(holder)
    assert now(spoilt) == FIXED
    doctor(root=Root(spoilt))
    assert now(spoilt) == BACK
    assert f"killed: /{GOVERNOR}: back to powersave" in capsys.readouterr().err
    assert not Root(spoilt).exists(UNDO)


def test_a_later_fix_keeps_the_first_values(
    spoilt: Path, holder: subprocess.Popen[str]
) -> None:
    kill_both(holder)
    root = Root(spoilt)
    with fixed(root, [Setting(f"/{NUMA}", "0")], lambda line: None):
        assert now(spoilt) == {**BACK, NUMA: "0"}
    assert now(spoilt) == BACK


def test_after_a_reboot_nothing_is_put_back(
    spoilt: Path, holder: subprocess.Popen[str]
) -> None:
    kill_both(holder)
    put(spoilt, {f"{KERNEL}/random/boot_id": "b2"})
    assert restore_stale(Root(spoilt)) == []
    assert now(spoilt) == FIXED
    assert not Root(spoilt).exists(UNDO)


def test_a_torn_undo_file_is_from_before_any_change(spoilt: Path) -> None:
    put(spoilt, {UNDO.lstrip("/"): '{"boot_id": "b1", "settings": [{"pa'})
    assert restore_stale(Root(spoilt)) == []
    assert now(spoilt) == {k: v for k, v in OLD.items() if v}
    assert not Root(spoilt).exists(UNDO)


def test_fixing_first_undoes_what_was_left(
    spoilt: Path, holder: subprocess.Popen[str]
) -> None:
    kill_both(holder)
    with fixing(Root(spoilt), Needs()):
        assert now(spoilt) == FIXED
    assert now(spoilt) == BACK


def test_a_killed_keeper_is_stood_in_for(spoilt: Path) -> None:
    root = Root(spoilt)
    with fixed(root, wanted(root, Needs()), lambda line: None):
        os.kill(keeper(os.getpid()), signal.SIGKILL)
        assert now(spoilt) == FIXED
    assert now(spoilt) == BACK
    assert not root.exists(UNDO)


def test_a_live_run_is_left_alone(spoilt: Path, holder: subprocess.Popen[str]) -> None:
    root = Root(spoilt)
    assert restore_stale(root) == []
    with pytest.raises(Problem) as caught:
        with fixed(root, [Setting(f"/{NUMA}", "0")], lambda line: None):
            pytest.fail("two at a time")
    assert caught.value.status == 3
    assert "another run" in str(caught.value)
    assert now(spoilt) == FIXED


def test_what_somebody_else_changed_since_is_left(spoilt: Path) -> None:
    root = Root(spoilt)
    said: list[str] = []
    with fixed(root, wanted(root, Needs()), said.append):
        put(spoilt, {GOVERNOR: "schedutil"})
    assert now(spoilt) == {**BACK, GOVERNOR: "schedutil"}
    assert any("left at schedutil" in line for line in said)


def test_what_cannot_be_changed_is_told_and_skipped(spoilt: Path) -> None:
    root = Root(spoilt)
    said: list[str] = []
    missing = Setting("/proc/sys/kernel/nothing", "1")
    with fixed(root, [missing, Setting(f"/{NUMA}", "0")], said.append):
        assert now(spoilt)[NUMA] == "0"
        assert not root.exists(missing.path)
    assert any("nothing: could not be changed" in line for line in said)
    assert now(spoilt)[NUMA] == "1"


def test_nowhere_to_write_the_old_values_down(spoilt: Path) -> None:
    put(spoilt, {"run/.keep": None})
    (spoilt / "run").rmdir()
    with pytest.raises(Problem, match=UNDO):
        with fixed(Root(spoilt), [Setting(f"/{NUMA}", "0")], lambda line: None):
            pytest.fail("changed without a way back")
    assert now(spoilt)[NUMA] == "1"


def test_doctor_fix_holds_for_a_command(
    spoilt: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    look = ("sh", "-c", f"cat {spoilt}/{GOVERNOR}; exit 7")
    assert doctor(root=Root(spoilt), fix=True, command=look) == 7
    out, err = capfd.readouterr()
    assert out.endswith("performance\n")
    assert "warn" not in [line.split()[0] for line in out.splitlines()]
    assert f"fix: /{GOVERNOR}: back to powersave" in err
    assert now(spoilt) == BACK


def test_doctor_fix_without_a_command_ends_with_its_input(
    spoilt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert doctor(root=Root(spoilt), fix=True) == 0
    assert now(spoilt) == BACK


def test_a_command_that_is_not_there(spoilt: Path) -> None:
    program = f"{spoilt}/no-such-program"
    with pytest.raises(Problem, match="no-such-program: No such file"):
        doctor(root=Root(spoilt), fix=True, command=(program,))
    assert now(spoilt) == BACK


def test_host_json_says_what_is_held(spoilt: Path) -> None:
    """While it is, and in the line that stands beside the results."""
    root = Root(spoilt)
    assert record(root, Needs())["fixed"] == []
    with fixing(root, Needs()):
        host = record(root, Needs())
    assert check_host(host, "here") == host
    assert {one["path"] for one in host["fixed"]} == {"/" + name for name in FIXED}
    assert f"Held by --fix: /{NUMA} at 0, was 1." in taints(host)
    assert held(root) == []


def test_what_an_earlier_boot_held_is_not_held(
    spoilt: Path, holder: subprocess.Popen[str]
) -> None:
    assert held(Root(spoilt))
    put(spoilt, {f"{KERNEL}/random/boot_id": "another"})
    assert held(Root(spoilt)) == []
