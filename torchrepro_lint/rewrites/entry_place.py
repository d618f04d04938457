"""Where a program starts, as people would say: the function and the line at which its generators are seeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.insertions import insert_below, insert_paragraph, insert_statement
from torchrepro_lint.layout import newline
from torchrepro_lint.rewrites.seed_calls import spawning
from torchrepro_lint.rewrites.seed_fields import FALLBACK
from torchrepro_lint.rewrites.seed_values import SeedValue, module_constant, own_seed
from torchrepro_lint.source.text import Edit
from torchrepro_lint.syntax.control_flow import Level, in_loop, is_main_test, level_of
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Define,
    Do,
    If,
    Import,
    Leave,
    Loop,
    Ref,
    Statement,
    Try,
)
from torchrepro_lint.syntax.nodes import span as span_of
from torchrepro_lint.syntax.visitor import expressions, statements, within
from torchrepro_lint.trace.contexts import is_method

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.trace.trace import Happening

_LAUNCHERS = frozenset({"main", "_main", "run", "cli", "launch", "train", "entry"})


class Place(NamedTuple):
    """The level at which to seed, and the program's own seed there, or the constant that stands in for one."""

    level: Level
    seed: SeedValue


def entry_place(project: Project, program: Program, happening: Happening) -> Place | None:
    """Where the program's own seed is known first on the way to something, else the program's main function.

    None where only a loop, or another process, leads there.
    """
    levels = entry_levels(project, program, happening)
    for number, level in enumerate(levels):
        seed = own_seed(project, program.entry.path, level)
        if seed is not None and not _repeats(level, seed) and not _is_constant(level, seed):
            return Place(level, seed)
        if number + 1 < len(levels) and in_loop(level):
            break
    home = _home(levels)
    if home is None:
        return None
    return Place(home, module_constant(project, program.entry.path, home) or SeedValue(FALLBACK, None))


def entry_levels(project: Project, program: Program, happening: Happening) -> list[Level]:
    """The functions of the entry file that lead to something, outermost first, each with the statement that leads on.

    Those that another process is started from are left out.
    """
    path, spawns = program.entry.path, spawning(project, happening)
    levels: list[Level] = []
    for step in happening.way:
        if step.path != path:
            return levels
        if (level := level_of(project.files[path], step.event.statement.start)) is None:
            return []
        levels = [] if step in spawns else [*levels, level]
        if is_method(step.into):
            return levels
    last = level_of(project.files[path], happening.event.statement.start) if happening.path == path else None
    return [*levels, last] if last else levels


def insertion(text: str, place: Place, lines: str) -> Edit:
    """Write lines where a place says: below the statement that makes the seed known, else at the start."""
    outer, after = place.level.spots[0], place.seed.after
    guarded = isinstance(outer.statement, If) and is_main_test(outer.statement.test) and len(place.level.spots) > 1
    if guarded and (after is None or _among(after, outer.block)):
        return _before_first(text, place.level.spots[1].block, lines)
    if after is not None and place.level.function is None and _among(after, outer.block):
        return insert_paragraph(text, _below_constants(outer.before, after).end, lines)
    if after is not None:
        return insert_below(text, span_of(after), lines)
    if place.level.function is not None:
        return _before_first(text, outer.block, lines)
    imports = [each for each in outer.before if _only_imports(each)]
    if imports:
        return insert_paragraph(text, imports[-1].end, lines)
    return insert_statement(text, first_offset(text, outer.statement), lines)


def _repeats(level: Level, seed: SeedValue) -> bool:
    """Whether the statement after which a seed is known stands in a loop."""
    looped = False
    for spot in level.spots:
        looped = looped or isinstance(spot.around, Loop)
        if seed.after is not None and _among(seed.after, spot.block):
            return looped
    return False


def _is_constant(level: Level, seed: SeedValue) -> bool:
    """Whether a seed is a constant of the module, which is known everywhere."""
    after = seed.after
    return level.function is None and isinstance(after, Assign) and isinstance(after.value, Constant)


def _home(levels: list[Level]) -> Level | None:
    """The function that is the program: below calls such as ``main()`` under the guard."""
    for number, level in enumerate(levels):
        last = level.spots[-1]
        launches = isinstance(last.statement, (Do, Leave)) and (len(last.block) == 1 or _calls_main(last.statement))
        deeper = number + 1 < len(levels) and levels[number + 1].function is not level.function
        if not (launches and deeper and not in_loop(level)):
            return level
    return None


def _calls_main(statement: Statement) -> bool:
    """``main()``, ``sys.exit(main())``, ``raise SystemExit(main())``."""
    found = [each for expression in expressions(statement) for each in within(expression)]
    funcs = [each.func for each in found if isinstance(each, Call)]
    words = {
        (*func.roots[:1], *func.path)[-1].rpartition(".")[2].lstrip(":") for func in funcs if isinstance(func, Ref)
    }
    return isinstance(statement, (Do, Leave)) and not words.isdisjoint(_LAUNCHERS)


def _below_constants(before: tuple[Statement, ...], after: Statement) -> Statement:
    """The last of the imports and literal assignments that follow a statement without a break."""
    last = after
    for statement in before[[each is after for each in before].index(True) + 1 :]:
        literal = isinstance(statement, Assign) and isinstance(statement.value, Constant)
        if not (literal and isinstance(after, Assign) and isinstance(after.value, Constant)) and not _only_imports(
            statement
        ):
            break
        last = statement
    return last


def _before_first(text: str, block: tuple[Statement, ...], lines: str) -> Edit:
    """Before the first statement of a block that is no import; above comments on that one, with a blank line."""
    first = next((each for each in block if not isinstance(each, Import)), block[-1])
    edit = insert_statement(text, first_offset(text, first), lines)
    commented = text[edit.span.start : first.start].lstrip().startswith("#")
    return edit._replace(text=edit.text + newline(text)) if commented else edit


def first_offset(text: str, statement: Statement) -> int:
    """Where a statement starts, its decorators included."""
    if isinstance(statement, Define) and statement.values:
        first = min(each.start for each in statement.values)
        return text.rfind("@", 0, first) if first < statement.start else statement.start
    return statement.start


def _only_imports(statement: Statement) -> bool:
    """An import, or a ``try`` or ``if`` that is there for one."""
    if not isinstance(statement, (Try, If)):
        return isinstance(statement, Import)
    inner = [each for each in statements((statement,)) if each is not statement]
    return any(isinstance(each, Import) for each in inner) and not any(isinstance(each, Define) for each in inner)


def _among(statement: Statement, block: tuple[Statement, ...]) -> bool:
    return any(each is statement for each in block)
