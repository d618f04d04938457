"""Which seed a fix writes at a place: one that keeps apart the runs and ranks that the program keeps apart.

In this order: the program's own seed, where an expression in scope leads to it, with the rank where the program adds
one; ``torch.initial_seed()`` where torch is seeded by then, or where no program is known; a constant where the program
has no seed at all: the one that it uses for another family, else ``SEED``, which the fix defines once for the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.checks.fixes.insertions import ensure_import, free_word, insert_constant
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, module_constant, own_seed
from torchrepro_lint.checks.fixes.seed_origins import (
    SeedOrigin,
    SeedScope,
    constant_of,
    is_combined,
    seed_origins,
)
from torchrepro_lint.source.text import Edit, NoFix
from torchrepro_lint.syntax.control_flow import ControlFlowPosition, comprehension_names, control_flow_position
from torchrepro_lint.syntax.nodes import Import
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.trace.builder import Trace


class WrittenSeed(NamedTuple):
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


_PLAIN = re.compile(r"[\w.]+(\(\))?")
_SUM = re.compile(r"[\w.]+( \+ [\w.]+)*")
_WORD = re.compile(r"\w+")
_INITIAL_SEED = ".initial_seed()"
CONSTANT = "SEED"
_NO_SEED_IN_REACH = NoFix("no entry point of the project leads here, so which seed to pass is for the callers to say")


def written_seed(
    project: Project, path: str, offset: int, *, but: str = "", seeder: bool = False
) -> WrittenSeed | NoFix:
    """The seed that a statement at an offset of a file writes; it does not read the variable ``but``.

    A ``seeder``, which seeds the program itself, cannot ask torch for its seed where nothing has seeded torch before.
    """
    position = control_flow_position(project.files[path], offset)
    if position is None:
        return NoFix("no statement can be written here")
    hidden = comprehension_names(position, offset) | {but}
    own = next((each for each in _own_seeds(project, path, position) if hidden.isdisjoint(_WORD.findall(each))), None)
    if own is not None and not own.startswith(_UNLESS_NONE):
        return WrittenSeed(own)
    other = _other_seed(project, path, position, seeder=seeder)
    if own is None or isinstance(other, NoFix):
        return other
    return other._replace(text=f"{other.text}{own.removeprefix(FALLBACK)}")


_UNLESS_NONE = f"{FALLBACK} if "


def _other_seed(project: Project, path: str, position: ControlFlowPosition, *, seeder: bool) -> WrittenSeed | NoFix:
    """The seed where no expression in scope is the program's own."""
    programs = _programs(project, path, position)
    if any(_is_torch_seeded(each, path, position) for each in programs):
        return _initial_seed(project, path, position)
    if not programs and not seeder and _knows_torch(project, path):
        return _initial_seed(project, path, position)
    elsewhere = programs or project.programs
    constants = (constant_of(each) for program in elsewhere for each in seed_origins(project, program.effects))
    constant = next((each for each in constants if each is not None), None)
    if constant is not None:
        return WrittenSeed(str(constant))
    if any(program.effects.seeds for program in elsewhere):
        return _NO_SEED_IN_REACH
    return _new_constant(project, path, position)


def _programs(project: Project, path: str, position: ControlFlowPosition) -> tuple[Program, ...]:
    return project.reaching(f"{path}{position.function.name if position.function else ':'}")


def _own_seeds(project: Project, path: str, position: ControlFlowPosition) -> Iterator[str]:
    """The expressions in scope that are the program's seed."""
    programs = _programs(project, path, position)
    origins = [found for each in programs if (found := _nearest_origin(project, each, path, position)) is not None]
    own = own_seed(project, path, position)
    seeded = any(_is_torch_seeded(each, path, position) for each in programs)
    may_be_none = own is not None and own.text.startswith(_UNLESS_NONE)
    if own is not None and not any(map(is_combined, origins)) and not (may_be_none and seeded):
        yield own.text
    yield from _rewritten(project, path, position, origins)
    constant = module_constant(project, path, position)
    if constant is not None and not origins and not seeded:
        yield constant.text


def _nearest_origin(project: Project, program: Program, path: str, position: ControlFlowPosition) -> SeedOrigin | None:
    """The seed that torch was given last before a program first comes to a statement; else the first of all."""
    origins, torch = seed_origins(project, program.effects), len(program.effects.seeds.get("torch", ()))
    order = _first_orders(program).get((path, position.spots[-1].statement.start), program.effects.end)
    before = [each for each in origins[:torch] if each.order < order]
    return before[-1] if before else next(iter(origins), None)


def _rewritten(
    project: Project, path: str, position: ControlFlowPosition, origins: Sequence[SeedOrigin]
) -> Iterator[str]:
    """What all programs that reach a place seed with, written there; a literal is not repeated, and what may be None is left."""
    scope = SeedScope(project, path, position)
    texts = {None if each.conditional or constant_of(each) is not None else scope.written(each) for each in origins}
    if len(texts) == 1:
        yield from (each for each in texts if each is not None)


def _is_torch_seeded(program: Program, path: str, position: ControlFlowPosition) -> bool:
    """Whether a program may have seeded torch before it first comes to a statement."""
    statement = position.spots[-1].statement
    orders = _first_orders(program)
    order = orders.get((path, statement.start), program.effects.end)
    return any(each.order < order for each in program.effects.seeds.get("torch", ()))


def _first_orders(program: Program) -> dict[tuple[str, int], int]:
    """For each statement of a trace, by its file and start, the order of its first event."""
    known = _FIRST_ORDERS.get(program.run)
    if known is None:
        known = _FIRST_ORDERS[program.run] = {}
        for order, each in enumerate(program.run.trace_events):
            known.setdefault((each.path, each.event.statement.start), order)
    return known


_FIRST_ORDERS: WeakKeyDictionary[Trace, dict[tuple[str, int], int]] = WeakKeyDictionary()


def _initial_seed(project: Project, path: str, position: ControlFlowPosition) -> WrittenSeed:
    tree, text = project.files[path], project.text(path)
    inside = position.function.name if position.function else ""
    word, imports = ensure_import(tree, text, "torch", inside=inside, at=position.spots[-1].statement.start)
    return WrittenSeed(f"{word}{_INITIAL_SEED}", imports)


def _knows_torch(project: Project, path: str) -> bool:
    imports = (each for each in statements(project.files[path].body) if isinstance(each, Import))
    return any(name == "torch" or name.startswith("torch.") for each in imports for name in each.modules)


def _new_constant(project: Project, path: str, position: ControlFlowPosition) -> WrittenSeed:
    """``SEED``, defined below the imports; a bare literal where the statement stands above them."""
    tree, text = project.files[path], project.text(path)
    word = free_word(text, CONSTANT)
    start = position.function.start if position.function else position.spots[0].statement.start
    edit = insert_constant(tree, text, f"{word} = {FALLBACK}", start)
    return WrittenSeed(word, (edit,)) if edit else WrittenSeed(FALLBACK)
