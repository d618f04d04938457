"""Which assignments a read may see, and which values follow from them in a run without options."""

from __future__ import annotations

import pytest

from one_file import NAME, project_of
from torchrepro_lint.dataflow.constants import DefaultValue
from torchrepro_lint.dataflow.default_values import DefaultValues
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Ref
from torchrepro_lint.syntax.visitor import all_statements, expressions_within

# What ``use(x)`` may see; a value that is no literal is written as it stands.
SEEN = {
    "x = 1\nx = 2\nuse(x)": "2",
    "x = 1\nif a:\n    x = 2\nuse(x)": "1 2",
    "x = 1\nif a:\n    x = 2\nelse:\n    x = 3\nuse(x)": "2 3",
    "x = 1\nif a:\n    x = 2\nelif b:\n    x = 3\nelse:\n    x = 4\nuse(x)": "2 3 4",
    "x = 1\nif a:\n    x = 2\n    raise b\nuse(x)": "1",
    "x = 1\nif a:\n    x = 2\n    use(x)\nelse:\n    x = 3": "2",
    "x = 1\nwhile a:\n    use(x)\n    x = 2": "1 2",
    "x = 1\nwhile a:\n    x = f(use(x))": "1 f(use(x))",
    "x = 1\nwhile a:\n    x = 2\n    use(x)\n    x = 3": "2",
    "x = 1\nwhile a:\n    if b:\n        x = 2\n        continue\n    use(x)": "1 2",
    "x = 1\nwhile a:\n    if b:\n        x = 2\n        break\nuse(x)": "1 2",
    "x = y\nfor x in f(use(x)):\n    x = 2": "y",
    "x = 1\nwith a:\n    x = 2\nuse(x)": "2",
    "x = 1\ntry:\n    x = 2\nexcept a:\n    use(x)": "1 2",
    "x = 1\ntry:\n    x = 2\nexcept a:\n    x = 3\nuse(x)": "2 3",
    "x = 1\ntry:\n    x = 2\nexcept a:\n    raise\nuse(x)": "2",
    "x = 1\ntry:\n    x = 2\nexcept a:\n    pass\nuse(x)": "1 2",
    "x = 1\nmatch a:\n    case 1:\n        x = 2\nuse(x)": "1 2",
    "if (x := f()) and use(x):\n    pass": "f()",
    "x = 1\ndef g():\n    use(x)\nx = 2": "1 2",
}


def used(text: str) -> tuple[DefaultValues, Closure, str]:
    project = project_of({NAME: text})
    (call,) = [
        each
        for statement in all_statements(project.files[NAME])
        for each in expressions_within(statement)
        if isinstance(each, Call) and isinstance(each.func, Ref) and each.func.roots[0].endswith("use")
    ]
    values = DefaultValues(project, (), (NAME,), lambda *_: False)
    closure = Closure(NAME, call.args[0].value)
    seen = [step.value for step in project.value_sources.reaching_definitions(closure)]
    return values, closure, " ".join(written(each.value, text) for each in seen if isinstance(each, Closure))


def written(value: Expression, text: str) -> str:
    return str(value.value) if isinstance(value, Constant) else text[value.start : value.end]


@pytest.mark.parametrize("text", SEEN)
@pytest.mark.parametrize("inside", [False, True])
def test_a_read_sees_the_assignments_that_reach_it(text: str, inside: bool) -> None:
    if inside:
        text = "def run(a, b):\n    " + text.replace("\n", "\n    ")
    assert used(text)[2] == SEEN[text if not inside else text.partition("\n")[2].replace("\n    ", "\n").lstrip()]


# The value of ``x`` in ``use(x)`` without options; None where it is not known.
VALUES = {
    "x = 1\nif f():\n    x = 1\nuse(x)": 1,
    "x = 1\nif f():\n    x = 2\nuse(x)": None,
    "x = 1\nON = False\nif ON:\n    x = 2\nuse(x)": 1,
    "x = 1\nON = False\nif not ON:\n    x = 2\nuse(x)": 2,
    "x = 1\nON = True\nif ON:\n    x = 2\nelse:\n    x = 3\nuse(x)": 2,
    "x = 1\nfor x in f():\n    use(x)": None,
    "x = 1\nfor i in f():\n    x += 1\nuse(x)": None,
    "x, y = 1, 2\nuse(x)": 1,
    "x, y = f()\nuse(x)": None,
    "try:\n    x = f()\nexcept OSError:\n    x = 1\nuse(x)": None,
}


@pytest.mark.parametrize("text", VALUES)
def test_the_value_without_options_follows_from_the_assignments(text: str) -> None:
    values, closure, _ = used(text)
    found = values.of(closure)
    assert (found and found.value) == VALUES[text]


def test_a_default_decides_only_by_the_tests_that_the_read_is_not_under() -> None:
    text = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--on', default=True)\nargs = p.parse_args()\n"
    )
    values, closure, _ = used(f"{text}def g(x):\n    if args.on:\n        x = 2\n    use(x)\n")
    assert values.of(closure) == DefaultValue(2, values.of(closure).declared)  # type: ignore[union-attr]
    assert values.of(closure).declared.text == "args.on"  # type: ignore[union-attr]
    values, closure, _ = used(f"{text}def g(x):\n    if args.on:\n        x = 2\n        use(x)\n")
    assert values.of(closure) == DefaultValue(2, values.of(closure).declared)  # type: ignore[union-attr]
    assert values.of(closure).declared.text == "x"  # type: ignore[union-attr]  # its own literal
