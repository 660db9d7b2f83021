# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of the whole program share."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

# No test depends on timing: the machine may be busy.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Ignored by what nohup or a shell's & starts; tests send them to what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")


class Run(Protocol):
    """Run a program of the tree: words, then what is different about it."""

    def __call__(
        self, *words: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        """Never raises for an exit status."""


def runner(program: Path) -> Run:
    """A Run of one program, in the top folder, with a bare environment."""

    def run(
        *words: str, env: dict[str, str] | None = None, timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program, *words],
            cwd=ROOT,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(params=["build", "asan"], scope="session")
def fdscale(request: pytest.FixtureRequest) -> Run:
    """The driver, as built and with ASan and UBSan."""
    folder = BUILD if request.param == "build" else BUILD / "asan"
    return runner(folder / "fdscale")


@pytest.fixture(scope="session")
def run_py() -> Run:
    """The runner."""
    return runner(ROOT / "run.py")
