"""Flag effects: what a trace does to flags, environment variables and devices; and the flag writes of a module.

The first follows a program's trace in order; the second is flow-insensitive and needs no entry point. A prefilter by
identifiers says first whether a file may write a flag at all. An accelerator is used where a call puts something there or runs something
there, and named where a body names CUDA or a device from an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import LiteralValue, Truth, argument_reader, evaluate
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.domain.flags import FlagSetting, environment_settings, flag_settings
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Constant,
    Expression,
    If,
    Operation,
    Record,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import class_of, in_project, simple_name, without_calls
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier, statements, subexpressions
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.events import TraceEvent, prefix_and_rest
from torchrepro_lint.trace.library_models import rows_named, rows_of, trains_or_measures
from torchrepro_lint.trace.traces import Traces

DRAW, SEED, FLAG, VARIABLE_EFFECT, ACCELERATOR, BACKWARD = "draw", "seed", "flag", "variable", "accelerator", "backward"


# Callees whose arguments decide the effect: by method name, and by prefix.
_DEVICE_METHODS = frozenset({"cuda", "to", "backward"})
_EFFECT_PREFIXES = ("torch.", "os.", "builtins.setattr", "accelerate.", "ultralytics.")
# The resolved names of a callee, and the word by which it is called.
_Callee: TypeAlias = tuple[tuple[str, ...], str]


class StateEffect(Record, frozen=True):
    """One effect of a trace event on state: a generator (``draw``, ``seed``), a ``flag``, an environment ``variable``,
    or the device (``accelerator``: something is put there; ``backward``: a backward pass).

    ``what`` names the generator family, flag or variable. ``value`` is what a flag or variable is set to: ``UNKNOWN_VALUE``
    where it is not one constant, None where a variable is removed; ``expression`` is what gives it. ``label`` is the public
    name of what draws or seeds. ``order`` is the index of the event in the trace.
    """

    kind: str
    what: str
    value: LiteralValue
    expression: Expression | None
    label: str
    trace_event: TraceEvent
    order: int


def effects_on_state(run: Trace, names: Names, catalogue: Catalogue) -> Iterator[StateEffect]:
    """The effects of a trace on flags, variables and devices, in order."""
    find = partial(_state_effects_of, names, catalogue, names.database.part(_still_calls))
    for part in prefix_and_rest(run, "switching", lambda start, found: tuple(find(start, found)), names.database):
        yield from part


def _still_calls(_database: Database) -> dict[_Callee, bool]:
    """Whether calls by these names have no effect, for all traces; the catalogue says so."""
    return {}


def _state_effects_of(
    names: Names, catalogue: Catalogue, still: dict[_Callee, bool], start: int, trace_events: Sequence[TraceEvent]
) -> Iterator[StateEffect]:
    for order, trace_event in enumerate(trace_events, start):
        resolved = trace_event.resolved
        kind, value = resolved.event.kind, resolved.event.value
        if kind not in ("call", "set", "index"):
            continue
        if kind == "call" and isinstance(value, Call):
            said = resolved.names, last_identifier(value.func)
            if said not in still:
                still[said] = _has_no_effect(catalogue, value, *said)
            if still[said]:
                continue
        for each in flag_settings_of(names, catalogue, trace_event.path, trace_event.event, trace_event.names):
            what = VARIABLE_EFFECT if each.what.isupper() else FLAG
            yield StateEffect(what, each.what, each.value, each.expression, "", trace_event, order)
        if kind == "call" and isinstance(value, Call):
            if uses_accelerator(names, trace_event.path, value, trace_event.names):
                yield StateEffect(ACCELERATOR, "", True, None, "", trace_event, order)
            if is_backward(value, trace_event.names):
                yield StateEffect(BACKWARD, "", True, None, "", trace_event, order)


def _has_no_effect(catalogue: Catalogue, call: Call, found: tuple[str, ...], word: str) -> bool:
    """Whether no call of this callee has an effect, whatever its arguments. True for nearly all callees."""
    return word not in _DEVICE_METHODS and not any(
        name.startswith(_EFFECT_PREFIXES)
        or rows_named(name)
        or catalogue.settings(class_of(without_calls(name)))
        or is_backward(call, (name,))
        for name in found
        if not in_project(name)
    )


def flag_settings_of(
    names: Names, catalogue: Catalogue, path: str, event: Event, found: tuple[str, ...]
) -> Iterator[FlagSetting]:
    """The flags and variables that an event of a file sets."""
    yield from flag_settings(names, catalogue, path, event, found)
    yield from environment_settings(names, path, event, found)


_RESTORING = lazy_pattern(
    r"(?i)_*(un|re)set|_*(disable|deactivate|undo|restore|release|teardown|turn_off|switch_off|exit)(?![a-z])"
)
# Callees that set a flag which they do not name.
_INDIRECT_SETTERS = frozenset({"setattr", "flags", "set_flags", "compile", "patch"})
# Callees that write to the environment, or to any other dictionary.
_DICTIONARY_WRITERS = frozenset({"putenv", "update", "setdefault", "__setitem__"})


class FlagWrite(Record, frozen=True):
    """A write of a flag or variable in a module: the setting, the event and its function (``path:`` for the top level)."""

    setting: FlagSetting
    event: Event
    function: str
    names: tuple[str, ...]


@query()
def flag_writes(project: Traces, path: str) -> tuple[FlagWrite, ...]:
    """The flag writes of a module, function by function, without branches that constant tests rule out."""
    return tuple(_find_flag_writes(project.resolver, project.catalogue, path))


def _find_flag_writes(names: Names, catalogue: Catalogue, path: str) -> Iterator[FlagWrite]:
    tree = names.modules.files[path]
    for name, body in (("", tree.body), *((each.name, each.body) for each in tree.functions)):
        for event in names.events.of_body(path, body):
            if event.value is not None and event.kind in ("call", "set", "index"):
                found = names.names(path, _subject_of(event))
                for each in flag_settings_of(names, catalogue, path, event, found):
                    yield FlagWrite(each, event, f"{path}{name or ':'}", found)


def may_set_flag(project: ProgramIndex, path: str, words: frozenset[str]) -> bool:
    """Whether a file may set a flag that is written with one of these words: a prefilter by identifiers.

    The file mentions one, or calls something that sets whatever its arguments name.
    """
    summary = project.files[path].summary
    if not words.isdisjoint(summary.values) or not words.isdisjoint(summary.keywords):
        return True
    return path in project.mentioning(_INDIRECT_SETTERS).paths


def may_set_environment(project: ProgramIndex, path: str) -> bool:
    """Whether a file may set any environment variable: a prefilter likewise.

    A callee is known by its last word alone, and many dictionaries have an ``update``; so the file must also import
    what may have the environment.
    """
    summary, environment = project.files[path].summary, project.holding("environ")
    if not environment.isdisjoint(summary.values):
        return True
    imports = (name.split(".") for name in summary.imports)
    return not _DICTIONARY_WRITERS.isdisjoint(summary.calls) and any(
        words[0] == "os" or words[-1] in environment for words in imports
    )


def opposite_branch_writes(one: FlagWrite, others: Iterable[FlagWrite]) -> Iterator[FlagWrite]:
    """The writes of the same flag in the opposite branch of an ``if`` around: then the user decides."""
    other = {"if": "else", "else": "if"}
    wanted = {(other[guard.kind], guard.value) for guard in one.event.guards if guard.kind in other}
    for each in others:
        if each.setting.what == one.setting.what and wanted.intersection(
            (guard.kind, guard.value) for guard in each.event.guards
        ):
            yield each


def restores_by_name(function: str) -> bool:
    """Whether a function's name says that it switches something off or restores it, so that the write is intended."""
    return bool(_RESTORING.match(simple_name(function)))


