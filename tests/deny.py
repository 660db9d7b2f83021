#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""deny.py ERROR CALL,CALL.. COMMAND..: what a container's filter does, by seccomp.

CALL is a system call's name, alone or with an argument: socket:0=10 is AF_INET6's.
"""

import errno
import os
import re
import sys

import seccomp  # type: ignore[import]

rules = seccomp.SyscallFilter(seccomp.ALLOW)
for rule in sys.argv[2].split(","):
    name, *words = re.split("[:=]", rule)
    where = [seccomp.Arg(int(words[0]), seccomp.EQ, int(words[1], 0))] if words else []
    rules.add_rule(seccomp.ERRNO(getattr(errno, sys.argv[1])), name, *where)
rules.load()
os.execvp(sys.argv[3], sys.argv[3:])
