"""source text → ``Facts``: from Python's own parser where it can be trusted, else from libcst's, or from that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.collector import Collector
from torchrepro_lint.facts import Facts
from torchrepro_lint.source import ipython
from torchrepro_lint.source.text import LARGEST, Lines
from torchrepro_lint.syntax.ast_tree import AstTree
from torchrepro_lint.syntax.depth import deep_brackets, long_chain, long_expression
from torchrepro_lint.syntax.tree import Untrusted

if TYPE_CHECKING:
    import libcst


class CollectError(Exception):
    """The text can't be analysed; ``offset`` is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def collect(text: str, parser: str = "auto") -> Facts:
    """The facts of a module's text. Raises CollectError where it is no Python, nested too deeply, or too large.

    ``parser`` is that of the settings: with ``libcst`` Python's own is not asked.
    """
    if len(text) > LARGEST:
        raise CollectError(f"too large to analyse: {len(text):,} characters, where {LARGEST:,} are the most", 0)
    if deep := long_chain(text):
        raise CollectError(*deep)
    quick = collect_with_ast(text) if parser == "auto" else None
    return quick or collect_with_libcst(text)


def collect_with_ast(text: str) -> Facts | None:
    """The facts as Python's own parser gives them; None where it cannot, or may not be trusted."""
    try:
        return Collector(AstTree(text)).facts()
    except (*ipython.REFUSALS, Untrusted, RecursionError):
        return None


def collect_with_libcst(text: str) -> Facts:
    """The facts as libcst gives them: the reference, and the source of what is said of a mistake."""
    import libcst

    from torchrepro_lint.offsets import Unplaced
    from torchrepro_lint.syntax.libcst_tree import LibcstTree, reason

    if deep := deep_brackets(text) or long_expression(text):
        raise CollectError(*deep)
    try:
        return Collector(LibcstTree(text)).facts()
    except libcst.ParserSyntaxError as error:
        raise CollectError(reason(error), _place(error, text)) from error
    except libcst.CSTValidationError as error:  # what its parser lets through, and Python does not
        raise CollectError(str(error).rstrip(".").lower(), _python_s_place(Lines(text), text) or 0) from error
    except UnicodeEncodeError as error:
        raise CollectError("half of a surrogate pair, which is no character", error.start) from error
    except Unplaced as error:
        raise CollectError("a line that goes on before the first statement", 0) from error
    except RecursionError as error:
        raise CollectError("nested too deeply to analyse", 0) from error


def _place(error: libcst.ParserSyntaxError, text: str) -> int:
    """Where the mistake is. libcst names the beginning of a line, or a token too late; Python's parser is exact.

    Where Python itself takes the text, libcst's place is what there is.
    """
    lines = Lines(text)
    place = _python_s_place(lines, text)
    return lines.offset(error.raw_line, error.raw_column + 1) if place is None else place


def _python_s_place(lines: Lines, text: str) -> int | None:
    """Where Python's parser sees a mistake; None where it sees none."""
    try:
        ipython.parse(text)
    except SyntaxError as exact:
        if exact.lineno:
            return lines.offset(exact.lineno, max(exact.offset or 1, 1))
    except ipython.REFUSALS:
        pass  # a NUL, or nested too deeply for Python
    return None
