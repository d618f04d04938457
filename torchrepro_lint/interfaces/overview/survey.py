"""Builds an overview: reads, links and checks projects as a run does, and computes the timeline of each entry point.

Also the uses of operations whose behaviour depends on the torch release, and what another release would change.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint import __version__
from torchrepro_lint.call_stack import with_deep_stack
from torchrepro_lint.catalogue.catalogue import Catalogue, load, signatures
from torchrepro_lint.catalogue.release_history import STATUSES, release_ranges
from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.discovery import Plan, ProjectTree
from torchrepro_lint.config.target import Target, project_name, substitution_warning
from torchrepro_lint.domain.operations.cases import Case, cases
from torchrepro_lint.domain.programs import Program, is_relevant, programs_of
from torchrepro_lint.domain.timeline import timeline
from torchrepro_lint.engine.checker import Checker
from torchrepro_lint.engine.limits import guarded_analysis
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import ParsedProject, ReadOptions, read_tree
from torchrepro_lint.engine.run import Progress, TreeReport, gc_disabled, prepare, report_on
from torchrepro_lint.interfaces.overview.cells import cells
from torchrepro_lint.interfaces.overview.gaps import GAP_KINDS, Describer, entry_id, gaps, imported_packages, rules_off
from torchrepro_lint.interfaces.overview.records import (
    EntryRecord,
    FindingRecord,
    Gap,
    Location,
    OperationUse,
    Overview,
    ReleaseShift,
    TargetRecord,
    with_shown_texts,
)
from torchrepro_lint.source.errors import Fault
from torchrepro_lint.source.files import documented_versions
from torchrepro_lint.source.text import with_paths
from torchrepro_lint.syntax.nodes import fields
from torchrepro_lint.syntax.qualified_names import path_of, split_name, top_package
from torchrepro_lint.trace.traces import Context

# Libraries that train with torch for a program, which need not import torch itself.
TRAINERS = frozenset({
    "accelerate", "catalyst", "composer", "deepspeed", "detectron2", "fairseq", "fastai", "flair", "ignite", "lightning",
    "lightning_fabric", "mmengine", "monai", "pytorch_lightning", "sb3_contrib", "sentence_transformers", "setfit", "skorch",
    "stable_baselines3", "tianshou", "transformers", "trl", "ultralytics",
})  # fmt: skip
_RUN_ON_TORCH = TRAINERS | {"diffusers", "peft", "pytorch_tabnet", "speechbrain", "timm", "torch", "torchvision"}


def entry_records(
    contexts: Mapping[str, Context], items: tuple[FindingRecord, ...], off: Collection[str], prefix: str
) -> tuple[tuple[EntryRecord, ...], tuple[Gap, ...]]:
    """The entry points of the files in ``contexts`` that have events or findings; the others, and internal errors, as gaps.

    ``off`` are the default rules that did not run.
    """
    entries: list[EntryRecord] = []
    beside: list[Gap] = []
    by_entry = _by_entry(items)
    torch_files = frozenset(path for path in contexts if _uses_torch(contexts[path]))
    every = ((contexts[path], each) for path in sorted(contexts) for each in programs_of(contexts[path].project, path))
    for context, program in every:
        own = by_entry.get(entry_id(prefix, program), [])
        entry = guarded_analysis(partial(_entry, context, program, own, off, prefix, torch_files))
        if isinstance(entry, Fault):
            beside.append(Gap("fault", prefix + program.entry.path, f"its run broke off: {entry.message}"))
        elif entry.timeline.moments or entry.timeline.gaps or own:
            entries.append(entry)
        else:
            beside.append(Gap("idle", entry.name, "it uses no known generator, flag, variable or device"))
    return tuple(entries), tuple(beside)


def _uses_torch(context: Context) -> bool:
    """Whether a file imports torch or a library that runs on it, or is imported by one that imports torch."""
    imported = {top_package(module) for module in context.tree.summary.imports}
    return context.path in context.project.torch_modules or not imported.isdisjoint(_RUN_ON_TORCH)


def _by_entry(items: tuple[FindingRecord, ...]) -> dict[str, list[FindingRecord]]:
    found: dict[str, list[FindingRecord]] = {}
    for item in items:
        for each in item.entries:
            found.setdefault(each, []).append(item)
    return found


def _entry(
    context: Context,
    program: Program,
    items: list[FindingRecord],
    off: Collection[str],
    prefix: str,
    torch_files: frozenset[str],
) -> EntryRecord:
    found = timeline(context, program)
    if prefix:
        found = with_shown_texts(found, prefix.__add__, lambda text: with_paths(text, prefix.__add__))
    return EntryRecord(
        entry_id(prefix, program),
        prefix + program.entry.path,
        split_name(program.entry.function or "")[2],
        found.torch,
        found.device,
        is_relevant(context.project, program),
        cells(context, program, found, items, off),
        found,
        not torch_files.isdisjoint({program.entry.path, *map(path_of, program.run.functions)}),
    )


class Survey(NamedTuple):
    """An overview, notes for the user, and the errors that make a run fail; ``packages`` are those of others that the files
    import, by name, with the number of files.
    """

    overview: Overview
    notes: tuple[str, ...]
    errors: tuple[str, ...]
    packages: Counter[str]


def survey(plan: Plan, title: str, honour_comments: bool, progress: Progress, means: ReadOptions) -> Survey:
    """The overview of the planned projects; raises ``UsageError`` for settings that do not fit the rules.

    ``title`` defaults to the project's own name.
    """
    advance = progress(sum(len(tree.files) for tree in plan.trees))
    prefixes = _prefixes(plan.trees)
    with gc_disabled():
        parts = [
            _project_survey(tree, prefix, honour_comments, advance, means)
            for tree, prefix in zip(plan.trees, prefixes, strict=True)
        ]
    names = [name for tree in plan.trees if (name := project_name(Path(tree.root.path)))]
    overviews = [part.overview for part in parts]
    overview = Overview(
        title or (names[0] if len(plan.trees) == 1 and names else ""),
        __version__,
        tuple(aim for each in overviews for aim in each.aims),
        sum(each.files for each in overviews),
        tuple(sorted((entry for each in overviews for entry in each.entries), key=_worst_first)),
        tuple(sorted((one for each in overviews for one in each.findings), key=_in_reading_order)),
        tuple(use for each in overviews for use in each.uses),
        tuple(shift for each in overviews for shift in each.shifts),
        tuple(
            sorted((gap for each in overviews for gap in each.gaps), key=lambda gap: list(GAP_KINDS).index(gap.kind))
        ),
    )
    return Survey(
        overview,
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        (*plan.errors, *(error for part in parts for error in part.errors)),
        sum((part.packages for part in parts), Counter[str]()),
    )


def _prefixes(trees: tuple[ProjectTree, ...]) -> list[str]:
    """The prefix of each project's paths: among several, its folder below their common directory."""
    roots = [tree.root.path for tree in trees]
    if len(roots) < 2:
        return [""] * len(roots)
    common = os.path.commonpath(roots)
    return ["" if root == common else f"{os.path.relpath(root, common).replace(os.sep, '/')}/" for root in roots]


