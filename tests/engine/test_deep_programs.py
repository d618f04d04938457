"""Programs of hundreds of functions, classes, files or assignments that build on one another: no finding is lost to their depth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.source.text import Span
from torchrepro_lint.trace.traces import Context

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

# Twice as many as Python's own stack holds queries of.
COUNT = 600
_HEAD = "import os, random\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\nnoise = random.random()\n"
_TAIL = """
if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    for name in os.listdir("."):
        print(name, nn.Linear(1, 1))
    {main}
    torch.save(DataLoader([1], shuffle=True), "x.pt")
"""
# What is found beside each program.
_FINDINGS = ["TRL101", "TRL103", "TRL201", "TRL302", "TRL503"]


def _ring(line: str) -> str:
    return "".join(line.format(i=each, j=(each + 1) % COUNT) for each in range(COUNT))


def _chain(line: str) -> str:
    return "".join(line.format(i=each, j=each + 1) for each in range(COUNT))


PROGRAMS: dict[str, tuple[str, str]] = {
    "functions in a ring": (_ring("def f{i}(x):\n    return f{j}(x)\n"), "f0(1)"),
    "functions in a ring that pass on a seed": (_ring("def f{i}(x, seed=None):\n    f{j}(x, seed)\n"), "f0(1)"),
    "functions in a ring that use tensors": (
        _ring("def f{i}(x, y):\n    x = x.index_select(0, y)\n    return f{j}(y, x)\n"),
        "f0(torch.ones(1), torch.ones(1))",
    ),
    "functions that each call both neighbours": (
        "".join(
            f"def f{each}(x):\n    f{(each + 1) % COUNT}(x)\n    f{each - 1 if each else 0}(x)\n"
            for each in range(COUNT)
        ),
        "f0(1)",
    ),
    "functions that each define the next": (
        _ring("def f{i}(x):\n    def g(y):\n        return f{j}(y)\n    return g(x)\n"),
        "f0(1)",
    ),
    "methods in a ring": ("class C:\n" + _ring("    def f{i}(self, x):\n        return self.f{j}(x)\n"), "C().f0(1)"),
    "lambdas in a ring": (_ring("f{i} = lambda x: f{j}(x)\n"), "f0(1)"),
    "callbacks in a ring": (_ring("def f{i}(x, g=None):\n    f{j}(f{i}, lambda y, h: f{j}(h, g))\n"), "f0(1)"),
    "attributes in a ring": (
        "class C:\n    def __init__(self):\n" + _ring("        self.a{i} = self.a{j}\n"),
        "C().a0",
    ),
    "assignments in a ring": ("def g():\n    while True:\n" + _ring("        a{i} = a{j}\n"), "g()"),
    "functions in a chain": (_chain("def f{i}(x):\n    return f{j}(x)\n"), "f0(1)"),
    "closures in a chain": (
        _chain("def f{i}(g):\n    def h(x): return g(x)\n    return f{j}(h)\n") + f"def f{COUNT}(g): return g\n",
        "f0(len)",
    ),
    "assignments in a chain": ("a0 = 1\n" + _chain("a{j} = a{i}\n"), f"print(a{COUNT})"),
    "comprehensions in a chain": ("a0 = [1]\n" + _chain("a{j} = [x for x in a{i}]\n"), f"print(a{COUNT})"),
    "classes in a chain": ("class C0: pass\n" + _chain("class C{j}(C{i}): pass\n"), f"C{COUNT}()"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_findings_stay(project: Maker, lint: Lint, name: str) -> None:
    text, main = PROGRAMS[name]
    project({"pyproject.toml": "", "a.py": f"{_HEAD}{text}{_TAIL.format(main=main)}"})
    ran = lint("--no-cache", "--extend-select", "TRL003")
    assert sorted({line.split()[1] for line in ran.out.splitlines()} - {"TRL003"}) == _FINDINGS
    assert "ends at a limit" not in ran.out


# The findings of all are looked at every time.
_REPORTED = (
    "functions in a ring",
    "callbacks in a ring",
    "methods in a ring",
    "assignments in a chain",
)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in _REPORTED else pytest.mark.long) for each in PROGRAMS]
)
def test_reports_and_traces_end(project: Maker, lint: Lint, name: str) -> None:
    text, main = PROGRAMS[name]
    project({"pyproject.toml": "", "a.py": f"{_HEAD}{text}{_TAIL.format(main=main)}"})
    traced = lint("trace", "a.py")
    assert (traced.status, traced.err) == (0, "")
    assert "cudnn.benchmark = True" in traced.out
    reported = lint("report", "--no-cache", "-q", "-o", "report.json")
    assert (reported.status, reported.err) == (1, "")
    found = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert {each["code"] for each in found["findings"]} >= set(_FINDINGS)


@pytest.mark.parametrize("imported", ["*", "draw"])
def test_a_name_that_is_passed_on_through_hundreds_of_files(project: Maker, lint: Lint, imported: str) -> None:
    files = {f"m{each}.py": f"from m{each + 1} import {imported}\n" for each in range(300)}
    last = "import torch\n\n\ndef draw():\n    return torch.rand(1)\n"
    main = "import torch\n\nfrom m0 import draw\n\nif __name__ == '__main__':\n    torch.save(draw(), 'x.pt')\n"
    project({**files, "pyproject.toml": "", "m300.py": last, "main.py": main})
    ran = lint("--no-cache", "--jobs", "1")
    assert ran.out.startswith("./main.py:6:5: TRL101 torch.rand (./m300.py:5, via draw) draws")
    assert ran.out.count("\n") == 1


def test_files_that_star_import_each_other_with_cyclic_inheritance(project: Maker, lint: Lint) -> None:
    project(
        {
            "pyproject.toml": "",
            "a.py": "from b import *\n\n\nclass A(B):\n    def f(self): return super().f()\n\n\nA().f()\n",
            "b.py": "import torch\nfrom a import *\n\n\nclass B(A):\n    def g(self): return super().g()\n\n\nif __name__ == '__main__':\n    B().g().f()\n"
            "    torch.save(torch.rand(1), 'x.pt')\n",
        }
    )
    ran = lint("--no-cache")
    assert [line.split(": ")[1][:6] for line in ran.out.splitlines()] == ["TRL101"]


def _broken_off(context: Context) -> Iterable[Finding]:
    yield Finding("TRL201", Span(0, 1), "found before")
    raise RecursionError


@pytest.mark.parametrize("text", ["x = 1\n", "import torch\n\n\ndef f(): pass\n"])
def test_a_limit_is_a_gap_and_what_was_found_before_stays(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    rules = [each._replace(check=_broken_off) if each.code == "TRL201" else each for each in RULES]
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", tuple(rules))
    project({"pyproject.toml": "", "a.py": text})
    limit = "the analysis of this file ends at a limit: too many names, calls or expressions depend on one another"
    ran = lint("--no-cache", "--extend-select", "TRL003")
    assert [line.partition(" ")[2] for line in ran.out.splitlines()] == [
        f"TRL003 {limit}; findings may be missing",
        "TRL201 found before",
    ]
    ran = lint("--no-cache")
    assert [line.partition(" ")[2] for line in ran.out.splitlines()] == ["TRL201 found before"]
    assert ran.err.strip().endswith("1 of 1 program leads into code that could not be followed (TRL003)")
