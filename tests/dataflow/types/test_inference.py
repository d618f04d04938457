"""Type inference: each marked line of a source states the type of the expression on it."""

from __future__ import annotations

import re

import pytest

from infer_sources import SOURCES
from infer_tensor_sources import TENSOR_SOURCES
from one_file import NAME, project_of
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import ExpressionStatement, Statement, SyntaxTree
from torchrepro_lint.syntax.visitor import statements

_MARK = re.compile(r"  # (?P<what>[^#\n]+)$", re.MULTILINE)


_ALL = {**SOURCES, **TENSOR_SOURCES}


@pytest.mark.parametrize("title", sorted(_ALL))
def test_a_marked_expression_is_what_its_mark_says(title: str) -> None:
    text = _ALL[title]
    project = project_of({NAME: text})
    facts, lines, kinds = project.files[NAME], Lines(text), type_inference(project)
    asked = {lines.position(each.start).row: each for each in expressions(facts)}
    marks = {lines.position(mark.start()).row: mark["what"] for mark in _MARK.finditer(text)}
    assert marks
    assert {row: shown(kinds.of(NAME, asked[row].value)) for row in marks} == marks


def expressions(facts: SyntaxTree) -> list[ExpressionStatement]:
    bodies: list[tuple[Statement, ...]] = [facts.body, *(each.body for each in facts.functions)]
    return [each for body in bodies for each in statements(body) if isinstance(each, ExpressionStatement)]


def shown(what: AbstractValue) -> str:
    """``set[str]``, ``tensor floating cpu 4-d (_, 3, 8, 8) contiguous no-grad``; ``?`` where nothing is known."""
    if not what.kind:
        return "?"
    if what.optional:
        return f"{shown(what._replace(optional=False))} or None"
    parts = [what.kind]
    if what.items is not None:
        parts[0] += f"({', '.join(map(shown, what.items))})"
    elif what.element.kind and what.kind != "str":
        parts[0] += f"[{shown(what.contents)}]"
    if what.kind not in ("tensor", "parameter"):
        parts += (
            [what.name.rpartition(".")[2].rpartition(":")[2]] if what.kind in ("module", "instance", "dataset") else []
        )
        parts += ["seeded"] if what.seeded else []
        return " ".join(filter(None, parts))
    parts += [what.dtype or what.family, what.device, _dimensions(what), what.layout]
    return " ".join(filter(None, [*parts, "no-grad" if what.grad is False and not what.integral else ""]))


def _dimensions(what: AbstractValue) -> str:
    if what.sizes is not None:
        return f"({', '.join('_' if size is None else str(size) for size in what.sizes)})"
    if what.ndim is not None:
        return f"{what.ndim}-d"
    return (
        f"{what.min_ndim}+d"
        if what.min_ndim and what.max_ndim is None
        else f"{what.min_ndim}-{what.max_ndim}-d"
        if what.max_ndim
        else ""
    )
