"""Whether fixes did what they promise: the file still parses, and the finding is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchrepro_lint.checking import Checker
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.reading import Reading, collected
from torchrepro_lint.source.decoding import edited
from torchrepro_lint.source.text import Edit, Fix, merge, moved, touched

# Rows and columns in messages move with what is written above them.
_NUMBER = re.compile(r"\d+")
_ENDLESS = "fixing it would go on for ever"


class Applied(NamedTuple):
    """What a round did: the findings before it by path, those whose fixes were applied, and all edits by path."""

    before: Mapping[str, tuple[Finding, ...]]
    taken: tuple[tuple[str, Finding], ...]
    edits: Mapping[str, tuple[Edit, ...]]


class Mistake(NamedTuple):
    """What is wrong with fixes of a file, and their titles. ``codes`` are of the findings whose fixes are to be left out;
    none where all are.
    """

    cause: str
    titles: tuple[str, ...]
    codes: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """What the user is told."""
        named = f" ({'; '.join(self.titles)})" if self.titles else ""
        return f"not fixed: {self.cause}{named}; this is a fault of torchrepro-lint, please report it"


def offered(
    checker: Checker, findings: Mapping[str, tuple[Finding, ...]], unsafe: bool, mistakes: Mapping[str, Mistake]
) -> list[tuple[str, Finding]]:
    """The findings whose fix may be applied: safe or asked for, in files that are given, and nothing of the mistakes."""
    given = {path for path, _ in checker.tree.given} - {path for path, each in mistakes.items() if not each.codes}
    left_out = {(path, code) for path, each in mistakes.items() for code in each.codes}
    return [
        (path, one)
        for path in sorted(findings)
        for one in findings[path]
        if one.fix is not None
        and (one.fix.safe or unsafe)
        and path in given
        and (path, one.code) not in left_out
        and given.issuperset(touched(path, one.fix))
    ]


def breaking(
    files: Mapping[str, Reading], taken: Iterable[tuple[str, Finding]], broken: set[str], parser: str
) -> dict[str, Mistake]:
    """The mistakes of a round after which files do not parse, by a ``parser`` of the settings: the fixes that break one alone,
    else all of its fixes.
    """
    suspects = [(path, one.fix) for path, one in taken if one.fix and broken.intersection(touched(path, one.fix))]
    guilty = [each for each in suspects if not _parses(files, *each, parser)] or suspects
    return _mistakes("the result would not parse", guilty)


class Step(NamedTuple):
    """A round: the findings whose fixes were applied, and what stands for the texts before and after by path."""

    taken: tuple[tuple[str, Finding], ...]
    texts: Mapping[str, tuple[int, int]]


def endless(steps: Sequence[Step]) -> dict[str, Mistake]:
    """The mistakes of rounds that come to no end: of a file whose text comes back, the fixes that lead from it to itself; of
    others, all.
    """
    found: dict[str, Mistake] = {}
    for path in steps[-1].texts:
        changing = [each for each in steps if path in each.texts]
        last = changing[-1].texts[path][1]
        back = next((at for at, each in reversed([*enumerate(changing)]) if each.texts[path][0] == last), len(changing))
        round_and_round = {
            (own, one.code, one.fix.title)
            for step in changing[back:]
            for own, one in step.taken
            if one.fix is not None and path in touched(own, one.fix)
        }
        for own, code, title in sorted(round_and_round):
            found[own] = also(found.get(own), Mistake(_ENDLESS, (title,), frozenset({code})))
        if not round_and_round:
            found[path] = Mistake(_ENDLESS, ())
    return found


def also(known: Mistake | None, other: Mistake) -> Mistake:
    """What is known to be wrong with a file, and what is found besides: where either is about all its fixes, both are."""
    if known is None or not known.codes or not other.codes:
        return known if known is not None and not known.codes else other
    return Mistake(known.cause, tuple(sorted({*known.titles, *other.titles})), known.codes | other.codes)


def remaining(last: Applied, findings: Mapping[str, tuple[Finding, ...]]) -> dict[str, Mistake]:
    """The mistakes of a round after which findings are still there that its fixes were to settle."""
    left = []
    was, taken, now = (_placed(each) for each in (_paired(last.before), last.taken, _paired(findings)))
    for path, one in last.taken:
        assert one.fix is not None
        places = {(path, start) for start in moved(one.span.start, last.edits.get(path, ()))}
        here = (path, one.span.start)
        before, settled = (sum(_same(one, other) for other in each.get(here, ())) for each in (was, taken))
        after = sum(_same(one, other) for place in places for other in now.get(place, ()))
        if after > before - settled:
            left.append((path, one.fix))
    return _mistakes("the finding would still be there", left)


def _paired(findings: Mapping[str, tuple[Finding, ...]]) -> Iterator[tuple[str, Finding]]:
    return ((path, one) for path, found in findings.items() for one in found)


def _placed(findings: Iterable[tuple[str, Finding]]) -> dict[tuple[str, int], list[Finding]]:
    """Findings by path and where they start."""
    found: dict[tuple[str, int], list[Finding]] = {}
    for path, one in findings:
        found.setdefault((path, one.span.start), []).append(one)
    return found


def _same(one: Finding, other: Finding) -> bool:
    """Whether two findings say the same. One that offers another fix has another cause, and they are settled in turn."""
    if one.code != other.code or _NUMBER.sub("", one.message) != _NUMBER.sub("", other.message):
        return False
    return one.fix is None or other.fix is None or one.fix.title == other.fix.title


def _parses(files: Mapping[str, Reading], path: str, fix: Fix, parser: str) -> bool:
    for file, edits in merge([(path, fix)]).edits.items():
        reading = files[file]
        assert reading.source is not None
        if collected(edited(reading.source, edits), parser).problem is not None:
            return False
    return True


def _mistakes(cause: str, guilty: Iterable[tuple[str, Fix]]) -> dict[str, Mistake]:
    titles: dict[str, dict[str, None]] = {}
    for path, fix in guilty:
        for file in {path, *touched(path, fix)}:
            titles.setdefault(file, {})[fix.title] = None
    return {file: Mistake(cause, tuple(titles[file])) for file in sorted(titles)}
