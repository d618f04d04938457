"""The environment variables that a run sets or removes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Literal
from torchrepro_lint.dataflow.constants import constant
from torchrepro_lint.flags import Setting, items
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Leave, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.events import Event

_ENVIRONMENT = "os.environ"
_SET = frozenset({"os.putenv", "os.environ.setdefault", "os.environ.__setitem__"})
_REMOVE = frozenset({"os.unsetenv", "os.environ.pop", "os.environ.__delitem__"})
_ASK = frozenset({"os.environ.get", "os.getenv"})


def variables(names: Names, path: str, event: Event, found: tuple[str, ...]) -> Iterator[Setting]:
    """What an event of a file does to variables; the value of one that is removed is None."""
    if event.kind == "set" and _ENVIRONMENT in found:
        if isinstance(event.value, Subscript):
            yield from _set(names, path, event.value.indices[0], event.given)
        elif isinstance(event.statement, Assign) and event.statement.op == "|=" and event.given is not None:
            yield from _updated(names, path, event.given)
    elif event.kind == "call" and isinstance(event.value, Call):
        yield from _called(names, path, event.value, frozenset(found))
    elif event.kind == "index" and isinstance(event.statement, Leave) and event.statement.kind == "del":
        for target in event.statement.values:
            if isinstance(target, Subscript) and target.value is event.value and _ENVIRONMENT in found:
                yield from _removed(names, path, target.indices[0])


def _called(names: Names, path: str, call: Call, found: frozenset[str]) -> Iterator[Setting]:
    if found & _SET and len(call.args) > 1:
        yield from _set(names, path, call.args[0].value, call.args[1].value)
    elif found & _REMOVE and call.args:
        yield from _removed(names, path, call.args[0].value)
    elif "os.environ.update" in found:
        for arg in call.args:
            if arg.keyword:
                yield Setting(arg.keyword, _value(names, path, arg.value), arg.value)
            else:
                yield from _updated(names, path, arg.value)


def _set(names: Names, path: str, key: Expression, given: Expression | None) -> Iterator[Setting]:
    name = constant(names, path, key)
    if isinstance(name, str):
        yield Setting(name, _value(names, path, given), given)


def _removed(names: Names, path: str, key: Expression) -> Iterator[Setting]:
    name = constant(names, path, key)
    if isinstance(name, str):
        yield Setting(name, None)


def _updated(names: Names, path: str, given: Expression) -> Iterator[Setting]:
    for name, file, value in items(names, path, given):
        yield Setting(name, _value(names, file, value), value)


def _value(names: Names, path: str, given: Expression | None) -> Literal:
    """The text that a variable gets: ``str(0)``, and the default of what the environment is asked for itself."""
    match given:
        case Call(func=func, args=(only,)) if "builtins.str" in names.names(path, func):
            return constant(names, path, only.value)
        case Call(func=func, args=(_, default)) if _ASK.intersection(names.names(path, func)):
            return constant(names, path, default.value)
    return constant(names, path, given)
