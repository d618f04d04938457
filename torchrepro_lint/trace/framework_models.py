"""Framework models: which of a program's callables a library call runs, and what else it does with the program.

The models are rows of the catalogue. Attributes of a loader's dataset (``loader.dataset.resample``) are modelled in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import frameworks
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.loaders import loader_kinds
from torchrepro_lint.catalogue.rows import without_calls
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.globs import wildcard_expression
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Comprehension, Expression, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import FrameworkModel


def rows_of(names: Iterable[str]) -> Iterator[FrameworkModel]:
    """The rows about the names that a call may call."""
    for name in names:
        if ":" not in name:
            yield from rows_named(name)


@lru_cache(maxsize=1 << 14)
def rows_named(name: str) -> tuple[FrameworkModel, ...]:
    """The rows about one name."""
    return frameworks().of(_given(name.removesuffix("().__init__")))


def _given(name: str) -> str:
    """The name of a method through its class: ``vision_learner().fit`` is a Learner's, ``Trainer().fit`` a Trainer's."""
    made, _, rest = name.partition("().")
    kinds = [row.gives for row in frameworks().of(made) if row.gives] if rest else []
    owner = f"{name.partition('.')[0]}.{kinds[0]}" if kinds else made
    return without_calls(f"{owner}.{rest}".removesuffix("."))


def stores_callables(names: Iterable[str]) -> bool:
    """Whether a call stores its callable arguments, to be called later."""
    return any(row.keeps for row in rows_of(names))


def calls_method(names: Iterable[str], word: str) -> bool:
    """Whether a call runs a method of this name on its arguments or its receiver."""
    return any(_words(pattern).fullmatch(word) for row in rows_of(names) for pattern in row.calls)


def trains_or_measures(names: Iterable[str]) -> bool:
    """Whether a call trains or evaluates a model."""
    return any(row.matters for row in rows_of(names))


def accelerates(names: Iterable[str], call: Call) -> bool:
    """Whether a call may put work on an accelerator by itself."""
    return any(
        row.accelerates is not None
        and evaluate(row.accelerates, row.signature, argument_reader(row.signature, call)) is not Truth.FAILS
        for row in rows_of(names)
    )


class LibraryCall(NamedTuple):
    """A library call: its file, the names that it calls, and the classes that its receiver may have."""

    path: str
    call: Call
    names: tuple[str, ...]
    receivers: tuple[str, ...]


def callbacks(names: Names, library_call: LibraryCall) -> Iterator[str]:
    """The callbacks of a library call, in order: functions, classes (to make an object), methods."""
    for row in rows_of(library_call.names):
        argument = argument_reader(row.signature, library_call.call)
        given = [value for word in row.runs if (value := argument(word)) is not None]
        made = [name for value in given for name in names.names(library_call.path, value) if ":" in name]
        yield from made
        owners = [
            *library_call.receivers,
            *(_owners(names, library_call) if row.calls else ()),
            *filter(names.classes, made),
        ]
        for pattern in row.calls:
            for owner in dict.fromkeys(owners):
                yield from names.methods_like(owner, _words(pattern))


def _owners(names: Names, library_call: LibraryCall) -> Iterator[str]:
    """The project's classes of the objects that a call passes, and of those that its receiver was constructed with."""
    calls = [(library_call.path, library_call.call)]
    receiver = receiver_of(library_call.call.func)
    if receiver is not None:
        calls += (
            (file, made)
            for file, made in names.values_through_calls(library_call.path, receiver)
            if isinstance(made, Call)
        )
    for path, call in calls:
        for value in passed_values(call):
            yield from (name[:-2] for name in names.names(path, value) if ":" in name and name.endswith("()"))


def passed_values(call: Call) -> Iterator[Expression]:
    """The values that a call passes, including the elements of lists, dictionaries and comprehensions."""
    yield from flattened_values([arg.value for arg in call.args if arg.keyword != "worker_init_fn"])


def flattened_values(given: Iterable[Expression]) -> Iterator[Expression]:
    """Values, with lists, dictionaries and comprehensions replaced by their elements."""
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
    """The receiver: ``self.layers`` of ``self.layers[0]`` and ``net`` of ``net.forward``."""
    match expression:
        case Subscript(value=value) | Attribute(value=value):
            return value
        case Ref(path=(*before, _)):
            return expression._replace(path=tuple(before))
    return None


@lru_cache(maxsize=256)
def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(wildcard_expression(pattern, r"\w*", count()))


_WORD = "dataset"


def dataset_attribute(names: Names, path: str, read: Ref) -> tuple[str, ...]:
    """The names of a reference through the dataset of a loader that the project makes; none for other references."""
    if _WORD not in read.path[:-1]:
        return ()
    at = read.path.index(_WORD)
    loader = read._replace(path=read.path[:at])
    found: set[str] = set()
    for file, made in names.values_through_calls(path, loader):
        for dataset in _datasets(names, file, made) if isinstance(made, Call) else ():
            for name in names.names(file, dataset):
                found.update(names.follow(name, read.path[at + 1 :]) if ":" in name else ())
    return tuple(sorted(found))


def _datasets(names: Names, path: str, made: Call) -> Iterator[Expression]:
    """The dataset arguments of a call that makes a loader."""
    for name in names.names(path, made.func):
        if (kind := loader_kinds().get(name)) is not None and kind.dataset:
            place = kind.parameters.index(kind.dataset) if kind.dataset in kind.parameters else -1
            plain = [arg.value for arg in made.args if arg.keyword is None and not arg.star]
            yield from plain[place : place + 1] if place >= 0 else ()
            yield from (arg.value for arg in made.args if arg.keyword == kind.dataset)
