"""The fixes of TRL101 to TRL103 and TRL110: seed beside an existing seeding call, or where the program starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from torchrepro_lint.checks.fixes.arguments import append_argument
from torchrepro_lint.checks.fixes.drawn_seed import fix_drawn
from torchrepro_lint.checks.fixes.import_block import ensure_import
from torchrepro_lint.checks.fixes.insertions import fix_in, free_name, insert_below, insert_paragraph, shadowed
from torchrepro_lint.checks.fixes.program_seed import (
    CONSTANT,
    FALLBACK,
    SEED_LIMIT,
    SEED_NAME,
    binds,
)
from torchrepro_lint.checks.fixes.seed_origins import seeds_dataset
from torchrepro_lint.checks.fixes.seed_place import SeedPlace, entry_place, insert_lines
from torchrepro_lint.checks.fixes.written_seed import written_seed
from torchrepro_lint.checks.repetition import runs_often
from torchrepro_lint.domain.programs import Program, effects_in
from torchrepro_lint.domain.rng.effects import Draw, RngEffects, Seed
from torchrepro_lint.domain.rng.seeders import PLAIN_SEEDERS, is_temporary
from torchrepro_lint.domain.rng.seeding import (
    PartlySeeded,
    last_seeding_statement,
    seeding_functions,
    seeding_parameters,
)
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix, join_insertions
from torchrepro_lint.syntax.nodes import (
    Call,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    Import,
    Operation,
    Param,
    Record,
    Ref,
    Statement,
    Subscript,
    SyntaxTree,
    span,
)
from torchrepro_lint.syntax.qualified_names import in_project, path_of, qualname_of, split_name, without_calls
from torchrepro_lint.syntax.visitor import last_identifier, statements, subexpressions
from torchrepro_lint.trace.call_paths import are_exclusive, process_starts
from torchrepro_lint.trace.events import TraceEvent, guards, is_conditional, tested_references
from torchrepro_lint.trace.traces import Traces

# For each family its modules, the usual short name and the call; in the order in which they are written. The first of the
# modules is imported where the file has none.
_SEED_CALLS = {
    "python": (("random", "", "{}.seed"),),
    "numpy": (("numpy", "np", "{}.random.seed"), ("numpy.random", "npr", "{}.seed")),
    "torch": (("torch", "", "{}.manual_seed"),),
}
_ABOUT_SEEDS = lazy_pattern(r"seed|determin|reprod|repeat|debug", re.IGNORECASE)


def family_names(families: Iterable[str]) -> str:
    """The families in a title: ``torch and numpy``."""
    words = [{"python": "random"}.get(each, each) for each in families]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


class SeedingLines(Record, frozen=True):
    """The ``lines`` that seed families, the ``imports`` that they need in a file, and the names of the imported
    modules.
    """

    lines: str
    imports: tuple[Edit, ...]
    words: tuple[tuple[str, str], ...]


def seeding_lines(
    tree: SyntaxTree, text: str, families: Sequence[str], seed: str, inside: str, at: int, *, repeats: bool = False
) -> SeedingLines:
    """How to seed families at an offset inside a function (empty: at the top level). For several families, a constant or
    conditional seed is first bound to a name, unless the line ``repeats`` that of a call above.
    """
    lines: list[str] = []
    imports: list[Edit] = []
    words: list[tuple[str, str]] = []
    if len(families) > 1 and not repeats and (" if " in seed or seed == FALLBACK):
        variable = free_name(tree, "seed" if inside or seed != FALLBACK else CONSTANT, inside)
        lines, seed = [f"{variable} = {seed}"], variable
    for family, modules in _SEED_CALLS.items():
        if family in families:
            ways = [
                (module, call, *ensure_import(tree, text, module, short, inside, at)) for module, short, call in modules
            ]
            module, call, word, edits = next((way for way in ways if not way[-1]), ways[0])
            lines.append(f"{call.format(word)}({seed})")
            imports += edits
            words.append((module, word))
    return SeedingLines("\n".join(lines), tuple(imports), tuple(words))


def seed_beside(project: Traces, seed: Seed, families: Sequence[str]) -> tuple[str, tuple[Edit, ...]] | None:
    """Seed families below a call that seeds another, with the same seed: the file, and its edits."""
    path, call = seed.trace_event.path, seed.trace_event.event.value
    tree, text = project.files[path], project.text(path)
    if not is_plain_seeding(seed.trace_event) or not isinstance(call, Call):
        return None
    value = call.args[0].value
    written = " ".join(text[call.args[0].start : call.args[0].end].split())
    if isinstance(value, Constant) and isinstance(value.value, int) and not 0 <= value.value < SEED_LIMIT:
        written = f"{written} % 2**32"
    inside = split_name(seed.trace_event.function)[2]
    above = span(last_seeding_statement(project, path, seed.trace_event.event.statement, flags=False))
    place = f":{inside}" if inside else ""
    found = seeding_lines(tree, text, families, written, place, above.end, repeats=" if " not in written)
    return path, join_insertions((*found.imports, insert_below(text, above, found.lines)))


def existing_seed(project: Traces, effects: RngEffects, draw: TraceEvent, order: int, family: str = "") -> Seed | None:
    """The seeding call of a trace, of any family, beside which others can stand: the first before a draw, in its
    process.

    An unconditional one is preferred, and then one of ``family``.
    """
    found = [
        (is_conditional(seed.trace_event, draw), seeded != family, seed.order, seed)
        for seeded, seeds in effects.seeds.items()
        for seed in seeds
        if seed.order < order
        and is_plain_seeding(seed.trace_event)
        and not is_temporary(project.resolver, seed.trace_event)
        and not are_exclusive(project, draw, seed.trace_event)
        and not _is_incidental(project, seed.trace_event, draw)
        and process_starts(project, draw) == process_starts(project, seed.trace_event)
    ]
    return min(found, key=lambda each: each[:3], default=(None,))[-1]


def is_plain_seeding(trace_event: TraceEvent) -> bool:
    """Whether a seeding call is a statement of its own, of a plain seeder, with a seed that can be written again."""
    call, statement = trace_event.event.value, trace_event.event.statement
    if not isinstance(statement, ExpressionStatement) or statement.value != call or not isinstance(call, Call):
        return False
    if not PLAIN_SEEDERS.intersection(trace_event.names) or len(call.args) != 1 or call.args[0].star:
        return False
    return all(_is_repeatable(each) for each in subexpressions(call.args[0].value))


def _is_incidental(project: Traces, trace_event: TraceEvent, draw: TraceEvent) -> bool:
    """Whether a call seeds for a purpose of its own: of a dataset's samples, or under a test a constant or another seed than that of the
    program, such as that of a split.
    """
    call = trace_event.event.value
    if seeds_dataset(project, trace_event):
        return True
    if not (isinstance(call, Call) and is_conditional(trace_event, draw)):
        return False
    match call.args[0].value:
        case Ref() as given:
            return not SEED_NAME.fullmatch(last_identifier(given))
        case Constant():
            pass
        case _:
            return False
    read = tested_references(guards(trace_event))
    return not any(_ABOUT_SEEDS.search(word) for each in read for word in (*each.roots, *each.path))


def _is_repeatable(part: Expression) -> bool:
    match part:
        case Constant(value=value):
            return type(value) in (int, str)
        case Subscript(indices=(Constant(),)):
            return True
        case Call(func=Ref(roots=("builtins.int",), path=())):
            return True
        case Operation(op=op):
            return op not in ("await", "yield", ":=", "f", "*")
    return isinstance(part, Ref)


def fix_program(project: Traces, program: Program, draws: Sequence[tuple[str, Draw]]) -> Fix | NoFix:
    """Seed all families that a program draws from and does not seed; ``draws`` are the first draw of each family.

    A family that is seeded from entropy has another fix, which may also settle this.
    """
    draws = [(family, draw) for family, draw in draws if family not in program.effects.entropic]
    families = [family for family, _ in draws]
    first = min((draw for _, draw in draws), key=lambda draw: draw.order)
    if (drawn := fix_drawn(project, program, first)) is not None:
        return drawn
    seed = existing_seed(project, program.effects, first.trace_event, first.order)
    found = seed_beside(project, seed, families) if seed else None
    if seed and found:
        title = f"Seed {family_names(families)} beside {seed.label}"
        return fix_in(found[0], program.entry.path, title, found[1])._replace(seeds=True)
    if (passed := _pass_seed(project, program, first, families)) is not None:
        return passed
    place = entry_place(project, program, first.trace_event)
    if isinstance(place, NoFix):
        return place
    helper = seed_helper(project, program.entry.path, families)
    called = _call_helper(project, program.entry.path, place, helper) if helper else None
    return called or fix_start(project, program.entry.path, place, families)


def _pass_seed(project: Traces, program: Program, draw: Draw, families: Sequence[str]) -> Fix | None:
    """Pass a seed to the call that draws first, where it then seeds all families before it draws: ``PPO(..., seed=0)``."""
    event, call = draw.trace_event, draw.trace_event.event.value
    if not draw.seed or not isinstance(call, Call) or is_conditional(event) or runs_often(project, event.path, call):
        return None
    rows = [row for name in event.names if (row := project.catalogue.seeder(without_calls(name))) is not None]
    if not any(row.seed == draw.seed and set(families) <= set(row.families) for row in rows):
        return None
    if any(arg.star == "**" or arg.keyword == draw.seed for arg in call.args):
        return None
    seed = written_seed(project, event.path, call.start, seeder=True)
    if isinstance(seed, NoFix):
        return None
    argument = f"{draw.seed}={FALLBACK if seed.edits else seed.text}"
    edit = append_argument(call, project.text(event.path), argument)
    return fix_in(event.path, program.entry.path, f"Pass {argument} to {draw.label}", (edit,))._replace(seeds=True)


class SeedHelper(Record, frozen=True):
    """A function of the project, under its name in a file, that seeds what it is asked to; ``seed`` is its parameter for the seed,
    and ``bound`` the statement of the file that binds its name.
    """

    word: str
    seed: Param | None
    bound: Statement


def seed_helper(project: Traces, path: str, families: Sequence[str]) -> SeedHelper | None:
    """The function of the project, defined or imported in a file, also by a star, that is named after seeds, seeds families
    unconditionally, and neither draws nor trains. It takes the seed first, or nothing.
    """
    tree, modules = project.files[path], project.resolver.modules
    starred = {word: (f"?{word}",) for word in _starred_words(project, path)}
    for word, names in {**starred, **dict(tree.exports)}.items():
        if not _ABOUT_SEEDS.search(word):
            continue
        local = "*" if names == starred.get(word) else word
        for target in modules.resolve(path, names[0]) if len(names) == 1 else ():
            bound = next((each for each in reversed(tree.body) if binds(each, local)), None)
            if bound is None or not in_project(target) or target not in seeding_functions(project, path_of(target)):
                continue
            effects = effects_in(project, target)
            if effects.draws or effects.results or effects.entropic or not effects.seeds.keys() >= set(families):
                continue
            if any(all(is_conditional(each.trace_event) for each in effects.seeds[family]) for family in families):
                continue
            for definition in project.resolver.functions(target):
                first, *others = definition.params or (None,)
                seeds = first is None or first.name in {*seeding_parameters(project, target)}
                if seeds and not definition.decorators and all(each.default is not None for each in others):
                    return SeedHelper(word, first, bound)
    return None


def _starred_words(project: Traces, path: str) -> set[str]:
    """The words that one star import brings into a file, as far as no ``__all__`` leaves them out."""
    trees = [project.files[each] for each in project.resolver.modules.starred(path) if each != path]
    lists = [tree.assigned[":__all__"] for tree in trees if ":__all__" in tree.assigned]
    listed = [
        {part.value for _, value in each for part in subexpressions(value) if isinstance(part, Constant)}
        for each in lists
    ]
    words = Counter(word for tree in trees for word, _ in tree.exports)
    return {word for word, count in words.items() if count == 1 and all(word in each for each in listed)}


def _call_helper(project: Traces, path: str, place: SeedPlace, helper: SeedHelper) -> Fix | None:
    """Call a function of the project that seeds, below its definition; with the program's own seed, or with its default."""
    text, function = project.text(path), place.position.function
    own = place.seed.text != FALLBACK
    if shadowed(project.files[path], helper.word, function.name if function else "") or (own and helper.seed is None):
        return None
    if function is None and place.position.spots[0].statement.start < helper.bound.end:
        return None
    default = helper.seed.default if helper.seed else None
    is_given = helper.seed is None or (isinstance(default, Constant) and type(default.value) is int and not own)
    call = f"{helper.word}({'' if is_given else place.seed.text})"
    edit = insert_lines(text, place, call)
    if function is None and edit.span.start < helper.bound.end:
        apart = "\n" if isinstance(helper.bound, DefinitionStatement) else ""  # two blank lines below a function
        edit = insert_paragraph(text, helper.bound.end, f"{apart}{call}")
    return Fix(f"Call {helper.word}", (edit,), safe=False, seeds=True)


