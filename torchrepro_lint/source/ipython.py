"""Python's own parser without its warnings, and IPython syntax replaced by harmless Python of the same length.

Every character of a cell keeps its offset. As in IPython's ``inputtransformer2``, magics, shell commands and help are recognised where a
logical line begins, or after the ``=`` of an assignment.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

# A mistake; a NUL or a lone surrogate, an integer of too many digits; nested too deeply. (libcst is asked then.)
PARSER_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)

# Warnings know their code by this name. One filter on it stays in place: `warnings.catch_warnings` changes the whole
# process for a while, and what another thread warns of meanwhile would be lost.
_NAME = "<torchrepro-lint reads>"


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of a module, or of an expression with the mode ``eval``. Raises one of ``REFUSALS``."""
    if not _hushed():
        warnings.filterwarnings("ignore", module=_NAME)
    return ast.parse(text, _NAME, mode)


def literal(raw: str) -> Any:
    """The value of a literal; None where this Python refuses it (an integer of 10,000 digits, ``0777``)."""
    try:
        return ast.literal_eval(parse(raw, "eval"))
    except PARSER_ERRORS:
        return None


def _hushed() -> bool:
    """Whether the filter is in place, and before all others: whoever resets the filters takes it away."""
    first = warnings.filters[0] if warnings.filters else None
    return first is not None and first[3] is not None and getattr(first[3], "pattern", "") == _NAME


# A name of one letter that nothing binds (U+01C3): what it stands for is unknown, as what a magic returns is.
_UNKNOWN = "\u01c3"
# Python above a cell that is indented as a whole, which IPython allows.
INDENT_HEADER = "if 1:\n"
_HIDDEN = re.compile(r"[^\r\n]")
# In one way only: a "\r\n" that might be two ends of lines is tried as both, and so are all the others with it.
_NEWLINE = r"(?:\r\n|\r(?!\n)|\n)"
_CELL_MAGIC = re.compile(rf"(?:[ \t]*(?:#[^\r\n]*)?{_NEWLINE})*%%[ \t]*([^\s!?]*)[^\r\n]*")
# Cell magics whose body is Python that runs in the notebook; that of others is another language or another process.
_PYTHON_CELLS = frozenset(
    {"capture", "debug", "memit", "mprun", "notify", "prun", "scalene", "time", "timeit", "wandb"}
)
# Line magics whose argument is a Python statement, with the options that may stand before it.
_STATEMENT_MAGIC = re.compile(
    r"%(?:time(?:it)?|prun|memit|debug)[ \t]+(?:-(?:[nrpvlsTDci][ \t]*[^\s-]\S*|[tcqor]+)[ \t]+)*(?=[^\s-])"
)
# A script that is run is imported instead: that executes it as far as can be told, and is never longer.
_RUN = re.compile(r"%run[ \t]+(?:-[eit][ \t]+)*\"?((?:[A-Za-z_]\w*/)*[A-Za-z_]\w*)\.py\"?[ \t]*")
# Databricks: a cell may be in a language that its first line names.
_DATABRICKS = re.compile(r"\s*%(?:md|md-sandbox|sql|sh|scala|r|fs|pip|conda)\b")
_PIECE = re.compile(
    r"""[A-Za-z]{0,2}(?:\"{3}(?s:\\.|.)*?(?:\"{3}|\Z)|'{3}(?s:\\.|.)*?(?:'{3}|\Z)"""
    r"""|\"(?:\\(?s:.)|[^\"\\\r\n])*(?:\"|(?=[\r\n])|\Z)|'(?:\\(?s:.)|[^'\\\r\n])*(?:'|(?=[\r\n])|\Z))"""
    rf"|\w+|\\{_NEWLINE}|#[^\r\n]*|{_NEWLINE}|[^\S\r\n]+|[=!<>:]=|."
)
# A command goes on behind a backslash at the end of its line.
_COMMAND = re.compile(rf"(?:[^\\\r\n]|\\{_NEWLINE}|\\)*")
_INDENTED = re.compile(rf"(?:[ \t\f]*(?:#[^\r\n]*)?{_NEWLINE})*[ \t]+[^\s#]")
_ESCAPES = frozenset("%!?/,;")


