"""Which tests keep a place of a body from running, where literals are the tests whose truth is known."""

from __future__ import annotations

import pytest

from one_file import facts_of
from torchrepro_lint.dataflow.feasibility import ruling_tests
from torchrepro_lint.syntax.nodes import Constant, Expression

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
