"""Spans agree with libcst's position provider and Python's parser, whatever the text looks like."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest

from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.libcst_positions import _CountingState, by_provider, locate
from torchrepro_lint.syntax.libcst_tree import LOCATED as WANTED
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Operation, Ref, Statement, Subscript
from torchrepro_lint.syntax.parse import parse_with_libcst
from torchrepro_lint.syntax.visitor import expressions, statements
from torchrepro_lint.syntax.visitor import operands_of as parts_of

# The longest files of ours hold most of what people write. The first of them are tried every time, and all by `pytest -m long`.
LONGEST = sorted(Path(__file__).parents[2].glob("t*/**/*.py"), key=lambda file: -file.stat().st_size)[:12]
FILES = [
    pytest.param(each, id=each.name, marks=pytest.mark.long if number > 4 else ())
    for number, each in enumerate(LONGEST)
]

SOURCES = {
    "empty": "",
    "no final newline": "x = f(1)",
    "only a comment": "# nothing",
    "blank lines": "\n\n  \nx = f(1)\n\n\n",
    "parentheses": "x = (f)((1), ((2)), (a.b).c)\n((x))\n(  y  ).z\n(f(1)\n)\n(a)[(b)]\n",
    "comments": "f(  # one\n    1,  # two\n    # three\n    2\n    # four\n)  # five\n",
    "keywords": "f(a, *b, k = 1, **c)\nf(a for a in b)\nf((a for a in b))\n",
    "unicode": "grün = 'ü😀' ; f('😀', grün)\n名 = {'名': 名.x('é')}\n",
    "crlf": "x = f(\r\n    1,\r\n    y.z,\r\n)\r\nif x:\r\n    g(x)\r\n",
    "old mac": "x = f(1)\ry = g(x)\r",
    "tabs": "if x:\n\tf(1)\n\tif y:\n\t\tg( 2,\t3 )\n",
    "form feed": "x = f(1)\n\x0c\ny = g(2)\n",
    "continuation": "x = f(1, \\\n  2) + \\\n  y.z\nassert x, \\\n  f(y)\n",
    "semicolons": "a = 1; b = f(a); c\nif a: b; c = f(2)\n",
    "strings": "x = 'a' 'b' \"c\"\nx = '''a\nb''' if 0 else g('''\n''')\n",
    "f-strings": "x = f'{a.b!r:>{f(w)}} {g(1)}' f'{x=}'\ny = f'''{\n  f(1)\n}'''\n",
    "nested f-strings": "x = f\"{f('a')} {f'{g(1)}'}\"\n",
    "decorators": "@d\n@d.e(1)\nclass C(B, metaclass=M):\n    @p(\n        1)\n    async def f(self, a=g(1), *b, c: int = h.i, **k) -> T.u:\n        return await f(x)\n",
    "walrus": "if (n := f(1)) > 2: print(n)\n[y := f(x), y ** 2]\n",
    "match": "match f(x):\n    case C(a=1, b=y) if g(y):\n        h(y)\n    case {'k': v, **rest}:\n        v.w\n    case [1, *_] | (2 as t):\n        pass\n",
    "try": "try:\n    f(1)\nexcept (A, B.c) as e:\n    g(e)\nelse:\n    h(2)\nfinally:\n    i(3)\n",
    "with": "with f(1) as a, g(2) as (b, c.d):\n    pass\nasync def h():\n    async with (f(1) as x, g(2)):\n        async for y in z(1): pass\n",
    "lambda": "f = lambda a, *b, c=g, **d: h(a)(b)\n",
    "comprehensions": "x = [f(a) for a in g(b) if h(a) for c in a]\ny = {k: v(1) for k, v in z}\nw = {f(a) for a in b}\n",
    "subscripts": "x[1], x[a:b], x[::f(2)], x[..., None], x[1, 2:3][f(4)]\nx[()]\n",
    "numbers": "x = 1_000 + 0xff - 1.5e3 * 2j // -1 ** --2 + .5\n",
    "operators": "x = not a.b or c and d < e.f <= g(1) != h is not i not in j\ny = ~a | b & c ^ d << 1 >> 2 @ e\n",
    "conditional": "x = (a.b if f(c) else (d))\n",
    "star": "a, *b = *f(c), d\nprint(*f(1), **{**g(2)})\n",
    "annotations": "x: 'A.b' = f(1)\ny: List[int]\ndef f(a: 'B' = 1, *, c: D.e) -> 'F': ...\n",
    "chains": "a.b(c).d[e](f).g.h(i)(j)\n(a\n  .b(1)\n  .c\n)\n",
    "delete": "del a.b, c[f(1)]\nraise f(1) from g.h\nassert f(1), g(2)\nglobal q\n",
    "yield": "def f():\n    x = yield g(1)\n    yield from h(2)\n    return (yield)\n",
    "bom and cookie": "# -*- coding: utf-8 -*-\nx = f('é')\n",
    "space before call": "f (1)\nf  (  )\nx . y (2)\nx [1]\n",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_spans_are_those_of_the_provider(source: str) -> None:
    _same_as_provider(source)


@pytest.mark.parametrize("file", FILES)
def test_spans_of_whole_files_are_those_of_the_provider(file: Path) -> None:
    _same_as_provider(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_facts_stand_where_python_sees_them(source: str) -> None:
    _same_as_python(source)


@pytest.mark.parametrize("file", FILES)
def test_facts_of_whole_files_stand_where_python_sees_them(file: Path) -> None:
    _same_as_python(file.read_text(encoding="utf-8"))


def test_another_libcst_falls_back_to_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x = f(1)\n"
    tree = cst.parse_module(text)
    monkeypatch.setattr(_CountingState, "add_token", lambda self, value: self.tokens.append(f"{value} "))
    offsets = locate(tree, text, WANTED)
    statement = tree.body[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    assignment = statement.body[0]
    assert isinstance(assignment, cst.Assign)
    assert offsets.inner(assignment.value) == (4, 8)


def _same_as_provider(source: str) -> None:
    tree = cst.parse_module(source)
    ours, theirs = locate(tree, source, WANTED), by_provider(tree, source)
    stack: list[cst.CSTNode] = [tree]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if type(node) in WANTED and theirs.find(node) is not None:
            assert ours.inner(node) == theirs.inner(node), cst.Module([]).code_for_node(node)
            if getattr(node, "lpar", ()):
                assert ours.outer(node) == theirs.outer(node), cst.Module([]).code_for_node(node)


def _same_as_python(source: str) -> None:
    """Every record stands where Python's parser has such a node, and every call of the parser's is there."""
    nodes = list(_nodes(source))
    everywhere = {place for _, place in nodes}
    facts = parse_with_libcst(source)
    bodies = [facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)]
    parts = [part for body in bodies for statement in statements(body) for part in _parts(statement)]
    for part in parts:
        place = (part.start, part.end)
        match part:
            case Call() | Subscript() | Attribute():
                assert (type(part).__name__, place) in nodes
            case Ref(path=path):
                assert ("Attribute" if path else "Name", place) in nodes
            case Constant(value=value) if value is not None:
                assert place in everywhere, source[part.start : part.end]
    # The middle of a chained comparison belongs to both of its comparisons.
    assert {(part.start, part.end) for part in parts if isinstance(part, Call)} == {
        place for kind, place in nodes if kind == "Call"
    }
    for part in parts:
        if isinstance(part, Call):
            assert source[part.open - 1] == "("
            assert source[part.end - 1] == ")"


def _parts(statement: Statement) -> list[Expression]:
    """The expressions of a statement; those in an f-string apart, which Python places only from 3.12 on."""
    return [part for expression in expressions(statement) for part in _outside_strings(expression)]


def _outside_strings(expression: Expression) -> Iterator[Expression]:
    if not (isinstance(expression, Operation) and expression.op == "f"):
        yield expression
        for part in parts_of(expression):
            yield from _outside_strings(part)


def _nodes(source: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The expressions that Python's parser finds, annotations and f-strings apart, by class and place."""
    lines = Lines(source)

    def offset(row: int, column: int) -> int:
        start = lines.offset(row)
        return start + len(lines.line(row).encode()[:column].decode())

    queue: list[ast.AST] = [ast.parse(source)]
    while queue:
        node = queue.pop()
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                queue += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, ast.AST)]
        if isinstance(node, ast.JoinedStr):
            del queue[len(queue) - len(node.values) :]
        if isinstance(node, ast.expr):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            place = (offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset))
            yield type(node).__name__, place


@pytest.mark.parametrize(
    "text", ["f(f'{3!s  }', y)\nz = (g)(a)\n", "\ufeffif 1:\n\tx = f(f'{(a)!s }{b!r  :x}',\r\n (y))\n"]
)
def test_blanks_that_libcst_loses_move_nothing(text: str) -> None:
    """Those after a conversion, which Python takes from 3.12 on, whatever Python reads."""
    found = [text[each.start : each.end] for each in calls_of(text)]
    assert found == [
        each for each in ("f(f'{3!s  }', y)", "(g)(a)", "f(f'{(a)!s }{b!r  :x}',\r\n (y))") if each in text
    ]


def calls_of(text: str) -> list[Call]:
    every = (each for statement in statements(parse_with_libcst(text).body) for each in expressions(statement))
    return [each for each in every if isinstance(each, Call)]
