"""Unused imports: those whose last use a fix takes away go with it (flake8's F401).

Uses are counted in the tokens of the file, so that a name in an annotation, a default or a string that Python evaluates counts. In
doubt the import stays.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint.checks.fixes.comments import own_comments
from torchrepro_lint.checks.fixes.insertions import line_break, line_end
from torchrepro_lint.checks.fixes.removals import with_gap
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Lines, Span, lines_of
from torchrepro_lint.syntax.nodes import Import, Record, SyntaxTree, Try, span
from torchrepro_lint.syntax.scopes import BlockPosition, control_flow_position
from torchrepro_lint.syntax.visitor import all_statements

_WORD = lazy_pattern(r"\w+")
_NAMES = lazy_pattern(r"(?:from\s.*?\bimport\b|import\b)\s*\(?\s*", re.DOTALL)
_NAME = lazy_pattern(r"(?P<name>[\w.]+)(?:\s+as\s+(?P<alias>\w+))?")
_BETWEEN = lazy_pattern(r"[\s\\,()]*")
_BLANK_LINES = lazy_pattern(r"(?:[^\S\n]*\n)+")
_KEEP = lazy_pattern(r"#\s*(noqa|pylint:|type:)", re.IGNORECASE)


class _Token(Record, frozen=True):
    """A token: its type, its text, where it starts, the texts around it, and how many brackets are open there."""

    type: int
    text: str
    start: int
    before: str
    after: str
    depth: int


def edits_of_unused_imports(tree: SyntaxTree, text: str, edits: Sequence[Edit], hidden: str = "") -> tuple[Edit, ...]:
    """The edits of a file, and those that drop the imports that nothing uses after them.

    ``hidden`` is text of the file that is not Python, such as the magics of a notebook.
    """
    words = _words_left_out(tree, text, edits)
    if not words:
        return tuple(edits)
    imports = [each for each in all_statements(tree) if isinstance(each, Import)]
    used = _words_used(text, [each.span for each in edits] + [span(each) for each in imports], words)
    unused = words - used - set(_WORD.findall(hidden))
    result = tuple(sorted(edits))
    for statement in imports if unused else ():
        result = _without(tree, text, statement, unused, result)
    return _without_first_gap(text, result)


def _without_first_gap(text: str, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits, of which those that remove the first lines of the file together take the blank lines below, too."""
    end, last = 0, -1
    for at, each in enumerate(edits):
        if each.text or each.span.start != end:
            break
        end, last = each.span.end, at
    gap = _BLANK_LINES.match(text, end)
    if last < 1 or gap is None or any(end <= each.span.start < gap.end() for each in edits[last + 1 :]):
        return edits
    taken = edits[last]._replace(span=Span(edits[last].span.start, gap.end()))
    return (*edits[:last], taken, *edits[last + 1 :])


def names_dropped(tree: SyntaxTree, text: str, edits: Sequence[Edit]) -> frozenset[str]:
    """The imported names that some edits remove from the text, perhaps not all their uses."""
    return frozenset(_words_left_out(tree, text, edits))


def _words_left_out(tree: SyntaxTree, text: str, edits: Iterable[Edit]) -> set[str]:
    """The imported names in the text that edits remove, and in none that they write."""
    removed = {word for each in edits for word in _WORD.findall(text[slice(*each.span)])}
    written = {word for each in edits for word in _WORD.findall(each.text)}
    if not (wanted := removed - written):
        return set()
    imports = (each for each in all_statements(tree) if isinstance(each, Import))
    return wanted & {local for each in imports for local, _ in each.names}


def _words_used(text: str, left_out: list[Span], words: set[str]) -> set[str]:
    """Which of some names the text uses outside some spans; all where the tokenizer cannot read it."""
    used = set()
    try:
        for token in _tokens(text):
            if not any(start <= token.start < end for start, end in left_out):
                used |= words.intersection(_read_in(token, "__all__" in text))
    except (tokenize.TokenError, SyntaxError):
        return words
    return used


def _tokens(text: str) -> Iterator[_Token]:
    lines, depth, before = lines_of(text), 0, ""
    skipped = (tokenize.COMMENT, tokenize.NL)
    found = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type not in skipped]
    for each, following in zip(found, [*found[1:], None], strict=True):
        depth += (each.string in ("(", "[", "{")) - (each.string in (")", "]", "}"))
        after = following.string if following else ""
        yield _Token(each.type, each.string, lines.offset(each.start[0], each.start[1] + 1), before, after, depth)
        before = each.string


