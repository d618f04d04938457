"""Whether fixes did what they promise: the file still parses, and the finding is gone.

Apply fixes until nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.discovery import SameFile
from torchrepro_lint.engine.checker import Checker
from torchrepro_lint.engine.partition import Parts, check_tree
from torchrepro_lint.engine.reading import Reading, collected
from torchrepro_lint.engine.writing import Change
from torchrepro_lint.source.decoding import edited
from torchrepro_lint.source.text import Edit, Fix, Lines, merge, moved, touched

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


ROUNDS = 10


# The findings that are reported, of those of a file: its path from the root, its lines, and all that was found.
Reported: TypeAlias = Callable[[str, Lines, tuple[Finding, ...]], tuple[Finding, ...]]


class Fixed(NamedTuple):
    """The readings with all fixes in, the changes by path, the codes of the findings that they settled, and errors.

    ``rounds`` are the edits by path of each round, in the text that the round before has left; ``parts`` are those of the
    files, linked where the rules have been run on them.
    """

    files: dict[str, Reading]
    changes: dict[str, Change]
    settled: tuple[str, ...]
    errors: tuple[str, ...]
    rounds: tuple[Mapping[str, tuple[Edit, ...]], ...] = ()
    parts: Parts | None = None


class _State(NamedTuple):
    """Where the rounds are: the files, the findings settled so far (paths and codes), the files that one fix changed
    together, what the last round did, the edits of all and their steps, and at the end the parts of the files.
    """

    files: Mapping[str, Reading]
    settled: tuple[tuple[str, str], ...] = ()
    together: frozenset[tuple[str, ...]] = frozenset()
    last: Applied | None = None
    rounds: tuple[Mapping[str, tuple[Edit, ...]], ...] = ()
    steps: tuple[Step, ...] = ()
    parts: Parts | None = None


class _Wishes(NamedTuple):
    """Which fixes to make: unsafe ones, none that are known for mistakes, only of what is reported; the names of the files,
    how many processes check them, and which parser of the settings reads what is fixed.
    """

    unsafe: bool
    mistakes: Mapping[str, Mistake]
    reported: Reported | None
    names: SameFile
    jobs: int
    parser: str


def fix_tree(
    checker: Checker, files: dict[str, Reading], unsafe: bool, reported: Reported | None = None, jobs: int = 1
) -> Fixed:
    """Fix the given files in memory, relinking between rounds because a fix may settle what stands in another file.

    Only what is ``reported`` of the findings of a file (None: all) is fixed.

    A fix that breaks a file, or after which its finding is still there, is a fault of the tool: it starts again without
    the files that such a fix touches, so that they stay as they were. Of fixes that undo each other only these are left out.
    """
    mistakes: dict[str, Mistake] = {}
    names, parser = SameFile(checker.tree.given), checker.tree.root.settings.parser
    while True:
        wishes = _Wishes(unsafe, dict(mistakes), reported, names, jobs, parser)
        state, found = _rounds(checker, files, wishes)
        if not found:
            return _result(checker, files, state, mistakes, names)
        mistakes |= {path: also(mistakes.get(path), one) for path, one in found.items()}


def _rounds(checker: Checker, files: dict[str, Reading], wishes: _Wishes) -> tuple[_State, dict[str, Mistake]]:
    """Fix all but what is known for a mistake; the mistakes that showed, by the path of each file that they concern."""
    state = _State(files)
    for number in range(ROUNDS + 1):
        parts = Parts(checker, state.files, lasting=True)
        findings = {path: checked.findings for path, checked in check_tree(checker, parts, wishes.jobs).items()}
        if state.last is not None and (left := remaining(state.last, findings)):
            return state, left
        wanted = offered(checker, _reported(state.files, findings, wishes.reported), wishes.unsafe, wishes.mistakes)
        if not wanted:
            return state._replace(parts=parts), {}
        if number < ROUNDS:
            state, broken = _round(state, findings, wanted, wishes)
            if broken:
                return state, broken
    return state, endless(state.steps)


def _reported(
    files: Mapping[str, Reading], findings: dict[str, tuple[Finding, ...]], reported: Reported | None
) -> dict[str, tuple[Finding, ...]]:
    if reported is None:
        return findings
    return {path: reported(path, files[path].lines, findings[path]) for path in findings}


def _round(
    state: _State, findings: dict[str, tuple[Finding, ...]], wanted: list[tuple[str, Finding]], wishes: _Wishes
) -> tuple[_State, dict[str, Mistake]]:
    """One round: apply the fixes that fit together, unless one breaks a file. What a file has by one name it has by all."""
    names = wishes.names
    merged = merge((names.first(path), names.fix(one.fix)) for path, one in wanted if one.fix)
    taken = tuple(wanted[number] for number in merged.taken)
    fresh: dict[str, Reading] = {}
    texts: dict[str, tuple[int, int]] = {}
    for path, edits in merged.edits.items():
        reading = state.files[path]
        assert reading.source is not None
        after = edited(reading.source, edits)
        fresh[path], texts[path] = collected(after, wishes.parser), (hash(reading.source.text), hash(after.text))
    fresh = names.spread(fresh)
    broken = {path for path, reading in fresh.items() if reading.problem is not None}
    if broken:
        return state, breaking(state.files, taken, broken, wishes.parser)
    codes = (*state.settled, *((path, one.code) for path, one in taken))
    together = state.together | {touched(names.first(path), names.fix(one.fix)) for path, one in taken if one.fix}
    applied = Applied(findings, taken, names.spread(merged.edits))
    steps = (*state.steps, Step(taken, texts))
    return _State({**state.files, **fresh}, codes, together, applied, (*state.rounds, merged.edits), steps), {}


def _result(
    checker: Checker, files: dict[str, Reading], state: _State, mistakes: dict[str, Mistake], names: SameFile
) -> Fixed:
    changes: dict[str, Change] = {}
    errors: list[str] = []
    for path, given in checker.tree.given:
        if path in mistakes:
            errors.append(f"{given.display}: {mistakes[path].line}")
        before = files[path].source if path in files else None
        after = state.files[path].source if path in files else None
        if before is None or after is None or names.first(path) != path:
            continue
        if state.files[path] is not files[path]:
            partners = {other for files_ in state.together if path in files_ for other in files_} - {path}
            places = tuple(sorted(dict(checker.tree.given)[other].path for other in partners))
            codes = tuple(code for where, code in state.settled if names.first(where) == path)
            changes[path] = Change(given, before, after, places, codes)
    settled = tuple(code for _, code in state.settled)
    return Fixed(dict(state.files), changes, settled, tuple(errors), state.rounds, state.parts)
