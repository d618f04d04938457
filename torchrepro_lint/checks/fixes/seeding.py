"""The calls that seed generators, and where they are written: beside those that are there, or at the start of a run.

Where a program starts, as people would say: the function and the line at which its generators are seeded.

A seed that is drawn itself: ``args.seed = random.randint(1, 10000)``. A constant in its place is what a person writes.

TRL101 to TRL103 and TRL110: seed what a run draws from, beside its other seeds or where it starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.checks.fixes.imports import ensure_import
from torchrepro_lint.checks.fixes.insertions import free_name, insert_below, insert_paragraph, insert_statement, newline
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, WORD, SeedValue, module_constant, own_seed
from torchrepro_lint.domain.project import Project
from torchrepro_lint.domain.rng.effects import Effects, Seed
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.control_flow import Level, in_loop, is_main_test, level_of
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Define,
    Do,
    Expression,
    Facts,
    If,
    Import,
    Leave,
    Loop,
    Operation,
    Ref,
    Statement,
    Try,
    parted,
    span,
)
from torchrepro_lint.syntax.nodes import span as span_of
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within
from torchrepro_lint.trace.contexts import is_method
from torchrepro_lint.trace.trace import CallFrame, Happening, guards

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.rng.effects import Draw
    from torchrepro_lint.domain.rng.feasibility import Partly


_TORCH = ("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
# Calls whose one argument is a seed as an integer.
PLAIN_SEEDERS = frozenset(
    (*_TORCH, "torch.cuda.random.manual_seed", "torch.cuda.random.manual_seed_all", "numpy.random.seed", "random.seed")
)
# For each family its module, how that is usually imported, and the call; in the order in which they are written.
_CALLS = {
    "python": ("random", "", "{}.seed"),
    "numpy": ("numpy", "np", "{}.random.seed"),
    "torch": ("torch", "", "{}.manual_seed"),
}
# What starts a function in another process, whose generators are its own.
_SPAWNERS = re.compile(r"(torch\.)?multiprocessing\.|torch\.distributed\.launcher|concurrent\.futures\.ProcessPool")
_ABOUT_SEEDS = re.compile(r"seed|determin|reprod|repeat|debug", re.IGNORECASE)
# The seeds that numpy takes are below this.
_HIGHEST = 2**32


def names_of(families: Iterable[str]) -> str:
    """The families as a title says them: ``torch and numpy``."""
    words = [{"python": "random"}.get(each, each) for each in families]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


class Seeding(NamedTuple):
    """The ``lines`` that seed families, the ``imports`` that they need in a file, and the words that those give to modules."""

    lines: str
    imports: tuple[Edit, ...]
    words: tuple[tuple[str, str], ...]


def seeding(facts: Facts, text: str, families: Sequence[str], seed: str, inside: str, at: int) -> Seeding:
    """How to seed families at an offset inside a function (empty: at the top level). A seed that takes words to write is named first."""
    lines: list[str] = []
    imports: list[Edit] = []
    words: list[tuple[str, str]] = []
    if len(families) > 1 and " if " in seed:
        variable = free_name(facts, "seed", inside)
        lines, seed = [f"{variable} = {seed}"], variable
    for family, (module, short, call) in _CALLS.items():
        if family in families:
            word, edits = ensure_import(facts, text, module, short, inside, at)
            lines.append(f"{call.format(word)}({seed})")
            imports += edits
            words.append((module, word))
    return Seeding("\n".join(lines), tuple(imports), tuple(words))


def beside(project: Project, seed: Seed, families: Sequence[str]) -> tuple[str, tuple[Edit, ...]] | None:
    """Seed families below a call that seeds another, with the same seed: the file, and its edits."""
    path, call = seed.happening.path, seed.happening.event.value
    facts, text = project.files[path], project.text(path)
    if not is_plain(seed.happening) or not isinstance(call, Call):
        return None
    value = call.args[0].value
    written = " ".join(text[call.args[0].start : call.args[0].end].split())
    if isinstance(value, Constant) and isinstance(value.value, int) and not 0 <= value.value < _HIGHEST:
        written = f"{written} % 2**32"
    inside = parted(seed.happening.function)[2]
    above = span(seed.happening.event.statement)
    found = seeding(facts, text, families, written, f":{inside}" if inside else "", above.end)
    return path, joined((*found.imports, insert_below(text, above, found.lines)))


def existing(project: Project, effects: Effects, draw: Happening, order: int, family: str = "") -> Seed | None:
    """The seeding call of a run, of any family, that others can stand beside: the first before a draw, in its process.

    One that runs whatever the options say is preferred, and then one of ``family``.
    """
    found = [
        (is_conditional(seed.happening, draw), seeded != family, seed.order, seed)
        for seeded, seeds in effects.seeds.items()
        for seed in seeds
        if seed.order < order
        and is_plain(seed.happening)
        and not _is_incidental(seed.happening, draw)
        and spawning(project, draw) <= spawning(project, seed.happening)
    ]
    return min(found, key=lambda each: each[:3], default=(None,))[-1]


def is_plain(happening: Happening) -> bool:
    """Whether a seeding call is a statement of its own, of a plain seeder, with a seed that can be written again."""
    call, statement = happening.event.value, happening.event.statement
    if not isinstance(statement, Do) or statement.value is not call or not isinstance(call, Call):
        return False
    if not PLAIN_SEEDERS.intersection(happening.names) or len(call.args) != 1 or call.args[0].star:
        return False
    return all(_is_repeatable(each) for each in within(call.args[0].value))


def spawning(project: Project, happening: Happening) -> frozenset[CallFrame]:
    """The steps of the way that start another process."""
    return frozenset(
        step
        for step in happening.way
        if isinstance(step.event.value, Call)
        and any(_SPAWNERS.match(name) for name in project.names(step.path, step.event.value.func))
    )


def _is_incidental(happening: Happening, draw: Happening) -> bool:
    """Whether a constant seeds on a test that is about something else: a split that is always the same, where there is one."""
    call = happening.event.value
    if not (isinstance(call, Call) and isinstance(call.args[0].value, Constant) and is_conditional(happening, draw)):
        return False
    tests = [guard.value for guard in guards(happening) if guard.kind in ("if", "else") and guard.value is not None]
    read = (each for test in tests for each in within(test) if isinstance(each, Ref))
    return not any(_ABOUT_SEEDS.search(word) for each in read for word in (*each.roots, *each.path))


def fix_in(path: str, own: str, title: str, edits: tuple[Edit, ...]) -> Fix:
    """An unsafe fix with edits of one file, which may be another than the finding's ``own``."""
    return Fix(title, edits, safe=False) if path == own else Fix(title, (), safe=False, elsewhere=((path, edits),))


