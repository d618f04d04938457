"""Messages of syntax errors, and ``async`` as a name: the same with both parsers, under each Python."""

from __future__ import annotations

import pytest

from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.parse import ParseError, parse_module, parse_with_ast, parse_with_libcst, read_as_names
from torchrepro_lint.syntax.syntax_errors import certain_problem, stops_at_a_reserved_name, with_stand_in

LOST = "; nothing else in this file was analysed"
OLD = "this is Python 2: "
ERRORS = [
    ("x = 1\nif x:\n    print 'a', x\n", 3, OLD + "print is a function since Python 3.0"),
    ("if x: print x\n", 1, OLD + "print is a function since Python 3.0"),
    ("print >>file, 'a' % x, y z\n", 1, OLD + "print is a function since Python 3.0"),
    ("exec 'code' in names\n", 1, OLD + "exec is a function since Python 3.0"),
    ("x = `y`\n", 1, OLD + "Python 3 has repr(value) instead of backticks"),
    ("if a <> b:\n    pass\n", 1, OLD + "Python 3 has != instead of <>"),
    ("raise Error, 'a'\n", 1, OLD + "Python 3 has raise Error(value) instead of raise Error, value"),
    ("x = 10L\n", 1, OLD + "Python 3 has no suffix L of integers"),
    ("x = ur'a'\n", 1, OLD + 'Python 3 has no strings with the prefix "ur"'),
    ("x = 0777\n", 1, "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers"),
    ("a = f(1,\nb = 2\nc = 3\n", 1, "'(' was never closed"),
    ("x = [1, 2\n\n\ndef f():\n    pass\n", 1, "'[' was never closed"),
    ("x = (1]\n", 1, "closing parenthesis ']' does not match opening parenthesis '('"),
    ("x = 1)\n", 1, "unmatched ')'"),
    ("if a:\n        b\n\tc\n", 3, "inconsistent use of tabs and spaces in indentation"),
    ("if a:\n    b\n  c\n", 3, "unindent does not match any outer indentation level"),
    ("a\n    b\n", 2, "unexpected indent"),
    ("if a:\nb\n", 2, "expected an indented block after 'if' statement on line 1"),
    ("def f(\n", 1, "'(' was never closed"),
    ("class A:\n    def f(self):\n", 2, "expected an indented block after function definition on line 2"),
    ("x = 'a\n", 1, "unterminated string literal (detected at line 1)"),
    ("x = '''a\n\n", 1, "unterminated triple-quoted string literal (detected at line 2)"),
    ("a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> other\n", 2, "an unresolved merge conflict"),
    ("a = 1\n=======\n", 2, "an unresolved merge conflict"),
    ("%matplotlib inline\nimport torch\n", 1, "a command of IPython, which only a notebook can have"),
    ("import torch\n!pip install torch\n", 2, "a command of IPython, which only a notebook can have"),
    (">>> x = 1\n", 1, "a prompt of the interpreter, which is no code"),
    ("x = 1\n{% if x %}\n", 2, "markers of a template; leave the file out with extend-exclude"),
    ("\n<!DOCTYPE html>\n<html lang='en'>\n", 2, "an HTML page instead of Python code"),
    ("version https://git-lfs.github.com/spec/v1\noid a\n", 1, "a pointer of Git LFS instead of the file; run git lfs pull"),
    ("if a:\n    b\nelse if c:\n    d\n", 3, "Python has elif instead of else if"),
    ("x = “a”\n", 1, "invalid character '“' (U+201C)"),
    ("if x\n    pass\n", 1, "expected ':'"),
    ("x = [1 2]\n", 1, "invalid syntax; perhaps you forgot a comma"),
    ("class = 1\n", 1, "class is a keyword of Python and cannot be a name"),
    ("f(lambda=1)\n", 1, "lambda is a keyword of Python and cannot be a name"),
    ("x = = 1\n", 1, "invalid syntax at `=`"),
    ("x++\n", 1, "invalid syntax: the line ends too early"),
    ("x = 1\0\n", 1, "a NUL character, which no Python file has"),
]  # fmt: skip


def error_of(text: str, parser: str = "auto") -> ParseError:
    with pytest.raises(ParseError) as raised:
        parse_module(text, parser)
    return raised.value


@pytest.mark.parametrize(("text", "row", "message"), ERRORS)
def test_an_error_is_told_in_words(text: str, row: int, message: str) -> None:
    error = error_of(text)
    assert (Lines(text).position(error.offset).row, error.message) == (row, message + LOST)
    same = error_of(text, "libcst")
    assert (same.message, same.offset) == (error.message, error.offset)


@pytest.mark.parametrize("text", ["x = f'{a b}'\n", "x = f'{'\n", "x = f'{a!z}'\n", "def f(a, (b, c)):\n    pass\n"])
def test_what_pythons_word_differently_has_words_at_all(text: str) -> None:
    message = error_of(text).message
    assert message.endswith(LOST)
    assert "expected one of" not in message
    assert message[0].islower()


