"""Three-valued (Kleene) evaluation of the conditions of catalogue rows on one call, with the argument binding that it
needs.

A condition that depends on something unknown is ``UNKNOWN``; conditions on rare cases fail unless they are known to
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TypeAlias

from torchrepro_lint.catalogue.rows import Condition, OperationRow, Scalar, Signature
from torchrepro_lint.syntax.binding import UNKNOWN_ARGUMENT, bound_argument, known_argument
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Operation, Record, Ref
from torchrepro_lint.syntax.qualified_names import split_last
from torchrepro_lint.syntax.visitor import is_none, is_starred

ArgumentReader: TypeAlias = Callable[[str], Expression | None]


class _Unknown:
    """The type of a value that is not known statically."""

    def __repr__(self) -> str:
        return "OPEN"


UNKNOWN_VALUE = _Unknown()
LiteralValue: TypeAlias = str | bytes | int | float | complex | bool | tuple["LiteralValue", ...] | _Unknown | None
_LITERAL_TYPES = (str, bytes, int, float, complex, type(None))


def argument_reader(spelling: Signature, call: Call) -> ArgumentReader:
    """Argument binding of a call to a signature: maps a parameter to its expression, None if it is left out.

    A parameter that ``*`` or ``**`` may pass is ``UNKNOWN_ARGUMENT``.
    """
    words = spelling.parameters

    def read(name: str) -> Expression | None:
        if name in words:
            return bound_argument(call, words.index(name), name)
        return bound_argument(call, None, name) if name in spelling.keywords else known_argument(call, None, name)

    return read


def is_unknown_argument(value: Expression | None) -> bool:
    """Whether a parameter is passed by ``*`` or ``**``, if at all."""
    return value is UNKNOWN_ARGUMENT


def literal_value(value: Expression) -> LiteralValue:
    """The literal value of an expression; ``UNKNOWN_VALUE`` for anything else, also inside a tuple or list."""
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, _LITERAL_TYPES) else UNKNOWN_VALUE  # `...` is a constant too
    if isinstance(value, Collection) and value.kind in ("tuple", "list"):
        return (
            tuple(UNKNOWN_VALUE if item is None else literal_value(item) for item in value.items)
            if _has_no_star(value)
            else UNKNOWN_VALUE
        )
    if isinstance(value, Operation):
        return _folded(value.op, [literal_value(operand) for operand in value.operands])
    return UNKNOWN_VALUE


def _folded(op: str, operands: list[LiteralValue]) -> LiteralValue:
    """Constant folding of negative numbers and repeated sequences: ``(1,) * 4``."""
    match op, operands:
        case "-", [int() | float() as number]:
            return -number
        case ("*", [tuple() as items, int() as count]) | ("*", [int() as count, tuple() as items]) if 0 <= count < 100:
            return items * count
    return UNKNOWN_VALUE


def _has_no_star(value: Collection) -> bool:
    """Whether no item is starred."""
    return not any(map(is_starred, value.items))


class Interval(Record, frozen=True):
    """An integer known by its bounds, inclusive; ``high`` is None if there is none."""

    low: int
    high: int | None


# What type inference knows of a call, by condition subject: "input.ndim", "input.dtype" (floating, complex, integer),
# "input.layout", "program.warn_only", …, or a parameter whose value is known; and "device" (cuda, cpu, mps).
Subjects: TypeAlias = Mapping[str, Scalar | Interval]

NO_SUBJECTS: Subjects = {}


class Truth(IntEnum):
    """Kleene's three truth values, ordered: a conjunction is the least of its operands."""

    FAILS = 0
    UNKNOWN = 1
    HOLDS = 2


# Subjects of rare cases: unless a condition on them is known to hold, it fails.
_RARE_SUBJECTS = (
    "input.ndim",
    "input.layout",
    "input.quantized",
    "input.index",
    "input.need_weights",
    "other.",
    "program.",
)


