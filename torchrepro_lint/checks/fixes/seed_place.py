"""Where to seed a program: the place in its entry file, above its first draw, and the seed that can be written there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchrepro_lint.checks.fixes.import_block import last_of_block, only_imports
from torchrepro_lint.checks.fixes.insertions import insert_below, insert_paragraph, insert_statement, newline
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, SeedValue, own_seed
from torchrepro_lint.checks.fixes.seed_constants import module_constant
from torchrepro_lint.checks.fixes.seed_origins import SeedOrigin, SeedScope, constant_of, seed_origins
from torchrepro_lint.checks.repetition import function_runs_often
from torchrepro_lint.domain.programs import Program, program_at
from torchrepro_lint.domain.rng.effects import Seed
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, NoFix
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    DefinitionStatement,
    ExpressionStatement,
    If,
    Import,
    Loop,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    span,
)
from torchrepro_lint.syntax.qualified_names import is_method, is_nested, qualifier_of, simple_name
from torchrepro_lint.syntax.scopes import BlockPosition, ControlFlowPosition, control_flow_position, in_loop
from torchrepro_lint.syntax.visitor import body_expressions, expressions_within, last_identifier
from torchrepro_lint.trace.call_paths import fresh_start, process_starts
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import TraceEvent, guards, prefix_and_rest
from torchrepro_lint.trace.traces import Traces

_MAIN_NAMES = frozenset({"main", "_main", "run", "cli", "launch", "train", "entry"})


class SeedPlace(Record, frozen=True):
    """The position at which to seed, and the program's own seed there, or a constant in its stead."""

    position: ControlFlowPosition
    seed: SeedValue


def entry_place(
    project: Traces, program: Program, trace_event: TraceEvent, late: Sequence[str] = ()
) -> SeedPlace | NoFix:
    """Where to seed a program, above a draw: its ``start_place``, with a seed that all its runs and ranks can have.

    There is none where the program's seed, or the rank of its processes, is not in scope there. Families that the program seeds ``late``
    get no constant where it seeds them with anything else.
    """
    place = start_place(project, program, trace_event)
    if isinstance(place, NoFix):
        return place
    if place.seed.text != FALLBACK:
        return _for_each_rank(project, program, place, trace_event)
    origins = seed_origins(project, program.effects)
    written = _written_at_start(project, program.entry.path, place.position, origins)
    if written is not None:
        return place._replace(seed=written)
    constants = [constant_of(each) for each in (seed_origins(project, program.effects, late) if late else origins)]
    known = [each for each in constants if each is not None]
    hidden = any(_is_in_settings(project, each) for family in late for each in program.effects.seeds.get(family, ()))
    if hidden or (constants and not known) or (late and len(known) < len(constants)):
        return NoFix("the seed of the program is not in scope where the first draw is reached")
    if known:
        place = place._replace(seed=SeedValue(str(known[0]), None))
    return _for_each_rank(project, program, place, trace_event)


def _is_in_settings(project: Traces, seed: Seed) -> bool:
    """Whether the seed may be in settings that are unpacked, ``Trainer(args=TrainingArguments(**settings))``."""
    call, path = seed.trace_event.event.value, seed.trace_event.path
    given = [each for arg in call.args for _, each in project.values(path, arg.value)] if isinstance(call, Call) else []
    return any(arg.star == "**" for each in (call, *given) if isinstance(each, Call) for arg in each.args)


def start_place(project: Traces, program: Program, trace_event: TraceEvent) -> SeedPlace | NoFix:
    """Where the program's own seed is bound first on the call path to an event, else the program's main function, with a
    constant for its seed.

    It stands above a test of which only one branch would be seeded. There is none where the path leads through a loop or
    another process.
    """
    positions = _common_positions(program, entry_positions(project, program, trace_event))
    for number, position in enumerate(positions):
        seed = own_seed(project, program.entry.path, position)
        if seed is not None and not _is_in_loop(position, seed) and not _is_module_constant(position, seed):
            return SeedPlace(position, seed)
        if number + 1 < len(positions) and in_loop(position):
            break
    home = _main_position(positions)
    if home is None or _runs_for_each_item(project, program.entry.path, home):
        return _NO_PLACE
    return SeedPlace(home, module_constant(project, program.entry.path, home) or SeedValue(FALLBACK, None))


