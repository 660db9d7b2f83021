# SPDX-License-Identifier: GPL-2.0-only
"""What a user must be told: one line, and the exit status that goes with it."""

DONE = 0
ANSWER_NO = 1
USAGE = 2
COULD_NOT = 3
INCONCLUSIVE = 125
INTERRUPTED = 130


class Problem(Exception):
    """One line that names the thing and the remedy; ends the program."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
