# SPDX-License-Identifier: GPL-2.0-only
"""Boot a guest, run jobs in it, bring back what they printed.

The emulator is QEMU's TCG; KVM is used where a probe shows that a guest boots
with it.  A job's output comes back over a second serial port in frames that
say their length (drivers/kernel/guest.c).
"""

import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.kernel_initramfs import initramfs
from bench.problem import COULD_NOT, USAGE, Problem
from bench.scratch import Scratch

QEMU = "qemu-system-x86_64"
KVM = Path("/dev/kvm")
PROBE_SECONDS = 10


@dataclass(frozen=True)
class Machine:
    """CPUs of the guest, spread as Linux will see them."""

    cpus: int = 1
    sockets: int = 1
    nodes: int = 1
    threads: int = 1
    memory: int = 2048  # MiB, divided between the nodes

    def check(self) -> None:
        """Problem USAGE where the numbers do not divide."""
        for name in ("cpus", "sockets", "nodes", "threads"):
            if getattr(self, name) < 1:
                raise Problem(USAGE, f"--{name}: must be at least 1")
        if self.cpus % (self.sockets * self.threads):
            raise Problem(
                USAGE,
                f"--cpus {self.cpus}: not a multiple of --sockets {self.sockets} "
                f"x --threads {self.threads}",
            )
        if self.nodes % self.sockets and self.sockets % self.nodes:
            raise Problem(
                USAGE,
                f"--nodes {self.nodes} and --sockets {self.sockets}: "
                "one must be a multiple of the other",
            )
        if self.cpus % (self.nodes * self.threads):
            raise Problem(
                USAGE,
                f"--cpus {self.cpus}: not a multiple of --nodes {self.nodes} "
                f"x --threads {self.threads}",
            )
        if self.cpus > 255:
            raise Problem(USAGE, f"--cpus {self.cpus}: this guest has at most 255")

    def arguments(self) -> list[str]:
        """QEMU's words for it."""
        cores = self.cpus // self.sockets // self.threads
        smp = f"{self.cpus},sockets={self.sockets},cores={cores},threads={self.threads}"
        each = max(self.memory // self.nodes, 64)
        out = ["-smp", smp, "-m", f"{each * self.nodes}M"]
        share = self.cpus // self.nodes
        for n in range(self.nodes if self.nodes > 1 else 0):
            out += ["-object", f"memory-backend-ram,id=m{n},size={each}M"]
            last = (n + 1) * share - 1
            out += ["-numa", f"node,nodeid={n},cpus={n * share}-{last},memdev=m{n}"]
        return out


@dataclass
class Job:
    """What became of one job."""

    status: int
    stdout: bytes
    stderr: bytes

    def text(self) -> str:
        """What it printed."""
        return self.stdout.decode(errors="replace")


@dataclass
class Guest:
    """What became of a boot."""

    boot_seconds: float = 0.0  # by the guest's clock, to its first program
    cpus: int = 0
    release: str = ""
    accel: str = ""
    host_seconds: float = 0.0
    jobs: list[Job] = field(default_factory=list)
    console: str = ""


def parse_report(data: bytes, jobs: int) -> Guest | None:
    """The frames of drivers/kernel/guest.c; None while the end is not there."""
    guest = Guest()
    at = data.find(b"fdscale-boot ")
    if at < 0:
        return None
    end = data.find(b"\n", at)
    if end < 0:
        return None
    boot = data[at:end].decode(errors="replace").split()
    guest.boot_seconds, guest.cpus, guest.release = (
        float(boot[1]),
        int(boot[2]),
        boot[3],
    )
    at = end + 1
    for number in range(jobs):
        m = re.compile(rb"fdscale-job (\d+) (\d+) (\d+) (\d+)\n").match(data, at)
        if not m or int(m[1]) != number:
            return None
        out, err = m.end() + int(m[3]), m.end() + int(m[3]) + int(m[4])
        if len(data) <= err:
            return None
        guest.jobs.append(Job(int(m[2]), data[m.end() : out], data[out:err]))
        at = err + 1
    if data[at : at + 32] != b"fdscale-end %d\n" % jobs:
        return None
    return guest


def qemu(
    image: Path, folder: Path, machine: Machine, accel: list[str], report: list[str]
) -> list[str]:
    """QEMU's command line; the initramfs is in @folder, the console goes there."""
    machine.check()
    if not shutil.which(QEMU):
        raise Problem(
            COULD_NOT,
            "qemu-system-x86 is not installed: apt-get install qemu-system-x86",
        )
    # It goes when we go, however that is.
    command = ["setpriv", "--pdeathsig", "KILL", QEMU]
    command += ["-machine", "pc", "-nodefaults", "-display", "none"]
    command += ["-no-reboot", "-kernel", str(image)]
    command += ["-initrd", str(folder / "initramfs")]
    command += ["-serial", f"file:{folder / 'console'}", *report]
    # An emulated TSC is one for all PUs.  Linux would not trust it in several
    # packages: it would read the HPET instead, and patch its code while they run.
    words = "console=ttyS0 panic=-1 quiet nokaslr norandmaps tsc=reliable"
    command += ["-append", words]
    return [*command, *accel, *machine.arguments()]


def complaint(folder: Path) -> str:
    """The last that QEMU and the guest's console said."""
    said = read(folder / "errors") + read(folder / "console")
    lines = [x.strip() for x in said.decode(errors="replace").splitlines()]
    first = [x for x in lines if re.search(r"BUG:|Oops:|RIP: 0010|panic", x)][:3]
    last = first or [x for x in lines if x][-3:]
    return " | ".join(last)[:400] or "nothing on its console"


def boot(
    image: Path,
    jobs: list[str],
    files: dict[str, Path],
    machine: Machine,
    accel: list[str],
    timeout: float,
) -> Guest:
    """Boot an image and run the jobs; Problem when they did not come back."""
    start = time.monotonic()
    with Scratch() as folder:
        (folder / "initramfs").write_bytes(initramfs(jobs, files))
        report = ["-serial", f"file:{folder / 'report'}"]
        command = qemu(image, folder, machine, accel, report)
        with (folder / "errors").open("wb") as errors:
            proc = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            try:
                proc.wait(timeout)
                why = f"the guest ended (QEMU's status {proc.returncode})"
            except subprocess.TimeoutExpired:
                why = f"no answer from the guest in {timeout:.0f} s"
            finally:
                if proc.poll() is None:
                    proc.kill()
                    proc.wait()
        guest = parse_report(read(folder / "report"), len(jobs))
        if guest is None:
            raise Problem(COULD_NOT, f"{why}: {complaint(folder)}")
        guest.console = read(folder / "console").decode(errors="replace")
        guest.accel = accel[1].split(",")[0]
        guest.host_seconds = time.monotonic() - start
        return guest


def read(path: Path) -> bytes:
    """A file that may not have been made."""
    return path.read_bytes() if path.is_file() else b""


@cache
def kvm_trouble(image: Path) -> str:
    """Why no guest boots with KVM here; "" where one does: tried, since the device
    promises little."""
    if not KVM.exists():
        return f"there is no {KVM}"
    try:
        boot(image, ["true"], {}, Machine(), with_kvm(), PROBE_SECONDS)
    except Problem as e:
        return str(e)
    return ""


def with_kvm() -> list[str]:
    """The host's own CPU."""
    return ["-accel", "kvm", "-cpu", "host"]


def counting() -> list[str]:
    """One instruction is one nanosecond, idle time is skipped; one CPU.

    With the same seed and the same date, every boot is the same.
    """
    accel = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"]
    return [*accel, "-rtc", "clock=vm,base=2024-01-01", "-seed", "1"]


def fastest(image: Path) -> list[str]:
    """KVM where it works, else multi-threaded TCG."""
    if not kvm_trouble(image):
        return with_kvm()
    # A CPU that tells Linux which of its threads share a core.
    return ["-accel", "tcg,thread=multi", "-cpu", "Nehalem"]
