"""TRL201 and TRL202: the other value for a switch, and for nothing else that is given the same one.

TRL203 and TRL205: ask for deterministic algorithms, and set cuBLAS's workspace before torch is imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.imports import ensure_import, insert_import
from torchrepro_lint.checks.fixes.insertions import insert_below, insert_statement, newline, remove_statement
from torchrepro_lint.checks.fixes.late_seeding import last_of_block
from torchrepro_lint.checks.fixes.seeding import entry_place, existing, fix_in, insertion, is_conditional
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Edit, Fix, Span, joined, lines_of
from torchrepro_lint.syntax.control_flow import level_of
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, If, Import, parted, span
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Placed
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.syntax.nodes import Facts, Statement
    from torchrepro_lint.trace.trace import Happening


_EQUALS = re.compile(r"[ \t]*=[ \t]*")


def fix_switch(
    text: str, placed: Placed, given: Expression | None, value: str, others: Iterable[Placed] = ()
) -> Fix | None:
    """Write the value that a switch is to have in the place of the literal that it is given; ``others`` are what else the
    file sets.
    """
    statement = placed.event.statement
    if not isinstance(given, Constant):
        return None
    edits: tuple[Edit, ...] = (Edit(span(given), value),)
    if placed.event.kind == "set" and isinstance(statement, Assign) and len(statement.targets) > 1:
        alike = [
            each for each in others if each.event.statement is statement and each.setting.what == placed.setting.what
        ]
        own = [target for target in statement.targets if any(each.event.value is target for each in alike)]
        if len(own) < len(statement.targets):
            edits = _apart(text, statement, own, value)
    return Fix(f"set it to {value}", edits, safe=False) if edits else None


def _apart(text: str, statement: Assign, own: list[Expression], value: str) -> tuple[Edit, ...]:
    """The targets that are the switch get a statement of their own: the others keep what they have."""
    signs = [_EQUALS.match(text, target.end) for target in own]
    cuts = [Edit(Span(target.start, sign.end()), "") for target, sign in zip(own, signs, strict=True) if sign]
    if not own or len(cuts) < len(own):
        return ()
    targets = " = ".join(text[target.start : target.end] for target in own)
    return (*cuts, insert_below(text, span(statement), f"{targets} = {value}"))


_MODERN_SINCE = (1, 8)
_WORKSPACE = '["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'


def fix_enabling(project: Project, program: Program, first: Happening, torch_version: str) -> Fix | None:
    """Ask below the seeding that a run always does first, else where the program starts."""
    word = "use_deterministic_algorithms" if release(torch_version) >= _MODERN_SINCE else "set_deterministic"
    happenings = program.run.happenings
    order = next((n for n, each in enumerate(happenings) if mark(each.event) == mark(first.event)), len(happenings))
    seed = existing(project, program.effects, first, order, "torch")
    if seed is not None and not is_conditional(seed.happening, first):
        path, function = seed.happening.path, parted(seed.happening.function)[2]
        facts, text = project.files[path], project.text(path)
        last = span(last_of_block(project, path, seed.happening.event.statement))
        torch, imports = ensure_import(facts, text, "torch", inside=f":{function}" if function else "", at=last.end)
        edit = insert_below(text, last, f"{torch}.{word}(True)")
        return fix_in(path, program.entry.path, f"call torch.{word}(True)", joined((*imports, edit)))
    place = entry_place(project, program, first)
    if place is None:
        return None
    path = program.entry.path
    facts, text = project.files[path], project.text(path)
    inside = place.level.function.name if place.level.function else ""
    at = insertion(text, place, "").span.start
    torch, imports = ensure_import(facts, text, "torch", inside=inside, at=at)
    edit = insertion(text, place, f"{torch}.{word}(True)")
    if not inside and any(each.span.start > edit.span.start for each in imports):
        return None
    return Fix(f"call torch.{word}(True)", joined((*imports, edit)), safe=False)


def fix_workspace(
    project: Project, own: str, program: Program, wrong: Expression | None, late: Statement | None
) -> Fix | None:
    """Set the variable above the first import that may load torch; a wrong literal is replaced where it stands.

    A statement of the same file that sets it ``late``, whatever the options say, is moved there.
    """
    if isinstance(wrong, Constant):
        return Fix('write ":4096:8"', (Edit(span(wrong), '":4096:8"'),), safe=False)
    path = program.entry.path
    facts, text = project.files[path], project.text(path)
    first = next((each for each in facts.body if not _is_standard(each)), None)
    if first is None or first.start != lines_of(text).start_of_line(first.start):
        return None
    title = f"set CUBLAS_WORKSPACE_CONFIG at the top of {path}"
    edits = _above(facts, text, first)
    if late is not None and own == path and (cut := _cut(facts, text, late)):
        return fix_in(path, own, title, (*edits, cut))
    return fix_in(path, own, title, edits)


def _cut(facts: Facts, text: str, late: Statement) -> Edit | None:
    """Take a statement out that hangs on no test and is not all there is."""
    level = level_of(facts, late.start)
    spot = level.spots[-1] if level else None
    plain = spot is not None and spot.around is None and spot.statement is late and len(spot.block) > 1
    return remove_statement(text, spot) if spot is not None and plain and isinstance(late, Assign) else None


def _above(facts: Facts, text: str, first: Statement) -> tuple[Edit, ...]:
    """The setting with a blank line on each side, and the import of os where it is not above."""
    above = [each for each in statements(facts.body) if isinstance(each, Import) and each.end <= first.start]
    word = next((local for each in above for local, name in each.names if name == "os"), "")
    line = newline(text)
    edit = insert_statement(text, first.start, f"{word or 'os'}.environ{_WORKSPACE}{line}")
    place, content = edit.span, edit.text
    imported = insert_import(facts, text, "import os")
    if not word and (not above or imported.span.start > place.start):
        return (Edit(place, f"import os{line}{line}{content}"),)
    if text[: place.start].strip() and not text[: place.start].endswith(line * 2):
        content = line + content
    return (Edit(place, content),) if word else joined((imported, Edit(place, content)))


def _is_standard(statement: Statement) -> bool:
    """Whether a statement imports from the standard library alone, or may stand above other imports anyway."""
    if isinstance(statement, Import):
        roots = {name.partition(".")[0] for name in statement.modules}
        return roots <= (sys.stdlib_module_names | {"__future__"})
    return isinstance(statement, If) and all(_is_standard(each) for each in (*statement.body, *statement.orelse))
