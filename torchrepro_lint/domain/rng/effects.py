"""RNG effect summary of a trace: what it draws from each generator, what it seeds, and whether the run is relevant.

Only the first event that merely reads data is examined; events of the same callee share one answer about what they may
do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import argument_reader
from torchrepro_lint.catalogue.libraries import LibraryVersions, loader_names
from torchrepro_lint.catalogue.rows import Consumer
from torchrepro_lint.dataflow.alternative_arguments import with_expanded_keywords
from torchrepro_lint.dataflow.constants import display_name, propagated_constant
from torchrepro_lint.domain.rng.consumers import (
    Consumers,
    called_word,
    draw_label,
    has_generator,
    is_without_gradient,
    method_name,
    runs_elements,
    seed_argument,
)
from torchrepro_lint.domain.rng.seeders import (
    OptionalSeed,
    families_seeded,
    is_seeder_word,
    is_seeding_method,
    is_temporary,
    leaves_result,
    logs_metric,
    may_log,
    method_and_receiver,
    nondeterministic_source,
    passed_seed,
    reads_data,
    saves_result,
    seeds_from_entropy,
    seeds_nothing,
)
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import Call, Expression, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    passes_call,
    simple_name,
    top_package,
    without_calls,
)
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.call_targets import runs_in_worker
from torchrepro_lint.trace.events import (
    CallFrame,
    CallsOfTrace,
    TraceEvent,
    calls_in,
    guard_values,
    guards,
    prefix_and_rest,
)


class Draw(Record, frozen=True):
    """A draw: its public name, its trace event and the event's order.

    ``family`` is that of the generator itself, whatever seeds it. An argument for ``seed``, if there is one, would seed it, too.
    """

    label: str
    trace_event: TraceEvent
    order: int
    family: str
    seed: str = ""


class Seed(Record, frozen=True):
    """A call that seeds a family, likewise."""

    label: str
    trace_event: TraceEvent
    order: int


# The possible effect of a callee, by its names, the method and the receiver's last word: see ``_possible_effect``.
CalleeEffectTable: TypeAlias = "MemoTable[tuple[tuple[str, ...], tuple[str, str]], str]"


class RngEffects:
    """The draws and seeds of each family in a trace, in order, and the ``results`` of the run, without which it is not relevant.

    ``acts``: the entry's own statements are relevant or draw, not only its imports. ``reseeds``: seeds that workers set while they fetch
    samples, and those that are put back. ``entropic``: calls that seed from entropy; ``optional``: families that only an option seeds.
    ``may_set_flags``: a call that may seed may set torch's flags. ``iterates``: a loader is iterated; an unseen iteration draws at the ``end``.
    """

    def __init__(
        self,
        run: Trace,
        names: Names,
        catalogue: Catalogue,
        user_seeders: dict[str, tuple[str, ...]],
        callee_effects: CalleeEffectTable,
        libraries: LibraryVersions = (),
    ) -> None:
        self.draws: dict[str, list[Draw]] = {}
        self.seeds: dict[str, list[Seed]] = {}
        self.results: list[TraceEvent] = []
        self.acts = False
        self.reseeds: dict[str, list[Seed]] = {}
        self.unknown_seeder = False
        self.may_set_flags = False
        self.entropic: dict[str, list[Seed]] = {}
        self.optional: tuple[OptionalSeed, ...] = ()
        self.iterates = False
        self.end = len(run.trace_events)
        self._names = names
        self._catalogue = catalogue
        self._consumers = Consumers(names, catalogue)
        self._user_seeders = user_seeders
        self._callee_effects = callee_effects
        self._libraries = libraries
        self.run = run
        self._metric_events: list[TraceEvent] = []
        self._seeded_forks: set[tuple[str, Expression]] = set()
        self._seeded_blocks: dict[tuple[str, Expression], tuple[str, ...]] = {}
        iterated: dict[str, list[Draw]] = {}
        self._later: dict[str, list[tuple[str, Draw]]] = {}
        self._reads_any_data = False
        for order, trace_event in self._effective_events():
            self._order = order
            value = trace_event.event.value
            if trace_event.event.kind == "call" and isinstance(value, Call):
                self._call(trace_event, value, iterated)
            elif trace_event.event.kind == "iterate":
                self._iterate(trace_event)
        if self._reads_any_data:
            self.results += self._metric_events
            for each in self._metric_events:
                self._mark_acting(each)
        for family, draws in iterated.items():
            if family not in self.draws:
                self.draws[family] = [draw._replace(order=self.end) for draw in draws]

    def _effective_events(self) -> Iterator[tuple[int, TraceEvent]]:
        """The trace events that may have an effect, with their orders."""
        for part in prefix_and_rest(self.run, "acting", self._effective_events_in):
            yield from part

    def _effective_events_in(self, start: int, trace_events: Sequence[TraceEvent]) -> list[tuple[int, TraceEvent]]:
        """Of the events that only read data, the first stands for all."""
        found: list[tuple[int, TraceEvent]] = []
        reads = False
        for order, trace_event in enumerate(trace_events, start):
            may = self._possible_effect(trace_event)
            if may == "act" or (may == "read" and not reads):
                found.append((order, trace_event))
            reads = reads or may == "read"
        return found

    def _possible_effect(self, trace_event: TraceEvent) -> str:
        """What an event may do in any trace: ``act``, ``read`` where it may only read data, or nothing."""
        resolved = trace_event.resolved
        call, kind, names = resolved.event.value, resolved.event.kind, resolved.names
        if kind != "call" or not isinstance(call, Call):
            return "act" if kind == "iterate" else ""
        return self._callee_effects.of(
            (names, method_and_receiver(call.func)), lambda: self._callee_effect(names, call)
        )

    def _callee_effect(self, names: tuple[str, ...], call: Call) -> str:
        """The same for all calls of a callee with these names, by this method."""
        if leaves_result(self._names, names, call) or may_log(names, call) or is_seeding_method(names, call):
            return "act"
        acts = any(self._consumers.runs_later(each) or runs_elements(each) for each in names) or any(
            known in self._user_seeders
            or self._catalogue.seeder(known) is not None
            or bool(self._catalogue.consumer(class_of(known)))
            or self._may_be_seeder(known)
            for known in map(without_calls, self._consumers.external_names(names or method_name(call)))
        )
        return "act" if acts else "read" if reads_data(names) else ""

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset().union(*prefix_and_rest(self.run, "words", _called_words))

    def _evaluates(self, trace_event: TraceEvent) -> bool:
        """Whether modules are evaluated: ``eval()`` is called, and neither ``train()`` nor a backward pass; where the run has a
        backward pass, without gradients.
        """
        trains = not self._words.isdisjoint({"train", "backward"})
        apart = "backward" in self._words and is_without_gradient(trace_event)
        return "eval" in self._words and (apart or not trains)

    @cached_property
    def _has_workers(self) -> bool:
        """Whether some loader may have workers, as far as the trace shows its loaders."""
        calls = [
            (each, each.event.value) for each in self.run.trace_events if not loader_names().isdisjoint(each.names)
        ]
        loaders = [(each, call) for each, call in calls if each.event.kind == "call" and isinstance(call, Call)]
        return not loaders or any(runs_in_worker(self._names, each.path, call, each.names) for each, call in loaders)

    @cached_property
    def _calls(self) -> CallsOfTrace:
        return CallsOfTrace(self.run)

    def _call(self, trace_event: TraceEvent, call: Call, iterated: dict[str, list[Draw]]) -> None:
        self._reads_any_data = self._reads_any_data or reads_data(trace_event.names)
        if saves_result(self._names, trace_event, call):
            self.results.append(trace_event)
            self._mark_acting(trace_event)
        elif logs_metric(self._names, trace_event, call):
            self._metric_events.append(trace_event)
        self.unknown_seeder = self.unknown_seeder or is_seeding_method(trace_event.names, call)
        for maker in filter(None, map(self._consumers.runs_later, trace_event.names)):
            for family, draw in self._later.pop(maker, ()):
                self.draws.setdefault(family, []).append(draw._replace(order=self._order))
        for name in self._consumers.external_names(trace_event.names or method_name(call)):
            self._seed(trace_event, call, without_calls(name))
            for row in self._consumers.of(name, without_calls(name)):
                self._draw(row, name, trace_event, call, iterated)
        for row, name, made in self._consumers.of_elements(trace_event, call, self._libraries, self.run):
            self._draw(row, name, trace_event, made, iterated)

    def _draw(
        self, row: Consumer, name: str, trace_event: TraceEvent, call: Call, iterated: dict[str, list[Draw]]
    ) -> None:
        """Record a draw by a row, if the call draws at all, in the generator that seeds it."""
        if not self._draws(row, trace_event, call) or self._is_reseeded(row.family, trace_event):
            return
        self._mark_acting(trace_event)
        family = self._family(row, trace_event)
        if family == "torch" and self._is_seeded_by_loader(trace_event):
            return
        draw = Draw(draw_label(name, row), trace_event, self._order, row.family, seed_argument(row))
        kept = iterated if row.phase in ("iterate", "later") else self.draws
        kept.setdefault(family, []).append(draw)
        if row.phase == "later":
            self._later.setdefault(without_calls(name), []).append((family, draw))

    def _is_reseeded(self, family: str, trace_event: TraceEvent) -> bool:
        """Whether a worker, or a seed that is put back later, has seeded the family on the call path, unconditionally."""
        return any(
            trace_event.mode == seed.mode
            and trace_event.call_path[: len(seed.call_path)] == seed.call_path
            and guards(trace_event)[: len(guards(seed))] == guards(seed)
            for seed in (each.trace_event for each in self.reseeds.get(family, ()))
        )

    def _is_seeded_by_loader(self, trace_event: TraceEvent) -> bool:
        """Whether every worker that reaches the event is of a loader with a generator, which gives torch its seeds."""
        if trace_event.mode != "worker":
            return False
        loaders = [loader for step in trace_event.call_path for loader in self._loaders(step)]
        return bool(loaders) and all(
            has_generator(with_expanded_keywords(self._names, path, call, partly=True)) for path, call in loaders
        )

    def _loaders(self, step: CallFrame) -> Iterator[tuple[str, Call]]:
        """The loaders that a call frame creates or iterates."""
        value = step.event.value
        made = (
            self._names.values_through_calls(step.path, value)
            if value is not None and step.event.kind == "iterate"
            else ()
        )
        for path, each in [(step.path, value)] if step.event.kind == "call" else made:
            if isinstance(each, Call) and any(map(self._makes_loader, self._names.names(path, each.func))):
                yield path, each

    def _makes_loader(self, name: str) -> bool:
        return not loader_names().isdisjoint(self._names.ancestry(name) if in_project(name) else (name,))

    def _mark_acting(self, trace_event: TraceEvent) -> None:
        self.acts = self.acts or not (trace_event.call_path and trace_event.call_path[0].event.kind == "import")

    def _iterate(self, trace_event: TraceEvent) -> None:
        if trace_event.event.value is None or not any(class_of(name) in loader_names() for name in trace_event.names):
            return
        self.iterates = True
        made = [
            each
            for each in self._names.values_through_calls(trace_event.path, trace_event.event.value)
            if isinstance(each[1], Call)
        ]
        # Loaders that only other programs construct are not iterated in this one.
        for path, value in [each for each in made if each in self._calls] or made:
            if isinstance(value, Call):
                spelled_out = with_expanded_keywords(self._names, path, value, partly=True)
                for row in self._catalogue.consumer("torch.utils.data.DataLoader"):
                    if row.phase == "iterate" and self._draws(row, trace_event, spelled_out):
                        drawn = self.draws.setdefault("torch", [])
                        drawn.append(
                            Draw(self._loader_label(row, path, spelled_out), trace_event, self._order, "torch")
                        )

    def _loader_label(self, row: Consumer, path: str, call: Call) -> str:
        known = propagated_constant(self._names, path, argument_reader(row.signature, call)("shuffle"))
        return "DataLoader(shuffle=True)" if known is True else "a DataLoader that may shuffle"

    def _draws(self, row: Consumer, trace_event: TraceEvent, call: Call) -> bool:
        if row.family == "torch" and (trace_event.mode == "loaded" or _fork_blocks(trace_event) & self._seeded_forks):
            return False
        if self._seeded_blocks and any(
            row.family in self._seeded_blocks.get(block, ()) for _, block in guard_values(trace_event)
        ):
            return False
        return self._consumers.draws(row, trace_event, call, only_evaluates=self._evaluates(trace_event))

    def _family(self, row: Consumer, trace_event: TraceEvent) -> str:
        """The family that seeds a draw: workers' Python and NumPy generators are seeded from torch's (NumPy's from
        torch 1.9).
        """
        if trace_event.mode != "worker" or row.family == "torch" or not self._has_workers:
            return row.family
        before = tuple(map(int, self._catalogue.version.split("."))) < (1, 9)
        return "numpy" if row.family == "numpy" and before else "torch"

    def _seed(self, trace_event: TraceEvent, call: Call, name: str) -> None:
        seeder = self._catalogue.seeder(name)
        if seeder is not None and seeds_nothing(self._names, trace_event, call):
            for family in seeder.families:
                self._put_back(family, trace_event)
            return
        if seeder is not None and any(arg.star == "**" for arg in call.args):
            call = with_expanded_keywords(self._names, trace_event.path, call)
        seeding = families_seeded(self._catalogue, self._user_seeders, name, call)
        if seeding and name not in self._user_seeders and self._has_nondeterministic_seed(trace_event.path, name, call):
            self._add_entropic(seeding, trace_event, name)
            seeding = ()
        elif seeder is not None and seeds_from_entropy(seeder, call):
            self._add_entropic(seeder.families, trace_event, name)
        if seeding is None:
            self.unknown_seeder = self.unknown_seeder or self._may_be_seeder(name)
        elif seeder is not None and seeder.within:  # at the end of the ``with`` block the generators are restored
            self._seeded_blocks[trace_event.path, call] = seeding
        else:
            worker = trace_event.mode == "worker"
            forks = _fork_blocks(trace_event)
            self._seeded_forks |= forks if not worker else set()
            kept = self.reseeds if worker or self._holds_within(trace_event) else self.seeds
            for family in () if forks and not worker else seeding:
                kept.setdefault(family, []).append(Seed(display_name(name), trace_event, self._order))

    def _holds_within(self, seed: TraceEvent) -> bool:
        """Whether a seed holds until its function puts the generator back; that of a generator may hold for a ``with`` block."""
        return is_temporary(self._names, seed) and not self._names.is_generator(seed.function)

    def _put_back(self, family: str, trace_event: TraceEvent) -> None:
        """End the seeds that hold until a function puts the generator back."""
        seeds = self.reseeds.get(family, [])
        seeds[:] = [each for each in seeds if each.trace_event.function != trace_event.function]

    def _add_entropic(self, families_: tuple[str, ...], trace_event: TraceEvent, name: str) -> None:
        for family in families_:
            self.entropic.setdefault(family, []).append(Seed(display_name(name), trace_event, self._order))

    def _has_nondeterministic_seed(self, path: str, name: str, call: Call) -> bool:
        """Whether the seed is nondeterministic, so that the call seeds from entropy in effect."""
        seed = passed_seed(seeder, call) if (seeder := self._catalogue.seeder(name)) is not None else None
        return seed is not None and nondeterministic_source(self._names, path, seed) is not None

    def _may_be_seeder(self, name: str) -> bool:
        """``mylib.set_seed``: external, unknown, and named like a seeder."""
        root, word = top_package(name), simple_name(name)
        if root in _KNOWN_PACKAGES or passes_call(name) or not is_seeder_word(word):
            return False
        return not self._catalogue.framework(name)


def _called_words(_start: int, trace_events: Sequence[TraceEvent]) -> frozenset[str]:
    """The last words of the callees."""
    return frozenset(called_word(call) for _, call in calls_in(trace_events))


# Packages with known functions: one that is named like a seeder but not in the catalogue seeds none of our families.
_KNOWN_PACKAGES = frozenset(
    {"torch", "numpy", "random", "tensorflow", "jax", "dgl", "gym", "gymnasium", "builtins", "os", "time", "cupy"}
    | {"imgaug"}
)


def _fork_blocks(trace_event: TraceEvent) -> set[tuple[str, Expression]]:
    """The ``torch.random.fork_rng`` blocks around an event, after which torch's generators are restored, by file and value."""
    return {
        block
        for guard, block in guard_values(trace_event)
        if guard.kind == "with"
        and isinstance(guard.value, Call)
        and isinstance(guard.value.func, Ref)
        and (*guard.value.func.roots, *guard.value.func.path)[-1].endswith("fork_rng")
    }
