"""TRL001: a file that cannot be parsed. The engine reports it; a file with a syntax tree has no such finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.domain.project import Context


def check(_: Context) -> Iterator[Finding]:
    """Nothing: the file was parsed."""
    return iter(())
