# SPDX-License-Identifier: GPL-2.0-only
"""The switch in a distribution's kernel, without a reboot: a livepatch.

It is built against the kernel's headers and refuses, with the remedy, what it
cannot do: a kernel without livepatch, without headers, locked down, taking
signed modules only, or with a layout that is not known.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.kernel_build import cache_dir, need, say
from bench.problem import COULD_NOT, Problem

SOURCES = Path(__file__).resolve().parent.parent / "drivers" / "kernel"
SCRIPT = SOURCES / "livepatch.sh"
FILES = ("fdscale_livepatch.c", "fdscale_variants.h", "fdscale_knob.h")
# The close path's name by version: what fs/file.c of those versions holds.
PICK = {"6.1": "pick_file", "6.12": "file_close_fd_locked"}
NEEDS = {"make": "make", "gcc": "gcc"}
REBUILD = "or take a kernel of your own: ./run.py kernel patch"


def pick_of(release: str) -> str:
    """The function that takes a file out of its slot, by the release."""
    m = re.match(r"(\d+)\.(\d+)\.", release)
    version = f"{m[1]}.{m[2]}" if m else release
    if version in PICK:
        return PICK[version]
    known = ", ".join(PICK)
    raise Problem(
        COULD_NOT,
        f"kernel {release}: a layout not known here, known are {known}: boot one of "
        f"them, {REBUILD}",
    )


def headers_of(release: str, root: Path = Path("/")) -> Path:
    """Where a module for that kernel is built."""
    for path in (
        root / "lib/modules" / release / "build",
        root / "usr/src" / f"linux-headers-{release}",
    ):
        if (path / ".config").is_file() and (path / "Makefile").is_file():
            return path
    package = f"linux-headers-{release}"
    raise Problem(COULD_NOT, f"{package} is not installed: apt-get install {package}")


def word_in(path: Path) -> str:
    """What a file of /proc or /sys says, or nothing."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def config_of(release: str, root: Path) -> str:
    """The running kernel's configuration, from where it may be kept."""
    packed = root / "proc/config.gz"
    if packed.is_file():
        return gzip.decompress(packed.read_bytes()).decode()
    for path in (
        root / "boot" / f"config-{release}",
        root / "lib/modules" / release / "config",
        root / "lib/modules" / release / "build/.config",
        root / "usr/src" / f"linux-headers-{release}/.config",
    ):
        if text := word_in(path):
            return text
    return ""


def check_host(release: str, uid: int, root: Path = Path("/")) -> None:
    """Everything that would make loading fail, as a Problem with the remedy."""
    if uid:
        raise Problem(COULD_NOT, "loading a livepatch needs root: run it with sudo")
    if not (root / "proc/modules").exists():
        raise Problem(
            COULD_NOT, f"kernel {release} takes no modules: boot another, {REBUILD}"
        )
    if word_in(root / "proc/sys/kernel/modules_disabled") == "1":
        raise Problem(
            COULD_NOT, "kernel.modules_disabled is set: reboot without it to load"
        )
    pick = pick_of(release)
    config = config_of(release, root)
    if (
        not (root / "sys/kernel/livepatch").is_dir()
        and "CONFIG_LIVEPATCH=y" not in config
    ):
        raise Problem(
            COULD_NOT,
            f"kernel {release} has no livepatch (CONFIG_LIVEPATCH): boot one that has, "
            f"{REBUILD}",
        )
    lockdown = word_in(root / "sys/kernel/security/lockdown")
    if lockdown and "[none]" not in lockdown:
        raise Problem(
            COULD_NOT,
            f"the kernel is locked down ({lockdown}): turn Secure Boot off, {REBUILD}",
        )
    enforced = word_in(root / "sys/module/module/parameters/sig_enforce") == "Y"
    if enforced or "CONFIG_MODULE_SIG_FORCE=y" in config:
        raise Problem(
            COULD_NOT,
            "the kernel takes signed modules only: boot without "
            f"module.sig_enforce, {REBUILD}",
        )
    symbols = set(
        re.findall(r"^\S+ [tT] (\S+)$", word_in(root / "proc/kallsyms"), re.M)
    )
    for name in ("alloc_fd", "expand_files", pick, "put_unused_fd"):
        if name not in symbols:
            raise Problem(
                COULD_NOT,
                f"kernel {release} has no function {name}() of its own: a layout not "
                f"known here, {REBUILD}",
            )


def build_module(release: str, root: Path = Path("/")) -> Path:
    """The module for that kernel, built when it is not in the cache."""
    pick = pick_of(release)
    headers = headers_of(release, root)
    need(NEEDS)
    h = hashlib.sha256((headers / ".config").read_bytes() + release.encode())
    for name in FILES:
        h.update((SOURCES / name).read_bytes())
    folder = cache_dir() / f"livepatch-{h.hexdigest()[:16]}"
    module = folder / "fdscale.ko"
    if module.is_file():
        return module
    new = folder.with_name(f"{folder.name}.{os.getpid()}")
    new.mkdir(parents=True)
    try:
        for name in FILES:
            shutil.copy2(SOURCES / name, new / name)
        (new / "Makefile").write_text(
            "obj-m := fdscale.o\n"
            "fdscale-y := fdscale_livepatch.o\n"
            f'ccflags-y := -DFDV_PICK=\\"{pick}\\"\n'
        )
        done = subprocess.run(
            ["make", "-C", str(headers), f"M={new}", "modules"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            why = next((x for x in lines if "error" in x.lower()), lines[-1])
            raise Problem(COULD_NOT, f"the module for {release} does not build: {why}")
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return module


def check_ours(module: Path) -> None:
    """Raises Problem(COULD_NOT) where another than who loads it could change it."""
    for path in (module, module.parent, module.parent.parent):
        found = path.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise Problem(
                COULD_NOT,
                f"{path}: another user may write to it: it is not loaded; remove "
                f"{module.parent}, or name a folder of root's (FDSCALE_CACHE)",
            )


def run_script(*words: str) -> None:
    """Run livepatch.sh; its one line becomes the Problem."""
    done = subprocess.run(
        ["sh", str(SCRIPT), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        text = done.stderr.strip().removeprefix("livepatch: ")
        raise Problem(COULD_NOT, text or f"livepatch.sh: status {done.returncode}")


def load() -> str:
    """Put the switch into the running kernel; where it is."""
    release = os.uname().release
    if Path("/sys/module/fdscale").exists():
        raise Problem(COULD_NOT, "this kernel has the switch already: nothing to load")
    check_host(release, os.geteuid())
    need({"insmod": "kmod"})
    module = build_module(release)
    check_ours(module)
    say(
        f"loading {module}: it replaces alloc_fd(), {pick_of(release)}() and "
        "put_unused_fd() of the running kernel, for all programs, until "
        "./run.py kernel unload"
    )
    run_script("load", str(module))
    return "/sys/module/fdscale/parameters/variant"


def unload() -> None:
    """Take it out again."""
    if os.geteuid():
        raise Problem(COULD_NOT, "unloading a livepatch needs root: run it with sudo")
    run_script("unload")
