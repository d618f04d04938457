"""Serialization of syntax-tree nodes: compact JSON for the cache, and pickles between processes that share equal values.

A record is a list that begins with its tag, a plain tuple a list that begins with ``0``. Tuples of names, which repeat a lot, stand once
in a table and are numbered. A record that occurs at several places, as an assigned value does, is written once, and referred to by its
line (if that is another) and by the number of records completed before it there. The commonest records have functions of their own.
Small offsets are interned: thousands of nodes share them. ``file_encoding`` makes lines of these lists.
"""

from __future__ import annotations

import base64
import copyreg
from collections.abc import Callable, Iterable
from io import BytesIO
from sys import intern
from typing import Any

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax import nodes
from torchrepro_lint.syntax.nodes import (
    SHARED_LIMIT,
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    FrozenRecord,
    ModuleSummary,
    Node,
    Operation,
    Ref,
    Subscript,
    fields,
    make_ref,
    shared_number,
    shared_numbers,
)
from torchrepro_lint.syntax.qualified_names import interned_names, known_names

# Short tags of records that occur often; the other tags are the names of the classes.
_TAGS: dict[type, str] = {
    nodes.ExpressionStatement: "Do",
    nodes.SimpleStatement: "Leave",
    nodes.DefinitionStatement: "Define",
}
_TYPES: dict[str, Any] = {
    _TAGS.get(kind, name): kind
    for name, kind in vars(nodes).items()
    if isinstance(kind, type) and issubclass(kind, (FrozenRecord, tuple)) and kind not in (FrozenRecord, Node)
}
_PLAIN = 0
_AGAIN = "="
# Strings shorter than this are interned: most are names, which occur often.
_INTERNED_LENGTH = 40


def summary_json(summary: ModuleSummary) -> Any:
    """A module summary as JSON: its plain fields, then the table of names and the classes with their bases."""
    writer = Writer()
    classes = [[name, writer.all(bases)] for name, bases in summary.classes]
    return [*summary[:-1], [writer.words, classes]]


def summary_from(value: Any) -> ModuleSummary:
    """The module summary of a value of ``summary_json``."""
    *plain, (words, classes) = value
    reader = Reader(words)
    found = [(name, reader.all(bases)) for name, bases in classes]
    return ModuleSummary._make([*(_frozen(each) if type(each) is list else each for each in plain), tuple(found)])


def _frozen(value: list[Any]) -> tuple[Any, ...]:
    return tuple([_frozen(each) if type(each) is list else each for each in value])


class Writer:
    """Encodes nodes as JSON values for the line ``line``; ``words`` is the table of tuples of names, for all lines."""

    def __init__(self) -> None:
        self.words: list[tuple[str, ...]] = []
        self.line = 0
        self._numbers: dict[tuple[str, ...], int] = {}
        # By completed record: its line, and its number there.
        self._complete: dict[Any, tuple[int, int]] = {}
        self._counts: dict[int, int] = {}

    def line_of(self, value: Any) -> int | None:
        """The line in which a record was written; None for one that is repeated at each place, or not written yet."""
        known = self._complete.get(value)
        return None if known is None else known[0]

    def encoded(self, value: Any) -> Any:
        """A record, or a field of one, as a JSON value."""
        kind = type(value)
        if kind is Ref:
            return ["R", value.start, value.end, self.number(value.roots), self.number(value.path), value.base_end]
        write = _WRITERS.get(kind)
        if write is None:
            return value
        if kind in _REPEATED:
            return write(self, value)
        if (known := self._complete.get(value)) is not None:
            line, number = known
            return [_AGAIN, number] if line == self.line else [_AGAIN, number, line]
        written = write(self, value)
        number = self._counts.get(self.line, 0)
        self._counts[self.line] = number + 1
        self._complete[value] = self.line, number
        return written

    def all(self, values: Iterable[Any]) -> list[Any]:
        """Several values, encoded."""
        return [self.encoded(each) for each in values]

    def number(self, words: tuple[str, ...]) -> int:
        """The number of a tuple of names in the table."""
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


