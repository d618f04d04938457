"""Which tests keep a place of a body from running, where literals are the tests whose truth is known."""

from __future__ import annotations

import pytest

from one_file import NAME, facts_of, project_of
from torchrepro_lint.dataflow.feasibility import ruling_tests
from torchrepro_lint.syntax.nodes import Call, Constant, Expression
from torchrepro_lint.syntax.visitor import all_statements, expressions_within

# What keeps ``use()`` from running; ``jump`` where no single test does.
RULINGS = {
    "if 0:\n    use()": "0",
    "if 1:\n    pass\nelse:\n    use()": "1",
    "if a:\n    use()": "",
    "if 1:\n    if 0:\n        use()": "0",
    "if 1:\n    raise a\nuse()": "1",
    "if 0:\n    raise a\nuse()": "",
    "if 1:\n    sys.exit()\nuse()": "",
    "import sys\nif 1:\n    sys.exit()\nuse()": "1",
    "if a:\n    raise b\nelse:\n    raise c\nuse()": "jump",
    "if a:\n    raise b\nuse()": "",
    "if a:\n    if 1:\n        raise b\nelse:\n    raise c\nuse()": "jump",
    "with a:\n    if 1:\n        raise b\nuse()": "jump",
    "try:\n    raise a\nexcept b:\n    pass\nuse()": "",
    "while a:\n    if 1:\n        continue\n    use()": "1",
    "while a:\n    if 1:\n        break\nuse()": "",
    "0 and use()": "0",
    "1 and use()": "",
    "1 or use()": "1",
    "use() if 0 else b": "0",
    "b if 1 else use()": "1",
    "b if use() else 1": "",
    "if 1:\n    use()\n    raise a\nuse": "",
}


@pytest.mark.parametrize("text", RULINGS)
def test_what_keeps_a_place_from_running(text: str) -> None:
    def decide(test: Expression) -> bool | None:
        return bool(test.value) if isinstance(test, Constant) else None

    tests = ruling_tests(facts_of(text).body, text.index("use()"), decide)
    found = [
        "jump" if each is None else str(each.value) for each in tests if each is None or isinstance(each, Constant)
    ]
    assert " ".join(found) == RULINGS[text]


# Whether ``use()`` may run in a call with these arguments.
REACHED = {
    "if on:\n    use()\nf(0)": False,
    "if on:\n    use()\nf(1)": True,
    "if on:\n    use()\nf(a)": True,
    "on = 1\nif on:\n    use()\nf(0)": True,
    "on = 0\nif on:\n    use()\nf(1)": False,
    "on = a\nif on:\n    use()\nf(0)": True,
    "if on is None:\n    on = 1\nif on:\n    use()\nf(None)": True,
    "if on is None:\n    on = 0\nif on:\n    use()\nf(None)": False,
    "if a:\n    on = 1\n    raise b\nif on:\n    use()\nf(0)": False,
    "while a:\n    if on:\n        use()\n    on = 1\nf(0)": True,
    "while a:\n    if on:\n        use()\non = 1\nf(0)": False,
    "if on > 3:\n    use()\nf(2)": False,
    "if on > 3:\n    use()\nf('a')": True,
    "if 'cuda' in on:\n    use()\nf('cuda:0')": True,
    "if 'cuda' in on:\n    use()\nf('cpu')": False,
    "if on not in ('cpu', 'mps'):\n    use()\nf('cpu')": False,
    "off = not on\nif off:\n    use()\nf(1)": True,  # another variable is not followed
}


@pytest.mark.parametrize("text", REACHED)
def test_a_place_is_reached_with_the_values_that_a_parameter_has_there(text: str) -> None:
    body, _, call = text.rpartition("\n")
    project = project_of({NAME: "def f(on):\n    " + body.replace("\n", "\n    ") + f"\n{call}\n"})
    calls = [
        each
        for statement in all_statements(project.files[NAME])
        for each in expressions_within(statement)
        if isinstance(each, Call)
    ]
    (function,) = project.files[NAME].functions
    environment = project.environment_of(NAME, calls[0], f"{NAME}:f", function)
    assert project.value_sources.is_feasible(NAME, function, calls[-1].start, environment) is REACHED[text]
