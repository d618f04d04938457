"""Findings as an overview has them: who reaches them, which control they are about, and what they look like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES, plain
from torchrepro_lint.checks.pages import url
from torchrepro_lint.config.discovery import relative
from torchrepro_lint.overview.concern import concerns
from torchrepro_lint.overview.controls import CONTROL_OF, WORDS
from torchrepro_lint.overview.records import Change, Code, Item, Place, Repair, Way
from torchrepro_lint.report.excerpt import changes, excerpt
from torchrepro_lint.report.fingerprints import fingerprints

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.engine.diagnostic import Diagnostic
    from torchrepro_lint.source.text import Fix, Position
    from torchrepro_lint.trace.contexts import Step

# Rules about a run as a whole: what they say concerns the entry points of the file in which they say it.
_OF_A_RUN = ("TRL101", "TRL102", "TRL103", "TRL104", "TRL107", "TRL109", "TRL203")


def entry_id(prefix: str, program: Program) -> str:
    """A name for an entry point that stays: ``entry-`` and eight hexadecimal digits."""
    text = f"{prefix}{program.entry.path}\0{program.entry.function or ''}"
    return f"entry-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


class Describer:
    """Makes items of the findings of one project; ``contexts`` are those of its files that could be parsed, ``prefix`` is
    what its paths begin with where there are several.
    """

    def __init__(self, contexts: Mapping[str, Context], root: str, prefix: str) -> None:
        self._contexts = contexts
        self._root = root
        self._prefix = prefix

    def items(self, diagnostics: Sequence[Diagnostic]) -> tuple[Item, ...]:
        """One for each finding, in their order."""
        marks = fingerprints(diagnostics, self._root)
        names = Ids()
        return tuple(
            self._item(one, names.fresh(f"finding-{mark[:12]}")) for one, mark in zip(diagnostics, marks, strict=True)
        )

    def _item(self, one: Diagnostic, name: str) -> Item:
        path = relative(one.filename, self._root)
        return Item(
            name,
            one.code,
            one.name,
            one.severity,
            self._place(path, one.start),
            one.message,
            self._control(path, one),
            tuple(sorted(entry_id(self._prefix, each) for each in self._programs(path, one))),
            one.lines.line(one.lines.position(one.span.start).row).strip(),
            tuple(Code(*row) for row in excerpt(one)),
            tuple(self._step(step) for step in one.steps),
            self._repair(one, one.fix) if one.fix else None,
            url(one.code, one.name),
        )

    def _place(self, path: str, at: Position) -> Place:
        return Place(self._prefix + path, at.row, at.column, at.cell)

    def _step(self, step: Step) -> Way:
        return Way(self._place(relative(step.path, self._root), step.place), step.text)

    def _repair(self, one: Diagnostic, fix: Fix) -> Repair:
        lines = (
            Change(line.sign, line.number, line.text, line.where and self._prefix + line.where) for line in changes(one)
        )
        return Repair(fix.title, fix.safe, tuple(lines))

    def _programs(self, path: str, one: Diagnostic) -> Iterable[Program]:
        """The entry points whose run comes by a finding."""
        if path not in self._contexts:
            return ()
        function = path + self._function(path, one.span.start)
        found: Iterable[Program] = self._contexts[path].project.reaching(function)
        if one.code in _OF_A_RUN:
            return (each for each in found if each.entry.path == path)
        return (each for each in found if concerns(self._contexts[path], each, one.code, one.span))

    def _function(self, path: str, offset: int) -> str:
        """The innermost function around an offset, as facts name it."""
        around = (each for each in self._contexts[path].facts.functions if each.start <= offset < each.end)
        found = min(around, key=lambda each: each.end - each.start, default=None)
        return found.name if found else ":"

    def _control(self, path: str, one: Diagnostic) -> str:
        if one.code in CONTROL_OF or one.code not in WORDS:
            return CONTROL_OF.get(one.code, "")
        told = (family.key for family in FAMILIES if family.owner in one.message)
        return next(told, "") or self._called(path, one) or "torch"

    def _called(self, path: str, one: Diagnostic) -> str:
        """The generator of the call that a finding is about."""
        for site in self._contexts[path].project.calls(path):
            if (site.call.start, site.call.end) == one.span:
                for name in site.names:
                    seeder = self._contexts[path].catalogue.seeder(plain(name)) if ":" not in name else None
                    found = seeder.families if seeder else (_OWNERS.get(name.partition(".")[0], ""),)
                    if known := next((each for each in found if each in _OWNERS.values()), ""):
                        return known
        return ""


_OWNERS: Mapping[str, str] = {"random": "python", "numpy": "numpy", "torch": "torch"}


class Ids:
    """Names that are not given twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, name: str) -> str:
        """The name, with a number where it is taken."""
        found, number = name, 1
        while found in self._taken:
            number += 1
            found = f"{name}-{number}"
        self._taken.add(found)
        return found
