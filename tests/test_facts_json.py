"""Facts survive being written to JSON and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchrepro_lint.collect import collect
from torchrepro_lint.facts import Assign, Call, Define
from torchrepro_lint.facts_json import from_json, to_json

TOP = Path(__file__).parents[1]
ODD = 'x = (b"\\x00\\xff", 3j, 1e999, -0.0, 10**3, "\\ud800", ..., None, f"a{x!r:>{3}}", lambda: (yield))\n'


@pytest.mark.parametrize("path", sorted((TOP / "torchrepro_lint").glob("*.py")), ids=lambda path: path.name)
def test_round_trip_over_our_own_files(path: Path) -> None:
    facts = collect(path.read_text(encoding="utf-8"))
    assert from_json(to_json(facts)) == facts


def test_round_trip_of_odd_values_keeps_their_types() -> None:
    facts = collect(ODD)
    back = from_json(to_json(facts))
    assert repr(back) == repr(facts)
    assert to_json(back) == to_json(facts)


def test_a_call_is_one_object_wherever_it_stands() -> None:
    # A run knows by that what was handed over: the process that is started is the one that was made.
    facts = from_json(to_json(collect("made = start(run, [other()])\nwith made as it:\n    it.go()\n")))
    statement = facts.body[0]
    assert isinstance(statement, Assign)
    assert isinstance(statement.value, Call)
    ((_, ((_, value),)), *_) = (each for each in facts.assigned if each[0] == ":made")
    assert value is statement.value


def test_what_is_assigned_is_the_record_of_the_statement_whatever_it_is() -> None:
    text = "x = a + b\nclass C:\n    y = [each for each in x]\n    def f(self, z=x[0] + 1): ...\n"
    facts = from_json(to_json(collect(text)))
    values = {name: value for name, ((_, value), *_) in facts.assigned}
    first, defined = facts.body
    assert isinstance(first, Assign)
    assert isinstance(defined, Define)
    assert values[":x"] is first.value
    assert defined.body[0] is facts.classes[0].body[0]
    assert facts.functions[0].params[1].default in facts.classes[0].body[1].values


@pytest.mark.parametrize("text", ["", "{}", "[]", "1", '["Facts"]', '["Nothing", 1]', '["", 1]', '["bytes", "?"]'])
def test_a_text_that_holds_no_facts_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json's own message is as good as ours
        from_json(text)
