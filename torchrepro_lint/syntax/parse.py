"""Parsing: a source text to its syntax tree, by Python's own parser where that can be trusted, else by libcst's.

Texts nested so deeply that a parser would crash or hang are refused before it is asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source import ipython
from torchrepro_lint.source.text import MAX_ANALYSED_CHARACTERS, Lines
from torchrepro_lint.syntax.ast_tree import AstTree
from torchrepro_lint.syntax.lowering import TreeLowering
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.syntax.scope_builder import UnreliableTree

if TYPE_CHECKING:
    import libcst


# libcst's parser is recursive and crashes at about 3,000 levels; Python itself stops at 200.
_MAX_DEPTH = 400
# A chain of method calls or operators nests as deeply as it is long, and libcst needs quadratic time for it.
_MAX_CHAIN = 500
# The first link is written out: a search for a pattern that begins with a literal is many times faster.
_METHOD = r"\.\w+\([^()\n]*\)\s*"
_METHODS = re.compile(rf"{_METHOD}(?:{_METHOD}){{{_MAX_CHAIN - 1}}}")
_OPERATORS = re.compile(rf"(?:\b\w+[ \t]*(?:[-+*/%@&|^]|<<|>>)[ \t]*){{{_MAX_CHAIN}}}")
_BRACKET = re.compile(r"[\[({]|[\])}]")
# Comments and strings, in which brackets do not count; an unclosed string extends to the end. Each matches in linear time.
_HIDDEN = (
    r"#[^\r\n]*"
    r"|\"{3}(?s:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}(?s:\\.|[^\\])*?(?:'{3}|\Z)"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"?|'(?:\\(?s:.)|[^'\\\r\n])*'?"
)
_REAL_BRACKET = re.compile(rf"[\[({{]|[\])}}]|{_HIDDEN}")
_OPENING = frozenset("[({")


# Tokens that separate expressions, and tokens that join their parts.
_PIECE = re.compile(
    rf"(?P<hidden>{_HIDDEN}|\\\r?\n)|(?P<opens>[\[({{])|(?P<closes>[\])}}])|(?P<parts>[,;])|(?P<ends>[\r\n])"
    r"|(?P<joins>[-+*/%@&|^~.<>]+|\b(?:and|or|not|if|else|lambda|await)\b)"
)


class TooDeep(NamedTuple):
    """Why a text is refused, and where."""

    message: str
    offset: int


def long_chain(text: str) -> TooDeep | None:
    """The first chain of too many method calls, or of too many operators on one line."""
    starts = [match.start() for match in (_methods(text), _operators(text)) if match is not None]
    if not starts:
        return None
    return TooDeep(f"nested too deeply to analyse: a chain of more than {_MAX_CHAIN} operations", min(starts))


def long_expression(text: str) -> TooDeep | None:
    """The first expression with too many operators, words or brackets in a row, over however many lines.

    libcst's parser needs quadratic time for it, or crashes. For texts that Python's own parser has refused.
    """
    links = [0]
    for piece in _PIECE.finditer(text):
        match piece.lastgroup:
            case "joins":
                links[-1] += len(piece[0]) if piece[0][0] in "-+~" else 1
            case "opens":
                links[-1] += 1
                links.append(0)
            case "closes" if len(links) > 1:
                links.pop()
            case "parts":
                links[-1] = 0
            case "ends" if len(links) == 1:
                links[-1] = 0
        if links[-1] > _MAX_CHAIN:
            return TooDeep(f"nested too deeply to analyse: a chain of more than {_MAX_CHAIN} operations", piece.start())
    return None


def _methods(text: str) -> re.Match[str] | None:
    return _METHODS.search(text) if text.count(")") >= _MAX_CHAIN else None


def _operators(text: str) -> re.Match[str] | None:
    """Each link takes at least two characters, so only long lines are searched."""
    longest = max(map(len, text.split("\n")))
    return _OPERATORS.search(text) if longest >= 2 * _MAX_CHAIN else None


def deep_brackets(text: str) -> TooDeep | None:
    """The first bracket inside too many open brackets; a cheap upper bound is tried first."""
    if _deepest(_BRACKET, text) is None or (offset := _deepest(_REAL_BRACKET, text)) is None:
        return None
    return TooDeep(f"nested too deeply to analyse: more than {_MAX_DEPTH} open brackets", offset)


def _deepest(pattern: re.Pattern[str], text: str) -> int | None:
    depth = 0
    for match in pattern.finditer(text):
        if match[0] in _OPENING:
            depth += 1
            if depth > _MAX_DEPTH:
                return match.start()
        elif len(match[0]) == 1 and match[0] in "])}":
            depth = max(depth - 1, 0)
    return None


class ParseError(Exception):
    """The text cannot be analysed; ``offset`` is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def parse_module(text: str, parser: str = "auto") -> SyntaxTree:
    """The syntax tree of a module's text. Raises ParseError where it is not Python, nested too deeply, or too large.

    ``parser`` is that of the settings: with ``libcst`` Python's own parser is not used.
    """
    if len(text) > MAX_ANALYSED_CHARACTERS:
        raise ParseError(
            f"too large to analyse: {len(text):,} characters, where {MAX_ANALYSED_CHARACTERS:,} are the most", 0
        )
    if deep := long_chain(text):
        raise ParseError(*deep)
    quick = parse_with_ast(text) if parser == "auto" else None
    return quick or parse_with_libcst(text)


def parse_with_ast(text: str) -> SyntaxTree | None:
    """The syntax tree from Python's own parser; None where that fails or cannot be trusted."""
    try:
        return TreeLowering(AstTree(text)).lower()
    except (*ipython.PARSER_ERRORS, UnreliableTree, RecursionError):
        return None


def parse_with_libcst(text: str) -> SyntaxTree:
    """The syntax tree from libcst: the reference, and the source of messages about syntax errors."""
    import libcst

    from torchrepro_lint.syntax.libcst_positions import LostSource
    from torchrepro_lint.syntax.libcst_tree import LibcstTree, reason

    if deep := deep_brackets(text) or long_expression(text):
        raise ParseError(*deep)
    try:
        return TreeLowering(LibcstTree(text)).lower()
    except libcst.ParserSyntaxError as error:
        raise ParseError(reason(error), _error_offset(error, text)) from error
    except libcst.CSTValidationError as error:  # accepted by its parser, but not by Python
        raise ParseError(str(error).rstrip(".").lower(), _python_error_offset(Lines(text), text) or 0) from error
    except UnicodeEncodeError as error:
        raise ParseError("half of a surrogate pair, which is no character", error.start) from error
    except LostSource as error:
        raise ParseError("a line that goes on before the first statement", 0) from error
    except RecursionError as error:
        raise ParseError("nested too deeply to analyse", 0) from error


def _error_offset(error: libcst.ParserSyntaxError, text: str) -> int:
    """The offset of a syntax error. libcst gives the start of a line, or a token too late; Python's parser is exact.

    Where Python accepts the text, libcst's place is used.
    """
    lines = Lines(text)
    place = _python_error_offset(lines, text)
    return lines.offset(error.raw_line, error.raw_column + 1) if place is None else place


def _python_error_offset(lines: Lines, text: str) -> int | None:
    """The offset of the error that Python's parser reports; None where it reports none."""
    try:
        ipython.parse(text)
    except SyntaxError as exact:
        if exact.lineno:
            return lines.offset(exact.lineno, max(exact.offset or 1, 1))
    except ipython.PARSER_ERRORS:
        pass  # a NUL, or nested too deeply for Python
    return None
