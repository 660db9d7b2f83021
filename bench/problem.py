# SPDX-License-Identifier: GPL-2.0-only
"""What a user must be told: one line, and the exit status that goes with it."""

import re

DONE = 0
ANSWER_NO = 1
USAGE = 2
COULD_NOT = 3
INCONCLUSIVE = 125
INTERRUPTED = 130


# What a terminal obeys, or what is half a character: part of no name.
NOT_PLAIN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def one_line(text: str) -> str:
    """A text with the words of users or files in it, fit for a terminal."""
    joined = "; ".join(text.splitlines())
    return NOT_PLAIN.sub(lambda found: f"\\x{ord(found[0]):02x}", joined)


class Problem(Exception):
    """One line that names the thing and the remedy; ends the program."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(one_line(text))
        self.status = status
