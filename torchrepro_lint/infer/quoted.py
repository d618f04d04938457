"""Annotations in quotes."""

from __future__ import annotations

import ast
import builtins

from torchrepro_lint.source.ipython import REFUSALS, parse
from torchrepro_lint.syntax.nodes import Collection, Constant, Expression, Facts, Operation, Ref, Subscript


def unquoted(facts: Facts, text: str) -> Expression | None:
    """The expression that an annotation quotes, its words read at the top level of the file; None for what is no type."""
    try:
        return _converted(facts, parse(text.strip(), "eval").body)
    except REFUSALS:
        return None


def _converted(facts: Facts, node: ast.expr) -> Expression | None:
    match node:
        case ast.Name(id=word):
            return Ref(0, 0, _roots(facts, word), (), 0)
        case ast.Constant(value=None | str() as value):
            return Constant(0, 0, value)
        case ast.Constant(value=value) if value is ...:
            return Operation(0, 0, "...", ())
        case ast.Attribute(value=value, attr=word):
            base = _converted(facts, value)
            return base._replace(path=(*base.path, word)) if isinstance(base, Ref) else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = (_converted(facts, left), _converted(facts, right))
            return Operation(0, 0, "|", tuple(each for each in sides if each)) if all(sides) else None
        case ast.Subscript(value=value, slice=ast.Tuple(elts=elements)):
            return _subscripted(facts, value, elements)
        case ast.Subscript(value=value, slice=element):
            return _subscripted(facts, value, [element])
        case ast.List(elts=elements):
            return Collection(0, 0, "list", tuple(_converted(facts, each) for each in elements))
    return None


def _subscripted(facts: Facts, value: ast.expr, elements: list[ast.expr]) -> Expression | None:
    base, indices = _converted(facts, value), [_converted(facts, each) for each in elements]
    if base is None or None in indices:
        return None
    return Subscript(0, 0, base, tuple(each for each in indices if each is not None), 0)


def _roots(facts: Facts, word: str) -> tuple[str, ...]:
    found = next((names for each, names in facts.exports if each == word), ())
    return found or ((f"builtins.{word}",) if hasattr(builtins, word) else (f"?{word}",))
