"""Error sites: where in the code of projects the calls stand that may raise a given torch error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.catalogue.catalogue import signatures
from torchrepro_lint.catalogue.conditions import Truth
from torchrepro_lint.catalogue.errors import Explanation, Frame, uncatalogued_calls
from torchrepro_lint.catalogue.rows import Condition, OperationRow, Scalar, Signature
from torchrepro_lint.config.discovery import ProjectTree
from torchrepro_lint.domain.operations.cases import cases, catalogue_names
from torchrepro_lint.engine.checker import Checker, read_manifest
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import ParsedProject, read_tree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.nodes import Call, Record
from torchrepro_lint.trace.traces import Context

# Tests of a size or a number of dimensions that any fitting value satisfies.
_NUMBERS = ("at_least", "at_most")


class ErrorSite(NamedTuple):
    """A call that may raise the error: its file as printed and absolute, its position, its text on one line, its public name.

    ``sure`` says that its arguments are known to be those of the case; ``traced`` that a frame of a traceback points at it.
    """

    display: str
    path: str
    start: Position
    text: str
    name: str
    sure: bool
    traced: bool


class ErrorSites(Record, frozen=True):
    """The sites of each explanation, in order, and an error for each file that could not be read."""

    places: tuple[tuple[ErrorSite, ...], ...]
    errors: tuple[str, ...]


def find_error_sites(
    tree: ProjectTree,
    explained: Iterable[Explanation],
    frames: Sequence[Frame],
    advance: Callable[[], None] = lambda: None,
) -> ErrorSites:
    """The error sites in the files to lint; each explanation is matched with the catalogue of its release (``read_as``).

    ``advance`` is called after each file that was read.
    """
    project_files = read_tree(tree, advance)
    return ErrorSites(
        tuple(tuple(sorted(_sites(tree, project_files, one, frames))) for one in explained), project_files.errors
    )


def _sites(
    tree: ProjectTree, project_files: ParsedProject, one: Explanation, frames: Sequence[Frame]
) -> Iterator[ErrorSite]:
    checker = Checker(
        tree, (), frozenset(), (), catalogue.load(one.read_as), honour_comments=False, manifest=read_manifest(tree)
    )
    parts = Partition(checker, project_files.files, lasting=True)
    for path, given in tree.given:
        parsed = project_files.files.get(path)
        if parsed is None or parsed.facts is None:
            continue
        lines = parsed.lines
        context = Context(path, parsed.facts, lines, parts.of(path), checker.catalogue, tree.root.settings)
        rows = [frame.row for frame in frames if _is_in_file(frame, given.path)]
        for call, (name, sure) in _calls(context, one).items():
            start, end = lines.place(call.start), lines.place(call.end)
            text = " ".join(lines.text[call.start : call.end].split())
            traced = not start.cell and any(start.row <= row <= end.row for row in rows)
            yield ErrorSite(given.display, given.path, start, text, name, sure, traced)


def _calls(context: Context, one: Explanation) -> dict[Call, tuple[str, bool]]:
    """The calls of a module that match the explanation's rows, with the public name and whether the match is sure."""
    found: dict[Call, tuple[str, bool]] = {}
    wanted = set(one.rows)
    for known in dict.fromkeys(tuple(sorted(_known_subjects(one, row).items())) for row in one.rows):
        for case in cases(context, dict(known)):
            if _under_own_name(case.row) in wanted:
                sure = case.truth is Truth.HOLDS
                before = found.get(case.site.call, ("", False))
                found[case.site.call] = (case.row.signature.name, sure or before[1])
    return {**dict(_uncatalogued(context, one)), **found}


def _known_subjects(one: Explanation, row: OperationRow) -> Mapping[str, Scalar]:
    """What the error itself implies of a call: the conditions that code rarely shows were true."""
    said = (*row.when, *(each for meant in one.meant if row.operation in meant.operations for each in meant.when))
    known: dict[str, Scalar] = {} if "any" in row.devices else {"device": row.devices[0]}
    known.update((each.of, each.values[0]) for each in reversed(said) if _is_implied(each))
    return known


def _is_implied(condition: Condition) -> bool:
    return condition.of.startswith(("input.", "program.")) and condition.test in ("one_of", *_NUMBERS)


def _under_own_name(row: OperationRow) -> OperationRow:
    """A row under its operation's own name, as explanations have it."""
    return row._replace(when=row.when[len(row.signature.when) :], signature=_own_signature(row.operation))


def _own_signature(operation: str) -> Signature:
    return next(one for one in signatures()[operation] if one.name == operation)


def _uncatalogued(context: Context, one: Explanation) -> Iterator[tuple[Call, tuple[str, bool]]]:
    wanted = {name: name for name in uncatalogued_calls(one.meant)}
    wanted.update({f"torch.Tensor.{name[6:]}": name for name in wanted if name.count(".") == 1})
    for site in context.project.calls(context.path):
        name = next(catalogue_names(context, site, wanted.__contains__), None)
        if name is not None:
            yield site.call, (wanted[name], True)


def _is_in_file(frame: Frame, path: str) -> bool:
    """Whether a frame is in a file; a path from another machine is compared by its last two parts."""
    there, here = Path(frame.file.replace("\\", "/")).parts, Path(path).parts
    shared = 2 if len(there) > 1 else 1
    return there[-shared:] == here[-shared:]
