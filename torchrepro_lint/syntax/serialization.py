"""Serialization of syntax-tree nodes: compact JSON for the cache, and pickles between processes that share equal values.

A record is a list that begins with its tag, a plain tuple a list that begins with ``0``. Tuples of names, which repeat a lot, stand once
in a table and are numbered. A record that occurs at several places, as an assigned value does, is written once, and referred to by its
line (if that is another) and by the number of records completed before it there. The commonest records have functions of their own.
Small offsets are interned: thousands of nodes share them. ``file_encoding`` makes lines of these lists.
"""

from __future__ import annotations

import base64
import copyreg
import pickle
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from io import BytesIO
from sys import intern
from typing import Any

from torchrepro_lint.query.memo_tables import interned_names, known_names
from torchrepro_lint.syntax import nodes
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    FrozenRecord,
    ModuleSummary,
    Operation,
    Ref,
    Subscript,
    fields,
)

# Texts of up to so many letters share the numbers of their offsets: a project has ten of each letter.
SHARED_LIMIT = 1 << 17


@cache
def shared_numbers() -> Sequence[int]:
    """The numbers below ``SHARED``, each at its place."""
    return [*range(SHARED_LIMIT)]


def shared_number(value: int) -> int:
    """A whole number: the same object for all that ask, if it is a likely offset."""
    return shared_numbers()[value] if 0 <= value < SHARED_LIMIT else value


def make_ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    """A reference whose offsets are shared."""
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return Ref(shared[start], shared[end], roots, path, shared[base_end])
    return Ref(start, end, roots, path, base_end)


# Short tags of records that occur often; the other tags are the names of the classes.
_TAGS: dict[type, str] = {
    nodes.ExpressionStatement: "Do",
    nodes.SimpleStatement: "Leave",
    nodes.DefinitionStatement: "Define",
}
_TYPES: dict[str, Any] = {
    _TAGS.get(kind, name): kind
    for name, kind in vars(nodes).items()
    if isinstance(kind, type) and issubclass(kind, (FrozenRecord, tuple)) and kind is not FrozenRecord
}
_PLAIN = 0
_AGAIN = "="
# Texts of so many letters are most likely names, of which a project has each often.
_SHORT = 40


def summary_json(summary: ModuleSummary) -> Any:
    """A summary as what JSON can hold: its plain fields, and at the end its classes with the words of their bases."""
    writer = Writer()
    classes = [[name, writer.all(bases)] for name, bases in summary.classes]
    return [*summary[:-1], [writer.words, classes]]


def summary_from(value: Any) -> ModuleSummary:
    """The summary that ``summary_json`` made a value of."""
    *plain, (words, classes) = value
    reader = Reader(words)
    found = [(name, reader.all(bases)) for name, bases in classes]
    return ModuleSummary._make([*(_frozen(each) if type(each) is list else each for each in plain), tuple(found)])


def _frozen(value: list[Any]) -> tuple[Any, ...]:
    return tuple([_frozen(each) if type(each) is list else each for each in value])


class Writer:
    """Encodes records for the line ``line``; ``words`` is the table of tuples of words, of all lines."""

    def __init__(self) -> None:
        self.words: list[tuple[str, ...]] = []
        self.line = 0
        self._numbers: dict[tuple[str, ...], int] = {}
        # The lines in which records stand, by their identity, and the numbers of those that are complete there.
        self._complete: dict[int, tuple[int, int]] = {}
        self._counts: dict[int, int] = {}

    def line_of(self, value: Any) -> int | None:
        """The line in which a record is written; None for one that is written at each place, or nowhere yet."""
        known = self._complete.get(id(value))
        return None if known is None else known[0]

    def encoded(self, value: Any) -> Any:
        """A record, or what is in one, as JSON can hold it."""
        kind = type(value)
        if kind is Ref:
            return ["R", value.start, value.end, self.number(value.roots), self.number(value.path), value.base_end]
        write = _WRITERS.get(kind)
        if write is None:
            return value
        if kind in _SMALL:
            return write(self, value)
        complete, key = self._complete, id(value)
        if key in complete:
            line, number = complete[key]
            return [_AGAIN, number] if line == self.line else [_AGAIN, number, line]
        written = write(self, value)
        number = self._counts.get(self.line, 0)
        self._counts[self.line] = number + 1
        complete[key] = self.line, number
        return written

    def all(self, values: Iterable[Any]) -> list[Any]:
        """Several of them."""
        return [self.encoded(each) for each in values]

    def number(self, words: tuple[str, ...]) -> int:
        """The number of a tuple of words."""
        number = self._numbers.get(words)
        if number is None:
            number = self._numbers[words] = len(self.words)
            self.words.append(words)
        return number


