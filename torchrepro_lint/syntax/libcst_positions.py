"""Spans of libcst nodes in the text: the only module that touches libcst's private parts.

libcst keeps no positions; its ``PositionProvider`` generates the code again and counts lines and columns at every token. Counting tokens
for the wanted nodes only, and turning the counts into offsets afterwards, gives the same spans in a seventh of the time. Where a libcst
release changes those internals, ``PositionProvider`` itself is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container
from itertools import accumulate
from typing import Any, TypeAlias

import libcst
from libcst._nodes.internal import CodegenState

from torchrepro_lint.source.text import Lines


class LostSource(Exception):  # noqa: N818  no error of ours
    """libcst does not reproduce the text that it has parsed, so positions are unknown."""


_Spans: TypeAlias = dict[libcst.CSTNode, tuple[int, int]]


class NodeSpans:
    """The spans of the nodes of one module; libcst's nodes are equal and hashed by identity."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, inner: _Spans, outer: _Spans) -> None:
        self._inner = inner
        self._outer = outer

    def inner(self, node: libcst.CSTNode) -> tuple[int, int]:
        """The span without the node's own parentheses, leading lines and trailing whitespace."""
        return self._inner[node]

    def find(self, node: libcst.CSTNode) -> tuple[int, int] | None:
        """``inner``, or None for a node whose type was not wanted."""
        return self._inner.get(node)

    def outer(self, node: libcst.CSTNode) -> tuple[int, int]:
        """The span of an expression with its own parentheses."""
        return self._outer.get(node) or self._inner[node]


class _Span:
    """Records the number of tokens before and after a node: a context manager without a generator's cost."""

    __slots__ = ("end_node", "node", "start", "start_node", "state")

    def __init__(
        self,
        state: _CountingState,
        node: libcst.CSTNode,
        start_node: libcst.CSTNode | None,
        end_node: libcst.CSTNode | None,
    ) -> None:
        self.state = state
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = len(self.state.tokens)

    def __exit__(self, *_: object) -> None:
        inner = self.state.inner
        start, end = self.start, len(self.state.tokens)
        if self.start_node is not None:
            start = inner.get(self.start_node, (start, end))[0]
        if self.end_node is not None:
            end = inner.get(self.end_node, (start, end))[1]
        inner[self.node] = (start, end)


