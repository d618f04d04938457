"""Notebooks: code cells in the JSON, replaced so that every other byte stays, and IPython syntax, replaced so that offsets stay.

IPython syntax becomes harmless Python of the same length. As in IPython's ``inputtransformer2``, magics, shell commands and help are
recognised where a logical line begins, or after the ``=`` of an assignment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import PARSER_ERRORS, Span, parse

_TOKEN = lazy_pattern(r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"|[\[\]{},:]|[^\s\[\]{},:\"]+")
# The format of 2011 to 2014 has sheets of cells, and calls a cell's text its input.
_CELLS = (("cells",), ("worksheets", 0, "cells"))
_DATABRICKS = "application/vnd.databricks.v1+notebook"


class NotebookError(Exception):
    """A file that is no notebook; ``offset`` is where in its text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class RawCell(NamedTuple):
    """A code cell: its number among all cells, from 1, and its text. ``span`` is that of its source in the JSON.

    ``pieces`` are the strings of that source: their spans with the quotes, and their text. ``is_list`` says whether they
    stand in a list.
    """

    number: int
    text: str
    span: Span
    pieces: tuple[tuple[Span, str], ...]
    is_list: bool


class RawNotebook(NamedTuple):
    """The code cells of a notebook in Python, in order."""

    cells: tuple[RawCell, ...]
    databricks: bool


def read_cells(raw: str) -> RawNotebook:
    """The code cells of a notebook's JSON. Raises ``NotebookError``."""
    try:
        data = json.loads(raw, parse_int=float)  # no number is asked for, and one may have too many digits
    except json.JSONDecodeError as error:
        reason = error.msg.strip().removesuffix(" starting at")
        raise NotebookError(f"not a notebook: invalid JSON ({reason[:1].lower()}{reason[1:]})", error.pos) from None
    except RecursionError:
        raise NotebookError("not a notebook: nested too deeply") from None
    where, cells = _find_cells(data)
    if not _is_python(data.get("metadata")):
        return RawNotebook((), False)
    wanted = {(*where, index, key): index + 1 for index, key in _code(cells)}
    found = _locate(raw, frozenset(wanted))
    return RawNotebook(
        tuple(_raw_cell(raw, number, *found[path]) for path, number in wanted.items()),
        isinstance(metadata := data.get("metadata"), dict) and _DATABRICKS in metadata,
    )


def _find_cells(data: Any) -> tuple[tuple[str | int, ...], list[Any]]:
    for path in _CELLS:
        cells = data
        for step in path:
            known = isinstance(cells, dict if isinstance(step, str) else list)
            cells = cells[step] if known and (step in cells if isinstance(step, str) else cells) else None
        if isinstance(cells, list):
            return path, cells
    raise NotebookError("not a notebook: there is no list of cells")


def _code(cells: list[Any]) -> list[tuple[int, str]]:
    """The code cells that are in Python, each with the key of its source. Raises ``NotebookError``."""
    found = []
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code" or not _in_python(cell):
            continue
        key = "source" if "source" in cell else "input"
        source = cell.get(key)
        lines = [source] if isinstance(source, str) else source
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise NotebookError(f"not a notebook: cell {index + 1} has no source")
        found.append((index, key))
    return found


def _is_python(metadata: Any) -> bool:
    """Whether a notebook's kernel is one of Python; one that says nothing is."""
    metadata = metadata if isinstance(metadata, dict) else {}
    for table, key in (("kernelspec", "language"), ("language_info", "name")):
        language = metadata[table].get(key) if isinstance(metadata.get(table), dict) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython", "")
    return True


