"""Call paths: how an entry point reaches something, and the steps that a report shows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.feasibility import runs_always
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Lines, Message, Position, Reference, Span
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.control_flow import leaves
from torchrepro_lint.syntax.nodes import (
    Arg,
    Call,
    Constant,
    Expression,
    Function,
    If,
    Record,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    is_method,
    is_module,
    last_word,
    local_symbol,
    path_of,
    readable_name,
    simple_name,
)
from torchrepro_lint.syntax.visitor import last_identifier, statements, subexpressions
from torchrepro_lint.trace.bodies import COMMAND_LINES

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.control_flow import Event
    from torchrepro_lint.syntax.nodes import Expression, Statement
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.events import CallFrame, TraceEvent


class CallPathStep(Record, frozen=True):
    """A step of a reported call path: its file and position, and a text such as ``calls main``."""

    path: str
    place: Position
    text: str


def entry_statement(entry: Entry, trace_event: TraceEvent) -> Statement:
    """The statement of the entry file through which an event is reached.

    Calls to functions of the same file are followed, since they are the program; constructing or calling an object is not.
    """
    at = trace_event.event.statement if trace_event.path == entry.path else None
    for step in trace_event.call_path:
        if step.path != entry.path:
            break
        at = step.event.statement
        if is_method(step.into):
            return at
    else:
        if trace_event.path == entry.path:
            return trace_event.event.statement
    assert at is not None  # a trace starts in the entry's file
    return at


def call_path(project: ProgramIndex, trace_event: TraceEvent, label: str) -> tuple[CallPathStep, ...]:
    """The call path from the entry point to an event, which ``label`` names; empty where the entry's top level has the event."""
    if not trace_event.call_path:
        return ()
    found = [_step(project, step.path, step.event, _entering(step)) for step in trace_event.call_path]
    return (*found, _step(project, trace_event.path, trace_event.event, label))


# Callees that start a function in another process, which has its own generators.
_SPAWNERS = lazy_pattern(
    r"(torch\.)?multiprocessing\.(?!dummy\.|pool\.ThreadPool)|torch\.distributed\.launcher|"
    r"concurrent\.futures\.ProcessPool|ray\.(tune|train)\."
)
# Those whose processes are new interpreters, unless their ``start_method``, which comes sixth, says otherwise.
_FRESH = lazy_pattern(
    r"torch\.multiprocessing\.(spawn\.)?(spawn|start_processes)|ray\.(tune\.(Tuner|run)|train\.torch\.TorchTrainer)"
)
_FRESH_WORDS = frozenset({"spawn", "start_processes", "Tuner", "run", "TorchTrainer"})
_FRESH_METHODS = frozenset({"spawn", "forkserver"})


def process_starts(project: ProgramIndex, trace_event: TraceEvent) -> frozenset[CallFrame]:
    """The frames of the call path that start another process."""
    return frozenset(
        step for step in trace_event.call_path if _runs_in_ray(step) or _calls_any(project, step, _SPAWNERS.match)
    )


def _runs_in_ray(step: CallFrame) -> bool:
    """Whether a frame is ``play.remote(board)``, which runs ``play`` in a process of Ray."""
    func = step.event.value.func if isinstance(step.event.value, Call) else None
    return func is not None and last_identifier(func) == "remote" != simple_name(step.into)


def fresh_start(project: ProgramIndex, trace_event: TraceEvent) -> CallFrame | None:
    """The last frame of the call path that starts a process as a new interpreter, which inherits nothing; else None."""
    for step in reversed(trace_event.call_path):
        call = step.event.value
        if _runs_in_ray(step):
            return step
        if (
            isinstance(call, Call)
            and last_identifier(call.func) in _FRESH_WORDS
            and _calls_any(project, step, _FRESH.fullmatch)
        ):
            method = passing_argument(call, 5, "start_method")
            known = method is None or (isinstance(method.value, Constant) and method.value.value in _FRESH_METHODS)
            return step if known else None
    return None


def _calls_any(project: ProgramIndex, step: CallFrame, matches: Callable[[str], object]) -> bool:
    """Whether a frame is a call of something whose name matches."""
    call = step.event.value
    return isinstance(call, Call) and any(matches(name) for name in project.names(step.path, call.func))


def _step(project: ProgramIndex, path: str, event: Event, text: str) -> CallPathStep:
    at = event.value if event.value is not None else event.statement
    return CallPathStep(path, project.position(path, at.start), text)


