"""Flow-sensitive type environments: which bindings a variable has at each statement of a function.

Assignments are read in order, branches are joined, loops are closed, and tests, assertions and unpackings narrow a
variable.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.types.bindings import (
    FLOW,
    MODES,
    Binding,
    TypeEnvironment,
    after_escape,
    after_mutation,
    assume,
    bind_target,
    element_targets,
    escaping_containers,
    gradient_flag_targets,
    join_environments,
    variables_of_loop,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Loop,
    Match,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import local_symbol
from torchrepro_lint.syntax.visitor import expressions, operands_of, statements


def narrow(test: Expression, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    """The type environment where a test holds, or fails."""
    match test:
        case Operation(op="not", operands=(inner,)):
            return narrow(inner, env, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands) if (op == "and") is truth:
            for operand in operands:
                env = narrow(operand, env, truth=truth)
            return env
        case Call(func=Ref(roots=("builtins.isinstance",), path=()), args=(first, second)) if truth:
            return _narrow_variable(first.value, env, "is", second.value)
        case Call(func=Ref(path=(*_, "is_tensor")), args=(first,)) if truth:
            return _narrow_variable(first.value, env, "tensor", None)
        case Operation(op="==" | "!=" | "is" | "is not" as op, operands=(left, right)) if (
            op in ("==", "is")
        ) is truth and (of := _dtype_read(left) or _dtype_read(right)) is not None:
            return _narrow_variable(of, env, "dtype", right if _dtype_read(left) is not None else left)
        case Operation(op="in", operands=(left, Collection() as choices)) if truth and _dtype_read(left) is not None:
            return _narrow_variable(_dtype_read(left), env, "dtype", choices)
        case Operation(op="==" | "!=" as op, operands=(left, Constant(value=int(count)))) if (op == "==") is truth:
            return _narrow_variable(_rank_read(left), env, "ndim", None, (count, count))
        case Operation(op="in", operands=(left, Collection(items=items))) if truth:
            counts = [each.value for each in items if isinstance(each, Constant) and isinstance(each.value, int)]
            if counts and len(counts) == len(items):
                return _narrow_variable(_rank_read(left), env, "ndim", None, (min(counts), max(counts)))
    return env


def rank_by_unpacking(statement: Assign, env: TypeEnvironment) -> dict[str, Binding]:
    """``b, c, h, w = x.shape`` implies that ``x`` has four dimensions."""
    match statement:
        case Assign(targets=(Collection(items=items),), value=value, op="="):
            plain = not any(isinstance(each, Operation) for each in items)
            shape = _shape_read(value) if value is not None else None
            if plain and isinstance(shape, Ref):
                return dict(_narrowed_bindings(shape, env, "ndim", None, (len(items), len(items))))
    return {}


def rank_by_sizes(statement: Assign, env: TypeEnvironment) -> dict[str, Binding]:
    """``h, w = x.size(2), x.size(3)`` implies that ``x`` has at least four dimensions."""
    value = statement.value
    asked = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    counts: dict[str, Binding] = {}
    for each in asked:
        of, count = _size_read(each)
        counts.update(
            _narrowed_bindings(of, env.rebound(counts), "sized", None, (count, count)) if of is not None else {}
        )
    return counts


def _size_read(expression: Expression | None) -> tuple[Expression | None, int]:
    """The tensor whose size in one dimension is read, and its minimal rank."""
    match expression:
        case Call(
            func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end),
            args=(Arg(value=Constant(value=int(at))),),
        ) if at >= 0:
            return Ref(start, end, roots, tuple(before), end), at + 1
        case Subscript(value=Ref() as shape, indices=(Constant(value=int(at)),)) if at >= 0:
            return _shape_read(shape), at + 1
    return None, 0


def _dtype_read(expression: Expression) -> Expression | None:
    """The tensor whose dtype an expression reads."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "dtype"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
    return None


def _rank_read(expression: Expression) -> Expression | None:
    """The tensor whose rank an expression reads."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "ndim"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "dim" | "ndimension"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(roots=("builtins.len",), path=()), args=(arg,)):
            return _shape_read(arg.value)
    return None


def _shape_read(expression: Expression) -> Expression | None:
    """The tensor whose shape an expression reads."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "shape"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Attribute():
            return None
    return None


def _narrow_variable(
    of: Expression | None, env: TypeEnvironment, how: str, value: Expression | None, at: tuple[int, int] = (0, 0)
) -> TypeEnvironment:
    return env.rebound(_narrowed_bindings(of, env, how, value, at))


def _narrowed_bindings(
    of: Expression | None, env: TypeEnvironment, how: str, value: Expression | None, at: tuple[int, int]
) -> dict[str, Binding]:
    """A narrowed binding of the variable; none for a name with several roots."""
    if not isinstance(of, Ref) or of.path or len(of.roots) != 1 or of.roots[0] not in env:
        return {}
    return {of.roots[0]: Binding(how, value, env, (env[of.roots[0]],), at)}


