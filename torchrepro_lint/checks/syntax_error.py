"""TRL001: the engine itself reports what can't be parsed; a file that has facts has no such finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.domain.project import Context


def check(_: Context) -> Iterator[Finding]:
    """Nothing: there are facts."""
    return iter(())
