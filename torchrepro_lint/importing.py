"""What import statements bind, and the modules they name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Imported(NamedTuple):
    """An import statement: ``module`` with its dots as written, or None for a plain ``import``; names with the words
    they are bound to, empty where there is no ``as``. ``star`` says that it is ``from module import *``.
    """

    module: str | None
    aliases: tuple[tuple[str, str], ...]
    star: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it loads, as written."""
        return tuple(name for name, _ in self.aliases) if self.module is None else (self.module,)


def join(module: str, word: str) -> str:
    """A word of a module as written: ``.`` and ``utils`` give ``.utils``."""
    return f"{module}{word}" if module.endswith(".") else f"{module}.{word}"


def import_bindings(imported: Imported) -> Iterator[tuple[str, str]]:
    """What an import binds: (word, name). ``import a.b`` binds ``a``; a star binds nothing here."""
    for name, word in imported.aliases:
        if imported.module is not None:
            yield word or name, join(imported.module, name)
        elif word:
            yield word, name
        else:
            yield (name.partition(".")[0],) * 2
