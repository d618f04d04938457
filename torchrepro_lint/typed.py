"""What a setting may be: readers of values from TOML or JSON."""

from __future__ import annotations

import reprlib
from collections.abc import Callable

from torchrepro_lint.source.globs import read_line


def strings(value: object) -> tuple[str, ...]:
    """A list of strings; raises ``TypeError``."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("expected a list of strings")
    return tuple(value)


def globs(value: object) -> tuple[str, ...]:
    """A list of globs; raises ``TypeError`` or ``ValueError``."""
    found = strings(value)
    for each in found:
        require_glob(each)
    return found


def require_glob(text: str) -> None:
    """Raise ``ValueError`` where a text is no glob."""
    try:
        read_line(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no glob: {error}") from None


def string(value: object) -> str:
    """A string; raises ``TypeError``."""
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def flag(value: object) -> bool:
    """True or false; raises ``TypeError``."""
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def one_of(*choices: str) -> Callable[[object], str]:
    """Reads one of some words; the reader raises ``ValueError``."""

    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, not {told(value)}")
        return str(value)

    return read


def told(value: object) -> str:
    """A wrong value as a message has it: a text or number of thousands of letters is cut short."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number whose digits Python does not write
        return "so large a number"
