"""The fixes of TRL201 to TRL203 and TRL205: the other value for a flag, deterministic mode, cuBLAS's workspace.

The workspace is set before torch is imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.insertions import (
    ensure_import,
    insert_below,
    insert_import,
    insert_statement,
    newline,
    remove_statement,
)
from torchrepro_lint.checks.fixes.late_seeding import last_seeding_statement
from torchrepro_lint.checks.fixes.seeding import entry_place, existing_seed, fix_in, insert_lines, is_conditional
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span, join_insertions, lines_of
from torchrepro_lint.syntax.control_flow import control_flow_position, event_key
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, If, Import, span
from torchrepro_lint.syntax.visitor import split_name, statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import FlagWrite
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.syntax.nodes import Statement, SyntaxTree
    from torchrepro_lint.trace.events import TraceEvent


_EQUALS = re.compile(r"[ \t]*=[ \t]*")


def fix_switch(
    text: str, write: FlagWrite, given: Expression | None, value: str, others: Iterable[FlagWrite] = ()
) -> Fix | NoFix:
    """Write another value for a switch in place of its literal; ``others`` are the other flag writes of the file."""
    statement = write.event.statement
    if not isinstance(given, Constant):
        return NoFix("the value is not a literal, so it has to be changed where it comes from")
    edits: tuple[Edit, ...] = (Edit(span(given), value),)
    if write.event.kind == "set" and isinstance(statement, Assign) and len(statement.targets) > 1:
        alike = [
            each for each in others if each.event.statement is statement and each.setting.what == write.setting.what
        ]
        own = [target for target in statement.targets if any(each.event.value is target for each in alike)]
        if len(own) < len(statement.targets):
            edits = _split_assignment(text, statement, own, value)
    if not edits:
        return NoFix("the assignment sets several places at once, and they cannot be told apart")
    return Fix(f"set it to {value}", edits, safe=False)


def _split_assignment(text: str, statement: Assign, own: list[Expression], value: str) -> tuple[Edit, ...]:
    """Give the targets that are the switch a statement of their own, so that the others keep their value."""
    signs = [_EQUALS.match(text, target.end) for target in own]
    cuts = [Edit(Span(target.start, sign.end()), "") for target, sign in zip(own, signs, strict=True) if sign]
    if not own or len(cuts) < len(own):
        return ()
    targets = " = ".join(text[target.start : target.end] for target in own)
    return (*cuts, insert_below(text, span(statement), f"{targets} = {value}"))


_MODERN_SINCE = (1, 8)
_WORKSPACE = '["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'


def fix_enabling(project: Project, program: Program, first: TraceEvent, torch_version: str) -> Fix | NoFix:
    """Turn deterministic mode on below the unconditional seeding, else where the program starts."""
    word = "use_deterministic_algorithms" if release(torch_version) >= _MODERN_SINCE else "set_deterministic"
    trace_events = program.run.trace_events
    order = next(
        (n for n, each in enumerate(trace_events) if event_key(each.event) == event_key(first.event)), len(trace_events)
    )
    seed = existing_seed(project, program.effects, first, order, "torch")
    if seed is not None and not is_conditional(seed.trace_event, first):
        path, function = seed.trace_event.path, split_name(seed.trace_event.function)[2]
        tree, text = project.files[path], project.text(path)
        last = span(last_seeding_statement(project, path, seed.trace_event.event.statement))
        torch, imports = ensure_import(tree, text, "torch", inside=f":{function}" if function else "", at=last.end)
        edit = insert_below(text, last, f"{torch}.{word}(True)")
        return fix_in(path, program.entry.path, f"call torch.{word}(True)", join_insertions((*imports, edit)))
    place = entry_place(project, program, first)
    if place is None:
        return NoFix("the run has no place of its own where it starts")
    path = program.entry.path
    tree, text = project.files[path], project.text(path)
    inside = place.position.function.name if place.position.function else ""
    at = insert_lines(text, place, "").span.start
    torch, imports = ensure_import(tree, text, "torch", inside=inside, at=at)
    edit = insert_lines(text, place, f"{torch}.{word}(True)")
    if not inside and any(each.span.start > edit.span.start for each in imports):
        return NoFix("torch would be used above the place where it is imported")
    return Fix(f"call torch.{word}(True)", join_insertions((*imports, edit)), safe=False)


def fix_workspace(
    project: Project, own: str, program: Program, wrong: Expression | None, late: Statement | None
) -> Fix | NoFix:
    """Set the variable above the first import that may load torch; a wrong literal is replaced in place.

    A statement of the same file that sets it ``late``, unconditionally, is moved there.
    """
    if isinstance(wrong, Constant):
        return Fix('write ":4096:8"', (Edit(span(wrong), '":4096:8"'),), safe=False)
    path = program.entry.path
    tree, text = project.files[path], project.text(path)
    first = next((each for each in tree.body if not _is_standard(each)), None)
    if first is None or first.start != lines_of(text).start_of_line(first.start):
        return NoFix("the file has no line of its own above the first import that may load torch")
    title = f"set CUBLAS_WORKSPACE_CONFIG at the top of {path}"
    edits = _workspace_edits(tree, text, first)
    if late is not None and own == path and (cut := _remove_late(tree, text, late)):
        return fix_in(path, own, title, (*edits, cut))
    return fix_in(path, own, title, edits)


def _remove_late(tree: SyntaxTree, text: str, late: Statement) -> Edit | None:
    """Remove a statement that is unconditional and not alone in its block."""
    position = control_flow_position(tree, late.start)
    block_position = position.spots[-1] if position else None
    plain = (
        block_position is not None
        and block_position.parent is None
        and block_position.statement is late
        and len(block_position.block) > 1
    )
    return (
        remove_statement(text, block_position)
        if block_position is not None and plain and isinstance(late, Assign)
        else None
    )


def _workspace_edits(tree: SyntaxTree, text: str, first: Statement) -> tuple[Edit, ...]:
    """The setting with a blank line on each side, and the import of os if it is not above."""
    above = [each for each in statements(tree.body) if isinstance(each, Import) and each.end <= first.start]
    word = next((local for each in above for local, name in each.names if name == "os"), "")
    line = newline(text)
    edit = insert_statement(text, first.start, f"{word or 'os'}.environ{_WORKSPACE}{line}")
    place, content = edit.span, edit.text
    imported = insert_import(tree, text, "import os")
    if not word and (not above or imported.span.start > place.start):
        return (Edit(place, f"import os{line}{line}{content}"),)
    if text[: place.start].strip() and not text[: place.start].endswith(line * 2):
        content = line + content
    return (Edit(place, content),) if word else join_insertions((imported, Edit(place, content)))


def _is_standard(statement: Statement) -> bool:
    """Whether a statement imports only from the standard library, or is an ``if`` around such imports."""
    if isinstance(statement, Import):
        roots = {name.partition(".")[0] for name in statement.modules}
        return roots <= (sys.stdlib_module_names | {"__future__"})
    return isinstance(statement, If) and all(_is_standard(each) for each in (*statement.body, *statement.orelse))