def _worst_first(entry: EntryRecord) -> tuple[bool, int, int, str, str]:
    """The sort key of entry points: those that matter first, then those with most bad states."""
    bad, risk = (sum(cell.state == state for cell in entry.cells) for state in ("bad", "risk"))
    return not entry.matters, -bad, -risk, entry.path, entry.function


def _in_reading_order(finding: FindingRecord) -> tuple[tuple[str, int, int, int], str]:
    return finding.place.reading_order, finding.code


def _project_survey(
    tree: ProjectTree, prefix: str, honour_comments: bool, advance: Callable[[], None], means: ReadOptions
) -> Survey:
    """The survey of one project, whose overview has no title."""
    checker, target = prepare(tree, honour_comments)
    readings = read_tree(tree, advance, means)
    readings.store()
    parts = Partition(checker, readings.files, lasting=True)
    reported = report_on(checker, parts)
    # What it describes recurses as deeply as the rules do.
    return with_deep_stack(lambda: _described(checker, target, readings, parts, reported, prefix))


def _described(
    checker: Checker, target: Target, readings: ParsedProject, parts: Partition, reported: TreeReport, prefix: str
) -> Survey:
    contexts = _contexts(checker, parts)
    items = Describer(contexts, checker.tree.root.path, prefix).items(reported.diagnostics)
    packages = imported_packages(checker.tree, parts)
    off = {rule.code for rule in RULES if rule.default} - {rule.code for rule in checker.rules}
    entries, beside = entry_records(contexts, items, off, prefix)
    found, broken = _uses(contexts, prefix)
    left_out = (
        *_failures(checker.tree, (*readings.errors, *reported.faults), prefix),
        *broken,
        *beside,
        *gaps(checker, parts, reported.hidden, packages, prefix),
        *rules_off(checker, [(rule.code, rule.name) for rule in RULES]),
    )
    told = substitution_warning(target)
    faults = (f"{gap.what}: {gap.why}" for gap in (*broken, *beside) if gap.kind == "fault")
    decided_by = target.decided_by + (f", which asks for {target.asked}" if told else "")
    aim = TargetRecord(prefix.rstrip("/"), target.version, decided_by)
    shifts = release_shifts(found, target.version)
    overview = Overview("", __version__, (aim,), len(contexts), entries, items, found, shifts, left_out)
    return Survey(overview, (told,) if told else (), (*readings.errors, *reported.faults, *faults), packages)


