"""Seeds from entropy, where value sources are cyclic."""

from __future__ import annotations

import pytest

from one_file import findings
from torchrepro_lint.checks import entropy


@pytest.mark.parametrize(
    "seed",
    [
        "    seed = int(seed)\n",
        "    seed = int(seed)\n    other = int(seed)\n    seed = int(other)\n",
        "    seed = seed + 'x'\n    seed = hash(seed)\n",
    ],
)
def test_a_seed_made_from_itself(seed: str) -> None:
    text = f"import torch\n\n\ndef start(seed):\n{seed}    torch.manual_seed(seed)\n\n\nstart(int(input()))\n"
    assert findings(entropy.seed, text) == []
