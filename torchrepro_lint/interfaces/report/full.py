"""The format ``full``, for people: each diagnostic with its source, the call path to its cause, and its fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.colours import BOLD, GREEN, GUTTER, RED, SEVERITIES, paint
from torchrepro_lint.interfaces.report.excerpt import WIDEST, changes, excerpt, log_characters, terminal_text
from torchrepro_lint.interfaces.report.flake8 import step_location
from torchrepro_lint.interfaces.report.view import View, shown_paths
from torchrepro_lint.source.errors import escaped_line, escaped_message, escaped_path, without_workflow_commands

# Narrower than that, lines are not wrapped or cut any more.
_LEAST = 40
_INDENT = 7


def render(diagnostics: Iterable[Diagnostic], view: View) -> str:
    """Blocks that each end with an empty line. Diagnostics of one place that have the same fix share a block."""
    return "".join(f"{line}\n" for group in _groups(diagnostics) for line in (*_block(group, view), ""))


def _groups(diagnostics: Iterable[Diagnostic]) -> list[list[Diagnostic]]:
    """The diagnostics in their order, those of one place and one fix together."""
    found: dict[object, list[Diagnostic]] = {}
    for number, one in enumerate(diagnostics):
        fix = one.fix and (sorted(one.fix.edits), one.fix.elsewhere, one.fix.safe)
        key = (one.filename, one.span, repr(fix)) if fix else number
        found.setdefault(key, []).append(one)
    return list(found.values())


def _block(group: Sequence[Diagnostic], view: View) -> Iterator[str]:
    one, colour = group[0], view.colour
    for each in group:
        yield from _headline(each, view)
    yield from _code(group, view)
    steps = dict.fromkeys(step for each in group for step in each.steps)
    for index, step in enumerate(steps):
        text = f"{step_location(step)}: {without_workflow_commands(terminal_text(step.text))}"
        yield from _field("via" if index == 0 else "", text, view)
    if one.fix is not None:
        title = f"{one.fix.title}{'' if one.fix.safe else ' (unsafe)'}"
        yield from _field("fix", without_workflow_commands(terminal_text(title)), view)
        yield from _diff(one, colour)
    elif one.unfixed:
        yield from _field("fix", f"none: {without_workflow_commands(terminal_text(one.unfixed))}", view)


def _headline(one: Diagnostic, view: View) -> Iterator[str]:
    """``error[TRL402]: `` and the message."""
    label = f"{one.severity}[{one.code}]"
    first, *more = _wrapped(f"{label}: {escaped_message(one.message)}", view.width, "    ")
    yield paint(label, SEVERITIES[one.severity], view.colour) + first.removeprefix(label)
    yield from map(escaped_line, more)


def _field(name: str, text: str, view: View) -> Iterator[str]:
    """A labelled text below the code."""
    head = f"  {name:<{_INDENT - 2}}"
    first, *more = _wrapped(head + text, view.width, " " * _INDENT)
    yield head.replace(name, paint(name, BOLD, view.colour), 1) + first.removeprefix(head)
    yield from map(escaped_line, more)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """The lines of a text that a terminal of some width shows; one line where there is no width."""
    if width < _LEAST:
        return [text]
    lead = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.lstrip(),
        width,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _code(group: Sequence[Diagnostic], view: View) -> Iterator[str]:
    one, colour = group[0], view.colour
    style = SEVERITIES[max((each.severity for each in group), key=list(SEVERITIES).index)]
    rows = list(excerpt(one, log_characters))
    width = max(len(str(row.number)) for row in rows)
    if view.width >= _LEAST:
        rows = list(excerpt(one, log_characters, min(WIDEST, view.width - width - len(" | ……"))))
    bar = paint("|", GUTTER, colour)
    yield f"{'':{width}}{paint('-->', GUTTER, colour)} {escaped_path(one.display)}:{one.start}"
    yield f"{'':{width}} {bar}"
    for row in rows:
        number = paint(f"{row.number or '':>{width}}", GUTTER, colour)
        yield f"{number} {bar} {row.text}".rstrip()
        if row.under:
            mark = row.under.lstrip()
            yield f"{'':{width}} {bar} {row.under[: -len(mark)]}{paint(mark, style, colour)}"
    yield f"{'':{width}} {bar}"


def _diff(one: Diagnostic, colour: bool) -> Iterator[str]:
    lines = list(changes(one))
    width = max((len(str(line.number)) for line in lines), default=0)
    shown = shown_paths(one.display, one.filename, one.root)
    where = ("", one.start.cell)
    for line in lines:
        if (line.where, line.cell) != where:
            where = (line.where, line.cell)
            parts = (line.where and shown(line.where), f"cell {line.cell}" if line.cell else "")
            yield f"{'':{_INDENT}}{':'.join(part for part in parts if part)}"
        text = f"{line.number:>{width}} {line.sign} {without_workflow_commands(line.text)}".rstrip()
        yield " " * _INDENT + paint(text, RED if line.sign == "-" else GREEN, colour)
