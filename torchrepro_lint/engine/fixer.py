"""The fix loop, which applies fixes until a fixed point, and fix verification: the file still parses and the finding is
gone.

Fixes that fail verification are dropped and reported, and the loop starts again without them.

Imports that the edits of a file leave unused are removed with them, unless another file of the project takes the name from there. This
is done for all edits of a round together: two fixes may each take one of the last two uses of an import, and one may use what
another leaves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.checker import Checker
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_decoded
from torchrepro_lint.engine.partition import Partition, check_tree
from torchrepro_lint.engine.writing import FileAliases, FileChange
from torchrepro_lint.source.decoding import fit_to_cells, with_edits
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, Lines, changed_files, map_offset, merge
from torchrepro_lint.syntax.nodes import Record

# Rows and columns in messages change with edits above them, so numbers are not compared.
_NUMBER = lazy_pattern(r"\d+")
_ENDLESS = "would go on without end"


class AppliedFixes(Record, frozen=True):
    """The fixes of one round: the findings before it by path, those whose fixes were applied, and all edits by path."""

    before: Mapping[str, tuple[Finding, ...]]
    taken: tuple[tuple[str, Finding], ...]
    edits: Mapping[str, tuple[Edit, ...]]


class FixFailure(Record, frozen=True):
    """Failed verification of fixes of a file: what they would do, and the titles of the fixes. ``codes`` are those whose fixes are
    dropped; empty if all are.
    """

    cause: str
    titles: tuple[str, ...]
    codes: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """The message for the user."""
        named = f" ({'; '.join(self.titles)})" if self.titles else ""
        what, was = ("a fix", "was") if len(self.titles) == 1 else ("fixes", "were")
        return f"{what} that {self.cause} {was} not applied{named}; this is a bug in torchrepro-lint, please report it"


def fixes_to_apply(
    checker: Checker, findings: Mapping[str, tuple[Finding, ...]], unsafe: bool, failures: Mapping[str, FixFailure]
) -> list[tuple[str, Finding]]:
    """The findings whose fix may be applied: safe or asked for, only in files that are linted, and without failure so far.

    Where some seed a program, those that write its seed are left for a later round.
    """
    given = {path for path, _ in checker.tree.given} - {path for path, each in failures.items() if not each.codes}
    left_out = {(path, code) for path, each in failures.items() for code in each.codes}
    wanted = [
        (path, one)
        for path in sorted(findings)
        for one in findings[path]
        if one.fix is not None
        and (one.fix.safe or unsafe)
        and path in given
        and (path, one.code) not in left_out
        and given.issuperset(changed_files(path, one.fix))
    ]
    seeding = any(one.fix is not None and one.fix.seeds for _, one in wanted)
    return [(path, one) for path, one in wanted if not (seeding and one.fix is not None and one.fix.takes_seed)]


def parse_failures(
    files: Mapping[str, ParsedFile], taken: Iterable[tuple[str, Finding]], broken: set[str], parser: str
) -> dict[str, FixFailure]:
    """The failures of a round after which ``broken`` files do not parse: the fixes that break one alone, else all its fixes.

    ``parser`` is the one of the settings.
    """
    suspects = [(path, one.fix) for path, one in taken if one.fix and broken.intersection(changed_files(path, one.fix))]
    failing = [each for each in suspects if not _parses(files, *each, parser)] or suspects
    return _failures("would break the file", failing)


class FixRound(Record, frozen=True):
    """One round: the findings whose fixes were applied, and hashes of the texts before and after, by path."""

    taken: tuple[tuple[str, Finding], ...]
    texts: Mapping[str, tuple[int, int]]


def divergence_failures(history: Sequence[FixRound]) -> dict[str, FixFailure]:
    """The failures of rounds that reach no fixed point: of a file whose text recurs, the fixes on that cycle; of others, all."""
    found: dict[str, FixFailure] = {}
    for path in history[-1].texts:
        changing = [each for each in history if path in each.texts]
        last = changing[-1].texts[path][1]
        back = next((at for at, each in reversed([*enumerate(changing)]) if each.texts[path][0] == last), len(changing))
        on_cycle = {
            (own, one.code, one.fix.title)
            for step in changing[back:]
            for own, one in step.taken
            if one.fix is not None and path in changed_files(own, one.fix)
        }
        for own, code, title in sorted(on_cycle):
            found[own] = merged_failure(found.get(own), FixFailure(_ENDLESS, (title,), frozenset({code})))
        if not on_cycle:
            found[path] = FixFailure(_ENDLESS, ())
    return found


def merged_failure(known: FixFailure | None, other: FixFailure) -> FixFailure:
    """The union of two failures of a file; a failure of all its fixes absorbs one of some."""
    if known is None or not known.codes or not other.codes:
        return known if known is not None and not known.codes else other
    return FixFailure(known.cause, tuple(sorted({*known.titles, *other.titles})), known.codes | other.codes)


def unfixed_failures(last: AppliedFixes, findings: Mapping[str, tuple[Finding, ...]]) -> dict[str, FixFailure]:
    """The failures of a round after which findings remain that its fixes should have removed."""
    left = []
    was, taken, now = (_by_position(each) for each in (_with_paths(last.before), last.taken, _with_paths(findings)))
    for path, one in last.taken:
        assert one.fix is not None
        places = {(path, start) for start in map_offset(one.span.start, last.edits.get(path, ()))}
        here = (path, one.span.start)
        before, settled = (sum(_is_same_finding(one, other) for other in each.get(here, ())) for each in (was, taken))
        after = sum(_is_same_finding(one, other) for place in places for other in now.get(place, ()))
        if after > before - settled:
            left.append((path, one.fix))
    return _failures("would not remove its finding", left)


def _with_paths(findings: Mapping[str, tuple[Finding, ...]]) -> Iterator[tuple[str, Finding]]:
    return ((path, one) for path, found in findings.items() for one in found)


def _by_position(findings: Iterable[tuple[str, Finding]]) -> dict[tuple[str, int], list[Finding]]:
    """Findings by path and start offset."""
    found: dict[tuple[str, int], list[Finding]] = {}
    for path, one in findings:
        found.setdefault((path, one.span.start), []).append(one)
    return found


def _is_same_finding(one: Finding, other: Finding) -> bool:
    """Whether two findings are equal but for numbers. One that offers another fix has another cause, and is fixed in turn."""
    if one.code != other.code or _NUMBER.sub("", one.message) != _NUMBER.sub("", other.message):
        return False
    return one.fix is None or other.fix is None or one.fix.title == other.fix.title


def _parses(files: Mapping[str, ParsedFile], path: str, fix: Fix, parser: str) -> bool:
    for file, edits in merge([(path, fix)]).edits.items():
        parsed = files[file]
        assert parsed.source is not None
        if _is_broken(parsed, parse_decoded(with_edits(parsed.source, edits), parser)):
            return False
    return True


def _is_broken(before: ParsedFile, after: ParsedFile) -> bool:
    """Whether a file, or one more cell of a notebook, cannot be parsed any more."""
    return len(after.problems) > len(before.problems) or (after.facts is None and before.facts is not None)


def _failures(cause: str, failing: Iterable[tuple[str, Fix]]) -> dict[str, FixFailure]:
    titles: dict[str, dict[str, None]] = {}
    for path, fix in failing:
        for file in {path, *changed_files(path, fix)}:
            titles.setdefault(file, {})[fix.title] = None
    return {file: FixFailure(cause, tuple(titles[file])) for file in sorted(titles)}


MAX_ROUNDS = 10


# Selects the findings to report, from the path of a file (from the root), its lines and all its findings.
ReportFilter: TypeAlias = Callable[[str, Lines, tuple[Finding, ...]], tuple[Finding, ...]]


class FixResult(Record, frozen=True):
    """The fixed files, the changes by path, the codes of the fixed findings, and errors.

    ``rounds`` are the edits of each round by path, in the text that the round before has left; ``partition`` is that of the
    fixed files, linked as far as the rules have been run on them.
    """

    files: dict[str, ParsedFile]
    changes: dict[str, FileChange]
    settled: tuple[str, ...]
    errors: tuple[str, ...]
    rounds: tuple[Mapping[str, tuple[Edit, ...]], ...] = ()
    partition: Partition | None = None


class _FixState(Record, frozen=True):
    """The state after some rounds: the files, the findings fixed so far (paths and codes), the groups of files that one fix
    changed, the last round, the edits and history of all rounds, and at the end the partition of the files.
    """

    files: Mapping[str, ParsedFile]
    settled: tuple[tuple[str, str], ...] = ()
    changed_together: frozenset[tuple[str, ...]] = frozenset()
    last: AppliedFixes | None = None
    rounds: tuple[Mapping[str, tuple[Edit, ...]], ...] = ()
    history: tuple[FixRound, ...] = ()
    partition: Partition | None = None


class _FixOptions(Record, frozen=True):
    """Which fixes to apply (unsafe ones too, not those with failures, only of reported findings), the aliases of files, how
    many processes check them, and the parser of the settings.
    """

    unsafe: bool
    failures: Mapping[str, FixFailure]
    reported: ReportFilter | None
    names: FileAliases
    jobs: int
    parser: str


def fix_tree(
    checker: Checker, files: dict[str, ParsedFile], unsafe: bool, reported: ReportFilter | None = None, jobs: int = 1
) -> FixResult:
    """Fix files in memory up to a fixed point; the project is linked again in each round, as a fix may affect other files.

    Only findings that ``reported`` selects (None: all) are fixed.

    A fix that breaks a file, or does not remove its finding, is a fault of the tool: the loop starts again and leaves the
    files of such a fix unchanged. Of fixes that undo each other only these are dropped.
    """
    failures: dict[str, FixFailure] = {}
    names, parser = FileAliases(checker.tree.given), checker.tree.root.settings.parser
    while True:
        options = _FixOptions(unsafe, dict(failures), reported, names, jobs, parser)
        state, found = _rounds(checker._replace(finds_gaps=False), files, options)
        if not found:
            return _result(checker, files, state, failures, names)
        failures |= {path: merged_failure(failures.get(path), one) for path, one in found.items()}


def _rounds(
    checker: Checker, files: dict[str, ParsedFile], options: _FixOptions
) -> tuple[_FixState, dict[str, FixFailure]]:
    """Run the rounds without the fixes known to fail; returns new failures by the path of each file concerned."""
    state = _FixState(files)
    for number in range(MAX_ROUNDS + 1):
        partition = Partition(checker, state.files, lasting=True)
        findings = {path: checked.findings for path, checked in check_tree(checker, partition, options.jobs).items()}
        if state.last is not None and (left := unfixed_failures(state.last, findings)):
            return state, left
        wanted = fixes_to_apply(
            checker, _reported(state.files, findings, options.reported), options.unsafe, options.failures
        )
        if not wanted:
            return state._replace(partition=partition), {}
        if number < MAX_ROUNDS:
            state, broken = _round(state, findings, wanted, options)
            if broken:
                return state, broken
    return state, divergence_failures(state.history)


def _reported(
    files: Mapping[str, ParsedFile], findings: dict[str, tuple[Finding, ...]], reported: ReportFilter | None
) -> dict[str, tuple[Finding, ...]]:
    if reported is None:
        return findings
    return {path: reported(path, files[path].lines, findings[path]) for path in findings}


def _round(
    state: _FixState, findings: dict[str, tuple[Finding, ...]], wanted: list[tuple[str, Finding]], options: _FixOptions
) -> tuple[_FixState, dict[str, FixFailure]]:
    """One round: apply the fixes that do not conflict, unless one breaks a file. All aliases of a file change changed_together."""
    names = options.names
    merged = merge((names.canonical(path), names.canonical_fix(one.fix)) for path, one in wanted if one.fix)
    made = {path: completed_edits(state.files, path, edits) for path, edits in merged.edits.items()}
    taken = tuple(wanted[number] for number in merged.taken)
    fresh: dict[str, ParsedFile] = {}
    texts: dict[str, tuple[int, int]] = {}
    for path, edits in made.items():
        parsed = state.files[path]
        assert parsed.source is not None
        after = with_edits(parsed.source, edits)
        fresh[path], texts[path] = parse_decoded(after, options.parser), (hash(parsed.source.text), hash(after.text))
    fresh = names.for_all_names(fresh)
    broken = {path for path, parsed in fresh.items() if _is_broken(state.files[path], parsed)}
    if broken:
        return state, parse_failures(state.files, taken, broken, options.parser)
    codes = (*state.settled, *((path, one.code) for path, one in taken))
    changed_together = state.changed_together | {
        changed_files(names.canonical(path), names.canonical_fix(one.fix)) for path, one in taken if one.fix
    }
    applied = AppliedFixes(findings, taken, names.for_all_names(made))
    history = (*state.history, FixRound(taken, texts))
    rounds = (*state.rounds, made)
    return _FixState({**state.files, **fresh}, codes, changed_together, applied, rounds, history), {}


def _result(
    checker: Checker,
    files: dict[str, ParsedFile],
    state: _FixState,
    failures: dict[str, FixFailure],
    names: FileAliases,
) -> FixResult:
    changes: dict[str, FileChange] = {}
    errors: list[str] = []
    for path, given in checker.tree.given:
        if path in failures:
            errors.append(f"{given.display}: {failures[path].line}")
        before = files[path].source if path in files else None
        after = state.files[path].source if path in files else None
        if before is None or after is None or names.canonical(path) != path:
            continue
        if state.files[path] is not files[path]:
            partners = {other for files_ in state.changed_together if path in files_ for other in files_} - {path}
            places = tuple(sorted(dict(checker.tree.given)[other].path for other in partners))
            codes = tuple(code for where, code in state.settled if names.canonical(where) == path)
            changes[path] = FileChange(given, before, after, places, codes)
    settled = tuple(code for _, code in state.settled)
    return FixResult(dict(state.files), changes, settled, tuple(errors), state.rounds, state.partition)


def completed_fix(files: Mapping[str, ParsedFile], path: str, fix: Fix) -> Fix:
    """A fix of a finding in a file, together with the imports that it alone leaves unused."""
    others = tuple((other, completed_edits(files, other, edits)) for other, edits in fix.elsewhere)
    return fix._replace(edits=completed_edits(files, path, fix.edits), elsewhere=others)


def completed_edits(files: Mapping[str, ParsedFile], path: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a file, together with those that drop the imports that they leave unused."""
    parsed = files[path]
    if parsed.facts is None or not edits or posixpath.basename(path) == "__init__.py":
        return tuple(edits)
    from torchrepro_lint.checks.fixes.unused_imports import edits_of_unused_imports, names_dropped

    names = names_dropped(parsed.facts, parsed.text, edits)
    if not names or any(_takes_from(files[other].text, path, names) for other in sorted(files) if other != path):
        return tuple(edits)
    lines = zip(parsed.text.splitlines(), parsed.written.text.splitlines(), strict=False)
    hidden = "\n".join(own for program, own in lines if program != own)
    found = edits_of_unused_imports(parsed.facts, parsed.text, edits, hidden)
    if parsed.source is None or parsed.source.notebook is None:
        return found
    fitting = fit_to_cells(parsed.source.notebook, Fix("", found, safe=False))
    return fitting.edits if fitting else tuple(edits)


def _takes_from(text: str, path: str, names: frozenset[str]) -> bool:
    """Whether a file may take one of some names from the module of another: by a ``from`` import, a star or an attribute."""
    name = posixpath.basename(path).removesuffix(".py").removesuffix(".ipynb")
    module = re.escape(name)
    if name not in text or not re.search(rf"\b{module}\b", text):  # the first test is ten times as fast
        return False
    listed = re.findall(rf"^[ \t]*from[ \t]+[\w.]*\b{module}[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)", text, re.MULTILINE)
    taken = {word for each in listed for word in re.findall(r"\w+|\*", each)}
    attributes = set(re.findall(rf"\b{module}\.(\w+)", text))
    return "*" in taken or not names.isdisjoint(taken | attributes)