# Two halves of a surrogate pair side by side: JSON would read them as one character, so they are written as numbers.
_PAIR = lazy_pattern("[\ud800-\udbff][\udc00-\udfff]")
# These are repeated at each place: a reference would be no shorter.
_REPEATED = frozenset({Ref, Constant, tuple, bytes, complex})


def _writer_of(name: str) -> Callable[[Writer, Any], Any]:
    return lambda to, it: [name, *to.all(fields(it) if isinstance(it, FrozenRecord) else it)]


class Reader:
    """Decodes what a ``Writer`` encoded; ``complete`` are the records of the current line, ``elsewhere`` gives those of others.

    Equal offsets and short strings become one object, in different files, too.
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
        """A record that has been decoded before, perhaps in another line."""
        if len(it) == 2 or self.elsewhere is None:
            return self.complete[it[1]]
        return self.elsewhere(it[2])[it[1]]

    def decoded(self, value: Any) -> Any:
        """The value that ``Writer.encoded`` encoded."""
        kind = type(value)
        if kind is list:
            tag = value[0]
            if tag == "R":
                return self.ref(value)
            found = _READERS[tag](self, value)
            if tag not in _REPEATED_TAGS:
                self.complete.append(found)
            return found
        if kind is int:
            return shared_number(value)
        return intern(value) if kind is str and len(value) < _INTERNED_LENGTH else value

    def all(self, values: list[Any]) -> tuple[Any, ...]:
        """Several values, decoded."""
        return tuple([self.decoded(each) for each in values])

    def ref(self, it: Any) -> Any:
        """A reference."""
        _, start, end, roots, path, base_end = it
        return make_ref(start, end, self.words(roots), self.words(path), base_end)

    def head(self, it: Any) -> tuple[int, int]:
        """The start and end of a node."""
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
_REPEATED_TAGS = frozenset({_AGAIN, "K", _PLAIN, "bytes", "complex", "halves"})


def _reader_of(kind: Any) -> Callable[[Reader, Any], Any]:
    return lambda of, it: kind(*[of.decoded(each) for each in it[1:]])


for _name, _kind in _TYPES.items():
    _WRITERS.setdefault(_kind, _writer_of(_name))
    _READERS.setdefault(_name, _reader_of(_kind))


def pickled(value: Any) -> bytes:
    """A value as bytes for another process; raises ``RecursionError`` where it is nested too deeply."""
    import pickle  # a run in one process needs none

    data = BytesIO()
    pickler = pickle.Pickler(data, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCED
    pickler.dump(value)
    return data.getvalue()


def unpickled(data: bytes) -> Any:
    """The value that ``pickled`` encoded in a process of this run."""
    import pickle

    return pickle.loads(data)  # noqa: S301


def _make_interned_ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    return make_ref(
        start, end, known_names(roots) or interned_names(roots), known_names(path) or interned_names(path), base_end
    )


def _make_call(start: int, end: int, func: Any, args: Any, at: int) -> Any:
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return Call(shared[start], shared[end], func, args, shared[at])
    return Call(start, end, func, args, at)


def _make_node(kind: type, start: int, end: int, *rest: Any) -> Any:
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return kind(shared[start], shared[end], *rest)
    return kind(start, end, *rest)


def _reduce_node(it: Any) -> tuple[Any, ...]:
    return _make_node, (type(it), *fields(it))


_REDUCED: dict[type, Any] = {
    **copyreg.dispatch_table,
    **{
        kind: _reduce_node
        for kind in vars(nodes).values()
        if isinstance(kind, type) and issubclass(kind, Node) and kind is not Node
    },
    Ref: lambda it: (_make_interned_ref, fields(it)),
    Call: lambda it: (_make_call, fields(it)),
}
