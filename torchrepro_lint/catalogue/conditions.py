"""Arguments of a call by the names of its parameters, and the constants among them.

Whether the conditions of a catalogue row hold for a call, as far as it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from torchrepro_lint.catalogue.rows import Condition, Row, Scalar, Spelling
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Operation, Ref

Argument: TypeAlias = Callable[[str], Expression | None]


class _Open:
    """What is not known."""

    def __repr__(self) -> str:
        return "OPEN"


OPEN = _Open()
Literal: TypeAlias = str | bytes | int | float | complex | bool | tuple["Literal", ...] | _Open | None
_LITERALS = (str, bytes, int, float, complex, type(None))
# An expression of which nothing is known.
HIDDEN = Ref(0, 0, (), (), 0)


def arguments(spelling: Spelling, call: Call) -> Argument:
    """How to read a call: the expression given for a parameter, None where it is left out.

    Where ``*`` or ``**`` may give it, the expression is a name that nothing is known of.
    """
    given = {arg.keyword: arg.value for arg in call.args if arg.keyword is not None}
    positional = [arg for arg in call.args if arg.keyword is None and arg.star != "**"]
    stars = [index for index, arg in enumerate(positional) if arg.star]
    plain = positional[: stars[0]] if stars else positional
    given.update(zip(spelling.parameters, (arg.value for arg in plain), strict=False))
    hidden = set(spelling.parameters[len(plain) :]) if stars else set()
    if any(arg.star == "**" for arg in call.args):
        hidden |= {*spelling.parameters[len(plain) :], *spelling.keywords}
    return lambda name: given.get(name, HIDDEN if name in hidden else None)


def is_hidden(value: Expression | None) -> bool:
    """Whether a parameter is only known to be passed by a star, if at all."""
    return value is HIDDEN


def literal(value: Expression) -> Literal:
    """The constant that an expression is; ``OPEN`` for anything else, also inside a tuple or list."""
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, _LITERALS) else OPEN  # `...` is a constant too
    if isinstance(value, Collection) and value.kind in ("tuple", "list"):
        return tuple(OPEN if item is None else literal(item) for item in value.items) if _plain(value) else OPEN
    if isinstance(value, Operation):
        return _computed(value.op, [literal(operand) for operand in value.operands])
    return OPEN


def _computed(op: str, operands: list[Literal]) -> Literal:
    """Negative numbers, and repeated sequences: ``(1,) * 4``."""
    match op, operands:
        case "-", [int() | float() as number]:
            return -number
        case ("*", [tuple() as items, int() as count]) | ("*", [int() as count, tuple() as items]) if 0 <= count < 100:
            return items * count
    return OPEN


def _plain(value: Collection) -> bool:
    """Whether every item is one element (no ``*rest``)."""
    return not any(isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1 for item in value.items)


class Between(NamedTuple):
    """A whole number that is not known, but for its bounds; ``high`` None is none."""

    low: int
    high: int | None


# What inference knows of a call: "input.ndim", "input.dtype" (floating, complex, integer), "input.layout",
# "program.warn_only", …, or a parameter whose value it found; and "device" (cuda, cpu, mps).
Known: TypeAlias = Mapping[str, Scalar | Between]

NOTHING: Known = {}


class Truth(IntEnum):
    """Three values, ordered: a conjunction is the least of its parts."""

    FAILS = 0
    UNKNOWN = 1
    HOLDS = 2


# Rare cases: where they are not known to be there, they are not.
_RARE = ("input.ndim", "input.layout", "input.quantized", "input.index", "program.")


def applicable(rows: Iterable[Row], argument: Argument, known: Known = NOTHING) -> list[tuple[Row, Truth]]:
    """The rows of an operation that a call may be a case of, in their order.

    A row that is known to hold hides the later ones of its devices. A row with an unknown condition is a case, but for
    the rare ones: what is said of a number of dimensions, of a layout or of the program must be known.
    """
    found: list[tuple[Row, Truth]] = []
    settled: set[str] = set()
    for row in rows:
        if settled >= set(row.devices) or "any" in settled or not _on(row, known):
            continue
        truth = evaluate(row.when, row.spelling, argument, known)
        if truth is not Truth.FAILS:
            found.append((row, truth))
        if truth is Truth.HOLDS:
            settled.update(row.devices)
    return found


def refuted(rows: Iterable[Row], argument: Argument, known: Known = NOTHING) -> bool:
    """Whether no row is applicable to a call, by its arguments alone, whatever is found out about its input."""
    return all(
        any(
            evaluate((one,), row.spelling, argument) is Truth.FAILS
            for one in row.when
            if "." not in one.of and one.of not in _TOLD and one.of not in known
        )
        for row in rows
    )


# What the input tells beside ``input.…``.
_TOLD = ("device", "repeats", "src", "spatial")


def evaluate(when: Iterable[Condition], spelling: Spelling, argument: Argument, known: Known = NOTHING) -> Truth:
    """The conjunction of conditions for one call of a spelling."""
    return min((_strict(one, _one(one, spelling, argument, known)) for one in when), default=Truth.HOLDS)


def _on(row: Row, known: Known) -> bool:
    return "device" not in known or "any" in row.devices or known["device"] in row.devices


def _strict(condition: Condition, truth: Truth) -> Truth:
    rare = condition.of.startswith(_RARE) or condition.test == "length"
    return Truth.FAILS if rare and truth is Truth.UNKNOWN else truth


def _one(condition: Condition, spelling: Spelling, argument: Argument, known: Known) -> Truth:
    expression = argument(condition.of)
    if condition.test == "given" and condition.of not in known:
        left_out = expression is None and condition.of in dict(spelling.defaults)
        return _same(Truth.HOLDS if left_out else _given(expression), bool(condition.values[0]))
    if isinstance(bounds := known.get(condition.of), Between):
        return _within(bounds, condition)
    if condition.test in ("one_of", "none_of") and not any(_may_read(expression, each) for each in condition.values):
        return _same(Truth.FAILS, condition.test == "one_of")
    return _TESTS[condition.test](_value(condition.of, expression, spelling, argument, known), condition.values)


def _may_read(expression: Expression | None, value: Scalar) -> bool:
    """Whether an f-string may be a text, by its beginning and its end; anything else may."""
    if (
        not isinstance(expression, Operation)
        or expression.op != "f"
        or not isinstance(value, str)
        or not expression.operands
    ):
        return True
    first, last = expression.operands[0], expression.operands[-1]
    begins = first.value if isinstance(first, Constant) and isinstance(first.value, str) else ""
    ends = last.value if isinstance(last, Constant) and isinstance(last.value, str) else ""
    return value.startswith(begins) and value.endswith(ends)


def _within(bounds: Between, condition: Condition) -> Truth:
    """A test of a number between bounds: it holds, or fails, where it does for each number that may be meant."""
    limits = (int(value) for value in condition.values if isinstance(value, int | float))
    high = bounds.high if bounds.high is not None else max(bounds.low, *limits, 0) + 1
    truths = {_TESTS[condition.test](number, condition.values) for number in range(bounds.low, high + 1)}
    return truths.pop() if len(truths) == 1 else Truth.UNKNOWN


def _value(of: str, expression: Expression | None, spelling: Spelling, argument: Argument, known: Known) -> Literal:
    """The value of a subject: what inference knows, the constant argument, or the default."""
    if of == "input.dtype" and (dtype := argument("dtype")) is not None:
        return _dtype(dtype)
    if of in known:
        found = known[of]
        return OPEN if isinstance(found, Between) else found
    if "." in of:
        return OPEN
    if expression is None:
        return dict(spelling.defaults).get(of)
    return literal(expression)


def _dtype(expression: Expression) -> Literal:
    """The class of a dtype that is written out: ``torch.long`` is ``integer``."""
    if not isinstance(expression, Ref) or len(expression.roots) != 1:
        return OPEN
    module, _, name = ".".join((*expression.roots, *expression.path)).rpartition(".")
    return _DTYPES.get(name, OPEN) if module in ("torch", "numpy") else OPEN


_DTYPES: Mapping[str, Literal] = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "bfloat16", "half", "double"), "floating"),
    **dict.fromkeys(("complex32", "complex64", "complex128", "cfloat", "cdouble", "chalf"), "complex"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "short", "int", "long", "bool"), "integer"),
}


def _given(expression: Expression | None) -> Truth:
    if expression is None or (isinstance(expression, Constant) and expression.value is None):
        return Truth.FAILS
    return Truth.HOLDS if isinstance(expression, Constant | Call) else Truth.UNKNOWN


def _same(truth: Truth, wanted: bool) -> Truth:
    return truth if wanted else Truth(Truth.HOLDS - truth)


def _one_of(value: Literal, values: tuple[Scalar, ...]) -> Truth:
    if value is OPEN:
        return Truth.UNKNOWN
    if isinstance(value, int) and all(isinstance(one, bool) for one in values):
        value = bool(value)
    return _truth(any(type(value) is type(one) and value == one for one in values))


def _all(value: Literal, values: tuple[Scalar, ...]) -> Truth:
    """Whether all elements of a size are a number. ``None`` keeps the input's size, which is open."""
    elements = value if isinstance(value, tuple) else (value,)
    numbers = [0 if one == "valid" else one for one in elements]
    if any(isinstance(one, int) and one != values[0] for one in numbers):
        return Truth.FAILS
    return Truth.HOLDS if numbers and all(isinstance(one, int) for one in numbers) else Truth.UNKNOWN


