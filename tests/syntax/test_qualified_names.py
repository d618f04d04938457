"""Qualified names: what is built can be taken apart again, and each predicate tells its kind from all others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchrepro_lint.syntax import qualified_names as names
from torchrepro_lint.syntax.nodes import Call, Expression, Lambda, Ref
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.syntax.visitor import bodies, expressions, statements, subexpressions

NET = "src/a.py:Net"
FORWARD = f"{NET}.forward"
X = names.local_symbol(FORWARD, "x")
INNER = names.local_symbol(names.local_symbol("a.py:f", "g"), "y")
MODULE = names.module_symbol("src/a.py")
OBJECT = names.instance_value(NET)
ITEM = names.element_value(OBJECT)
SUPER = names.super_value(NET)
LINEAR = "torch.nn.Linear"
RESULT = names.instance_value("torch.rand")
ODD = "odd:folder/b.py:main"
EVERY = (NET, FORWARD, X, INNER, MODULE, OBJECT, ITEM, SUPER, LINEAR, RESULT, ODD, ":f.<locals>.self", ":f", "?f")
SOURCE = """
class Net:
    def forward(self, x):
        return super().forward([y for y in x], key=lambda z: z, **unknown)

squares = [n * n for n in range(3)]
"""


@pytest.mark.parametrize(
    ("holds", "of"),
    [
        (names.is_module, {MODULE}),
        (names.is_instance, {OBJECT, RESULT}),
        (names.is_element, {ITEM}),
        (names.is_object, {OBJECT, RESULT, ITEM}),
        (names.is_super, {SUPER}),
        (names.is_definition, {*EVERY} - {OBJECT, RESULT, ITEM, SUPER}),
        (names.passes_call, {OBJECT, RESULT, ITEM}),
        (names.is_unresolved, {"?f"}),
        (names.is_local, {X, INNER, ":f.<locals>.self"}),
        (names.is_nested, {X, INNER, ":f.<locals>.self"}),
        (names.is_self, {":f.<locals>.self"}),
        (names.is_lambda, set()),
        (names.in_project, {*EVERY} - {LINEAR, RESULT, "?f"}),
    ],
)
def test_a_predicate_holds_for_its_kind_alone(holds: Callable[[str], bool], of: set[str]) -> None:
    assert {each for each in EVERY if holds(each)} == of


def test_an_object_leads_back_to_its_class() -> None:
    assert names.class_of(OBJECT) == NET
    assert names.class_of(RESULT) == "torch.rand"
    assert names.class_of(NET) == NET
    assert names.class_below(SUPER) == NET
    assert list(names.project_classes(EVERY)) == [NET]


def test_a_symbol_consists_of_its_path_and_its_qualified_name() -> None:
    for each in (NET, FORWARD, X, INNER, MODULE, ODD):
        path, colon, own = names.split_name(each)
        assert path + colon + own == each
        assert (names.path_of(each), names.qualname_of(each), names.root_of(each)) == (path, own, colon + own)
    assert names.path_of(ODD) == "odd:folder/b.py"
    assert names.split_name(LINEAR) == (LINEAR, "", "")
    assert names.path_of(LINEAR) == names.qualname_of(LINEAR) == LINEAR


def test_the_simple_name_is_the_last_identifier() -> None:
    assert [*map(names.simple_name, (NET, FORWARD, X, ODD, LINEAR, ":f", "?f", ".utils.seed"))] == [
        *("Net", "forward", "x", "main", "Linear", "f", "f", "seed")
    ]
    assert names.simple_name(MODULE) == ""
    assert names.split_last(LINEAR) == (names.qualifier_of(LINEAR), "Linear") == ("torch.nn", "Linear")
    assert names.top_package(LINEAR) == "torch"


def test_a_local_symbol_leads_to_the_functions_around_it() -> None:
    assert names.split_local(X) == (FORWARD, "x")
    assert names.enclosing_function(INNER) == "a.py:f.<locals>.g"
    assert names.outermost_function(INNER) == "a.py:f"
    assert INNER.startswith(names.locals_prefix("a.py:f"))
    assert (names.enclosing_function(NET), names.outermost_function(NET)) == ("", NET)


def test_calls_in_a_value_are_found_and_left_out() -> None:
    method = "torch.rand()[].sum().item"
    assert names.split_call(method) == ("torch.rand", True, "[].sum().item")
    assert names.split_call(LINEAR) == (LINEAR, False, "")
    assert names.without_calls(method) == "torch.rand.sum.item"
    assert names.without_calls("torch().seed") == "torch().seed"
    assert names.without_brackets("torch().seed()[]") == "torch.seed"


def test_the_names_of_a_parsed_file_are_of_the_kinds_that_they_should_be() -> None:
    tree = parse_module(SOURCE)
    found: list[Expression] = [
        each
        for body in bodies(tree)
        for statement in statements(body)
        for own in expressions(statement)
        for each in subexpressions(own)
    ]
    roots = {root for each in found if isinstance(each, Ref) for root in each.roots}
    assert {each for each in roots if names.is_super(each)} == {":Net.<super>"}
    assert {each for each in roots if names.is_unresolved(each)} == {"?unknown"}
    assert {names.simple_name(each) for each in roots if names.is_of_comprehension(each)} == {"y", "n"}
    assert {names.simple_name(each) for each in roots if names.is_local(each)} == {"x", "y", "z", "n"}
    assert {names.simple_name(each) for each in roots if names.is_nested(each)} == {"x", "y", "z"}
    assert [names.is_lambda(each.function) for each in found if isinstance(each, Lambda)] == [True]
    assert [names.is_lambda(each.name) for each in tree.functions] == [False, True]
    assert any(isinstance(each, Call) for each in found)
