# SPDX-License-Identifier: GPL-2.0-only
"""A made-up /proc and /sys: a quiet two-node machine on which every check is ok."""

from pathlib import Path

CPU = "sys/devices/system/cpu"
KERNEL = "proc/sys/kernel"
CLOCK = "sys/devices/system/clocksource/clocksource0"
HEAT = "thermal_throttle"

CPUINFO = """\
processor\t: {n}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Test CPU
microcode\t: 0xd0003a5
flags\t\t: fpu tsc constant_tsc nonstop_tsc

"""

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             63432                63432                processes
Max open files            1024                 524288               files
"""

STATUS = """\
Name:\tpython3
Uid:\t1000\t1000\t1000\t1000
CapEff:\t0000000000000000
Seccomp:\t0
Cpus_allowed_list:\t0-3
"""

GROUP2 = "0::/user.slice/bench"
MOUNT2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"

QUIET: dict[str, str] = {
    "boot/config-6.12.9-amd64": "CONFIG_SLUB=y\n# CONFIG_KASAN is not set\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "proc/2/comm": "kthreadd",
    "proc/812/comm": "sshd",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet audit=0",
    "proc/cpuinfo": "".join(CPUINFO.format(n=n) for n in range(4)),
    "proc/loadavg": "0.05 0.10 0.08 1/402 9123",
    "proc/meminfo": "MemTotal:       65674352 kB\nMemFree: 1 kB\n",
    "proc/self/attr/current": "unconfined",
    "proc/self/cgroup": GROUP2,
    "proc/self/limits": LIMITS,
    "proc/self/loginuid": "1000",
    "proc/self/mountinfo": MOUNT2,
    "proc/self/mounts": "/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n",
    "proc/self/personality": "00000000",
    "proc/self/stat": "77 (a) b) R " + "0 " * 35 + "1 0 0\n",  # runs on PU 1
    "proc/self/status": STATUS,
    "proc/stat": "cpu  1000 0 500 90000 20 0 10 0 0 0\ncpu0 1 2 3\n",
    "proc/sys/fs/file-max": "9223372036854775807",
    "proc/sys/fs/file-nr": "1344\t0\t9223372036854775807",
    "proc/sys/fs/nr_open": "1048576",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
    f"{KERNEL}/hostname": "quiet",
    f"{KERNEL}/numa_balancing": "0",
    f"{KERNEL}/osrelease": "6.12.9-amd64",
    f"{KERNEL}/perf_event_paranoid": "1",
    f"{KERNEL}/random/boot_id": "b1",
    f"{KERNEL}/randomize_va_space": "2",
    f"{KERNEL}/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1",
    f"{CPU}/cpu0/{HEAT}/core_throttle_count": "0",
    f"{CPU}/cpu1/{HEAT}/core_throttle_count": "0",
    f"{CPU}/cpufreq/policy0/scaling_driver": "intel_pstate",
    f"{CPU}/cpufreq/policy0/scaling_governor": "performance",
    f"{CPU}/cpufreq/policy0/scaling_max_freq": "2400000",
    f"{CPU}/cpufreq/policy0/scaling_min_freq": "800000",
    f"{CPU}/cpufreq/policy1/scaling_driver": "intel_pstate",
    f"{CPU}/cpufreq/policy1/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/isolated": "",
    f"{CPU}/nohz_full": "",
    f"{CPU}/online": "0-3",
    f"{CPU}/smt/control": "off",
    f"{CPU}/vulnerabilities/meltdown": "Not affected",
    f"{CPU}/vulnerabilities/old_microcode": "Not affected",
    f"{CPU}/vulnerabilities/spectre_v2": "Mitigation: Enhanced / Automatic IBRS",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm",
    f"{CLOCK}/current_clocksource": "tsc",
    "sys/bus/event_source/devices/cpu": "",
    "sys/bus/event_source/devices/software": "",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node1/cpulist": "2-3",
    "sys/fs/cgroup/cpuset.cpus.effective": "0-3",
    "sys/fs/cgroup/user.slice/bench/cpu.max": "max 100000",
    "sys/fs/cgroup/user.slice/bench/cpuset.cpus.effective": "0-3",
    "sys/fs/cgroup/user.slice/cpu.max": "max 100000",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/kernel/security/lsm": "lockdown,capability,landlock,yama,apparmor",
    "tmp/.keep": "",
    "run/.keep": "",
}
for _n in range(4):
    QUIET[f"{CPU}/cpu{_n}/cpufreq/scaling_cur_freq"] = f"2{_n}00000"
    QUIET[f"{CPU}/cpu{_n}/cpufreq/scaling_governor"] = "performance"
    _where = f"{CPU}/cpu{_n}"
    QUIET[f"{_where}/topology/thread_siblings_list"] = str(_n)
    QUIET[f"{_where}/topology/physical_package_id"] = str(_n // 2)
    QUIET[f"{_where}/cache/index3/shared_cpu_list"] = "0-1" if _n < 2 else "2-3"


def put(prefix: Path, files: dict[str, str | None]) -> None:
    """Write files below PREFIX; None removes one."""
    for name, text in files.items():
        path = prefix / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n" if text else "")


def quiet(prefix: Path) -> Path:
    """The quiet machine, below PREFIX."""
    put(prefix, dict(QUIET))
    return prefix
