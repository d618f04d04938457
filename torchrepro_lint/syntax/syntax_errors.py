"""Syntax errors: where a text stops being Python, and why, in words for people; and ``async`` as a name, which is read all the same.

Python's own parser says best what is wrong, and where. Its words are replaced where they do not name the cause: Python 2, a merge
conflict, a shell command of a notebook, a file of another kind. A text nested so deeply that a parser would crash or hang is refused
before it is asked.

``async`` is a keyword since Python 3.7; PyTorch 0.3 had it as a name, in ``x.cuda(async=True)``. Such a text is parsed with another
word of the same length in these places, so that all offsets stay. The word that was written is put back into the parser's tree. Other
names may have another form in the tree than in the text, too: Python normalises them.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import PARSER_ERRORS, Lines, parse
from torchrepro_lint.syntax.tokens import HIDDEN

if TYPE_CHECKING:
    import libcst


class SyntaxProblem(NamedTuple):
    """Why a text is not Python, or refused, and the offset where that shows."""

    message: str
    offset: int


_LOST = "nothing else in this file was analysed"
_CELL_LOST = "nothing else in this cell was analysed"
_OLD = "this is Python 2"
# The beginnings of files of another kind.
_OTHER_FILES = (
    (
        lazy_pattern(r"version https://git-lfs\.github\.com/spec/"),
        "a pointer of Git LFS instead of the file; run git lfs pull",
    ),
    (lazy_pattern(r"\s*(?:<!doctype html|<html)\b", re.IGNORECASE), "an HTML page instead of Python code"),
)
# What a line with an error shows. The first that fits is the cause.
_LINES = (
    (lazy_pattern(r"(?:<{7}|\|{7}|={7}|>{7})(?:\s|$)"), "an unresolved merge conflict"),
    (
        lazy_pattern(r"\s*(?:[^#\"']*[:;]\s*)?print\b\s*(?:>>|[^\s(=.,:;)\]}])"),
        f"{_OLD}: print is a function since Python 3.0",
    ),
    (lazy_pattern(r"\s*(?:[^#\"']*[:;]\s*)?exec\b\s*[^\s(=.,:;)\]}]"), f"{_OLD}: exec is a function since Python 3.0"),
    (lazy_pattern(r"\s*raise\s+[\w.]+\s*,"), f"{_OLD}: Python 3 has raise Error(value) instead of raise Error, value"),
    (lazy_pattern(r"\s*else\s+if\b"), "Python has elif instead of else if"),
    (lazy_pattern(r"\s*>>> "), "a prompt of the interpreter, which is no code"),
    (lazy_pattern(r"\s*%%?[A-Za-z]|\s*!\s*[\w./]"), "a command of IPython, which only a notebook can have"),
    (lazy_pattern(r".*(?:\{%|%\}|\{\{)"), "markers of a template; leave the file out with extend-exclude"),
)
# What stands where the error is.
_PLACES = (
    (lazy_pattern("`"), f"{_OLD}: Python 3 has repr(value) instead of backticks"),
    (lazy_pattern("<>"), f"{_OLD}: Python 3 has != instead of <>"),
    (lazy_pattern(r"""(?<=[uU][rR])["']"""), f'{_OLD}: Python 3 has no strings with the prefix "ur"'),
    (lazy_pattern(r"(?<=\d)[lL]\b"), f"{_OLD}: Python 3 has no suffix L of integers"),
    (lazy_pattern("\0"), "a NUL character, which no Python file has"),
)
_TOKEN = lazy_pattern(r"\w+|[^\w\s][=>*/]?")
_FSTRINGS_NEST = (3, 12)
# What is wrong with a longer line is looked for at its beginning.
_MAX_LINE = 200
# The longest keyword has eight letters.
_MAX_KEYWORD = 20