def _contexts(checker: Checker, parts: Partition) -> dict[str, Context]:
    """The contexts of the given files that could be parsed."""
    settings = checker.tree.root.settings
    return {
        path: Context(path, reading.facts, reading.lines, parts.of(path), checker.catalogue, settings)
        for path, _ in checker.tree.given
        if (reading := parts.files.get(path)) is not None and reading.facts is not None
    }


def _uses(contexts: Mapping[str, Context], prefix: str) -> tuple[tuple[OperationUse, ...], tuple[Gap, ...]]:
    answer = guarded_analysis(lambda: operation_uses(list(contexts.values()), prefix))
    if isinstance(answer, Fault):
        return (), (Gap("fault", "operations by release", f"they broke off: {answer.message}"),)
    return answer, ()


def _failures(tree: ProjectTree, errors: tuple[str, ...], prefix: str) -> Iterator[Gap]:
    """Errors of files as gaps, by paths from the root, however the files were named on the command line."""
    for error in errors:
        for path, given in tree.given:
            if error.startswith(f"{given.display}: "):
                told = error.removeprefix(f"{given.display}: ")
                yield Gap("unreadable" if told.startswith("cannot be read") else "fault", prefix + path, told)
                break


_SEVERITY = tuple(STATUSES)
# Behaviours that no setting changes; of several cases that may hold, the rules report these first.
_INCURABLE = ("raises", "silent", "warns")


class _Call(NamedTuple):
    """A call: its file, its offset, and its operation."""

    path: str
    start: int
    operation: str


class _RestrictedCatalogue(Catalogue):
    """The catalogue of a release, restricted to some operations."""

    def __init__(self, whole: Catalogue, operations: frozenset[str]) -> None:
        super().__init__(whole.version)
        self._whole = whole
        self._operations = operations

    def operation(self, name: str) -> tuple[OperationRow, ...]:
        rows = self._whole.operation(name)
        return rows if rows and rows[0].operation in self._operations else ()


