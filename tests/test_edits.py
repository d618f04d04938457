"""Edits of arguments, imports, statements and functions: the text that they give, and that it still parses."""

from __future__ import annotations

import ast

import pytest

from one_file import facts_of
from torchrepro_lint.edits import append_argument, remove_argument, replace_argument
from torchrepro_lint.facts import Call, Do
from torchrepro_lint.insertions import ensure_import, free_word, insert_function, insert_statement
from torchrepro_lint.text import Edit, apply_edits


def call_of(text: str) -> Call:
    """The call that is the first statement of a text."""
    statement = facts_of(text).body[0]
    assert isinstance(statement, Do)
    assert isinstance(statement.value, Call)
    return statement.value


def applied(text: str, *edits: Edit | None) -> str:
    """The text with edits made; it parses."""
    made = apply_edits(text, [edit for edit in edits if edit is not None])
    ast.parse(made)
    return made


APPENDED = [
    ("f()", "f(g=g)"),
    ("f( )", "f(g=g)"),
    ("f(a)", "f(a, g=g)"),
    ("f(a,)", "f(a, g=g,)"),
    ("f(a, )", "f(a, g=g, )"),
    ("f(a, b=1)", "f(a, b=1, g=g)"),
    ("f(*a)", "f(*a, g=g)"),
    ("f(a, **k)", "f(a, g=g, **k)"),
    ("f(a, ** k, )", "f(a, g=g, ** k, )"),
    ("f(**j, b=1, **k)", "f(g=g, **j, b=1, **k)"),
    ("f(x for x in y)", "f((x for x in y), g=g)"),
    ("f((x for x in y))", "f((x for x in y), g=g)"),
    ("f((a)(x) for x in y)", "f(((a)(x) for x in y), g=g)"),
    ("f((a, b))", "f((a, b), g=g)"),
    ("f(lambda: 0)", "f(lambda: 0, g=g)"),
    ("f (a)", "f (a, g=g)"),
    ("f(a)(b)", "f(a)(b, g=g)"),
    ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    g=g,\n)"),
    ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    g=g\n)"),
    ("f(\n    a,\n    b)", "f(\n    a,\n    b,\n    g=g)"),
    ("f(a,\n  b)", "f(a,\n  b,\n  g=g)"),
    ("f(\n    a,  # one\n    b,  # two\n)", "f(\n    a,  # one\n    b,  # two\n    g=g,\n)"),
    ("f(\n    a,  # one\n    b  # two\n)", "f(\n    a,  # one\n    b,\n    g=g  # two\n)"),
    ("f(\n    a, b,  # both, of them\n)", "f(\n    a, b, g=g,  # both, of them\n)"),
    ("f(\n    # nothing\n)", "f(g=g\n    # nothing\n)"),
    ("f(\n    a,\n    **k,\n)", "f(\n    a,\n    g=g, **k,\n)"),
    ("f(\r\n    a,\r\n)", "f(\r\n    a,\r\n    g=g,\r\n)"),
    ("f(a  # one, two\n)", "f(a, g=g  # one, two\n)"),
]


@pytest.mark.parametrize(("before", "after"), APPENDED)
def test_an_argument_is_appended(before: str, after: str) -> None:
    assert applied(before, append_argument(call_of(before), before, "g=g")) == after


REMOVED = [
    ("f(a)", 0, "f()"),
    ("f(a,)", 0, "f()"),
    ("f(a, b)", 0, "f(b)"),
    ("f(a, b)", 1, "f(a)"),
    ("f(a, b,)", 1, "f(a,)"),
    ("f(a, k = b, c=1)", 1, "f(a, c=1)"),
    ("f(a, *b)", 1, "f(a)"),
    ("f(\n    a,\n    b=1,\n)", 1, "f(\n    a,\n)"),
    ("f(\n    a,\n    b=1,\n)", 0, "f(\n    b=1,\n)"),
]


@pytest.mark.parametrize(("before", "index", "after"), REMOVED)
def test_an_argument_is_removed(before: str, index: int, after: str) -> None:
    call = call_of(before)
    assert applied(before, remove_argument(before, call, call.args[index])) == after


def test_an_argument_whose_comment_would_go_stays() -> None:
    text = "f(\n    a,  # one\n    b,\n)"
    call = call_of(text)
    assert remove_argument(text, call, call.args[0]) is None


def test_an_argument_is_replaced() -> None:
    text = "f(a, b = (1), c=2)"
    assert applied(text, replace_argument(call_of(text).args[1], "3")) == "f(a, b = 3, c=2)"


