#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The door to fdscale's runner: see ./run.py --help."""

import sys

from bench.cli import main

sys.exit(main())
