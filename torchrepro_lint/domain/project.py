"""A linked project: names, values, traces and effects across its modules. Every answer is worked out when first asked for.

The module under check with all that is known of its program: what the questions of the domain, and rules, are asked of.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import worker_seeding_words
from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.domain.loaders.queries import LoaderQueries
from torchrepro_lint.domain.loaders.workers import (
    WorkerDraw,
    WorkerSeed,
    WorkerSeedPlace,
    handed_words,
    numpy_draws,
    worker_functions,
    worker_seeds,
)
from torchrepro_lint.domain.operations.initialised import filled_words
from torchrepro_lint.domain.rng.seeders import seed_given
from torchrepro_lint.domain.scripted import scripting
from torchrepro_lint.query.fixpoint import Memo
from torchrepro_lint.resolve.call_sites import mentions
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, path_of
from torchrepro_lint.syntax.visitor import within

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Condition, Spelling
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.source.text import Lines
    from torchrepro_lint.syntax.nodes import Facts


class Project(LoaderQueries):
    """The modules of a project (by path from its root), linked: what rules ask, on top of all layers below.

    It adds what takes several of them together: whether workers are seeded, and what a function makes of its arguments.
    """

    @cached_property
    def _seeding(self) -> Memo:
        return Memo()

    def ask_all(self) -> None:
        """Work out what is asked of all files together."""
        _ = self.programs, self.seeds_workers, self.torch_modules, self.loader_paths, self._filled_words
        _ = (
            self.enters_device,
            scripting(self),
            self.worker_functions,
            handed_words(self),
            self._worker_seeds,
            self._seeding_files,
        )
        for entries in self.entries_by_file:
            self._reached(entries)
        seeding = self._seeding_files
        for path in seeding.paths:
            self.resolver.modules.behind(path)
            self._seeding_in(path, seeding.words)

    def initialises_from_outside(self, word: str) -> bool:
        """Whether the project fills parameters that it goes over, applies a function to modules, or fills a ``x.word``."""
        return word in self._filled_words or "" in self._filled_words

    @property
    def _filled_words(self) -> frozenset[str]:
        return self.of_all("filled", lambda: filled_words(self))

    @property
    def seeds_workers(self) -> bool:
        """Whether the project makes a framework seed the workers of all loaders: ``seed_everything(workers=True)``."""
        return self.of_all("seeds workers", self._find_whether_workers_are_seeded)

    def _find_whether_workers_are_seeded(self) -> bool:
        seeders = mentions(self.resolver, worker_seeding_words(self.resolver.modules.mentions))
        return any(
            setting.flag == "worker-seeds" and setting.value is True and self._sets(site.call, form, setting.when)
            for path in seeders.paths
            for site in self.calls_by(path, seeders.words)
            for name in site.names
            for form, setting in self._catalogue.settings(name.replace("().", "."))
        )

    def _sets(self, call: Call, form: Spelling, when: tuple[Condition, ...]) -> bool:
        return evaluate(when, form, arguments(form, call)) is not Truth.FAILS

    @cached_property
    def numpy_in_workers(self) -> tuple[WorkerDraw, ...]:
        """The draws from numpy's global generator that the project's datasets lead workers to."""
        return tuple(numpy_draws(self))

    def worker_seeds(self, path: str) -> Iterator[WorkerSeed]:
        """The seeds in a file of the project's worker functions that leave workers unseeded, or all alike."""
        for each in map(WorkerSeedPlace._make, self._worker_seeds):
            if each.path == path:
                yield from (
                    WorkerSeed(path, called.call, each.name, each.source, each.direct, each.passed)
                    for called in self.calls_between(path, each.start, each.end)
                )

    @property
    def _worker_seeds(self) -> tuple[WorkerSeedPlace, ...]:
        return self.of_all("worker seeds", lambda: tuple(worker_seeds(self._afresh(), self._catalogue)))

    @property
    def worker_functions(self) -> frozenset[str]:
        """The functions of the project that are passed as ``worker_init_fn``."""
        return self.of_all(
            "worker functions", lambda: frozenset(each.function for each in worker_functions(self._afresh()))
        )

    def seeding_arguments(self, name: str, call: Call) -> Iterator[tuple[str, Expression]]:
        """The arguments of a call to a function of the project that become seeds: the function's word, and the value."""
        for word in self._seeding_parameters(name):
            for function in self.resolver.functions(name):
                position = [param.name for param in function.params].index(word) - bool(function.owner)
                plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
                keyword = next((arg.value for arg in call.args if arg.keyword == word), None)
                given = keyword or (plain[position] if 0 <= position < len(plain) else None)
                if given is not None:
                    yield name.rpartition(":")[2].rpartition(".")[2], given

    def _seeding_parameters(self, name: str) -> tuple[str, ...]:
        """The parameters of a function that it passes to a seeder, itself or through another function."""
        return self._seeding.solve(name, lambda: self._find_seeding_parameters(name))

    def _find_seeding_parameters(self, name: str) -> Iterator[str]:
        path = path_of(name)
        for function in self.resolver.functions(name):
            own = {f"{function.name}.<locals>.{param.name}": param.name for param in function.params}
            for event in self.resolver.events.of(name) if own else ():
                if event.kind != "call" or not isinstance(event.value, Call) or not event.value.args:
                    continue
                for target in self.names(path, event.value.func):
                    if ":" in target:
                        values = [value for _, value in self.seeding_arguments(target, event.value)]
                    elif seeder := self._catalogue.seeder(plain(target)):
                        seed = seed_given(seeder, event.value)
                        values = [] if seed is None else [seed]
                    else:
                        continue
                    for each in (inner for value in values for inner in within(value)):
                        if isinstance(each, Ref):
                            yield from (own[root] for root in each.roots if root in own)


class Context(NamedTuple):
    """All that is asked about a module; ``path`` is the module's, with slashes, relative to the project's root."""

    path: str
    facts: Facts
    lines: Lines
    project: Project
    catalogue: Catalogue
    settings: Settings
