"""Colours of the output for a terminal: one style for each severity, and those of source excerpts and diffs."""

from __future__ import annotations

# What flake8 writes, too; a terminal that knows no colours takes it as the end of a style.
END = "\033[m"
BOLD = "\033[1m"
RED, GREEN, CYAN = "\033[31m", "\033[32m", "\033[36m"
# The line numbers of an excerpt, and the bar beside the code.
GUTTER = "\033[94m"
SEVERITIES = {"note": "\033[1;36m", "warning": "\033[1;33m", "error": "\033[1;31m"}


def paint(text: str, style: str, colour: bool) -> str:
    """The text in a style, or as it is without ``colour``."""
    return f"{style}{text}{END}" if colour and text else text
