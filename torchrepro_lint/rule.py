"""What a rule is, what it is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.text import Fix, Lines, Position, Span

if TYPE_CHECKING:
    from torchrepro_lint.catalogue import Catalogue
    from torchrepro_lint.facts import Facts
    from torchrepro_lint.project import Project
    from torchrepro_lint.settings import Settings

SEVERITIES = ("note", "warning", "error")


class Step(NamedTuple):
    """A step of the way from an entry point to a cause: a place of the project, and what happens there."""

    path: str
    place: Position
    text: str


class Finding(NamedTuple):
    """One cause at one place of the module under check; ``severity`` where it is not that of its rule.

    ``steps`` lead from the entry point to the cause, where it lies elsewhere.
    """

    code: str
    span: Span
    message: str
    fix: Fix | None = None
    severity: str = ""
    steps: tuple[Step, ...] = ()


class Context(NamedTuple):
    """All that a rule may look at; ``path`` is the module's, with slashes, relative to the project's root."""

    path: str
    facts: Facts
    lines: Lines
    project: Project
    catalogue: Catalogue
    settings: Settings


class Rule(NamedTuple):
    """A rule of the table in ``checks``; its page is ``rules/<code>-<name>.md``.

    ``default`` says whether it belongs to the default selection. ``severity`` is one of ``SEVERITIES``.
    """

    code: str
    name: str
    severity: str
    default: bool
    check: Callable[[Context], Iterable[Finding]]
