"""Inference agrees with run time: functions of torch's own Python sources run on small inputs without a contradiction."""

from __future__ import annotations

from pathlib import Path

import pytest

import installed

torch = installed.torch()

from agreement import Recorder, contradiction, texts_of  # noqa: E402  it needs torch
from one_file import project_of  # noqa: E402
from torch_runs import RUNS  # noqa: E402
from torchrepro_lint.dataflow.types.lattice import AbstractValue  # noqa: E402

_ROOT = Path(torch.__file__).parent.parent
_OWN = Path(__file__).parents[2] / "torch_runs.py"


# Parameters of torch's own whose annotations say other than what it takes: for the overloads of TorchScript.
_MISLEADING = {
    "torch/nn/functional.py": {"size", "scale_factor", "pad", "target_type"},
}


@pytest.mark.parametrize("title", sorted(RUNS))
def test_what_runs_contradicts_nothing_that_is_said(title: str) -> None:
    run, names = RUNS[title]
    texts = {**texts_of(_ROOT, names), _OWN.name: _OWN.read_text(encoding="utf-8")}
    files = {str(_ROOT / name): name for name in names}
    recorder = Recorder(project_of(texts), {**files, str(_OWN): _OWN.name}, texts)
    with recorder.running():
        run()
    assert recorder.compared > 20
    found = [one for one in recorder.contradictions if one.variable not in _MISLEADING.get(one.path, ())]
    assert found == []


@pytest.mark.parametrize(
    ("said", "value", "wrong"),
    [
        (AbstractValue("tensor", dtype="int64", family="integer"), torch.ones(1), "is torch.float32"),
        (AbstractValue("tensor", min_ndim=2, max_ndim=2), torch.ones(1), "has 1 dimensions"),
        (AbstractValue("tensor", min_ndim=1, max_ndim=1, sizes=(3,)), torch.ones(2), "has the sizes (2,)"),
        (AbstractValue("tensor", grad=False), torch.ones(1, requires_grad=True), "needs a gradient"),
        (AbstractValue(grad=False), torch.ones(1, requires_grad=True), "needs a gradient"),
        (AbstractValue("tensor", layout="contiguous"), torch.ones(2, 3).t(), "is not contiguous"),
        (AbstractValue("parameter"), torch.ones(1), "is no parameter"),
        (AbstractValue("list", items=(AbstractValue("int"), AbstractValue("str"))), [1, 2], "[1] is a int"),
        (AbstractValue("list", contents=AbstractValue("nothing")), [1], "[0] is there"),
        (AbstractValue("int", value=3), 4, "is 4"),
        (AbstractValue("set"), [1], "is a list"),
        (AbstractValue("set"), None, ""),
        (AbstractValue(), object(), ""),
        (AbstractValue("tensor", min_ndim=1, max_ndim=None, sizes=None, family="floating"), torch.ones(2, 2), ""),
        (AbstractValue("float"), 1, ""),
    ],
)
def test_a_contradiction_is_seen(said: AbstractValue, value: object, wrong: str) -> None:
    assert contradiction(said, value) == wrong
