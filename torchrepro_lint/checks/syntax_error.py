"""TRL001: a file that cannot be parsed, which the engine reports; and ``async`` as a name, with which it is read for other files."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.files import is_notebook
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span
from torchrepro_lint.syntax.qualified_names import in_project
from torchrepro_lint.syntax.syntax_errors import ASYNC
from torchrepro_lint.syntax.visitor import callee_identifier
from torchrepro_lint.trace.traces import Context

# Methods of tensors, storages and modules whose argument ``async`` was renamed in PyTorch 0.4.
_METHODS = frozenset({"cuda", "to", "copy_", "type"})
_NEW = "non_blocking"
_BOTH = f"the call passes both {ASYNC} and {_NEW}, and only its author knows which of the two values is meant"
_OWN_NAME = f"{ASYNC} is also a name of the program's own, and only its author knows what else to call it"


def check(context: Context) -> Iterator[Finding]:
    """The first ``async`` that is a name, of all in the file."""
    if ASYNC not in context.lines.text:
        return
    from torchrepro_lint.syntax.parse import read_as_names  # few runs parse here

    offsets = read_as_names(context.lines.text)
    if not offsets:
        return
    renamed, doubled = _arguments(context, old=True), _arguments(context, old=False)
    better = ""
    fix: Fix | NoFix = NoFix(_OWN_NAME)
    if renamed.issuperset(offsets):
        better, fix = f"; write {_NEW}", _fix(offsets)
    elif (renamed | doubled).issuperset(offsets):
        better, fix = f"; remove it where {_NEW} is passed already", NoFix(_BOTH)
    what = "cell cannot run" if is_notebook(context.path) else "file cannot run; nothing else in it is reported"
    message = f"{ASYNC} is a keyword since Python 3.7, so this {what}{better}"
    yield Finding("TRL001", _span(offsets[0]), message, fix)


def _arguments(context: Context, *, old: bool) -> frozenset[int]:
    """The offsets of ``async`` where it is an argument that torch renamed, in calls with the ``old`` name only or with both."""
    return frozenset(
        offset for site in context.project.calls(context.path) for offset in _renamed(context, site, old=old)
    )


def _renamed(context: Context, site: CallSite, *, old: bool) -> Iterator[int]:
    call, keywords = site.call, [arg.keyword for arg in site.call.args]
    is_method = callee_identifier(call.func) in _METHODS and not any(map(in_project, site.names))
    if is_method and ASYNC in keywords and (_NEW not in keywords) is old:
        yield context.lines.text.rindex(ASYNC, 0, call.args[keywords.index(ASYNC)].start)


def _fix(offsets: tuple[int, ...]) -> Fix:
    return Fix(f"Rename {ASYNC} to {_NEW}", tuple(Edit(_span(offset), _NEW) for offset in offsets), safe=True)


def _span(offset: int) -> Span:
    return Span(offset, offset + len(ASYNC))
