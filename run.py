#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The door to fdscale's runner: see ./run.py --help."""

import os
import signal
import sys

# Until the imports are done, which takes half a second, Ctrl-C has nothing to save.
signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))

from bench.cli import main  # noqa: E402

status = main()
# All is said and kept: a signal from here on ends it quietly too.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, lambda number, frame: os._exit(130))
sys.exit(status)
