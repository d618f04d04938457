"""Serialised syntax trees round-trip, and only the requested parts of them are decoded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzz.decoding import fully_decoded
from torchrepro_lint.query.memo_tables import DependencyTracker
from torchrepro_lint.resolve.definitions import Definitions, EventCache
from torchrepro_lint.syntax.file_encoding import decode_tree, encode_tree
from torchrepro_lint.syntax.nodes import Assign, Call, DefinitionStatement, SyntaxTree
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.syntax.visitor import callee_identifier

TOP = Path(__file__).parents[2]
ODD = 'x = (b"\\x00\\xff", 3j, 1e999, -0.0, 10**3, "\\ud800", ..., None, f"a{x!r:>{3}}", lambda: (yield))\n'
FILES = sorted((TOP / "torchrepro_lint").glob("*.py"))


def _back(facts: SyntaxTree) -> SyntaxTree:
    return decode_tree(encode_tree(facts), facts.summary)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_round_trip_over_our_own_files(path: Path) -> None:
    facts = parse_module(path.read_text(encoding="utf-8"))
    assert fully_decoded(_back(facts)) == facts


@pytest.mark.parametrize("path", FILES[::7], ids=lambda path: path.name)
def test_functions_may_be_read_in_any_order(path: Path) -> None:
    facts = parse_module(path.read_text(encoding="utf-8"))
    back = _back(facts)
    for read, function in reversed(list(zip(back.functions, facts.functions, strict=True))):
        assert read.body == function.body
        assert (read.params, read.decorators, read.returns) == (function.params, function.decorators, function.returns)
    variables = sorted(facts.assigned, key=lambda name: name[::-1])
    back = _back(facts)
    assert [back.assigned[name] for name in variables] == [facts.assigned[name] for name in variables]
    assert sorted(back.assigned) == sorted(facts.assigned)


def test_round_trip_of_odd_values_keeps_their_types() -> None:
    facts = parse_module(ODD)
    back = fully_decoded(_back(facts))
    assert repr(back) == repr(facts)
    assert encode_tree(back) == encode_tree(facts)


def test_only_what_is_asked_for_is_read() -> None:
    facts = parse_module("def f(a=1):\n    x = g(a)\n\ndef h():\n    return 2\n")
    lines = encode_tree(facts).split("\n")
    back = decode_tree("\n".join([lines[0], "?", "?", *lines[3:]]), facts.summary)
    assert [each.name for each in back.functions] == [":f", ":h"]
    assert sorted(back.assigned) == [":f.<locals>.x"]
    assert back.functions[1].body == facts.functions[1].body
    with pytest.raises(json.JSONDecodeError):
        _ = back.functions[0].body


@pytest.mark.parametrize("path", FILES[::7], ids=lambda path: path.name)
def test_a_body_is_listed_under_each_word_that_its_events_call(path: Path) -> None:
    facts = parse_module(path.read_text(encoding="utf-8"))
    back = _back(facts)
    cache = EventCache(Definitions({"a.py": facts}, DependencyTracker((), incremental=False)), frozenset(), "2.13")
    for number, body in enumerate((facts.body, *(each.body for each in facts.functions))):
        for event in cache.of_body("a.py", body):
            if event.kind == "call" and isinstance(event.value, Call):
                assert number in back.bodies_calling(callee_identifier(event.value.func))


def test_a_class_in_a_function_calls_where_the_function_does() -> None:
    back = _back(parse_module("def f():\n    class C:\n        if x:\n            y = g()\n\nclass D:\n    z = g()\n"))
    assert list(back.bodies_calling("g")) == [0, 1]
    assert list(back.bodies_calling("h")) == []


def test_a_call_is_one_object_wherever_it_stands() -> None:
    # A run knows by that what was handed over: the process that is started is the one that was made.
    facts = _back(parse_module("made = start(run, [other()])\nwith made as it:\n    it.go()\n"))
    statement = facts.body[0]
    assert isinstance(statement, Assign)
    assert isinstance(statement.value, Call)
    ((_, value),) = facts.assigned[":made"]
    assert value is statement.value


def test_what_is_assigned_is_the_record_of_the_statement_whatever_it_is() -> None:
    text = "x = a + b\nclass C:\n    y = [each for each in x]\n    def f(self, z=x[0] + 1): ...\n"
    facts = _back(parse_module(text))
    values = {name: value for name, ((_, value), *_) in facts.assigned.items()}
    first, defined = facts.body
    assert isinstance(first, Assign)
    assert isinstance(defined, DefinitionStatement)
    assert values[":x"] is first.value
    assert defined.body[0] is facts.classes[0].body[0]
    assert facts.functions[0].params[1].default in facts.classes[0].body[1].values


@pytest.mark.parametrize("text", ["", "{}", "[]", "1", '["Facts"]', '["Nothing", 1]', '["", 1]', '["bytes", "?"]'])
def test_a_text_that_holds_no_facts_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json's own message is as good as ours
        decode_tree(text, parse_module("").summary)
