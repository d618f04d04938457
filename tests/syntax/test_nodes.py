"""A node is identified by its file, its position and its content: it is found again, and told from others at its position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchrepro_lint.syntax.file_encoding import decode_tree, encode_tree
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Statement,
    SyntaxTree,
    fields,
)
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.syntax.use_def import UseDefIndex
from torchrepro_lint.syntax.visitor import bodies, statements

FILES = sorted((Path(__file__).parents[2] / "torchrepro_lint" / "syntax").glob("[a-z]*.py"))

SOURCE = """import torch


class Net:
    def forward(self, x, scale=1.0):
        for row in x:
            yield torch.relu(row) * scale if 0 < row.sum() < 9 else f"{row}, {x}, "


made = [Net() for each in range(3) if each]
"""


def _nodes(tree: SyntaxTree) -> list[Statement | Expression]:
    every: list[Statement | Expression] = [each for body in bodies(tree) for each in statements(body)]
    return [*every, *(each for each, _ in UseDefIndex(tree).items())]


@pytest.mark.parametrize("parser", ["ast", "libcst"])
def test_what_is_known_of_a_node_is_found_after_its_file_is_read_anew(parser: str) -> None:
    first, again = (parse_module(SOURCE, parser) for _ in range(2))
    stored = decode_tree(encode_tree(first), first.summary)
    known = {node: number for number, node in enumerate(_nodes(first))}
    assert len(known) > 30
    for tree in (again, stored):
        others = _nodes(tree)
        assert not any(one is other for one in others for other in known)
        assert [known[each] for each in others] == [known[each] for each in _nodes(first)]
    functions = {each: each.name for each in first.functions}
    assert [functions[each] for each in again.functions] == [each.name for each in first.functions]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_equal_nodes_of_a_file_are_one_object(path: Path) -> None:
    """So a key that is a node says no less than its address did. Only equal texts of one f-string are several objects."""
    known: dict[Statement | Expression, Statement | Expression] = {}
    several = [
        each for each in _nodes(parse_module(path.read_text("utf-8"))) if known.setdefault(each, each) is not each
    ]
    assert len(known) > 5
    assert all(isinstance(each, Constant) and isinstance(each.value, str) for each in several)


def test_nodes_of_one_position_and_different_content_differ() -> None:
    (statement,) = parse_module("f(x).y.z\n").body
    (value,) = fields(statement)[2:]
    name = Ref(0, 8, ("?f",), ("y", "z"), 6)
    apart: list[Any] = [
        statement,
        value,
        name,
        name._replace(path=("y",)),
        Constant(0, 8, None),
        Constant(0, 8, "z"),
        Operation(0, 8, "not", (name,)),
        Operation(0, 8, "await", (name,)),
    ]
    assert (statement.start, statement.end, value.start, value.end) == (0, 8, 0, 8)
    assert len({*apart}) == len(apart)
    assert len({*map(hash, apart)}) == 1
    assert len({name._replace(end=7), name._replace(start=1), name}) == 3


class _Unread(tuple[Any, ...]):
    """Children that must not be looked at."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise AssertionError("the hash of a node reads its children")


def test_the_hash_does_not_walk_the_children() -> None:
    callee = Ref(0, 1, ("?f",), (), 1)
    call = Call(0, 9, callee, _Unread(), 2)
    display = Collection(0, 9, "list", _Unread([call]))
    assert {call: 1, display: 2} == {display: 2, call: 1}
    function = parse_module("def f(x):\n    return x\n").functions[0]
    assert hash(function._replace(body=_Unread())) == hash(function)
