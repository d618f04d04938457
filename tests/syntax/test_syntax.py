"""Differential test of the two parsers: ast and libcst give the same syntax tree, to the byte of its JSON."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import sysconfig
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odd_syntax import ANY_PYTHON, LEFT_TO_LIBCST, NEWER
from torchrepro_lint.source.decoding import SourceProblem, decode
from torchrepro_lint.source.text import parse
from torchrepro_lint.syntax.file_encoding import encode_tree
from torchrepro_lint.syntax.parse import ParseError, parse_module, parse_with_ast, parse_with_libcst

TOP = Path(__file__).parents[2]
OWN = [*sorted((TOP / "torchrepro_lint").rglob("*.py")), *sorted((TOP / "tests").rglob("*.py"))]
# One in so many of them is tried every time, and all by `pytest -m long`.
ONE_IN = 8
LIBRARY = Path(sysconfig.get_path("stdlib"))
# Long, old or full of odd syntax; where a distribution leaves tests out, the rest is tried. Every second one is tried every time.
SAMPLE = [
    "argparse.py",
    "asyncio/tasks.py",
    "dataclasses.py",
    "enum.py",
    "logging/__init__.py",
    "turtle.py",
    "typing.py",
    "unittest/mock.py",
    "test/test_coroutines.py",
    "test/test_decorators.py",
    "test/test_fstring.py",
    "test/test_genexps.py",
    "test/test_generators.py",
    "test/test_named_expressions.py",
    "test/test_patma.py",
    "test/test_unpack_ex.py",
    "test/test_scope.py",
    "test/test_string_literals.py",
    "test/test_type_params.py",
    "test/test_with.py",
    "test/test_lambda.py",
]
TORCH = [
    "nn/functional.py",
    "optim/adam.py",
    "optim/lr_scheduler.py",
    "utils/data/dataloader.py",
    "nn/modules/transformer.py",
]

TEXTS = {
    **ANY_PYTHON,
    **{name: text for name, (version, text) in NEWER.items() if sys.version_info >= version},
}
# The same programs in other letters, lines and columns.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it stands": str,
    "lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "lines of old Macs": lambda text: text.replace("\n", "\r"),
    "letters of two bytes": lambda text: re.sub(r"\ba\b", "ä", text),
    "letters of four bytes": lambda text: re.sub(r"\b([ac])\b", "\\1𠀀", text),
    "a function of it": lambda text: "def outer():\n" + textwrap.indent(text, "\t") + "\n\tpass\n",
    "a method of it": lambda text: "class É:\n  def outer(ä):\n" + textwrap.indent(text, "      ") + "\n      pass\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_odd_syntax(text: str, spelling: Callable[[str], str]) -> None:
    assert_same(spelling(text))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=pytest.mark.long if number % ONE_IN else ())
        for number, path in enumerate(OWN)
    ],
)
def test_our_own_files(path: Path) -> None:
    assert_same(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if number % 2 else ()) for number, name in enumerate(SAMPLE)]
)
def test_python_s_library(name: str) -> None:
    path = LIBRARY / name
    if not path.exists():
        pytest.skip("not installed")
    assert_same(read(path))


@pytest.mark.parametrize("name", TORCH)
def test_torch(name: str) -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("not installed")
    assert_same(read(Path(spec.origin).parent / name))


@pytest.mark.long
def test_all_of_python_s_library(request: pytest.FixtureRequest) -> None:
    """Minutes long: only where it is asked for by ``-m slow``."""
    if request.config.option.markexpr != "slow":
        pytest.skip("asked for by -m slow")
    for path in sorted(LIBRARY.rglob("*.py")):
        if "site-packages" not in path.parts and not isinstance(decode(path.read_bytes()), SourceProblem):
            assert_same_or_left(read(path))


@pytest.mark.parametrize("text", LEFT_TO_LIBCST.values(), ids=LEFT_TO_LIBCST.keys())
def test_what_is_left_to_libcst(text: str) -> None:
    assert parse_with_ast(text) is None
    assert parse_module(text) == parse_with_libcst(text)


@pytest.mark.parametrize(
    "text", ["x = = 1\n", "print 'x'\n", "x = 0777\n", "x = (1,\ny = 2\n", "if x:\npass\n", "\ud800\n"]
)
def test_what_is_said_of_a_mistake_is_libcst_s_affair(text: str) -> None:
    assert parse_with_ast(text) is None
    with pytest.raises((ParseError, UnicodeEncodeError)) as ours:
        parse_module(text)
    with pytest.raises((ParseError, UnicodeEncodeError)) as theirs:
        parse_with_libcst(text)
    assert (str(ours.value), vars(ours.value)) == (str(theirs.value), vars(theirs.value))


WARNED = "x = '\\d' f'\\d{a}' '\\d'\ny = 1if a else 2\n"


def test_code_that_python_warns_of_is_read_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SyntaxError):
            ast.parse(WARNED)
        assert_same(WARNED)
        warnings.simplefilter("error")  # now before the filter that was there
        assert_same(WARNED)


def test_other_warnings_are_still_given() -> None:
    parse(WARNED)
    with pytest.warns(UserWarning, match="still"):
        warnings.warn("still given", stacklevel=1)
    with pytest.raises(SyntaxError):
        compile("x = '\\d'", "other.py", "exec")


def test_python_s_parser_suffices_for_most_files() -> None:
    """Libcst takes a fifth of a second to import: a file with f-strings must not."""
    program = "import sys\nfrom torchrepro_lint.syntax.parse import parse_module\nparse_module(sys.stdin.read())\nprint('libcst' in sys.modules)"
    text = ANY_PYTHON["f-strings"] + ANY_PYTHON["adjacent f-strings"]
    done = subprocess.run(
        [sys.executable, "-c", program], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


def read(path: Path) -> str:
    source = decode(path.read_bytes())
    assert not isinstance(source, SourceProblem)
    return source.text


def assert_same(text: str) -> None:
    found = parse_with_ast(text)
    assert found is not None
    expected = parse_with_libcst(text)
    assert found == expected
    assert encode_tree(found) == encode_tree(expected)


def assert_same_or_left(text: str) -> None:
    found = parse_with_ast(text)
    if found is not None:
        expected = parse_with_libcst(text)
        assert (encode_tree(found), found.summary) == (encode_tree(expected), expected.summary)


# --- expressions by chance -------------------------------------------------------------------------------------------

BLANK = st.sampled_from(["", "", "", " ", "\n", "  # (,]\n", "\\\n", "\t", "\r\n"])
ATOMS = st.sampled_from(
    [
        "a",
        "b.c",
        "é",
        "名.x",
        "1",
        "-1.5",
        "'d'",
        '""',
        "'e''f'",
        "f'{a}'",
        "f'{a.b!r:>{c}}g'",
        "'''h\ni'''",
        "None",
        "...",
        "()",
        "[]",
        "{}",
        "(a,)",
        "f''",
        "f'{a,}'",
        "rb'j'",
    ]
)


def spaced(*shape: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The parts of a shape, which are texts or strategies, with blanks between them."""
    parts = [st.just(each) if isinstance(each, str) else each for each in shape]
    return st.tuples(*(part for each in parts for part in (BLANK, each)), BLANK).map("".join)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    held = spaced("(", inner, ")")
    operand = st.one_of(held, st.sampled_from(["a", "b.c", "'é'", "f(a)", "(a, b)", "x[0]"]))
    argument = st.one_of(inner, spaced("*", operand), spaced("k", "=", inner))
    last = st.one_of(spaced("*", operand), spaced("k", "=", inner), spaced("**", operand))
    index = st.one_of(
        inner, spaced(operand, ":"), spaced(":", operand, ":"), spaced(operand, ":", operand), st.just(":")
    )
    return st.one_of(
        held,
        spaced(operand, ".", "z"),
        spaced(operand, "(", inner, ",", last, ")"),
        spaced(operand, "(", argument, ",", ")"),
        spaced(operand, "(", inner, " for é in ", operand, ")"),
        spaced(operand, "[", index, "]"),
        spaced(operand, "[", index, ",", index, "]"),
        spaced("(", inner, " for é in ", operand, " if ", operand, ")"),
        spaced("(", operand, ",", inner, ",", ")"),
        spaced("[", inner, ",", "*", operand, "]"),
        spaced("{", operand, ":", inner, ",", "**", operand, "}"),
        spaced("(", operand, ",", operand, " for é in ", operand, ")").map(lambda text: f"[{text.replace(',', '+')}]"),
        *(spaced(operand, sign, operand, sign, operand) for sign in ("+", " and ", " or ", "<", " not in ", "**")),
        spaced("(", operand, " if ", inner, " else ", operand, ")"),
        spaced("(", "lambda é=", inner, ":", operand, ")"),
        spaced("(", "é", ":=", inner, ")"),
        spaced("-", operand),
        spaced("'ü'", "f'{a}é{(b)}'", "'y'"),
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no mistake
@given(st.recursive(ATOMS, larger, max_leaves=12))
def test_any_expression(expression: str) -> None:
    text = f"x = ({expression}\n)\ndel (y), (\n{expression})[0]\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return  # `1.z` and the like
    assert_same(text)
