"""What lists and tuples hold: the items of their displays, and those that statements add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.histories import history
from torchrepro_lint.scoped import UNKNOWN, Arguments, Scoped
from torchrepro_lint.syntax.nodes import Call, Collection, Comprehension, Expression, Operation, Ref

if TYPE_CHECKING:
    from torchrepro_lint.value_context import Step, ValueSources

_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "torch.nn.ModuleList"})
# Lists may hold lists so deep.
_DEEPEST = 10


def collected(origins: ValueSources, scoped: Scoped, depth: int = 0) -> Arguments:
    """The items of a list or tuple, those that are added later among them, as spare arguments."""
    if depth > _DEEPEST:
        return UNKNOWN
    match scoped.value:
        case Ref():
            return _items_of(origins, scoped, depth)
        case Collection(kind="list" | "tuple" | "set" | "added", items=items):
            return _joined(origins, scoped, items, depth)
        case Comprehension(kind="list" | "generator" | "set", elements=(element,)):
            return _item(scoped._replace(value=element))
        case Operation(op="+" | "or", operands=operands) | Operation(op="if", operands=(_, *operands)):
            return _all(collected(origins, scoped._replace(value=each), depth + 1) for each in operands)
        case Call(func=func, args=(arg,)) if _LISTS.intersection(origins.project.names(scoped.path, func)):
            return collected(origins, scoped._replace(value=arg.value), depth + 1)
    found = [each for each in origins.of(scoped) if each.value is not scoped.value]
    return _all(collected(origins, each, depth + 1) for each in found) if found else UNKNOWN


def is_list(origins: ValueSources, scoped: Scoped) -> bool:
    """Whether a value is a list, so that what is appended to it becomes one of its items."""
    match scoped.value:
        case Collection(kind="list") | Comprehension(kind="list"):
            return True
        case Operation(op="+", operands=operands):
            return any(is_list(origins, scoped._replace(value=each)) for each in operands)
        case Call(func=Ref(roots=("builtins.list",), path=())):
            return True
        case Call() | Ref():
            behind = (each.value for each in origins.of(scoped))
            return any(isinstance(each, Collection) and each.kind == "list" for each in behind)
    return False


def added(step: Step, scoped: Scoped) -> Iterator[Scoped]:
    """What a step adds to a list, as a display of its own."""
    change = step.change
    if change is not None and change.kind in ("add", "join") and change.value is not None:
        value = change.value
        item = value if change.kind == "add" else Operation(value.start, value.end, "*", (value,))
        yield Scoped(step.path, Collection(value.start, value.end, "added", (item,)), scoped.scope)


def _items_of(origins: ValueSources, scoped: Scoped, depth: int) -> Arguments:
    parts: list[Arguments] = []
    known = False
    for step in history(origins, scoped):
        if step.value is not None:
            known = True
            way = step.value if isinstance(step.value, Arguments) else collected(origins, step.value, depth + 1)
            parts = [way] if step.certain else [*parts, way]
        elif step.change is not None and step.change.kind in ("add", "join") and step.change.value is not None:
            item = Scoped(step.path, step.change.value, scoped.scope)
            parts.append(_item(item) if step.change.kind == "add" else collected(origins, item, depth + 1))
    return _all(parts) if known else UNKNOWN


def _item(item: Scoped) -> Arguments:
    return Arguments({}, (item,))


def _joined(origins: ValueSources, scoped: Scoped, items: tuple[Expression | None, ...], depth: int) -> Arguments:
    parts = []
    for item in items:
        if isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1:
            parts.append(collected(origins, scoped._replace(value=item.operands[0]), depth + 1))
        elif item is not None:
            parts.append(Arguments({}, (scoped._replace(value=item),)))
    return _all(parts)


def _all(parts: Iterable[Arguments]) -> Arguments:
    kept = list(parts)
    return Arguments({}, tuple(item for each in kept for item in each.spare), all(each.complete for each in kept))
