"""TOML of the standard library, or its forerunner below Python 3.11."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
    from tomllib import TOMLDecodeError
else:
    import tomli as tomllib
    from tomli import TOMLDecodeError

__all__ = ["TOMLDecodeError", "loads"]


def loads(text: str) -> dict[str, Any]:
    """The tables of a text; raises ``TOMLDecodeError``, also for what is nested too deeply to be read."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TOMLDecodeError("nested too deeply") from None
