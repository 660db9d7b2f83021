# SPDX-License-Identifier: GPL-2.0-only
"""Build a small kernel with the switch in it, once for each content.

The cache ($FDSCALE_CACHE, else ~/.cache/fdscale) holds one copy of each source
with its build directory, and one kernel for each (source, flavour, config,
transformation, compiler).  A second call finds the kernel and does nothing.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import kernel_transform
from bench.problem import COULD_NOT, USAGE, Problem

FRAGMENT = Path(__file__).resolve().parent.parent / "config/kernel/guest.config"
FLAVOURS = (*kernel_transform.FLAVOURS, "plain")
NEWEST = "6.12"
# What a build needs: a program or a header, and the package that has it.
NEEDS = {
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "tar": "tar",
    "/usr/include/libelf.h": "libelf-dev",
}
# Not copied from a tree that was built in place: make refuses such a tree.
BUILT = (
    "./.git",
    "./.config",
    "./include/config",
    "./include/generated",
    "./arch/*/include/generated",
    "*.o",
    "*.cmd",
    "./vmlinux*",
)


@dataclass(frozen=True)
class Kernel:
    """A built kernel: its folder in the cache and what the manifest says."""

    folder: Path
    manifest: dict[str, str]

    @property
    def image(self) -> Path:
        """What QEMU boots."""
        return self.folder / "bzImage"

    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size of each function."""
        out = {}
        for line in (self.folder / "symbols").read_text().splitlines():
            fields = line.split()
            if len(fields) == 4 and fields[2] in "tT":
                out[fields[3]] = (int(fields[0], 16), int(fields[1], 16))
        return out


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"kernel: {text}", file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """Where kernels are kept: outside the repository."""
    if own := os.environ.get("FDSCALE_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fdscale"


def need(table: dict[str, str]) -> None:
    """A Problem that names every package that is missing."""
    missing = [
        package
        for thing, package in table.items()
        if not (Path(thing).exists() if "/" in thing else shutil.which(thing))
    ]
    if missing:
        names = " ".join(sorted(set(missing)))
        raise Problem(COULD_NOT, f"not installed: {names}: apt-get install {names}")


def find_source(source: str | None) -> Path:
    """A Debian version ("6.1", "6.12") or a folder, as the path it is at."""
    wanted = source or NEWEST
    if Path(wanted).is_dir():
        return Path(wanted).resolve()
    if not wanted.replace(".", "").isdigit():
        raise Problem(
            USAGE, f"--source {wanted}: neither a folder nor a version such as 6.12"
        )
    package = f"linux-source-{wanted}"
    path = Path("/usr/src") / f"{package}.tar.xz"
    if not path.is_file():
        raise Problem(
            COULD_NOT, f"{package} is not installed: apt-get install {package}"
        )
    return path


def source_key(path: Path) -> str:
    """A hash of an archive's content, or of a tree's names, sizes and times."""
    if path.is_file():
        with path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()[:16]
    h = hashlib.sha256()
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(d for d in folders if d != ".git")
        for name in sorted(files):
            if name.endswith((".o", ".cmd")):
                continue
            s = os.lstat(os.path.join(folder, name))
            h.update(f"{folder}/{name} {s.st_size} {s.st_mtime_ns}\n".encode())
    return h.hexdigest()[:16]


def recipe_key(flavour: str) -> str:
    """A hash of everything of ours, and of the compiler, that makes a kernel."""
    h = hashlib.sha256(FRAGMENT.read_bytes())
    if flavour != "plain":
        for name in kernel_transform.HEADERS:
            h.update((kernel_transform.SOURCES / name).read_bytes())
        for module in ("kernel_layout.py", "kernel_transform.py"):
            h.update((Path(__file__).parent / module).read_bytes())
    h.update(subprocess.run(["gcc", "--version"], capture_output=True).stdout)
    return h.hexdigest()[:16]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def unpack(path: Path, key: str, folder: Path) -> Path:
    """A copy of the source of our own, made when it is not there yet."""
    tree = folder / "tree"
    stamp = folder / "source"
    if stamp.is_file() and stamp.read_text() == key:
        return tree
    say(f"copying {path} to {tree}")
    stamp.unlink(missing_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    into = ["tar", "-C", str(tree), "-x"]
    if path.is_file():
        command = [*into, "-J", "--strip-components=1", "-f", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        failed = done.returncode != 0
        error = done.stderr
    else:
        skip = [f"--exclude={name}" for name in BUILT]
        reader = subprocess.Popen(
            ["tar", "-C", str(path), *skip, "-c", "."], stdout=subprocess.PIPE
        )
        done = subprocess.run(into, stdin=reader.stdout, capture_output=True, text=True)
        failed = reader.wait() != 0 or done.returncode != 0
        error = done.stderr
    if failed:
        raise Problem(COULD_NOT, f"{path} could not be copied: {error.strip()[-200:]}")
    kernel_transform.restore(tree)  # a tree that was patched by hand
    stamp.write_text(key)
    return tree


def make(tree: Path, out: Path, *targets: str) -> None:
    """Run make with progress; a Problem with the first error of its log."""
    log = out / "make.log"
    # Nothing of the time and the place goes into the kernel.
    env = {
        **os.environ,
        "KBUILD_BUILD_TIMESTAMP": "2024-01-01",
        "KBUILD_BUILD_USER": "fdscale",
        "KBUILD_BUILD_HOST": "fdscale",
        "LC_ALL": "C",
    }
    jobs = len(os.sched_getaffinity(0))
    command = ["make", "-C", str(tree), f"O={out}", f"-j{jobs}"]
    start = told = time.monotonic()
    steps = 0
    with log.open("w") as f:
        proc = subprocess.Popen(
            [*command, *targets],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
        )
        try:
            assert proc.stdout
            for line in proc.stdout:
                f.write(line)
                steps += line.startswith("  ")
                now = time.monotonic()
                if now - told >= 10:
                    told = now
                    say(f"{steps} steps, {now - start:.0f} s")
            status = proc.wait()
        except BaseException:
            proc.terminate()
            proc.wait()
            raise
    if status:
        lines = log.read_text(errors="replace").splitlines()
        bad = [x for x in lines if "error" in x.lower()] or lines[-1:]
        first = bad[0].strip() if bad else "no output"
        raise Problem(COULD_NOT, f"make {' '.join(targets)} failed: {first} ({log})")


def configure(tree: Path, out: Path) -> None:
    """tinyconfig with our fragment on top, when it is not that already."""
    stamp = out / "fragment"
    text = FRAGMENT.read_text()
    if (out / ".config").is_file() and stamp.is_file() and stamp.read_text() == text:
        return
    stamp.unlink(missing_ok=True)
    make(tree, out, "tinyconfig")
    with (out / ".config").open("a") as f:
        f.write(text)  # of two lines for a symbol the last one counts
    make(tree, out, "olddefconfig")
    have = set((out / ".config").read_text().splitlines())
    lost = [x for x in text.splitlines() if x.endswith("=y") and x not in have]
    if lost:
        say(f"this source does not have: {' '.join(x[:-2] for x in lost)}")
    stamp.write_text(text)


def place(key: str, flavour: str) -> Path:
    """The folder of a kernel in the cache, whether it is there or not."""
    return cache_dir() / f"kernel-{key}-{recipe_key(flavour)}-{flavour}"


def in_cache(folder: Path) -> Kernel | None:
    """The kernel that was built into a folder."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return None
    return Kernel(folder, json.loads(manifest.read_text()))


def built(source: str | None, flavour: str) -> Kernel | None:
    """The kernel, if it is in the cache; nothing is built."""
    return in_cache(place(source_key(find_source(source)), flavour))


def build(source: str | None, flavour: str) -> Kernel:
    """The kernel of a source in a flavour, built when it is not in the cache."""
    if flavour not in FLAVOURS:
        raise Problem(USAGE, f"no flavour '{flavour}': there are {', '.join(FLAVOURS)}")
    need({"gcc": "gcc"})
    path = find_source(source)
    key = source_key(path)
    folder = place(key, flavour)
    if kernel := in_cache(folder):
        return kernel

    need(NEEDS)
    where = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    work = cache_dir() / f"source-{where}"
    start = time.monotonic()
    with locked(work):
        tree = unpack(path, key, work)
        layout = kernel_transform.describe(tree)
        if flavour == "plain":
            kernel_transform.restore(tree)
        else:
            kernel_transform.patch(tree, flavour)
        out = work / "build"
        out.mkdir(exist_ok=True)
        configure(tree, out)
        say(f"building {path} ({layout.name}), {flavour}")
        make(tree, out, "bzImage")
        release = (out / "include/config/kernel.release").read_text().strip()
        new = folder.with_name(folder.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        shutil.copy2(out / "arch/x86/boot/bzImage", new / "bzImage")
        shutil.copy2(out / ".config", new / "config")
        names = subprocess.run(
            ["nm", "-S", str(out / "vmlinux")], capture_output=True, check=True
        )
        (new / "symbols").write_bytes(names.stdout)
        words = {
            "source": str(path),
            "release": release,
            "flavour": flavour,
            "tree": layout.name,
            "seconds": f"{time.monotonic() - start:.0f}",
        }
        (new / "manifest.json").write_text(json.dumps(words, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    say(f"built {folder} in {words['seconds']} s")
    return Kernel(folder, words)
