"""Runs one rule over texts that form a project, and fixes one of them to a fixed point, without files or command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.catalogue.libraries import LibraryVersions
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.source.text import Lines, apply_edits, merge
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.trace.traces import Context, Traces

Check = Callable[[Context], Iterable[Finding]]
NAME = "main.py"


def project_of(
    files: Mapping[str, str], device: str = "auto", torch: str = "2.13", libraries: LibraryVersions = ()
) -> Traces:
    """The linked project of texts by path."""
    settings = Settings(device=device)
    facts = {path: facts_of(text) for path, text in files.items()}
    return Traces(facts, settings, catalogue.load(torch), text=lambda path: files[path], libraries=libraries)


@lru_cache(maxsize=256)
def facts_of(text: str) -> SyntaxTree:
    """The facts of a text."""
    return parse_module(text)


def findings(
    check: Check, text: str, device: str = "auto", torch: str = "2.13", others: Mapping[str, str] | None = None
) -> list[Finding]:
    """What a rule says of ``text`` in a project with ``others``."""
    project = project_of({**(others or {}), NAME: text}, device, torch)
    settings = Settings(device=device)
    context = Context(NAME, project.files[NAME], Lines(text), project, catalogue.load(torch), settings)
    return list(check(context))


def fixed(
    check: Check,
    text: str,
    device: str = "cuda",
    torch: str = "2.13",
    others: Mapping[str, str] | None = None,
    unsafe: bool = True,
) -> str:
    """The text after as many rounds of fixing as it takes; ten are the most that the tool takes too."""
    for _ in range(10):
        found = findings(check, text, device, torch, others)
        fixes = [one.fix for one in found if one.fix is not None and (one.fix.safe or unsafe)]
        if not fixes:
            return text
        merged = merge(("", fix) for fix in fixes)
        assert merged.taken
        text = apply_edits(text, merged.edits[""])
    raise AssertionError(f"no fixed point after ten rounds:\n{text}")
