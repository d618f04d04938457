"""The gaps of a program: the calls that lead it into code that is not followed, each with the reason.

A call is a gap if nothing says what it runs and it may run code of the project. A call into a package is none: tables say what
packages do. So is a call of a value that can only be a constant, or only an object of a package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.domain.operations.callee_origins import CalleeOrigins, Reason
from torchrepro_lint.domain.operations.gaps import Gap, call_text, gaps_to_loss
from torchrepro_lint.domain.operations.unknown_calls import (
    CHOOSING_AT_ONCE,
    UnknownCalls,
    is_from_elsewhere,
    passed_on_edges,
)
from torchrepro_lint.domain.programs import program_at
from torchrepro_lint.domain.rng.feasibility import is_reachable
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.computed_names import EVALUATED
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.binding import is_classmethod
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Operation, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    local_symbol,
    path_of,
    qualname_of,
    split_call,
    top_package,
)
from torchrepro_lint.trace.call_paths import place_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.nodes import Function
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.events import TraceEvent
    from torchrepro_lint.trace.traces import Traces


class ProgramGap(Record, frozen=True):
    """A call that leads a program into code that is not followed, its order in the trace, and the reason."""

    order: int
    trace_event: TraceEvent
    reason: Reason


# Names that IPython defines in every notebook.
_OF_NOTEBOOKS = frozenset({"?display", "?get_ipython"})
# Functions that run a file or a text as code.
_RUNNING = frozenset(
    {"builtins.exec", "runpy.run_path", "runpy.run_module", "imp.load_source", "imp.load_module"}
    | {"importlib.util.spec_from_file_location().loader.exec_module"}
    | {f"importlib.machinery.SourceFileLoader().{word}" for word in ("load_module", "exec_module")}
)
# Stands for a value in a text.
_FILLED = "filled_in"


def gaps_of_program(project: Traces, program: Program) -> tuple[ProgramGap, ...]:
    """The gaps of a program, in trace order, each place once."""
    return _gaps_from(project, program.entry)


@query()
def _gaps_from(project: Traces, entry: Entry) -> tuple[ProgramGap, ...]:
    return tuple(_find(project, program_at(project, entry).run))


def causes_of_gaps(project: Traces, program: Program) -> tuple[ProgramGap, ...]:
    """The gaps of a program without those that a gap before them causes, too: a second call of the same unknown value."""
    found: dict[object, ProgramGap] = {}
    for each in gaps_of_program(project, program):
        found.setdefault(each.reason.origin or each.order, each)
    return tuple(found.values())


def first_gap_of_program(project: Traces, program: Program) -> ProgramGap | None:
    """The first gap of a program, without looking for the others."""
    return _first_gap_from(project, program.entry)


@query()
def _first_gap_from(project: Traces, entry: Entry) -> ProgramGap | None:
    return next(_find(project, program_at(project, entry).run), None)


def gaps_of_run(project: Traces, program: Program) -> tuple[ProgramGap, ...]:
    """The gaps of a program and those between what it trains and the loss, in trace order: nothing holds across them."""
    found = {each.order: each for each in gaps_of_program(project, program)}
    for gap in gaps_to_loss(project, program):
        reason = _reason_on_the_way(project, gap)
        found.setdefault(gap.order, ProgramGap(gap.order, gap.trace_event, reason))
    return tuple(sorted(found.values(), key=lambda each: each.order))


def _reason_on_the_way(project: Traces, gap: Gap) -> Reason:
    """The reason of a gap on the way to the loss that is no gap by itself: an object of a package, or of a base class."""
    call, names = gap.trace_event.event.value, gap.trace_event.names
    if gap.unknown != "runs" or not isinstance(call, Call):
        return Reason("loss", gap.unknown)
    found = CalleeOrigins(project).of(gap.trace_event.path, call.func).reason
    outside = [name for name in names if not in_project(name) and not is_abstract(name) and not is_from_elsewhere(name)]
    if found is None and outside:
        return Reason("package", top_package(outside[0]))
    return found or Reason("subclass" if names else "value", describe(call.func))


def _find(project: Traces, run: Trace) -> Iterator[ProgramGap]:
    wide_methods = _wide_methods(project.resolver)
    clear, seen = set[tuple[str, ...]](), set[tuple[str, int]]()
    for order, each in enumerate(run.trace_events):
        resolved = each.resolved  # its properties would cost a call each, for a million events
        if resolved.event.kind != "call" or resolved.names in clear:
            continue
        call = resolved.event.value
        if isinstance(call, Call) and (resolved.path, call.start) not in seen:
            if resolved.names and not _is_unclear(resolved.names) and wide_methods.isdisjoint(resolved.names):
                clear.add(resolved.names)
                continue
            found = _judgement(project, resolved.path, resolved.function, call, resolved.names)
            reason = found.reason
            if found.entered and found.entered.isdisjoint(run.functions):
                reason = Reason("value", describe(call.func))
            if reason is None or passed_on_edges(project, run, resolved.path, resolved.function, call.func):
                continue
            if len(run.functions) > limits.MAX_FUNCTIONS_OF_GAPS or is_reachable(project, run, each):
                seen.add((resolved.path, call.start))
                yield ProgramGap(order, each, reason)


class _Judgement(Record, frozen=True):
    """The reason why a call is a gap, if it is one in all programs; else the functions of which a program must enter one."""

    reason: Reason | None
    entered: frozenset[str] = frozenset()


_CLEAR = _Judgement(None)


@query()
def _judgement(project: Traces, path: str, function: str, call: Call, names: tuple[str, ...]) -> _Judgement:
    """Whether a call of a function with these names is a gap."""
    resolver = project.resolver
    if chosen := CHOOSING_AT_ONCE.intersection(names):
        made = resolver.names(path, call)
        known = bool(made) and not all(map(is_from_elsewhere, made))
        return (
            _CLEAR
            if known or _names_package(resolver, path, call)
            else _Judgement(Reason("run-time", _short(min(chosen))))
        )
    if not _wide_methods(resolver).isdisjoint(names):
        return _of_wide_method(resolver, path, call, names)
    if _RUNNING.intersection(names):
        if "builtins.exec" in names and call.args and _only_assigns(call.args[0].value):
            return _CLEAR
        return _Judgement(Reason("run-time", _short(names[0])))
    if _is_of_notebooks(call.func) or not _may_be_project_code(project, path, function, call.func):
        return _CLEAR
    found = CalleeOrigins(project).of(path, call.func)
    entered = (target for name in found.names for target in entered_functions(resolver, name, "call"))
    return _Judgement(found.reason, frozenset(entered))


def _only_assigns(code: Expression) -> bool:
    """Whether a text that runs as code only assigns: ``exec(f"self.{name} = value")``, in which the values are parts of targets, or
    names of attributes.
    """
    parts = code.operands if isinstance(code, Operation) and code.op == "f" else (code,)
    texts = [each.value if isinstance(each, Constant) else _FILLED for each in parts if each is not None]
    try:
        statements = ast.parse("".join(map(str, texts))).body
    except (SyntaxError, ValueError):
        return False
    kinds, inside = (ast.Assign, ast.AugAssign, ast.Global), [part for each in statements for part in ast.walk(each)]
    reads = (each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    runs = any(isinstance(each, (ast.Call, ast.Await, ast.Subscript)) for each in inside)
    return (
        all(isinstance(each, kinds) for each in statements) and not runs and not any(_FILLED in each for each in reads)
    )


def _names_package(names: Names, path: str, call: Call) -> bool:
    """Whether a call imports a module that is not the project's by a literal name."""
    name = call.args[0].value if call.args else None
    return (
        isinstance(name, Constant)
        and isinstance(name.value, str)
        and bool(name.value.strip("."))
        and names.modules.is_outside(path, name.value)
    )


