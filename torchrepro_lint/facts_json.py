"""Facts to JSON and back, compactly: they are kept in the cache, where reading them must be quicker than collecting them.

A record is a list that begins with its tag, a plain tuple one that begins with ``0``. Tuples of words, which repeat a lot,
stand once in a table and are numbered; read back, equal ones are one object. The commonest records have functions of
their own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from torchrepro_lint import facts as records
from torchrepro_lint.facts import Arg, Attribute, Call, Collection, Constant, Facts, Operation, Ref, Subscript, Summary

_TYPES: dict[str, Any] = {
    name: kind for name, kind in vars(records).items() if isinstance(kind, type) and hasattr(kind, "_fields")
}
_PLAIN = 0
_new: Any = tuple.__new__


def to_json(facts: Facts) -> str:
    """The text of facts, in ASCII; equal facts give equal texts."""
    writer = _Writer()
    body = writer.encoded(facts)
    return json.dumps([writer.words, body], separators=(",", ":"))


def from_json(text: str) -> Facts:
    """The facts of a text. Raises ``ValueError`` for a text that ``to_json`` did not make."""
    try:
        words, body = json.loads(text)
        found = _Reader([tuple(each) for each in words]).decoded(body)
    except (KeyError, TypeError, IndexError, RecursionError, AttributeError) as error:
        raise ValueError(f"no facts: {error}") from error
    if not isinstance(found, Facts):
        raise ValueError("no facts")
    return found


def summary_json(summary: Summary) -> Any:
    """A summary as what JSON can hold: its plain fields, and at the end its classes with the words of their bases."""
    writer = _Writer()
    classes = [[name, [writer.encoded(base) for base in bases], methods] for name, bases, methods in summary.classes]
    return [*summary[:-1], [writer.words, classes]]


def summary_from(value: Any) -> Summary:
    """The summary that ``summary_json`` made a value of."""
    *plain, (words, classes) = value
    reader = _Reader([tuple(each) for each in words])
    found = [
        (name, tuple([reader.decoded(base) for base in bases]), _frozen(methods)) for name, bases, methods in classes
    ]
    return Summary._make([*map(_frozen, plain), tuple(found)])


def _frozen(value: Any) -> Any:
    return tuple([_frozen(each) for each in value]) if type(value) is list else value


class _Writer:
    def __init__(self) -> None:
        self.words: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._writers: dict[type, Callable[[Any], Any]] = {
            Ref: self._ref,
            Constant: self._constant,
            Call: self._call,
            Attribute: lambda it: ["A", it[0], it[1], self.encoded(it[2]), it[3], it[4]],
            Subscript: lambda it: [
                "S",
                it[0],
                it[1],
                self.encoded(it[2]),
                [self.encoded(each) for each in it[3]],
                it[4],
            ],
            Collection: lambda it: ["L", it[0], it[1], it[2], [self.encoded(each) for each in it[3]]],
            Operation: lambda it: ["O", it[0], it[1], it[2], [self.encoded(each) for each in it[3]]],
            tuple: lambda it: [_PLAIN, *map(self.encoded, it)],
            bytes: lambda it: ["bytes", base64.b64encode(it).decode("ascii")],
            complex: lambda it: ["complex", it.real, it.imag],
        }
        for name, kind in _TYPES.items():
            self._writers.setdefault(kind, partial(self._record, name))

    def encoded(self, value: Any) -> Any:
        writer = self._writers.get(type(value))
        return value if writer is None else writer(value)

    def _record(self, name: str, it: tuple[Any, ...]) -> Any:
        return [name, *map(self.encoded, it)]

    def _number(self, words: tuple[str, ...]) -> int:
        number = self._numbers.get(words)
        if number is None:
            number = self._numbers[words] = len(self.words)
            self.words.append(words)
        return number

    def _ref(self, it: Ref) -> Any:
        return ["R", it[0], it[1], self._number(it[2]), self._number(it[3]), it[4]]

    def _constant(self, it: Constant) -> Any:
        value = it[2]
        return ["K", it[0], it[1], self.encoded(value) if type(value) in (bytes, complex) else value]

    def _call(self, it: Call) -> Any:
        args = [[arg[0], arg[1], arg[2], arg[3], self.encoded(arg[4])] for arg in it[3]]
        return ["C", it[0], it[1], self.encoded(it[2]), args, it[4]]


class _Reader:
    def __init__(self, words: list[tuple[str, ...]]) -> None:
        self._words = words
        self._calls: dict[tuple[int, int], tuple[Any, Call]] = {}
        self._readers: dict[Any, Callable[[Any], Any]] = {
            "R": lambda it: _new(Ref, (it[1], it[2], words[it[3]], words[it[4]], it[5])),
            "K": lambda it: _new(Constant, (it[1], it[2], self.decoded(it[3]) if type(it[3]) is list else it[3])),
            "C": self._call,
            "A": lambda it: _new(Attribute, (it[1], it[2], self.decoded(it[3]), it[4], it[5])),
            "S": lambda it: _new(Subscript, (it[1], it[2], self.decoded(it[3]), self._all(it[4]), it[5])),
            "L": lambda it: _new(Collection, (it[1], it[2], it[3], self._all(it[4]))),
            "O": lambda it: _new(Operation, (it[1], it[2], it[3], self._all(it[4]))),
            _PLAIN: lambda it: self._all(it[1:]),
            "bytes": lambda it: base64.b64decode(it[1], validate=True),
            "complex": lambda it: complex(it[1], it[2]),
        }
        for name, kind in _TYPES.items():
            self._readers[name] = partial(self._record, kind)

    def decoded(self, value: Any) -> Any:
        return self._readers[value[0]](value) if type(value) is list else value

    def _record(self, kind: type, it: list[Any]) -> Any:
        return kind(*map(self.decoded, it[1:]))

    def _all(self, values: list[Any]) -> tuple[Any, ...]:
        return tuple([self.decoded(each) for each in values])

    def _call(self, it: Any) -> Call:
        """A call that stands in a body and among what is assigned is one object, as it is where it was collected: it is
        known again by that.
        """
        known = self._calls.get((it[1], it[2]))
        if known is not None and known[0] == it:
            return known[1]
        args = tuple([_new(Arg, (arg[0], arg[1], arg[2], arg[3], self.decoded(arg[4]))) for arg in it[4]])
        found: Call = _new(Call, (it[1], it[2], self.decoded(it[3]), args, it[5]))
        self._calls[it[1], it[2]] = it, found
        return found
