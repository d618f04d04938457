"""The project as a query facade: names, values, traces and effects across its modules, computed when first asked for.

``Context`` adds the module under check, with its text, catalogue and settings: the argument of each rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.catalogue import worker_seeding_identifiers
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.rows import CUBLAS_VARIABLE
from torchrepro_lint.dataflow.value_sources import has_device_context
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, DETERMINISTIC, WORKER_SEEDS
from torchrepro_lint.domain.loaders.constructions import Loader
from torchrepro_lint.domain.loaders.queries import LoaderQueries, WorkerDraw, numpy_worker_draws
from torchrepro_lint.domain.loaders.workers import (
    WorkerSeed,
    WorkerSeedSpan,
    worker_function_words,
    worker_functions,
    worker_seeds,
)
from torchrepro_lint.domain.rng.feasibility import is_feasible, is_tested
from torchrepro_lint.domain.rng.optional_seeds import shipped_seeds
from torchrepro_lint.domain.rng.seeders import passed_seed
from torchrepro_lint.domain.scripted import scripted_values
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.query.tabling import SetEquations
from torchrepro_lint.resolve.call_sites import call_candidates
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, ModuleSummary, Operation, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    local_symbol,
    outermost_function,
    path_of,
    simple_name,
    unbound_method,
    without_calls,
)
from torchrepro_lint.syntax.visitor import last_identifier, parameter_argument, subexpressions, takes_receiver

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Condition, Signature
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.domain.flag_effects import StateEffect
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.rng.effects import RngEffects
    from torchrepro_lint.source.text import Lines
    from torchrepro_lint.syntax.nodes import SyntaxTree
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.events import TraceEvent


# The generators that a loader with a generator does not fix, since workers seed NumPy and before that release.
_NOT_FIXED = {False: frozenset({"own"}), True: frozenset({"own", "numpy", "unknown"})}


# Functions pass seeds to one another.
_SEEDS = SetEquations()


class Project(LoaderQueries):
    """The linked modules of a project, by path from its root: the facade that rules query.

    It adds the queries that need several layers: whether workers are seeded, and which arguments of a function become
    seeds.
    """

    def compute_project_queries(self) -> None:
        """Compute all queries that concern all files together."""
        _ = self.seeds_workers(), self.torch_modules, self.loader_paths(), initialised_attributes(self)
        _ = has_device_context(self), scripted_values(self), self.worker_functions(), worker_function_words(self)
        _ = self.worker_seed_spans()
        for entries in self.entries_by_file():
            self.program_summaries(entries)
        seeding = self.seeding_files()
        for path in seeding.paths:
            self.resolver.imports(path, path)
            self._seeding_in(path, seeding.words)

    def initialises_from_outside(self, word: str) -> bool:
        """Whether the project initialises ``x.word``, or parameters in a traversal, or applies a function to modules."""
        found = initialised_attributes(self)
        return word in found or "" in found

    def seeds_workers_of(self, function: str) -> bool:
        """Whether a framework seeds the workers of loaders in every program that reaches a function."""
        return all(
            any(each.what == WORKER_SEEDS and each.value is not False for each in self.state_effects(program))
            for program in self.reaching(function)
        )

    def unseeded_worker_draws(self, loader: Loader, *, before: bool) -> frozenset[str]:
        """The generators that workers may draw from and that the loader does not fix; ``before``: before workers seed
        NumPy.

        MONAI's loader seeds its own workers; Lightning's ``seed_everything(workers=True)`` those of all loaders of its program.
        """
        seeded = (
            loader.passes("worker_init_fn")
            or loader.kind.seeds_workers
            or (self.seeds_workers() and self.seeds_workers_of(loader.site.function))
        )
        if not loader.has_workers or seeded:
            return frozenset()
        draws = self.fetch_effects.of_loader(loader)
        return draws & _NOT_FIXED[before] if loader.passes("generator") else draws

    @query()
    def seeds_workers(self) -> bool:
        """Whether a framework seeds workers somewhere in the project: ``seed_everything(workers=True)``."""
        seeders = call_candidates(self.resolver, worker_seeding_identifiers(self.resolver.modules.mentions))
        return any(
            setting.flag == "worker-seeds" and setting.value is True and self._sets(site.call, form, setting.when)
            for path in seeders.paths
            for site in self.calls_by(path, seeders.words)
            for name in site.names
            for form, setting in self._catalogue.settings(unbound_method(name))
        )

    def _sets(self, call: Call, form: Signature, when: tuple[Condition, ...]) -> bool:
        return evaluate(when, form, argument_reader(form, call)) is not Truth.FAILS

    @query()
    def numpy_worker_draws(self) -> tuple[WorkerDraw, ...]:
        """The draws from NumPy's global generator that workers reach through the project's datasets."""
        return tuple(numpy_worker_draws(self))

    def worker_seeds(self, path: str) -> Iterator[WorkerSeed]:
        """The bad worker seeds in a file."""
        for each in map(WorkerSeedSpan._make, self.worker_seed_spans()):
            if each.path == path:
                yield from (
                    WorkerSeed(path, called.call, each.name, each.source, each.direct, each.passed)
                    for called in self.calls_between(path, each.start, each.end)
                )

    @query()
    def worker_seed_spans(self) -> tuple[WorkerSeedSpan, ...]:
        """The bad worker seeds of the project, by their places."""
        return tuple(worker_seeds(self, self._catalogue))

    @query()
    def worker_functions(self) -> frozenset[str]:
        """The functions of the project that are passed as ``worker_init_fn``."""
        return frozenset(each.function for each in worker_functions(self))

    def _program_effects(self, entry: Entry, run: Trace) -> RngEffects:
        """The effects of a program, without the seeders that literal arguments rule out."""
        effects = self._effects(run)
        exposed = {each.function for path in run.paths for each in self.entry_points.of(path) if each.function}
        commands = exposed.union(entry.before)
        shipped = shipped_seeds(self, self._catalogue, commands, run, effects)
        for family, seeds in list(effects.seeds.items()) if shipped.ruled_out else ():
            effects.seeds[family] = [each for each in seeds if each not in shipped.ruled_out]
            if not effects.seeds[family]:
                del effects.seeds[family]
        effects.optional = shipped.optional
        return effects

    def may_seed_unseen(self, run: Trace) -> bool:
        """Whether a call that is not resolved may run a function of the project that seeds: a method by its name, or one that
        ``getattr(plugin, f"on_{event}")`` looks up.
        """
        seeding = [name for path in self.files for name in self.own_seeding_functions(path)]
        words = {simple_name(name) for name in seeding if name not in run.functions}
        words = {word for word in words if word and not word.startswith("__")}
        return bool(words) and any(may_call(words, each) for each in run.trace_events)

    def state_effects(self, program: Program) -> tuple[StateEffect, ...]:
        """The effects of a program, without the flags and variables that literal arguments keep it from setting."""
        return self._feasible_state_effects(program.entry)

    @query()
    def _feasible_state_effects(self, entry: Entry) -> tuple[StateEffect, ...]:
        program = self.program(entry)
        found = super().state_effects(program)
        return tuple(each for each in found if not _is_set(each) or self._is_feasible(program.run, each.trace_event))

    def _is_feasible(self, run: Trace, trace_event: TraceEvent) -> bool:
        return not is_tested(self, trace_event) or is_feasible(self, run, trace_event, likely=False)

    def passed_seed(self, trace_event: TraceEvent) -> Expression | None:
        """The expression that a seeding call passes as its seed; None where it passes none, or where that is not known."""
        call = trace_event.event.value
        if not isinstance(call, Call):
            return None
        for name in trace_event.names:
            if (seeder := self._catalogue.seeder(without_calls(name))) is not None:
                return passed_seed(seeder, call)
        return call.args[0].value if len(call.args) == 1 and not call.args[0].star else None

    def seeding_arguments(self, name: str, call: Call) -> Iterator[tuple[str, Expression]]:
        """The arguments of a call of a project function that become seeds, each with the function's last word."""
        for word in self._seeding_parameters(name):
            for function in self.resolver.functions(name):
                position = [param.name for param in function.params].index(word)
                arg = parameter_argument(call, function, position, bound=takes_receiver(function))
                if arg is not None and not arg.star:
                    yield simple_name(name), arg.value

    @query(cutoff=True, cycle=_SEEDS)
    def _seeding_parameters(self, name: str) -> Iterator[str]:
        """The parameters of a function that it passes to a seeder, itself or through another function."""
        path = path_of(name)
        for function in self.resolver.functions(name):
            own = {local_symbol(function.name, param.name): param.name for param in function.params}
            for event in self.resolver.events.of(name) if own else ():
                if event.kind != "call" or not isinstance(event.value, Call) or not event.value.args:
                    continue
                for target in self.names(path, event.value.func):
                    if in_project(target):
                        values = [value for _, value in self.seeding_arguments(target, event.value)]
                    elif seeder := self._catalogue.seeder(without_calls(target)):
                        seed = passed_seed(seeder, event.value)
                        values = [] if seed is None else [seed]
                    else:
                        continue
                    for each in (inner for value in values for inner in subexpressions(value)):
                        if isinstance(each, Ref):
                            yield from (own[root] for root in each.roots if root in own)


