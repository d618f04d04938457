"""The edits that ``python -m benchmarks.editing`` makes."""

from __future__ import annotations

from benchmarks.keystrokes import keystrokes
from torchrepro_lint.source.text import Edit, apply_edits

TEXT = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n\n\nvalue = draw()\n"


def test_each_change_is_made_in_the_text_before_and_all_is_undone() -> None:
    text, kinds, parsing = TEXT, set(), 0
    for one in keystrokes(TEXT, 500, 3):
        text = apply_edits(text, [Edit(one.span, one.new)])
        assert text == one.text
        kinds.add(one.kind)
        parsing += _parses(text)
    assert kinds == {"typing", "undo", "rename", "syntax error", "delete"}
    assert 100 < parsing < 400
    last = [one.text for one in keystrokes(TEXT, 500, 3) if one.kind == "undo"]
    assert set(last) == {TEXT}


def test_the_same_seed_gives_the_same_changes() -> None:
    assert list(keystrokes(TEXT, 50, 3)) == list(keystrokes(TEXT, 50, 3)) != list(keystrokes(TEXT, 50, 4))


def _parses(text: str) -> bool:
    try:
        compile(text, "text", "exec")
    except SyntaxError:
        return False
    return True
