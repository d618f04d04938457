"""What an import means, whichever module of a circle is asked first."""

from __future__ import annotations

import itertools

import pytest

from torchrepro_lint.collect import collect
from torchrepro_lint.modules import Modules


def modules(files: dict[str, str]) -> Modules:
    return Modules({path: collect(text) for path, text in files.items()}, (".",))


def test_a_name_is_followed_across_re_exports() -> None:
    linked = modules({"p/__init__.py": "from .a import f as g\n", "p/a.py": "def f(): ...\n"})
    assert linked.resolve("main.py", "p.g") == ("p/a.py:f",)
    assert linked.resolve("main.py", "torch.nn") == ("torch.nn",)


CIRCLE = {
    "p/__init__.py": "from .a import *\nfrom .b import *\n",
    "p/a.py": "from p import second\nfrom p.b import third\ndef first(): ...\n",
    "p/b.py": "from p.c import *\nfrom .a import first\ndef second(): ...\n",
    "p/c.py": "try:\n    from p import first as third\nexcept ImportError:\n    from p.b import second as third\n",
}
QUESTIONS = [(path, f"p.{word}") for path in ("p/a.py", "p/c.py") for word in ("first", "second", "third")]


@pytest.mark.parametrize("first", QUESTIONS)
def test_modules_that_import_each_other(first: tuple[str, str]) -> None:
    for then in itertools.permutations(QUESTIONS, 2):
        linked = modules(CIRCLE)
        linked.resolve(*first)
        for question in then:
            assert linked.resolve(*question) == modules(CIRCLE).resolve(*question)


def test_a_name_that_only_leads_back_to_itself_is_nothing() -> None:
    assert modules({"a.py": "from b import x\n", "b.py": "from a import x\n"}).resolve("main.py", "a.x") == ()