class Context(Record, frozen=True):
    """The module under check and its project; ``path`` has slashes and is relative to the project's root."""

    path: str
    tree: SyntaxTree
    lines: Lines
    project: Project
    catalogue: Catalogue
    settings: Settings

    @property
    def database(self) -> Database:
        """The database of the project: what a rule asks of all files may be a query, whose answer does not depend on ``path``."""
        return self.project.database


def may_call(words: AbstractSet[str], trace_event: TraceEvent) -> bool:
    """Whether an event may call a function with one of these names: an unresolved method, or a method under a computed name."""
    call = trace_event.event.value
    if trace_event.event.kind != "call" or not isinstance(call, Call):
        return False
    if trace_event.names == ("builtins.getattr",) and len(call.args) > 1:
        key = call.args[1].value
        parts = key.operands if isinstance(key, Operation) and key.op in ("f", "+") else ()
        known = [each.value if isinstance(each, Constant) else None for each in parts]
        if not any(known):
            return False
        pattern = re.compile("".join(re.escape(str(each)) if each else r"\w*" for each in known))
        return any(map(pattern.fullmatch, words))
    return not trace_event.names and last_identifier(call.func) in words


_SWITCHES = frozenset({DETERMINISTIC, CUDNN_DETERMINISTIC, CUDNN_BENCHMARK, WORKER_SEEDS, CUBLAS_VARIABLE})


