"""The format ``full``, for people: each diagnostic with its source, the call path to its cause, and its fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.excerpt import changes, excerpt, log_characters, terminal_text
from torchrepro_lint.interfaces.report.flake8 import render as headline
from torchrepro_lint.interfaces.report.flake8 import step_location
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.errors import escaped_path, without_workflow_commands

_RED, _GREEN, _CYAN, _BOLD, _END = "\033[31m", "\033[32m", "\033[36m", "\033[1m", "\033[m"


def render(diagnostics: Iterable[Diagnostic], view: View) -> str:
    """Blocks separated by an empty line; each begins with the line of the format ``flake8``."""
    return "\n".join("".join(f"{line}\n" for line in _block(one, view.colour)) for one in diagnostics)


def _block(one: Diagnostic, colour: bool) -> Iterator[str]:
    yield headline([one], View(colour=colour)).rstrip("\n")
    yield from _code(one, colour)
    for index, step in enumerate(one.steps):
        yield f"  {_paint('way' if index == 0 else '   ', _BOLD, colour)}  {step_location(step)}: {without_workflow_commands(terminal_text(step.text))}"
    if one.fix is not None:
        title = f"{one.fix.title}{'' if one.fix.safe else ' (unsafe)'}"
        yield f"  {_paint('fix', _BOLD, colour)}  {without_workflow_commands(terminal_text(title))}"
        yield from _diff(one, colour)
    elif one.unfixed:
        reason = without_workflow_commands(terminal_text(one.unfixed))
        yield f"  {_paint('fix', _BOLD, colour)}  none: {reason}"


def _code(one: Diagnostic, colour: bool) -> Iterator[str]:
    rows = list(excerpt(one, log_characters))
    width = max(len(str(row.number)) for row in rows)
    bar = _paint("|", _CYAN, colour)
    yield f"{'':{width}} {bar}"
    for row in rows:
        number = _paint(f"{row.number or '':>{width}}", _CYAN, colour)
        yield f"{number} {bar} {row.text}".rstrip()
        if row.under:
            mark = row.under.lstrip()
            yield f"{'':{width}} {bar} {row.under[: -len(mark)]}{_paint(mark, _RED, colour)}"
    yield f"{'':{width}} {bar}"


def _diff(one: Diagnostic, colour: bool) -> Iterator[str]:
    lines = list(changes(one))
    width = max((len(str(line.number)) for line in lines), default=0)
    where = ""
    for line in lines:
        if line.where != where:
            where = line.where
            yield f"       {escaped_path(where)}"
        text = f"{line.number:>{width}} {line.sign} {without_workflow_commands(line.text)}".rstrip()
        yield "       " + _paint(text, _RED if line.sign == "-" else _GREEN, colour)


def _paint(text: str, paint: str, colour: bool) -> str:
    return f"{paint}{text}{_END}" if colour else text
