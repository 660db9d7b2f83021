#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""deny.py CALL,CALL.. COMMAND..: what a container's filter does: EPERM, by seccomp."""

import errno
import os
import sys

import seccomp  # type: ignore[import]

rules = seccomp.SyscallFilter(seccomp.ALLOW)
for name in sys.argv[1].split(","):
    rules.add_rule(seccomp.ERRNO(errno.EPERM), name)
rules.load()
os.execvp(sys.argv[2], sys.argv[2:])
