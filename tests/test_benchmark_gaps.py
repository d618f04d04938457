"""``python -m benchmarks.gaps``: programs, those with a gap, and the reasons by the number of programs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gaps import measured, table

CALL = "importlib.import_module"
CHOSEN = "import importlib, sys\nimport torch\n\ntorch.manual_seed(0)\ntask = importlib.import_module(sys.argv[1])\n"
STORED = "import torch\n\ntorch.manual_seed(0)\nnet = torch.load('net.pt', weights_only=False)\ntorch.save(net(net(0)), 'x')\n"


def repository(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def test_reasons_come_by_the_number_of_programs(tmp_path: Path) -> None:
    known = "import torch\n\ntorch.manual_seed(0)\ntorch.save(torch.rand(2), 'x')\n"
    one = repository(tmp_path / "one", {"a.py": STORED, "b.py": CHOSEN, "c.py": known})
    two = repository(tmp_path / "two", {"deep/pyproject.toml": "", "deep/main.py": STORED})
    lines = list(table([measured(one), measured(two)], 1))
    assert lines[2:5] == ["| one | 3 | 2 | 2 | 1 |", "| two | 1 | 1 | 1 | 1 |", "| all | 4 | 3 | 3 | 2 |"]
    assert lines[8:] == [
        "| stored | 2 | 2 | one: what net(0) (a.py:5) runs is not known: torch.load reads it from a file |",
        f"| run-time | 1 | 1 | one: what {CALL}(sys.argv[1]) (b.py:5) runs is not known: {CALL} chooses it while the program runs |",
    ]


def test_a_repository_without_gaps_has_no_reasons(tmp_path: Path) -> None:
    found = measured(repository(tmp_path / "x", {"a.py": "import torch\n\ntorch.save(torch.ones(2), 'x')\n"}))
    assert found[:5] == ("x", 1, 1, 0, 0)
    assert list(table([found], 3))[-1] == "|---|---:|---:|---|"