class _NoSpan:
    """A context manager for nodes whose span is not wanted."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_NO_SPAN = _NoSpan()


# A compound statement ends where its last block, clause or statement ends, so these are recorded, too.
_ENDS = frozenset(
    {
        libcst.IndentedBlock,
        libcst.SimpleStatementSuite,
        libcst.SimpleStatementLine,
        libcst.Else,
        libcst.Finally,
        libcst.ExceptHandler,
        libcst.ExceptStarHandler,
        libcst.MatchCase,
        libcst.Pass,
        libcst.Global,
        libcst.Nonlocal,
    }
)

# Wanted types for which libcst records no syntactic position: their span is all that they generate.
_UNRECORDED = frozenset({libcst.Slice})


class _CountingState(CodegenState):
    """A code generation that records token counts."""

    def __init__(self, default_indent: str, default_newline: str, wanted: Container[type]) -> None:
        super().__init__(default_indent, default_newline)
        self.wanted = wanted
        self.inner: _Spans = {}
        self.outer: _Spans = {}
        self.open: list[int] = []

    def before_codegen(self, node: libcst.CSTNode) -> None:
        if getattr(node, "lpar", ()) or type(node) in _UNRECORDED:
            self.open.append(len(self.tokens))

    def after_codegen(self, node: libcst.CSTNode) -> None:
        if getattr(node, "lpar", ()):
            self.outer[node] = (self.open.pop(), len(self.tokens))
        elif type(node) in _UNRECORDED:
            self.inner[node] = (self.open.pop(), len(self.tokens))

    def record_syntactic_position(  # type: ignore[override]  # a plain context manager, not a generator's
        self,
        node: libcst.CSTNode,
        *,
        start_node: libcst.CSTNode | None = None,
        end_node: libcst.CSTNode | None = None,
    ) -> _Span | _NoSpan:
        kind = type(node)
        if kind in self.wanted or kind in _ENDS:
            return _Span(self, node, start_node, end_node)
        return _NO_SPAN


# Characters that libcst may leave out, so that an equal length does not prove an equal text.
_LOST = frozenset("\f\\")


def locate(tree: libcst.Module, text: str, wanted: Container[type]) -> NodeSpans:
    """The spans of all nodes of the wanted types (exact types) in ``text``, which ``tree`` was parsed from.

    Raises ``LostSource`` where the tree does not contain the whole text.
    """
    state = _CountingState(tree.default_indent, tree.default_newline, wanted)
    tree._codegen(state)  # noqa: SLF001  # this file is where private parts are touched
    ends = [0, *accumulate(map(len, state.tokens))]
    if ends[-1] != len(text) or (not _LOST.isdisjoint(text) and "".join(state.tokens) != text):
        # libcst may change newlines, drop a byte order mark, or drop blanks and form feeds before a statement. But it loses a
        # backslash and newline before a statement, and may move that statement into the function above (libcst 1.9).
        if tree.code.split() == text.lstrip("\ufeff").split():
            return by_provider(tree, text)
        # Blanks after the conversion in an f-string (Python 3.12) are lost, too.
        if "".join(tree.code.split()) == "".join(text.lstrip("\ufeff").split()):
            return _by_visible_characters(tree, text)
        raise LostSource
    ends.append(ends[-1])  # the newline that libcst removes at the end of a file without one

    def convert(spans: _Spans) -> _Spans:
        return {node: (ends[start], ends[end]) for node, (start, end) in spans.items()}

    return NodeSpans(convert(state.inner), convert(state.outer))


def _by_visible_characters(tree: libcst.Module, text: str) -> NodeSpans:
    """The same spans where blanks inside lines are lost: positions are matched by the count of non-blank characters before them."""
    from libcst.metadata import MetadataWrapper, PositionProvider, WhitespaceInclusivePositionProvider

    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    lines = Lines(tree.code)
    written, given = _visible_offsets(text), _visible_offsets(tree.code)

    def span(range_: Any) -> tuple[int, int]:
        first, last = (
            bisect_left(given, lines.offset(place.line, place.column + 1)) for place in (range_.start, range_.end)
        )
        return (written[first], written[last - 1] + 1) if first < last else (len(text), len(text))

    def convert(ranges: Any) -> _Spans:
        return {node: span(range_) for node, range_ in ranges.items()}

    whole = wrapper.resolve(WhitespaceInclusivePositionProvider)
    outer = {node: range_ for node, range_ in whole.items() if getattr(node, "lpar", ())}
    return NodeSpans(convert(wrapper.resolve(PositionProvider)), convert(outer))


def _visible_offsets(text: str) -> list[int]:
    """The offsets of all non-blank characters, without a byte order mark at the start."""
    return [at for at, letter in enumerate(text) if not letter.isspace() and (at or letter != "\ufeff")]


def by_provider(tree: libcst.Module, text: str) -> NodeSpans:
    """The same spans from libcst's public providers: slow; the reference in the tests."""
    from libcst.metadata import MetadataWrapper, PositionProvider, WhitespaceInclusivePositionProvider

    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    lines, lost = Lines(text), _lost(tree.code, text)

    def offset(place: Any) -> int:
        return lines.offset(place.line, max(place.column + lost.get(place.line, 0), 0) + 1)

    def convert(ranges: Any) -> _Spans:
        return {node: (offset(place.start), offset(place.end)) for node, place in ranges.items()}

    inner = convert(wrapper.resolve(PositionProvider))
    whole = wrapper.resolve(WhitespaceInclusivePositionProvider)
    return NodeSpans(inner, convert({node: place for node, place in whole.items() if getattr(node, "lpar", ())}))


def _lost(code: str, text: str) -> dict[int, int]:
    """By row, how many blanks and form feeds before the first token libcst loses; a negative number counts those that it adds."""
    if "\f" not in text:
        return {}
    written, given = Lines(text), Lines(code)
    rows = range(1, min(len(written), len(given)) + 1)
    found = {row: _indent(written.line(row)) - _indent(given.line(row)) for row in rows}
    return {row: count for row, count in found.items() if count}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t\f"))
