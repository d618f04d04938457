"""Writes of torch's determinism flags and of environment variables: by assignment, by call, or through a library.

A write that depends on an argument whose value is not known counts as a write of an open value.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import (
    UNKNOWN_VALUE,
    ArgumentReader,
    LiteralValue,
    Truth,
    argument_reader,
    evaluate,
)
from torchrepro_lint.catalogue.rows import Signature
from torchrepro_lint.dataflow.alternative_arguments import dictionary_items, with_expanded_keywords
from torchrepro_lint.dataflow.constants import propagated_constant
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Expression,
    Record,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import class_of, in_project, without_calls

DETERMINISTIC = "deterministic-algorithms"
CUDNN_DETERMINISTIC = "cudnn-deterministic"
CUDNN_BENCHMARK = "cudnn-benchmark"
CUDNN_ENABLED = "cudnn-enabled"
MAX_AUTOTUNE = "max-autotune"
INDUCTOR_DETERMINISTIC = "inductor-deterministic"
WORKER_SEEDS = "worker-seeds"
WARN = "warn"

# The flags as people write them.
FLAG_WORDS = {
    DETERMINISTIC: "deterministic algorithms",
    CUDNN_DETERMINISTIC: "cudnn.deterministic",
    CUDNN_BENCHMARK: "cudnn.benchmark",
    CUDNN_ENABLED: "cudnn.enabled",
    MAX_AUTOTUNE: "max_autotune",
    INDUCTOR_DETERMINISTIC: "inductor's deterministic",
    "fill-uninitialized-memory": "fill_uninitialized_memory",
    "allow-tf32": "allow_tf32",
    WORKER_SEEDS: "seeds of loader workers",
}

# Attributes that are flags; inductor's options for timing share a prefix.
_ATTRIBUTES = {
    "torch.backends.cudnn.deterministic": CUDNN_DETERMINISTIC,
    "torch.backends.cudnn.benchmark": CUDNN_BENCHMARK,
    "torch.backends.cudnn.enabled": CUDNN_ENABLED,
    "torch.utils.deterministic.fill_uninitialized_memory": "fill-uninitialized-memory",
    "torch._inductor.config.deterministic": INDUCTOR_DETERMINISTIC,
}
_AUTOTUNED = lazy_pattern(r"(torch\._inductor\.config\.)?(triton\.)?max_autotune(_gemm|_pointwise)?")
_AUTOTUNED_MODE = lazy_pattern(r"max-autotune(-no-cudagraphs)?")
_INDUCTOR = "torch._inductor.config"

SWITCHES = frozenset({"torch.use_deterministic_algorithms", "torch.set_deterministic", "torch._set_deterministic"})
DEBUG_MODE = "torch.set_deterministic_debug_mode"
_SWITCH_SIGNATURE = Signature("", ("mode",), ("warn_only", "d"))
_DEBUG_SIGNATURE = Signature(DEBUG_MODE, ("debug_mode",))
_DEBUG_MODES: dict[LiteralValue, LiteralValue] = {
    0: False,
    "default": False,
    1: WARN,
    "warn": WARN,
    2: True,
    "error": True,
}

# The value of omitted arguments: ``flags`` sets them to false, ``set_flags`` leaves them as they are.
_CUDNN_FLAGS: dict[str, LiteralValue] = {
    "torch.backends.cudnn.flags": False,
    "torch.backends.cudnn.set_flags": UNKNOWN_VALUE,
}
_CUDNN_SIGNATURE = Signature("", ("enabled", "benchmark"), ("deterministic",))


class FlagSetting(Record, frozen=True):
    """A flag, or an environment variable (in capitals), and the value that it is set to: a constant, else ``UNKNOWN_VALUE``;
    ``expression`` is what gives it, if there is one.
    """

    what: str
    value: LiteralValue
    expression: Expression | None = None


def is_off(value: LiteralValue) -> bool:
    """Whether a flag is certainly off. An open value may be on."""
    return value is None or value is False or value == 0


def flag_settings(
    names: Names, catalogue: Catalogue, path: str, event: Event, found: tuple[str, ...]
) -> Iterator[FlagSetting]:
    """The flags that an event of a file sets; ``found`` are the resolved names of the callee or target."""
    if event.kind == "set":
        plain = isinstance(event.statement, Assign) and event.statement.op in ("=", ":")
        for name in found:
            yield from _attribute_settings(name, names, path, event.given if plain else None)
    elif event.kind == "call" and isinstance(event.value, Call):
        for name in found:
            if not in_project(name):
                yield from _call_settings(names, catalogue, name, path, event.value)


def _attribute_settings(name: str, names: Names, path: str, given: Expression | None) -> Iterator[FlagSetting]:
    what = MAX_AUTOTUNE if name.startswith(_INDUCTOR) and _AUTOTUNED.fullmatch(name) else _ATTRIBUTES.get(name)
    if what is not None:
        yield FlagSetting(what, propagated_constant(names, path, given), given)


def _call_settings(names: Names, catalogue: Catalogue, name: str, path: str, call: Call) -> Iterator[FlagSetting]:
    known = class_of(without_calls(name))
    if name in SWITCHES:
        yield _mode_setting(names, path, call)
    elif name == DEBUG_MODE:
        given = argument_reader(_DEBUG_SIGNATURE, call)("debug_mode")
        value = propagated_constant(names, path, given)
        yield FlagSetting(
            DETERMINISTIC,
            _DEBUG_MODES.get(value, UNKNOWN_VALUE) if isinstance(value, str | int) else UNKNOWN_VALUE,
            given,
        )
    elif name in _CUDNN_FLAGS:
        yield from _cudnn_settings(names, path, call, _CUDNN_FLAGS[name])
    elif name == "builtins.setattr" and len(call.args) == 3:
        word = propagated_constant(names, path, call.args[1].value)
        if isinstance(word, str):
            for owner in names.names(path, call.args[0].value):
                yield from _attribute_settings(f"{owner}.{word}", names, path, call.args[2].value)
    elif name in ("torch.compile", f"{_INDUCTOR}.patch"):
        yield from _inductor_settings(names, path, call)
    else:
        yield from _library_settings(names, catalogue, known, path, call)


def _mode_setting(names: Names, path: str, call: Call) -> FlagSetting:
    argument = argument_reader(_SWITCH_SIGNATURE, call)
    given = argument("mode") or argument("d")
    value = True if given is None else propagated_constant(names, path, given)
    warns = propagated_constant(names, path, warning) if (warning := argument("warn_only")) is not None else False
    return FlagSetting(DETERMINISTIC, WARN if warns is True and not is_off(value) else value, given)


def _cudnn_settings(names: Names, path: str, call: Call, left_out: LiteralValue) -> Iterator[FlagSetting]:
    argument = argument_reader(_CUDNN_SIGNATURE, call)
    for word, what in (
        ("enabled", CUDNN_ENABLED),
        ("benchmark", CUDNN_BENCHMARK),
        ("deterministic", CUDNN_DETERMINISTIC),
    ):
        given = argument(word) or argument(f"_{word}")
        if given is not None:
            yield FlagSetting(what, propagated_constant(names, path, given), given)
        elif left_out is not UNKNOWN_VALUE:
            yield FlagSetting(what, left_out)


def _inductor_settings(names: Names, path: str, call: Call) -> Iterator[FlagSetting]:
    """``torch.compile(mode="max-autotune")``, its ``options``, and ``config.patch`` in each of its forms."""
    for arg in call.args:
        if arg.keyword == "mode":
            mode = propagated_constant(names, path, arg.value)
            if mode is UNKNOWN_VALUE or (isinstance(mode, str) and _AUTOTUNED_MODE.fullmatch(mode)):
                yield FlagSetting(MAX_AUTOTUNE, UNKNOWN_VALUE if mode is UNKNOWN_VALUE else True, arg.value)
        elif arg.keyword and _AUTOTUNED.fullmatch(arg.keyword):
            yield FlagSetting(MAX_AUTOTUNE, propagated_constant(names, path, arg.value), arg.value)
        elif arg.keyword in (None, "options") and not arg.star:
            for key, file, value in dictionary_items(names, path, arg.value):
                if _AUTOTUNED.fullmatch(key):
                    yield FlagSetting(MAX_AUTOTUNE, propagated_constant(names, file, value), value)
    match [arg.value for arg in call.args if arg.keyword is None and not arg.star]:
        case [Constant(value=str(key)), value] if _AUTOTUNED.fullmatch(key):
            yield FlagSetting(MAX_AUTOTUNE, propagated_constant(names, path, value), value)


def _library_settings(names: Names, catalogue: Catalogue, name: str, path: str, call: Call) -> Iterator[FlagSetting]:
    """The flags that a library call sets by the catalogue; where a condition is unknown, the value is open."""
    settings = catalogue.settings(name)
    if settings and any(arg.star == "**" for arg in call.args):
        call = with_expanded_keywords(names, path, call)
    for spelling, row in settings:
        truth = evaluate(row.when, spelling, _constant_arguments(names, path, argument_reader(spelling, call)))
        if truth is not Truth.FAILS:
            yield FlagSetting(row.flag, row.value if truth is Truth.HOLDS else UNKNOWN_VALUE)


def _constant_arguments(names: Names, path: str, argument: ArgumentReader) -> ArgumentReader:
    """Arguments, with variables that are only ever one constant replaced by it."""

    def read(word: str) -> Expression | None:
        given = argument(word)
        if isinstance(given, Ref):
            value = propagated_constant(names, path, given)
            if value is None or isinstance(value, str | int | float):
                return Constant(given.start, given.end, value)
        return given

    return read


_ENVIRONMENT = "os.environ"
_SETTERS = frozenset({"os.putenv", "os.environ.setdefault", "os.environ.__setitem__"})
_REMOVERS = frozenset({"os.unsetenv", "os.environ.pop", "os.environ.__delitem__"})
_GETTERS = frozenset({"os.environ.get", "os.getenv"})


def environment_settings(names: Names, path: str, event: Event, found: tuple[str, ...]) -> Iterator[FlagSetting]:
    """The environment variables that an event of a file sets or removes; a removed one has the value None."""
    if event.kind == "set" and _ENVIRONMENT in found:
        if isinstance(event.value, Subscript):
            yield from _variable_set(names, path, event.value.indices[0], event.given)
        elif isinstance(event.statement, Assign) and event.statement.op == "|=" and event.given is not None:
            yield from _variables_updated(names, path, event.given)
    elif event.kind == "call" and isinstance(event.value, Call):
        yield from _environment_call_settings(names, path, event.value, frozenset(found))
    elif event.kind == "index" and isinstance(event.statement, SimpleStatement) and event.statement.kind == "del":
        for target in event.statement.values:
            if isinstance(target, Subscript) and target.value == event.value and _ENVIRONMENT in found:
                yield from _variable_removed(names, path, target.indices[0])


def _environment_call_settings(names: Names, path: str, call: Call, found: frozenset[str]) -> Iterator[FlagSetting]:
    if found & _SETTERS and len(call.args) > 1:
        yield from _variable_set(names, path, call.args[0].value, call.args[1].value)
    elif found & _REMOVERS and call.args:
        yield from _variable_removed(names, path, call.args[0].value)
    elif "os.environ.update" in found:
        for arg in call.args:
            if arg.keyword:
                yield FlagSetting(arg.keyword, _variable_value(names, path, arg.value), arg.value)
            else:
                yield from _variables_updated(names, path, arg.value)


def _variable_set(names: Names, path: str, key: Expression, given: Expression | None) -> Iterator[FlagSetting]:
    name = propagated_constant(names, path, key)
    if isinstance(name, str):
        yield FlagSetting(name, _variable_value(names, path, given), given)


def _variable_removed(names: Names, path: str, key: Expression) -> Iterator[FlagSetting]:
    name = propagated_constant(names, path, key)
    if isinstance(name, str):
        yield FlagSetting(name, None)


def _variables_updated(names: Names, path: str, given: Expression) -> Iterator[FlagSetting]:
    for name, file, value in dictionary_items(names, path, given):
        yield FlagSetting(name, _variable_value(names, file, value), value)


def _variable_value(names: Names, path: str, given: Expression | None) -> LiteralValue:
    """The text that a variable gets: the argument of ``str(0)``, and the default of ``os.environ.get``."""
    match given:
        case Call(func=func, args=(only,)) if "builtins.str" in names.names(path, func):
            return propagated_constant(names, path, only.value)
        case Call(func=func, args=(_, default)) if _GETTERS.intersection(names.names(path, func)):
            return propagated_constant(names, path, default.value)
    return propagated_constant(names, path, given)