# What Python's parser says of texts that no release of Python reads, and no other parser.
_CERTAIN = lazy_pattern(
    r"inconsistent use of tabs and spaces|unindent does not match|unexpected indent|unterminated string literal"
)
_OLD_STATEMENT = lazy_pattern(r"Missing parentheses in call to '(?:print|exec)'")
# An operator behind the word makes an expression of it, and a keyword may do so.
_OLD_OPERAND = lazy_pattern(r"(?:print|exec)[ \t]+(?:[\"'\d]|([^\W\d]\w*))")
# In such a string an older Python sees other tokens than a newer one.
_UNSURE = lazy_pattern(r"(?i)\b(?:[ft]r?|r[ft])(?:[\"'][^\n]*\{|\"{3}|'{3})")
# Behind a backslash libcst may say something else of the indentation.
_CONTINUED = lazy_pattern(r"\\[\r\n]")


def certain_problem(text: str) -> SyntaxProblem | None:
    """The problem of a text that is certainly not Python, without libcst; None where only libcst can tell.

    It is what ``explain`` says of such a text. The running Python alone cannot decide: what it refuses may be the syntax of a newer one.
    """
    replaced = with_stand_in(text)
    lines = Lines(replaced[0]) if replaced else Lines(text)
    offset, message = _python_error(lines)
    if offset is None or "\0" in text or _UNSURE.search(text, 0, offset):
        return None
    if (_CERTAIN.match(message) and not _CONTINUED.search(text)) or (
        _OLD_STATEMENT.match(message) and _is_old_statement(text, offset)
    ):
        return _problem(text, offset, message)
    return None


def _is_old_statement(text: str, offset: int) -> bool:
    """Whether a statement of Python 2 with this word stands there: two names or literals follow one another."""
    match = _OLD_OPERAND.match(text, offset)
    return match is not None and not (match[1] and keyword.iskeyword(match[1]))


def explain(text: str, error: libcst.ParserSyntaxError) -> SyntaxProblem:
    """The problem of a text that libcst cannot parse."""
    lines, replaced = Lines(text), with_stand_in(text)
    offset, message = _python_error(Lines(replaced[0]) if replaced else lines, error.raw_line)
    if "\0" in text:
        offset = text.index("\0")
    elif offset is None:
        offset = lines.offset(error.raw_line, error.raw_column + 1)
        message = _of_tokenizer(error.message)
    return _problem(text, offset, message)


def _problem(text: str, offset: int, message: str) -> SyntaxProblem:
    cause = _cause(Lines(text), offset) or _in_plain_words(message) or _unexpected(text, offset)
    return SyntaxProblem(f"{cause}; {_LOST}", offset)


def in_cell(message: str) -> str:
    """The message of a problem that only one cell of a notebook has: the others are analysed."""
    return message.replace(_LOST, _CELL_LOST)


def refused(text: str, message: str) -> SyntaxProblem:
    """The problem of a text that libcst parses and then refuses, with its message."""
    offset, _ = _python_error(Lines(text))
    return SyntaxProblem(f"{message.rstrip('.').lower()}; {_LOST}", offset or 0)


def _python_error(lines: Lines, row: int = 0) -> tuple[int | None, str]:
    """The offset and message of Python's own parser; None where it reports no error, or one that only this Python has.

    ``row`` is where libcst reports one.
    """
    try:
        parse(lines.text)
    except SyntaxError as exact:
        is_old = sys.version_info < _FSTRINGS_NEST and exact.msg.startswith("f-string") and exact.lineno != row
        if exact.lineno and not is_old:
            return lines.offset(exact.lineno, max(exact.offset or 1, 1)), exact.msg
    except PARSER_ERRORS:
        pass  # a NUL, or nested too deeply for Python
    return None, ""


def _of_tokenizer(message: str) -> str:
    """What libcst's tokenizer says; its parser lists all tokens that may follow, which helps nobody."""
    found = re.search(r"tokenizer error: (.*)", message)
    return found[1] if found else ""


