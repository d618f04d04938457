"""``torchrepro-lint ops``: the catalogue as a table, a list, or a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchrepro_lint import terminal
from torchrepro_lint.catalogue.release_history import History, histories, history, operations_named
from torchrepro_lint.config.target import target_here, warning
from torchrepro_lint.source.errors import UsageError


def run_ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Show all operations in the target torch, or those of a name in every release; the exit status.

    Raises ``UsageError`` for a name that is not known and for an output that cannot be written.
    """
    shown = histories() if name is None else tuple(history(operation) for operation in operations_named(name))
    target = target_here(torch_version)
    if note := warning(target):
        terminal.note(note)
    text = _render(shown, target.version, output_format, every=name is not None, chosen=torch_version is not None)
    if output is None:
        terminal.out(text)
        return 0
    try:
        output.write_bytes(text.encode())
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    return 0


def _render(shown: Sequence[History], version: str, output_format: str, *, every: bool, chosen: bool) -> str:
    """``every`` asks for all releases rather than for one; ``chosen`` says that the user named the release."""
    if output_format == "html":
        from torchrepro_lint.report import ops_html

        # The page has all releases: what project it was made in must not show.
        return ops_html.render(shown, version if chosen else None)
    if output_format == "json":
        from torchrepro_lint.report import ops_json

        return ops_json.render(shown, version, every=every)
    if output_format == "markdown":
        from torchrepro_lint.report import ops_markdown

        return ops_markdown.render_all(shown, version) if every else ops_markdown.render(shown, version)
    from torchrepro_lint.report import ops_table

    return ops_table.render_all(shown, version) if every else ops_table.render(shown, version)
