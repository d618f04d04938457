"""Encoding of a syntax tree as lines of text that are decoded on demand: linking asks most files for one function.

The first line is about the whole file: its top level and classes, the outlines of its functions, which functions call which
identifiers, and the variables outside functions. Each function has two more, for its parameters and its body; the variables that are
assigned in it are in the latter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from torchrepro_lint.syntax.nodes import (
    AssignedValues,
    Class,
    Expression,
    Function,
    ModuleSummary,
    Param,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import enclosing_function
from torchrepro_lint.syntax.serialization import Reader, Writer


def encode_tree(facts: SyntaxTree) -> str:
    """The ASCII text of a syntax tree without its summary; equal trees give equal texts."""
    return _LineEncoder(facts).text()


def decode_tree(text: str, summary: ModuleSummary) -> SyntaxTree:
    """The syntax tree of an ``encode_tree`` text; functions and variables are decoded on demand.

    Raises ``ValueError`` where the first line is malformed. The others are not checked: the file store has a signed digest of them.
    """
    return cast("SyntaxTree", LazySyntaxTree(_EncodedFile(text), summary))


class _LineEncoder:
    """Encodes a syntax tree as lines."""

    def __init__(self, facts: SyntaxTree) -> None:
        self._facts = facts
        self._writer = Writer()

    def text(self) -> str:
        facts, writer = self._facts, self._writer
        top = [writer.all(facts.body), writer.all(facts.classes)]
        lines = [line for number, each in enumerate(facts.functions) for line in self._of_function(number, each)]
        variables: dict[int, list[str]] = {}
        scopes = {each.name: _body_line(number) for number, each in enumerate(facts.functions)}
        for name, values in facts.assigned.items():
            at = self._line_of(name, values, scopes)
            writer.line = at
            variables.setdefault(at, []).append(name)
            (lines[at - 1] if at else top).append([[how, writer.encoded(value)] for how, value in values])
        outlines = [[each.start, each.end, each.name, each.owner, each.generator] for each in facts.functions]
        places = [[at, names] for at, names in sorted(variables.items())]
        first = [writer.words, outlines, _callers(facts), places, facts.imports_end, *top]
        return "\n".join(json.dumps(each, separators=(",", ":"), check_circular=False) for each in (first, *lines))

    def _of_function(self, number: int, function: Function) -> Iterator[list[Any]]:
        writer = self._writer
        writer.line = _head_line(number)
        params = [
            [each.name, each.kind, writer.encoded(each.annotation), writer.encoded(each.default)]
            for each in function.params
        ]
        yield [params, writer.all(function.decorators), writer.encoded(function.returns)]
        writer.line = _body_line(number)
        yield [writer.all(function.body)]

    def _line_of(self, name: str, values: AssignedValues, scopes: Mapping[str, int]) -> int:
        """The line of a variable: that of the function in which its values stand or whose local variable it is; else the first."""
        lines = {line for _, value in values if (line := self._writer.line_of(value)) is not None}
        if not lines:
            return scopes.get(enclosing_function(name), 0)
        return last + last % 2 if (last := max(lines)) else 0


def _head_line(number: int) -> int:
    return 2 * number + 1


def _body_line(number: int) -> int:
    return 2 * number + 2


def _callers(facts: SyntaxTree) -> dict[str, list[int]]:
    """The bodies that call something by an identifier: 0 is the top level, others are the functions' numbers plus one."""
    from torchrepro_lint.syntax.summary import identifiers_of  # what is read back has them already

    found: dict[str, list[int]] = {}
    for number, body in enumerate((facts.body, *(each.body for each in facts.functions))):
        for word in sorted(identifiers_of(body).calls):
            found.setdefault(word, []).append(number)
    return found


