"""What a test, an assertion or an unpacking tells of a variable.

Which bindings hold at each statement of a function: assignments in order, branches joined, loops closed.

Which bindings hold at an offset of a file.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.dataflow.types.targets import (
    FLOW,
    MODES,
    Binding,
    Env,
    bound,
    changed,
    flagged_variables,
    given_containers,
    handed_on,
    joined,
    rebound_in,
    written_variables,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Define,
    Do,
    Expression,
    Facts,
    Function,
    If,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.syntax.visitor import expressions, parts, statements


def narrowed(test: Expression, env: Env, *, truth: bool) -> Env:
    """The bindings where a test holds, or fails."""
    match test:
        case Operation(op="not", operands=(inner,)):
            return narrowed(inner, env, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands) if (op == "and") is truth:
            for operand in operands:
                env = narrowed(operand, env, truth=truth)
            return env
        case Call(func=Ref(roots=("builtins.isinstance",), path=()), args=(first, second)) if truth:
            return _seen(first.value, env, "is", second.value)
        case Call(func=Ref(path=(*_, "is_tensor")), args=(first,)) if truth:
            return _seen(first.value, env, "tensor", None)
        case Operation(op="==" | "!=" as op, operands=(left, Constant(value=int(count)))) if (op == "==") is truth:
            return _seen(_counted(left), env, "ndim", None, (count, count))
        case Operation(op="in", operands=(left, Collection(items=items))) if truth:
            counts = [each.value for each in items if isinstance(each, Constant) and isinstance(each.value, int)]
            if counts and len(counts) == len(items):
                return _seen(_counted(left), env, "ndim", None, (min(counts), max(counts)))
    return env


def unpacked_shape(statement: Assign, env: Env) -> dict[str, Binding]:
    """``b, c, h, w = x.shape`` shows that ``x`` has four dimensions."""
    match statement:
        case Assign(targets=(Collection(items=items),), value=value, op="="):
            plain = not any(isinstance(each, Operation) for each in items)
            shape = _shape(value) if value is not None else None
            if plain and isinstance(shape, Ref):
                return dict(_changes(shape, env, "ndim", None, (len(items), len(items))))
    return {}


def measured(statement: Assign, env: Env) -> dict[str, Binding]:
    """``h, w = x.size(2), x.size(3)`` shows that ``x`` has four dimensions or more."""
    value = statement.value
    asked = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    counts: dict[str, Binding] = {}
    for each in asked:
        of, count = _dimension(each)
        counts.update(_changes(of, {**env, **counts}, "sized", None, (count, count)) if of is not None else {})
    return counts


def _dimension(expression: Expression | None) -> tuple[Expression | None, int]:
    """The tensor of which one dimension is read, and how many it has at least."""
    match expression:
        case Call(
            func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end),
            args=(Arg(value=Constant(value=int(at))),),
        ) if at >= 0:
            return Ref(start, end, roots, tuple(before), end), at + 1
        case Subscript(value=Ref() as shape, indices=(Constant(value=int(at)),)) if at >= 0:
            return _shape(shape), at + 1
    return None, 0


def _counted(expression: Expression) -> Expression | None:
    """The tensor whose dimensions an expression counts."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "ndim"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "dim" | "ndimension"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(roots=("builtins.len",), path=()), args=(arg,)):
            return _shape(arg.value)
    return None


def _shape(expression: Expression) -> Expression | None:
    """The tensor whose shape an expression is."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "shape"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Attribute():
            return None
    return None


def _seen(of: Expression | None, env: Env, how: str, value: Expression | None, at: tuple[int, int] = (0, 0)) -> Env:
    changes = _changes(of, env, how, value, at)
    return {**env, **changes} if changes else env


def _changes(
    of: Expression | None, env: Env, how: str, value: Expression | None, at: tuple[int, int]
) -> dict[str, Binding]:
    """The variable, seen through what is known of it; of a name with several meanings nothing is said."""
    if not isinstance(of, Ref) or of.path or len(of.roots) != 1 or of.roots[0] not in env:
        return {}
    return {of.roots[0]: Binding(how, value, env, (env[of.roots[0]],), at)}


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


class Places:
    """The flows of the functions of one file, each made when something in it is first asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._flows: dict[int, Flow] = {}
        self._inside: dict[tuple[int, int, int | None], tuple[Env, Env]] = {}
        self._owners: dict[Binding, Flow] = {}
        self._bodies = sorted((_inside(each), each.end, number) for number, each in enumerate(facts.functions))

    def env(self, offset: int) -> Env:
        """The bindings at an offset, those of comprehensions around it included."""
        flow = self.flow(self.function(offset))
        place = flow.place(offset)
        return flow.start if place is None else self._around(place.statement, offset, place.env)

    def inside(self, comprehension: Comprehension, env: Env, clauses: int | None = None) -> Env:
        """The bindings where the elements of a comprehension are evaluated, or behind so many of its clauses.

        They are made once: what is known of a binding is remembered by its identity.
        """
        key = (id(comprehension), id(env), clauses)
        if key not in self._inside:
            inner = env
            for clause in comprehension.clauses[:clauses]:
                inner = {**inner, **bound(clause.target, clause.source, inner, "[]")}
            self._inside[key] = (env, inner)
        return self._inside[key][1]

    def _around(self, statement: Statement, offset: int, env: Env) -> Env:
        """The bindings inside the comprehensions of a statement that stand around an offset."""
        around = [each for each in expressions(statement) if each.start <= offset < each.end]
        while around:
            expression = around[0]
            if isinstance(expression, Comprehension):
                sources = (each.source for each in expression.clauses)
                place = next((at for at, each in enumerate(sources) if each.start <= offset < each.end), None)
                env = self.inside(expression, env, place)
            around = [each for each in parts(expression) if each.start <= offset < each.end]
        return env

    def function(self, offset: int) -> Function | None:
        """The innermost function in whose body an offset stands; None at the top level and in class bodies."""
        found = None
        for start, end, number in self._bodies:
            if start > offset:
                break
            if offset < end:
                found = self._facts.functions[number]
        return found

    def flow(self, function: Function | None) -> Flow:
        """The flow of a function, or of the top level."""
        key = -1 if function is None else id(function)
        if key not in self._flows:
            flow = self._flows[key] = Flow(self._facts.body if function is None else function.body, function)
            self._owners[flow.start[FLOW]] = flow
        return self._flows[key]

    def owner(self, env: Env) -> Flow | None:
        """The flow that bindings are of."""
        return self._owners.get(env[FLOW]) if FLOW in env else None


def _inside(function: Function) -> int:
    """Where the body begins: decorators, defaults and annotations belong to what stands around."""
    return function.body[0].start if function.body else function.end
