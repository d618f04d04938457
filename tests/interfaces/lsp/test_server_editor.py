"""The language server in a real editor: headless Neovim opens, edits, and applies an action that changes two files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

TESTS = Path(__file__).parents[2]
HELPER = "import torch\n\n\ndef seed_everything(seed):\n    torch.manual_seed(seed)\n"
MAIN = (
    "import numpy as np\nimport torch\nfrom seeding import seed_everything\n\n"
    'if __name__ == "__main__":\n    seed_everything(1)\n    x = np.random.rand(3)\n    torch.save(x, "x.pt")\n'
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="there is no Neovim: apt-get install neovim")
def test_a_session_in_neovim(project: Callable[[Mapping[str, str | bytes]], Path], tmp_path: Path) -> None:
    root = project({"project/main.py": MAIN, "project/seeding.py": HELPER, "project/pyproject.toml": ""}) / "project"
    out = tmp_path / "seen.json"
    environment = {
        **os.environ,
        "ROOT": str(root),
        "OUT": str(out),
        "PYTHON": sys.executable,
        "SERVER": str(TESTS / "server_with_toy.py"),
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent), os.environ.get("PYTHONPATH", "")]),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    command = ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {TESTS / 'server_session.lua'}"]
    ran = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=500, stdin=subprocess.DEVNULL
    )
    assert out.exists(), ran.stderr
    seen = json.loads(out.read_text())
    assert "problem" not in seen, seen
    assert seen["opened"] == ["TRL102"]
    assert seen["edited"] == ["TRL102", "TRL998"]
    assert seen["far"] == ["TRL998"]
    assert seen["both"] == []
    assert seen["main.py"] == f"{MAIN}# \U0001f600 GOOD\n"
    fixed = HELPER.replace("import torch\n", "import numpy as np\nimport torch\n")
    assert seen["seeding.py"] == f"READY = 1\n{fixed}    np.random.seed(seed)\n"
    assert (root / "main.py").read_text() == MAIN  # nothing was saved