@query()
def _wide_methods(names: Names) -> frozenset[str]:
    """The class methods that construct an object, of classes with more subclasses than a trace runs such a method for."""
    owners = (each for each in names.all_classes() if len(names.subclasses(each)) > limits.MAX_SUBCLASSES)
    methods = (path_of(owner) + name for owner in owners for each in names.classes(owner) for _, name in each.methods)
    return frozenset(
        method
        for method in methods
        if any(_constructs(names, path_of(method), each) for each in names.functions(method))
    )


def _constructs(names: Names, path: str, method: Function) -> bool:
    """Whether a class method calls its class."""
    if not is_classmethod(method):
        return False
    own = local_symbol(method.name, method.params[0].name) if method.params else ""
    calls = (each.value.func for each in names.events.of_body(path, method.body) if isinstance(each.value, Call))
    return any(isinstance(func, Ref) and not func.path and own in func.roots for func in calls)


def _of_wide_method(resolver: Names, path: str, call: Call, names: tuple[str, ...]) -> _Judgement:
    """A class method of a base runs as that of the base alone, and not as that of each of its many subclasses."""
    owners = {resolver.owner(name) for name in names}
    receivers = set(resolver.receiver(path, call.func))
    if receivers <= owners or all(_is_like(resolver, each, owner) for each in receivers for owner in owners):
        return _CLEAR
    return _Judgement(Reason("limit", f"{limits.MAX_SUBCLASSES} subclasses of {qualname_of(min(owners))}"))