def _written_constant(to: Writer, it: Constant) -> Any:
    value: Any = it.value
    if type(value) in (bytes, complex):
        value = to.encoded(value)
    elif type(value) is str and not value.isascii() and _PAIR.search(value):
        value = ["halves", [*map(ord, value)]]
    return ["K", it.start, it.end, value]


def _written_call(to: Writer, it: Call) -> Any:
    func = to.encoded(it.func)  # first, as it is read
    args = [[arg.start, arg.end, arg.keyword, arg.star, to.encoded(arg.value)] for arg in it.args]
    return ["C", it.start, it.end, func, args, it.open]


_WRITERS: dict[type, Callable[[Writer, Any], Any]] = {
    Constant: _written_constant,
    Call: _written_call,
    Attribute: lambda to, it: ["A", it.start, it.end, to.encoded(it.value), it.name, it.base_end],
    Subscript: lambda to, it: ["S", it.start, it.end, to.encoded(it.value), to.all(it.indices), it.base_end],
    Collection: lambda to, it: ["L", it.start, it.end, it.kind, to.all(it.items)],
    Operation: lambda to, it: ["O", it.start, it.end, it.op, to.all(it.operands)],
    tuple: lambda to, it: [_PLAIN, *to.all(it)],
    bytes: lambda _, it: ["bytes", base64.b64encode(it).decode("ascii")],
    complex: lambda _, it: ["complex", it.real, it.imag],
}


# Halves of a surrogate pair side by side, as an escape each: JSON would take them for the one letter that they stand for.
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# They are written at each place: a number would be no shorter.
_SMALL = frozenset({Ref, Constant, tuple, bytes, complex})


def _writer_of(name: str) -> Callable[[Writer, Any], Any]:
    return lambda to, it: [name, *to.all(fields(it) if isinstance(it, FrozenRecord) else it)]


class Reader:
    """Reads what a ``Writer`` wrote; ``complete`` are the records of the line that is being read, ``elsewhere`` gives those
    of others. Equal offsets and short texts become one object, also in different files: there are many of each.
    """

    __slots__ = ("_words", "complete", "elsewhere")

    def __init__(self, words: list[Any], elsewhere: Callable[[int], list[Any]] | None = None) -> None:
        self._words = words
        self.elsewhere = elsewhere
        self.complete: list[Any] = []

    def words(self, number: int) -> tuple[str, ...]:
        """A tuple of words by its number."""
        found = self._words[number]
        if type(found) is list:
            found = self._words[number] = tuple([intern(each) for each in found])
        return found  # type: ignore[no-any-return]

    def again(self, it: Any) -> Any:
        """A record that has been read before, perhaps of another line."""
        if len(it) == 2 or self.elsewhere is None:
            return self.complete[it[1]]
        return self.elsewhere(it[2])[it[1]]

    def decoded(self, value: Any) -> Any:
        """What ``encoded`` was given."""
        kind = type(value)
        if kind is list:
            tag = value[0]
            if tag == "R":
                return self.ref(value)
            found = _READERS[tag](self, value)
            if tag not in _SMALL_TAGS:
                self.complete.append(found)
            return found
        if kind is int:
            return shared_number(value)
        return intern(value) if kind is str and len(value) < _SHORT else value

    def all(self, values: list[Any]) -> tuple[Any, ...]:
        """Several of them."""
        return tuple([self.decoded(each) for each in values])

    def ref(self, it: Any) -> Any:
        """A reference."""
        _, start, end, roots, path, base_end = it
        return make_ref(start, end, self.words(roots), self.words(path), base_end)

    def head(self, it: Any) -> tuple[int, int]:
        """The place of a record."""
        return shared_number(it[1]), shared_number(it[2])

    def call(self, it: Any) -> Call:
        """A call."""
        func = self.decoded(it[3])
        return Call(*self.head(it), func, self.args(it[4]), shared_number(it[5]))

    def args(self, args: list[Any]) -> tuple[Arg, ...]:
        """The arguments of a call."""
        return tuple(
            [
                Arg(shared_number(start), shared_number(end), keyword and intern(keyword), star, self.decoded(value))
                for start, end, keyword, star, value in args
            ]
        )


