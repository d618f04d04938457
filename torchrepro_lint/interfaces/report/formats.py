"""The renderers of diagnostics by the name of their format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.view import View

Render = Callable[[Sequence[Diagnostic], View], str]


def renderer(name: str) -> Render:
    """The function that writes a format; ``settings.FORMATS`` has the names. A run loads only what it writes."""
    found: Render = import_module(f"torchrepro_lint.interfaces.report.{name.replace('-', '_')}").render
    return found
