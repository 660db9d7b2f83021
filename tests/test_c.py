# SPDX-License-Identifier: GPL-2.0-only
"""The C tests: each program of tests/c, built with ASan and UBSan."""

import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

PROGRAMS = sorted(p.stem for p in (ROOT / "tests" / "c").glob("test_*.c"))


def check(program: Path) -> None:
    """Run it from the top; its own report is the failure's text."""
    done = subprocess.run(
        [program], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_with_asan(name: str) -> None:
    """Memory and undefined behaviour watched."""
    check(BUILD / "asan" / "tests" / name)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "threads" in n])
def test_with_tsan(name: str) -> None:
    """The threads of the model, races watched."""
    check(BUILD / "tsan" / "tests" / name)
