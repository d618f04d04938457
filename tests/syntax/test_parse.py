"""Parsing of whole files: what the syntax tree keeps, that no text crashes the reader, and positions of errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    ExpressionStatement,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Try,
    With,
)
from torchrepro_lint.syntax.parse import ParseError, parse_module

ERRORS = [
    ("x = = 1\n", 1),
    ("x = 1\ny = = 1\n", 2),
    ("x = 1\r\ny = = 1\r\n", 2),
    ("é = 'ü' = = 1\n", 1),
    ("print 'x'\n", 1),
    ("x = 'abc\n", 1),
    ("if x:\npass\n", 2),
]


@pytest.mark.parametrize(("source", "row"), ERRORS)
def test_an_error_is_where_the_parser_sees_it(source: str, row: int) -> None:
    with pytest.raises(ParseError) as raised:
        parse_module(source)
    assert Lines(source).position(raised.value.offset).row == row
    assert raised.value.message
    assert "\n" not in raised.value.message


DEEP = {
    "parentheses": "x = " + "(" * 3000 + ")" * 3000 + "\n",
    "lists": "x = " + "[" * 500 + "]" * 500 + "\n",
    "a chain of calls": "x = f" + "(" * 401 + ")" * 401 + "\n",
    "a chain of attributes": "x = a" + ".b" * 1500 + "\n",
    "a chain of method calls": "x = a" + ".b()" * 700 + "\n",
    "a sum": "x = " + " + ".join("a" * 1500) + "\n",
    "signs": "x = " + "-" * 3000 + "1\n",
    "nots": "x = " + "not " * 3000 + "1\n",
    "powers": "x = " + " ** ".join("a" * 1500) + "\n",
    "conditions": "x = " + "1 if a else " * 1500 + "2\n",
    "lambdas": "x = " + "lambda: " * 1500 + "2\n",
    "elifs": "if a: b\n" + "elif a: b\n" * 3000,
    "blocks": "".join("    " * depth + "if a:\n" for depth in range(99)) + "    " * 99 + "b\n",
}


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP.keys())
def test_deep_nesting_is_an_error_or_no_problem(source: str) -> None:
    """In a process of its own: what is not caught would end the test run by a signal."""
    program = (
        "import sys\nfrom torchrepro_lint.syntax.parse import ParseError, parse_module\n"
        "try:\n    parse_module(sys.stdin.read())\nexcept ParseError as error:\n    print(error.message)\nelse:\n    print('fine')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, input=source, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout.startswith(("fine", "nested too deeply"))


def test_brackets_in_strings_and_comments_are_no_nesting() -> None:
    facts = parse_module("x = [\n" + "    ':(',  # :(\n" * 500 + "]\n")
    assert len(facts.body) == 1


def test_statements_keep_their_shape() -> None:
    facts = parse_module(
        "import a\nwith a.b() as c, d:\n    e\nfor x in y:\n    z()\nelse:\n    w\nwhile 1: break\n"
        "try:\n    f()\nexcept E:\n    g()\nfinally:\n    h()\nif i: j()\nelif k: l()\nelse: m()\n"
    )
    kinds = [type(each).__name__ for each in facts.body]
    assert kinds == ["Import", "With", "Loop", "Loop", "Try", "If"]
    with_, loop, while_, try_, if_ = facts.body[1:]
    assert isinstance(with_, With)
    assert [target is not None for _, target in with_.items] == [True, False]
    assert isinstance(loop, Loop)
    assert loop.target is not None
    assert len(loop.orelse) == 1
    assert isinstance(while_, Loop)
    assert while_.target is None
    assert isinstance(try_, Try)
    assert (len(try_.handlers), len(try_.final)) == (1, 1)
    assert isinstance(if_, If)
    assert isinstance(if_.orelse[0], If)


VALUES = [
    ("1", 1),
    ("-1", -1),
    ("- 1.5", -1.5),
    ("0x1F", 31),
    ("1_000", 1000),
    ("'a' 'b'", "ab"),
    ("r'\\n'", "\\n"),
    ("'\\n'", "\n"),
    ("b'a' b'b'", b"ab"),
    ("'''a\nb'''", "a\nb"),
    ("True", True),
    ("None", None),
    ("1j", 1j),
]


@pytest.mark.parametrize(("source", "value"), VALUES)
def test_literals_have_their_values(source: str, value: object) -> None:
    statement = parse_module(f"x = {source}\n").body[0]
    assert isinstance(statement, Assign)
    assert isinstance(statement.value, Constant)
    assert statement.value.value == value
    assert type(statement.value.value) is type(value)


def test_arguments_keep_keywords_stars_and_places() -> None:
    source = "f(a, (b), *c, d = 1, **e)\n"
    statement = parse_module(source).body[0]
    assert isinstance(statement, ExpressionStatement)
    assert isinstance(statement.value, Call)
    found = [(arg.keyword, arg.star, source[arg.start : arg.end]) for arg in statement.value.args]
    assert found == [(None, "", "a"), (None, "", "(b)"), (None, "*", "c"), ("d", "", "1"), (None, "**", "e")]
    assert source[statement.value.open :].startswith("a, (b)")


def test_assignments_are_noted_by_variable() -> None:
    facts = parse_module("a = 1\na += 2\nb, (c, *d) = f()\ne, g = 1, 2\nfor h in a: pass\nwith f() as i: pass\n")
    noted = {name: [how for how, _ in values] for name, values in facts.assigned.items()}
    assert noted == {
        ":a": ["=", "+="], ":b": ["[]"], ":c": ["[]"], ":d": ["[]"], ":e": ["="], ":g": ["="], ":h": ["[]"], ":i": ["with"],
    }  # fmt: skip


def test_functions_and_classes() -> None:
    facts = parse_module(
        "class C(B, metaclass=M):\n    @property\n    def f(self, /, a=1, *b, c: int, **d) -> 'T':\n        return a\n"
        "    async def g(self):\n        yield 1\n"
    )
    (found,) = facts.classes
    assert found.methods == (("f", ":C.f"), ("g", ":C.g"))
    assert [(base.keyword, base.star) for base in found.bases] == [(None, ""), ("metaclass", "")]
    f, g = facts.functions
    assert [(param.name, param.kind) for param in f.params] == [
        ("self", "/"), ("a", ""), ("b", "*"), ("c", "kw"), ("d", "**"),
    ]  # fmt: skip
    assert isinstance(f.returns, Ref)
    assert f.owner == ":C"
    assert isinstance(f.body[0], SimpleStatement)
    assert (f.generator, g.generator) == (False, True)


def test_operations_and_displays() -> None:
    statement = parse_module("x = {**a, 'b': [1, *c], 'd': (yield)} if not e else f < g < h\n").body[0]
    assert isinstance(statement, Assign)
    assert isinstance(statement.value, Operation)
    test, display, chain = statement.value.operands
    assert isinstance(test, Operation)
    assert test.op == "not"
    assert isinstance(display, Collection)
    assert (display.kind, display.items[0]) == ("dict", None)
    assert isinstance(chain, Operation)
    assert chain.op == "and"


@pytest.mark.parametrize(
    ("source", "end"),
    [
        ("", 0),
        ("x = 1\n", 0),
        ('"""Doc."""\n', 10),
        ("import a\nimport b\nx = 1\n", 17),
        ("import a\nx = 1\nimport b\n", 23),
        ("import a\ndef f(): pass\nimport b\n", 8),
        ("import a\ntry:\n    import b\nexcept E:\n    b = 1\nx = 1\n", 46),
    ],
)
def test_imports_end_where_the_last_of_them_does(source: str, end: int) -> None:
    assert parse_module(source).imports_end == end


def test_equal_texts_have_equal_facts() -> None:
    source = "import a\nx = a.f(b for b in {1, 2})\ndef g(y): return y\n"
    assert parse_module(source) == parse_module(source)
    assert repr(parse_module(source)) == repr(parse_module(source))


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [("a = 1\nb = = 2\n", 2, 5), ("x = (1,\ny = 2\n", 1, 5), ("x = 'abc\n", 1, 5), ("if x\n  y\n", 1, 5)],
)
def test_a_syntax_error_is_placed_where_pythons_parser_places_it(text: str, row: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    place = Lines(text).position(caught.value.offset)
    assert (place.row, place.column) == (row, column)


@pytest.mark.parametrize("text", ["x = " + "+".join(["1"] * 20_000), "x = a" + ".b()" * 3_000])
def test_a_chain_that_libcst_would_take_minutes_over_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="a chain of more than 500 operations"):
        parse_module(text)
