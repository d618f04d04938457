"""Which bindings hold at each statement of a function: assignments in order, branches joined, loops closed."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.facts import (
    Assign,
    Collection,
    Define,
    Expression,
    Function,
    If,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Try,
    With,
)
from torchrepro_lint.infer.bindings import Binding, Env, joined
from torchrepro_lint.infer.guards import narrowed, unpacked_shape
from torchrepro_lint.walk import statements


class Place(NamedTuple):
    """A statement, and the bindings where it begins."""

    statement: Statement
    env: Env


class Flow:
    """The bindings of one body. ``places`` stand in the order of the text, outer statements before inner ones."""

    def __init__(self, body: tuple[Statement, ...], function: Function | None) -> None:
        self.places: list[Place] = []
        self._left: list[list[Env]] = []
        env: dict[str, Binding] = {}
        for position, param in enumerate(function.params if function else ()):
            assert function is not None
            env[f"{function.name}.<locals>.{param.name}"] = Binding("param", param=(function, param, position))
        self.start: Env = env
        self._body(body, env)

    def place(self, offset: int) -> Place | None:
        """The innermost statement around an offset; None where none is."""
        found = None
        for place in self.places:
            if place.statement.start > offset:
                break
            if offset < place.statement.end:
                found = place
        return found

    def _body(self, body: tuple[Statement, ...], env: Env | None) -> Env | None:
        for statement in body:
            if env is None:
                return None
            self.places.append(Place(statement, env))
            env = self._after(statement, env)
        return env

    def _after(self, statement: Statement, env: Env) -> Env | None:  # noqa: C901  a line or two per kind
        match statement:
            case Assign():
                return _assigned(statement, env)
            case If(test=test, body=body, orelse=orelse):
                then = self._body(body, narrowed(test, env, truth=True))
                return joined(then, self._body(orelse, narrowed(test, env, truth=False)))
            case Loop():
                return self._loop(statement, env)
            case With(items=items, body=body):
                for value, target in items:
                    env = env if target is None else {**env, **bound(target, value, env, "with")}
                return self._body(body, env)
            case Try():
                return self._try(statement, env)
            case Match(cases=cases):
                ways: Env | None = env
                for _, body in cases:
                    ways = joined(ways, self._body(body, env))
                return ways
            case Define(body=body):
                return self._body(body, env)
            case Leave(kind="assert", values=(test, *_)):
                return narrowed(test, env, truth=True)
            case Leave(kind="break" | "continue") if self._left:
                self._left[-1].append(env)
                return None
            case Leave(kind="return" | "raise"):
                return None
        return env

    def _loop(self, loop: Loop, env: Env) -> Env | None:
        """What the body rebinds is, at its beginning, what it was before or what a round has left."""
        rebound = {name: Binding("loop", before=(env[name],) if name in env else ()) for name in _targets(loop)}
        begin: Env = {**env, **rebound}
        inside = begin if loop.target is None else {**begin, **bound(loop.target, loop.source, env, "[]")}
        if loop.target is None:
            inside = narrowed(loop.source, inside, truth=True)
        self._left.append([])
        ends = [end for end in (self._body(loop.body, inside), *self._left.pop()) if end is not None]
        for name, binding in rebound.items():
            more = [end[name] for end in ends if name in end and end[name] is not binding]
            binding.before = (*binding.before, *dict.fromkeys(more))
        return self._body(loop.orelse, begin)

    def _try(self, statement: Try, env: Env) -> Env | None:
        body = self._body(statement.body, env)
        broken = joined(env, body)
        ways = self._body(statement.orelse, body)
        for _, handler in statement.handlers:
            ways = joined(ways, self._body(handler, broken))
        return self._body(statement.final, ways)


def _assigned(statement: Assign, env: Env) -> Env:
    changes: dict[str, Binding] = {}
    for target in statement.targets:
        if statement.op == ":":
            changes.update(_declared(target, statement, env))
        elif statement.op == "=" and statement.value is not None:
            changes.update(bound(target, statement.value, env, "="))
        elif isinstance(target, Ref) and not target.path:
            for root in target.roots:
                before = (env[root],) if root in env else ()
                changes[root] = Binding(statement.op, statement.value, env, before)
    return {**env, **changes, **unpacked_shape(statement, env)} if changes else env


def _declared(target: Expression, statement: Assign, env: Env) -> dict[str, Binding]:
    if not isinstance(target, Ref) or target.path:
        return {}
    how = "=" if statement.value is not None else ":"
    return {root: Binding(how, statement.value, env, annotation=statement.annotation) for root in target.roots}


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


def _targets(loop: Loop) -> list[str]:
    """The variables that a loop's body binds."""
    found: dict[str, None] = {}
    for statement in (*statements(loop.body),):
        targets: tuple[Expression | None, ...] = ()
        if isinstance(statement, Assign):
            targets = statement.targets
        elif isinstance(statement, Loop):
            targets = (statement.target,)
        elif isinstance(statement, With):
            targets = tuple(target for _, target in statement.items)
        for target in targets:
            found.update(dict.fromkeys(_words(target)))
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