_NO_PLACE = NoFix(
    "the draw is reached only in a loop, in another process or once for each item, so there is no single place to seed"
)


def _runs_for_each_item(project: Traces, path: str, position: ControlFlowPosition) -> bool:
    return position.function is not None and function_runs_often(project, path, position)


def _written_at_start(
    project: Traces, path: str, home: ControlFlowPosition, origins: Sequence[SeedOrigin]
) -> SeedValue | None:
    """A seed of the program as the start of its main function can write it; a literal is not repeated here."""
    block = home.spots[0].block
    scope = SeedScope(project, path, ControlFlowPosition(home.function, (BlockPosition(block, 0, None),)))
    usable = (each for each in origins if not each.conditional and constant_of(each) is None)
    texts = (scope.written(each) for each in usable if home.function is not None)
    return next((SeedValue(each, None) for each in texts if each is not None), None)


def _common_positions(program: Program, positions: list[ControlFlowPosition]) -> list[ControlFlowPosition]:
    """The positions down to the first test of which only one branch draws what they lead to; that one ends at the test."""
    found: list[ControlFlowPosition] = []
    for position in positions:
        for number, spot in enumerate(position.spots):
            branch = spot.parent if isinstance(spot.parent, If) and not is_main_test(spot.parent.test) else None
            kind = "if" if branch and spot.block == branch.body else "else"
            home = position.symbol(program.entry.path)
            if branch and not (
                _all_draws_under(program, branch, kind) and _is_entered_only_under(program, home, branch, kind)
            ):
                return [*found, ControlFlowPosition(position.function, position.spots[:number])]
        found.append(position)
    return found


def _all_draws_under(program: Program, test: If, branch: str) -> bool:
    """Whether all draws of a program that nothing seeds stand in one branch of a test."""
    effects = program.effects
    return all(
        any(guard.value == test.test and guard.kind == branch for guard in guards(draw.trace_event))
        for family, draws in effects.draws.items()
        if family not in effects.seeds
        for draw in draws
    )


def _is_entered_only_under(program: Program, home: str, test: If, branch: str) -> bool:
    """Whether all calls that lead from a function to the draws stand in one branch of a test: of several that lead to one draw, a trace
    has only the first.
    """
    edges, entered = program.run.call_edges, {home}
    seeded = program.effects.seeds
    draws = (each for family, some in program.effects.draws.items() if family not in seeded for each in some)
    todo = {each.trace_event.function for each in draws} - entered
    while todo:
        entered.add(function := todo.pop())
        for edge in edges.get(function, ()):
            if any(each.value == test.test and each.kind == branch for each in edge.event.guards):
                continue
            if edge.caller == home:
                return False
            todo.update({edge.caller} - entered)
    return True


# Parameters and variables that hold the number of a process.
_RANK = lazy_pattern(r"(?i)_*((global|local|world|process|proc|dist)_?)?rank|process_(index|idx|id)|gpu(_id)?")
# Calls after which a program is one of several processes; on a ``mesh`` some of them may have to draw alike.
_JOINS = lazy_pattern(
    r"torch\.distributed\.(distributed_c10d\.)?init_process_group|torch\.distributed\.rpc\.init_rpc|"
    r"deepspeed\.init_distributed|torch\.distributed\.(\w+\.)*init_device_(?P<mesh>mesh)"
)


def _process_starts(_start: int, trace_events: Sequence[TraceEvent]) -> frozenset[str]:
    """How some events join a group of processes: ``mesh``, or ``group``."""
    found = (_JOINS.fullmatch(name) for each in trace_events if each.event.kind == "call" for name in each.names)
    return frozenset(each["mesh"] or "group" for each in found if each)


@query()
def process_groups(project: Traces, entry: Entry) -> frozenset[str]:
    """How the program of an entry point joins a group of processes: ``mesh``, or ``group``; empty where it is known to be alone."""
    run = program_at(project, entry).run
    return frozenset[str]().union(*prefix_and_rest(run, "process starts", _process_starts))