class StatementPoint(Record, frozen=True):
    """A statement and the type environment before it."""

    statement: Statement
    env: TypeEnvironment


class BodyFlow:
    """The flow-sensitive bindings of one body. ``points`` are in text order, outer statements before inner ones."""

    def __init__(self, body: tuple[Statement, ...], function: Function | None) -> None:
        self.points: list[StatementPoint] = []
        self._left: list[list[TypeEnvironment]] = []
        env = TypeEnvironment({FLOW: Binding("flow")})
        for position, param in enumerate(function.params if function else ()):
            assert function is not None
            env[local_symbol(function.name, param.name)] = Binding("param", param=(function, param, position))
        for decorator in function.decorators if function else ():
            env[MODES] = Binding("with", decorator, predecessors=(env[MODES],) if MODES in env else ())
        self.start = env
        # Whether the end of the body is reached: a function then returns None.
        self.falls_through = self._body(body, env) is not None

    def point_at(self, offset: int) -> StatementPoint | None:
        """The innermost statement around an offset, if any."""
        found = None
        for place in self.points:
            if place.statement.start > offset:
                break
            if offset < place.statement.end:
                found = place
        return found

    def _body(self, body: tuple[Statement, ...], env: TypeEnvironment | None) -> TypeEnvironment | None:
        for statement in body:
            if env is None:
                return None
            self.points.append(StatementPoint(statement, env))
            env = self._after(statement, env)
        return env

    def _after(self, statement: Statement, env: TypeEnvironment) -> TypeEnvironment | None:
        match statement:
            case Assign():
                return _assigned(statement, env)
            case ExpressionStatement(value=value):
                return after_escape(value, after_mutation(value, env))
            case If(test=test, body=body, orelse=orelse):
                then = self._body(body, assume(test, narrow(test, env, truth=True), truth=True))
                other = assume(test, narrow(test, env, truth=False), truth=False)
                return join_environments(then, self._body(orelse, other))
            case Loop():
                return self._loop(statement, env)
            case With(items=items, body=body):
                return self._with(items, body, env)
            case Try():
                return self._try(statement, env)
            case Match(cases=cases):
                return self._match([body for _, body in cases], env)
            case DefinitionStatement(body=body):
                return self._body(body, env)
            case SimpleStatement():
                return self._leave(statement, env)
        return env

    def _match(self, bodies: list[tuple[Statement, ...]], env: TypeEnvironment) -> TypeEnvironment | None:
        ways: TypeEnvironment | None = env  # no case may fit
        for body in bodies:
            ways = join_environments(ways, self._body(body, env))
        return ways

    def _leave(self, statement: SimpleStatement, env: TypeEnvironment) -> TypeEnvironment | None:
        match statement:
            case SimpleStatement(kind="assert", values=(test, *_)):
                return assume(test, narrow(test, env, truth=True), truth=True)
            case SimpleStatement(kind="break" | "continue") if self._left:
                self._left[-1].append(env)
        return env if statement.kind in ("assert", "del") else None

    def _loop(self, loop: Loop, env: TypeEnvironment) -> TypeEnvironment | None:
        """A loop: at the start of its body, a rebound variable has its previous binding or that of an earlier round."""
        names = dict.fromkeys([*variables_of_loop(loop), *_containers_escaping(loop, env)])
        rebound = {name: Binding("loop", predecessors=(env[name],) if name in env else ()) for name in names}
        begin = env.rebound(rebound)
        elements = {} if loop.target is None else bind_target(loop.target, loop.source, env, "[]")
        inside = begin.rebound(elements)
        if loop.target is None:
            inside = assume(loop.source, narrow(loop.source, inside, truth=True), truth=True)
        self._left.append([])
        ends = [end for end in (self._body(loop.body, inside), *self._left.pop()) if end is not None]
        for name, binding in rebound.items():
            more = [end[name] for end in ends if name in end and end[name] is not binding]
            binding.predecessors = (*binding.predecessors, *dict.fromkeys(more))
        return self._body(loop.orelse, join_environments(begin, inside))

    def _with(
        self, items: tuple[tuple[Expression, Expression | None], ...], body: tuple[Statement, ...], env: TypeEnvironment
    ) -> TypeEnvironment | None:
        """A ``with``: its context managers are among the modes inside, and not after it."""
        around = env.get(MODES)
        inside = TypeEnvironment(env)
        for value, target in items:
            inside[MODES] = Binding("with", value, predecessors=(inside[MODES],) if MODES in inside else ())
            inside.update({} if target is None else bind_target(target, value, inside, "with"))
        end = self._body(body, inside)
        if end is None:
            return None
        after = TypeEnvironment(end)
        after.pop(MODES, None)
        return after.rebound({MODES: around} if around else {})

    def _try(self, statement: Try, env: TypeEnvironment) -> TypeEnvironment | None:
        body = self._body(statement.body, env)
        broken = join_environments(env, body)
        # In text order, since points are searched in it.
        handled = [self._body(handler, broken) for _, handler in statement.handlers]
        ways = self._body(statement.orelse, body)
        for way in handled:
            ways = join_environments(ways, way)
        return self._body(statement.final, ways)


