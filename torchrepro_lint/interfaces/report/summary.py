"""The summary: the line on standard error that ends a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from torchrepro_lint.engine.diagnostic import Diagnostic


def render(diagnostics: Collection[Diagnostic], files: int, fixed: int, unsafe: bool) -> str:
    """What was found and how much is fixable: ``files`` were linted, ``fixed`` findings were fixed."""
    if not files:
        return "No Python files or notebooks found; --show-settings shows what is excluded"
    if not diagnostics and not fixed:
        return f"No errors in {counted(files, 'file')}"
    where = len({one.filename for one in diagnostics})
    found = f"Found {counted(len(diagnostics) + fixed, 'error')}"
    if fixed:
        return f"{found} ({fixed} fixed, {len(diagnostics)} remaining){_fixable(diagnostics, unsafe)}"
    return f"{found} in {counted(where, 'file')}{_fixable(diagnostics, unsafe)}"


def by_rule(codes: Collection[str]) -> str:
    """Fixed findings by rule, most often first: ``3 errors: 2 TRL302, 1 TRL101``."""
    counts = sorted(Counter(codes).items(), key=lambda each: (-each[1], each[0]))
    return f"{counted(len(codes), 'error')}: {', '.join(f'{count} {code}' for code, count in counts)}"


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
