"""The catalogue in words: what a row says happens, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchrepro_lint.entries import Condition, Scalar


class Status(NamedTuple):
    """A behaviour for readers: a label, a mark that stands for it, and one sentence."""

    label: str
    mark: str
    meaning: str


# From what hurts most to what hurts least.
STATUSES: Mapping[str, Status] = {
    "raises": Status("raises", "✕", "Raises an error when the flag is on."),
    "silent": Status("silently nondeterministic", "≁", "Results differ from run to run, and nothing says so."),
    "warns": Status("warns only", "!", "Stays nondeterministic and warns."),
    "ties": Status("order of ties open", "≈", "Equal elements may come in any order."),
    "deterministic": Status("needs the flag", "⚑", "Deterministic when the flag is on, and only then."),
    "fills": Status("filled with the flag", "▦", "Fresh memory is filled with a known value when the flag is on."),
    "none": Status("deterministic", "✓", "Deterministic, with and without the flag."),
}

_SUBJECTS: Mapping[tuple[str, str], str] = {
    ("input.dtype", "floating"): "floating-point input",
    ("input.dtype", "complex"): "complex input",
    ("input.dtype", "integer"): "integer input",
    ("input.divisible", "False"): "output size does not divide the input size",
    ("input.index", "tensors"): "indexed by tensors",
    ("input.layout", "sparse"): "sparse input",
    ("input.quantized", "True"): "quantised input",
    ("input.quantized", "False"): "input not quantised",
    ("input.some_cases", "True"): "some cases (torch does not say which)",
    ("input.target", "class indices"): "target of class indices",
    ("program.cudnn_ctc", "True"): "cuDNN's implementation is used",
    ("program.warn_only", "True"): "under warn_only=True",
    ("src", "tensor"): "src is a tensor",
}
_COMPARED: Mapping[str, str] = {"one_of": "", "at_least": " or more", "at_most": " or fewer", "above": " exceeded"}


def when(conditions: Iterable[Condition]) -> str:
    """All conditions of a row, ``mode="bilinear", antialias=False``; empty where there are none.

    That a mode goes with so many dimensions says torch itself.
    """
    return ", ".join(dict.fromkeys(condition(one) for one in conditions if one.of != "spatial"))


def condition(one: Condition) -> str:
    """One condition in a few words."""
    values = _either(one.values)
    if one.of == "input.ndim":
        return _dimensions(one)
    if one.of.startswith("program.") and one.test == "none_of":
        return f"{one.of.partition('.')[2]} is neither {' nor '.join(map(str, one.values))}"
    if (one.of, str(one.values[0])) in _SUBJECTS and one.test == "one_of":
        subjects = [_SUBJECTS[one.of, str(value)] for value in one.values]
        return " or ".join((*(each.removesuffix(" input") for each in subjects[:-1]), subjects[-1]))
    return _argument(one, values)


def _argument(one: Condition, values: str) -> str:
    match one.test:
        case "one_of":
            return f"{one.of}={values}"
        case "none_of":
            return f"{one.of} is not {values}"
        case "all":
            return f"{one.of}={values}"
        case "not_all":
            return f"{one.of} is not {values}"
        case "given":
            return f"{one.of} given" if one.values[0] else f"without {one.of}"
        case "constant":
            return f"{one.of} is a constant"
        case "length":
            return f"{one.of} of {values} numbers"
    return f"{one.of} {one.test.replace('_', ' ')} {values}"


def _dimensions(one: Condition) -> str:
    value = one.values[0]
    if isinstance(value, str):
        return f"dimensions: {value}"
    return f"input of {value}{_COMPARED.get(one.test, '')} dimension{'s' * (value != 1 or one.test != 'one_of')}"


def _either(values: tuple[Scalar, ...]) -> str:
    return " or ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)


def where(devices: Iterable[str], phase: str) -> str:
    """Devices and phase: ``CUDA backward``, ``every device, forward``."""
    return f"{on(devices)} {phase}"


def on(devices: Iterable[str]) -> str:
    """Devices as people write them."""
    return " and ".join("every device," if device == "any" else device.upper() for device in devices)
