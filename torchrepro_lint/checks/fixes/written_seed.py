"""Which seed a fix writes at a place: one that keeps apart the runs and ranks that the program keeps apart.

In this order: the program's own seed, where an expression in scope leads to it, with the rank where the program adds
one; ``torch.initial_seed()`` where torch is seeded by then, or where no program is known; a constant where the program
has no seed at all: the one that it uses for another family, else ``SEED``, which the fix defines once for the module.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

from torchrepro_lint.checks.fixes.import_block import ensure_import, imports_torch
from torchrepro_lint.checks.fixes.insertions import free_word, insert_constant
from torchrepro_lint.checks.fixes.program_seed import CONSTANT, FALLBACK, own_seed
from torchrepro_lint.checks.fixes.seed_constants import module_constant
from torchrepro_lint.checks.fixes.seed_origins import (
    SeedOrigin,
    SeedScope,
    constant_of,
    is_combined,
    seed_origins,
    seeds_dataset,
)
from torchrepro_lint.checks.fixes.seed_place import process_groups
from torchrepro_lint.domain.programs import Program, all_programs, programs_reaching
from torchrepro_lint.domain.rng.seeders import RESTORING
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, NoFix
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.definitions import targets
from torchrepro_lint.syntax.nodes import Call, Constant, If, Record, Ref, SimpleStatement
from torchrepro_lint.syntax.qualified_names import last_word, path_of
from torchrepro_lint.syntax.scopes import ControlFlowPosition, comprehension_names, control_flow_position
from torchrepro_lint.syntax.visitor import last_identifier, returned_values, statements, subexpressions
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.events import guards, tested_references
from torchrepro_lint.trace.traces import Traces


class WrittenSeed(Record, frozen=True):
    """A seed as an expression, and the edits that it needs: an import of torch, or the definition of a constant."""

    text: str
    edits: tuple[Edit, ...] = ()

    def plus(self, number: int) -> WrittenSeed:
        """The seed of the second, third, … generator: ``args.seed + 1``."""
        if number == 0:
            return self
        if self.text.isdecimal():
            return self._replace(text=str(int(self.text) + number))
        plain = _PLAIN.fullmatch(self.text) or _SUM.fullmatch(self.text)
        return self._replace(text=f"{self.text} + {number}" if plain else f"({self.text}) + {number}")

    @property
    def below_limit(self) -> WrittenSeed:
        """The seed for a generator that takes only 32 bits, as NumPy's ``seed`` and ``RandomState`` do."""
        return self._replace(text=f"{self.text} % 2**32") if self.text.endswith(_INITIAL_SEED) else self


_PLAIN = lazy_pattern(r"[\w.]+(\(\))?")
_SUM = lazy_pattern(r"[\w.]+( \+ [\w.]+)*")
_WORD = lazy_pattern(r"\w+")
_INITIAL_SEED = ".initial_seed()"
_SEED_OF_EACH_PROCESS = NoFix("each process of the run needs its own seed, and none is in scope here")
_SEEDED_AGAIN = NoFix("the program seeds torch again after this, with another seed that is not in scope here")
_NO_SEED_IN_REACH = NoFix("no entry point of the project leads here, so only the callers know which seed to pass")
_NO_SEED_IN_SCOPE = NoFix("the seed of the program is not in scope here")


def written_seed(
    project: Traces, path: str, offset: int, *, but: str = "", seeder: bool = False
) -> WrittenSeed | NoFix:
    """The seed that a statement at an offset of a file writes; it does not read the variable ``but``.

    A ``seeder``, which seeds the program itself, cannot ask torch for its seed where nothing has seeded torch before.
    """
    position = control_flow_position(project.files[path], offset)
    if position is None:
        return NoFix("there is no place for a statement here")
    place = _Place(project, path, position)
    hidden = comprehension_names(position, offset) | {but}
    own = next((each for each in _own_seeds(place) if hidden.isdisjoint(_WORD.findall(each))), None)
    if own is not None and not own.startswith(_UNLESS_NONE):
        return WrittenSeed(own)
    other = _other_seed(place, seeder=seeder)
    if own is None or isinstance(other, NoFix):
        return other
    return other._replace(text=f"{other.text}{own.removeprefix(FALLBACK)}")


