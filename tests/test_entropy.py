"""Seeds that change between runs, where values lead back to themselves."""

from __future__ import annotations

import pytest
from one_file import findings

from torchrepro_lint.checks import entropy


@pytest.mark.parametrize(
    ("seed", "reported"),
    [
        ("    seed = int(seed)\n", False),
        ("    seed = int(seed)\n    other = int(seed)\n    seed = int(other)\n", False),
        ("    seed = seed + 'x'\n    seed = hash(seed)\n", False),
        ("    seed = int(time.time())\n    seed = int(seed)\n", True),
    ],
)
def test_a_seed_made_from_itself(seed: str, reported: bool) -> None:
    text = f"import time\nimport torch\n\n\ndef start(seed=3):\n{seed}    torch.manual_seed(seed)\n\n\nstart(int(input()))\n"
    found = [finding.code for finding in findings(entropy.seed, text)]
    assert "TRL105" not in found or reported
