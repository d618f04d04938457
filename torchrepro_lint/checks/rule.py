"""Rules and findings: the records that each check and the engine share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torchrepro_lint.source.text import Fix, NoFix, Span
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.trace.call_paths import CallPathStep
from torchrepro_lint.trace.traces import Context

SEVERITIES = ("note", "warning", "error")


class Finding(Record, frozen=True):
    """One cause at one place of the module under check; ``severity`` where it is not that of its rule.

    ``remedy`` is the fix, or why there is none; None where the rule as a whole has none (``Rule.unfixed``).
    ``steps`` lead from the entry point to the cause, where it lies elsewhere.
    """

    code: str
    span: Span
    message: str
    remedy: Fix | NoFix | None = None
    severity: str = ""
    steps: tuple[CallPathStep, ...] = ()

    @property
    def fix(self) -> Fix | None:
        """The fix, if there is one."""
        return self.remedy if isinstance(self.remedy, Fix) else None


class Rule(Record, frozen=True):
    """A rule of the table in ``checks``; its page is ``rules/<code>-<name>.md``.

    ``default`` says whether it belongs to the default selection. ``severity`` is one of ``SEVERITIES``. ``unfixed`` says
    in one sentence why a finding that carries neither a fix nor a reason has no fix.
    """

    code: str
    name: str
    severity: str
    default: bool
    check: Callable[[Context], Iterable[Finding]]
    unfixed: str = ""


def why_unfixed(finding: Finding, rule: Rule) -> str:
    """Why a finding has no fix, in one sentence; empty where it has one."""
    if finding.fix is not None:
        return ""
    return finding.remedy.reason if isinstance(finding.remedy, NoFix) else rule.unfixed
