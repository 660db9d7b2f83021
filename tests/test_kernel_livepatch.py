# SPDX-License-Identifier: GPL-2.0-only
"""The livepatch: what refuses it, and that it works on Debian's own kernel."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import kernel_livepatch
from bench.kernel_build import cache_dir
from bench.kernel_guest import Machine, boot, counting
from bench.kernel_initramfs import compiled, libraries
from bench.problem import COULD_NOT, Problem

RELEASE = "6.1.0-57-amd64"


def put(root: Path, name: str, text: str) -> None:
    """A file of a made-up machine."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a machine on which loading works."""
    put(tmp_path, "proc/modules", "")
    put(tmp_path, "proc/sys/kernel/modules_disabled", "0\n")
    put(tmp_path, f"boot/config-{RELEASE}", "CONFIG_LIVEPATCH=y\n")
    put(tmp_path, "sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
    put(tmp_path, "sys/module/module/parameters/sig_enforce", "N\n")
    names = ("alloc_fd", "expand_files", "pick_file", "put_unused_fd")
    put(tmp_path, "proc/kallsyms", "".join(f"ff00 t {n}\n" for n in names))
    return tmp_path


def test_nothing_stands_in_the_way(machine: Path) -> None:
    kernel_livepatch.check_host(RELEASE, 0, machine)


def test_the_packed_configuration_counts(machine: Path) -> None:
    (machine / f"boot/config-{RELEASE}").unlink()
    with pytest.raises(Problem, match="CONFIG_LIVEPATCH"):
        kernel_livepatch.check_host(RELEASE, 0, machine)
    packed = gzip.compress(b"CONFIG_LIVEPATCH=y\n")
    (machine / "proc/config.gz").write_bytes(packed)
    kernel_livepatch.check_host(RELEASE, 0, machine)


REFUSALS: dict[str, tuple[Callable[[Path], None], str]] = {
    "no livepatch": (
        lambda m: put(m, f"boot/config-{RELEASE}", "# CONFIG_LIVEPATCH is not set\n"),
        "CONFIG_LIVEPATCH",
    ),
    "no modules": (lambda m: (m / "proc/modules").unlink(), "no modules"),
    "modules off": (
        lambda m: put(m, "proc/sys/kernel/modules_disabled", "1\n"),
        "modules_disabled",
    ),
    "lockdown": (
        lambda m: put(m, "sys/kernel/security/lockdown", "none [integrity]\n"),
        "locked down",
    ),
    "signatures": (
        lambda m: put(m, "sys/module/module/parameters/sig_enforce", "Y\n"),
        "signed modules",
    ),
    "forced by configuration": (
        lambda m: put(
            m,
            f"boot/config-{RELEASE}",
            "CONFIG_LIVEPATCH=y\nCONFIG_MODULE_SIG_FORCE=y\n",
        ),
        "signed modules",
    ),
    "inlined": (
        lambda m: put(m, "proc/kallsyms", "ff00 t alloc_fd\nff00 t expand_files\n"),
        "pick_file",
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_refusals_name_the_thing(machine: Path, why: str) -> None:
    change, named = REFUSALS[why]
    change(machine)
    with pytest.raises(Problem, match=named) as e:
        kernel_livepatch.check_host(RELEASE, 0, machine)
    assert e.value.status == COULD_NOT
    assert "\n" not in str(e.value)


def test_only_root_loads(machine: Path) -> None:
    with pytest.raises(Problem, match="root"):
        kernel_livepatch.check_host(RELEASE, 1000, machine)


@pytest.mark.parametrize("release", ["5.15.0-1-amd64", "6.18.44", "odd"])
def test_an_unknown_layout_is_refused(machine: Path, release: str) -> None:
    with pytest.raises(Problem, match=re.escape(release)):
        kernel_livepatch.check_host(release, 0, machine)


def test_missing_headers_name_the_package(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=f"apt-get install linux-headers-{RELEASE}"):
        kernel_livepatch.build_module(RELEASE, tmp_path)


def test_a_module_that_others_may_write_is_not_loaded(tmp_path: Path) -> None:
    """Neither the file, nor the folders that it is taken from."""
    module = tmp_path / "cache" / "livepatch" / "fdscale.ko"
    module.parent.mkdir(parents=True)
    module.touch()
    for path in (module, module.parent, module.parent.parent):
        path.chmod(0o755)
    kernel_livepatch.check_ours(module)
    for path in (module, module.parent, module.parent.parent):
        path.chmod(0o775)
        with pytest.raises(Problem, match=f"{path}: another user"):
            kernel_livepatch.check_ours(module)
        path.chmod(0o755)
    if not os.getuid():
        os.chown(module, 65534, -1)
        with pytest.raises(Problem, match=f"{module}: another user"):
            kernel_livepatch.check_ours(module)


def debian_kernel(version: str) -> tuple[str, Path]:
    """A Debian kernel whose headers are installed: release and image."""
    if not os.environ.get("FDSCALE_GUEST_TESTS"):
        pytest.skip("boots a guest, which takes minutes: make test-kernel")
    form = rf"linux-headers-({re.escape(version)}\.[\w.+]+(-\d+)?-amd64)"
    names = [p.name for p in Path("/usr/src").iterdir()]
    found = sorted(m[1] for n in names if (m := re.fullmatch(form, n)))
    if not found:
        package = f"linux-headers-{version}-amd64"
        pytest.skip(f"not installed, and brings a kernel with it: {package}")
    release = found[-1]
    image = Path(f"/boot/vmlinuz-{release}")
    if not image.is_file():
        # The package's file is enough: a kernel is not installed for a test.
        folder = cache_dir() / f"debian-{release}"
        image = folder / f"boot/vmlinuz-{release}"
        if not image.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            get = ["apt-get", "download", f"linux-image-{release}"]
            subprocess.run(get, cwd=folder, check=True)
            (deb,) = folder.glob("*.deb")
            subprocess.run(["dpkg", "-x", deb, folder], check=True)
            deb.unlink()
    return release, image


# Debian 12's own is 6.1, and there make setup-kernel brings the headers.
@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_loads_switches_and_unloads_on_debians_kernel(version: str) -> None:
    release, image = debian_kernel(version)
    files = {
        "/bin/count": compiled("count.c", "-static"),
        "/livepatch.sh": kernel_livepatch.SCRIPT,
        "/fdscale.ko": kernel_livepatch.build_module(release),
    }
    variants = "stock-6.12,patch-1,series-v3,merged-6.13,one-level+cond-clear"
    knob = "/sys/module/fdscale/parameters/variant"
    jobs = [
        "/livepatch.sh load /fdscale.ko",
        f"cat {knob}; cat /sys/module/fdscale/parameters/flavour; "
        "stat -c %a:%u /sys/module/fdscale/parameters/* | sort -u",
        f"/bin/count --variants {variants} --rows dup-close@none,dup-close@low:64",
        f"echo no-such > {knob}",
        f"cat {knob}",
        "/livepatch.sh load /fdscale.ko",
        "/livepatch.sh unload",
        "/livepatch.sh unload",
        "/bin/count --variants - --rows dup-close@low:64",
    ]
    guest = boot(image, jobs, files, Machine(), counting(), 1800)
    assert guest.release == release
    said = [(j.status, j.text(), j.stderr.decode()) for j in guest.jobs]
    assert said[0] == (0, "", "")
    assert said[1][1].split() == ["stock-6.12", "livepatch", "400:0", "600:0"]
    assert said[2][0] == 0, said[2]
    counts = {
        (d["row"], d["variant"]): d["kernel"]
        for d in map(json.loads, said[2][1].splitlines())
    }
    # What the searches are for: v3 loses its gain with word 0 full.
    assert counts["dup-close@none", "series-v3"] < counts["dup-close@none", "patch-1"]
    for row in ("dup-close@none", "dup-close@low:64"):
        assert counts[row, "merged-6.13"] < counts[row, "patch-1"]
        assert counts[row, "patch-1"] < counts[row, "stock-6.12"]
    low = "dup-close@low:64"
    assert counts[low, "series-v3"] > counts[low, "patch-1"]
    assert said[3][0] != 0
    assert said[4][1] == "one-level+cond-clear\n"
    assert said[5][0] == 3 and "loaded already" in said[5][2]
    assert said[6] == (0, "", "")
    assert said[7][0] == 3 and "not loaded" in said[7][2]
    bare = json.loads(said[8][1])["kernel"]
    assert bare < counts[low, "stock-6.12"]  # the way through the livepatch


# What ./run.py kernel load does, without what its other commands import; again and
# again, after each word that makes the kernel stricter: once it starts slowly enough.
DOOR = """\
import sys
from bench.kernel_livepatch import load
from bench.problem import Problem
for path, word in [a.split("=") for a in sys.argv[1:]]:
    if word:
        with open(path, "w") as f:
            f.write(word)
    try:
        print("0", load())
    except Problem as e:
        print(e.status, e)
"""
ROOT = Path(__file__).resolve().parent.parent
LIST = (
    "import sys, encodings.ascii, bench.kernel_livepatch; "
    "print(*{f for m in [*sys.modules.values()] "
    "if (f := getattr(m, '__file__', None))}, sep='\\n')"
)


def python_with_the_door(tmp_path: Path) -> dict[str, Path]:
    """An interpreter, what the door imports, and the door, for a guest."""
    done = subprocess.run(
        [sys.executable, "-c", LIST], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = [Path(line) for line in done.stdout.splitlines()]
    needed = {lib for f in files if f.suffix == ".so" for lib in libraries(f)}
    out = {str(f): f for f in {*files, *needed}}
    # The tree may lie where the guest mounts something, as in /tmp.
    inside = {p: f for p, f in out.items() if f.is_relative_to(ROOT)}
    out = {p: f for p, f in out.items() if p not in inside}
    out |= {f"/fdscale/{f.relative_to(ROOT)}": f for f in inside.values()}
    door = tmp_path / "door.py"
    door.write_text(DOOR)
    python = Path(sys.executable).resolve()
    return {**out, "/door.py": door, "/usr/bin/python3": python}


def test_a_guest_that_takes_no_module_of_ours_is_told_why(tmp_path: Path) -> None:
    """Debian's kernel, each time a degree stricter; what it says is what it does."""
    release, image = debian_kernel("6.1")
    files = {
        "/livepatch.sh": kernel_livepatch.SCRIPT,
        "/fdscale.ko": kernel_livepatch.build_module(release),
        **python_with_the_door(tmp_path),
    }
    lockdown = "/sys/kernel/security/lockdown"
    steps = ["=", "/sys/module/module/parameters/sig_enforce=Y"]
    steps += [f"{lockdown}={degree}" for degree in ("integrity", "confidentiality")]
    jobs = [
        "mount -t securityfs none /sys/kernel/security; "
        f"PYTHONPATH=/fdscale PYTHONHOME=/usr python3 /door.py {' '.join(steps)}",
        "/livepatch.sh load /fdscale.ko",
    ]
    accel = ["-accel", "tcg", "-cpu", "Nehalem"]
    guest = boot(image, jobs, files, Machine(), accel, 600)
    door, kernels_own = guest.jobs
    assert door.status == 0, door.stderr
    said = door.text().splitlines()
    assert [line[:2] for line in said] == [f"{COULD_NOT} "] * len(steps), said
    # Nothing stands in the way of a guest as it is but that it has no headers.
    assert f"linux-headers-{release} is not installed" in said[0]
    assert "signed modules only" in said[1]
    assert "locked down" in said[2] and "[integrity]" in said[2]
    assert "locked down" in said[3] and "[confidentiality]" in said[3]
    assert kernels_own.status == COULD_NOT
    assert kernels_own.stderr.startswith(b"livepatch: insmod: ")
    assert kernels_own.stderr.count(b"\n") == 1