def _in_python(cell: dict[str, Any]) -> bool:
    """Whether a cell is in the notebook's language: editors may mark one as being in another."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    marks = (cell.get("language"), editor.get("languageId") if isinstance(editor, dict) else None)
    return all(mark in (None, "python") for mark in marks)


def _raw_cell(raw: str, number: int, span: Span, strings: tuple[Span, ...]) -> RawCell:
    pieces = tuple((each, json.loads(raw[each.start : each.end])) for each in strings)
    return RawCell(number, "".join(text for _, text in pieces), span, pieces, raw[span.start] == "[")


def _locate(
    raw: str, wanted: frozenset[tuple[str | int, ...]]
) -> dict[tuple[str | int, ...], tuple[Span, tuple[Span, ...]]]:
    """The spans of values by their paths in valid JSON, and of the strings in them; of equal keys the last counts."""
    found: dict[tuple[str | int, ...], tuple[Span, tuple[Span, ...]]] = {}
    path: list[str | int] = []
    opened: list[tuple[int, int]] = []
    strings: list[Span] = []
    expects_key = False
    for token in _TOKEN.finditer(raw):
        word, start = token[0], token.start()
        if word in ("[", "{"):
            opened.append((start, len(strings)))
            path.append(0 if word == "[" else "")
            expects_key = word == "{"
        elif word == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else last
            expects_key = isinstance(last, str)
        elif expects_key and word != "}":
            path[-1], expects_key = json.loads(word), False
        elif word != ":":
            mark, expects_key = len(strings), False
            if word in ("]", "}"):
                path.pop()
                start, mark = opened.pop()
            elif word[0] == '"':
                strings.append(Span(start, token.end()))
            if tuple(path) in wanted:
                found[tuple(path)] = (Span(start, token.end()), tuple(strings[mark:]))
    return found


def replace_sources(raw: str, texts: Mapping[int, str]) -> str:
    """A notebook's JSON with new texts for cells by their number.

    The lines of a cell that stay are spelt as they were; new ones are spelt as the file spells letters beyond ASCII.
    """
    cells = read_cells(raw).cells
    separator = next((found for cell in cells if (found := _separator(raw, cell))), None)
    parts: list[str] = []
    done = 0
    for cell in cells:
        text = texts.get(cell.number, cell.text)
        if text != cell.text:
            parts += (raw[done : cell.span.start], _source(raw, cell, text, separator))
            done = cell.span.end
    return "".join((*parts, raw[done:]))


def _source(raw: str, cell: RawCell, text: str, separator: str | None) -> str:
    ascii_only = raw.isascii()
    if not cell.is_list:
        return f'"{"".join(_spelt(_lines(raw, cell), text, ascii_only))}"'
    lines = _spelt(((piece, raw[span.start + 1 : span.end - 1]) for span, piece in cell.pieces), text, ascii_only)
    lead, trail = _edges(raw, cell)
    between = _separator(raw, cell) or (f",{lead}" if lead else separator or ", ")
    return "".join(("[", lead, between.join(f'"{line}"' for line in lines), trail, "]"))


def _spelt(pieces: Iterable[tuple[str, str]], text: str, ascii_only: bool) -> list[str]:
    """The lines of a text inside JSON strings. The pieces are the lines that there were, each with its spelling."""
    known = dict(pieces)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return [known.get(line) or json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in lines]


def _lines(raw: str, cell: RawCell) -> list[tuple[str, str]]:
    """The lines of a source that is one string, each with its spelling."""
    ((span, _),) = cell.pieces
    inside = raw[span.start + 1 : span.end - 1]
    spelt = re.findall(r"(?:[^\\]|\\[^n])*?\\n|(?:[^\\]|\\[^n])+", inside)
    return [(json.loads(f'"{line}"'), line) for line in spelt]


def _edges(raw: str, cell: RawCell) -> tuple[str, str]:
    """The white space behind the opening and before the closing bracket of a list of lines."""
    if not cell.pieces:
        return "", ""
    return raw[cell.span.start + 1 : cell.pieces[0][0].start], raw[cell.pieces[-1][0].end : cell.span.end - 1]


def _separator(raw: str, cell: RawCell) -> str | None:
    """What stands between the first two lines of a list."""
    if not cell.is_list or len(cell.pieces) < 2:
        return None
    return raw[cell.pieces[0][0].end : cell.pieces[1][0].start]


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
_DATABRICKS_MAGIC = lazy_pattern(r"\s*%(?:md|md-sandbox|sql|sh|scala|r|fs|pip|conda)\b")
_PIECE = lazy_pattern(
    r"""[A-Za-z]{0,2}(?:\"{3}(?s:\\.|.)*?(?:\"{3}|\Z)|'{3}(?s:\\.|.)*?(?:'{3}|\Z)"""
    r"""|\"(?:\\(?s:.)|[^\"\\\r\n])*(?:\"|(?=[\r\n])|\Z)|'(?:\\(?s:.)|[^'\\\r\n])*(?:'|(?=[\r\n])|\Z))"""
    rf"|\w+|\\{_NEWLINE}|#[^\r\n]*|{_NEWLINE}|[^\S\r\n]+|[=!<>:]=|."
)
# A command goes on behind a backslash at the end of its line.
_COMMAND = lazy_pattern(rf"(?:[^\\\r\n]|\\{_NEWLINE}|\\)*")
_INDENTED = lazy_pattern(rf"(?:[ \t\f]*(?:#[^\r\n]*)?{_NEWLINE})*[ \t]+[^\s#]")
_ESCAPES = frozenset("%!?/,;")
# Magics that IPython knows without a percent sign, where what follows makes the line no Python: `pip install torch`.
_AUTOMAGIC = lazy_pattern(
    r"(?:pip|conda|mamba|micromamba|uv|cd|ls|mkdir|rmdir|rm|cp|mv|cat|env|load_ext|reload_ext|matplotlib)"
    r"[ \t]+(?!(?:and|as|else|for|if|in|is|not|or)\b)[-\w./~]"
)
# Stands for a cell that cannot be parsed: code that nobody knows.
_UNKNOWN_CODE = "exec(cell)"