IMPORTED = [
    ("x = 1\n", "torch", "import torch\n\nx = 1\n"),
    ("", "torch", "import torch\n"),
    ("import os\n", "torch", "import os\nimport torch\n"),
    ("import os", "torch", "import os\nimport torch"),
    ("import os; x = 1\n", "torch", "import os; x = 1\nimport torch\n"),
    ("from __future__ import annotations\n", "torch", "from __future__ import annotations\nimport torch\n"),
    ('"""Doc."""\n', "torch", '"""Doc."""\n\nimport torch\n'),
    ('"""Doc."""\n\nx = 1\n', "torch", '"""Doc."""\n\nimport torch\n\nx = 1\n'),
    ("'''Doc\n\n\"\"\"'''  # end\nx = 1\n", "torch", "'''Doc\n\n\"\"\"'''  # end\n\nimport torch\n\nx = 1\n"),
    ("#!/bin/python\n# coding: utf-8\n\nx = 1\n", "torch", "#!/bin/python\n# coding: utf-8\n\nimport torch\n\nx = 1\n"),
    ("# comment", "torch", "# comment\n\nimport torch\n"),
    ("import os\r\n\r\nx = 1\r\n", "torch", "import os\r\nimport torch\r\n\r\nx = 1\r\n"),
    ("import torch.nn\n", "torch", "import torch.nn\n"),
    (
        "try:\n    import a\nexcept ImportError:\n    a = None\n",
        "torch",
        "import torch\n\ntry:\n    import a\nexcept ImportError:\n    a = None\n",
    ),
]


@pytest.mark.parametrize(("before", "module", "after"), IMPORTED)
def test_an_import_is_added_once(before: str, module: str, after: str) -> None:
    word, edits = ensure_import(facts_of(before), before, module)
    assert word == module
    assert applied(before, *edits) == after
    assert ensure_import(facts_of(after), after, module) == (module, ())


NAMED = [
    ("import torch as th\n", "torch", "th", "import torch as th\n"),
    ("import torch as th\nimport torch\n", "torch", "torch", "import torch as th\nimport torch\n"),
    ("from torch import nn\n", "torch", "torch", "from torch import nn\nimport torch\n"),
    ("from torch import nn\n", "torch.nn", "nn", "from torch import nn\n"),
    ("torch = 1\n", "torch", "torch_", "import torch as torch_\n\ntorch = 1\n"),
    ("torch = torch_ = 1\n", "torch", "torch__", "import torch as torch__\n\ntorch = torch_ = 1\n"),
    (
        "import torch\ndef f(torch): pass\n",
        "torch",
        "torch_",
        "import torch\nimport torch as torch_\ndef f(torch): pass\n",
    ),
]


@pytest.mark.parametrize(("before", "module", "word", "after"), NAMED)
def test_an_import_shadows_nothing(before: str, module: str, word: str, after: str) -> None:
    found, edits = ensure_import(facts_of(before), before, module)
    assert (found, applied(before, *edits)) == (word, after)


@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("a()\nb()\n", "b", "a()\nseed(1)\nb()\n"),
        ("if x:\n    b()\n", "b", "if x:\n    seed(1)\n    b()\n"),
        ("if x: b()\n", "b", "if x: seed(1); b()\n"),
        ("a(); b()\n", "b", "a(); seed(1); b()\n"),
        ("if x:\r\n\tb()", "b", "if x:\r\n\tseed(1)\r\n\tb()"),
    ],
)
def test_a_statement_is_put_before_another(before: str, mark: str, after: str) -> None:
    assert applied(before, insert_statement(before, before.index(mark), "seed(1)")) == after


HELPER = "def h():\n    return 1"
PLACED = [
    ("import os\n\n\nx = h()\n", f"import os\n\n\n{HELPER}\n\n\nx = h()\n"),
    ("import os\nx = h()\n", f"import os\n\n\n{HELPER}\n\n\nx = h()\n"),
    ("import os\n\n\n\n\nx = h()\n", f"import os\n\n\n{HELPER}\n\n\n\n\nx = h()\n"),
    ("import os  # the os\nx = h()\n", f"import os  # the os\n\n\n{HELPER}\n\n\nx = h()\n"),
    ("x = h()\n", f"{HELPER}\n\n\nx = h()\n"),
    ("# top\n\nx = h()\n", f"# top\n\n{HELPER}\n\n\nx = h()\n"),
    ('"""Doc."""\nx = h()\n', f'"""Doc."""\n\n\n{HELPER}\n\n\nx = h()\n'),
    (
        "try:\n    import a\nexcept ImportError:\n    a = None  # none\n    # end\nx = h()\n",
        f"try:\n    import a\nexcept ImportError:\n    a = None  # none\n    # end\n\n\n{HELPER}\n\n\nx = h()\n",
    ),
    ("import os\nx = h()\nimport late\n", f"import os\n\n\n{HELPER}\n\n\nx = h()\nimport late\n"),
    ("import os\r\nx = h()\r\n", f"import os\n\n\n{HELPER}\n\n\nx = h()\n".replace("\n", "\r\n")),
]


@pytest.mark.parametrize(("before", "after"), PLACED)
def test_a_function_is_put_below_the_imports(before: str, after: str) -> None:
    edit = insert_function(facts_of(before), before, HELPER, before.index("x = h()"))
    assert edit is not None
    assert applied(before, edit) == after


def test_a_function_finds_no_room_on_the_line_of_its_use() -> None:
    assert insert_function(facts_of("import os; x = h()\n"), "import os; x = h()\n", HELPER, 11) is None


def test_a_free_word_is_no_word_of_the_text() -> None:
    assert free_word("a = b", "h") == "h"
    assert free_word("h = h_ = 1  # h__", "h") == "h___"