def _read_in(token: _Token, listed: bool) -> set[str]:
    """The names that a token reads: itself, those of a formatted string, of an annotation in quotes, of ``__all__``.

    ``listed`` says that the file has ``__all__``, in which any string that is a name may be.
    """
    if token.type == tokenize.NAME:
        is_argument = token.before in ("(", ",") and token.depth > 0 and token.after == "="
        return set() if token.before == "." or is_argument else {token.text}
    if token.type != tokenize.STRING:
        return set()
    found = set(_WORD.findall(token.text))
    is_formatted = "f" in token.text[: token.text.find(token.text[-1])].lower() and "{" in token.text
    in_annotation = token.before in (":", "->") or (token.before == "[" and re.search(r"\w[.\[]", token.text))
    is_name = token.text[1:-1].isidentifier() and token.text[0] in "\"'"
    return found if is_formatted or in_annotation or (listed and is_name) else set()


def _without(
    tree: SyntaxTree, text: str, statement: Import, unused: set[str], edits: tuple[Edit, ...]
) -> tuple[Edit, ...]:
    """The edits with what drops the unused names of an import; without, where that is not plain."""
    places = _named(text, statement)
    gone = [at for at, (local, _) in enumerate(places) if local in unused]
    position = control_flow_position(tree, statement.start)
    spot = position.spots[-1] if position else None
    line = statement.start, line_end(text, statement.end)
    if not gone or spot is None or isinstance(spot.parent, Try) or _KEEP.search(text, *line):
        return edits
    if len(gone) < len(places):
        fresh = _drop_names(places, gone)
        overlapping = any(_overlap(one.span, each.span) for one in edits for each in fresh)
        return edits if overlapping else tuple(sorted((*edits, *fresh)))
    return _drop_statement(text, spot, edits)


def _named(text: str, statement: Import) -> list[tuple[str, Span]]:
    """The names that an import binds, each with its place; none where it has comments or stars, or loads a submodule."""
    source = text[statement.start : statement.end]
    opening = _NAMES.match(source)
    if opening is None or "#" in source or "*" in source:
        return []
    found, at = [], opening.end()
    while (name := _NAME.match(source, at)) is not None:
        root, dot, _ = name["name"].partition(".")
        if dot and not name["alias"] and root not in sys.stdlib_module_names:
            return []
        found.append((name["alias"] or root, Span(statement.start + name.start(), statement.start + name.end())))
        between = _BETWEEN.match(source, name.end())
        at = between.end() if between else len(source)
    return found if at >= len(source) else []


def _drop_names(places: list[tuple[str, Span]], gone: list[int]) -> list[Edit]:
    """Remove names from a list of which some stay, each with the comma before it, of the first ones the one behind."""
    kept = [at for at in range(len(places)) if at not in gone]
    edits = []
    for at in gone:
        own = places[at][1]
        place = Span(own.start, places[at + 1][1].start) if at < kept[0] else Span(places[at - 1][1].end, own.end)
        edits.append(Edit(place, ""))
    return edits


def _drop_statement(text: str, spot: BlockPosition, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Remove an import with its line, its own comment and a blank line that it leaves; not the only statement of a block."""
    statement, lines = spot.statement, lines_of(text)
    line, end = lines.start_of_line(statement.start), line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if len(spot.block) == 1 or text[line : statement.start].strip() or (rest and not rest.startswith("#")):
        return edits
    above = own_comments(text, Span(statement.start, end))
    above = line if lines.position(above).row == 1 else above  # a comment at the top is about the file
    follows = [each for each in edits if each.span == (end, end) and each.text.startswith(("\r", "\n"))]
    other = [each for each in edits if each not in follows]
    if any(each.span.end > above and each.span.start <= end for each in other):
        return edits
    if follows:
        content = (
            follows[0].text.lstrip("\r\n") if _is_gap(lines, above) else follows[0].text[len(line_break(text, end)) :]
        )
        return tuple(sorted((*other, Edit(Span(above, end), content))))
    place = with_gap(text, Span(above, end + len(line_break(text, end))))
    if any(_overlap(each.span, place) for each in edits):
        place = Span(above, end + len(line_break(text, end)))
    return tuple(sorted((*edits, Edit(place, ""))))


def _is_gap(lines: Lines, offset: int) -> bool:
    """Whether a line follows a blank one or opens the file."""
    row = lines.position(offset).row
    return row == 1 or not lines.line(row - 1).strip()


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
