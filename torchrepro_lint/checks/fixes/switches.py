"""The fixes of TRL201 to TRL203 and TRL205: the other value for a flag, deterministic mode, cuBLAS's workspace.

The workspace is set before the first computation on CUDA.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator

from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.catalogue.rows import CUBLAS_NOT_NEEDED_SINCE, CUBLAS_VARIABLE, FlagSetting
from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.cells import in_one_cell
from torchrepro_lint.checks.fixes.import_block import (
    ensure_import,
    imports_torch,
    insert_import,
    last_of_block,
    only_imports,
)
from torchrepro_lint.checks.fixes.insertions import fix_in, insert_below, insert_paragraph, insert_statement, newline
from torchrepro_lint.checks.fixes.outdated_comments import SPEED, outdated_comment_behind, outdated_comments
from torchrepro_lint.checks.fixes.removals import remove_statement
from torchrepro_lint.checks.fixes.seed_place import insert_lines, start_place
from torchrepro_lint.checks.fixes.seeding import bound_from, existing_seed
from torchrepro_lint.domain.determinism_mode import first_accelerator_computation, flag_writes_in
from torchrepro_lint.domain.flag_effects import FlagWrite
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.domain.rng.seeding import last_seeding_statement
from torchrepro_lint.source.files import release
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, Message, NoFix, Reference, Span, join_insertions, lines_of
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.control_flow import event_key, is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Expression,
    If,
    Import,
    Ref,
    Statement,
    SyntaxTree,
    span,
)
from torchrepro_lint.syntax.qualified_names import split_name, top_package
from torchrepro_lint.syntax.scopes import control_flow_position
from torchrepro_lint.syntax.visitor import last_identifier, statements
from torchrepro_lint.trace.events import TraceEvent, is_conditional
from torchrepro_lint.trace.library_models import rows_of
from torchrepro_lint.trace.traces import Traces

_EQUALS = lazy_pattern(r"[ \t]*=[ \t]*")


def fix_switch(
    text: str, write: FlagWrite, given: Expression | None, value: str, others: Iterable[FlagWrite] = ()
) -> Fix | NoFix:
    """Write another value for a switch in place of its literal; ``others`` are the other flag writes of the file."""
    statement = write.event.statement
    if not isinstance(given, Constant):
        return NoFix("the value is not a literal; change it where it is set")
    edits: tuple[Edit, ...] = (Edit(span(given), value),)
    if write.event.kind == "set" and isinstance(statement, Assign) and len(statement.targets) > 1:
        alike = [
            each for each in others if each.event.statement == statement and each.setting.what == write.setting.what
        ]
        own = [target for target in statement.targets if any(each.event.value == target for each in alike)]
        if len(own) < len(statement.targets):
            edits = _split_assignment(text, statement, own, value)
    elif write.event.kind == "set" and isinstance(statement, Assign):
        edits += outdated_comments(text, span(statement), SPEED)
    else:
        edits += outdated_comment_behind(text, given.end, SPEED)
    if not edits:
        return NoFix("the assignment sets several targets at once, and the fix cannot change only one of them")
    return Fix(f"Set {_name_of(write)} to {value}", edits, safe=False)


def _name_of(write: FlagWrite) -> str:
    """A flag as it is written: ``cudnn.benchmark``."""
    return write.setting.what.replace("-", ".")


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


def fix_enabling(project: Traces, program: Program, first: TraceEvent, known: Catalogue) -> Fix | NoFix:
    """Turn deterministic mode on, beside the program's own switch for cuDNN, below its seeding, or where it starts.

    The workspace of cuBLAS is set, too, where the project does not rule out a release that needs it. A trainer that takes the mode as
    an argument sets both.
    """
    trainer = trainer_switch(program)
    if trainer is not None:
        return _passed_to_trainer(project, program, *trainer)
    word = "use_deterministic_algorithms" if release(known.version) >= _MODERN_SINCE else "set_deterministic"
    fix = _beside_own_switch(project, program, first, word) or _enabled(project, program, first, word)
    old = release(known.version) < CUBLAS_NOT_NEEDED_SINCE  # then TRL205 asks for it in turn
    if isinstance(fix, NoFix) or old or (known.declared and release(known.admitted[0]) >= CUBLAS_NOT_NEEDED_SINCE):
        return fix
    if any(flag_writes_in(project, program, CUBLAS_VARIABLE)):
        return fix
    workspace = fix_workspace(project, program.entry.path, program, None, None)
    if isinstance(workspace, NoFix):
        return workspace
    return fix._replace(edits=join_insertions((*workspace.edits, *fix.edits)))


def trainer_switch(program: Program) -> tuple[TraceEvent, str] | None:
    """The first call that makes a trainer which turns the mode on if it is asked to, and does not ask: with the argument for it.

    None where the argument is no literal, or may be passed behind a star.
    """
    for each in program.run.trace_events:
        call = each.event.value
        if each.event.kind != "call" or not isinstance(call, Call):
            continue
        word = next(_words_for_mode(each.names), "")
        given = passing_argument(call, None, word) if word else None
        if word and not (given or any(arg.star for arg in call.args)):
            return each, word
        if given and not given.star and isinstance(given.value, Constant):
            return each, word
    return None


def _words_for_mode(names: Iterable[str]) -> Iterator[str]:
    """The arguments that turn the mode on; not those that also make CUDA wait for each kernel."""
    for row in rows_of(names):
        if not any(each.flag == "CUDA_LAUNCH_BLOCKING" for each in row.settings):
            for each in row.settings:
                match each:
                    case FlagSetting(flag="deterministic-algorithms", value=True, when=(condition,)):
                        yield condition.of


def _passed_to_trainer(project: Traces, program: Program, event: TraceEvent, word: str) -> Fix:
    call = event.event.value
    assert isinstance(call, Call)
    given = passing_argument(call, None, word)
    edit = replace_argument(given, "True") if given else append_argument(call, project.text(event.path), f"{word}=True")
    return fix_in(event.path, program.entry.path, f"Pass {word}=True to {last_identifier(call.func)}", (edit,))


def _beside_own_switch(project: Traces, program: Program, first: TraceEvent, word: str) -> Fix | None:
    """The mode takes the value that the program gives cuDNN's flag: ``cudnn.deterministic = args.deterministic``."""
    for effect in flag_writes_in(project, program, CUDNN_DETERMINISTIC):
        statement, path = effect.trace_event.event.statement, effect.trace_event.path
        if not isinstance(statement, Assign) or not isinstance(statement.value, Ref) or len(statement.targets) > 1:
            continue
        if is_conditional(effect.trace_event, first) or effect.value is not UNKNOWN_VALUE:
            continue
        value = project.text(path)[statement.value.start : statement.value.end]
        return _call_below(project, program, effect.trace_event, span(statement), f"{word}({value})")
    return None