_READERS: dict[Any, Callable[[Reader, Any], Any]] = {
    _AGAIN: lambda of, it: of.again(it),
    "K": lambda of, it: Constant(*of.head(it), of.decoded(it[3])),
    "C": Reader.call,
    "A": lambda of, it: Attribute(*of.head(it), of.decoded(it[3]), of.decoded(it[4]), of.decoded(it[5])),
    "S": lambda of, it: Subscript(*of.head(it), of.decoded(it[3]), of.all(it[4]), of.decoded(it[5])),
    "L": lambda of, it: Collection(*of.head(it), of.decoded(it[3]), of.all(it[4])),
    "O": lambda of, it: Operation(*of.head(it), of.decoded(it[3]), of.all(it[4])),
    _PLAIN: lambda of, it: of.all(it[1:]),
    "bytes": lambda _, it: base64.b64decode(it[1], validate=True),
    "complex": lambda _, it: complex(it[1], it[2]),
    "halves": lambda _, it: "".join(map(chr, it[1])),
}
_SMALL_TAGS = frozenset({_AGAIN, "K", _PLAIN, "bytes", "complex", "halves"})


def _reader_of(kind: Any) -> Callable[[Reader, Any], Any]:
    return lambda of, it: kind(*[of.decoded(each) for each in it[1:]])


for _name, _kind in _TYPES.items():
    _WRITERS.setdefault(_kind, _writer_of(_name))
    _READERS.setdefault(_name, _reader_of(_kind))


def pickled(value: Any) -> bytes:
    """A value as bytes; raises ``RecursionError`` for one that is nested too deeply."""
    data = BytesIO()
    pickler = pickle.Pickler(data, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCED
    pickler.dump(value)
    return data.getvalue()


def unpickled(data: bytes) -> Any:
    """The value that ``packed``, in a process of this run, was given."""
    return pickle.loads(data)  # noqa: S301


def _ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    return make_ref(
        start, end, known_names(roots) or interned_names(roots), known_names(path) or interned_names(path), base_end
    )


def _call(start: int, end: int, func: Any, args: Any, at: int) -> Any:
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return Call(shared[start], shared[end], func, args, shared[at])
    return Call(start, end, func, args, at)


def _placed(kind: type, start: int, end: int, *rest: Any) -> Any:
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return kind(shared[start], shared[end], *rest)
    return kind(start, end, *rest)


def _reduce_placed(it: Any) -> tuple[Any, ...]:
    return _placed, (type(it), *fields(it))


_REDUCED: dict[type, Any] = {
    **copyreg.dispatch_table,
    **{
        kind: _reduce_placed
        for kind in vars(nodes).values()
        if isinstance(kind, type) and issubclass(kind, FrozenRecord) and kind.__struct_fields__[:2] == ("start", "end")
    },
    Ref: lambda it: (_ref, fields(it)),
    Call: lambda it: (_call, fields(it)),
}