def _for_each_rank(project: Traces, program: Program, place: SeedPlace, trace_event: TraceEvent) -> SeedPlace | NoFix:
    """The place with the rank added to its seed where the program runs in several processes: they draw apart today."""
    starts = process_groups(project, program.entry)
    if "mesh" in starts:
        return NoFix("only the author knows which processes of the device mesh should draw the same numbers")
    spawned = _index_of_process(project, program.entry.path, place.position, trace_event)
    if not starts and spawned is None:
        return place
    params = place.position.function.params if place.position.function else ()
    text, after = place.seed
    named = next((each.name for each in params if _RANK.fullmatch(each.name)), None)
    rank = named or spawned or _rank_option(project, program, place.position, text)
    if rank is None:
        bound = _rank_bound_before(place.position)
        if bound is None:
            return NoFix("each process of the run needs its own seed, and no rank is in scope where the run starts")
        rank, statement = bound
        after = statement if after is None or after.start < statement.start else after
    if re.search(rf"\b{re.escape(rank)}\b", text):
        return place
    plain = rank if text == FALLBACK else f"({text}) + {rank}" if " if " in text else f"{text} + {rank}"
    return place._replace(seed=SeedValue(plain, after))


def _index_of_process(project: Traces, path: str, position: ControlFlowPosition, trace_event: TraceEvent) -> str | None:
    """The first parameter of a function that ``torch.multiprocessing.spawn`` runs in each of several processes."""
    start, function = fresh_start(project, trace_event), position.function
    if start is None or function is None or not function.params or start.into != f"{path}{function.name}":
        return None
    call = start.event.value
    return function.params[0].name if isinstance(call, Call) and last_identifier(call.func) == "spawn" else None


def _rank_option(project: Traces, program: Program, position: ControlFlowPosition, seed: str) -> str | None:
    """The option of the rank beside that of the seed, declared by the program or read in the function: ``args.local_rank``. Where there
    is no seed, that of a parameter; one that is -1 for a single process goes up by one, since NumPy takes no negative seed.
    """
    options = project.resolver.options
    params = position.function.params if position.function else ()
    holders = [each.name for each in params] if seed == FALLBACK else [qualifier_of(seed)]
    read = [
        (last_identifier(each._replace(path=())), each.path[0])
        for each in body_expressions(position.body)
        if isinstance(each, Ref) and len(each.path) == 1
    ]
    declared = options.declared_in(program.entry.path) or tuple(
        option for path in sorted(program.run.paths) for option in options.declared_in(path)
    )
    beside = sorted({each.word for each in declared}) if seed != FALLBACK and holders[0].isidentifier() else []
    found = [*((holders[0], each) for each in beside), *(each for each in read if each[0] in holders)]
    rank = next((each for each in found if _RANK.fullmatch(each[1]) and not each[1].startswith("gpu")), None)
    if rank is None:
        return None
    defaults = (each.default for each in options.named(rank[1]))
    alone = any(isinstance(each, Constant) and each.value == -1 for each in defaults)
    return ".".join(rank) + (" + 1" if alone and seed == FALLBACK else "")


def _rank_bound_before(position: ControlFlowPosition) -> tuple[str, Statement] | None:
    """The variable of a rank that a statement of the function binds before a position."""
    for statement in position.spots[0].before:
        for target in statement.targets if isinstance(statement, Assign) else ():
            if isinstance(target, Ref) and not target.path and _RANK.fullmatch(last_identifier(target)):
                return last_identifier(target), statement
    return None


def entry_positions(project: Traces, program: Program, trace_event: TraceEvent) -> list[ControlFlowPosition]:
    """The positions in the entry file on the call path to an event, outermost function first.

    Positions before the start of another process are left out.
    """
    path, spawns = program.entry.path, process_starts(project, trace_event)
    positions: list[ControlFlowPosition] = []
    for step in trace_event.call_path:
        if step.path != path:
            return positions
        if (position := control_flow_position(project.files[path], step.event.statement.start)) is None:
            return []
        positions = [] if step in spawns else [*positions, position]
        if is_method(step.into):
            return positions
    last = (
        control_flow_position(project.files[path], trace_event.event.statement.start)
        if trace_event.path == path
        else None
    )
    return [*positions, last] if last else positions