def _cause(lines: Lines, offset: int) -> str:
    """The cause that the text itself shows; empty where it shows none."""
    line = lines.line(min(lines.position(offset).row, len(lines)))[:_MAX_LINE]
    # Python's parser may point at the character before.
    at = {
        place: cause for pattern, cause in _PLACES for place in (offset, offset + 1) if pattern.match(lines.text, place)
    }
    causes = (
        *(cause for pattern, cause in _OTHER_FILES if pattern.match(lines.text)),
        *(cause for pattern, cause in _LINES if pattern.match(line)),
        *(at[place] for place in sorted(at)),
    )
    return next(iter(causes), "")


def _in_plain_words(message: str) -> str:
    """A parser's message as one line in lower case; empty where it says nothing."""
    words = re.sub(r"[.?] (\w)", lambda match: f"; {match[1].lower()}", message.rstrip(".?"))
    words = words.removeprefix("f-string: ") if words == "f-string: invalid syntax" else words
    return "" if words == "invalid syntax" else words[:1].lower() + words[1:]


def _unexpected(text: str, offset: int) -> str:
    token = _TOKEN.match(text, offset)
    if token is None:
        return "invalid syntax: the line ends too early"
    before = re.split(r"\W", text[max(offset - _MAX_KEYWORD, 0) : offset].rstrip())[-1]
    if keyword.iskeyword(before) and token[0] == "=":
        return f"{before} is a keyword of Python and cannot be a name"
    return f"invalid syntax at `{token[0]}`"


# A run of names: combining marks may stand in names, but are no word characters to regular expressions.
_RUN = lazy_pattern(r"[^\W\d](?:\w|[^\x00-\x7f\s\w])*")
# Comments and strings, triple-quoted ones first.
_NO_NAMES = lazy_pattern(
    r"#[^\r\n]*|(?:\b([A-Za-z]{1,2}))?(?:\"{3}(?s:[^\\]|\\.)*?\"{3}|'{3}(?s:[^\\]|\\.)*?'{3}"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"|'(?:\\(?s:.)|[^'\\\r\n])*')"
)


def has_unnormalised_names(text: str) -> bool:
    """Whether a name of a text may differ in its tree, which has NFKC forms; comments and plain strings do not count."""
    return _has_unnormalised(text) and _has_unnormalised(_NO_NAMES.sub(_code, text))


def _code(token: re.Match[str]) -> str:
    """An f-string, which may contain code; a blank for any other string or comment."""
    return token[0] if token[1] and not set(token[1].lower()) <= set("rub") else " "


def _has_unnormalised(text: str) -> bool:
    words = [word for run in set(_RUN.findall(text)) if not run.isascii() for word in _names(run)]
    if not words:
        return False
    from unicodedata import normalize  # a library of a megabyte, which few files need

    return any(normalize("NFKC", word) != word for word in words)


def _names(run: str) -> list[str]:
    return "".join(each if f"a{each}".isidentifier() else " " for each in run).split()


ASYNC = "async"
# As a keyword it stands before one of three others: on the same line, or in brackets, which only a comprehension can have it in.
_RESERVED = lazy_pattern(
    rf"(?P<hidden>{HIDDEN})|(?P<opens>[\[({{])|(?P<closes>[\])}}])"
    r"|\basync\b(?!(?:[^\S\r\n]|\\(?:\r\n?|\n))+(?:def|for|with)\b)(?P<clause>(?=(?:\s|\\|#[^\r\n]*[\r\n])+for\b))?"
)
# Words of the same length; a text that has all of them is not read.
_STAND_INS = tuple(f"a_{number:03}" for number in range(20))


def stops_at_a_reserved_name(text: str) -> bool:
    """Whether Python stops right at an ``async`` that is used as a name: no release since 3.7 reads that."""
    offset, message = _python_error(Lines(text))
    if message != "invalid syntax" or offset not in reserved_names(text):
        return False
    return "\0" not in text and not _UNSURE.search(text, 0, offset)


