"""flake8's default format, letter for letter: ``path:row:column: code message``."""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.diagnostic import Diagnostic

_PLAIN = "{0.display}:{0.start.row}:{0.start.column}: {0.code} {0.message}\n"
_COLOUR = (
    "\033[1m{0.display}\033[m\033[36m:\033[m{0.start.row}\033[36m:\033[m{0.start.column}\033[36m:\033[m"
    " \033[1m\033[31m{0.code}\033[m {0.message}\n"
)


def render(diagnostics: Iterable[Diagnostic], colour: bool = False) -> str:
    """One line for each finding; in colour as flake8 colours them."""
    pattern = _COLOUR if colour else _PLAIN
    return "".join(pattern.format(one) for one in diagnostics)
