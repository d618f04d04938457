"""Values on the way from one process to another: what many records of facts have alike arrives as one object."""

from __future__ import annotations

import copyreg
import pickle
from io import BytesIO
from typing import Any

from torchrepro_lint import facts
from torchrepro_lint.facts import Call, Ref
from torchrepro_lint.query.memo_tables import known_words, words
from torchrepro_lint.shared import SHARED, numbers, ref
from torchrepro_lint.small import Small, fields


def packed(value: Any) -> bytes:
    """A value as bytes; raises ``RecursionError`` for one that is nested too deeply."""
    data = BytesIO()
    pickler = pickle.Pickler(data, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCED
    pickler.dump(value)
    return data.getvalue()


def unpacked(data: bytes) -> Any:
    """The value that ``packed``, in a process of this run, was given."""
    return pickle.loads(data)  # noqa: S301


def _ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    return ref(start, end, known_words(roots) or words(roots), known_words(path) or words(path), base_end)


def _call(start: int, end: int, func: Any, args: Any, at: int) -> Any:
    if end < SHARED:
        shared = numbers()
        return Call(shared[start], shared[end], func, args, shared[at])
    return Call(start, end, func, args, at)


def _placed(kind: type, start: int, end: int, *rest: Any) -> Any:
    if end < SHARED:
        shared = numbers()
        return kind(shared[start], shared[end], *rest)
    return kind(start, end, *rest)


def _reduce_placed(it: Any) -> tuple[Any, ...]:
    return _placed, (type(it), *fields(it))


_REDUCED: dict[type, Any] = {
    **copyreg.dispatch_table,
    **{
        kind: _reduce_placed
        for kind in vars(facts).values()
        if isinstance(kind, type) and issubclass(kind, Small) and kind.__struct_fields__[:2] == ("start", "end")
    },
    Ref: lambda it: (_ref, fields(it)),
    Call: lambda it: (_call, fields(it)),
}
