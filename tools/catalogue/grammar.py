"""The grammar of one item in torch's documentation: the operations, and the phrases that say when an operation is
concerned.

A phrase that is not known is an error.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

Test: TypeAlias = dict[str, Any]


class UnknownLineError(ValueError):
    """A line of the documentation that the grammar does not cover; the message quotes it."""


class DocumentedOperation(NamedTuple):
    """One operation of the list; ``behaviour`` is what it does with the flag on: raises, deterministic or fills."""

    name: str
    behaviour: str
    device: tuple[str, ...]
    phase: str
    when: tuple[Test, ...]


class _Phrase(NamedTuple):
    pattern: re.Pattern[str]
    backward: bool = False
    fills: bool = False
    when: tuple[Test, ...] = ()


def _phrase(pattern: str, *when: Test, backward: bool = False, fills: bool = False) -> _Phrase:
    return _Phrase(re.compile(pattern), backward, fills, when)


def _one_of(of: str, *values: object) -> Test:
    return {"of": of, "one_of": list(values)}


_DEVICES = r"(?:an? )?(?P<device>(?:CPU|CUDA|MPS)(?: or (?:CPU|CUDA|MPS))*) tensors?"
_FILLS = (
    r"will fill the output tensor with a known value\. Floating point or complex dtype tensors are filled with NaN\. "
    r"Integer dtype tensors are filled with the maximum value\."
)
_SETS = (
    r"sets new elements to a known value\. Floating point or complex values are set to NaN\. "
    r"Integer values are set to the maximum value\."
)
_PHRASES = (
    _phrase(rf"(?:when|with|and) called on {_DEVICES} that requires grad", backward=True),
    _phrase(rf"(?:when|with|and) called on {_DEVICES}(?: with floating or complex dtype)"),
    _phrase(rf"(?:when|with|and) called on {_DEVICES}"),
    _phrase(rf"when attempting to differentiate {_DEVICES}", backward=True),
    _phrase(r"when called on sparse-dense (?P<device>CUDA) tensors", _one_of("input.layout", "sparse")),
    _phrase(r"backward when `self` is a (?P<device>CPU) tensor", backward=True),
    _phrase(r"and (?:the index|``indices``) is a list of tensors", _one_of("input.index", "tensors")),
    _phrase(r"(?:with|when) ``accumulate=False``", _one_of("accumulate", False)),
    _phrase(r"(?:with|when) ``accumulate=True``", _one_of("accumulate", True)),
    _phrase(r"when ``mode='max'``", _one_of("mode", "max")),
    _phrase(r"when ``reduce='sum'`` or ``reduce='mean'``", _one_of("reduce", "sum", "mean")),
    _phrase(r"when ``reduce='prod'``", _one_of("reduce", "prod")),
    _phrase(r"with ``reduce='prod'\\?'mean'``", _one_of("reduce", "prod", "mean")),
    _phrase(r"when `src` type is Tensor", _one_of("src", "tensor")),
    _phrase(r"and ``weights`` tensor is given", {"of": "weights", "given": True}),
    _phrase(r"with indices output", {"of": "dim", "given": True}),
    _phrase(r"when ``input`` dimension is one", _one_of("input.ndim", 1)),
    _phrase(r"when ``input`` dimension is larger than one", {"of": "input.ndim", "at_least": 2}),
    _phrase(r"when dtype is floating point or complex", _one_of("input.dtype", "floating", "complex")),
    _phrase(r"when called with a quantized tensor", _one_of("input.quantized", True)),
    _phrase(
        r"when called with a tensor that is not quantized, " + _SETS, _one_of("input.quantized", False), fills=True
    ),
    _phrase(_FILLS, fills=True),
    _phrase(r"in some cases", _one_of("input.some_cases", True)),
    _phrase(r"and one of the following modes is used:(?P<modes>(?: - `+\w+`+)+)"),
)
_NAME = re.compile(r"(?:,? and |, |)?:(?:class|func):`([\w.]+)`")
_FLOATING = _one_of("input.dtype", "floating", "complex")


def parse_item(item: str, behaviour: str, device: str = "", when: tuple[Test, ...] = ()) -> list[DocumentedOperation]:
    """Parse one item of the list, its lines joined by single blanks.

    ``device`` and ``when`` come from the section's heading and hold for all its items. Raises ``UnknownLineError``.
    """
    at = 0
    names: list[str] = []
    while match := _NAME.match(item, at):
        names.append(_public_name(match[1]))
        at = match.end()
    if not names:
        raise UnknownLineError(f"names no operation: {item!r}")
    devices: tuple[str, ...] = (device,) if device else ("any",)
    backward = False
    conditions = list(when)
    for phrase, match in _phrases(item, at):
        groups = match.groupdict()
        if groups.get("device"):
            devices = tuple(word.lower() for word in groups["device"].split(" or "))
        if groups.get("modes"):
            conditions.append(_one_of("mode", *re.findall(r"\w+", groups["modes"])))
        if match[0].endswith("with floating or complex dtype"):
            conditions.append(_FLOATING)
        conditions += phrase.when
        backward |= phrase.backward
        behaviour = "fills" if phrase.fills else behaviour
    phase = "backward" if backward else "forward"
    return [DocumentedOperation(name, behaviour, tuple(sorted(devices)), phase, tuple(conditions)) for name in names]


def _phrases(item: str, at: int) -> list[tuple[_Phrase, re.Match[str]]]:
    """The phrases of the rest of an item."""
    found: list[tuple[_Phrase, re.Match[str]]] = []
    while rest := item[at:].lstrip(" ,"):
        at = len(item) - len(rest)
        for phrase in _PHRASES:
            if match := phrase.pattern.match(item, at):
                found.append((phrase, match))
                at = match.end()
                break
        else:
            raise UnknownLineError(f"does not understand {rest!r} in {item!r}")
    return found


def _public_name(name: str) -> str:
    """The public name: ``torch.index_add_`` in the documentation is a method, as torch has in-place forms only there."""
    owner, _, short = name.rpartition(".")
    return f"torch.Tensor.{short}" if owner == "torch" and short.endswith("_") else name
