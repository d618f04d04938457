"""The format ``concise``, byte for byte as flake8 writes it, so that its other name is ``flake8``: ``path:row:column: code message``.

In notebooks the place is ``path:cell 3:row:column``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.colours import SEVERITIES
from torchrepro_lint.interfaces.report.view import View, relative
from torchrepro_lint.source.errors import escaped_message, escaped_path
from torchrepro_lint.trace.call_paths import CallPathStep

_PLAIN = "{0.display}:{0.start}: {0.code} {0.message}\n"
_COLOUR = (
    "\033[1m{0.display}\033[m\033[36m:\033[m{0.start.line}\033[36m:\033[m{0.start.column}\033[36m:\033[m"
    " {1}{0.code}\033[m {0.message}\n"
)


def render(diagnostics: Iterable[Diagnostic], view: View) -> str:
    """One line for each diagnostic; ``verbose`` adds its call path, one step a line.

    Colours are flake8's, but for that of the code, which shows the severity.
    """
    pattern = _COLOUR if view.colour else _PLAIN
    clean = (
        one._replace(display=escaped_path(one.display), message=escaped_message(one.message)) for one in diagnostics
    )
    return "".join(
        pattern.format(one, SEVERITIES[one.severity]) + (_call_path(one) if view.verbose else "") for one in clean
    )


def step_location(step: CallPathStep) -> str:
    """The location of a step, ``model.py:5:12``; relative to the working directory if it lies below it."""
    return f"{escaped_path(relative(step.path, os.getcwd()))}:{step.place}"


def _call_path(one: Diagnostic) -> str:
    return "".join(f"    {step_location(step)}: {escaped_message(step.text)}\n" for step in one.steps)
