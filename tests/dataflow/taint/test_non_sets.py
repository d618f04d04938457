"""The prefilter of non-sets is sound: no value that it rules out is inferred to be a set."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_file import project_of
from page_examples import examples
from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.loops import iteration_sites
from torchrepro_lint.dataflow.taint.prefilter import NonSets
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.resolve.program_index import link
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.syntax.nodes import Expression
from torchrepro_lint.trace.traces import Traces

_ROOT = Path(__file__).parents[3]
_PAGES = sorted([*(_ROOT / "rules").glob("TRL[1-9]*.md"), *(_ROOT / "tests/rules").glob("TRL[1-9]*.md")])

# By one way each: a set, or a list instead of it, is ``{}`` below, what is gone along stands behind ``for``.
WAYS = [
    {"a.py": "for x in {}: f(x)\n"},
    {"a.py": "y = {}\nfor x in y: f(x)\n"},
    {"a.py": "def g(y): \n    for x in y: f(x)\n\ng({})\n"},
    {"a.py": "def g(y={}): \n    for x in y: f(x)\n\ng()\n"},
    {"a.py": "def g(*, y): \n    for x in y: f(x)\n\ng(y={})\n"},
    {"a.py": "import functools\n\ndef g(z, y): \n    for x in y: f(x)\n\nh = functools.partial(g, y={})\n"},
    {"a.py": "def g(): return {}\n\nfor x in g(): f(x)\n"},
    {"a.py": "def g(): return {}\n\nh = g\nfor x in h() or []: f(x)\n"},
    {"a.py": "g = lambda: {}\n\nfor x in g(): f(x)\n"},
    {"a.py": "class A:\n    y = {}\n    def g(self):\n        for x in self.y: f(x)\n"},
    {
        "a.py": "class A:\n    def __init__(self): self.y, self.z = {}, 1\n    def g(self):\n        for x in self.y.copy(): f(x)\n"
    },
    {"a.py": "class A:\n    def h(self): return {}\n    def g(self):\n        for x in self.h(): f(x)\n"},
    {"a.py": "class A:\n    def h(self): return {}\n\nfor x in A().h(): f(x)\n"},
    {
        "a.py": "class A:\n    def __init__(self, y): self.y = y\n\nfor x in A({}).y: f(x)\na = A({})\nfor x in a.y: f(x)\n"
    },
    {"a.py": "y = {}\n", "b.py": "import a\nfor x in a.y: f(x)\n"},
    {"a.py": "y = {}\n", "b.py": "from a import y as z\n", "c.py": "from b import z\nfor x in z: f(x)\n"},
    {"a.py": "y = {}\n", "b.py": "from a import *\nfor x in y: f(x)\n"},
    {"a.py": "def g(): return {}\n", "b.py": "import a\nfor x in getattr(a, 'g')(): f(x)\n"},
    {
        "a.py": "T = dict()\ndef put(g):\n    T[g.__name__] = g\n    return g\n\n@put\ndef g(): return {}\n\nfor x in T['g'](): f(x)\n"
    },
    {"a.py": "def g(n, y):\n    if n: return g(n - 1, y)\n    return y\n\nfor x in g(3, {}): f(x)\n"},
    {"a.py": "y = z = {}\ny = z\nz = y\nfor x in (y if z else []): f(x)\n"},
    {"a.py": "import collections\n\ny = collections.defaultdict(lambda: 1, a={})\nfor x in y['a']: f(x)\n"},
    {"a.py": "import copy\n\nfor x in copy.deepcopy({}): f(x)\n"},
    {"a.py": "if (y := {}):\n    for x in y: f(x)\n"},
    {"a.py": "y = [[{}]]\nfor z in y[0]: tuple(z)\n"},
    {"a.py": "y = dict(a={})\nz = [{}, 3]\nfor x in z[0]: f(x)\n"},
    {"a.py": "y = [1, {}]\nz = enumerate(y)\nfor i, x in z: tuple(x)\n"},
    {"a.py": "y = {n: {} for n in g()}\nfor i, x in y.items(): tuple(x)\n"},
    {"a.py": "z = {}\nfor x in (z, z): tuple(x)\n"},
    {"a.py": "def g(y):\n    for x in y.values(): tuple(x)\n\ng({'a': {}}.copy())\n"},
]
PROMISES = [
    "def g(y: 'set'): \n    for x in y: f(x)\n",
    "def g() -> set[str]: ...\n\nfor x in g(): f(x)\n",
    "import typing as t\n\ny: t.Optional[t.Set[str]] = h()\nfor x in y: f(x)\n",
    "class A:\n    y: frozenset[str]\n    def g(self):\n        for x in self.y: f(x)\n",
    "import collections\n\ny = collections.defaultdict(set)\nfor x in y['a']: f(x)\n",
    "y = h()\ny |= h()\nfor x in y: f(x)\n",
]


def _gone_along(project: Traces) -> list[tuple[str, Expression]]:
    return [(path, each) for path in sorted(project.files) for each in iteration_sites(project.files[path])]


def _non_sets(project: Traces) -> NonSets:
    """Of names that have been asked nothing."""
    return NonSets(link(project.files, ModuleTree(project.files, (".",)), "2.13"))


def _check(project: Traces) -> None:
    """Whatever is asked first."""
    asked = _gone_along(project)
    known, again = _non_sets(project), _non_sets(project)
    said = [known.is_never_set(*each) for each in asked]
    assert said == [again.is_never_set(*each) for each in reversed(asked)][::-1]
    assert said == [known.is_never_set(*each) for each in asked]
    inference = type_inference(project)
    sets = [each for each in asked if inference.of(*each).kind in ("set", "frozenset")]
    assert not any(none and each in sets for none, each in zip(said, asked, strict=True))


@pytest.mark.parametrize("files", WAYS)
def test_a_set_is_found_by_each_way_and_a_list_is_none(files: dict[str, str]) -> None:
    for text, none in (("{1, 2}", False), ("[1, 2]", True)):
        project = project_of({path: each.replace("{}", text) for path, each in files.items()})
        _check(project)
        known = _non_sets(project)
        assert all(known.is_never_set(*each) for each in _gone_along(project)) is none


@pytest.mark.parametrize("text", PROMISES)
def test_what_is_declared_to_be_a_set_may_be_one(text: str) -> None:
    project = project_of({"a.py": text})
    _check(project)
    assert not all(project.taint.non_sets.is_never_set(*each) for each in _gone_along(project))


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_no_set_of_the_pages_is_said_to_be_none(page: Path) -> None:
    for example in examples(page):
        _check(project_of({path: text for path, text in example.files.items() if path.endswith(".py")}))


@pytest.mark.parametrize("most", ["MAX_NON_SET_VALUES", "MAX_NON_SET_STEPS"])
def test_what_has_too_many_values_may_be_anything(monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    project = project_of({"a.py": "".join(f"y = [{number}]\n" for number in range(9)) + "for x in y: f(x)\n"})
    assert all(_non_sets(project).is_never_set(*each) for each in _gone_along(project))
    monkeypatch.setattr(limits, most, 8)
    assert not any(_non_sets(project).is_never_set(*each) for each in _gone_along(project))


def test_no_more_is_looked_at_in_vain_than_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "y = {1}\nz = [2]\nfor x in y: f(x)\nfor x in z: f(x)\n"
    project = project_of({"a.py": text})
    first, second = sorted(_gone_along(project), key=lambda each: each[1].start)
    monkeypatch.setattr(limits, "MAX_NON_SET_STEPS", 1)
    known = _non_sets(project)
    assert not known.is_never_set(*first)
    assert not known.is_never_set(*second)
    assert _non_sets(project).is_never_set(*second)
