"""What the statements of a block bind, and which of them may give a seed: what each fix below them asks again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.domain.project import Project
from torchrepro_lint.rewrites.seed_fields import fields
from torchrepro_lint.rewrites.seed_uses import WORD, seed_uses, targets_of
from torchrepro_lint.syntax.control_flow import Level
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Do, Expression, Operation, Ref, Statement, With
from torchrepro_lint.syntax.visitor import statements

_HIGHEST = 2**32


class SeedBlock(NamedTuple):
    """Places of statements in a block: of those that bind each variable, in whatever block of theirs; of those that give a
    variable, by its name and its word, what may be or have a seed; and of the first one that seeds, with its number.
    """

    bound: dict[str, list[int]]
    variables: tuple[tuple[int, str, str], ...]
    literal: tuple[int, str] | None


def seed_block(project: Project, path: str, level: Level, block: tuple[Statement, ...]) -> SeedBlock:
    """A block that leads to a level."""
    known = _KNOWN.get(project)
    if known is None:
        known = _KNOWN[project] = {}
    if id(block) not in known:  # the facts stay as long as the project
        literal = next(_literals(project, path, block), None)
        known[id(block)] = SeedBlock(_bound(block), tuple(_variables(project, path, level, block)), literal)
    return known[id(block)]


_KNOWN: WeakKeyDictionary[Project, dict[int, SeedBlock]] = WeakKeyDictionary()


def last_bound(project: Project, path: str, level: Level, root: str) -> int:
    """Where the last statement before a level starts that binds a variable; -1 where none does."""
    last = -1
    for spot in level.spots:
        places = seed_block(project, path, level, spot.block).bound.get(root, [])
        before = bisect_left(places, spot.at)
        if before:
            last = max(last, spot.block[places[before - 1]].start)
    return last


def is_integer(value: Expression) -> bool:
    """A literal, or what is read from an option, or one of them as an alternative: nothing that changes between runs."""
    match value:
        case Constant(value=number):
            return type(number) is int and 0 <= number < _HIGHEST
        case Ref(path=(*_, word)):
            return bool(WORD.fullmatch(word))
        case Operation(op="if" | "or", operands=operands):
            return all(is_integer(each) for each in operands[-2:])
        case Call(func=Ref(roots=("builtins.int",)), args=(arg,)):
            return is_integer(arg.value)
    return False


def _bound(block: tuple[Statement, ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, outer in enumerate(block):
        roots = (root for each in statements((outer,)) for target in _targets(each) for root in target.roots)
        for root in dict.fromkeys(roots):
            found.setdefault(root, []).append(at)
    return found


def _targets(statement: Statement) -> Iterator[Ref]:
    """The variables that a statement binds."""
    entered = [each for _, each in statement.items if each] if isinstance(statement, With) else []
    for target in (*targets_of(statement), *entered):
        if isinstance(target, Ref) and not target.path:
            yield target


def _variables(
    project: Project, path: str, level: Level, block: tuple[Statement, ...]
) -> Iterator[tuple[int, str, str]]:
    """A variable without writes to a seed in it has, wherever it is asked for, what it has anywhere in the function."""
    for at, statement in enumerate(block):
        if not isinstance(statement, Assign) or statement.op not in ("=", ":") or statement.value is None:
            continue
        for target in statement.targets:
            if not isinstance(target, Ref) or target.path or len(target.roots) != 1:
                continue
            root, word = target.roots[0], target.roots[0].rpartition(".")[2].lstrip(":")
            if WORD.fullmatch(word):
                gives = is_integer(statement.value)
            else:
                gives = root in seed_uses(project, level.body).writes or bool(fields(project, path, level, root, word))
            if gives:
                yield at, root, word


def _literals(project: Project, path: str, block: tuple[Statement, ...]) -> Iterator[tuple[int, str]]:
    """The calls that only seed, with a number that is written out."""
    for at, statement in enumerate(block):
        match statement:
            case Do(value=Call(args=(first, *_)) as call) if isinstance(first.value, Constant) and is_integer(
                first.value
            ):
                if project.only_seeds(path, call):
                    yield at, str(first.value.value)
