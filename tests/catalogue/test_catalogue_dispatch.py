"""The operators that Python calls on a CUDA device dispatch to, observed on fake tensors.

``nn/functional.py`` takes other ways for some operations when the flag is on: that is what makes them deterministic.
"""

from __future__ import annotations

from typing import Any

import pytest

import installed

torch = installed.torch()

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from operation_cases import CASES  # noqa: E402
from operation_runs import deciding  # noqa: E402

INTERPOLATE = "nn.functional.interpolate mode={} antialias={}"


class _Log(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def operators(title: str, *, flag: bool) -> list[str]:
    """The operators that the forward call of a case runs."""
    (case,) = (case for case in CASES if case.title == title)
    inputs = case.inputs(1)
    torch.use_deterministic_algorithms(flag)
    try:
        with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
            claimed = [torch.empty(one.shape, dtype=one.dtype, device="cuda") for one in inputs]
            with _Log() as log:
                case.call(*claimed)
    except RuntimeError as error:
        # A build for the CPU can't pretend everything; until here the way is seen.
        if "not linked with support for cuda" not in str(error):
            raise
    finally:
        torch.use_deterministic_algorithms(False)
    return log.names


@pytest.mark.parametrize(
    ("title", "native"),
    [
        ("nn.ReplicationPad1d", "replication_pad1d"),
        ("nn.ReplicationPad2d", "replication_pad2d"),
        ("nn.ReplicationPad3d", "replication_pad3d"),
        ("nn.Conv1d padding=1 padding_mode=replicate", "replication_pad1d"),
        ("nn.Conv2d padding=1 padding_mode=replicate", "replication_pad2d"),
        ("nn.Conv3d padding=1 padding_mode=replicate", "replication_pad3d"),
        (INTERPOLATE.format("bilinear", False), "upsample_bilinear2d"),
        (INTERPOLATE.format("trilinear", False), "upsample_trilinear3d"),
        ("nn.MaxPool3d return_indices=True", "max_pool3d_with_indices"),
    ],
)
def test_what_the_flag_sends_another_way_is_deterministic(title: str, native: str) -> None:
    assert native in operators(title, flag=False)
    assert native not in operators(title, flag=True)
    assert _behaviour(title) == "deterministic"


@pytest.mark.parametrize(
    ("title", "native"),
    [
        (INTERPOLATE.format("linear", False), "upsample_linear1d"),
        (INTERPOLATE.format("bicubic", False), "upsample_bicubic2d"),
        (INTERPOLATE.format("bilinear", True), "_upsample_bilinear2d_aa"),
        (INTERPOLATE.format("bicubic", True), "_upsample_bicubic2d_aa"),
        ("nn.functional.interpolate mode=area size=7", "_adaptive_avg_pool2d"),
        ("nn.MaxPool3d return_indices=False", "max_pool3d_with_indices"),
        ("nn.AdaptiveAvgPool1d output_size=7 input.divisible=False", "_adaptive_avg_pool2d"),
        ("nn.AdaptiveMaxPool1d output_size=7 input.divisible=False", "adaptive_max_pool2d"),
        ("nn.LPPool3d", "avg_pool3d"),
        ("nn.LocalResponseNorm input.ndim=4", "avg_pool3d"),
        ("nn.ReflectionPad1d", "reflection_pad1d"),
        ("nn.ReflectionPad3d", "reflection_pad3d"),
        ("nn.Conv1d padding=1 padding_mode=reflect", "reflection_pad1d"),
        ("nn.Conv3d padding=1 padding_mode=reflect", "reflection_pad3d"),
        ("stft center=True pad_mode=reflect", "reflection_pad1d"),
        ("nn.NLLLoss input.ndim=4 reduction=mean", "nll_loss2d_forward"),
        ("nn.CrossEntropyLoss input.ndim=4 reduction=mean input.target=class indices", "nll_loss2d_forward"),
    ],
)
def test_what_the_flag_leaves_to_a_kernel_that_alerts_raises(title: str, native: str) -> None:
    assert native in operators(title, flag=True)
    assert _behaviour(title) == "raises"


@pytest.mark.parametrize(
    ("title", "native"),
    [
        ("nn.AdaptiveAvgPool2d output_size=1 input.divisible=True", "_adaptive_avg_pool2d"),
        ("nn.AdaptiveAvgPool3d output_size=1 input.divisible=True", "_adaptive_avg_pool3d"),
        ("nn.NLLLoss input.ndim=2 reduction=mean", "nll_loss2d_forward"),
        ("repeat_interleave repeats=300", "index_select"),
    ],
)
def test_what_never_gets_to_the_kernel_that_alerts_is_left_alone(title: str, native: str) -> None:
    assert native not in operators(title, flag=True)
    assert _behaviour(title) == "none"


def _behaviour(title: str) -> str:
    (case,) = (case for case in CASES if case.title == title)
    row = deciding(case, torch.__version__, "cuda")
    assert row is not None
    return row.behaviour