def _is_repeatable(part: Expression) -> bool:
    match part:
        case Constant(value=value):
            return type(value) is int
        case Call(func=Ref(roots=("builtins.int",), path=())):
            return True
        case Operation(op=op):
            return op not in ("await", "yield", ":=", "f", "*")
    return isinstance(part, Ref)


def is_conditional(happening: Happening, other: Happening) -> bool:
    """Whether something hangs on a test on which another thing of the run does not hang; that for ``__main__`` is none."""
    shared = {id(guard.value) for guard in guards(other)}
    return any(
        guard.kind in ("if", "else")
        and not guard.certain
        and id(guard.value) not in shared
        and not is_main_test(guard.value)
        for guard in guards(happening)
    )


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


_NUMBERS = re.compile(r"random\.(randint|randrange|getrandbits)|numpy\.random\.randint")


def fix_drawn(project: Project, program: Program, draw: Draw) -> Fix | None:
    """Write a constant for a draw whose result is a seed; None where it is something else, or may be no plain number."""
    statement, call = draw.happening.event.statement, draw.happening.event.value
    if not isinstance(statement, Assign) or statement.op not in ("=", ":") or statement.value is None or call is None:
        return None
    if not all(WORD.fullmatch(last_word(target)) for target in statement.targets):
        return None
    drawn = _drawn(statement.value, call)
    if drawn is None or not _is_number(project, draw.happening.path, drawn):
        return None
    edit = Edit(span(drawn), FALLBACK)
    return fix_in(draw.happening.path, program.entry.path, f"take {FALLBACK} for the seed", (edit,))


