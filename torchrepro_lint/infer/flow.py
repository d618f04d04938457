"""Which bindings hold at each statement of a function: assignments in order, branches joined, loops closed."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.infer.bindings import FLOW, MODES, Binding, Env, joined
from torchrepro_lint.infer.changes import changed, flagged_variables, given_containers, handed_on, written_variables
from torchrepro_lint.infer.guards import measured, narrowed, unpacked_shape
from torchrepro_lint.infer.targets import bound, rebound_in
from torchrepro_lint.syntax.nodes import (
    Assign,
    Define,
    Do,
    Expression,
    Function,
    If,
    Leave,
    Loop,
    Match,
    Ref,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.visitor import expressions, statements


class Place(NamedTuple):
    """A statement, and the bindings where it begins."""

    statement: Statement
    env: Env


class Flow:
    """The bindings of one body. ``places`` stand in the order of the text, outer statements before inner ones."""

    def __init__(self, body: tuple[Statement, ...], function: Function | None) -> None:
        self.places: list[Place] = []
        self._left: list[list[Env]] = []
        env: dict[str, Binding] = {FLOW: Binding("flow")}
        for position, param in enumerate(function.params if function else ()):
            assert function is not None
            env[f"{function.name}.<locals>.{param.name}"] = Binding("param", param=(function, param, position))
        for decorator in function.decorators if function else ():
            env[MODES] = Binding("with", decorator, before=(env[MODES],) if MODES in env else ())
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

    def _after(self, statement: Statement, env: Env) -> Env | None:
        match statement:
            case Assign():
                return _assigned(statement, env)
            case Do(value=value):
                return handed_on(value, changed(value, env))
            case If(test=test, body=body, orelse=orelse):
                then = self._body(body, narrowed(test, env, truth=True))
                return joined(then, self._body(orelse, narrowed(test, env, truth=False)))
            case Loop():
                return self._loop(statement, env)
            case With(items=items, body=body):
                return self._with(items, body, env)
            case Try():
                return self._try(statement, env)
            case Match(cases=cases):
                return self._match([body for _, body in cases], env)
            case Define(body=body):
                return self._body(body, env)
            case Leave():
                return self._leave(statement, env)
        return env

    def _match(self, bodies: list[tuple[Statement, ...]], env: Env) -> Env | None:
        ways: Env | None = env  # no case may fit
        for body in bodies:
            ways = joined(ways, self._body(body, env))
        return ways

    def _leave(self, statement: Leave, env: Env) -> Env | None:
        match statement:
            case Leave(kind="assert", values=(test, *_)):
                return narrowed(test, env, truth=True)
            case Leave(kind="break" | "continue") if self._left:
                self._left[-1].append(env)
        return env if statement.kind in ("assert", "del") else None

    def _loop(self, loop: Loop, env: Env) -> Env | None:
        """What the body rebinds is, at its beginning, what it was before or what a round has left."""
        names = dict.fromkeys([*rebound_in(loop), *_filled_in(loop, env)])
        rebound = {name: Binding("loop", before=(env[name],) if name in env else ()) for name in names}
        begin: Env = {**env, **rebound}
        elements = {} if loop.target is None else bound(loop.target, loop.source, env, "[]")
        inside: Env = {**begin, **elements}
        if loop.target is None:
            inside = narrowed(loop.source, inside, truth=True)
        self._left.append([])
        ends = [end for end in (self._body(loop.body, inside), *self._left.pop()) if end is not None]
        for name, binding in rebound.items():
            more = [end[name] for end in ends if name in end and end[name] is not binding]
            binding.before = (*binding.before, *dict.fromkeys(more))
        return self._body(loop.orelse, joined(begin, inside))

    def _with(
        self, items: tuple[tuple[Expression, Expression | None], ...], body: tuple[Statement, ...], env: Env
    ) -> Env | None:
        """Inside, what is entered is among the modes; after it, the modes are those from before."""
        around = env.get(MODES)
        inside: dict[str, Binding] = dict(env)
        for value, target in items:
            inside[MODES] = Binding("with", value, before=(inside[MODES],) if MODES in inside else ())
            inside.update({} if target is None else bound(target, value, inside, "with"))
        end = self._body(body, inside)
        if end is None:
            return None
        return {**{name: each for name, each in end.items() if name != MODES}, **({MODES: around} if around else {})}

    def _try(self, statement: Try, env: Env) -> Env | None:
        body = self._body(statement.body, env)
        broken = joined(env, body)
        # In the order of the text, in which places are looked up.
        handled = [self._body(handler, broken) for _, handler in statement.handlers]
        ways = self._body(statement.orelse, body)
        for way in handled:
            ways = joined(ways, way)
        return self._body(statement.final, ways)


def _filled_in(loop: Loop, env: Env) -> list[str]:
    """The containers from before a loop that its body gives to calls."""
    inside = (each for statement in statements(loop.body) for each in expressions(statement))
    return [name for each in inside for name in given_containers(each, env)]


def _assigned(statement: Assign, env: Env) -> Env:
    if statement.value is not None:
        env = handed_on(statement.value, env)
    changes: dict[str, Binding] = {}
    for target in statement.targets:
        if statement.value is not None and (written := written_variables(target)):
            changes.update(
                {root: Binding("written", statement.value, env, (env[root],)) for root in written if root in env}
            )
        elif statement.value is not None and (flagged := flagged_variables(target)):
            changes.update(
                {root: Binding("flag", statement.value, env, (env[root],)) for root in flagged if root in env}
            )
        elif statement.op == ":":
            changes.update(_declared(target, statement, env))
        elif statement.op == "=" and statement.value is not None:
            changes.update(bound(target, statement.value, env, "="))
        elif isinstance(target, Ref) and not target.path and statement.op != "=":
            for root in target.roots:
                before = (env[root],) if root in env else ()
                changes[root] = Binding(statement.op, statement.value, env, before)
    return {**env, **measured(statement, env), **unpacked_shape(statement, env), **changes} if changes else env


def _declared(target: Expression, statement: Assign, env: Env) -> dict[str, Binding]:
    if not isinstance(target, Ref) or target.path:
        return {}
    how = "=" if statement.value is not None else ":"
    return {root: Binding(how, statement.value, env, annotation=statement.annotation) for root in target.roots}
