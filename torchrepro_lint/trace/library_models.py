"""Models of library calls in a trace: which of a program's callables a framework runs or stores, by rows of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count

from torchrepro_lint.catalogue.catalogue import frameworks
from torchrepro_lint.catalogue.conditions import argument_reader
from torchrepro_lint.catalogue.libraries import loader_kinds, loader_names
from torchrepro_lint.catalogue.rows import FrameworkModel
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import wildcard_expression
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Call, Expression, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    constructed_class,
    in_project,
    is_inherited_constructor,
    project_classes,
    split_method,
    top_package,
    without_calls,
)
from torchrepro_lint.syntax.use_def import passed_values, receiver_or_container
from torchrepro_lint.syntax.visitor import last_identifier

# Methods that add modules to a list or a container.
ADDING = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class LibraryCall(Record, frozen=True):
    """A library call: its file, the names that it calls, and the classes that its receiver may have."""

    path: str
    call: Call
    names: tuple[str, ...]
    receivers: tuple[str, ...]


def rows_of(names: Iterable[str]) -> Iterator[FrameworkModel]:
    """The rows about the names that a call may call."""
    for name in names:
        if not in_project(name):
            yield from rows_named(name)


@lru_cache(maxsize=1 << 14)
def rows_named(name: str) -> tuple[FrameworkModel, ...]:
    """The rows about one name."""
    return frameworks().of(_passed_callable(constructed_class(name) if is_inherited_constructor(name) else name))


def _passed_callable(name: str) -> str:
    """The name of a method through its class: ``vision_learner().fit`` is a Learner's, ``Trainer().fit`` a Trainer's."""
    made, rest = split_method(name)
    kinds = [row.gives for row in frameworks().of(made) if row.gives] if rest else []
    owner = f"{top_package(name)}.{kinds[0]}" if kinds else made
    return without_calls(f"{owner}.{rest}".removesuffix("."))


def stores_callables(names: Iterable[str]) -> str:
    """Who calls what a call stores, its callable arguments or what it decorates: ``later``, or its ``receiver``; empty if it stores none."""
    return next((row.keeps for row in rows_of(names) if row.keeps), "")


def keeper(found: Iterable[str], value: Expression) -> str:
    """Who calls what a call stores, see ``stores_callables``; a list, or a container of modules, keeps what is added to it."""
    adds = isinstance(value, Call) and last_identifier(value.func) in ADDING
    return stores_callables(found) or ("receiver" if adds else "")


def calls_method(names: Iterable[str], word: str) -> bool:
    """Whether a call runs a method of this name on its arguments or its receiver."""
    return any(callback_words(pattern).fullmatch(word) for row in rows_of(names) for pattern in row.calls)


@lru_cache(maxsize=256)
def callback_words(pattern: str) -> re.Pattern[str]:
    """The methods that a pattern of a row names: ``*`` stands for any letters."""
    return re.compile(wildcard_expression(pattern, r"\w*", count()))


def trains_or_measures(names: Iterable[str]) -> bool:
    """Whether a call trains or evaluates a model."""
    return any(row.matters for row in rows_of(names))


def callbacks(names: Names, library_call: LibraryCall) -> Iterator[str]:
    """The callbacks of a library call, in order: functions, classes (to make an object), methods."""
    for row in rows_of(library_call.names):
        argument = argument_reader(row.signature, library_call.call)
        given = [value for word in row.runs if (value := argument(word)) is not None]
        made = [name for value in given for name in names.names(library_call.path, value) if in_project(name)]
        yield from made
        owners = [*library_call.receivers, *(_owners(names, library_call) if row.calls else ())]
        for pattern in row.calls:
            for owner in dict.fromkeys((*owners, *filter(names.classes, made))):
                yield from names.methods_like(owner, callback_words(pattern))


def _owners(names: Names, library_call: LibraryCall) -> Iterator[str]:
    """The project's classes of the objects that a call passes, and of those that its receiver was constructed with."""
    calls = [(library_call.path, library_call.call)]
    receiver = receiver_or_container(library_call.call.func)
    if receiver is not None:
        found = names.values_through_calls(library_call.path, receiver)
        calls += ((file, made) for file, made in found if isinstance(made, Call))
    for path, call in calls:
        for value in passed_values(call):
            yield from project_classes(names.names(path, value))


def makes_loader(found: Iterable[str]) -> bool:
    """Whether a call makes a loader, or a dataset wrapper or sampler."""
    return any(name in loader_names() or name.startswith("torch.utils.data.") for name in found)


def dataset_attribute(names: Names, path: str, read: Ref) -> tuple[str, ...]:
    """The names of a reference through the dataset of a loader that the project makes; none for other references."""
    if "dataset" not in read.path[:-1]:
        return ()
    at = read.path.index("dataset")
    loader = read._replace(path=read.path[:at])
    found: set[str] = set()
    for file, made in names.values_through_calls(path, loader):
        for dataset in _datasets(names, file, made) if isinstance(made, Call) else ():
            for name in names.names(file, dataset):
                found.update(names.follow(name, read.path[at + 1 :]) if in_project(name) else ())
    return tuple(sorted(found))


def _datasets(names: Names, path: str, made: Call) -> Iterator[Expression]:
    """The dataset arguments of a call that makes a loader."""
    for name in names.names(path, made.func):
        if (kind := loader_kinds().get(name)) is not None and kind.dataset:
            place = kind.parameters.index(kind.dataset) if kind.dataset in kind.parameters else None
            if (given := known_argument(made, place, kind.dataset)) is not None:
                yield given
