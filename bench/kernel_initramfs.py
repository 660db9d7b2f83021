# SPDX-License-Identifier: GPL-2.0-only
"""What a guest boots into: our programs, their libraries, busybox, the jobs."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from bench.kernel_build import cache_dir
from bench.problem import COULD_NOT, Problem

SOURCES = Path(__file__).resolve().parent.parent / "drivers" / "kernel"
BUSYBOX = Path("/bin/busybox")
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"]


def compiled(source: str, *flags: str) -> Path:
    """A program of drivers/kernel, compiled into the cache when it is not there."""
    texts = [p.read_bytes() for p in (SOURCES / source, *sorted(SOURCES.glob("*.h")))]
    key = hashlib.sha256(b"".join(texts) + repr(flags).encode()).hexdigest()[:16]
    out = cache_dir() / f"{Path(source).stem}-{key}"
    if not out.is_file():
        out.parent.mkdir(parents=True, exist_ok=True)
        new = out.with_name(f"{out.name}.{os.getpid()}")
        command = ["gcc", *CFLAGS, *flags, "-o", str(new), str(SOURCES / source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Problem(COULD_NOT, f"{source}: {done.stderr.strip()[-300:]}")
        new.rename(out)
    return out


def libraries(program: Path) -> list[Path]:
    """The shared libraries and the loader that a program asks for."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    if done.returncode:  # a static program
        return []
    if missing := re.findall(r"(\S+) => not found", done.stdout):
        raise Problem(COULD_NOT, f"{program} lacks {', '.join(missing)}: install it")
    return [Path(p) for p in re.findall(r"(/\S+) \(0x", done.stdout)]


def entry(name: str, mode: int, data: bytes, number: int, rdev: int = 0) -> bytes:
    """One file of a cpio archive in the "newc" format."""
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, os.major(rdev)]
    fields += [os.minor(rdev), len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def initramfs(jobs: list[str], files: dict[str, Path]) -> bytes:
    """An archive with init, busybox, @files by their path in the guest, and
    the jobs, one shell line each."""
    if not BUSYBOX.is_file():
        raise Problem(
            COULD_NOT, "busybox-static is not installed: apt-get install busybox-static"
        )
    for job in jobs:
        if "\n" in job:
            raise ValueError(f"a job is one line: {job!r}")
    contents: dict[str, Path] = {
        "init": compiled("guest.c", "-static"),
        "bin/busybox": BUSYBOX,
    }
    for name, path in files.items():
        contents[name.lstrip("/")] = path
        if os.access(path, os.X_OK):
            for library in libraries(path):
                contents[str(library).lstrip("/")] = library

    folders = {"dev", "proc", "sys", "tmp", "run", "bin"}
    for name in contents:
        folders.update(str(p) for p in Path(name).parents if str(p) != ".")
    out = [entry(name, 0o40755, b"", 1) for name in sorted(folders)]
    for name, path in contents.items():
        mode = 0o100755 if os.access(path, os.X_OK) else 0o100644
        out.append(entry(name, mode, path.read_bytes(), 2))
    # Before devtmpfs is mounted, process 1 speaks through this one.
    out.append(entry("dev/console", 0o20600, b"", 3, os.makedev(5, 1)))
    done = subprocess.run([str(BUSYBOX), "--list"], capture_output=True, text=True)
    for applet in done.stdout.split():
        if applet != "busybox":
            out.append(entry(f"bin/{applet}", 0o120777, b"busybox", 4))
    out.append(entry("jobs", 0o100644, "".join(f"{j}\n" for j in jobs).encode(), 5))
    out.append(entry("TRAILER!!!", 0, b"", 0))
    return b"".join(out)