def _subject_of(event: Event) -> Expression:
    """The expression that an event is about, as far as it has a name: the callee, or the container of an item."""
    assert event.value is not None
    match event.value:
        case Call(func=func) if event.kind == "call":
            return func
        case Subscript(value=value) if event.kind == "set":
            return value
    return event.value


_DEVICE = lazy_pattern(r"(cuda|mps|xpu|hpu|npu|gpu|nccl)(:\d*)?")
_OPTION_HOLDER = lazy_pattern(r"args?|opts?|options|cfg|conf|config|hparams|flags|params|hp|settings|self")
# The rank of a process, which is the index of its GPU where something is moved to it.
_RANK = lazy_pattern(r"(local_?)?rank|gpu(_?id)?|dev_?id|device_?id")
# Functions of CUDA that a program may call without using CUDA.
_HARMLESS = frozenset({"is_available", "manual_seed", "manual_seed_all", "empty_cache", "device_count", "synchronize"})
_HARMLESS_CALLS = _HARMLESS | {"seed", "seed_all", "is_bf16_supported", "get_device_name", "get_device_capability"}
_DEVICE_QUERIES = lazy_pattern(r"torch\.accelerator\.(is_\w+|current_\w+|device_count|manual_seed\w*)")
# Methods that run something on an accelerator.
_ACCELERATOR_WORK = lazy_pattern(
    r"accelerate\.(\w+\.)*Accelerator\(\)\.(prepare\w*|backward)|ultralytics\.\w+\(\)\.(train|val|tune)"
)


