"""TRL113: the clock decides how long a loop works, or which branch does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.training_steps import is_backward, names_optimizer
from torchrepro_lint.domain.programs import effects_in
from torchrepro_lint.domain.rng.seeders import method_and_receiver, reads_data
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Loop,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    span,
)
from torchrepro_lint.syntax.qualified_names import in_project, project_classes
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import (
    blocks,
    bodies,
    body_expressions,
    expressions_within,
    last_identifier,
    statements,
    subexpressions,
)
from torchrepro_lint.trace.traces import Context

_CLOCKS = lazy_pattern(
    r"time\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?|time\.clock|timeit\.default_timer|"
    r"datetime\.(datetime|date)\.(now|utcnow|today)"
)
# Prefilter: the last words of those.
_CLOCK_WORDS = frozenset(
    {
        f"{word}{ns}"
        for word in ("time", "monotonic", "perf_counter", "process_time", "thread_time")
        for ns in ("", "_ns")
    }
    | {"clock", "default_timer", "now", "utcnow", "today"}
)
_COMPARISONS = frozenset({"<", ">", "<=", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "if", "or"})
_NUMBERS = frozenset(f"builtins.{word}" for word in ("int", "float", "round", "abs", "min", "max"))
_LEAVING = frozenset({"break", "continue", "return"})
_EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit"})
# What a loop calls that waits for input, output or another process: its limit of time is a time-out.
_WAITS = frozenset(
    {"sleep", "recv", "poll", "readline", "get_nowait", "accept", "select", "wait", "urlopen", "acquire", "connect"}
    | {"communicate", "check_output", "recv_bytes", "readlines"}
)
_APPENDING = frozenset({"append", "extend", "insert", "add", "update"})


# Methods of tensors and environments that nothing else has, and those that give a count.
_COMPUTING = frozenset({"item", "tolist", "numpy", "cpu", "detach", "step"})
_CONVERTING = frozenset({"float", "round"})
_COUNTS = frozenset(
    {"len", "size", "numel", "dim", "device", "getsize", "tell", "memory_allocated", "max_memory_allocated"}
)


class Work(Record, frozen=True):
    """What statements do that changes the numbers of a run, and in words."""

    words: str


_TRAINS, _DRAWS, _FILLS = Work("trains"), Work("draws random numbers"), Work("gathers results")


def check(context: Context) -> Iterator[Finding]:
    """Each test of the clock that a loop or a branch hangs on which changes the numbers of the run."""
    if _CLOCK_WORDS.isdisjoint(context.tree.summary.calls) or context.path not in context.project.torch_modules:
        return
    reported: set[Span] = set()
    for body in bodies(context.tree):
        for place, what in _Body(context).findings(body, ()):
            if place not in reported:
                reported.add(place)
                yield Finding("TRL113", place, f"the clock decides {what}; count steps, epochs or samples instead")


class _Body:
    """The statements of one body, with the loops around each."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.project = context.project
        self.path = context.path

    def findings(self, body: Sequence[Statement], loops: tuple[Loop, ...]) -> Iterator[tuple[Span, str]]:
        """The comparisons with the clock that matter, each with what hangs on it."""
        for statement in body:
            if isinstance(statement, Loop) and statement.target is None:
                timed = self.comparison(self.path, statement.source)
                if timed is not None and (work := self._work_of_loop(statement)) is not None:
                    yield self._place(timed, statement.source), f"how long this loop {work.words}"
            elif isinstance(statement, If):
                timed = self.comparison(self.path, statement.test)
                if timed is not None and (what := self._decided(statement, loops)) is not None:
                    yield self._place(timed, statement.test), what
            inner = (*loops, statement) if isinstance(statement, Loop) else loops
            for block in blocks(statement):
                yield from self.findings(block, inner)

    def _place(self, timed: tuple[str, Expression], test: Expression) -> Span:
        """The comparison, or the test that it decides where that is in another file."""
        path, comparison = timed
        return span(comparison if path == self.path else test)

    def _decided(self, branch: If, loops: tuple[Loop, ...]) -> str | None:
        """What hangs on the test of a branch, in words; None where the numbers of the run do not."""
        inside = [*statements(branch.body), *statements(branch.orelse)]
        if any(isinstance(each, SimpleStatement) and each.kind == "raise" for each in inside):
            return None
        for number, loop in enumerate(reversed(loops)):
            if self._may_leave(inside, loop, innermost=number == 0) and (work := self._work_of_loop(loop)) is not None:
                return f"how long this loop {work.words}"
        for block in (branch.body, branch.orelse):
            if (work := self._work(block)) is not None and not self._waits(block):
                return f"whether this branch {work.words}"
        return None

    def _may_leave(self, inside: list[Statement], loop: Loop, *, innermost: bool) -> bool:
        """Whether a branch leaves a loop or its round, or sets a flag that a test of the loop reads."""
        kinds = _LEAVING if innermost else {"return"}
        return any(
            (isinstance(each, SimpleStatement) and each.kind in kinds) or self._exits(each) or _sets_flag(each, loop)
            for each in inside
        )

    def _exits(self, statement: Statement) -> bool:
        match statement:
            case ExpressionStatement(value=Call(func=func)):
                return not _EXITS.isdisjoint(self.project.names(self.path, func))
        return False

    # --- the clock ---------------------------------------------------------------------------------------------------

    def comparison(
        self, path: str, test: Expression, depth: int = limits.MAX_CLOCK_DEPTH
    ) -> tuple[str, Expression] | None:
        """The first comparison with the clock in a test, with its file."""
        match test:
            case Operation(op="and" | "or" | "not", operands=operands):
                found = (self.comparison(path, each, depth) for each in operands)
            case Operation(op=op, operands=operands) if op in _COMPARISONS:
                return (path, test) if any(self._is_clock(path, each, depth) for each in operands) else None
            case Ref() | Call() if depth:
                values = self.project.resolver.values_through_calls(path, test)
                found = (self.comparison(file, each, depth - 1) for file, each in values if isinstance(each, Operation))
            case _:
                return None
        return next((each for each in found if each is not None), None)

    def _is_clock(self, path: str, value: Expression, depth: int) -> bool:
        """Whether a number comes from the clock: a time, or a duration."""
        match value:
            case Operation(op=op, operands=operands) if op in _ARITHMETIC:
                return any(self._is_clock(path, each, depth) for each in operands)
            case Attribute(value=inner, name="seconds" | "days" | "hour" | "minute"):
                return self._is_clock(path, inner, depth)
            case Call(func=func, args=args):
                names = self.project.names(path, func)
                if any(map(_CLOCKS.fullmatch, names)):
                    return True
                if not _NUMBERS.isdisjoint(names):
                    return any(self._is_clock(path, arg.value, depth) for arg in args)
                receiver = (
                    receiver_or_container(func) if last_identifier(func) in ("total_seconds", "timestamp") else None
                )
                if receiver is not None:
                    return self._is_clock(path, receiver, depth)
        return bool(depth) and isinstance(value, Ref | Call) and self._comes_from_clock(path, value, depth)

    def _comes_from_clock(self, path: str, value: Expression, depth: int) -> bool:
        found = self.project.resolver.values_through_calls(path, value)
        return any(self._is_clock(file, each, depth - 1) for file, each in found if (file, each) != (path, value))

    # --- the work ----------------------------------------------------------------------------------------------------

    def _work_of_loop(self, loop: Loop) -> Work | None:
        """The first kind of work that a loop does; also what it stores for each round, as ``boxes[at] = found``."""
        if self._waits(loop.body):
            return None
        rounds = {root for each in targets(loop) for ref in bound_references(each) for root in ref.roots}
        stores = any(self._stores(each, rounds) for each in statements(loop.body))
        return self._work(loop.body) or (_FILLS if stores else None)

    def _stores(self, statement: Statement, rounds: set[str]) -> bool:
        match statement:
            case Assign(op="=", targets=(Subscript(indices=(Ref() as at,)),), value=value) if value is not None:
                return rounds.issuperset(at.roots) and self._is_result(value, limits.MAX_CLOCK_DEPTH)
        return False

    def _waits(self, body: Sequence[Statement]) -> bool:
        return any(isinstance(each, Call) and last_identifier(each.func) in _WAITS for each in body_expressions(body))

    def _work(self, body: Sequence[Statement]) -> Work | None:
        """The first kind of work that statements do, themselves or in a function of the project that they call."""
        found = {work for statement in statements(body) for work in self._works(statement)}
        return next((work for work in (_TRAINS, _DRAWS, _FILLS) if work in found), None)

    def _works(self, statement: Statement) -> Iterator[Work]:
        match statement:
            case Assign(op="+=", value=value) if value is not None and self._is_result(value, limits.MAX_CLOCK_DEPTH):
                yield _FILLS
        for each in expressions_within(statement):
            if isinstance(each, Call):
                yield from self._of_call(each)

    def _of_call(self, call: Call) -> Iterator[Work]:
        names = self.project.names(self.path, call.func)
        word, receiver = method_and_receiver(call.func)
        if is_backward(call, names) or (word == "step" and _is_stepped(receiver)):
            yield _TRAINS
        elif word in _APPENDING and call.args and self._is_result(call.args[-1].value, limits.MAX_CLOCK_DEPTH):
            yield _FILLS
        for name in names:
            if in_project(name) and self.project.resolver.functions(name):
                effects = effects_in(self.project, name)
                if any(_is_step(each.event.value, each.names) for each in effects.run.trace_events):
                    yield _TRAINS
                if effects.draws:
                    yield _DRAWS
            elif name.startswith(("torch.rand", "numpy.random.", "random.")) and word not in ("seed", "manual_seed"):
                yield _DRAWS

    def _is_result(self, value: Expression, depth: int) -> bool:
        """Whether a value is computed by a call, not a count, a text, a duration or a piece of a configuration."""
        if self._is_clock(self.path, value, 1):
            return False
        match value:
            case Call(func=func, args=args):
                if last_identifier(func) in _CONVERTING:
                    inner = receiver_or_container(func)
                    within = [*([inner] if inner is not None else []), *(arg.value for arg in args)]
                    return any(self._is_result(each, depth) for each in within)
                return self._computes(func) or (
                    any(map(in_project, self.project.names(self.path, func)))
                    and any(self._is_result(arg.value, depth) for arg in args)
                )
            case Operation(op="f" | "if"):
                return False
            case Operation(operands=operands):
                return any(self._is_result(each, depth) for each in operands)
            case Subscript(value=inner):
                return self._is_result(inner, depth)
            case Ref(path=()) if depth:
                found = self.project.values(self.path, value)
                return any(self._is_result(each, depth - 1) for _, each in found if each != value)
        return False

    def _computes(self, func: Expression) -> bool:
        """Whether a callee computes with numbers, reads data, or is a module."""
        names, word = self.project.names(self.path, func), last_identifier(func)
        if word in _COUNTS:
            return False
        if word in _COMPUTING or any(name.startswith(("torch.", "numpy.")) for name in names) or reads_data(names):
            return True
        return any(map(self.project.resolver.is_module_class, project_classes(names)))


def _is_step(call: Expression | None, names: tuple[str, ...]) -> bool:
    """Whether a call of a trace runs a backward pass or takes a step of an optimizer."""
    if not isinstance(call, Call):
        return False
    word, receiver = method_and_receiver(call.func)
    return is_backward(call, names) or (word == "step" and _is_stepped(receiver))


def _is_stepped(receiver: str) -> bool:
    return names_optimizer(receiver) or receiver.lower().endswith("scaler")


def _sets_flag(statement: Statement, loop: Loop) -> bool:
    """``done = True``, where the test of the loop, or of a branch that leaves it, reads it."""
    match statement:
        case Assign(targets=(Ref(roots=roots, path=path),), value=Constant(value=bool()), op="="):
            tests = [] if loop.target is not None else [loop.source]
            tests += (each.test for each in statements(loop.body) if isinstance(each, If) and _leaves_loop(each))
            return any(
                isinstance(part, Ref) and part.access_path == (roots, path)
                for test in tests
                for part in subexpressions(test)
            )
    return False


def _leaves_loop(branch: If) -> bool:
    return any(isinstance(last, SimpleStatement) and last.kind in ("break", "return") for last in branch.body[-1:])