_UNLESS_NONE = f"{FALLBACK} if "
_ATTRIBUTE = lazy_pattern(r"\w+(\.\w+)+")


class _Place:
    """A place of a file, with the programs that come there, and when each does first."""

    def __init__(self, project: Traces, path: str, position: ControlFlowPosition) -> None:
        self.project = project
        self.path = path
        self.position = position
        reaching = programs_reaching(project, position.symbol(path))
        is_main = any(isinstance(each.parent, If) and is_main_test(each.parent.test) for each in position.spots)
        # A module that is imported does not run what it does as a program.
        self.programs = [each for each in reaching if each.entry.path == path] if is_main else [*reaching]

    def order(self, program: Program) -> int:
        """The order of the first event of the statement; the end of the trace where it has none."""
        statement = self.position.spots[-1].statement
        return _first_orders(program).get((self.path, statement.start), program.effects.end)

    @cached_property
    def seeded(self) -> bool:
        """Whether a program may have seeded torch before."""
        return any(
            seed.order < self.order(program)
            for program in self.programs
            for seed in program.effects.seeds.get("torch", ())
        )

    @cached_property
    def seeded_again(self) -> bool:
        """Whether the function returns what draws, and a program gives torch another seed before it is used: the draws hang on that."""
        return self._is_returned() and any(map(self._seeds_again, self.programs))

    def _is_returned(self) -> bool:
        function, made = self.position.function, self.position.spots[-1].statement
        kept = {each.access_path for each in targets(made) if isinstance(each, Ref)}
        values = [*returned_values(function.body if function is not None else ())]
        read = (part for each in values for part in subexpressions(each) if isinstance(part, Ref))
        here = isinstance(made, SimpleStatement) and any(each in made.values for each in values)
        return here or any(part.access_path in kept for part in read)

    def _seeds_again(self, program: Program) -> bool:
        """Whether it seeds with a literal before, and with something else after."""
        order, places, resolver = self.order(program), _first_orders(program), self.project.resolver
        literal: dict[bool, list[bool]] = {False: [], True: []}
        for seed in program.effects.seeds.get("torch", ()):
            event, path = seed.trace_event.event, seed.trace_event.path
            passed = [each.value for each in event.value.args] if isinstance(event.value, Call) else []
            given = [root for each in passed if isinstance(each, Ref) for root in each.roots]
            # A trace has the first call of a function that seeds; the others are among its call edges.
            edges = (
                program.run.call_edges.get(seed.trace_event.function, ())
                if any(resolver.parameter(path + each) for each in given)
                else ()
            )
            for where, entered in [(path_of(each.caller), each.event) for each in edges] or [(path, event)]:
                if isinstance(entered.value, Call) and last_identifier(entered.value.func) not in RESTORING:
                    is_literal = all(isinstance(each.value, Constant) for each in entered.value.args)
                    literal[places.get((where, entered.statement.start), 0) > order].append(is_literal)
        return bool(literal[False]) and all(literal[False]) and not all(literal[True])

    @cached_property
    def origins(self) -> list[SeedOrigin]:
        """The seed of each program: the last that torch was given before, else the first of all."""
        found = []
        for program in self.programs:
            order = self.order(program)
            before = [each for each in seed_origins(self.project, program.effects, ("torch",)) if each.order < order]
            found += before[-1:] or seed_origins(self.project, program.effects)[:1]
        return found


