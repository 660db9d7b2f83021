# SPDX-License-Identifier: GPL-2.0-only
"""./run.py as a user meets it: a real quick sweep, Ctrl-C, wrong words."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import ROOT, Run

from bench.store import load

SMALL = ("--workload", "dup-close", "--tasks", "1", "--mode", "threads")


def test_quick_sweep(run_py: Run, tmp_path: Path) -> None:
    """All rooms of the house: results, host, summary, figures; under 80 columns."""
    out = tmp_path / "res ults"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"TMPDIR": str(scratch)}
    done = run_py("sweep", "--quick", "--max-time", "20", "--out", str(out), env=env)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    summary = (out / "summary.txt").read_text()
    assert done.stdout.startswith(summary)
    for word in ("dup-close", "open-close", "dup2-churn", "stock-6.12", "ratio"):
        assert word in summary
    assert "Failed" not in summary
    host = json.loads((out / "host.json").read_text())
    assert host["kernel"]["release"] == os.uname().release
    records = load(out)
    assert records[0]["type"] == "plan" and records[0]["plan"]["quick"]
    for record in records[1:]:
        assert record["error"] is None
        assert isinstance(record["disturbed"], list)
        before, after = record["around"]
        assert after["time"] - before["time"] <= record["seconds"] + 1
        assert record["setup"]["fdsize"] == (record["cell"]["table_size"] or 64)
    figures = {p.name for p in (out / "figures").iterdir()}
    stems = {name.rsplit(".", 1)[0] for name in figures}
    assert figures == {f"{s}.{e}" for s in stems for e in ("dat", "png", "svg")}
    assert any(s.startswith("rate-dup-close-kernel") for s in stems)
    assert any(s.startswith("ratio-dup-close-model") for s in stems)
    assert not list(scratch.iterdir())


def test_json_is_the_same_sweep(run_py: Run, tmp_path: Path) -> None:
    """One object on stdout, nothing else."""
    words = ("sweep", *SMALL, "--backend", "model", "--hold", "low:64", "--runs", "2")
    done = run_py(*words, "--json", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["cell"]["hold"] == "low:64" and cell["runs"] == 2
    assert set(cell["variants"]) >= {"stock-6.12", "merged-6.13"}
    for judged in cell["variants"].values():
        assert judged["rate"]["low"] <= judged["rate"]["estimate"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path: Path, stop: signal.Signals) -> None:
    """Everything measured is kept, its summary printed, status 130."""
    out = tmp_path / "out"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [ROOT / "run.py", "sweep", *SMALL, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(scratch)},
    ) as process:
        while not (out / "results.jsonl").exists() or len(load(out)) < 3:
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(stop)
        stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = [r for r in load(out) if r["type"] == "run"]
    assert len(kept) >= 2 and all(r["error"] is None for r in kept)
    assert "Operations a second" in stdout and "dup-close" in stdout
    assert (out / "summary.txt").read_text() in stdout
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("when", ["parser", "parser().parse_args"])
def test_interrupted_at_once(stop: str, when: str) -> None:
    """While the words are still being read: one line, status 130."""
    code = (
        "import os, signal, sys; from bench import cli; made = cli.parser();"
        "made.parse_args = cli.parser = "
        f"lambda *_: os.kill(os.getpid(), signal.{stop});"
        f"{'cli.parser = lambda: made;' if 'args' in when else ''}"
        "sys.exit(cli.main(['list']))"
    )
    words = ["/usr/bin/python3", "-c", code]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "run.py: interrupted\n"


def test_resume_runs_what_is_missing(run_py: Run, tmp_path: Path) -> None:
    """A torn last line is set aside, no run is made twice, the rest is made."""
    out = tmp_path / "o"
    words = ("sweep", *SMALL, "--backend", "model", "--hold", "none", "--runs", "3")
    assert run_py(*words, "--out", str(out)).returncode == 0
    results = out / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    results.write_text("".join(lines[:2]) + lines[2][: len(lines[2]) // 2])
    done = run_py("sweep", "--resume", str(out))
    assert done.returncode == 0, done.stderr
    kept = results.read_text().splitlines(keepends=True)
    assert kept[:2] == lines[:2]
    assert [json.loads(line)["run"] for line in kept[1:]] == [0, 1, 2]
    assert (out / "results.torn").read_text() == lines[2][: len(lines[2]) // 2] + "\n"


def test_two_writers_into_one_folder(run_py: Run, tmp_path: Path) -> None:
    """The second is refused while the first holds the file."""
    out = tmp_path / "o"
    words = ("sweep", *SMALL, "--backend", "model", "--hold", "none", "--runs", "1")
    assert run_py(*words, "--out", str(out)).returncode == 0
    with open(out / "results.jsonl", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_py("sweep", "--resume", str(out))
    assert done.returncode == 3 and "another sweep" in done.stderr


def test_closed_and_full_stdout(run_py: Run) -> None:
    """One line and status 3: 1 would mean that the answer is no."""
    for way, named in ((">&-", "stdout is closed"), (">/dev/full", "No space left")):
        done = subprocess.run(
            f"./run.py list --json {way}",
            shell=True,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3 and named in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_resume_refuses_another_boot(run_py: Run, tmp_path: Path) -> None:
    """Runs of two boots are not runs of one cell."""
    out = tmp_path / "o"
    words = ("sweep", *SMALL, "--backend", "model", "--hold", "none", "--runs", "1")
    assert run_py(*words, "--out", str(out)).returncode == 0
    host = json.loads((out / "host.json").read_text())
    host["kernel"]["boot_id"] = "another"
    (out / "host.json").write_text(json.dumps(host))
    done = run_py("sweep", "--resume", str(out))
    assert done.returncode == 2 and "boot_id" in done.stderr


def test_other_cells_go_on(run_py: Run, tmp_path: Path) -> None:
    """A hold beyond the limits is refused with what binds; the status tells."""
    words = ("sweep", *SMALL, "--backend", "kernel", "--runs", "1")
    done = run_py(*words, "--hold", "low:50000000,none", "--out", str(tmp_path / "o"))
    assert done.returncode == 3
    assert "fs.nr_open" in done.stdout and "hold none" in done.stdout


def test_dry_run(run_py: Run, tmp_path: Path) -> None:
    """The cells and the time; nothing is made."""
    out = tmp_path / "o"
    done = run_py("sweep", *SMALL, "--hold", "none", "--dry-run", "--out", str(out))
    assert done.returncode == 0 and not out.exists()
    assert "dup-close, kernel, hold none, 1 thread" in done.stdout
    assert re.search(r"2 cells, 7 runs each, about 0:14", done.stdout)


@pytest.mark.parametrize(
    "words, named",
    [
        (("sweap",), "sweap"),
        (("sweep", "--workload", "dup-clos"), "dup-clos.*dup-close"),
        (("sweep", "--backend", "kernl"), "kernl.*kernel model"),
        (("sweep", "--mode", "fibres"), "fibres.*threads processes"),
        (("sweep", "--tasks", "0"), "--tasks.*'0'"),
        (("sweep", "--tasks", "-1"), "--tasks"),
        (("sweep", "--tasks", "abc"), "--tasks.*'abc'"),
        (("sweep", "--tasks", "1e9"), "--tasks.*'1e9'"),
        (("sweep", "--runs", "0"), "--runs.*'0'"),
        (("sweep", "--plan", "missing.toml"), "missing.toml"),
        (("sweep", "--precision", "none"), "--precision.*none"),
        (("sweep", "--baseline", "two-level"), "two-level.*stock-6.12"),
        (("sweep", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("sweep", "--out", "bench"), "bench.*not empty"),
        (("reproduce", "kara-first-65"), "kara-first-65.*kara-first-64"),
        (("calibrate", "--backend", "kernl"), "kernl.*kernel model"),
        (("calibrate", "--inject", "0%"), "--inject.*0%"),
        (("calibrate", "--trials", "3"), "--trials.*'3'"),
        (("calibrate", "--out", "bench"), "bench.*not empty"),
    ],
)
def test_wrong_words(run_py: Run, words: tuple[str, ...], named: str) -> None:
    """Status 2, one line that names them, no traceback, nothing on stdout."""
    done = run_py(*words)
    assert done.returncode == 2, done.stderr
    assert re.search(named, done.stderr) and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_gnuplot_missing(run_py: Run, tmp_path: Path) -> None:
    """The package is named, with status 3, before there is anything to lose."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("python3", "env", "git", "gcc"):
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            (tools / name).symlink_to(found)
    out = tmp_path / "o"
    words = ("sweep", *SMALL, "--backend", "kernel", "--hold", "none", "--runs", "1")
    done = run_py(*words, "--out", str(out), env={"PATH": str(tools)})
    assert done.returncode == 3 and "gnuplot-nox" in done.stderr
    assert not out.exists() and done.stdout == ""


def test_driver_missing_or_without_its_library(run_py: Run, tmp_path: Path) -> None:
    """What to run is said."""
    done = run_py("sweep", env={"FDSCALE_DRIVER": str(tmp_path / "none")})
    assert done.returncode == 3 and "run make" in done.stderr
    fake = tmp_path / "fdscale"
    fake.write_text(
        '#!/bin/sh\necho "$0: error while loading shared libraries: '
        'libhwloc.so.15: cannot open shared object file: No such file" >&2\nexit 127\n'
    )
    fake.chmod(0o755)
    done = run_py("sweep", env={"FDSCALE_DRIVER": str(fake)})
    assert done.returncode == 3
    assert "libhwloc.so.15" in done.stderr and "make setup" in done.stderr


def test_help_fits_80_columns(run_py: Run) -> None:
    """Each command's, with examples."""
    for words in (
        (),
        ("sweep",),
        ("reproduce",),
        ("topo",),
        ("doctor",),
        ("calibrate",),
    ):
        done = run_py(*words, "--help", env={"COLUMNS": "80"})
        assert done.returncode == 0
        assert not [line for line in done.stdout.splitlines() if len(line) > 80]
