"""The module under check with all that is known of its program: what the questions of the domain, and rules, are asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.project import Project
    from torchrepro_lint.source.text import Lines
    from torchrepro_lint.syntax.nodes import Facts


class Context(NamedTuple):
    """All that is asked about a module; ``path`` is the module's, with slashes, relative to the project's root."""

    path: str
    facts: Facts
    lines: Lines
    project: Project
    catalogue: Catalogue
    settings: Settings