def _entering(step: CallFrame) -> str:
    """``calls build_model``, ``imports model.py``, ``iterates Rows.__getitem__``."""
    if is_module(step.into):
        return Message("imports ", Reference(path_of(step.into)))
    verb = {"call": "calls", "iterate": "iterates", "index": "indexes", "enter": "enters", "read": "reads"}
    return f"{verb.get(step.event.kind, step.event.kind)} {readable_name(step.into)}"


def reached_at(project: ProgramIndex, entry: Entry, trace_event: TraceEvent) -> str:
    """Where an event is and how it is reached, where that is not the reported statement: `` (model.py:14, via f)``."""
    reported = entry_statement(entry, trace_event)
    if not trace_event.call_path or (trace_event.path, trace_event.event.statement) == (entry.path, reported):
        return ""
    # The steps before the reported statement are code that the reader is looking at.
    on_path = [
        index
        for index, step in enumerate(trace_event.call_path)
        if (step.path, step.event.statement) == (entry.path, reported)
    ]
    steps = trace_event.call_path[on_path[0] :] if on_path else trace_event.call_path
    via = [simple_name(step.into) for step in steps if not is_module(step.into)]
    named = [word for word in via if not word.startswith("__") and word != "main"]
    return Message(" (", place_of(project, trace_event), f", via {named[0]})" if named else ")")


def place_of(project: ProgramIndex, trace_event: TraceEvent) -> Reference:
    """The line of an event: ``model.py:14``, in a notebook ``train.ipynb:cell 3:2``."""
    at = project.position(trace_event.path, trace_event.event.value.start if trace_event.event.value else 0)
    return Reference(trace_event.path, at.line)


def place_of_call(project: ProgramIndex, step: CallFrame) -> Reference:
    """The line of the call or other event by which a frame is entered."""
    return Reference(step.path, project.position(step.path, step.event.statement.start).line)


def first_line(lines: Lines, statement: Statement) -> Span:
    """The span of a statement, cut at the end of its first line."""
    row = lines.position(statement.start).row
    end = lines.offset(row) + len(lines.line(row))
    return Span(statement.start, max(min(statement.end, end), statement.start))


def is_tested(project: ValueFlow, trace_event: TraceEvent) -> bool:
    """Whether a test of a parameter decides whether an event runs, in a function on its call path: a cheap question, by the text."""
    callers = [step.into for step in trace_event.call_path]
    return len(callers) <= limits.MAX_TESTED_DEPTH and any(
        not runs_always(project.value_sources, path_of(function), each, (event.value or event.statement).start)
        and _tests_parameter(each)
        for function, (_, event) in zip(callers, steps_of(trace_event)[1:], strict=True)
        for each in project.resolver.functions(function)
    )


def _tests_parameter(function: Function) -> bool:
    """Whether a test of a function reads a parameter, other than through its attributes."""
    own = {local_symbol(function.name, param.name) for param in function.params}
    return any(
        isinstance(part, Ref) and not part.path and not own.isdisjoint(part.roots)
        for statement in statements(function.body)
        if isinstance(statement, If)
        for part in subexpressions(statement.test)
    )


def ends_before(project: ProgramIndex, one: TraceEvent, later: TraceEvent) -> bool:
    """Whether the branch that an event stands in ends its function before a later one: ``if args.show: show(); exit()``."""
    into = "", *(step.into for step in one.call_path)
    for function, (path, event), (there, other) in zip(into, steps_of(one), steps_of(later), strict=False):
        if (path, event) != (there, other):
            bodies = [each.body for each in project.resolver.functions(function)]
            found = [
                each.body if guard.kind == "if" else each.orelse
                for body in bodies or [project.files[path].body]
                for each in statements(body)
                for guard in event.guards
                if isinstance(each, If) and each.test == guard.value and guard not in other.guards
            ]
            return other.statement.start > event.statement.start and any(map(_ends_function, found))
    return False


def _ends_function(branch: tuple[Statement, ...]) -> bool:
    jumps = (each.kind for each in statements(branch) if isinstance(each, SimpleStatement))
    return leaves(branch) and not {"continue", "break"}.intersection(jumps)


def are_exclusive(project: ProgramIndex, one: TraceEvent, other: TraceEvent) -> bool:
    """Whether no run has both events: they stand in different branches of one test, or in functions of which one call runs one."""
    for step, twin in zip(one.call_path, other.call_path, strict=False):
        if (step.path, step.event) != (twin.path, twin.event):
            break
        if step.into != twin.into:
            call = step.event.value
            names = project.names(step.path, call.func) if isinstance(call, Call) else ()
            ran = {project.resolver.owner(it) if simple_name(it) == "__init__" else it for it in (step.into, twin.into)}
            return not COMMAND_LINES.isdisjoint(names) or ran.issubset(names)
    opposite = {"if": "else", "else": "if"}
    branches = {*_branches(one)}
    return any((path, test, opposite.get(kind)) in branches for path, test, kind in _branches(other))


