"""The summary: the line on standard error that ends a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from torchrepro_lint.engine.diagnostic import Diagnostic

_SEVERITIES = ("error", "warning", "note")


def render(
    diagnostics: Collection[Diagnostic],
    files: int,
    fixed: int,
    unsafe: bool,
    unwritten: int = 0,
    known: int = 0,
    not_followed: str = "",
) -> str:
    """What was found and how much is fixable: ``files`` were linted, ``fixed`` findings were fixed, the fixes of
    ``unwritten`` ones could not be written, and ``known`` ones are left out since the baseline lists them. ``not_followed`` is the
    sentence of ``unfollowed``.
    """
    if not files:
        return "No Python files or notebooks found; --show-settings shows what is excluded"
    told = _told(diagnostics, files, fixed, unsafe, unwritten, known)
    return f"{told}; {not_followed}" if not_followed else told


def unfollowed(programs: int, count: int) -> str:
    """``2 of 3 programs lead into code that could not be followed (TRL003)``; empty where none does."""
    verb = "leads" if count == 1 else "lead"
    return (
        f"{count} of {counted(programs, 'program')} {verb} into code that could not be followed (TRL003)"
        if count
        else ""
    )


def _told(diagnostics: Collection[Diagnostic], files: int, fixed: int, unsafe: bool, unwritten: int, known: int) -> str:
    if unwritten and not diagnostics:
        return f"{counted(unwritten, 'finding')} left; {'its fix' if unwritten == 1 else 'their fixes'} could not be written"
    if not diagnostics:
        none = f"No {'new ' * bool(known)}findings {'left ' * bool(fixed)}in {counted(files, 'file')}"
        return none + (f"; {known} in the baseline" if known else "")
    found = by_severity(one.severity for one in diagnostics)
    where = counted(len({one.filename for one in diagnostics}), "file")
    told = f"{found} left in {where}" if fixed else f"Found {found} in {where}"
    more = f", {unwritten} more whose fixes could not be written" if unwritten else ""
    more += f", and {known} more in the baseline" if known else ""
    return f"{told}{more}{_fixable(diagnostics, unsafe)}"


def by_severity(severities: Iterable[str]) -> str:
    """The number of findings of each severity, the gravest first: ``1 error, 7 warnings, 2 notes``; without any ``no findings``."""
    counts = Counter(severities)
    return ", ".join(counted(counts[each], each) for each in _SEVERITIES if counts[each]) or "no findings"


def by_rule(codes: Collection[str]) -> str:
    """Fixed findings by rule, most often first: ``3 findings: 2 TRL302, 1 TRL101``."""
    counts = sorted(Counter(codes).items(), key=lambda each: (-each[1], each[0]))
    return f"{counted(len(codes), 'finding')}: {', '.join(f'{count} {code}' for code, count in counts)}"


def _fixable(diagnostics: Collection[Diagnostic], unsafe: bool) -> str:
    fixes = [one.fix for one in diagnostics if one.fix]
    ready = sum(fix.safe or unsafe for fix in fixes)
    more = len(fixes) - ready
    if ready:
        return f"; {ready} fixable with --fix" + (f", {more} more with --unsafe-fixes" if more else "")
    return f"; {more} fixable with --fix --unsafe-fixes" if more else ""


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
