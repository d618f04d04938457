"""Tests that are decided before the program runs: constants, ``__main__``, ``TYPE_CHECKING``, torch's version."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from packaging.version import Version

from torchrepro_lint.facts import Call, Constant, Expression, Operation, Ref


class Setting(NamedTuple):
    """What a body runs in: whether its module is the one that is started, the target torch (empty: not known), and the
    words of properties, whose reading runs code.
    """

    main: bool = False
    torch: str = ""
    properties: frozenset[str] = frozenset()


def constant_truth(test: Expression, setting: Setting) -> bool | None:
    """Whether a test is always true or always false; None where that is not known."""
    match test:
        case Constant(value=value):
            return bool(value)
        case Operation(op="not", operands=(operand,)):
            truth = constant_truth(operand, setting)
            return None if truth is None else not truth
        case Ref(roots=roots, path=path):
            return False if (*roots, *path)[-1].rpartition(".")[2] == "TYPE_CHECKING" else None
        case Operation(op="and" | "or" as op, operands=operands):
            truths = [constant_truth(operand, setting) for operand in operands]
            decisive = op == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS and setting.torch:
            return _version_test(op, left, right, setting.torch)
    return setting.main if is_main_test(test) else None


def is_main_test(test: Expression) -> bool:
    """Whether a test is ``__name__ == "__main__"``, either way round."""
    match test:
        case Operation(op="==", operands=(Ref(roots=("builtins.__name__",), path=()), Constant(value="__main__"))):
            return True
        case Operation(op="==", operands=(Constant(value="__main__"), Ref(roots=("builtins.__name__",), path=()))):
            return True
    return False


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _version_test(op: str, left: Expression, right: Expression, target: str) -> bool | None:
    """A comparison of ``torch.__version__`` with a literal, plain or inside ``version.parse`` and the like.

    The target is a minor release: a bound inside it (``>= "2.1.2"`` for 2.1) is not decided.
    """
    if _is_torch_version(left) and (bound := _literal_version(right)):
        compare = _COMPARISONS[op]
    elif _is_torch_version(right) and (bound := _literal_version(left)):
        compare = lambda one, other: _COMPARISONS[op](other, one)  # noqa: E731  # the sides are swapped
    else:
        return None
    minor = Version(target).release[:2]
    wanted = (*bound.release, 0)[:2]
    if minor == wanted and any(bound.release[2:]):
        return None
    return compare(minor, wanted)


def _is_torch_version(expression: Expression) -> bool:
    match expression:
        case Ref(roots=("torch",), path=("__version__",)) | Ref(roots=("torch.__version__",), path=()):
            return True
        case Call(args=(arg,)):
            return _is_torch_version(arg.value)
    return False


def _literal_version(expression: Expression) -> Version | None:
    match expression:
        case Constant(value=str(text)):
            try:
                return Version(text)
            except ValueError:  # of too many digits, too
                return None
        case Call(args=(arg,)):
            return _literal_version(arg.value)
    return None