def _length(value: Literal, values: tuple[Scalar, ...]) -> Truth:
    return _truth(len(value) == values[0]) if isinstance(value, tuple) else Truth.UNKNOWN


def _constant(value: Literal, values: tuple[Scalar, ...]) -> Truth:
    return Truth.UNKNOWN if value is OPEN else _truth(type(value).__name__ in values)


def _number(holds: Callable[[float, float], bool]) -> Callable[[Literal, tuple[Scalar, ...]], Truth]:
    def test(value: Literal, values: tuple[Scalar, ...]) -> Truth:
        limit = values[0]
        if isinstance(value, int | float) and isinstance(limit, int | float):
            return _truth(holds(value, limit))
        return Truth.UNKNOWN

    return test


def _truth(value: bool) -> Truth:
    return Truth.HOLDS if value else Truth.FAILS


_TESTS: Mapping[str, Callable[[Literal, tuple[Scalar, ...]], Truth]] = {
    "one_of": _one_of,
    "none_of": lambda value, values: _same(_one_of(value, values), False),
    "all": _all,
    "not_all": lambda value, values: _same(_all(value, values), False),
    "length": _length,
    "constant": _constant,
    "above": _number(lambda value, limit: value > limit),
    "at_least": _number(lambda value, limit: value >= limit),
    "at_most": _number(lambda value, limit: value <= limit),
    "given": lambda value, values: _same(
        Truth.UNKNOWN if value is OPEN else _truth(value is not None), bool(values[0])
    ),
}
