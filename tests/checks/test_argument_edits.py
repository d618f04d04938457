"""Edits of arguments, imports, statements and functions: their text, and that it still parses."""

from __future__ import annotations

import ast

import pytest

from one_file import facts_of
from torchrepro_lint.checks.fixes.arguments import append_argument, remove_argument, replace_argument
from torchrepro_lint.checks.fixes.import_block import ensure_import
from torchrepro_lint.checks.fixes.insertions import (
    free_name,
    free_word,
    insert_below,
    insert_function,
    insert_paragraph,
    insert_statement,
)
from torchrepro_lint.checks.fixes.removals import remove_statement
from torchrepro_lint.source.text import Edit, Span, apply_edits
from torchrepro_lint.syntax.nodes import Call, ExpressionStatement
from torchrepro_lint.syntax.scopes import control_flow_position


def call_of(text: str) -> Call:
    """The call that is the first statement of a text."""
    statement = facts_of(text).body[0]
    assert isinstance(statement, ExpressionStatement)
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
    ("f(\n    a,  # one\n    b  # two\n)", "f(\n    a,  # one\n    b,  # two\n    g=g\n)"),
    ("f(\n    a, b,  # both, of them\n)", "f(\n    a, b, g=g,  # both, of them\n)"),
    ("f(\n    # nothing\n)", "f(g=g\n    # nothing\n)"),
    ("f(\n    a,\n    **k,\n)", "f(\n    a,\n    g=g,\n    **k,\n)"),
    ("f(a,**k)", "f(a, g=g, **k)"),
    ("f(\n    # all\n    **k  # of them\n)", "f(\n    # all\n    g=g,\n    **k  # of them\n)"),
    ("f(a,  # one\n  **k)", "f(a,  # one\n  g=g,\n  **k)"),
    ("f(\n    a, b  # both\n)", "f(\n    a, b, g=g  # both\n)"),
    ("f(\r\n    a,\r\n)", "f(\r\n    a,\r\n    g=g,\r\n)"),
    ("f(a  # one, two\n)", "f(a, g=g  # one, two\n)"),
]


@pytest.mark.parametrize(("before", "after"), APPENDED)
def test_an_argument_is_appended(before: str, after: str) -> None:
    assert applied(before, append_argument(call_of(before), before, "g=g")) == after


A, B = "a" * 60, "b" * 33
LONG = [
    (f"f({A}, {B})", f"f({A}, {B},\n  g=g)"),
    (f"f({A}, b)", f"f({A}, b, g=g)"),
    (f"f({A}, {B})  # why", f"f({A}, {B},\n  g=g)  # why"),
    (f"f({A}, {B}, **k)", f"f({A}, {B}, g=g,\n  **k)"),
    (f"f(\n    {A}, {B})", f"f(\n    {A}, {B},\n    g=g)"),
    (f"f(\n    {A}, {B},\n)", f"f(\n    {A}, {B},\n    g=g,\n)"),
    (f"f({A},\n  {B}, {B}, cc, dddddd)", f"f({A},\n  {B}, {B}, cc, dddddd, g=g)"),
    (f"f({A}, {B})\r\n", f"f({A}, {B},\r\n  g=g)\r\n"),
    # as long as another line is, up to 120
    (f"f({A}, {B})\n# {'x' * 104}", f"f({A}, {B}, g=g)\n# {'x' * 104}"),
    (f"f({A}, {A})\n# {'x' * 200}", f"f({A}, {A},\n  g=g)\n# {'x' * 200}"),
    # no room below the first argument either
    (f"{A}({B}, c)", f"{A}({B}, c, g=g)"),
]