def applicable_rows(
    rows: Iterable[OperationRow], argument: ArgumentReader, known: Subjects = NO_SUBJECTS
) -> list[tuple[OperationRow, Truth]]:
    """The rows of an operation that may apply to a call, in order, with their truth.

    A row that holds hides later ones for the same devices. A row with an unknown condition may apply, except for rare cases:
    conditions on the number of dimensions, the layout or the program must be known to hold.
    """
    found: list[tuple[OperationRow, Truth]] = []
    decided: set[str] = set()
    for row in rows:
        if decided >= set(row.devices) or "any" in decided or not _is_on_device(row, known):
            continue
        truth = evaluate(row.when, row.signature, argument, known)
        if truth is not Truth.FAILS:
            found.append((row, truth))
        if truth is Truth.HOLDS:
            decided.update(row.devices)
    return found


def refuted(rows: Iterable[OperationRow], argument: ArgumentReader, known: Subjects = NO_SUBJECTS) -> bool:
    """Whether a call's arguments alone rule out every row, whatever inference may find."""
    return all(
        any(
            evaluate((one,), row.signature, argument) is Truth.FAILS
            for one in row.when
            if "." not in one.of and one.of not in _INFERRED_SUBJECTS and one.of not in known
        )
        for row in rows
    )


# Subjects that inference supplies besides ``input.…``.
_INFERRED_SUBJECTS = ("device", "repeats", "src", "spatial")


def evaluate(
    when: Iterable[Condition], spelling: Signature, argument: ArgumentReader, known: Subjects = NO_SUBJECTS
) -> Truth:
    """The truth of a conjunction of conditions for one call."""
    return min(
        (_without_unknown_rare(one, _evaluate_one(one, spelling, argument, known)) for one in when), default=Truth.HOLDS
    )


def _is_on_device(row: OperationRow, known: Subjects) -> bool:
    return "device" not in known or "any" in row.devices or known["device"] in row.devices


def _without_unknown_rare(condition: Condition, truth: Truth) -> Truth:
    rare = condition.of.startswith(_RARE_SUBJECTS) or condition.test == "length"
    return Truth.FAILS if rare and truth is Truth.UNKNOWN else truth


def _evaluate_one(condition: Condition, spelling: Signature, argument: ArgumentReader, known: Subjects) -> Truth:
    expression = argument(condition.of)
    if condition.test == "given" and condition.of not in known:
        left_out = expression is None and condition.of in dict(spelling.defaults)
        return _negate_unless(Truth.HOLDS if left_out else _is_passed(expression), bool(condition.values[0]))
    if isinstance(bounds := known.get(condition.of), Interval):
        return _evaluate_interval(bounds, condition)
    if condition.test in ("one_of", "none_of") and not any(_may_equal(expression, each) for each in condition.values):
        return _negate_unless(Truth.FAILS, condition.test == "one_of")
    return _TESTS[condition.test](_subject_value(condition.of, expression, spelling, argument, known), condition.values)


def _may_equal(expression: Expression | None, value: Scalar) -> bool:
    """Whether an expression may equal a value: an f-string by its constant prefix and suffix; anything else may."""
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


def _evaluate_interval(bounds: Interval, condition: Condition) -> Truth:
    """The truth of a test on an interval: known if it is the same for every number in it."""
    limits = (int(value) for value in condition.values if isinstance(value, int | float))
    high = bounds.high if bounds.high is not None else max(bounds.low, *limits, 0) + 1
    truths = {_TESTS[condition.test](number, condition.values) for number in range(bounds.low, high + 1)}
    return truths.pop() if len(truths) == 1 else Truth.UNKNOWN


