"""What calls of libraries do with a program, and which of its functions they run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import frameworks
from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.source.globs import starred
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Comprehension, Expression, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Framework
    from torchrepro_lint.resolve.names import Names


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