def _call_below(project: Traces, program: Program, beside: TraceEvent, below: Span, call: str) -> Fix:
    """Call a function of torch below a statement of the function that an event is in."""
    path, function = beside.path, split_name(beside.function)[2]
    tree, text = project.files[path], project.text(path)
    torch, imports = ensure_import(tree, text, "torch", inside=f":{function}" if function else "", at=below.end)
    edit = insert_below(text, below, f"{torch}.{call}")
    return fix_in(path, program.entry.path, f"Call torch.{call}", join_insertions((*imports, edit)))


def _enabled(project: Traces, program: Program, first: TraceEvent, word: str) -> Fix | NoFix:
    """The mode is turned on below the unconditional seeding, else where the program starts."""
    trace_events = program.run.trace_events
    order = next(
        (
            n
            for n, each in enumerate(trace_events)
            if event_key(each.path, each.event) == event_key(first.path, first.event)
        ),
        len(trace_events),
    )
    seed = existing_seed(project, program.effects, first, order, "torch")
    # In a file that other programs share, it would be turned on for these, too.
    own = seed is not None and seed.trace_event.path == program.entry.path
    if seed is not None and own and not is_conditional(seed.trace_event, first):
        last = last_seeding_statement(project, seed.trace_event.path, seed.trace_event.event.statement)
        return _call_below(project, program, seed.trace_event, span(last), f"{word}(True)")
    place = start_place(project, program, first)
    if isinstance(place, NoFix):
        return place
    path = program.entry.path
    tree, text = project.files[path], project.text(path)
    inside = place.position.function.name if place.position.function else ""
    at = insert_lines(text, place, "").span.start
    torch, imports = ensure_import(tree, text, "torch", inside=inside, at=at)
    edit = insert_lines(text, place, f"{torch}.{word}(True)")
    fresh = max((each.span.start for each in imports), default=0)
    if not inside and bound_from(tree, "torch", torch, fresh) > edit.span.start:
        return NoFix("torch would be used above its import")
    return Fix(f"Call torch.{word}(True)", join_insertions((*imports, edit)), safe=False)


