"""Whether a piece of source, parsed by itself, gives the node that the syntax tree has: kind, identifiers, number of parts."""

from __future__ import annotations

import ast
import warnings
from typing import TypeAlias

from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
)

# What a piece may have to stand in to be read: parentheses, the arguments of a call, a subscript, a function.
_AROUND = ("({}\n)", "f({}\n)", "x[{}\n]", "def f():\n ({}\n)", "async def f():\n ({}\n)")
_KINDS: dict[str, type[ast.AST] | tuple[type[ast.AST], ...]] = {
    "and": (ast.BoolOp, ast.Compare),
    "or": ast.BoolOp,
    "not": ast.UnaryOp,
    "if": ast.IfExp,
    "await": ast.Await,
    "yield": (ast.Yield, ast.YieldFrom),
    "yield from": ast.YieldFrom,
    "*": (ast.Starred, ast.BinOp),
    "f": (ast.JoinedStr, ast.Constant),  # a long text is one without parts
    ":": ast.Slice,
    ":=": ast.NamedExpr,
    "...": ast.Constant,
}
_DISPLAYS = {"tuple": ast.Tuple, "list": ast.List, "set": ast.Set, "dict": ast.Dict}
_COMPREHENSIONS = {"list": ast.ListComp, "set": ast.SetComp, "dict": ast.DictComp, "generator": ast.GeneratorExp}
_Value: TypeAlias = object


def fits(piece: str, expression: Expression) -> bool:
    """Whether a piece of source parses to what an expression says."""
    return any(_is(node, expression) for node in map(_parsed, (each.format(piece) for each in _AROUND)) if node)


def statement_fits(piece: str, indent: str, kind: str) -> bool:
    """Whether a piece of source, whose first line is indented so, parses to one statement or clause."""
    piece = piece[2:] if piece.startswith("elif") else piece
    text = f"if 1:\n{indent}{piece}\n" if indent else f"{piece}\n"
    tree = (
        parsed(text)
        or parsed(f"async def f():\n{indent or ' '}{piece}\n")
        or parsed(f"while 1:\n{indent or ' '}{piece}\n")
    )
    body: list[ast.stmt] = tree.body if isinstance(tree, ast.Module) else []
    if body and (indent or not parsed(text)):
        body = getattr(body[0], "body", [])
    return len(body) == 1 and kind in _STATEMENTS.get(type(body[0]).__name__, ("ExpressionStatement",))


_STATEMENTS = {
    "Assign": ("Assign",),
    "AugAssign": ("Assign",),
    "AnnAssign": ("Assign",),
    "TypeAlias": ("Assign", "ExpressionStatement"),
    "Import": ("Import",),
    "ImportFrom": ("Import",),
    "If": ("If",),
    "For": ("Loop",),
    "AsyncFor": ("Loop",),
    "While": ("Loop",),
    "With": ("With",),
    "AsyncWith": ("With",),
    "Try": ("Try",),
    "TryStar": ("Try",),
    "Match": ("Match",),
    "FunctionDef": ("DefinitionStatement",),
    "AsyncFunctionDef": ("DefinitionStatement",),
    "ClassDef": ("DefinitionStatement",),
    "Return": ("SimpleStatement",),
    "Raise": ("SimpleStatement",),
    "Delete": ("SimpleStatement",),
    "Assert": ("SimpleStatement", "If", "ExpressionStatement"),
    "Break": ("SimpleStatement",),
    "Continue": ("SimpleStatement",),
}


def _parsed(text: str) -> ast.expr | None:
    tree = parsed(text)
    if tree is None or len(tree.body) != 1:
        return None
    first = tree.body[0]
    if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)):
        first = first.body[0]
    if not isinstance(first, ast.Expr):
        return None
    value = first.value
    if text.startswith("f(") and isinstance(value, ast.Call):
        return value.args[0] if len(value.args) == 1 else None
    return value.slice if text.startswith("x[") and isinstance(value, ast.Subscript) else value


def parsed(text: str) -> ast.Module | None:
    """The tree of a text as Python's own parser has it; None where it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _is(node: ast.expr, expression: Expression) -> bool:
    match expression:
        case Constant(value=value):
            return _constant(node) == (type(value), value)
        case Ref(path=path):
            return _words(node)[1:] == path or (bool(_words(node)) and not path)
        case Attribute(name=name):
            return isinstance(node, ast.Attribute) and node.attr == name
        case Call(args=args):
            return isinstance(node, ast.Call) and len(node.args) + len(node.keywords) == len(args)
        case Subscript():
            return isinstance(node, ast.Subscript)
        case Collection(kind=kind, items=items):
            count = 2 * len(node.keys) if isinstance(node, ast.Dict) else len(getattr(node, "elts", ()))
            return isinstance(node, _DISPLAYS[kind]) and count == len(items)
        case Comprehension(kind=kind, clauses=clauses):
            return isinstance(node, _COMPREHENSIONS[kind]) and len(getattr(node, "generators", ())) == len(clauses)
        case Lambda():
            return isinstance(node, ast.Lambda)
        case Operation(op=op):
            return op == "?" or isinstance(node, _KINDS.get(op, (ast.BinOp, ast.Compare, ast.UnaryOp)))


def _constant(node: ast.expr) -> tuple[type, _Value]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        kind, value = _constant(node.operand)
        return (type(-value), -value) if isinstance(value, (int, float, complex)) else (kind, None)
    value = node.value if isinstance(node, ast.Constant) else node
    return type(None) if value is ... else type(value), None if value is ... else value


def _words(node: ast.expr) -> tuple[str, ...]:
    found: list[str] = []
    while isinstance(node, ast.Attribute):
        found.append(node.attr)
        node = node.value
    return (node.id, *reversed(found)) if isinstance(node, ast.Name) else ()