def insert_lines(text: str, place: SeedPlace, lines: str) -> Edit:
    """Write lines at a place: below the statement that binds the seed, else at the start."""
    outer, after = place.position.spots[0], place.seed.after
    guarded = isinstance(outer.statement, If) and is_main_test(outer.statement.test) and len(place.position.spots) > 1
    if guarded and (after is None or _is_in_block(after, outer.block)):
        return _before_first(text, place.position.spots[1].block, lines)
    if after is not None and place.position.function is None and _is_in_block(after, outer.block):
        return insert_paragraph(text, _below_constants(outer.before, after).end, lines)
    if after is not None:
        return insert_below(text, span(after), lines)
    if place.position.function is not None:
        return _before_first(text, outer.block, lines)
    imports = [each for each in outer.before if only_imports(each)]
    if imports:
        return insert_paragraph(text, imports[-1].end, lines)
    return insert_statement(text, first_offset(text, outer.statement), lines)


def _is_in_loop(position: ControlFlowPosition, seed: SeedValue) -> bool:
    """Whether the statement that binds a seed stands in a loop."""
    looped = False
    for block_position in position.spots:
        looped = looped or isinstance(block_position.parent, Loop)
        if seed.after is not None and _is_in_block(seed.after, block_position.block):
            return looped
    return False


def _is_module_constant(position: ControlFlowPosition, seed: SeedValue) -> bool:
    """Whether a seed is a constant of the module, which is bound everywhere."""
    after = seed.after
    return position.function is None and isinstance(after, Assign) and isinstance(after.value, Constant)


def _main_position(positions: list[ControlFlowPosition]) -> ControlFlowPosition | None:
    """The function that is the program: below calls such as ``main()`` under the ``__main__`` guard. One in another function is not: it
    may be handed on, and run for each batch.
    """
    for number, position in enumerate(positions):
        last = position.spots[-1]
        launches = isinstance(last.statement, (ExpressionStatement, SimpleStatement)) and (
            len(last.block) == 1 or _calls_main(last.statement)
        )
        inner = positions[number + 1].function if number + 1 < len(positions) else position.function
        deeper = inner != position.function and not (inner is not None and is_nested(inner.name))
        if not (launches and deeper and not in_loop(position)):
            return position
    return None


def _calls_main(statement: Statement) -> bool:
    """``main()``, ``sys.exit(main())``, ``raise SystemExit(main())``."""
    funcs = [each.func for each in expressions_within(statement) if isinstance(each, Call)]
    words = {simple_name((*func.roots[:1], *func.path)[-1]) for func in funcs if isinstance(func, Ref)}
    return isinstance(statement, (ExpressionStatement, SimpleStatement)) and not words.isdisjoint(_MAIN_NAMES)


def _below_constants(before: tuple[Statement, ...], after: Statement) -> Statement:
    """The last of the imports and literal assignments that directly follow a statement, and of the import block around it."""
    at = [each == after for each in before].index(True)
    block = last_of_block(before)
    if block is not None and block.start > after.start:
        return block
    last = after
    for statement in before[at + 1 :]:
        literal = isinstance(statement, Assign) and isinstance(statement.value, Constant)
        if not (literal and isinstance(after, Assign) and isinstance(after.value, Constant)) and not only_imports(
            statement
        ):
            break
        last = statement
    return last


def _before_first(text: str, block: tuple[Statement, ...], lines: str) -> Edit:
    """Before the first statement of a block that is no import; above its comments, with a blank line."""
    first = next((each for each in block if not isinstance(each, Import)), block[-1])
    edit = insert_statement(text, first_offset(text, first), lines)
    commented = text[edit.span.start : first.start].lstrip().startswith("#")
    return edit._replace(text=edit.text + newline(text)) if commented else edit


def first_offset(text: str, statement: Statement) -> int:
    """Where a statement starts, its decorators included."""
    if isinstance(statement, DefinitionStatement) and statement.values:
        first = min(each.start for each in statement.values)
        return text.rfind("@", 0, first) if first < statement.start else statement.start
    return statement.start


def _is_in_block(statement: Statement, block: tuple[Statement, ...]) -> bool:
    return any(each == statement for each in block)
