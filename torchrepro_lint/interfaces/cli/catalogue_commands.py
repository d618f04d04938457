"""The commands ``explain`` and ``ops``, which query the catalogue.

``explain`` maps an error message of torch to its meaning and to the calls that may raise it; ``ops`` prints how operations
behave, as a table, JSON, Markdown or HTML.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from torchrepro_lint.catalogue.catalogue import error_names
from torchrepro_lint.catalogue.errors import Explanation, ParsedErrors, explain, parse_errors
from torchrepro_lint.catalogue.release_history import History, find_operations, histories, history
from torchrepro_lint.config.discovery import Plan
from torchrepro_lint.config.roots import config_options
from torchrepro_lint.config.settings import RuleOverrides
from torchrepro_lint.config.target import substitution_warning, target_here, target_of
from torchrepro_lint.engine.error_sites import ErrorSite, find_error_sites
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.interfaces.report import explanation
from torchrepro_lint.source.errors import UsageError


def run_explain(message: str | None, paths: Sequence[str], torch_version: str | None, output_format: str) -> int:
    """Explain an error message of torch; the exit status. Raises ``UsageError``, also for an unknown error name."""
    told = parse_errors(_text(message))
    if told.unknown or not told.names:
        raise UsageError(_unknown(told))
    planned = plan(paths or (".",), config_options(RuleOverrides(torch_version=torch_version)))
    target = target_of(planned.trees[0].root) if planned.trees else target_here(torch_version)
    explained = [explain(name, target.version) for name in told.names]
    places, errors = _places(planned, explained, told)
    render = explanation.render_json if output_format == "json" else explanation.render
    text = render(list(zip(explained, places, strict=True)), target)
    if output_format == "json":
        terminal.out(text)
    else:
        terminal.out_wrapped(text)
    for note in (*planned.notes, substitution_warning(target)):
        if note:
            terminal.note(note)
    return terminal.errors((*planned.errors, *errors))


def _text(message: str | None) -> str:
    if message not in (None, "-"):
        return str(message)
    if message is None and sys.stdin.buffer.isatty():
        raise UsageError("nothing to explain: give the error's message in quotes, or a traceback on standard input")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _unknown(told: ParsedErrors) -> str:
    name = " and ".join(repr(one) for one in told.unknown if one)
    if not name:
        return "found no error of torch about determinism in the text"
    near = difflib.get_close_matches(told.unknown[0], sorted({one.name for one in error_names()}), 3)
    return f"no error of torch about determinism is named {name}" + (
        f"; did you mean {' or '.join(near)}?" if near else ""
    )


def _places(
    planned: Plan, explained: Sequence[Explanation], told: ParsedErrors
) -> tuple[list[list[ErrorSite]], list[str]]:
    """The error sites of each explanation in all projects, each for its own target torch, and errors."""
    advance = terminal.progress(sum(len(tree.files) for tree in planned.trees))
    found = [
        find_error_sites(
            tree, [explain(one.name, target_of(tree.root).version) for one in explained], told.frames, advance
        )
        for tree in planned.trees
    ]
    places = [[place for each in found for place in each.places[index]] for index in range(len(explained))]
    return places, [error for each in found for error in each.errors]


def run_ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Print all operations in the target torch, or those of a name in every release; the exit status.

    Raises ``UsageError`` for an unknown name, and for an output file that cannot be written.
    """
    shown = histories() if name is None else tuple(history(operation) for operation in find_operations(name))
    target = target_here(torch_version)
    if note := substitution_warning(target):
        terminal.note(note)
    width = terminal.width() if output is None and terminal.is_terminal() else 0
    chosen = torch_version is not None
    text = _render(shown, target.version, output_format, every=name is not None, chosen=chosen, width=width)
    if output is None and output_format == "table":
        terminal.out_wrapped(text)
    else:
        terminal.deliver(text, output)
    return 0


def _render(
    shown: Sequence[History], version: str, output_format: str, *, every: bool, chosen: bool, width: int
) -> str:
    """``every`` asks for all releases rather than for one; ``chosen`` says that the user named the release.

    ``width`` are the columns of the terminal that a table is for, 0 where there is none.
    """
    if output_format == "html":
        from torchrepro_lint.interfaces.report import ops_html

        # The page has all releases; it must not depend on the project that it was made in.
        return ops_html.render(shown, version if chosen else None)
    if output_format == "json":
        from torchrepro_lint.interfaces.report import ops_json

        return ops_json.render(shown, version, every=every)
    if output_format == "markdown":
        from torchrepro_lint.interfaces.report import ops_markdown

        return ops_markdown.render_all(shown, version) if every else ops_markdown.render(shown, version)
    from torchrepro_lint.interfaces.report import ops_table

    return ops_table.render_all(shown, version) if every else ops_table.render(shown, version, width)
