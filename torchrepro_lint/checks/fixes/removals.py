"""Edits that remove statements, with the comments that are theirs and the blank lines that they would leave."""

from __future__ import annotations

import re

from torchrepro_lint.checks.fixes.comments import own_comments
from torchrepro_lint.checks.fixes.insertions import line_break, line_end
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Ref, Statement
from torchrepro_lint.syntax.qualified_names import local_symbol, simple_name
from torchrepro_lint.syntax.scopes import BlockPosition, function_at
from torchrepro_lint.syntax.visitor import subexpressions
from torchrepro_lint.trace.traces import Traces

# Calls that only give a number or a text: without their result they do nothing.
_GIVING = lazy_pattern(
    r"os\.(urandom|getpid)|time\.\w+|datetime\.[\w.()]*|uuid\.\w+|secrets\.\w+|builtins\.(int|float|abs|round|str|hash|id)(\.\w+)?"
)


def remove_unread(project: Traces, path: str, replaced: Expression) -> tuple[Edit, ...]:
    """Remove the assignments of local variables that only a replaced expression reads: ``base = os.urandom(4)`` above
    ``np.random.seed(base)``.
    """
    function, text = function_at(project.files[path], replaced.start), project.text(path)
    if function is None:
        return ()
    gone: list[Expression | Statement] = [replaced]
    edits: list[Edit] = []
    read = _local_words(replaced, function.name)
    for at, statement in reversed([*enumerate(function.body)]):
        match statement:
            case Assign(op="=", targets=(Ref(roots=(root,), path=()),), value=value) if value is not None:
                word = simple_name(root)
                if word not in read or not _only_gives(project, path, value):
                    continue
                rest = text[function.start : function.end]
                for each in sorted((*gone, statement), key=lambda each: -each.start):
                    rest = rest[: each.start - function.start] + rest[each.end - function.start :]
                removed = remove_statement(text, BlockPosition(function.body, at, None))
                if removed is not None and not re.search(rf"\b{word}\b", rest):
                    gone.append(statement)
                    edits.append(removed)
                    read |= _local_words(value, function.name)
    return tuple(edits)


def _local_words(expression: Expression, function: str) -> set[str]:
    """The local variables of a function that an expression reads."""
    refs = (each for each in subexpressions(expression) if isinstance(each, Ref) and len(each.roots) == 1)
    return {
        simple_name(each.roots[0])
        for each in refs
        if each.roots[0] == local_symbol(function, simple_name(each.roots[0]))
    }


def _only_gives(project: Traces, path: str, value: Expression) -> bool:
    """Whether the calls in a value have no effect."""
    calls = [each for each in subexpressions(value) if isinstance(each, Call)]
    names = [project.names(path, each.func) for each in calls]
    return all(found and all(map(_GIVING.fullmatch, found)) for found in names)


def remove_statement(
    text: str, block_position: BlockPosition, others: bool = False, about: re.Pattern[str] | None = None
) -> Edit | None:
    """Remove a statement with its line and its own comments; ``pass`` stays where the block would be empty.

    ``others`` says that other fixes may remove all other statements of the block; ``about`` finds the subject of the
    statement in a comment. None where it shares its line.
    """
    statement = block_position.statement
    start, end = lines_of(text).start_of_line(statement.start), line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if text[start : statement.start].strip() or (rest and not rest.startswith("#")):
        return None
    above = own_comments(text, Span(statement.start, end), about)
    if len(block_position.block) == 1 or (others and block_position.at == 0):
        return Edit(Span(above, end), f"{text[start : statement.start]}pass")
    place = Span(above, end + len(line_break(text, end)))
    return Edit(with_gap(text, place, opens=block_position.at == 0 and statement.start > start), "")


def with_gap(text: str, place: Span, *, opens: bool = False) -> Span:
    """Whole lines to remove, with the fewer of the blank lines around them, so that no gap grows.

    At the start of the file, and where they open a block, the blank lines below go.
    """
    lines = lines_of(text)
    first, following = lines.position(place.start).row, lines.position(place.end).row
    above, below = first, following
    while above > 1 and not lines.line(above - 1).strip():
        above -= 1
    while below <= len(lines) and lines.offset(below) < len(text) and not lines.line(below).strip():
        below += 1
    if above == 1 or opens or below - following < first - above:
        return Span(place.start, lines.offset(below))
    return Span(lines.offset(above), place.end) if below > following else place