def _branches(trace_event: TraceEvent) -> Iterator[tuple[str, Expression, str]]:
    """The guards around an event, from the entry point on: file, test and kind."""
    return ((path, guard.value, guard.kind) for path, event in steps_of(trace_event) for guard in event.guards)


def steps_of(trace_event: TraceEvent) -> tuple[tuple[str, Event], ...]:
    """The events by which a trace comes to an event, from the entry point on, and itself, each with its file."""
    return (*((step.path, step.event) for step in trace_event.call_path), (trace_event.path, trace_event.event))


def is_another_picked(
    flow: ValueFlow, path: str, call: Expression | None, environment: Environment, function: str
) -> bool:
    """Whether a call picks its callee by a text that is known in an environment, and picks another than the function, which it runs
    elsewhere: ``MODELS[name]()``, ``getattr(nets, name)()``, ``find_class(name)()``.
    """
    if not isinstance(call, Call):
        return False
    func, names = Closure(path, call.func, environment), flow.names(path, call.func)
    if len(names) < 2 or not _runs(flow, names, function):
        return False
    looked_up = flow.value_sources.step_back(func) if isinstance(call.func, Ref) else (func,)
    picked = [_picked(flow, each, names) for each in looked_up]
    return bool(picked) and all(each and not _runs(flow, each, function) for each in picked)


def _runs(flow: ValueFlow, names: Iterable[str], function: str) -> bool:
    return any(function in entered_functions(flow.resolver, name, "call") for name in names)


def _picked(flow: ValueFlow, lookup: Closure, names: Iterable[str]) -> list[str]:
    """Those of some names that a lookup gives for the texts that its key has; none where these are not known."""
    keyed: list[Expression] = []
    match lookup.value:
        case Subscript(indices=(key,)) as found:
            keyed += [found._replace(indices=(text,)) for text in _texts(flow, lookup, key)]
        case Call(func=Ref(roots=("builtins.getattr",)), args=(holder, Arg(value=key) as arg, *rest)) as made:
            texts = _texts(flow, lookup, key)
            keyed += [made._replace(args=(holder, arg._replace(value=text), *rest)) for text in texts]
        case Call(args=(Arg(value=key, star=""), *_)) as made:
            words = {last_word(text.value) for text in _texts(flow, lookup, key) if isinstance(text.value, str)}
            return [name for name in names if simple_name(name) in words] or _given_back(flow, lookup.path, made)
    return [name for each in keyed for name in flow.names(lookup.path, each)]


def _given_back(flow: ValueFlow, path: str, call: Call) -> list[str]:
    """The names that a call of functions of the project gives, where these return an element of a table that it passes,
    ``choose(name, TABLE)``; none where some table is not known.
    """
    found, is_table = list[str](), False
    for name in flow.names(path, call.func):
        own = name[len(path_of(name)) :]
        passed = flow.resolver.call_graph.receiving
        given = {
            local_symbol(own, param.name): arg.value
            for definition in flow.resolver.functions(name)
            for arg, param in passed(path, call, definition)
        }
        for returned in flow.resolver.return_expressions(name):
            table = returned.value if isinstance(returned, Subscript) else None
            held = given.get(table.roots[0]) if isinstance(table, Ref) and not table.path else None
            if held is not None:
                displays = [*flow.resolver.displays(path, held)]
                if not displays:
                    return []
                rows = ((file, one.items[1::2] if one.kind == "dict" else one.items) for file, one in displays)
                found += (each for file, items in rows for item in items if item for each in flow.names(file, item))
                is_table = True
            else:
                whole = given.get(returned.roots[0]) if isinstance(returned, Ref) and not returned.path else None
                found += flow.names(*((path, whole) if whole is not None else (path_of(name), returned)))
    return found if is_table else []


def _texts(flow: ValueFlow, lookup: Closure, key: Expression) -> list[Constant]:
    """The literal texts that a key has in an environment, if it can only be these and is one that names the callee."""
    found = [each.value for each in flow.value_sources.of(lookup._replace(value=key))]
    known = flow.resolver.literal_texts(lookup.path, key)
    texts = [
        each for each in found if isinstance(each, Constant) and isinstance(each.value, str) and each.value in known
    ]
    return texts if len(texts) == len(found) else []
