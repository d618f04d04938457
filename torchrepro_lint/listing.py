"""Options that take a list, by commas or by repetition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from torchrepro_lint.completion import complete_rules


def listing(name: str, text: str, rules: bool = True) -> Callable[[Any], Any]:
    """An option for rules, else for globs; ``None`` where it is not given."""
    return click.option(
        name,
        multiple=True,
        metavar="A,B,…",
        callback=_words if rules else _globs,
        help=text,
        shell_complete=complete_rules if rules else None,
    )


def _words(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    words = tuple(word.strip() for value in values for word in value.split(",") if word.strip())
    if values and not words and parameter.name == "select":
        raise click.BadParameter("nothing would run: name rules, or leave the option out")
    return words if values else None


def _globs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    from torchrepro_lint.config.settings import require_glob

    words = _words(context, parameter, values)
    try:
        for word in words or ():
            require_glob(word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return words
