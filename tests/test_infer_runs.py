"""Inference agrees with run time: functions of torch's own Python sources run on small inputs, and no variable contradicts it."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from agreement import Recorder, texts_of  # noqa: E402  it needs torch
from one_file import project_of  # noqa: E402
from torch_runs import RUNS  # noqa: E402

_ROOT = Path(torch.__file__).parent.parent


# Parameters of torch's own whose annotations say other than what it takes: for the overloads of TorchScript.
_MISLEADING = {
    "torch/nn/functional.py": {"size", "scale_factor", "pad", "target_type"},
}


@pytest.mark.parametrize("title", sorted(RUNS))
def test_what_runs_contradicts_nothing_that_is_said(title: str) -> None:
    run, names = RUNS[title]
    texts = texts_of(_ROOT, names)
    own = {"torch_runs.py": (Path(__file__).parent / "torch_runs.py").read_text(encoding="utf-8")}
    recorder = Recorder(project_of({**texts, **own}), {str(_ROOT / name): name for name in names}, texts)
    with recorder.running():
        run()
    assert recorder.compared > 20
    found = [one for one in recorder.contradictions if one.variable not in _MISLEADING.get(one.path, ())]
    assert found == []
