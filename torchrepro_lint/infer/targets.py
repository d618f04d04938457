"""What assignment targets bind, each with its part of the value."""

from __future__ import annotations

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.infer.changes import changed_variables, flagged_variables, written_variables
from torchrepro_lint.syntax.nodes import Assign, Collection, Do, Expression, Loop, Operation, Ref, With
from torchrepro_lint.syntax.visitor import statements


def bound(target: Expression, value: Expression, env: Env, how: str) -> dict[str, Binding]:
    """The variables that a target binds, each with its part of the value."""
    match target:
        case Ref(roots=roots, path=()):
            return {root: Binding(how, value, env) for root in roots}
        case Operation(op="*", operands=(Ref(roots=roots, path=()),)):
            return {root: Binding("*", value, env) for root in roots}
        case Collection(kind="tuple" | "list", items=items):
            return _unpacked(items, value, env, how)
    return {}


def _unpacked(items: tuple[Expression | None, ...], value: Expression, env: Env, how: str) -> dict[str, Binding]:
    found: dict[str, Binding] = {}
    if how == "=" and isinstance(value, Collection) and len(value.items) == len(items) and not _starred(value.items):
        for item, part in zip(items, value.items, strict=True):
            found.update(bound(item, part, env, "=") if item is not None and part is not None else {})
        return found
    whole = Binding(how, value, env)
    star = next((index for index, item in enumerate(items) if _starred((item,))), len(items))
    for index, item in enumerate(items):
        at = index if index < star else index - len(items)
        found.update(_parts(item, whole, (at, len(items) if star == len(items) else -1)) if item is not None else {})
    return found


def _parts(item: Expression, whole: Binding, at: tuple[int, int]) -> dict[str, Binding]:
    match item:
        case Ref(roots=roots, path=()):
            return dict.fromkeys(roots, Binding("[i]", before=(whole,), at=at))
        case Collection(kind="tuple" | "list", items=items):
            inner = Binding("[i]", before=(whole,), at=at)
            found: dict[str, Binding] = {}
            for index, each in enumerate(items):
                found.update(_parts(each, inner, (index, len(items))) if each is not None else {})
            return found
        case Operation(op="*", operands=(Ref(roots=roots, path=()),)):
            return dict.fromkeys(roots, Binding("*", before=(whole,)))
    return {}


def _starred(items: tuple[Expression | None, ...]) -> bool:
    return any(isinstance(each, Operation) and each.op == "*" and len(each.operands) == 1 for each in items)


def rebound_in(loop: Loop) -> list[str]:
    """The variables that a loop's body binds, or whose objects it changes."""
    found: dict[str, None] = {}
    for statement in (*statements(loop.body),):
        targets: tuple[Expression | None, ...] = ()
        if isinstance(statement, Assign):
            targets = statement.targets
        elif isinstance(statement, Loop):
            targets = (statement.target,)
        elif isinstance(statement, With):
            targets = tuple(target for _, target in statement.items)
        elif isinstance(statement, Do):
            found.update(dict.fromkeys(changed_variables(statement.value)))
        for target in targets:
            found.update(dict.fromkeys([*_words(target), *written_variables(target), *flagged_variables(target)]))
    return list(found)


def _words(target: Expression | None) -> list[str]:
    match target:
        case Ref(roots=roots, path=()):
            return list(roots)
        case Collection(items=items):
            return [name for item in items for name in _words(item)]
        case Operation(op="*", operands=(inner,)):
            return _words(inner)
    return []