class _EncodedFile:
    """The lines of an encoded file, each decoded when it is first needed."""

    def __init__(self, text: str) -> None:
        self._texts = text.split("\n")
        self._lines: dict[int, Any] = {}
        self._complete: dict[int, list[Any]] = {}
        try:
            words, self.outlines, self.callers, places, self.imports_end, body, classes, *values = self._raw(0)
            self._reader = Reader(words, self._complete_of)
            self.body: tuple[Statement, ...] = self._all(0, body)
            self.classes: tuple[Class, ...] = self._all(0, classes)
            self._lines[0] = self.body, [self._values(0, each) for each in values]
            self.places: dict[str, tuple[int, int]] = {
                name: (line, index) for line, names in places for index, name in enumerate(names)
            }
        except (KeyError, TypeError, IndexError, RecursionError, AttributeError) as error:
            raise ValueError(f"no facts: {error}") from error

    def head(self, number: int) -> tuple[tuple[Param, ...], tuple[Expression, ...], Expression | None]:
        """The parameters, decorators and return annotation of a function."""
        found: tuple[tuple[Param, ...], tuple[Expression, ...], Expression | None] = self._line(_head_line(number))
        return found

    def body_of(self, number: int) -> tuple[Statement, ...]:
        """The body of a function."""
        found: tuple[Statement, ...] = self._line(_body_line(number))[0]
        return found

    def assigned(self, name: str) -> AssignedValues | None:
        """The values assigned to a variable; None where it is no variable."""
        place = self.places.get(name)
        return None if place is None else self._line(place[0])[1][place[1]]

    def _line(self, line: int) -> Any:
        if line not in self._lines:
            raw = self._raw(line)
            self._lines[line] = self._decoded_head(line, raw) if line % 2 else self._decoded_body(line, raw)
        return self._lines[line]

    def _raw(self, line: int) -> Any:
        text, self._texts[line] = self._texts[line], ""
        return json.loads(text)

    def _decoded_head(self, line: int, raw: Any) -> Any:
        params, decorators, returns = raw
        found = tuple([Param(name, kind, *self._all(line, rest)) for name, kind, *rest in params])
        return found, self._all(line, decorators), self._all(line, [returns])[0]

    def _decoded_body(self, line: int, raw: Any) -> Any:
        body, *values = raw
        return self._all(line, body), [self._values(line, each) for each in values]

    def _values(self, line: int, values: Any) -> AssignedValues:
        return tuple([(how, self._all(line, [value])[0]) for how, value in values])

    def _all(self, line: int, values: list[Any]) -> tuple[Any, ...]:
        reader = self._reader
        outer, reader.complete = reader.complete, self._complete.setdefault(line, [])
        try:
            return reader.all(values)
        finally:
            reader.complete = outer

    def _complete_of(self, line: int) -> list[Any]:
        self._line(line)
        return self._complete[line]


class LazyFunction(Function):
    """A function whose parameters and body are decoded on demand."""

    stored: _EncodedFile
    number: int

    @property
    def params(self) -> tuple[Param, ...]:
        return self.stored.head(self.number)[0]

    @property
    def decorators(self) -> tuple[Expression, ...]:
        return self.stored.head(self.number)[1]

    @property
    def returns(self) -> Expression | None:
        return self.stored.head(self.number)[2]

    @property
    def body(self) -> tuple[Statement, ...]:
        return self.stored.body_of(self.number)


class LazySyntaxTree:
    """A ``SyntaxTree`` whose functions and variables are decoded on demand."""

    def __init__(self, stored: _EncodedFile, summary: ModuleSummary) -> None:
        self._stored = stored
        self.summary = summary
        self.body = stored.body
        self.classes = stored.classes
        self.imports_end = stored.imports_end

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """As ``Summary`` has them."""
        return self.summary.exports

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions, each decoded on demand."""
        return tuple(self._function(number, *each) for number, each in enumerate(self._stored.outlines))

    def _function(self, number: int, start: int, end: int, name: str, owner: str | None, generator: bool) -> Function:
        found: LazyFunction = LazyFunction(start, end, name, (), (), (), owner, generator, None)
        found.stored = self._stored
        found.number = number
        return found

    @cached_property
    def assigned(self) -> Mapping[str, AssignedValues]:
        """The definition table, each variable decoded on demand."""
        return _LazyDefinitionTable(self._stored)

    def bodies_calling(self, word: str) -> Sequence[int]:
        """See ``SyntaxTree``."""
        found: Sequence[int] = self._stored.callers.get(word, ())
        return found


class _LazyDefinitionTable(Mapping[str, AssignedValues]):
    def __init__(self, stored: _EncodedFile) -> None:
        self._stored = stored

    def get(self, name: str, default: Any = None) -> Any:
        found = self._stored.assigned(name)
        return default if found is None else found

    def __getitem__(self, name: str) -> AssignedValues:
        found = self._stored.assigned(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._stored.places))

    def __len__(self) -> int:
        return len(self._stored.places)
