#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Stands for build/fdscale while the driver runs in a guest.

The words go to the session ($FDSCALE_GUEST, bench/kernel_session.py); its
answer is this program's output and exit status.
"""

import json
import os
import socket
import sys

COULD_NOT = 3
INTERRUPTED = 130


def main() -> int:
    """One call of the driver."""
    door = os.environ.get("FDSCALE_GUEST")
    if not door:
        print("fdscale: no guest is up: ./run.py kernel sweep", file=sys.stderr)
        return COULD_NOT
    # The one command that reads: the runner has it judge its cells.
    stdin = sys.stdin.read() if "--dry-run" in sys.argv else ""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(door)
            s.sendall(json.dumps([sys.argv[1:], stdin]).encode() + b"\n")
            with s.makefile(encoding="utf-8") as f:
                status, out, err = json.loads(f.read())
        except (OSError, ValueError) as e:
            print(f"fdscale: the guest is gone: {e}", file=sys.stderr)
            return COULD_NOT
        except KeyboardInterrupt:
            return INTERRUPTED
    sys.stdout.write(out)
    sys.stderr.write(err)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
