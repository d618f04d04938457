"""Rules and findings: the records that each check and the engine share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source.text import Fix, Span

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.call_paths import CallPathStep

SEVERITIES = ("note", "warning", "error")


class Finding(NamedTuple):
    """One cause at one place of the module under check; ``severity`` where it is not that of its rule.

    ``steps`` lead from the entry point to the cause, where it lies elsewhere.
    """

    code: str
    span: Span
    message: str
    fix: Fix | None = None
    severity: str = ""
    steps: tuple[CallPathStep, ...] = ()


class Rule(NamedTuple):
    """A rule of the table in ``checks``; its page is ``rules/<code>-<name>.md``.

    ``default`` says whether it belongs to the default selection. ``severity`` is one of ``SEVERITIES``.
    """

    code: str
    name: str
    severity: str
    default: bool
    check: Callable[[Context], Iterable[Finding]]
