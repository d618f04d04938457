"""IPython syntax in notebook cells, replaced by harmless Python of the same length, so every character keeps its offset.

As in IPython's ``inputtransformer2``, magics, shell commands and help are recognised where a logical line begins, or after the ``=`` of
an assignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import PARSER_ERRORS, parse

# A name of one character that nothing binds (U+01C3): its value is unknown, like the result of a magic.
_UNKNOWN = "\u01c3"
_HIDDEN = lazy_pattern(r"[^\r\n]")
# Unambiguous: if a "\r\n" could also match as two line ends, backtracking would be exponential.
_NEWLINE = r"(?:\r\n|\r(?!\n)|\n)"
_CELL_MAGIC = lazy_pattern(rf"(?:[ \t]*(?:#[^\r\n]*)?{_NEWLINE})*%%[ \t]*([^\s!?]*)[^\r\n]*")
# Cell magics whose body is Python that runs in the notebook; others run another language or another process.
_PYTHON_CELLS = frozenset(
    {"capture", "debug", "memit", "mprun", "notify", "prun", "scalene", "time", "timeit", "wandb"}
)
# Line magics whose argument is a Python statement, with the options that may stand before it.
_STATEMENT_MAGIC = lazy_pattern(
    r"%(?:time(?:it)?|prun|memit|debug)[ \t]+(?:-(?:[nrpvlsTDci][ \t]*[^\s-]\S*|[tcqor]+)[ \t]+)*(?=[^\s-])"
)
# `%run script.py` becomes an import, which executes the script as far as the analysis can tell, and is never longer.
_RUN = lazy_pattern(r"%run[ \t]+(?:-[eit][ \t]+)*\"?((?:[A-Za-z_]\w*/)*[A-Za-z_]\w*)\.py\"?[ \t]*")
# Databricks: the first line of a cell may name its language.
_DATABRICKS = lazy_pattern(r"\s*%(?:md|md-sandbox|sql|sh|scala|r|fs|pip|conda)\b")
_PIECE = lazy_pattern(
    r"""[A-Za-z]{0,2}(?:\"{3}(?s:\\.|.)*?(?:\"{3}|\Z)|'{3}(?s:\\.|.)*?(?:'{3}|\Z)"""
    r"""|\"(?:\\(?s:.)|[^\"\\\r\n])*(?:\"|(?=[\r\n])|\Z)|'(?:\\(?s:.)|[^'\\\r\n])*(?:'|(?=[\r\n])|\Z))"""
    rf"|\w+|\\{_NEWLINE}|#[^\r\n]*|{_NEWLINE}|[^\S\r\n]+|[=!<>:]=|."
)
# A command goes on behind a backslash at the end of its line.
_COMMAND = lazy_pattern(rf"(?:[^\\\r\n]|\\{_NEWLINE}|\\)*")
_INDENTED = lazy_pattern(rf"(?:[ \t\f]*(?:#[^\r\n]*)?{_NEWLINE})*[ \t]+[^\s#]")
_ESCAPES = frozenset("%!?/,;")


class _Line(NamedTuple):
    """A logical line; ``command`` is where it stops being Python, at its start or behind an ``=``, else -1."""

    start: int
    end: int
    command: int


def neutralised(text: str, databricks: bool = False) -> str:
    """A cell as Python, of the same length and with the same lines; a cell in another language becomes white space."""
    magic = _CELL_MAGIC.match(text)
    if (magic and magic[1] not in _PYTHON_CELLS) or (databricks and _DATABRICKS.match(text)):
        return _HIDDEN.sub(" ", text)
    done = magic.end() if magic else 0
    parts = [_comment(text[:done])]
    for line in _logical_lines(text, done):
        if line.command >= 0:
            parts += (text[done : line.command], _replacement(text, line))
            done = line.end
    return "".join((*parts, text[done:]))


def is_indented(program: str) -> bool:
    """Whether a neutralised cell begins with an indentation, which IPython removes from all its lines."""
    return _INDENTED.match(program) is not None


def leaves_string_open(program: str) -> bool:
    """Whether a triple-quoted string is unclosed in a cell. (The syntax tree would not show it: it drops docstrings.)"""
    if "'''" not in program and '"""' not in program:
        return False
    last = [piece[0] for piece in _PIECE.finditer(program)][-1].lstrip("bBfFrRtTuU")
    return last[:3] in ("'''", '"""') and (len(last) < 6 or last[:3] != last[-3:])


def _replacement(text: str, line: _Line) -> str:
    """The replacement of a command: its own statement where it has one, else a value or a comment."""
    command = text[line.command : line.end]
    if line.command > line.start:
        return _unknown_value(command)
    timed = _STATEMENT_MAGIC.match(command)
    if timed and _is_python(command[timed.end() :]):
        return f"{_UNKNOWN};".ljust(timed.end()) + command[timed.end() :]
    if script := _RUN.fullmatch(command):
        return f"import {script[1].replace('/', '.')}".ljust(len(command))
    begins_row = line.start == 0 or text[line.start - 1] in "\r\n"
    return _comment(command) if begins_row else _unknown_value(command)


def _unknown_value(command: str) -> str:
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
    """The logical line that begins at or after an offset; strings and brackets may span several rows."""
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
