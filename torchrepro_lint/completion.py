"""What a shell offers behind an option or for an argument, beside what click knows by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Those of ``cli.COMMANDS``, which imports this.
COMMANDS = ("check", "clean", "explain", "ops", "report", "rule", "server", "trace")


def complete_rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The codes and names of rules; behind a comma one more of them."""
    from click.shell_completion import CompletionItem

    from torchrepro_lint.checks.pages import pages

    head, comma, last = incomplete.rpartition(",")
    offered = [(word, page.summary) for page in pages() for word in (page.code, page.name)]
    return [CompletionItem(f"{head}{comma}{word}", help=summary) for word, summary in offered if word.startswith(last)]


def complete_paths(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, and for the first word the names of commands."""
    from click.shell_completion import CompletionItem

    first = not context.params.get("paths")
    commands = [CompletionItem(name) for name in COMMANDS if first and incomplete and name.startswith(incomplete)]
    return [*commands, CompletionItem(incomplete, type="file")]
