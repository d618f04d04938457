"""Taint of a callee's side effects: what a function called in a loop appends to its receiver, to its arguments or to
the variables of its module, in the order of the rounds; and which calls of a round train a model or draw. Also what a loop sums.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from torchrepro_lint.dataflow.taint.context import Sink, TaintContext, TaintedValue, TaintStep
from torchrepro_lint.dataflow.taint.transfer import LISTING, REPORTING_WORDS, SCALAR, OrderTaint, container_of, roots_in
from torchrepro_lint.dataflow.training_steps import BACKWARD, DRAWS, OPTIMIZER, SEEDS, STEPS
from torchrepro_lint.dataflow.types.annotations import annotated
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument, receiving_parameters, takes_receiver
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    Loop,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_own, local_symbol, locals_prefix, path_of, simple_name
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import body_expressions, last_identifier, receiver_of, statements, subexpressions

_STEP = frozenset({"step"})
_OPEN = lazy_pattern(r"(builtins|io|gzip|bz2|lzma|codecs)\.open")
_NOTES = lazy_pattern(
    r"(?i)(.*[^a-z])?(logs?|done|finished|processed|completed|fail\w*|errors?|skip\w*|miss\w*|broken|corrupt\w*|progress|status|"
    r"history|notes?|messages?|todo|mark\w*|info|debug|notify)([^a-z].*)?"
)


def callee_effects(
    analysis: TaintContext,
    path: str,
    call: Call,
    names: tuple[str, ...],
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    """The side effects of a callee: reads of what it appends to its receiver, its arguments or module variables."""
    for name in names:
        file = path_of(name)
        for function in analysis.names.functions(name) if in_project(name) else ():
            for ref, taint in _containers_filled(function):
                yield from _read(analysis, path, file, call, function, ref, taint, spot, is_outside)
            if not tells(simple_name(name)) and _same_file(analysis.names, name, call, function, is_outside):
                yield Sink(path, call, "appended")


def round_effects(
    analysis: TaintContext, path: str, calls: list[Call], is_outside: Callable[[Ref], bool]
) -> Iterator[Sink]:
    """The first of a round's calls that trains an older model or draws from an older generator, as a sink.

    A round that seeds the generators draws the same in any order. One that makes its own optimizer trains a model of its own.
    """
    effects = [(call, analysis.call_effects.of(path, call, is_outside)) for call in calls]
    done = frozenset(effect for _, each in effects for effect in each)
    trains = {STEPS} if OPTIMIZER not in done else set()
    if BACKWARD in done and trains and (STEPS in done or _has_optimizer(analysis, path)):
        trains.add(BACKWARD)
    if SEEDS in done:
        trains.discard(BACKWARD)
    for call, each in effects:
        if not trains.isdisjoint(each):
            yield Sink(path, call, "trained with")
            return
    yield from (Sink(path, call, "drawn for") for call, each in effects if DRAWS in each and SEEDS not in done)


def _has_optimizer(analysis: TaintContext, path: str) -> bool:
    """Whether a file has a step of an optimizer."""
    return analysis.call_effects.has_optimizer(path, (site.call for site in analysis.project.calls_by(path, _STEP)))


def _read(
    analysis: TaintContext,
    path: str,
    file: str,
    call: Call,
    function: Function,
    ref: Ref,
    taint: OrderTaint,
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    start = locals_prefix(function.name)
    params = [param.name for param in function.params]
    passed = {param.name: arg.value for arg, param in receiving_parameters(function, call, bound=False)}
    for root in ref.roots:
        word = root[len(start) :] if root.startswith(start) else ""
        if function.owner and params and word == params[0] and len(ref.path) == 1:
            receiver = call.func
            if isinstance(receiver, Ref) and is_outside(receiver):
                inside = analysis.uses.spots(file).of(ref) or spot
                yield from analysis.reads(file, ref, taint, inside, ref.end)
        elif word in params and not ref.path and not function.owner:
            given = passed.get(word)
            if isinstance(given, Ref) and is_outside(given):
                yield from analysis.reads(path, given, taint, spot, call.end)
        elif not word and is_own(root):
            inside = analysis.uses.spots(file).of(ref) or spot
            yield from analysis.reads(file, ref, taint, inside, ref.end)


def _same_file(names: Names, name: str, call: Call, function: Function, is_outside: Callable[[Ref], bool]) -> bool:
    """Whether a function appends to a file that is the same in all rounds."""
    start, itself = locals_prefix(function.name), call.func if isinstance(call.func, Ref) else None
    bound, own = takes_receiver(function), {local_symbol(function.name, each.name) for each in function.params}
    passed = {
        local_symbol(function.name, param.name): arg.value
        for arg, param in receiving_parameters(function, call, bound=bound)
    }
    receiver = local_symbol(function.name, function.params[0].name) if bound else ""
    for where in append_places(names, name):
        roots = roots_in(where)
        kept = [
            each
            for root in roots
            for each in (subexpressions(passed[root]) if root in passed else ())
            if isinstance(each, Ref)
        ]
        kept += [itself] if itself is not None and receiver in roots else []
        if all(root in own or not root.startswith(start) for root in roots) and all(map(is_outside, kept)):
            return True
    return False


@query()
def append_places(names: Names, function: str) -> tuple[Expression, ...]:
    """The places of the files that a function of the project opens to append to them."""
    inside = (each for definition in names.functions(function) for each in body_expressions(definition.body))
    found = (opened_to_append(names, path_of(function), each) for each in inside)
    return tuple(each for each in found if each is not None)


def tells(word: str) -> bool:
    """Whether a function or a file of that name only says what a program has done."""
    return REPORTING_WORDS.fullmatch(word) is not None or _NOTES.fullmatch(word) is not None


def opened_to_append(names: Names, path: str, opened: Expression) -> Expression | None:
    """The place of the file that an expression opens to append to it: ``open(place, "a")``."""
    if not isinstance(opened, Call) or not any(map(_OPEN.fullmatch, names.names(path, opened.func))):
        return None
    mode = known_argument(opened, 1, "mode")
    appends = isinstance(mode, Constant) and isinstance(mode.value, str) and "a" in mode.value
    return known_argument(opened, 0, "file") if appends else None


def _containers_filled(function: Function) -> Iterator[tuple[Ref, OrderTaint]]:
    """The containers that a function appends to, or in which it numbers something, each with its taint."""
    filled = {_access_path(whole) for _, whole, _ in _element_assignments(function)}
    numbers = set(_counters(function, filled))
    for statement, whole, keys in _element_assignments(function):
        said = [*subexpressions(statement.value), *keys] if statement.value is not None else []
        if any(_is_length(each, filled) or _access_path(each) in numbers for each in said):
            yield whole, container_of(SCALAR)
    for each in body_expressions(function.body):
        match each:
            case Call(func=Ref(path=(*words, "append" | "extend" | "insert")) as func):
                yield func._replace(path=tuple(words)), LISTING


def _element_assignments(function: Function) -> Iterator[tuple[Assign, Ref, tuple[Expression, ...]]]:
    """The assignments ``whole[keys] = …`` of a function."""
    for each in statements(function.body):
        if isinstance(each, Assign):
            for target in each.targets:
                if isinstance(target, Subscript) and isinstance(target.value, Ref):
                    yield each, target.value, target.indices


def _counters(function: Function, filled: Container[AccessPath | None]) -> Iterator[AccessPath]:
    """The counters of a function: ``number = len(self.ids)``, ``self.size += 1``."""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is not None:
            counts = statement.op == "+=" and isinstance(statement.value, Constant) and statement.value.value == 1
            if counts or (statement.op == "=" and _is_length(statement.value, filled)):
                yield from (found for target in statement.targets if (found := _access_path(target)) is not None)


def _access_path(expression: Expression) -> AccessPath | None:
    return expression.access_path if isinstance(expression, Ref) else None


def _is_length(expression: Expression, filled: Container[AccessPath | None]) -> bool:
    """Whether an expression is ``len(self.ids)`` of a container that the function fills."""
    if not isinstance(expression, Call) or last_identifier(expression.func) != "len":
        return False
    return any(arg.value.access_path in filled for arg in expression.args if isinstance(arg.value, Ref))


def worker_counts(project: ValueFlow, path: str, source: Expression, value: Expression, loop: Loop) -> bool:
    """Whether a value of a loop is the result of a worker that returns integers: ``for count in pool.imap_unordered(f, x)``,
    ``future.result()`` of ``for future in as_completed([pool.submit(f, x) …])``.
    """
    word = last_identifier(source.func) if isinstance(source, Call) else ""
    if word == "imap_unordered":
        same = isinstance(value, Ref) and isinstance(loop.target, Ref) and value.roots == loop.target.roots
        return same and not value.path and _returns_integers(project, path, source.args[0].value)  # type: ignore[union-attr]
    if word != "as_completed" or not source.args:  # type: ignore[union-attr]
        return False
    for statement in loop.body if isinstance(value, Ref) and not value.path else ():
        match statement:
            case Assign(targets=(Ref() as target,), value=Call() as given) if target.roots == value.roots:  # type: ignore[union-attr]
                value = given
    if not isinstance(value, Call) or last_identifier(value.func) != "result":
        return False
    jobs = [each for _, each in project.resolver.values(path, source.args[0].value)]  # type: ignore[union-attr]
    submitted = [each.elements[0] for each in jobs if isinstance(each, Comprehension)]
    return bool(submitted) and all(
        isinstance(each, Call)
        and last_identifier(each.func) == "submit"
        and bool(each.args)
        and _returns_integers(project, path, each.args[0].value)
        for each in submitted
    )


def _returns_integers(project: ValueFlow, path: str, worker: Expression) -> bool:
    """Whether a function is known to return integers alone."""
    names, inference = project.resolver, type_inference(project)
    found = project.names(path, worker)
    if not found or not all(in_project(name) and names.functions(name) for name in found):
        return bool(found) and all(name in ("builtins.len", "builtins.int", "builtins.ord") for name in found)
    for name in found:
        declared = [each.returns for each in names.functions(name)]
        kinds = [annotated(inference, path_of(name), each).kind for each in declared if each is not None]
        kinds = kinds or [inference.of(path_of(name), each).kind for each in names.return_expressions(name)]
        if not kinds or not all(kind in ("int", "bool") for kind in kinds):
            return False
    return True


# --- sums -------------------------------------------------------------------------------------------------------------

# Methods and functions whose results are no integers.
_FLOATING = frozenset({"mean", "nanmean", "std", "nanstd", "var", "nanvar", "norm", "average"})


def sum_kind(analysis: TaintContext, tainted: TaintedValue, value: Expression, target: Ref, loop: Loop) -> str:
    """What ``target += value`` collects in a loop: a ``list``, whose order is that of the rounds, a ``count``, which is the same in any
    order, or a ``float``, which is rounded in another way in each; empty if unknown.
    """
    path, inference = tainted.path, type_inference(analysis.project)
    if isinstance(value, Collection | Comprehension) or (isinstance(value, Operation) and value.op == "f"):
        return "list"
    if isinstance(value, Constant):
        return "count" if isinstance(value.value, int) else "list" if isinstance(value.value, str) else ""
    known = inference.of(path, value)
    completed = tainted.taint.kind == "completion"
    if known.kind in ("int", "bool") or (
        completed and worker_counts(analysis.project, path, tainted.node, value, loop)
    ):
        return "count"
    found = list(analysis.names.values(path, target))
    texts = [each.value for _, each in found if isinstance(each, Constant)]
    if any(isinstance(each, Collection | Comprehension | str) for each in (*(each for _, each in found), *texts)):
        return "list"
    if completed or known.kind == "float" or known.family == "floating" or _is_floating(value):
        return "float"
    starts = any(isinstance(each, Constant) and type(each.value) is float for _, each in found)
    return "float" if starts else ""


def _is_floating(value: Expression) -> bool:
    """Whether a value is no integer, whatever it is made of: ``x.mean()``, ``x / 2``."""
    match value:
        case Call(func=func):
            receiver = receiver_of(func)
            return last_identifier(func) in _FLOATING or (receiver is not None and _is_floating(receiver))
        case Operation(op=op, operands=operands):
            return op == "/" or (op in ("+", "-", "*") and any(map(_is_floating, operands)))
        case Subscript(value=whole):
            return _is_floating(whole)
    return False
