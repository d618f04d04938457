"""The edits that ``python -m benchmarks.editing`` and ``python -m benchmarks.latency`` make."""

from __future__ import annotations

from pathlib import Path

from benchmarks.keystrokes import keystrokes
from benchmarks.latency import drawn
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


def test_edits_of_all_kinds_are_drawn_and_leave_files_that_parse(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.py" for name in ("draw", "net", "train")]
    texts = (TEXT, "import torch\n\n\nclass Net:\n    size = 3\n", "from draw import draw\nimport net\n")
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    found = drawn(files, 12, 1)
    assert found == drawn(files, 12, 1) != drawn(files, 12, 2)
    assert [each.kind for each in found] == ["body", "function", "attribute", "imported"] * 3
    for each in found:
        text = each.file.read_text(encoding="utf-8")
        assert _parses(text[: each.at] + each.inserted + text[each.at :])


def _parses(text: str) -> bool:
    try:
        compile(text, "text", "exec")
    except SyntaxError:
        return False
    return True
