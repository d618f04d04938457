"""TRL002: a suppression comment that suppresses nothing. The engine asks when it knows what the other rules have found.

A code is called unused only where the rules that it names have run: of a rule that did not, nothing is known.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.config.settings import did_you_mean
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.suppressions import Suppression
from torchrepro_lint.source.text import Lines, Span
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.trace.traces import Context

UNUSED_SUPPRESSION = "TRL002"
# Whether a file can be checked in time depends on the machine; a comment that names TRL002 hides what is said of it.
_NEVER_JUDGED = frozenset({"TRL001", UNUSED_SUPPRESSION})
_OURS = lazy_pattern(r"TRL[0-9]+", re.IGNORECASE)
_PREFIX = lazy_pattern(r"[A-Z]+[0-9]*")
_IDLE = "suppresses nothing"
# Of so many items in one list none is compared with all names.
_MANY = 20


def check(_: Context) -> Iterator[Finding]:
    """Nothing: the engine asks ``unused_suppressions`` when the other rules have run."""
    return iter(())


class RulesRun(Record, frozen=True):
    """What ran on a file: all rules of the table, the codes of those that ran, and what they found, suppressed or not."""

    table: Sequence[Rule]
    codes: frozenset[str]
    found: Sequence[Finding]


def unused_suppressions(lines: Lines, comments: Iterable[Suppression], run: RulesRun) -> Iterator[Finding]:
    """One finding for each comment of which something suppresses nothing, with the fix that removes that."""
    judge = _Judge(lines, run)
    inside = (one for one in comments if one.comment is not None)
    for comment, group in groupby(inside, key=lambda one: one.comment):
        assert comment is not None
        verdicts = [each for one in group if (each := judge.verdict(one)).reasons]
        if verdicts:
            from torchrepro_lint.checks.fixes.suppression_removal import removal

            place = Span(verdicts[0].suppression.span.start, verdicts[-1].suppression.span.end)
            message = ", ".join(dict.fromkeys(each.message for each in verdicts))
            remedy = removal(lines, comment, [(each.suppression, each.items) for each in verdicts])
            yield Finding(UNUSED_SUPPRESSION, place, message, remedy)


class _Verdict(Record, frozen=True):
    """What is wrong with a suppression, if anything: the numbers of the items of its list that go (None: all of it)."""

    suppression: Suppression
    reasons: tuple[str, ...] = ()
    items: frozenset[int] | None = None

    @property
    def message(self) -> str:
        several = self.items is not None and len(self.items) > 1
        what = "the comment" if self.items is None else f"{'them' if several else 'it'} from the comment"
        return f"{', '.join(self.reasons)}; remove {what}"


class _Judge:
    """Judges the suppressions of a file by what its rules have found."""

    def __init__(self, lines: Lines, run: RulesRun) -> None:
        self._run = run
        self._found = sorted((lines.position(one.span.start).row, one.code) for one in run.found)
        self._names = {rule.code: rule.name for rule in run.table}
        self._in_rows: dict[tuple[int, int], frozenset[str]] = {}

    def verdict(self, one: Suppression) -> _Verdict:
        """What is wrong with a suppression."""
        if one.misplaced:
            return _Verdict(one, ("ignore-file suppresses nothing below the first statement",))
        if one.codes is None:
            idle = one.own and self._has_run(None) and not self._codes_in(one.rows)
            return _Verdict(one, (f"torchrepro: ignore {_IDLE} {_where(one)}",) if idle else ())
        if not one.codes:
            return _Verdict(one, ("torchrepro: ignore[] names no rule",))
        wrong = dict(self._reasons(one, one.codes))
        items = None if len(wrong) == len(one.codes) else frozenset(wrong)
        return _Verdict(one, tuple(_joined(one, one.codes, wrong)), items)

    def _reasons(self, one: Suppression, codes: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Which items of a list go, by number, and why. Codes of other tools stay, and what is used or not judged."""
        seen: set[str] = set()
        for number, item in enumerate(codes):
            if not one.own and not _OURS.fullmatch(item):
                continue
            if not any(_names(rule, item) for rule in self._run.table):
                yield number, f"{item} is no rule{self._meant(item) if len(codes) < _MANY else ''}"
            elif item in seen:
                yield number, f"{item} is named twice"
            elif self._has_run(item) and not self._hides(one, item):
                yield number, _IDLE
            seen.add(item)

    def _meant(self, item: str) -> str:
        """The name that a misspelt name is near to. Of a wrong number nobody knows which was meant."""
        if _PREFIX.fullmatch(item):
            return ""
        near = did_you_mean(item, (name for rule in self._run.table for name in (rule.code, rule.name)))
        return near and f" ({near.removeprefix('; ')})"

    def _has_run(self, item: str | None) -> bool:
        """Whether the rules ran that an item names; of a prefix, or without an item, those that are on by default."""
        named = [rule for rule in self._run.table if item is None or _names(rule, item)]
        if item is not None and any(rule.code in _NEVER_JUDGED for rule in named):
            return False
        exact = len(named) == 1
        asked = {rule.code for rule in named if exact or rule.default} - _NEVER_JUDGED
        return asked <= self._run.codes and any(rule.code in self._run.codes for rule in named)

    def _hides(self, one: Suppression, item: str) -> bool:
        alone, row = one._replace(codes=(item,)), one.rows[0]
        return any(alone.covers(row, code, self._names[code]) for code in self._codes_in(one.rows))

    def _codes_in(self, rows: tuple[int, int]) -> frozenset[str]:
        """The codes of what was found in some rows."""
        if rows not in self._in_rows:
            start, end = (bisect_left(self._found, (row, "")) for row in (rows[0], rows[1] + 1))
            self._in_rows[rows] = frozenset(code for _, code in self._found[start:end])
        return self._in_rows[rows]


def _names(rule: Rule, item: str) -> bool:
    return rule.name == item or (_PREFIX.fullmatch(item) is not None and rule.code.startswith(item))


def _where(one: Suppression) -> str:
    return "in this file" if one.is_for_file else "on this line"


def _joined(one: Suppression, codes: Sequence[str], wrong: dict[int, str]) -> Iterator[str]:
    """The reasons, each once; the codes that suppress nothing together."""
    idle = list(dict.fromkeys(codes[number] for number, why in wrong.items() if why == _IDLE))
    if idle:
        listed = " and ".join((", ".join(idle[:-1]), idle[-1])) if len(idle) > 1 else idle[0]
        yield f"{listed} {_IDLE if len(idle) == 1 else 'suppress nothing'} {_where(one)}"
    yield from dict.fromkeys(why for why in wrong.values() if why != _IDLE)
