"""What calls of libraries do with a program, and which of its functions they run.

What is read of a loader's dataset: ``loader.dataset.resample``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import frameworks
from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.loaders import loader_kinds
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.globs import starred
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Comprehension, Expression, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Framework


def rows_of(names: Iterable[str]) -> Iterator[Framework]:
    """The rows about what a call may call."""
    for name in names:
        if ":" not in name:
            yield from rows_named(name)


@lru_cache(maxsize=1 << 14)
def rows_named(name: str) -> tuple[Framework, ...]:
    """The rows about one name."""
    return frameworks().of(_given(name.removesuffix("().__init__")))


def _given(name: str) -> str:
    """The name of a method through its class: ``vision_learner().fit`` is a Learner's, ``Trainer().fit`` a Trainer's."""
    made, _, rest = name.partition("().")
    kinds = [row.gives for row in frameworks().of(made) if row.gives] if rest else []
    owner = f"{name.partition('.')[0]}.{kinds[0]}" if kinds else made
    return plain(f"{owner}.{rest}".removesuffix("."))


def keeps(names: Iterable[str]) -> bool:
    """Whether what a call is handed is called some time afterwards."""
    return any(row.keeps for row in rows_of(names))


def calls_method(names: Iterable[str], word: str) -> bool:
    """Whether a call runs a method of what it is handed, or called on, whose name this is."""
    return any(_words(pattern).fullmatch(word) for row in rows_of(names) for pattern in row.calls)


def matters(names: Iterable[str]) -> bool:
    """Whether a call trains or measures."""
    return any(row.matters for row in rows_of(names))


def accelerates(names: Iterable[str], call: Call) -> bool:
    """Whether a call may put work on an accelerator by itself."""
    return any(
        row.accelerates is not None
        and evaluate(row.accelerates, row.spelling, arguments(row.spelling, call)) is not Truth.FAILS
        for row in rows_of(names)
    )


class Handed(NamedTuple):
    """A call by which a library gets the program's objects: its file, and the classes on whose objects it is called."""

    path: str
    call: Call
    names: tuple[str, ...]
    receivers: tuple[str, ...]


def run_by(names: Names, handed: Handed) -> Iterator[str]:
    """What a library runs of what it is handed, in order: functions, classes (to make an object), methods."""
    for row in rows_of(handed.names):
        argument = arguments(row.spelling, handed.call)
        given = [value for word in row.runs if (value := argument(word)) is not None]
        made = [name for value in given for name in names.names(handed.path, value) if ":" in name]
        yield from made
        owners = [*handed.receivers, *(_owners(names, handed) if row.calls else ()), *filter(names.classes, made)]
        for pattern in row.calls:
            for owner in dict.fromkeys(owners):
                yield from names.methods_like(owner, _words(pattern))


def _owners(names: Names, handed: Handed) -> Iterator[str]:
    """The project's classes of the objects that a call is handed, and that what it is called on was made with."""
    calls = [(handed.path, handed.call)]
    receiver = receiver_of(handed.call.func)
    if receiver is not None:
        calls += ((file, made) for file, made in names.made(handed.path, receiver) if isinstance(made, Call))
    for path, call in calls:
        for value in handed_values(call):
            yield from (name[:-2] for name in names.names(path, value) if ":" in name and name.endswith("()"))


def handed_values(call: Call) -> Iterator[Expression]:
    """The values that a call passes, those in lists, dictionaries and comprehensions among them."""
    yield from values_in([arg.value for arg in call.args if arg.keyword != "worker_init_fn"])


def values_in(given: Iterable[Expression]) -> Iterator[Expression]:
    """Values, and instead of lists, dictionaries and comprehensions those in them."""
    queue = list(given)
    while queue:
        value = queue.pop(0)
        match value:
            case Collection(items=items):
                queue += (item for item in items if item is not None)
            case Comprehension(elements=elements):
                queue += elements
            case Call(func=Ref(roots=("builtins.dict" | "collections.OrderedDict",), path=()), args=args):
                queue += (arg.value for arg in args)
            case _:
                yield value


def receiver_of(expression: Expression) -> Expression | None:
    """``self.layers`` of ``self.layers[0]`` and ``net`` of ``net.forward``."""
    match expression:
        case Subscript(value=value) | Attribute(value=value):
            return value
        case Ref(path=(*before, _)):
            return expression._replace(path=tuple(before))
    return None


@lru_cache(maxsize=256)
def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(starred(pattern, r"\w*", count()))


_WORD = "dataset"


def through_loader(names: Names, path: str, read: Ref) -> tuple[str, ...]:
    """What a reference means that goes through the dataset of a loader which the project makes; nothing for another."""
    if _WORD not in read.path[:-1]:
        return ()
    at = read.path.index(_WORD)
    loader = read._replace(path=read.path[:at])
    found: set[str] = set()
    for file, made in names.made(path, loader):
        for dataset in _datasets(names, file, made) if isinstance(made, Call) else ():
            for name in names.names(file, dataset):
                found.update(names.follow(name, read.path[at + 1 :]) if ":" in name else ())
    return tuple(sorted(found))


def _datasets(names: Names, path: str, made: Call) -> Iterator[Expression]:
    """What a call that makes a loader is given to load from."""
    for name in names.names(path, made.func):
        if (kind := loader_kinds().get(name)) is not None and kind.dataset:
            place = kind.parameters.index(kind.dataset) if kind.dataset in kind.parameters else -1
            plain = [arg.value for arg in made.args if arg.keyword is None and not arg.star]
            yield from plain[place : place + 1] if place >= 0 else ()
            yield from (arg.value for arg in made.args if arg.keyword == kind.dataset)
