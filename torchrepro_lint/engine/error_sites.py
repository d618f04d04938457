"""Where the calls that may end in an error stand in the code of projects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.catalogue.catalogue import spellings
from torchrepro_lint.catalogue.conditions import Truth
from torchrepro_lint.catalogue.errors import Explanation, Frame, orphans
from torchrepro_lint.catalogue.rows import Condition, Row, Scalar, Spelling
from torchrepro_lint.config.discovery import Tree
from torchrepro_lint.domain.operations.cases import cases, operation_names
from torchrepro_lint.domain.project import Context
from torchrepro_lint.engine.checker import Checker, read_papers
from torchrepro_lint.engine.partition import Parts
from torchrepro_lint.engine.read_project import Readings, read_tree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.nodes import Call

# Of a size or a number of dimensions any value that fits will do.
_NUMBERS = ("at_least", "at_most")


class Place(NamedTuple):
    """A call: its file as it is printed and in full, where it begins, its text on one line, and the public name.

    ``sure`` says that its arguments are those of the case, as far as code can tell; ``traced`` that a traceback's frame
    points at it.
    """

    display: str
    path: str
    start: Position
    text: str
    name: str
    sure: bool
    traced: bool


class Found(NamedTuple):
    """The places of each explanation, in order, and an error for each file that could not be read."""

    places: tuple[tuple[Place, ...], ...]
    errors: tuple[str, ...]


def find(
    tree: Tree, explained: Iterable[Explanation], frames: Sequence[Frame], advance: Callable[[], None] = lambda: None
) -> Found:
    """The places in a tree's given files; each explanation is looked for as its release (``read_as``) has it.

    ``advance`` is called after each file that was read.
    """
    readings = read_tree(tree, advance)
    return Found(tuple(tuple(sorted(_places(tree, readings, one, frames))) for one in explained), readings.errors)


def _places(tree: Tree, readings: Readings, one: Explanation, frames: Sequence[Frame]) -> Iterator[Place]:
    checker = Checker(
        tree, (), frozenset(), (), catalogue.load(one.read_as), honour_comments=False, papers=read_papers(tree)
    )
    parts = Parts(checker, readings.files, lasting=True)
    for path, given in tree.given:
        reading = readings.files.get(path)
        if reading is None or reading.facts is None:
            continue
        lines = reading.lines
        context = Context(path, reading.facts, lines, parts.of(path), checker.catalogue, tree.root.settings)
        rows = [frame.row for frame in frames if _is_file(frame, given.path)]
        for call, (name, sure) in _calls(context, one).items():
            start, end = lines.place(call.start), lines.place(call.end)
            text = " ".join(lines.text[call.start : call.end].split())
            traced = not start.cell and any(start.row <= row <= end.row for row in rows)
            yield Place(given.display, given.path, start, text, name, sure, traced)


def _calls(context: Context, one: Explanation) -> dict[Call, tuple[str, bool]]:
    """The calls of a module that are cases of the explanation's rows, with the public name and whether that is sure."""
    found: dict[Call, tuple[str, bool]] = {}
    wanted = set(one.rows)
    for known in dict.fromkeys(tuple(sorted(_known(one, row).items())) for row in one.rows):
        for case in cases(context, dict(known)):
            if _plain(case.row) in wanted:
                sure = case.truth is Truth.HOLDS
                before = found.get(case.site.call, ("", False))
                found[case.site.call] = (case.row.spelling.name, sure or before[1])
    return {**dict(_orphaned(context, one)), **found}


def _known(one: Explanation, row: Row) -> Mapping[str, Scalar]:
    """What the error tells of a call that ended in it: the conditions that code rarely shows held."""
    said = (*row.when, *(each for meant in one.meant if row.operation in meant.operations for each in meant.when))
    known: dict[str, Scalar] = {} if "any" in row.devices else {"device": row.devices[0]}
    known.update((each.of, each.values[0]) for each in reversed(said) if _is_told(each))
    return known


def _is_told(condition: Condition) -> bool:
    return condition.of.startswith(("input.", "program.")) and condition.test in ("one_of", *_NUMBERS)


def _plain(row: Row) -> Row:
    """A row under its operation's own name, as explanations have it."""
    return row._replace(when=row.when[len(row.spelling.when) :], spelling=_own(row.operation))


def _own(operation: str) -> Spelling:
    return next(one for one in spellings()[operation] if one.name == operation)


def _orphaned(context: Context, one: Explanation) -> Iterator[tuple[Call, tuple[str, bool]]]:
    wanted = {name: name for name in orphans(one.meant)}
    wanted.update({f"torch.Tensor.{name[6:]}": name for name in wanted if name.count(".") == 1})
    for site in context.project.calls(context.path):
        name = next(operation_names(context, site, wanted.__contains__), None)
        if name is not None:
            yield site.call, (wanted[name], True)


def _is_file(frame: Frame, path: str) -> bool:
    """Whether a frame is in a file; a path from another machine fits by its last words."""
    there, here = Path(frame.file.replace("\\", "/")).parts, Path(path).parts
    shared = 2 if len(there) > 1 else 1
    return there[-shared:] == here[-shared:]