def _other_seed(place: _Place, *, seeder: bool) -> WrittenSeed | NoFix:
    """The seed where no expression in scope is the program's own."""
    project = place.project
    if place.seeded_again:
        return _SEEDED_AGAIN
    inside = place.position.function is not None
    if place.seeded or (inside and not place.programs and not seeder and _knows_torch(project, place.path)):
        return _initial_seed(place)
    programs = place.programs or all_programs(project)
    constants = (constant_of(each) for program in programs for each in seed_origins(project, program.effects))
    constant = next((each for each in constants if each is not None), None)
    if constant is not None:
        return WrittenSeed(str(constant))
    seeds = (each for program in programs for some in program.effects.seeds.values() for each in some)
    if not all(seeds_dataset(project, each.trace_event) for each in seeds):
        return _NO_SEED_IN_SCOPE if place.programs else _NO_SEED_IN_REACH
    are_several = any(process_groups(project, program.entry) for program in place.programs)
    return _SEED_OF_EACH_PROCESS if are_several else _new_constant(place)


def _own_seeds(place: _Place) -> Iterator[str]:
    """The expressions in scope that are the program's seed."""
    own = own_seed(place.project, place.path, place.position)
    # Where a test of the seed decides whether the program seeds with it, ``if args.seed != 0``, torch tells what it has got.
    may_be_none = own is not None and (own.text.startswith(_UNLESS_NONE) or _is_tested(place, last_word(own.text)))
    given = next((each for each in _rewritten(place) if _ATTRIBUTE.fullmatch(each)), "")
    if own is not None and given and last_word(given) != last_word(own.text):
        yield given  # of ``--seed`` and ``--run_seed`` it is the second that torch gets
    if own is not None and not any(map(is_combined, place.origins)) and not (may_be_none and place.seeded):
        yield own.text
    yield from _rewritten(place)
    constant = module_constant(place.project, place.path, place.position)
    if constant is not None and not place.origins and not place.seeded:
        yield constant.text


def _is_tested(place: _Place, word: str) -> bool:
    """Whether all programs seed torch under a test of their seed alone."""
    seeds = [each.trace_event for program in place.programs for each in program.effects.seeds.get("torch", ())]
    return bool(seeds) and all(word in map(last_identifier, tested_references(guards(each))) for each in seeds)


def _rewritten(place: _Place) -> Iterator[str]:
    """What all programs that come to a place seed with, written there; no literal is repeated, nothing that may be None."""
    scope = SeedScope(place.project, place.path, place.position)
    texts = {
        None if each.conditional or constant_of(each) is not None else scope.written(each) for each in place.origins
    }
    if len(texts) == 1:
        yield from (each for each in texts if each is not None)


def _first_orders(program: Program) -> dict[tuple[str, int], int]:
    """For each statement of a trace, by its file and start, the order of its first event."""
    known = _FIRST_ORDERS.get(program.run)
    if known is None:
        known = _FIRST_ORDERS[program.run] = {}
        for order, each in enumerate(program.run.trace_events):
            known.setdefault((each.path, each.event.statement.start), order)
    return known


_FIRST_ORDERS: WeakKeyDictionary[Trace, dict[tuple[str, int], int]] = WeakKeyDictionary()


def _initial_seed(place: _Place) -> WrittenSeed:
    tree, text, position = place.project.files[place.path], place.project.text(place.path), place.position
    inside = position.function.name if position.function else ""
    word, imports = ensure_import(tree, text, "torch", inside=inside, at=position.spots[-1].statement.start)
    return WrittenSeed(f"{word}{_INITIAL_SEED}", imports)


def _knows_torch(project: Traces, path: str) -> bool:
    return any(map(imports_torch, statements(project.files[path].body)))


def _new_constant(place: _Place) -> WrittenSeed:
    """``SEED``, defined below the imports; a bare literal where the statement stands above them."""
    tree, text = place.project.files[place.path], place.project.text(place.path)
    word = free_word(text, CONSTANT)
    start = (place.position.function or place.position.spots[0].statement).start
    edit = insert_constant(tree, text, f"{word} = {FALLBACK}", start)
    return WrittenSeed(word, (edit,)) if edit else WrittenSeed(FALLBACK)
