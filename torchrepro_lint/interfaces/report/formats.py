"""The renderers of diagnostics by the name of their format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.view import View

# Other names of formats.
_MODULES = {"concise": "flake8"}
Render = Callable[[Sequence[Diagnostic], View], str]


def renderer(name: str) -> Render:
    """The ``render`` of a format; ``FORMATS`` of ``config.settings`` has the names. Only that format is imported."""
    found: Render = import_module(
        f"torchrepro_lint.interfaces.report.{_MODULES.get(name, name).replace('-', '_')}"
    ).render
    return found
