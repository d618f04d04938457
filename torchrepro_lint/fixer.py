"""Apply fixes until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from torchrepro_lint.check_tree import check_tree
from torchrepro_lint.checking import Checker
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.discovery import SameFile
from torchrepro_lint.parts import Parts
from torchrepro_lint.reading import Reading, collected
from torchrepro_lint.source.decoding import edited
from torchrepro_lint.source.text import Edit, Lines, merge, touched
from torchrepro_lint.trial import Applied, Mistake, Step, also, breaking, endless, offered, remaining
from torchrepro_lint.writing import Change

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