class _Line(NamedTuple):
    """A logical line; ``command`` is where it stops being Python, at its start or behind an ``=``, else -1."""

    start: int
    end: int
    command: int


def neutralised(text: str, databricks: bool = False) -> str:
    """The cell as Python, of the same length and with the same lines; one in another language becomes white space."""
    magic = _CELL_MAGIC.match(text)
    if (magic and magic[1] not in _PYTHON_CELLS) or (databricks and _DATABRICKS.match(text)):
        return _HIDDEN.sub(" ", text)
    done = magic.end() if magic else 0
    parts = [_comment(text[:done])]
    for line in _logical_lines(text, done):
        if line.command >= 0:
            parts += (text[done : line.command], _instead(text, line))
            done = line.end
    return "".join((*parts, text[done:]))


def is_indented(program: str) -> bool:
    """Whether a neutral cell begins with an indentation, which IPython takes off all its lines."""
    return _INDENTED.match(program) is not None


def leaves_string_open(program: str) -> bool:
    """Whether a string in three quotes has no end in a cell; a string alone is no statement that facts would show."""
    if "'''" not in program and '"""' not in program:
        return False
    last = [piece[0] for piece in _PIECE.finditer(program)][-1].lstrip("bBfFrRtTuU")
    return last[:3] in ("'''", '"""') and (len(last) < 6 or last[:3] != last[-3:])


def _instead(text: str, line: _Line) -> str:
    """What stands for a command: its own statement where it has one, else a value or a comment."""
    command = text[line.command : line.end]
    if line.command > line.start:
        return _value(command)
    timed = _STATEMENT_MAGIC.match(command)
    if timed and _is_python(command[timed.end() :]):
        return f"{_UNKNOWN};".ljust(timed.end()) + command[timed.end() :]
    if script := _RUN.fullmatch(command):
        return f"import {script[1].replace('/', '.')}".ljust(len(command))
    begins_row = line.start == 0 or text[line.start - 1] in "\r\n"
    return _comment(command) if begins_row else _value(command)


def _value(command: str) -> str:
    return _UNKNOWN + _HIDDEN.sub(" ", command[1:])


def _comment(command: str) -> str:
    """A comment in the first row that is not blank; the others become blank."""
    blank = _HIDDEN.sub(" ", command)
    first = re.search(r"\S", command)
    return blank if first is None else f"{blank[: first.start()]}#{blank[first.end() :]}"


def _is_python(text: str) -> bool:
    try:
        parse(text)
    except PARSER_ERRORS:
        return False
    return True


def _logical_lines(text: str, start: int) -> Iterator[_Line]:
    while start < len(text):
        line = _logical_line(text, start)
        yield line
        start = max(line.end, start + 1)


def _logical_line(text: str, start: int) -> _Line:
    """The logical line that begins at or after an offset: strings and brackets may go over several rows."""
    begin, end, depth, before = -1, start, 0, ""
    for piece in _PIECE.finditer(text, start):
        word = piece[0]
        if word[0] in "\r\n":
            if depth == 0 and begin >= 0:
                break
        elif not (word.isspace() or word[0] == "#" or (word[0] == "\\" and len(word) > 1)):
            if begin < 0:
                begin, before = piece.start(), "="
                starts_command = word[0] in _ESCAPES
            else:
                starts_command = before == "=" and depth == 0 and word[0] in "%!"
            if starts_command:
                return _Line(begin, _command_end(text, piece.start()), piece.start())
            depth = max(0, depth + (word in "([{") - (word in ")]}"))
            before, end = word, piece.end()
    else:
        end = max(end, len(text)) if begin < 0 else end
    return _Line(begin, end, begin if before == "?" and begin >= 0 else -1)


def _command_end(text: str, start: int) -> int:
    found = _COMMAND.match(text, start)
    assert found is not None
    return found.end()