@pytest.mark.parametrize(("before", "after"), LONG)
def test_an_argument_gets_a_line_where_that_of_the_others_would_be_too_long(before: str, after: str) -> None:
    call = call_of(before)
    assert applied(before, append_argument(call, before, "g=g")) == after


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
    ("import os\n", "torch", "import os\n\nimport torch\n"),
    ("import os", "torch", "import os\n\nimport torch"),
    ("import os; x = 1\n", "torch", "import os; x = 1\n\nimport torch\n"),
    ("from __future__ import annotations\n", "torch", "from __future__ import annotations\n\nimport torch\n"),
    ('"""Doc."""\n', "torch", '"""Doc."""\n\nimport torch\n'),
    ('"""Doc."""\n\nx = 1\n', "torch", '"""Doc."""\n\nimport torch\n\nx = 1\n'),
    ("'''Doc\n\n\"\"\"'''  # end\nx = 1\n", "torch", "'''Doc\n\n\"\"\"'''  # end\n\nimport torch\n\nx = 1\n"),
    ("#!/bin/python\n# coding: utf-8\n\nx = 1\n", "torch", "#!/bin/python\n# coding: utf-8\n\nimport torch\n\nx = 1\n"),
    ("# comment", "torch", "# comment\n\nimport torch\n"),
    ("import os\r\n\r\nx = 1\r\n", "torch", "import os\r\n\r\nimport torch\r\n\r\nx = 1\r\n"),
    ("import torch.nn\n", "torch", "import torch.nn\n"),
    ("import os\nfrom model import net\n", "random", "import os\nimport random\nfrom model import net\n"),
    ("import torch\nfrom model import net\n", "numpy", "import numpy\nimport torch\nfrom model import net\n"),
    ("from torch import nn\nx = 1\n", "torch", "import torch\nfrom torch import nn\nx = 1\n"),
    (
        "import os\nimport time\nfrom math import pi\n",
        "random",
        "import os\nimport random\nimport time\nfrom math import pi\n",
    ),
    (
        "import os\n\nfrom lightning import A\nfrom torch import nn\n",
        "torch",
        "import os\n\nimport torch\nfrom lightning import A\nfrom torch import nn\n",
    ),
    (
        "from model import A\n\nfrom torch import nn\n",
        "torch",
        "from model import A\n\nimport torch\nfrom torch import nn\n",
    ),
    (
        "import model\nfrom lightning import A\n# torch\nfrom torch import nn\n",
        "torch",
        "import model\nfrom lightning import A\n# torch\nimport torch\nfrom torch import nn\n",
    ),
    ("import os\n\nfrom model import A\n", "torch", "import os\n\nimport torch\nfrom model import A\n"),
    (
        "import os\n\n# Ours\nfrom model import A\n",
        "torch",
        "import os\n\nimport torch\n\n# Ours\nfrom model import A\n",
    ),
    ("# By A. N. Other.\nfrom model import A\n", "torch", "# By A. N. Other.\nimport torch\nfrom model import A\n"),
    ("import model\nfrom torch_x import A\n", "torch", "import torch\nimport model\nfrom torch_x import A\n"),
    ("from __future__ import division\nx = 1\n", "random", "from __future__ import division\n\nimport random\nx = 1\n"),
    ("# top\nimport torch\n", "random", "# top\nimport random\n\nimport torch\n"),
    (
        "from __future__ import division\nimport torch\n",
        "os",
        "from __future__ import division\nimport os\n\nimport torch\n",
    ),
    (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "torch",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
    ),
    (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "torch",
        "from typing import TYPE_CHECKING\n\nimport torch\nif TYPE_CHECKING:\n    import torch\n",
    ),
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
    ("from torch import nn\n", "torch", "torch", "import torch\nfrom torch import nn\n"),
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
    ("before", "short", "word", "after"),
    [
        ("import os\n", "np", "np", "import os\n\nimport numpy as np\n"),
        ("import numpy\n", "np", "numpy", "import numpy\n"),
        ("np = 1\n", "np", "np_", "import numpy as np_\n\nnp = 1\n"),
        ("class A:\n    def np(self): pass\n", "np", "np", "import numpy as np\n\nclass A:\n    def np(self): pass\n"),
    ],
)
def test_an_import_gets_its_usual_short_name(before: str, short: str, word: str, after: str) -> None:
    found, edits = ensure_import(facts_of(before), before, "numpy", short)
    assert (found, applied(before, *edits)) == (word, after)


def test_a_name_that_another_function_binds_is_free() -> None:
    text = "import torch\ndef f(torch):\n    def g(): pass\ndef h(): pass\n"
    assert ensure_import(facts_of(text), text, "torch", inside=":h") == ("torch", ())
    assert ensure_import(facts_of(text), text, "torch", inside=":f.<locals>.g")[0] == "torch_"
    assert free_name(facts_of(text), "torch", ":h") == free_name(facts_of(text), "torch", ":f") == "torch_"
    assert free_name(facts_of("def f(seed): pass\n"), "seed", "") == "seed"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nb()\n", "a()\nx(1)\ny(2)\nb()\n"),
        ("if t:\n\ta()  # why\n\tb()\n", "if t:\n\ta()  # why\n\tx(1)\n\ty(2)\n\tb()\n"),
        ("if t: a()", "if t: a(); x(1); y(2)"),
        ("a(); b()\n", "a(); x(1); y(2); b()\n"),
        ("a(\n    1,\n)\r\nb()", "a(\n    1,\n)\nx(1)\ny(2)\r\nb()"),
        ("a()", "a()\nx(1)\ny(2)"),
    ],
)
def test_statements_are_put_below_another(before: str, after: str) -> None:
    start = before.index("a(")
    end = before.index(")", start) + 1
    assert applied(before, insert_below(before, Span(start, end), "x(1)\ny(2)")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import a\nx = 1\n", "import a\n\nseed(1)\n\nx = 1\n"),
        ("import a\n\n\ndef f(): pass\n", "import a\n\nseed(1)\n\n\ndef f(): pass\n"),
        ("import a", "import a\n\nseed(1)\n"),
    ],
)
def test_a_paragraph_has_room(before: str, after: str) -> None:
    assert applied(before, insert_paragraph(before, len("import a"), "seed(1)")) == after


@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("a()\nb()\nc()\n", "b", "a()\nc()\n"),
        ("if t:\n    b()  # it\n", "b", "if t:\n    pass\n"),
        ("if t:\n    # On b.\n    b()\nc()\n", "b()", "if t:\n    pass\nc()\n"),
        ("a()\n# On b.\nb()\n\nc()\n", "b()", "a()\n\nc()\n"),
        ("a()\n\n# On b.\nb()\n\nc()\n", "b()", "a()\n\nc()\n"),
        ("a()\n# On both.\nb()\nc()\n", "b()", "a()\n# On both.\nc()\n"),
        ("a()\r\nb()", "b", "a()\r\n"),
        ("a(); b()\n", "b", None),
        ("b(); c()\n", "b", None),
    ],
)
def test_a_statement_is_taken_out_with_its_line(before: str, mark: str, after: str | None) -> None:
    level = control_flow_position(facts_of(before), before.index(mark))
    assert level is not None
    edit = remove_statement(before, level.spots[-1])
    assert (None if edit is None else applied(before, edit)) == after


@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("a()\n# on b\nb()\n", "b()", "a()\nseed(1)\n# on b\nb()\n"),
        ("#!/bin/sh\nb()\n", "b()", "#!/bin/sh\nseed(1)\nb()\n"),
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
