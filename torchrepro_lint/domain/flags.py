"""The flags of torch that a run sets, by assignment, by call, and through libraries that set them.

The environment variables that a run sets or removes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import OPEN, Argument, Literal, Truth, arguments, evaluate
from torchrepro_lint.catalogue.rows import Spelling, plain
from torchrepro_lint.dataflow.constants import constant
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    Leave,
    Operation,
    Ref,
    Subscript,
)

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.events import Event


DETERMINISTIC = "deterministic-algorithms"
CUDNN_DETERMINISTIC = "cudnn-deterministic"
CUDNN_BENCHMARK = "cudnn-benchmark"
CUDNN_ENABLED = "cudnn-enabled"
MAX_AUTOTUNE = "max-autotune"
INDUCTOR_DETERMINISTIC = "inductor-deterministic"
WARN = "warn"

# How people write them.
FLAG_WORDS = {
    DETERMINISTIC: "deterministic algorithms",
    CUDNN_DETERMINISTIC: "cudnn.deterministic",
    CUDNN_BENCHMARK: "cudnn.benchmark",
    CUDNN_ENABLED: "cudnn.enabled",
    MAX_AUTOTUNE: "max_autotune",
    INDUCTOR_DETERMINISTIC: "inductor's deterministic",
    "fill-uninitialized-memory": "fill_uninitialized_memory",
    "allow-tf32": "allow_tf32",
    "worker-seeds": "seeds of loader workers",
}

# Attributes that are flags. All that inductor times begin alike.
_ATTRIBUTES = {
    "torch.backends.cudnn.deterministic": CUDNN_DETERMINISTIC,
    "torch.backends.cudnn.benchmark": CUDNN_BENCHMARK,
    "torch.backends.cudnn.enabled": CUDNN_ENABLED,
    "torch.utils.deterministic.fill_uninitialized_memory": "fill-uninitialized-memory",
    "torch._inductor.config.deterministic": INDUCTOR_DETERMINISTIC,
}
_AUTOTUNED = re.compile(r"(torch\._inductor\.config\.)?(triton\.)?max_autotune(_gemm|_pointwise)?")
_AUTOTUNED_MODE = re.compile(r"max-autotune(-no-cudagraphs)?")
_INDUCTOR = "torch._inductor.config"

SWITCHES = frozenset({"torch.use_deterministic_algorithms", "torch.set_deterministic", "torch._set_deterministic"})
DEBUG_MODE = "torch.set_deterministic_debug_mode"
_SWITCH = Spelling("", ("mode",), ("warn_only", "d"))
_DEBUG = Spelling(DEBUG_MODE, ("debug_mode",))
_DEBUG_MODES: dict[Literal, Literal] = {0: False, "default": False, 1: WARN, "warn": WARN, 2: True, "error": True}

# What the blocks and calls of cuDNN's flags leave out is false in the one, and left alone in the other.
_CUDNN_FLAGS: dict[str, Literal] = {"torch.backends.cudnn.flags": False, "torch.backends.cudnn.set_flags": OPEN}
_CUDNN = Spelling("", ("enabled", "benchmark"), ("deterministic",))


class Setting(NamedTuple):
    """A flag, or a variable of the environment in capitals, and what it is set to: ``value`` where that is one constant
    (else ``OPEN``), and the expression, if any.
    """

    what: str
    value: Literal
    given: Expression | None = None


def is_off(value: Literal) -> bool:
    """Whether a flag is certainly not on; what is not known may be."""
    return value is None or value is False or value == 0


def settings(names: Names, catalogue: Catalogue, path: str, event: Event, found: tuple[str, ...]) -> Iterator[Setting]:
    """What an event of a file sets, where what is called or assigned has been ``found`` to have these names."""
    if event.kind == "set":
        plain = isinstance(event.statement, Assign) and event.statement.op in ("=", ":")
        for name in found:
            yield from _assigned(name, names, path, event.given if plain else None)
    elif event.kind == "call" and isinstance(event.value, Call):
        for name in found:
            if ":" not in name:
                yield from _settings_of_call(names, catalogue, name, path, event.value)


def _assigned(name: str, names: Names, path: str, given: Expression | None) -> Iterator[Setting]:
    what = MAX_AUTOTUNE if name.startswith(_INDUCTOR) and _AUTOTUNED.fullmatch(name) else _ATTRIBUTES.get(name)
    if what is not None:
        yield Setting(what, constant(names, path, given), given)


def _settings_of_call(names: Names, catalogue: Catalogue, name: str, path: str, call: Call) -> Iterator[Setting]:
    known = plain(name).removesuffix("()")
    if name in SWITCHES:
        yield _switched(names, path, call)
    elif name == DEBUG_MODE:
        given = arguments(_DEBUG, call)("debug_mode")
        value = constant(names, path, given)
        yield Setting(DETERMINISTIC, _DEBUG_MODES.get(value, OPEN) if isinstance(value, str | int) else OPEN, given)
    elif name in _CUDNN_FLAGS:
        yield from _cudnn_block(names, path, call, _CUDNN_FLAGS[name])
    elif name == "builtins.setattr" and len(call.args) == 3:
        word = constant(names, path, call.args[1].value)
        if isinstance(word, str):
            for owner in names.names(path, call.args[0].value):
                yield from _assigned(f"{owner}.{word}", names, path, call.args[2].value)
    elif name in ("torch.compile", f"{_INDUCTOR}.patch"):
        yield from _inductor(names, path, call)
    else:
        yield from _by_library(names, catalogue, known, path, call)


def _switched(names: Names, path: str, call: Call) -> Setting:
    argument = arguments(_SWITCH, call)
    given = argument("mode") or argument("d")
    value = True if given is None else constant(names, path, given)
    warns = constant(names, path, warning) if (warning := argument("warn_only")) is not None else False
    return Setting(DETERMINISTIC, WARN if warns is True and not is_off(value) else value, given)


def _cudnn_block(names: Names, path: str, call: Call, left_out: Literal) -> Iterator[Setting]:
    argument = arguments(_CUDNN, call)
    for word, what in (
        ("enabled", CUDNN_ENABLED),
        ("benchmark", CUDNN_BENCHMARK),
        ("deterministic", CUDNN_DETERMINISTIC),
    ):
        given = argument(word) or argument(f"_{word}")
        if given is not None:
            yield Setting(what, constant(names, path, given), given)
        elif left_out is not OPEN:
            yield Setting(what, left_out)


def _inductor(names: Names, path: str, call: Call) -> Iterator[Setting]:
    """``torch.compile(mode="max-autotune")``, its ``options``, and ``config.patch`` in each of its forms."""
    for arg in call.args:
        if arg.keyword == "mode":
            mode = constant(names, path, arg.value)
            if mode is OPEN or (isinstance(mode, str) and _AUTOTUNED_MODE.fullmatch(mode)):
                yield Setting(MAX_AUTOTUNE, OPEN if mode is OPEN else True, arg.value)
        elif arg.keyword and _AUTOTUNED.fullmatch(arg.keyword):
            yield Setting(MAX_AUTOTUNE, constant(names, path, arg.value), arg.value)
        elif arg.keyword in (None, "options") and not arg.star:
            for key, file, value in items(names, path, arg.value):
                if _AUTOTUNED.fullmatch(key):
                    yield Setting(MAX_AUTOTUNE, constant(names, file, value), value)
    match [arg.value for arg in call.args if arg.keyword is None and not arg.star]:
        case [Constant(value=str(key)), value] if _AUTOTUNED.fullmatch(key):
            yield Setting(MAX_AUTOTUNE, constant(names, path, value), value)


def items(names: Names, path: str, expression: Expression) -> Iterator[tuple[str, str, Expression]]:
    """The literal keys of the dictionaries that an expression may be, each with its file and value."""
    for file, value in names.values(path, expression):
        match value:
            case Collection(kind="dict", items=pairs):
                for key, item in zip(pairs[::2], pairs[1::2], strict=True):
                    if isinstance(key, Constant) and isinstance(key.value, str) and item is not None:
                        yield key.value, file, item
            case Call(args=args) if "builtins.dict" in names.names(file, value.func):
                yield from ((arg.keyword, file, arg.value) for arg in args if arg.keyword)
            case Operation(op="|", operands=operands):
                for operand in operands:
                    yield from items(names, file, operand)


def _by_library(names: Names, catalogue: Catalogue, name: str, path: str, call: Call) -> Iterator[Setting]:
    """What the tables say of a call; what hangs on an argument that is not known may be set."""
    for spelling, row in catalogue.settings(name):
        truth = evaluate(row.when, spelling, _constants(names, path, arguments(spelling, call)))
        if truth is not Truth.FAILS:
            yield Setting(row.flag, row.value if truth is Truth.HOLDS else OPEN)


def _constants(names: Names, path: str, argument: Argument) -> Argument:
    """Arguments through variables that are never anything but one constant."""

    def read(word: str) -> Expression | None:
        given = argument(word)
        if isinstance(given, Ref):
            value = constant(names, path, given)
            if value is None or isinstance(value, str | int | float):
                return Constant(given.start, given.end, value)
        return given

    return read


_ENVIRONMENT = "os.environ"
_SET = frozenset({"os.putenv", "os.environ.setdefault", "os.environ.__setitem__"})
_REMOVE = frozenset({"os.unsetenv", "os.environ.pop", "os.environ.__delitem__"})
_ASK = frozenset({"os.environ.get", "os.getenv"})


def variables(names: Names, path: str, event: Event, found: tuple[str, ...]) -> Iterator[Setting]:
    """What an event of a file does to variables; the value of one that is removed is None."""
    if event.kind == "set" and _ENVIRONMENT in found:
        if isinstance(event.value, Subscript):
            yield from _set(names, path, event.value.indices[0], event.given)
        elif isinstance(event.statement, Assign) and event.statement.op == "|=" and event.given is not None:
            yield from _updated(names, path, event.given)
    elif event.kind == "call" and isinstance(event.value, Call):
        yield from _set_by_call(names, path, event.value, frozenset(found))
    elif event.kind == "index" and isinstance(event.statement, Leave) and event.statement.kind == "del":
        for target in event.statement.values:
            if isinstance(target, Subscript) and target.value is event.value and _ENVIRONMENT in found:
                yield from _removed(names, path, target.indices[0])


def _set_by_call(names: Names, path: str, call: Call, found: frozenset[str]) -> Iterator[Setting]:
    if found & _SET and len(call.args) > 1:
        yield from _set(names, path, call.args[0].value, call.args[1].value)
    elif found & _REMOVE and call.args:
        yield from _removed(names, path, call.args[0].value)
    elif "os.environ.update" in found:
        for arg in call.args:
            if arg.keyword:
                yield Setting(arg.keyword, _value(names, path, arg.value), arg.value)
            else:
                yield from _updated(names, path, arg.value)


def _set(names: Names, path: str, key: Expression, given: Expression | None) -> Iterator[Setting]:
    name = constant(names, path, key)
    if isinstance(name, str):
        yield Setting(name, _value(names, path, given), given)


def _removed(names: Names, path: str, key: Expression) -> Iterator[Setting]:
    name = constant(names, path, key)
    if isinstance(name, str):
        yield Setting(name, None)


def _updated(names: Names, path: str, given: Expression) -> Iterator[Setting]:
    for name, file, value in items(names, path, given):
        yield Setting(name, _value(names, file, value), value)


def _value(names: Names, path: str, given: Expression | None) -> Literal:
    """The text that a variable gets: ``str(0)``, and the default of what the environment is asked for itself."""
    match given:
        case Call(func=func, args=(only,)) if "builtins.str" in names.names(path, func):
            return constant(names, path, only.value)
        case Call(func=func, args=(_, default)) if _ASK.intersection(names.names(path, func)):
            return constant(names, path, default.value)
    return constant(names, path, given)
