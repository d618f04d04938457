"""Facts to JSON and back: a record is a list that begins with its type's name, a plain tuple one that begins with nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

from torchrepro_lint import facts as records
from torchrepro_lint.facts import Facts

_TYPES: dict[str, Any] = {
    name: kind for name, kind in vars(records).items() if isinstance(kind, type) and hasattr(kind, "_fields")
}


def to_json(facts: Facts) -> str:
    """The text of facts, in ASCII; equal facts give equal texts."""
    return json.dumps(_encoded(facts), separators=(",", ":"))


def from_json(text: str) -> Facts:
    """The facts of a text. Raises ``ValueError`` for a text that ``to_json`` did not make."""
    try:
        found = _decoded(json.loads(text))
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError(f"no facts: {error}") from error
    if not isinstance(found, Facts):
        raise ValueError("no facts")
    return found


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [type(value).__name__ if hasattr(value, "_fields") else "", *map(_encoded, value)]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode("ascii")]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind == "bytes":
        return base64.b64decode(parts[0], validate=True)
    if kind == "complex":
        return complex(*parts)
    items = map(_decoded, parts)
    return _TYPES[kind](*items) if kind else tuple(items)
