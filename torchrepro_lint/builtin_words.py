"""Whether a word that a fix writes means the builtin where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.insertions import shadowed

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project


def means_builtin(project: Project, path: str, word: str) -> bool:
    """Whether nothing in a file has the word of a builtin: no function or class, no variable, nothing of a star import.

    What a package that is not followed brings in by a star is taken to be no builtin's word.
    """
    facts = project.files[path]
    if shadowed(facts, word) or any(word == taken for taken, _ in facts.exports):
        return False
    return not any(":" in found for found in project.resolver.modules.attribute(path, word) or ())