def _containers_escaping(loop: Loop, env: TypeEnvironment) -> list[str]:
    """The containers from before a loop that its body passes to calls."""
    inside = (each for statement in statements(loop.body) for each in expressions(statement))
    return [name for each in inside for name in escaping_containers(each, env)]


def _assigned(statement: Assign, env: TypeEnvironment) -> TypeEnvironment:
    if statement.value is not None:
        env = after_escape(statement.value, env)
    changes: dict[str, Binding] = {}
    for target in statement.targets:
        if statement.value is not None and (written := element_targets(target)):
            changes.update(
                {root: Binding("written", statement.value, env, (env[root],)) for root in written if root in env}
            )
        elif statement.value is not None and (flagged := gradient_flag_targets(target)):
            changes.update(
                {root: Binding("flag", statement.value, env, (env[root],)) for root in flagged if root in env}
            )
        elif statement.op == ":":
            changes.update(_declared(target, statement, env))
        elif statement.op == "=" and statement.value is not None:
            changes.update(bind_target(target, statement.value, env, "="))
        elif isinstance(target, Ref) and not target.path and statement.op != "=":
            for root in target.roots:
                before = (env[root],) if root in env else ()
                changes[root] = Binding(statement.op, statement.value, env, before)
    return env.rebound(
        {**rank_by_sizes(statement, env), **rank_by_unpacking(statement, env), **changes} if changes else {}
    )


def _declared(target: Expression, statement: Assign, env: TypeEnvironment) -> dict[str, Binding]:
    if not isinstance(target, Ref) or target.path:
        return {}
    how = "=" if statement.value is not None else ":"
    return {root: Binding(how, statement.value, env, annotation=statement.annotation) for root in target.roots}


class FileFlows:
    """The flows of the functions of one file, each built on demand."""

    def __init__(self, facts: SyntaxTree) -> None:
        self._facts = facts
        self._flows: dict[Function | None, BodyFlow] = {}
        self._inside: dict[tuple[Comprehension, TypeEnvironment, int | None], TypeEnvironment] = {}
        self._owners: dict[Binding, BodyFlow] = {}
        self._bodies = sorted((_body_start(each), each.end, number) for number, each in enumerate(facts.functions))

    def environment_at(self, offset: int) -> TypeEnvironment:
        """The type environment at an offset, with the bindings of comprehensions around it."""
        flow = self.flow(self.function(offset))
        place = flow.point_at(offset)
        return flow.start if place is None else self._around(place.statement, offset, place.env)

    def inside(self, comprehension: Comprehension, env: TypeEnvironment, clauses: int | None = None) -> TypeEnvironment:
        """The type environment of a comprehension's elements, or after so many of its clauses.

        It is built once, since answers are cached by the identity of bindings.
        """
        key = comprehension, env, clauses
        if key not in self._inside:
            inner = env
            for clause in comprehension.clauses[:clauses]:
                inner = inner.rebound(bind_target(clause.target, clause.source, inner, "[]"))
                for test in clause.tests:
                    inner = assume(test, inner, truth=True)
            self._inside[key] = inner
        return self._inside[key]

    def _around(self, statement: Statement, offset: int, env: TypeEnvironment) -> TypeEnvironment:
        """The type environment inside the comprehensions around an offset."""
        around = [each for each in expressions(statement) if each.start <= offset < each.end]
        while around:
            expression = around[0]
            if isinstance(expression, Comprehension):
                sources = (each.source for each in expression.clauses)
                place = next((at for at, each in enumerate(sources) if each.start <= offset < each.end), None)
                env = self.inside(expression, env, place)
            around = [each for each in operands_of(expression) if each.start <= offset < each.end]
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

    def flow(self, function: Function | None) -> BodyFlow:
        """The flow of a function, or of the top level."""
        if function not in self._flows:
            flow = self._flows[function] = BodyFlow(self._facts.body if function is None else function.body, function)
            self._owners[flow.start[FLOW]] = flow
        return self._flows[function]

    def flow_of(self, env: TypeEnvironment) -> BodyFlow | None:
        """The flow that a type environment belongs to."""
        return self._owners.get(env[FLOW]) if FLOW in env else None


def _body_start(function: Function) -> int:
    """The start of the body: decorators, defaults and annotations belong to the enclosing scope."""
    return function.body[0].start if function.body else function.end
