"""Completed fixes: imports that edits of a file leave unused are removed, unless another file of the project takes the name from there.

This is done for all edits of a round together: two fixes may each take one of the last two uses of an import, and one may use
what another leaves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from torchrepro_lint.checks.fixes.unused_imports import edits_of_unused_imports, names_dropped
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.source.decoding import fit_to_cells
from torchrepro_lint.source.text import Edit, Fix


def completed_fix(files: Mapping[str, ParsedFile], path: str, fix: Fix) -> Fix:
    """A fix of a finding in a file, together with the imports that it alone leaves unused."""
    others = tuple((other, completed_edits(files, other, edits)) for other, edits in fix.elsewhere)
    return fix._replace(edits=completed_edits(files, path, fix.edits), elsewhere=others)


def completed_edits(files: Mapping[str, ParsedFile], path: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a file, together with those that drop the imports that they leave unused."""
    parsed = files[path]
    if parsed.facts is None or not edits or posixpath.basename(path) == "__init__.py":
        return tuple(edits)
    names = names_dropped(parsed.facts, parsed.text, edits)
    if not names or any(_takes_from(files[other].text, path, names) for other in sorted(files) if other != path):
        return tuple(edits)
    lines = zip(parsed.text.splitlines(), parsed.written.text.splitlines(), strict=False)
    hidden = "\n".join(own for program, own in lines if program != own)
    found = edits_of_unused_imports(parsed.facts, parsed.text, edits, hidden)
    if parsed.source is None or parsed.source.notebook is None:
        return found
    fitting = fit_to_cells(parsed.source.notebook, Fix("", found, safe=False))
    return fitting.edits if fitting else tuple(edits)


def _takes_from(text: str, path: str, names: frozenset[str]) -> bool:
    """Whether a file may take one of some names from the module of another: by a ``from`` import, a star or an attribute."""
    module = re.escape(posixpath.basename(path).removesuffix(".py").removesuffix(".ipynb"))
    if not re.search(rf"\b{module}\b", text):
        return False
    listed = re.findall(rf"^[ \t]*from[ \t]+[\w.]*\b{module}[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)", text, re.MULTILINE)
    taken = {word for each in listed for word in re.findall(r"\w+|\*", each)}
    attributes = set(re.findall(rf"\b{module}\.(\w+)", text))
    return "*" in taken or not names.isdisjoint(taken | attributes)