def _is_like(resolver: Names, owner: str, base: str) -> bool:
    """Whether a subclass of classes of the project alone is constructed without code, as a dataclass is, and overrides nothing of its
    base.
    """
    words = {word for each in resolver.classes(base) for word, _ in each.methods}
    made = (each for word in sorted(_CONSTRUCTORS) for each in resolver.methods(owner, word))
    return (
        bool(resolver.classes(owner))
        and all(map(in_project, resolver.ancestry(owner)))
        and not any(map(in_project, made))
        and all(resolver.methods(owner, word) == resolver.methods(base, word) for word in sorted(words))
    )


# The methods that run when an object is made.
_CONSTRUCTORS = frozenset({"__new__", "__init__", "__post_init__"})


def _may_be_project_code(project: Traces, path: str, function: str, func: Expression) -> bool:
    """Whether a callee may be code of the project by its form: most methods of unknown values are those of data."""
    if isinstance(func, Attribute) or (isinstance(func, Ref) and len(func.path) > 1):
        return False
    return UnknownCalls(project).may_be_project_code(path, function, func)


def _is_unclear(names: tuple[str, ...]) -> bool:
    """Whether names leave open what a call runs, or say that it runs what is chosen while the program runs; what a text means may be
    none of what is followed for it.
    """
    return EVALUATED in names or all(
        is_abstract(name) or is_from_elsewhere(name) or name in _RUNNING | CHOOSING_AT_ONCE for name in names
    )


def _short(name: str) -> str:
    return split_call(name)[2].removeprefix(".") or name.removeprefix("builtins.")


def _is_of_notebooks(func: Expression) -> bool:
    return isinstance(func, Ref) and not func.path and not _OF_NOTEBOOKS.isdisjoint(func.roots)


def told(project: Traces, gap: ProgramGap) -> Message:
    """``what self.model(x) (train.py:9) runs is not known``."""
    call = gap.trace_event.event.value
    assert isinstance(call, Call)
    verb = gap.reason.what if gap.reason.kind == "loss" else "runs"
    return Message(f"what {call_text(call)} (", place_of(project, gap.trace_event), f") {verb} is not known")


def explained(project: Traces, gap: ProgramGap) -> Message:
    """The same with the reason: ``…: no value that is passed for model is known``."""
    return Message(told(project, gap), f": {gap.reason.sentence}")