def fix_workspace(
    project: Traces, own: str, program: Program, wrong: Expression | None, late: Statement | None
) -> Fix | NoFix:
    """Set the variable below the imports, or above them where they already compute; a wrong literal is replaced in place.

    A statement of the same file that sets it ``late``, unconditionally, is moved there.
    """
    if isinstance(wrong, Constant):
        return Fix('Set the variable to ":4096:8"', (Edit(span(wrong), '":4096:8"'),), safe=False)
    path = program.entry.path
    tree, text = project.files[path], project.text(path)
    cut = _remove_late(tree, text, late) if late is not None and own == path else None
    above = text[cut.span.start : late.start] if cut is not None and late is not None else ""
    comment = "".join(f"{line}\n" for line in above.splitlines())
    edits = _below_imports(project, program, tree, text, comment) or _above_torch(tree, text, comment)
    if not edits:
        return NoFix("the file has no line above the first import that may load torch")
    title = Message("Set CUBLAS_WORKSPACE_CONFIG at the top of ", Reference(path))
    return fix_in(path, own, title, (*edits, cut) if cut else edits)


_ABOUT_WORKSPACE = lazy_pattern(r"cublas|determin|reprod|workspace", re.IGNORECASE)


def _remove_late(tree: SyntaxTree, text: str, late: Statement) -> Edit | None:
    """Remove a statement that is unconditional and not alone in its block."""
    position = control_flow_position(tree, late.start)
    block_position = position.spots[-1] if position else None
    plain = (
        block_position is not None
        and block_position.parent is None
        and block_position.statement == late
        and len(block_position.block) > 1
    )
    return (
        remove_statement(text, block_position, about=_ABOUT_WORKSPACE)
        if block_position is not None and plain and isinstance(late, Assign)
        else None
    )


def _below_imports(project: Traces, program: Program, tree: SyntaxTree, text: str, comment: str) -> tuple[Edit, ...]:
    """The setting, under a comment, below the import block of the entry file; none where that computes on CUDA, or there is
    no block.

    cuBLAS reads the variable when its handle is made, at the first product on the device: importing torch makes none.
    """
    path = program.entry.path
    begun = _first_computation(project, program)
    before = [each for each in tree.body if each.end <= begun]
    torch = next((each for each in before if imports_torch(each)), None)
    first = torch or next(iter(before), None)
    cell = [each for each in before if first and in_one_cell(project, path, first.start, each.start)]
    last = last_of_block(cell) or (torch and [each for each in cell if isinstance(each, Import)][-1])
    if last is None or any(only_imports(each) and each.start <= begun < each.end for each in tree.body):
        return ()
    word, imports = ensure_import(tree, text, "os", inside="", at=last.end)
    guard = next((each for each in tree.body if isinstance(each, If) and is_main_test(each.test)), None)
    if guard is not None and begun >= guard.start and _is_library(project, path):
        # The rest of the module is a library: the setting is for the run of its own only.
        setting = insert_statement(text, guard.body[0].start, f"{comment}{word}.environ{_WORKSPACE}")
        return join_insertions((*imports, setting))
    bound = [each.end for each in before if isinstance(each, Import) and (word, "os") in each.names]
    if not imports and not any(end <= last.end for end in bound):
        return ()
    return join_insertions((*imports, insert_paragraph(text, last.end, f"{comment}{word}.environ{_WORKSPACE}")))


def _is_library(project: Traces, path: str) -> bool:
    """Whether a file is a module of a package, or another file imports it."""
    modules = project.resolver.modules
    return posixpath.join(posixpath.dirname(path), "__init__.py") in project.files or any(
        path in modules.imported(other) for other in project.files if other != path
    )


def _first_computation(project: Traces, program: Program) -> int:
    """The offset in the entry file of what leads to the first computation on CUDA; its end where that is not known."""
    found = first_accelerator_computation(project, program)
    path = program.entry.path
    if found is not None:
        event = found[1]
        places = [(step.path, step.event) for step in event.call_path] + [(event.path, event.event)]
        for where, each in places:
            if where == path:
                return each.statement.start
    return len(project.text(path))


def _above_torch(tree: SyntaxTree, text: str, comment: str) -> tuple[Edit, ...]:
    """The setting, under a comment, above the first import that may load torch, with a blank line on each side, and the
    import of os if it is not above.
    """
    first = next((each for each in tree.body if not _is_standard(each)), None)
    if first is None or first.start != lines_of(text).start_of_line(first.start):
        return ()
    above = [each for each in statements(tree.body) if isinstance(each, Import) and each.end <= first.start]
    word = next((local for each in above for local, name in each.names if name == "os"), "")
    line = newline(text)
    edit = insert_statement(text, first.start, f"{comment}{word or 'os'}.environ{_WORKSPACE}{line}")
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
        roots = {top_package(name) for name in statement.modules}
        return roots <= (sys.stdlib_module_names | {"__future__"})
    return isinstance(statement, If) and all(_is_standard(each) for each in (*statement.body, *statement.orelse))
