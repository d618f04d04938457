"""Suppression comments in an editor: what hides nothing is reported, and removed by an action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from benchmarks.language_client import Client

Project = Callable[[Mapping[str, str | bytes]], Path]
SETTINGS = '[tool.torchrepro-lint]\nextend-select = ["unused-suppression"]\n'
TEXT = "import torch\n\nx = 1  # noqa: E501,TRL201\n"


def test_a_comment_that_hides_nothing(project: Project) -> None:
    root = project({"pyproject.toml": SETTINGS, "train.py": TEXT})
    client = Client(root, None)
    client.start()
    try:
        client.open(root / "train.py", TEXT)
        (found,) = client.diagnostics(root / "train.py", 1)
        assert (found["code"], found["severity"]) == ("TRL002", 2)
        assert found["message"] == "TRL201 suppresses nothing on this line; remove it from the comment"
        uri = (root / "train.py").as_uri()
        asked = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": [found]}}
        fix, hide, _ = client.request("textDocument/codeAction", asked)["result"]
        (edit,) = fix["edit"]["changes"][uri]
        assert (fix["title"], fix["isPreferred"], edit["newText"]) == (
            "remove TRL201 from the comment",
            True,
            "# noqa: E501",
        )
        assert hide["edit"]["changes"][uri][0]["newText"] == ",TRL002"
        client.change(root / "train.py", TEXT + "torch.backends.cudnn.benchmark = True  # noqa: TRL201\n", 2)
        assert [one["code"] for one in client.diagnostics(root / "train.py", 2)] == ["TRL002"]
        client.change(root / "train.py", TEXT.replace(",TRL201", ",TRL201,TRL002"), 3)
        assert client.diagnostics(root / "train.py", 3) == []
    finally:
        client.end()
