"""Questions for the sources of a value: what they remember, and which calls bind the same environment."""

from __future__ import annotations

import pytest

from one_file import NAME, project_of
from torchrepro_lint import limits
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.value_sources import ValueFlow, ValueSourceAnalysis
from torchrepro_lint.syntax.nodes import Call, Expression
from torchrepro_lint.syntax.visitor import all_statements, expressions_within, last_identifier

BODY = """
RATE = 0.1

def build(rate):
    return rate

def first(epochs):
    return {call}

def second(epochs, rate):
    return {call}
"""


def _calls(project: ValueFlow, word: str) -> list[Call]:
    """The calls by a word."""
    return [
        each
        for statement in all_statements(project.files[NAME])
        for each in expressions_within(statement)
        if isinstance(each, Call) and last_identifier(each.func) == word
    ]


def _bound(project: ValueFlow, call: Call) -> Environment:
    (function,) = (each for each in project.files[NAME].functions if each.name == ":build")
    return project.environment_of(NAME, call, f"{NAME}:build", function)


@pytest.mark.parametrize(
    ("passed", "same"), [("RATE", True), ("math.pi", True), ("epochs", False), ("lambda x: epochs", False)]
)
def test_what_an_argument_reads_decides_whether_its_environment_is_kept(passed: str, *, same: bool) -> None:
    project = project_of({NAME: "import math\n" + BODY.format(call=f"build({passed})")})
    inside = Environment.of(receiver_class=f"{NAME}:Trainer")
    (value,) = next(iter(_bound(project, _calls(project, "build")[0]).arguments.values()))
    within = Closure(NAME, value.value, inside).within(value.value)
    assert (within.environment is Environment.of()) is same


def test_the_receiver_is_kept_for_super() -> None:
    text = "class Net(Base):\n    def run(self):\n        return build(super().rate)\n"
    project = project_of({NAME: text})
    (call,) = _calls(project, "build")
    inside = Environment.of(receiver_class=f"{NAME}:Net")
    given: Expression = call.args[0].value
    assert Closure(NAME, call, inside).within(given).environment is inside


def test_calls_that_pass_the_same_bind_the_same() -> None:
    text = "def build(rate, word='a'):\n    return rate\n\nbuild(0.1)\nbuild(rate=0.1)\nbuild(0.1, 'a')\nbuild(0.2)\n"
    project = project_of({NAME: text})
    environments = [_bound(project, call) for call in _calls(project, "build")]
    again = [_bound(project, call) for call in _calls(project, "build")]
    assert all(one is other for one, other in zip(environments, again, strict=True))
    assert environments[0] is not environments[3]


def test_a_question_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_of({NAME: "RATE = 0.1\nSTEP = RATE\nprint(STEP)\n"})
    (call,) = _calls(project, "print")
    followed: list[Closure] = []
    follow = ValueSourceAnalysis._follow

    def counted(self: ValueSourceAnalysis, closure: Closure) -> tuple[Closure, ...]:
        followed.append(closure)
        return follow(self, closure)

    monkeypatch.setattr(ValueSourceAnalysis, "_follow", counted)
    asked = Closure(NAME, call.args[0].value)
    first = project.value_sources.of(asked)
    assert followed, "the counter counts"
    count = len(followed)
    assert project.value_sources.of(asked) == first
    assert len(followed) == count
    project.value_sources.of(asked, limits.MAX_INDEXED_STEPS)
    assert len(followed) > count, "another limit is another question"
