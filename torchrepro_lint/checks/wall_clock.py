"""TRL113: the clock decides how long a loop works, or which branch does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.gradients.modes import is_backward
from torchrepro_lint.domain.rng.seeders import method_and_receiver
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
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    span,
)
from torchrepro_lint.syntax.visitor import blocks, bodies, expressions, last_identifier, statements, subexpressions
from torchrepro_lint.trace.library_models import receiver_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context

_CLOCKS = re.compile(
    r"time\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?|time\.clock|timeit\.default_timer|"
    r"datetime\.(datetime|date)\.(now|utcnow|today)"
)
# Prefilter: the last words of those.
_CLOCK_WORDS = frozenset(
    {f"{word}{ns}" for word in ("time", "monotonic", "perf_counter", "process_time", "thread_time") for ns in ("", "_ns")}
    | {"clock", "default_timer", "now", "utcnow", "today"}
)
_COMPARISONS = frozenset({"<", ">", "<=", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "if", "or"})
_NUMBERS = frozenset(f"builtins.{word}" for word in ("int", "float", "round", "abs", "min", "max"))
_DEEPEST = 4
_LEAVING = frozenset({"break", "continue", "return"})
_EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit"})
# What a loop calls that waits for input, output or another process: its limit of time is a time-out.
_WAITS = frozenset(
    {"sleep", "recv", "poll", "readline", "get_nowait", "accept", "select", "wait", "urlopen", "acquire", "connect"}
    | {"communicate", "check_output", "recv_bytes", "readlines", "exists"}
)
_APPENDING = frozenset({"append", "extend", "insert", "add", "update"})
_OPTIMIZER = re.compile(r"(?i)(\w*_)?(optim\w*|opt|scaler)")


class Work(NamedTuple):
    """What statements do that changes the numbers of a run, and in words."""

    words: str


_TRAINS, _DRAWS, _FILLS = Work("trains"), Work("draws random numbers"), Work("gathers results")


def check(context: Context) -> Iterator[Finding]:
    """Each test of the clock that a loop or a branch hangs on which changes the numbers of the run."""
    if _CLOCK_WORDS.isdisjoint(context.tree.summary.calls) or context.path not in context.project.torch_modules:
        return
    for body in bodies(context.tree):
        yield from _Body(context).findings(body, ())


class _Body:
    """The statements of one body, with the loops around each."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.project = context.project
        self.path = context.path

    def findings(self, body: Sequence[Statement], loops: tuple[Loop, ...]) -> Iterator[Finding]:
        for statement in body:
            if isinstance(statement, Loop) and statement.target is None and self.is_timed(self.path, statement.source):
                if (work := self._work_of_loop(statement)) is not None:
                    yield self._finding(statement.source, f"how long this loop {work.words}")
            elif isinstance(statement, If) and self.is_timed(self.path, statement.test):
                if (what := self._decided(statement, loops)) is not None:
                    yield self._finding(statement.test, what)
            inner = (*loops, statement) if isinstance(statement, Loop) else loops
            for block in blocks(statement):
                yield from self.findings(block, inner)

    def _finding(self, test: Expression, what: str) -> Finding:
        return Finding("TRL113", span(test), f"the clock decides {what}; count steps, epochs or samples instead")

    def _decided(self, branch: If, loops: tuple[Loop, ...]) -> str | None:
        """What hangs on the test of a branch, in words; None where the numbers of the run do not."""
        inside = [*statements(branch.body), *statements(branch.orelse)]
        if any(isinstance(each, SimpleStatement) and each.kind == "raise" for each in inside):
            return None
        for loop in reversed(loops):
            if self._may_leave(branch, inside, loop) and (work := self._work_of_loop(loop)) is not None:
                return f"how long this loop {work.words}"
        for block in (branch.body, branch.orelse):
            if (work := self._work(block)) is not None and not self._waits(block):
                return f"whether this branch {work.words}"
        return None

    def _may_leave(self, branch: If, inside: list[Statement], loop: Loop) -> bool:
        """Whether a branch leaves a loop or its round, or sets a flag that a test of the loop reads."""
        return any(
            (isinstance(each, SimpleStatement) and each.kind in _LEAVING) or self._exits(each) or _sets_flag(each, loop)
            for each in inside
        )

    def _exits(self, statement: Statement) -> bool:
        match statement:
            case ExpressionStatement(value=Call(func=func)):
                return not _EXITS.isdisjoint(self.project.names(self.path, func))
        return False

    # --- the clock ---------------------------------------------------------------------------------------------------

    def is_timed(self, path: str, test: Expression, depth: int = _DEEPEST) -> bool:
        """Whether a test compares something with the clock."""
        match test:
            case Operation(op="and" | "or" | "not", operands=operands):
                return any(self.is_timed(path, each, depth) for each in operands)
            case Operation(op=op, operands=operands) if op in _COMPARISONS:
                return any(self._is_clock(path, each, depth) for each in operands)
            case Ref() | Call() if depth:
                return any(
                    self.is_timed(file, value, depth - 1)
                    for file, value in self.project.resolver.values_through_calls(path, test)
                    if isinstance(value, Operation)
                )
        return False

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
                if last_identifier(func) in ("total_seconds", "timestamp") and (inner := receiver_of(func)) is not None:
                    return self._is_clock(path, inner, depth)
        return bool(depth) and isinstance(value, Ref | Call) and self._comes_from_clock(path, value, depth)

    def _comes_from_clock(self, path: str, value: Expression, depth: int) -> bool:
        found = self.project.resolver.values_through_calls(path, value)
        return any(self._is_clock(file, each, depth - 1) for file, each in found if each is not value)

    # --- the work ----------------------------------------------------------------------------------------------------

    def _work_of_loop(self, loop: Loop) -> Work | None:
        return None if self._waits(loop.body) else self._work(loop.body)

    def _waits(self, body: Sequence[Statement]) -> bool:
        return any(
            isinstance(each, Call) and last_identifier(each.func) in _WAITS
            for statement in statements(body)
            for expression in expressions(statement)
            for each in subexpressions(expression)
        )

    def _work(self, body: Sequence[Statement]) -> Work | None:
        """The first kind of work that statements do, themselves or in a function of the project that they call."""
        found = {work for statement in statements(body) for work in self._works(statement)}
        return next((work for work in (_TRAINS, _DRAWS, _FILLS) if work in found), None)

    def _works(self, statement: Statement) -> Iterator[Work]:
        if isinstance(statement, Assign) and statement.op == "+=" and statement.value is not None:
            if self._is_result(statement.value, _DEEPEST):
                yield _FILLS
        for expression in expressions(statement):
            for each in subexpressions(expression):
                if isinstance(each, Call):
                    yield from self._of_call(each)

    def _of_call(self, call: Call) -> Iterator[Work]:
        names = self.project.names(self.path, call.func)
        word, receiver = method_and_receiver(call.func)
        if is_backward(call, names) or (word == "step" and _OPTIMIZER.fullmatch(receiver)):
            yield _TRAINS
        elif word in _APPENDING and call.args and self._is_result(call.args[-1].value, _DEEPEST):
            yield _FILLS
        for name in names:
            if ":" in name and self.project.resolver.functions(name):
                effects = self.project.effects_in(name)
                if any(_is_step(each.event.value, each.names) for each in self.project.trace_of(name).trace_events):
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
            case Call(func=func):
                return last_identifier(func) not in ("len", "size", "numel", "int", "str", "format", "join", "getsize")
            case Operation(op="f" | "if"):
                return False
            case Operation(operands=operands):
                return any(self._is_result(each, depth) for each in operands)
            case Subscript(value=inner):
                return self._is_result(inner, depth)
            case Ref(path=()) if depth:
                found = self.project.values(self.path, value)
                return any(self._is_result(each, depth - 1) for _, each in found if each is not value)
        return False


def _is_step(call: Expression | None, names: tuple[str, ...]) -> bool:
    """Whether a call of a trace runs a backward pass or takes a step of an optimizer."""
    if not isinstance(call, Call):
        return False
    word, receiver = method_and_receiver(call.func)
    return is_backward(call, names) or (word == "step" and _OPTIMIZER.fullmatch(receiver) is not None)


def _sets_flag(statement: Statement, loop: Loop) -> bool:
    """``done = True``, where the test of the loop, or of a branch that leaves it, reads it."""
    match statement:
        case Assign(targets=(Ref(roots=roots, path=path),), value=Constant(value=bool()), op="="):
            tests = [] if loop.target is not None else [loop.source]
            for each in statements(loop.body):
                if isinstance(each, If) and any(
                    isinstance(last, SimpleStatement) and last.kind in ("break", "return") for last in each.body[-1:]
                ):
                    tests.append(each.test)
            return any(
                isinstance(part, Ref) and (part.roots, part.path) == (roots, path)
                for test in tests
                for part in subexpressions(test)
            )
    return False
