# SPDX-License-Identifier: GPL-2.0-only
"""A guest that stays up: the driver's calls go into it, one after the other.

The runner calls the driver as always; what it calls is bench/kernel_proxy.py
($FDSCALE_DRIVER), which asks the session over a socket ($FDSCALE_GUEST), which
has the guest run the driver there and brings back output and exit status. What the
guest is, for host.json, stands in a file ($FDSCALE_HOST).
"""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from bench.kernel_guest import Guest, Job, Machine, complaint, qemu
from bench.kernel_initramfs import initramfs
from bench.problem import COULD_NOT, Problem
from bench.scratch import Scratch

PROXY = Path(__file__).resolve().parent / "kernel_proxy.py"
BOOT_SECONDS = 600
JOB_SECONDS = 900
STDIN_CHUNK = 32768  # a shell takes no word above 128 KiB
# QEMU 7.2 with many CPUs sometimes loses a guest that patches its own code,
# as every kernel does while it boots.
ATTEMPTS = 3


class Ended(Problem):
    """The guest is gone."""


def driver_jobs(words: list[str], stdin: str) -> list[str]:
    """The driver's command line as jobs, the last of which is the driver's; its
    files are in the guest's /tmp."""
    words = list(words)
    if "--tmpdir" in words[:-1]:
        words[words.index("--tmpdir") + 1] = "/tmp"
    driver = shlex.join(["/bin/fdscale", *words])
    if not stdin:
        return [driver]
    jobs = [": >/tmp/stdin"]
    line = ""
    for part in stdin.splitlines():
        line += f" {shlex.quote(part)}"
        if len(line) > STDIN_CHUNK:
            jobs.append(f"printf '%s\\n'{line} >>/tmp/stdin")
            line = ""
    if line:
        jobs.append(f"printf '%s\\n'{line} >>/tmp/stdin")
    return [*jobs, f"{driver} </tmp/stdin"]


class Session:
    """A booted guest; a context manager that ends it."""

    def __init__(
        self, image: Path, files: dict[str, Path], machine: Machine, accel: list[str]
    ) -> None:
        self.scratch = Scratch()
        self.folder = self.scratch.path
        self.host = self.folder / "host.json"
        self.lock = threading.Lock()
        self.jobs = 0
        self.lost: Problem | None = None  # whose answer may still come
        self.data = b""
        self.guest = Guest(accel=accel[1].split(",")[0])
        self.wire = socket.socket(socket.AF_UNIX)
        self.door = socket.socket(socket.AF_UNIX)
        self.process: subprocess.Popen[bytes] | None = None
        try:
            for attempt in range(ATTEMPTS):
                try:
                    self.boot(image, files, machine, accel)
                    break
                except Ended as e:
                    if attempt + 1 == ATTEMPTS:
                        raise
                    print(f"kernel: {e}; once more", file=sys.stderr)
            self.door.bind(str(self.folder / "door"))
            self.door.listen()
            threading.Thread(target=self.serve, daemon=True).start()
        except BaseException:
            self.close()
            raise

    def boot(
        self, image: Path, files: dict[str, Path], machine: Machine, accel: list[str]
    ) -> None:
        """Start QEMU and wait for the guest's first words."""
        (self.folder / "initramfs").write_bytes(initramfs([], files))
        path = self.folder / "report"
        path.unlink(missing_ok=True)
        self.wire.close()
        self.wire = socket.socket(socket.AF_UNIX)
        chardev = f"socket,id=report,path={path},server=on,wait=off"
        report = ["-chardev", chardev, "-serial", "chardev:report"]
        command = qemu(image, self.folder, machine, accel, report)
        start = time.monotonic()
        with (self.folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                process_group=0,  # Ctrl-C is the runner's, not the guest's
            )
        while True:  # until QEMU listens
            try:
                self.wire.connect(str(path))
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() - start > 30:
                    raise Problem(
                        COULD_NOT, f"QEMU does not start: {complaint(self.folder)}"
                    ) from None
                time.sleep(0.05)
        words = self.line(b"fdscale-boot ", start + BOOT_SECONDS).split()
        self.guest.boot_seconds = float(words[1])
        self.guest.cpus, self.guest.release = int(words[2]), words[3]
        self.guest.host_seconds = time.monotonic() - start

    def more(self, deadline: float) -> None:
        """Wait for some bytes; Problem when none come."""
        self.wire.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            data = self.wire.recv(65536)
        except TimeoutError:
            raise Problem(
                COULD_NOT, f"no answer from the guest: {complaint(self.folder)}"
            ) from None
        if not data:
            raise Ended(COULD_NOT, f"the guest ended: {complaint(self.folder)}")
        self.data += data

    def line(self, start: bytes, deadline: float) -> str:
        """The next line, which must begin so."""
        while b"\n" not in self.data:
            self.more(deadline)
        line, _, self.data = self.data.partition(b"\n")
        if not line.startswith(start):
            raise Problem(COULD_NOT, f"not what the guest should say: {line[:80]!r}")
        return line.decode()

    def run(self, job: str, seconds: float = JOB_SECONDS) -> Job:
        """Have the guest run one line of shell."""
        if "\n" in job or not job:
            raise ValueError(f"a job is one line: {job!r}")
        with self.lock:
            if self.lost:
                raise self.lost
            try:
                return self.carry_out(job, seconds)
            except Problem as e:
                self.lost = e  # what comes next may be this job's answer
                raise

    def carry_out(self, job: str, seconds: float) -> Job:
        """Send one job and read its frame."""
        deadline = time.monotonic() + seconds
        self.wire.settimeout(seconds)
        self.wire.sendall(job.encode() + b"\n")
        head = self.line(b"fdscale-job ", deadline)
        m = re.fullmatch(r"fdscale-job (\d+) (\d+) (\d+) (\d+)", head)
        if not m or int(m[1]) != self.jobs:
            raise Problem(COULD_NOT, f"not what the guest should say: {head!r}")
        self.jobs += 1
        out, err = int(m[3]), int(m[4])
        while len(self.data) < out + err + 1:
            self.more(deadline)
        job_done = Job(int(m[2]), self.data[:out], self.data[out : out + err])
        self.data = self.data[out + err + 1 :]
        return job_done

    def serve(self) -> None:
        """Answer the proxies until the door is closed."""
        while True:
            try:
                peer, _ = self.door.accept()
            except OSError:
                return
            try:
                with peer, peer.makefile("rw", encoding="utf-8") as f:
                    try:
                        words, stdin = json.loads(f.readline())
                        for job in driver_jobs(words, stdin):
                            done = self.run(job)
                        answer = [done.status, done.text(), done.stderr.decode()]
                    except (Problem, OSError, ValueError) as e:
                        answer = [COULD_NOT, "", f"fdscale: {e}\n"]
                    f.write(json.dumps(answer))
            except OSError:
                continue  # the proxy was stopped; the end of `with` writes, too

    def environment(self) -> dict[str, str]:
        """What makes the runner call the driver in the guest."""
        return {
            "FDSCALE_DRIVER": str(PROXY),
            "FDSCALE_GUEST": str(self.folder / "door"),
            "FDSCALE_HOST": str(self.host),
        }

    def close(self) -> None:
        """End the guest."""
        self.door.close()
        self.wire.close()
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.scratch.drop()

    def __enter__(self) -> "Session":
        self.before = {k: os.environ.get(k) for k in self.environment()}
        os.environ.update(self.environment())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for key, old in self.before.items():
            if old is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = old
        self.close()