def operation_uses(contexts: Sequence[Context], prefix: str) -> tuple[OperationUse, ...]:
    """The behaviour of calls by release, grouped; calls that no release treats as nondeterministic are left out.

    ``prefix`` is what paths begin with. Sorted by the behaviour in the target torch, the worst first.
    """
    if not contexts:
        return ()
    told = _behaviours(contexts)
    groups: dict[tuple[str, tuple[str, ...]], list[_Call]] = defaultdict(list)
    for call, behaviours in told.items():
        groups[call.operation, behaviours].append(call)
    target = contexts[0].catalogue.version
    found = (_use(contexts, prefix, target, *key, calls) for key, calls in groups.items())
    return tuple(sorted(found, key=lambda use: (_rank(use.status), use.operation, use.places)))


def release_shifts(found: Iterable[OperationUse], target: str) -> tuple[ReleaseShift, ...]:
    """How these calls behave in other releases than the target; neighbouring releases with equal changes are merged."""
    every = documented_versions()
    changes: dict[str, Counter[tuple[str, str]]] = {version: Counter() for version in every}
    for use in found:
        for version, behaviour in zip(every, use.releases, strict=True):
            if behaviour[1] != use.status:
                changes[version][use.status, behaviour[1]] += len(use.places)
    runs = ((said, list(run)) for said, run in groupby(every, key=lambda each: changes[each]))
    return tuple(
        ReleaseShift(
            target, release_ranges(run), tuple((*pair, number) for pair, number in sorted(said.items(), key=_by_weight))
        )
        for said, run in runs
        if said
    )


def _by_weight(change: tuple[tuple[str, str], int]) -> tuple[int, int]:
    (before, after), _ = change
    return _rank(after), _rank(before)


def _rank(status: str) -> int:
    return _SEVERITY.index(status) if status else len(_SEVERITY)


def _use(
    contexts: Sequence[Context],
    prefix: str,
    target: str,
    operation: str,
    behaviours: tuple[str, ...],
    calls: list[_Call],
) -> OperationUse:
    lines = {context.path: context.lines for context in contexts}
    every = documented_versions()
    found = (Location(prefix + call.path, *lines[call.path].place(call.start)) for call in calls)
    places = sorted(found, key=lambda place: place.reading_order)
    return OperationUse(
        operation, target, behaviours[every.index(target)], tuple(zip(every, behaviours, strict=True)), tuple(places)
    )


def _behaviours(contexts: Sequence[Context]) -> dict[_Call, tuple[str, ...]]:
    """The behaviour of each call in each release, empty where unknown; only calls that are nondeterministic in some.

    Only operations that differ from the release before are evaluated again: most releases change little.
    """
    every = documented_versions()
    found: dict[_Call, dict[str, str]] = defaultdict(dict)
    for before, version in zip((None, *every), every, strict=False):
        changed = _changed(before, version)
        for call, known in found.items():
            if call.operation not in changed and before in known:
                known[version] = known[before]
        catalogue = _RestrictedCatalogue(load(version), changed)
        for context in contexts if changed else ():
            for call, behaviour in _worst(context.path, cases(context._replace(catalogue=catalogue))):
                found[call][version] = behaviour
    told = {call: tuple(known.get(version, "") for version in every) for call, known in found.items()}
    return {call: behaviours for call, behaviours in told.items() if set(behaviours) - {"", "none", "fills"}}


@lru_cache(maxsize=64)
def _changed(before: str | None, version: str) -> frozenset[str]:
    """The operations whose behaviour changed since the release before."""
    return frozenset(name for name in signatures() if _behaviour_rows(before, name) != _behaviour_rows(version, name))


def _behaviour_rows(version: str | None, operation: str) -> list[tuple[object, ...]]:
    return [fields(row)[1:5] for row in load(version).operation(operation)] if version else []


def _worst(path: str, found: Iterable[Case]) -> Iterator[tuple[_Call, str]]:
    """The behaviour of each call as the rules choose it: first what no setting changes, then the most certain."""
    for _, group in groupby(found, key=lambda case: (case.site.call.start, case.site.call.end)):
        case = min(
            group,
            key=lambda each: (each.row.behaviour not in _INCURABLE, -each.truth, _rank(each.row.behaviour)),
        )
        yield _Call(path, case.site.call.start, case.row.operation), case.row.behaviour
