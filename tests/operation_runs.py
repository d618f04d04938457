"""Runs a case of an operation many times on the same inputs and compares bits."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from operation_calls import Case
from torchrepro_lint.catalogue.catalogue import load
from torchrepro_lint.catalogue.conditions import Truth, applicable_rows
from torchrepro_lint.catalogue.rows import OperationRow

_ALERT = re.compile(
    r"(.+?) does not have a deterministic implementation|Deterministic behavior was enabled.*CuBLAS", re.DOTALL
)


class Seen(NamedTuple):
    """What runs in one setting gave: the name in torch's alert (``cuBLAS`` for that one's own), in which phase, whether
    the bits differed between runs, and whether torch warned of nondeterminism.
    """

    alert: str | None
    phase: str
    differ: bool
    warned: bool

    @staticmethod
    def parse(told: str, phase: str) -> Seen:
        """What ``str`` wrote; ``phase`` is the one that was run."""
        if match := re.fullmatch(r"raises (.+) in (forward|backward)", told):
            return Seen(match[1], match[2], False, False)
        bits, _, warned = told.partition(", ")
        return Seen(None, phase, bits == "different bits", bool(warned))

    def __str__(self) -> str:
        if self.alert is not None:
            return f"raises {self.alert} in {self.phase}"
        return ("different bits" if self.differ else "same bits") + (", warned" if self.warned else "")


def deciding(case: Case, version: str, device: str) -> OperationRow | None:
    """The row that decides on a case: the first that holds for sure."""
    found = applicable_rows(load(version).operation(case.operation), lambda of: None, {**case.known, "device": device})
    return next((row for row, truth in found if truth is Truth.HOLDS), None)


def watch(case: Case, device: str, runs: int, scale: int, *, phase: str, mode: str) -> Seen:
    """Runs a case; ``mode`` is ``off``, ``on`` or ``warn`` of ``torch.use_deterministic_algorithms``."""
    inputs = [each.to(device) for each in case.inputs(scale)]
    with _deterministic(mode), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reached = ["forward"]
        first, differ = None, False
        try:
            for _ in range(runs):
                reached[:] = ["forward"]
                bits = _run(case, inputs, phase, reached)
                differ |= first is not None and not all(map(torch.equal, first, bits))
                first = first or bits
        except RuntimeError as error:
            if not (match := _ALERT.match(str(error))):
                raise
            return Seen(match[1] or "cuBLAS", reached[0], False, False)
    return Seen(None, phase, differ, any("deterministic" in str(one.message) for one in caught))


def _run(case: Case, inputs: list[Any], phase: str, reached: list[str]) -> list[Any]:
    """The bytes of what a call gives, or of the gradients."""
    backward = phase == "backward"
    leaves = [
        each.clone().requires_grad_() if backward and number < case.leaves else each
        for number, each in enumerate(inputs)
    ]
    given = case.call(*leaves)
    outputs = [given] if isinstance(given, torch.Tensor) else list(given)
    if backward:
        reached[:] = ["backward"]
        weight = torch.randn(outputs[0].shape, dtype=outputs[0].dtype, generator=torch.Generator().manual_seed(2))
        outputs = list(torch.autograd.grad(outputs[0], leaves[: case.leaves], weight.to(outputs[0].device)))
    return [_bytes(each) for each in outputs]


def _bytes(value: Any) -> Any:
    return value.detach().contiguous().flatten().view(torch.uint8)


@contextmanager
def _deterministic(mode: str) -> Iterator[None]:
    torch.use_deterministic_algorithms(mode != "off", warn_only=mode == "warn")
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def record(case: Case, row: OperationRow, off: Seen, on: Seen) -> None:
    """Add the observation to the TOML file that ``TORCHREPRO_RECORD`` names: a line for each case."""
    place = os.environ.get("TORCHREPRO_RECORD")
    if place:
        with open(place, "a", encoding="utf-8") as file:
            file.write(f'"{case.title}" = {{ phase = "{row.phase}", off = "{off}", on = "{on}" }}\n')