OLD_CODE = '''import torch
import own.async as async
from async import async as other

"""async"""  # async


@async.register(async=1)
class Queue(async.Base):
    async: int = 0

    def async(self, async, *args):
        global other, async
        self.async = async.name[async]
        del async
        return [async.x for async in "async" if f(x, async=(yield), **async)]


async def gather(loader):
    async with loader as items:
        x = image.cuda(0, async = True)
    async for item in items: pass
    return [item async for item in items], lambda async: async
'''
NAMES = 22


@pytest.mark.parametrize("parser", ["auto", "libcst"])
def test_async_is_read_as_a_name(parser: str) -> None:
    """The tree is that of the text with another word of five letters, but for that word."""
    facts = parse_module(OLD_CODE, parser)
    replaced, word = with_stand_in(OLD_CODE) or ("", "")
    assert len(replaced) == len(OLD_CODE)
    assert len(read_as_names(OLD_CODE)) == NAMES == replaced.count(word)
    assert repr(facts) == repr(parse_module(replaced, parser)).replace(word, "async")
    assert word not in repr(facts)


def test_both_parsers_make_the_same_tree_of_it() -> None:
    assert parse_with_ast(OLD_CODE) == parse_with_libcst(OLD_CODE)


@pytest.mark.parametrize(
    "text",
    [
        "x = 'async'  # async\n",
        "async def f():\n    return [a async\n            for a in b]\n",
        "async \\\n  def f(): pass\n",
        "def async_(): pass\n",
        "x = f\"{y['async']}\"\n",
        "x = f\"{y[\"async\"]}\"\n",
    ],
)  # fmt: skip
def test_a_keyword_and_a_text_are_no_names(text: str) -> None:
    parse_module(text)
    assert read_as_names(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class A:\n    def f(self, async):\n        self.async = async\n\n    def g(self): pass\n", 3),
        ("x = async\r\nfor i in x: pass\r\n", 1),
        ("x = async  # why\nwith x: pass\n", 1),
        ("@async\ndef f(x): pass\n", 1),
        ("f(\n    x.async\n)\nfor async in x: pass\n", 2),
        ("async def f(x): return [(y, x.async) async\n    for y in x if async]\n", 2),
    ],
)
def test_a_name_at_the_end_of_a_line_is_no_keyword_of_the_next(text: str, names: int) -> None:
    assert parse_with_ast(text) is not None
    assert len(read_as_names(text)) == names


def test_a_string_in_an_f_string_has_what_was_written() -> None:
    """Where quotes of one kind nest, what stands between them looks like code."""
    text = 'x.cuda(async=True)\ny = f"{x["async"]}"\n'
    word = (with_stand_in(text) or ("", ""))[1]
    assert word not in repr(parse_with_libcst(text))


def test_the_stand_in_is_no_word_of_the_text() -> None:
    text = "a_000 = async = a_001\n"
    assert with_stand_in(text) == ("a_000 = a_002 = a_001\n", "a_002")
    assert parse_with_ast(text) == parse_with_libcst(text)
    every = " = ".join(f"a_{number:03}" for number in range(20))
    assert with_stand_in(f"async = {every}\n") is None
    assert error_of(f"async = {every}\n").message == "async is a keyword of Python and cannot be a name" + LOST


def test_what_is_wrong_beside_it_is_told() -> None:
    error = error_of("x.cuda(async=True)\ny = = async\n")
    assert error.message == "invalid syntax at `=`" + LOST


# Texts that the running Python refuses with the words of a certain error, and that libcst or a newer Python may read.
UNCERTAIN = [
    "print -1\ntype X = int\nx = 1 1\n",
    'f\'{d["a"]} {print "a"}\'\n',
    "x = f'''{\n'''\nprint 'a'\n",
    "if a:\n    b = \\\n  c\n d\n",
    "print if x else y\n",
    "try:\n    pass\nexcept A, b:\n    pass\n",
]


@pytest.mark.parametrize("text", [*(text for text, _, _ in ERRORS), *UNCERTAIN])
def test_what_is_told_without_libcst_is_what_libcst_leads_to(text: str) -> None:
    if (found := certain_problem(text)) is not None:
        raised = error_of(text, "libcst")
        assert found == (raised.message, raised.offset)


@pytest.mark.parametrize("text", UNCERTAIN)
def test_libcst_is_asked_where_another_python_may_see_other_tokens(text: str) -> None:
    assert certain_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\nif x:\n    print 'a', x\n",
        "x = '\\\n'\nprint x\n",
        "x = f'a'\nprint 5\n",
        "exec 'code' in names\n",
        "if a:\n        b\n\tc\n",
        "if a:\n    b\n  c\n",
        "a\n    b\n",
        "x = 'a\n",
        "x.cuda(async=True)\nprint x\n",
    ],
)
def test_common_errors_are_told_without_libcst(text: str) -> None:
    assert certain_problem(text) is not None


@pytest.mark.parametrize(
    ("text", "certain"), [("x.cuda(async=True)\n", True), ("async = 1\n", False), ("f(a b)\n", False)]
)
def test_a_reserved_name_is_certain_where_python_stops_at_it(text: str, certain: bool) -> None:
    assert stops_at_a_reserved_name(text) is certain
    assert read_as_names(text) == ((text.index("async"),) if "async" in text else ())
