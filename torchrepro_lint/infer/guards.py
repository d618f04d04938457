"""What a test, an assertion or an unpacking tells of a variable."""

from __future__ import annotations

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)


def narrowed(test: Expression, env: Env, *, truth: bool) -> Env:
    """The bindings where a test holds, or fails."""
    match test:
        case Operation(op="not", operands=(inner,)):
            return narrowed(inner, env, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands) if (op == "and") is truth:
            for operand in operands:
                env = narrowed(operand, env, truth=truth)
            return env
        case Call(func=Ref(roots=("builtins.isinstance",), path=()), args=(first, second)) if truth:
            return _seen(first.value, env, "is", second.value)
        case Call(func=Ref(path=(*_, "is_tensor")), args=(first,)) if truth:
            return _seen(first.value, env, "tensor", None)
        case Operation(op="==" | "!=" as op, operands=(left, Constant(value=int(count)))) if (op == "==") is truth:
            return _seen(_counted(left), env, "ndim", None, (count, count))
        case Operation(op="in", operands=(left, Collection(items=items))) if truth:
            counts = [each.value for each in items if isinstance(each, Constant) and isinstance(each.value, int)]
            if counts and len(counts) == len(items):
                return _seen(_counted(left), env, "ndim", None, (min(counts), max(counts)))
    return env


def unpacked_shape(statement: Assign, env: Env) -> dict[str, Binding]:
    """``b, c, h, w = x.shape`` shows that ``x`` has four dimensions."""
    match statement:
        case Assign(targets=(Collection(items=items),), value=value, op="="):
            plain = not any(isinstance(each, Operation) for each in items)
            shape = _shape(value) if value is not None else None
            if plain and isinstance(shape, Ref):
                return dict(_changes(shape, env, "ndim", None, (len(items), len(items))))
    return {}


def measured(statement: Assign, env: Env) -> dict[str, Binding]:
    """``h, w = x.size(2), x.size(3)`` shows that ``x`` has four dimensions or more."""
    value = statement.value
    asked = value.items if isinstance(value, Collection) and value.kind == "tuple" else (value,)
    counts: dict[str, Binding] = {}
    for each in asked:
        of, count = _dimension(each)
        counts.update(_changes(of, {**env, **counts}, "sized", None, (count, count)) if of is not None else {})
    return counts


def _dimension(expression: Expression | None) -> tuple[Expression | None, int]:
    """The tensor of which one dimension is read, and how many it has at least."""
    match expression:
        case Call(
            func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end),
            args=(Arg(value=Constant(value=int(at))),),
        ) if at >= 0:
            return Ref(start, end, roots, tuple(before), end), at + 1
        case Subscript(value=Ref() as shape, indices=(Constant(value=int(at)),)) if at >= 0:
            return _shape(shape), at + 1
    return None, 0


def _counted(expression: Expression) -> Expression | None:
    """The tensor whose dimensions an expression counts."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "ndim"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "dim" | "ndimension"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(roots=("builtins.len",), path=()), args=(arg,)):
            return _shape(arg.value)
    return None


def _shape(expression: Expression) -> Expression | None:
    """The tensor whose shape an expression is."""
    match expression:
        case Ref(start=start, roots=roots, path=(*before, "shape"), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
        case Call(func=Ref(start=start, roots=roots, path=(*before, "size"), base_end=end), args=()):
            return Ref(start, end, roots, tuple(before), end)
        case Attribute():
            return None
    return None


def _seen(of: Expression | None, env: Env, how: str, value: Expression | None, at: tuple[int, int] = (0, 0)) -> Env:
    changes = _changes(of, env, how, value, at)
    return {**env, **changes} if changes else env


def _changes(
    of: Expression | None, env: Env, how: str, value: Expression | None, at: tuple[int, int]
) -> dict[str, Binding]:
    """The variable, seen through what is known of it; of a name with several meanings nothing is said."""
    if not isinstance(of, Ref) or of.path or len(of.roots) != 1 or of.roots[0] not in env:
        return {}
    return {of.roots[0]: Binding(how, value, env, (env[of.roots[0]],), at)}
