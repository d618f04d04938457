"""Filters before the type inference of an input change no verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_file import project_of
from page_examples import Example, examples
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.domain.operations import cases as operations
from torchrepro_lint.domain.operations.cases import cases
from torchrepro_lint.domain.operations.verdicts import verdicts
from torchrepro_lint.source.text import Lines
from torchrepro_lint.trace.traces import Context

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*(_ROOT / "rules").glob("TRL4*.md"), *(_ROOT / "tests/rules").glob("TRL4*.md")])


def _contexts(example: Example) -> list[Context]:
    texts = {path: text for path, text in example.files.items() if path.endswith(".py")}
    device, torch = example.options.get("device", "auto"), example.options.get("torch", "2.13")
    project, settings = project_of(texts, device, torch), Settings(device=device)
    return [
        Context(path, project.files[path], Lines(text), project, catalogue.load(torch), settings)
        for path, text in sorted(texts.items())
    ]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_what_the_arguments_refute_is_no_case_whatever_the_input(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = [context for example in examples(page) for context in _contexts(example)]
    found = [list(cases(each)) for each in contexts]
    monkeypatch.setattr(operations, "refuted", lambda *_: False)
    monkeypatch.setattr(operations, "is_uncatalogued", lambda *_: False)
    assert found == [list(cases(each)) for each in contexts]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_ties_hide_no_other_verdict(page: Path) -> None:
    for example in examples(page):
        for context in _contexts(example):
            others = [each for each in verdicts(context, ties=True) if each.code != "TRL406"]
            assert list(verdicts(context)) == others


def test_a_call_is_refuted_by_arguments_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "call_subjects", None)
    text = "import torch.nn.functional as F\n\ndef f(x):\n    return F.pad(x, (1, 1)), x.topk(2), F.interpolate(x, size=4)\n"
    (context,) = _contexts(Example("", 0, {"a.py": text}, (), (), {}))
    assert not verdicts(context)
    (context,) = _contexts(Example("", 0, {"a.py": text.replace("size=4", "size=4, mode='bilinear'")}, (), (), {}))
    with pytest.raises(TypeError):
        verdicts(context)