def _subject_value(
    of: str, expression: Expression | None, spelling: Signature, argument: ArgumentReader, known: Subjects
) -> LiteralValue:
    """The value of a subject: from inference, a literal argument, or the default."""
    if of == "input.dtype" and (dtype := argument("dtype")) is not None:
        return _dtype_class(dtype)
    if of in known:
        found = known[of]
        return UNKNOWN_VALUE if isinstance(found, Interval) else found
    if "." in of:
        return UNKNOWN_VALUE
    if expression is None:
        return dict(spelling.defaults).get(of)
    return literal_value(expression)


def _dtype_class(expression: Expression) -> LiteralValue:
    """The class of a literal dtype: ``torch.long`` is ``integer``."""
    if not isinstance(expression, Ref) or len(expression.roots) != 1:
        return UNKNOWN_VALUE
    module, name = split_last(".".join((*expression.roots, *expression.path)))
    return _DTYPES.get(name, UNKNOWN_VALUE) if module in ("torch", "numpy") else UNKNOWN_VALUE


_DTYPES: Mapping[str, LiteralValue] = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "bfloat16", "half", "double"), "floating"),
    **dict.fromkeys(("complex32", "complex64", "complex128", "cfloat", "cdouble", "chalf"), "complex"),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "short", "int", "long", "bool"), "integer"),
}


def _is_passed(expression: Expression | None) -> Truth:
    if expression is None or is_none(expression):
        return Truth.FAILS
    return Truth.HOLDS if isinstance(expression, Constant | Call | Collection) else Truth.UNKNOWN


def _negate_unless(truth: Truth, wanted: bool) -> Truth:
    return truth if wanted else Truth(Truth.HOLDS - truth)


def _one_of(value: LiteralValue, values: tuple[Scalar, ...]) -> Truth:
    if value is UNKNOWN_VALUE:
        return Truth.UNKNOWN
    if isinstance(value, int) and all(isinstance(one, bool) for one in values):
        value = bool(value)
    return _truth(any(type(value) is type(one) and value == one for one in values))


def _all_equal(value: LiteralValue, values: tuple[Scalar, ...]) -> Truth:
    """Whether all elements of a size equal a number. ``None`` keeps the input's size, which is unknown."""
    elements = value if isinstance(value, tuple) else (value,)
    numbers = [0 if one == "valid" else one for one in elements]
    if any(isinstance(one, int) and one != values[0] for one in numbers):
        return Truth.FAILS
    return Truth.HOLDS if numbers and all(isinstance(one, int) for one in numbers) else Truth.UNKNOWN


def _length(value: LiteralValue, values: tuple[Scalar, ...]) -> Truth:
    return _truth(len(value) == values[0]) if isinstance(value, tuple) else Truth.UNKNOWN


def _constant(value: LiteralValue, values: tuple[Scalar, ...]) -> Truth:
    return Truth.UNKNOWN if value is UNKNOWN_VALUE else _truth(type(value).__name__ in values)


def _number(holds: Callable[[float, float], bool]) -> Callable[[LiteralValue, tuple[Scalar, ...]], Truth]:
    def test(value: LiteralValue, values: tuple[Scalar, ...]) -> Truth:
        limit = values[0]
        if isinstance(value, int | float) and isinstance(limit, int | float):
            return _truth(holds(value, limit))
        return Truth.UNKNOWN

    return test


def _truth(value: bool) -> Truth:
    return Truth.HOLDS if value else Truth.FAILS


_TESTS: Mapping[str, Callable[[LiteralValue, tuple[Scalar, ...]], Truth]] = {
    "one_of": _one_of,
    "none_of": lambda value, values: _negate_unless(_one_of(value, values), False),
    "all": _all_equal,
    "not_all": lambda value, values: _negate_unless(_all_equal(value, values), False),
    "length": _length,
    "constant": _constant,
    "above": _number(lambda value, limit: value > limit),
    "at_least": _number(lambda value, limit: value >= limit),
    "at_most": _number(lambda value, limit: value <= limit),
    "given": lambda value, values: _negate_unless(
        Truth.UNKNOWN if value is UNKNOWN_VALUE else _truth(value is not None), bool(values[0])
    ),
}