def reserved_names(text: str) -> tuple[int, ...]:
    """The offsets of the word ``async`` where it is used as a name."""
    return tuple(_reserved_names(text)) if ASYNC in text else ()


def _reserved_names(text: str) -> Iterator[int]:
    depth = 0
    for match in _RESERVED.finditer(text):
        if match["opens"]:
            depth += 1
        elif match["closes"]:
            depth = max(depth - 1, 0)
        elif match["hidden"] is None and not (depth and match["clause"] is not None):
            yield match.start()


def with_stand_in(text: str) -> tuple[str, str] | None:
    """A text of equal length with a stand-in for each ``async`` that is used as a name, and the stand-in; None where there is none."""
    offsets = reserved_names(text)
    word = next((each for each in _STAND_INS if each not in text), None)
    if not offsets or word is None:
        return None
    parts: list[str] = []
    at = 0
    for offset in offsets:
        parts += (text[at:offset], word)
        at = offset + len(ASYNC)
    return "".join((*parts, text[at:])), word


# libcst's parser is recursive and crashes at about 3,000 levels; Python itself stops at 200.
_MAX_DEPTH = 400
# A chain of method calls or operators nests as deeply as it is long, and libcst needs quadratic time for it.
_MAX_CHAIN = 500
# The first link is written out: a search for a pattern that begins with a literal is many times faster.
_METHOD = r"\.\w+\([^()\n]*\)\s*"
_METHODS = lazy_pattern(rf"{_METHOD}(?:{_METHOD}){{{_MAX_CHAIN - 1}}}")
_OPERATORS = lazy_pattern(rf"(?:\b\w+[ \t]*(?:[-+*/%@&|^]|<<|>>)[ \t]*){{{_MAX_CHAIN}}}")
_BRACKET = lazy_pattern(r"[\[({]|[\])}]")
_REAL_BRACKET = lazy_pattern(rf"[\[({{]|[\])}}]|{HIDDEN}")
_OPENING = frozenset("[({")
# Tokens that separate expressions, and tokens that join their parts.
_PIECE = lazy_pattern(
    rf"(?P<hidden>{HIDDEN}|\\\r?\n)|(?P<opens>[\[({{])|(?P<closes>[\])}}])|(?P<parts>[,;])|(?P<ends>[\r\n])"
    r"|(?P<joins>[-+*/%@&|^~.<>]+|\b(?:and|or|not|if|else|lambda|await)\b)"
)


def long_chain(text: str) -> SyntaxProblem | None:
    """The first chain of too many method calls, or of too many operators on one line."""
    starts = [match.start() for match in (_methods(text), _operators(text)) if match is not None]
    if not starts:
        return None
    return SyntaxProblem(f"nested too deeply to analyse: a chain of more than {_MAX_CHAIN} operations", min(starts))


def long_expression(text: str) -> SyntaxProblem | None:
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
            return SyntaxProblem(
                f"nested too deeply to analyse: a chain of more than {_MAX_CHAIN} operations", piece.start()
            )
    return None


def _methods(text: str) -> re.Match[str] | None:
    return _METHODS.search(text) if text.count(")") >= _MAX_CHAIN else None


def _operators(text: str) -> re.Match[str] | None:
    """Each link takes at least two characters, so only long lines are searched."""
    longest = max(map(len, text.split("\n")))
    return _OPERATORS.search(text) if longest >= 2 * _MAX_CHAIN else None


def deep_brackets(text: str) -> SyntaxProblem | None:
    """The first bracket inside too many open brackets; a cheap upper bound is tried first."""
    if _deepest(_BRACKET, text) is None or (offset := _deepest(_REAL_BRACKET, text)) is None:
        return None
    return SyntaxProblem(f"nested too deeply to analyse: more than {_MAX_DEPTH} open brackets", offset)


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
