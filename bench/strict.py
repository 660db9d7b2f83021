# SPDX-License-Identifier: GPL-2.0-only
"""Files that others wrote, read strictly: a surprise is refused, not repaired."""

from __future__ import annotations

import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import jsonschema

from bench.problem import NOT_PLAIN, USAGE, Problem, one_line

KEPT = Path(__file__).resolve().parent.parent / "config" / "schema" / "kept.json"
MOST = 1 << 20  # bytes of a file that people write
Wrong = tuple[list[Any], str]  # the path to a value, and what is wrong with it

_types = jsonschema.Draft7Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: type(value) is int  # and not 2.0
)
Validator = jsonschema.validators.extend(
    jsonschema.Draft7Validator, type_checker=_types
)


def check_regular(path: Path) -> None:
    """A results folder's file is no pipe to wait at; raises Problem(USAGE)."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise Problem(USAGE, f"{path}: not a regular file")


def text_of(path: Path, what: str, most: int = MOST) -> str:
    """A file's text; raises Problem(USAGE) that begins with WHAT."""
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as e:  # ValueError: a name with a NUL
        raise Problem(USAGE, f"{what}: {getattr(e, 'strerror', e)}") from None
    if len(data) > most:
        raise Problem(USAGE, f"{what}: larger than {most >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Problem(USAGE, f"{what}: not UTF-8 text") from None


def toml_of(text: str, what: str) -> dict[str, Any]:
    """A TOML file; raises Problem(USAGE) that begins with WHAT."""
    try:
        return tomllib.loads(text)
    except ValueError as e:  # also of an integer of thousands of digits
        raise Problem(USAGE, f"{what}: {e}") from None
    except RecursionError:
        raise Problem(USAGE, f"{what}: nested too deep") from None


def _no_number(word: str) -> NoReturn:
    """NaN and Infinity are no JSON, whatever Python thinks."""
    raise ValueError(f"{word} is no number in JSON")


_decoder = json.JSONDecoder(parse_constant=_no_number)


def json_of(text: str) -> Any:
    """A JSON value; raises ValueError."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def tame(data: Any) -> Any:
    """The same with words that are fit for a terminal: what /proc says is nobody's
    choice."""
    if isinstance(data, dict):
        return {one_line(key): tame(value) for key, value in data.items()}
    if isinstance(data, list):
        return [tame(value) for value in data]
    return one_line(data) if isinstance(data, str) else data


def unfit(data: Any, keys: list[Any]) -> list[Wrong]:
    """What no schema refuses: nan and inf, which are numbers in TOML; numbers that
    overflow what is worked out of them; words that would act on a terminal."""
    found: list[Wrong] = []
    if isinstance(data, dict):
        for key, value in data.items():
            if NOT_PLAIN.search(key):
                found.append(([*keys, key], "a control character in a name"))
            found += unfit(value, [*keys, key])
    elif isinstance(data, list):
        for at, value in enumerate(data):
            found += unfit(value, [*keys, at])
    elif isinstance(data, str) and NOT_PLAIN.search(data):
        found.append((keys, "a control character, or no UTF-8, in a word"))
    elif isinstance(data, float) and not math.isfinite(data):
        found.append((keys, f"{data} is no number to reckon with"))
    elif isinstance(data, int) and abs(data) >= 1 << 64:
        found.append((keys, "beyond 64 bits"))
    return found


def kept(path: Path, kind: str) -> dict[str, Any]:
    """What a former run kept for later ones; raises OSError where there is none,
    ValueError where it is not what config/schema/kept.json says of its kind."""
    data = json_of(path.read_text(encoding="utf-8"))
    schema = json.loads(KEPT.read_text())[kind]
    for error in Validator(schema).iter_errors(data):
        raise ValueError(error.message[:200])
    for _, why in unfit(data, []):
        raise ValueError(why)
    assert isinstance(data, dict)
    return data
