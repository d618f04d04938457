"""Python's own parser, without the warnings that it gives about the code it reads."""

from __future__ import annotations

import ast
import warnings
from typing import Any

# A mistake; a NUL or a lone surrogate, an integer of too many digits; nested too deeply. (libcst is asked then.)
REFUSALS = (SyntaxError, ValueError, RecursionError, MemoryError)

# Warnings know their code by this name. One filter on it stays in place: `warnings.catch_warnings` changes the whole
# process for a while, and what another thread warns of meanwhile would be lost.
_NAME = "<torchrepro-lint reads>"


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of a module, or of an expression with the mode ``eval``. Raises one of ``REFUSALS``."""
    if not _hushed():
        warnings.filterwarnings("ignore", module=_NAME)
    return ast.parse(text, _NAME, mode)


def literal(raw: str) -> Any:
    """The value of a literal; None where this Python refuses it (an integer of 10,000 digits, ``0777``)."""
    try:
        return ast.literal_eval(parse(raw, "eval"))
    except REFUSALS:
        return None


def _hushed() -> bool:
    """Whether the filter is in place, and before all others: whoever resets the filters takes it away."""
    first = warnings.filters[0] if warnings.filters else None
    return first is not None and first[3] is not None and getattr(first[3], "pattern", "") == _NAME
