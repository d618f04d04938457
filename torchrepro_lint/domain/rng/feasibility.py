"""Whether a run gets to an event at all: through no branch that the arguments on every way there rule out.

Functions that seed some generators and draw from others that nothing on the way seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.loaders import loader_names
from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.dataflow.arguments import read_arguments
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.domain.loaders.sites import kind_of, shuffles
from torchrepro_lint.domain.rng.effects import Draw, Effects, Seed
from torchrepro_lint.query.fixpoint import ring
from torchrepro_lint.syntax.nodes import Call, Expression, Operation, path_of
from torchrepro_lint.syntax.visitor import last_word
from torchrepro_lint.trace.builder import fetches, samplers_of
from torchrepro_lint.trace.contexts import Entering, used_by
from torchrepro_lint.trace.framework_models import calls_method

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import ProgramEffects
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.trace import Happening


# What a loader runs of a sampler itself, before any worker is asked.
_ORDERING = frozenset({"__iter__", "__next__", "__len__"})
# So many calls, each from so many others above, are looked at, once for each way to them; beyond, anything may be passed.
_DEEPEST = 10
_MOST = 60
# So many draws are compared.
_MOST_DRAWS = 8


def first_possible(project: Project, run: Run, draws: Iterable[Draw]) -> Draw | None:
    """The first draw to which some way of a run leads, as far as literal arguments and defaults tell.

    Where a call passes what cannot be read, options may be on that it does not name: one of the first draws for which none need
    be goes before those.
    """
    found = (each for each in draws if _is_possible(project, run, each.happening, likely=False))
    first = next(found, None)
    if first is None:
        return None
    likely = (
        each
        for each in chain((first,), islice(found, _MOST_DRAWS))
        if _is_possible(project, run, each.happening, likely=True)
    )
    return next(likely, first)


def _is_possible(project: Project, run: Run, happening: Happening, *, likely: bool) -> bool:
    # Several rules ask about one run, and of many draws of one function: what that is run with is looked for once.
    looks = project.kept.get("looks")
    if looks is None or looks.run is not run:
        looks = project.kept["looks"] = _Looks(run, {})
    key = happening.function, happening.mode, likely
    if key not in looks.known:
        looks.known[key] = _Look(project, run, happening.mode, likely=likely)
    return looks.known[key].gets_to(happening.function, happening.event, 0)


class _Looks(NamedTuple):
    """The ways to the functions of a run, as far as they have been looked for: by function, mode and likeliness."""

    run: Run
    known: dict[tuple[str, str, bool], _Look]


class _Look:
    def __init__(self, project: Project, run: Run, mode: str, *, likely: bool) -> None:
        self._project, self._run, self._mode = project, run, mode
        self._left = _MOST
        self._entering = Entering(project, run, likely=likely)
        self._rings: dict[str, frozenset[str]] = {}
        # What has been found of each function, and the rest that has not been looked for yet.
        self._came: dict[str, tuple[list[Scope], Iterator[Scope]]] = {}
        # By files and identities of expressions, which stay as long as the project.
        self._modes: dict[tuple[str, int], frozenset[bool | str]] = project.kept.setdefault("loader modes", {})

    def gets_to(self, function: str, event: Event, depth: int) -> bool:
        found = self._scopes_at(function, event, depth)
        return any(self._may_draw(path_of(function), event, scope) for scope in found)

    def _may_draw(self, path: str, event: Event, scope: Scope) -> bool:
        """Whether what is gone along, or made, is no loader, or may be one that shuffles."""
        if event.value is None or event.kind not in ("iterate", "call"):
            return True
        used = Scoped(path, event.value, scope)
        if event.kind == "call":
            return self._may_shuffle(used)
        behind = self._project.origins.of(used)
        return not behind or any(map(self._may_shuffle, behind))

    def _may_shuffle(self, made: Scoped) -> bool:
        names = self._names(made, made.value.func) if isinstance(made.value, Call) else ()
        kind = next(filter(None, map(kind_of, names)), None)
        if kind is None:
            return True
        passed = read_arguments(self._project.origins, made, kind.parameters)
        return not passed.complete or shuffles(self._project.origins, kind, passed)

    def _scopes_at(self, function: str, event: Event, depth: int) -> Iterator[Scope]:
        """The scopes in which a function comes to one of its events."""
        yield from (scope for scope in self._scopes(function, depth) if self._runs(function, event, scope))

    def _runs(self, function: str, event: Event, scope: Scope) -> bool:
        found = self._project.resolver.functions(function)
        offset = event.value.start if event.value is not None else event.statement.start
        return len(found) != 1 or self._project.origins.runs(path_of(function), found[0], offset, scope)

    def _scopes(self, function: str, depth: int) -> Iterator[Scope]:
        """What a function may be run with: one scope for each way to enter it. Where it may come back to itself, anything."""
        around = self._ring_of(function)
        yield from self._from_elsewhere(function, around, depth)
        if around and self._turns(around, depth):
            yield Scope()

    def _from_elsewhere(self, function: str, around: frozenset[str], depth: int) -> Iterator[Scope]:
        """Those of the ways that come from outside a ring. They are looked for once, and no sooner than they are asked for."""
        if function not in self._came:
            self._came[function] = [], self._coming(function, around, depth)
        found, rest = self._came[function]
        index = 0
        while True:
            if index == len(found):
                if (new := next(rest, None)) is None:
                    return
                found.append(new)
            yield found[index]
            index += 1

    def _coming(self, function: str, around: frozenset[str], depth: int) -> Iterator[Scope]:
        entries = self._run.entries.get(function, ())
        definitions = self._project.resolver.functions(function)
        if not entries or depth >= _DEEPEST or len(definitions) != 1 or function in self._run.starts:
            yield Scope()
            return
        for each in entries:
            caller, event = each.caller, each.event
            if caller in around or self._is_in_other_mode(function, caller, event):
                continue
            self._left -= 1
            for index, outer in enumerate(self._scopes_at(caller, event, depth + 1)):
                self._left -= index > 0
                if self._left < 0:
                    break
                if self._is_left_out(function, caller, event, outer):
                    continue
                yield from self._entering.scopes(function, definitions[0], caller, event, outer)
            if self._left < 0:
                yield Scope()
                return

    def _is_left_out(self, function: str, caller: str, event: Event, outer: Scope) -> bool:
        """Whether all calls that an event makes, or goes along what they made, are given a function as one of several, of which
        a test picks another: ``noisy if train else plain``.
        """
        if event.value is None:
            return False
        used = Scoped(path_of(caller), event.value, outer)
        calls = (used,) if event.kind == "call" else self._project.origins.of(used)
        given = [
            call._replace(value=arg.value)
            for call in calls
            if isinstance(call.value, Call)
            for arg in call.value.args
            if self._is_named(function, call._replace(value=arg.value))
        ]
        return bool(given) and not any(self._is_named(function, one) for each in given for one in self._picked(each))

    def _picked(self, given: Scoped) -> Iterable[Scoped]:
        return self._project.origins.of(given) if isinstance(given.value, Operation) else (given,)

    def _is_named(self, function: str, value: Scoped) -> bool:
        return function in self._names(value, value.value)

    def _turns(self, around: frozenset[str], depth: int) -> bool:
        """Whether what comes from outside goes on inside a ring."""
        return any(True for function in sorted(around) for _ in self._from_inside(function, around, depth))

    def _from_inside(self, function: str, around: frozenset[str], depth: int) -> Iterator[Scope]:
        definitions = self._project.resolver.functions(function)
        for each in self._run.entries.get(function, ()):
            caller, event = each.caller, each.event
            if caller not in around or self._is_in_other_mode(function, caller, event):
                continue
            for outer in self._from_elsewhere(caller, around, depth):
                if len(definitions) != 1:
                    yield Scope()
                elif self._runs(caller, event, outer):
                    yield from self._entering.scopes(function, definitions[0], caller, event, outer)

    def _ring_of(self, function: str) -> frozenset[str]:
        if function not in self._rings:
            self._rings[function] = ring(self._run.entries, function)
        return self._rings[function]

    def _is_in_other_mode(self, function: str, caller: str, event: Event) -> bool:
        """Whether workers of the loader that an event makes or uses do what is looked for in the program itself, or the
        other way round.
        """
        if event.value is None or self._mode not in ("", "worker") or self._is_called(function, caller, event.value):
            return False
        key = path_of(caller), id(event.value)
        if key not in self._modes:
            used = Scoped(key[0], event.value)
            self._modes[key] = frozenset(self._modes_of(used))
        orders = not self._mode and function.rpartition(".")[2] in _ORDERING and "orders" in self._modes[key]
        return not orders and self._modes[key] - {"orders"} == {self._mode != "worker"}

    def _is_called(self, function: str, caller: str, value: Expression) -> bool:
        """Whether a function is what an expression calls, or what a framework runs there, and not what a loader runs that the call
        is about.
        """
        if not isinstance(value, Call):
            return False
        word = function.rpartition(".")[2]
        names = self._names(Scoped(path_of(caller), value), value.func)
        return last_word(value.func) == word or any(":" in name for name in names) or calls_method(names, word)

    def _modes_of(self, used: Scoped) -> Iterator[bool | str]:
        """Whether the loaders that an event makes or uses fetch in workers, and whether any is given a sampler."""
        for loader in self._loaders(used):
            yield self._is_fetching(loader)
            assert isinstance(loader.value, Call)
            yield from ("orders" for _ in samplers_of(loader.value))

    def _loaders(self, used: Scoped) -> Iterator[Scoped]:
        if isinstance(used.value, Call) and self._is_loader(used):
            yield used
            return
        for part in used_by(used.value):
            yield from filter(self._is_loader, self._project.origins.of(used._replace(value=part)))

    def _is_loader(self, made: Scoped) -> bool:
        return isinstance(made.value, Call) and not loader_names().isdisjoint(self._names(made, made.value.func))

    def _is_fetching(self, loader: Scoped) -> bool:
        call = loader.value
        assert isinstance(call, Call)
        return fetches(self._project.resolver, loader.path, call, self._names(loader, call.func))

    def _names(self, scoped: Scoped, called: Expression) -> tuple[str, ...]:
        return self._project.names(scoped.path, called)


class Partly(NamedTuple):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded(project: ProgramEffects, path: str) -> Iterator[Partly]:
    """Such functions and module bodies that may draw in a file: their own, or one that it imports, directly or not; those
    too of which programs tell (see ``is_told``).
    """
    for function in project.seeding_functions(path):
        yield from _of_function(project, function)


def _of_function(project: ProgramEffects, function: str) -> Iterator[Partly]:
    effects = project.effects_in(function)
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.happening.way]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        # A loader or sampler that is only made there draws where it is gone along.
        draws = [each for each in effects.draws.get(family.key, ()) if effects.iterates or each.order < effects.end]
        if draws and family.key not in effects.seeds:
            yield Partly(function, first, draws[0], family)


def is_told(project: ProgramEffects, partly: Partly) -> bool:
    """Whether a program that reaches the function seeds the family, or TRL101 to TRL103 say it of the program.

    It takes all programs to know, so it is to be asked last.
    """
    return any(_tells(each.effects, partly.family) for each in project.reaching(partly.function))


def _tells(effects: Effects, family: Family) -> bool:
    """Whether a program that reaches the function seeds the family, or is itself reported."""
    reported = effects.matters and effects.acts and family.key in effects.draws
    return reported or family.key in effects.seeds or effects.unknown_seeder