def _is_set(effect: StateEffect) -> bool:
    """Whether an effect sets a flag that a rule asks about."""
    return effect.what in _SWITCHES


# --- initialisation ---------------------------------------------------------------------------------------------------

# Functions of torch.nn.init that also exist under their old names, without the underscore.
_OLD = (
    *("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal"),
    *("orthogonal", "sparse", "uniform", "xavier_normal", "xavier_uniform"),
)
_INIT_WORDS = frozenset({*_OLD, *(f"{stem}_" for stem in (*_OLD, "ones", "trunc_normal", "zeros"))})


@query()
def initialised_attributes(project: ProgramIndex) -> frozenset[str]:
    """The attributes of modules that functions of ``torch.nn.init`` initialise; empty for a variable of a loop over parameters."""
    found: set[str] = set()
    filling = call_candidates(project.resolver, _INIT_WORDS)
    for path in filling.paths:
        if not _may_call_init(project.resolver.modules.summary(path), filling.words):
            continue
        for site in project.calls_by(path, filling.words):
            if any(name.startswith("torch.nn.init.") for name in site.names):
                for arg in site.call.args[:1]:
                    if isinstance(arg.value, Ref) and not any(r.endswith(".self") for r in arg.value.roots):
                        found.add(_initialised_attribute(project, path, arg.value))
    return frozenset(found)


def _may_call_init(summary: ModuleSummary, words: frozenset[str]) -> bool:
    """Whether a file may call functions of ``torch.nn.init``: it reads from ``init``, or imports it or one of its functions."""
    imported = {part for name in summary.imports for part in name.split(".")}
    return bool(summary.stars) or "init" in summary.inner or "init" in imported or not words.isdisjoint(imported)


def _initialised_attribute(project: ProgramIndex, path: str, value: Ref) -> str:
    """The attribute of a module that is initialised; empty for a variable of a loop over ``parameters()``: any."""
    if value.path:
        return "" if value.path[-1] == "data" else value.path[-1] if _is_any_module(project, path, value) else "?"
    for root in value.roots:
        for how, source in project.resolver.assigned(f"{path}{root}"):
            match source:
                case Call(func=Ref(path=(*_, "parameters" | "named_parameters"))) if how == "[]":
                    return ""
    return "?"


def _is_any_module(project: ProgramIndex, path: str, value: Ref) -> bool:
    """Whether ``module.weight`` is of a module in a traversal, as by ``apply`` and ``modules()``: a parameter of a
    function outside classes, or a loop variable.
    """
    for root in value.roots:
        name = f"{path}{root}"
        if any(how == "[]" for how, _ in project.resolver.assigned(name)):
            return True
        function = outermost_function(name)
        if any(not each.owner and each.params for each in project.resolver.functions(function)):
            return True
    return False