def _drawn(value: Expression, call: Expression) -> Expression | None:
    """The part of ``args.seed or random.randint(…)`` that draws; the test of a conditional expression is none."""
    if isinstance(value, Operation) and value.op in ("or", "if"):
        found = [each for each in value.operands[-2:] if each.start <= call.start < each.end]
        return _drawn(found[0], call) if found else None
    return value if value.start <= call.start < value.end else None


def _is_number(project: Project, path: str, drawn: Expression) -> bool:
    """``random.randint(…)``, ``int(…)``, ``….item()``: no tensor or array, which is asked for more than its value."""
    if not isinstance(drawn, Call):
        return False
    names = project.names(path, drawn.func)
    sized = len(drawn.args) > 2 or any(arg.keyword == "size" for arg in drawn.args)
    return last_word(drawn.func) == "item" or any(
        name == "builtins.int" or (_NUMBERS.fullmatch(name) is not None and not sized) for name in names
    )


def fix_program(project: Project, program: Program, draws: Sequence[tuple[str, Draw]]) -> Fix | None:
    """Seed all families that a program draws from and does not seed; ``draws`` are the first draw of each family.

    What is seeded from entropy has another fix, which may settle this, too.
    """
    draws = [(family, draw) for family, draw in draws if family not in program.effects.entropic]
    families = [family for family, _ in draws]
    first = min((draw for _, draw in draws), key=lambda draw: draw.order)
    if drawn := fix_drawn(project, program, first):
        return drawn
    seed = existing(project, program.effects, first.happening, first.order)
    found = beside(project, seed, families) if seed else None
    if seed and found:
        title = f"seed {names_of(families)} beside {seed.label}"
        return fix_in(found[0], program.entry.path, title, found[1])
    place = entry_place(project, program, first.happening)
    return fix_start(project, program.entry.path, place, families) if place else None


def fix_start(project: Project, path: str, place: Place, families: Sequence[str]) -> Fix:
    """Seed families where a program starts."""
    where = place.level.function.name[1:] if place.level.function else "the program"
    edits = _edits(project, path, place, families)
    return Fix(f"seed {names_of(families)} at the start of {where}", edits, safe=False)


def fix_partly(project: Project, own: str, partly: Partly) -> Fix | None:
    """Seed the missing family beside the seed that a function has."""
    found = beside(project, partly.seed, (partly.family.key,))
    title = f"seed {names_of((partly.family.key,))} beside {partly.seed.label}"
    return fix_in(found[0], own, title, found[1]) if found else None


def _edits(project: Project, path: str, place: Place, families: Sequence[str]) -> tuple[Edit, ...]:
    facts, text = project.files[path], project.text(path)
    function = place.level.function
    at = insertion(text, place, "").span.start
    found = seeding(facts, text, families, place.seed.text, function.name if function else "", at)
    edit = insertion(text, place, found.lines)
    fresh = max((each.span.start for each in found.imports), default=0)
    late = [each for each in found.words if not function and _bound(facts, *each, fresh) > edit.span.start]
    if late:
        # The draw is reached by an import that stands above those of the modules.
        needed = "".join(f"import {module}{f' as {word}' if word != module else ''}\n" for module, word in late)
        return (insertion(text, place, needed + found.lines),)
    return joined((*found.imports, edit))


def _bound(facts: Facts, module: str, word: str, fresh: int) -> int:
    """From where on a module is bound to a word: the first import of it, or ``fresh``, where one is written."""
    imports = [each for each in statements(facts.body) if isinstance(each, Import)]
    return min((each.end for each in imports if (word, module) in each.names), default=fresh)