def names_accelerator(body: Iterable[Statement]) -> bool:
    """Whether statements name CUDA or another accelerator, or a device from an option. Frameworks that pick one do not
    count.
    """
    return any(
        _names_device(each)
        for statement in statements(body)
        if not _tests_is_cuda(statement)
        for each in expressions_within(statement)
    )


def _tests_is_cuda(statement: Statement) -> bool:
    return isinstance(statement, If) and isinstance(statement.test, Ref) and statement.test.path[-1:] == ("is_cuda",)


def _names_device(expression: Expression) -> bool:
    match expression:
        case Constant(value=str(text)):
            return bool(_DEVICE.fullmatch(text))
        case Operation(op="f", operands=()):
            return False
        case Ref(roots=roots, path=path):
            return any(_names_cuda(".".join((root, *path))) for root in roots)
        case Call(func=Ref(path=(*_, "cuda")) | Attribute(name="cuda")):
            return True
        case Call(func=Ref(path=(*_, "to")) | Attribute(name="to"), args=args):
            return any(_is_device_option(arg.value) for arg in args)
        case Call(func=Ref(roots=("torch",), path=("device",)), args=args):
            return any(not isinstance(arg.value, Constant) for arg in args)
    return False


def _names_cuda(name: str) -> bool:
    return name.startswith("torch.cuda.") and name.split(".")[2] not in _HARMLESS


def _is_device_option(expression: Expression) -> bool:
    """``args.device`` or ``cfg.train.device``, which may be any device. A tensor's own ``x.device`` does not count."""
    match expression:
        case Ref(roots=roots, path=()):
            return bool(_RANK.fullmatch(simple_name(roots[0]).lower()))
        case Ref(roots=roots, path=(*before, word)) if "device" in word or word == "gpu":
            holder = before[-1] if before else simple_name(roots[0])
            return bool(_OPTION_HOLDER.fullmatch(holder.lower()))
    return False


def uses_accelerator(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether a call puts something on an accelerator, or runs something there, as far as its arguments tell."""
    for name in found:
        if name.startswith("torch.cuda.") and name.count(".") == 2 and name.split(".")[2] not in _HARMLESS_CALLS:
            return True
        if _ACCELERATOR_WORK.fullmatch(name):
            return True
    if trains_or_measures(found) or (
        accelerates(found, call) and not any(_DEVICE_QUERIES.fullmatch(name) for name in found)
    ):
        return True
    match call.func:
        case Ref(path=(*_, "cuda")) | Attribute(name="cuda"):
            return True
        case Ref(path=(*_, "to")) | Attribute(name="to"):
            return any(_may_be_accelerator(names, path, arg.value) for arg in call.args)
    if any(name.startswith("torch.") for name in found):
        devices = (arg.value for arg in call.args if arg.keyword == "device" or "torch.set_default_device" in found)
        return any(_may_be_accelerator(names, path, device) for device in devices)
    return False


def _may_be_accelerator(names: Names, path: str, device: Expression) -> bool:
    return any(
        _is_device_option(value) or any(_names_device(each) for each in subexpressions(value))
        for _, value in names.values_through_calls(path, device)
    )


def accelerates(names: Iterable[str], call: Call) -> bool:
    """Whether a call may put work on an accelerator by itself."""
    return any(
        row.accelerates is not None
        and evaluate(row.accelerates, row.signature, argument_reader(row.signature, call)) is not Truth.FAILS
        for row in rows_of(names)
    )
