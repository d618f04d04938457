"""TRL203 and TRL205: ask for deterministic algorithms, and set cuBLAS's workspace before torch is imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from torchrepro_lint.insertions import insert_below, insert_statement
from torchrepro_lint.layout import newline
from torchrepro_lint.new_imports import ensure_import, insert_import
from torchrepro_lint.removals import remove_statement
from torchrepro_lint.rewrites.entry_place import entry_place, insertion
from torchrepro_lint.rewrites.seed_blocks import last_of_block
from torchrepro_lint.rewrites.seed_calls import existing, fix_in, is_conditional
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Edit, Fix, joined, lines_of
from torchrepro_lint.syntax.control_flow import level_of
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import Assign, Constant, If, Import, parted, span
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.syntax.nodes import Expression, Facts, Statement
    from torchrepro_lint.trace.trace import Happening

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