class _Line(NamedTuple):
    """A logical line; ``command`` is where it stops being Python, at its start or behind an ``=``, else -1."""

    start: int
    end: int
    command: int


def neutralised(text: str, databricks: bool = False) -> str:
    """A cell as Python, of the same length and with the same lines; a cell in another language becomes white space."""
    magic = _CELL_MAGIC.match(text)
    if (magic and magic[1] not in _PYTHON_CELLS) or (databricks and _DATABRICKS_MAGIC.match(text)):
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
    if timed and _is_python_text(command[timed.end() :]):
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


def _is_python_text(text: str) -> bool:
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
                starts_command = word[0] in _ESCAPES or _is_automagic(text, begin)
            else:
                starts_command = before == "=" and depth == 0 and word[0] in "%!"
            if starts_command:
                return _Line(begin, _command_end(text, piece.start()), piece.start())
            depth = max(0, depth + (word in "([{") - (word in ")]}"))
            before, end = word, piece.end()
    else:
        end = max(end, len(text)) if begin < 0 else end
    return _Line(begin, end, begin if before == "?" and begin >= 0 else -1)


def _is_automagic(text: str, start: int) -> bool:
    """Whether a line that is no Python begins with a magic, as ``pip install torch`` does and ``ls -l`` need not."""
    if not _AUTOMAGIC.match(text, start):
        return False
    return not _is_python_text(text[start : _command_end(text, start)])


def replaced_by_unknown(program: str) -> str:
    """The text of a cell with unknown code in place of its own, of the same length and with the same lines."""
    blank = _HIDDEN.sub(" ", program)
    row = re.search(rf"(?m)^ {{{len(_UNKNOWN_CODE)}}}", blank)
    return blank if row is None else blank[: row.start()] + _UNKNOWN_CODE + blank[row.end() :]


def _command_end(text: str, start: int) -> int:
    found = _COMMAND.match(text, start)
    assert found is not None
    return found.end()