def fix_start(project: Traces, path: str, place: SeedPlace, families: Sequence[str]) -> Fix:
    """Seed families where a program starts."""
    where = qualname_of(place.position.function.name) if place.position.function else "the program"
    edits = _start_edits(project, path, place, families)
    return Fix(f"Seed {family_names(families)} at the start of {where}", edits, safe=False, seeds=True)


def fix_partly(project: Traces, own: str, partly: PartlySeeded) -> Fix | NoFix:
    """Seed the missing family beside the seed that a function has."""
    found = seed_beside(project, partly.seed, (partly.family.key,))
    title = f"Seed {family_names((partly.family.key,))} beside {partly.seed.label}"
    if found is None:
        return NoFix(f"the seed that {partly.seed.label} gets cannot be written a second time")
    return fix_in(found[0], own, title, found[1])._replace(seeds=True)


def _start_edits(project: Traces, path: str, place: SeedPlace, families: Sequence[str]) -> tuple[Edit, ...]:
    tree, text = project.files[path], project.text(path)
    function = place.position.function
    at = insert_lines(text, place, "").span.start
    found = seeding_lines(tree, text, families, place.seed.text, function.name if function else "", at)
    edit = insert_lines(text, place, found.lines)
    fresh = max((each.span.start for each in found.imports), default=0)
    late = [each for each in found.words if not function and bound_from(tree, *each, fresh) > edit.span.start]
    if late:
        # An import above those of the modules leads to the draw.
        needed = "".join(f"import {module}{f' as {word}' if word != module else ''}\n" for module, word in late)
        return (insert_lines(text, place, needed + found.lines),)
    return join_insertions((*found.imports, edit))


def bound_from(tree: SyntaxTree, module: str, word: str, fresh: int) -> int:
    """The offset from which a module has a name: the end of its first import, or ``fresh``, where a new one is written."""
    imports = [each for each in statements(tree.body) if isinstance(each, Import)]
    return min((each.end for each in imports if (word, module) in each.names), default=fresh)
