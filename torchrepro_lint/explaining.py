"""``torchrepro-lint explain``: a message to what it means and where it comes from."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

from torchrepro_lint import terminal
from torchrepro_lint.catalogue.catalogue import error_names
from torchrepro_lint.catalogue.errors import Explanation, Message, explain, read
from torchrepro_lint.config.discovery import Plan, plan
from torchrepro_lint.config.target import options, target_here, target_of, warning
from torchrepro_lint.engine.error_sites import Place, find
from torchrepro_lint.report import explanation
from torchrepro_lint.source.errors import UsageError


def run_explain(message: str | None, paths: Sequence[str], torch_version: str | None, output_format: str) -> int:
    """Explain what a message complains of; the exit status. Raises ``UsageError``, also for names that are not known."""
    told = read(_text(message))
    if told.unknown or not told.names:
        raise UsageError(_unknown(told))
    planned = plan(paths or (".",), options(torch_version))
    target = target_of(planned.trees[0].root) if planned.trees else target_here(torch_version)
    explained = [explain(name, target.version) for name in told.names]
    places, errors = _places(planned, explained, told)
    render = explanation.render_json if output_format == "json" else explanation.render
    terminal.out(render(list(zip(explained, places, strict=True)), target))
    if note := warning(target):
        terminal.note(note)
    for error in (*planned.errors, *errors):
        terminal.note(f"torchrepro-lint: {error}")
    return 2 if planned.errors or errors else 0


def _text(message: str | None) -> str:
    if message not in (None, "-"):
        return str(message)
    if message is None and sys.stdin.buffer.isatty():
        raise UsageError("nothing to explain: give the error's message in quotes, or a traceback on standard input")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _unknown(told: Message) -> str:
    name = " and ".join(repr(one) for one in told.unknown if one)
    if not name:
        return "no message about determinism found"
    near = difflib.get_close_matches(told.unknown[0], sorted({one.name for one in error_names()}), 3)
    return f"no error name {name} in the catalogue" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _places(planned: Plan, explained: Sequence[Explanation], told: Message) -> tuple[list[list[Place]], list[str]]:
    """The places of each explanation in all projects, each read for its own target, and what could not be read."""
    advance = terminal.progress(sum(len(tree.files) for tree in planned.trees))
    found = [
        find(tree, [explain(one.name, target_of(tree.root).version) for one in explained], told.frames, advance)
        for tree in planned.trees
    ]
    places = [[place for each in found for place in each.places[index]] for index in range(len(explained))]
    return places, [error for each in found for error in each.errors]
