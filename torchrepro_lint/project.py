"""A linked project: names, calls and runs across its modules. Every answer is worked out when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from torchrepro_lint.accelerator import names_accelerator
from torchrepro_lint.beginnings import in_parts
from torchrepro_lint.conditions import Truth, evaluate
from torchrepro_lint.effects import Effects, seeded
from torchrepro_lint.entrypoints import Entry, EntryPoints
from torchrepro_lint.events import Event, Guard
from torchrepro_lint.facts import Call, Expression, Facts, Ref, Statement
from torchrepro_lint.fetching import Fetching
from torchrepro_lint.filled import filled_words
from torchrepro_lint.found_calls import all_calls
from torchrepro_lint.frameworks import accelerates
from torchrepro_lint.happenings import Happening
from torchrepro_lint.index import plain
from torchrepro_lint.link import Link
from torchrepro_lint.loader_kinds import loader_kinds, loader_names
from torchrepro_lint.loaders import Loader, find_loaders
from torchrepro_lint.memo import Memo
from torchrepro_lint.mentions import Mentions, holders, mentions, paths_constructing, words_in
from torchrepro_lint.module_tree import ModuleTree
from torchrepro_lint.origins import Origins
from torchrepro_lint.partly import seeding_functions
from torchrepro_lint.passing import bind, read_arguments
from torchrepro_lint.placed import Placed, placed
from torchrepro_lint.qualified import path_of
from torchrepro_lint.runs import Run
from torchrepro_lint.scoped import Scope, Scoped
from torchrepro_lint.seeding import seed_given
from torchrepro_lint.signatures import arguments
from torchrepro_lint.small import Small
from torchrepro_lint.tables import seeding_words, worker_seeding_words
from torchrepro_lint.text import Position
from torchrepro_lint.torch_scope import torch_modules
from torchrepro_lint.touches import Touch, switching
from torchrepro_lint.walk import held_words, within
from torchrepro_lint.worker_draws import WorkerDraw, numpy_draws
from torchrepro_lint.worker_functions import handed_words, worker_functions
from torchrepro_lint.worker_seeds import WorkerSeed, WorkerSeedPlace, worker_seeds

if TYPE_CHECKING:
    from torchrepro_lint.catalogue import Catalogue
    from torchrepro_lint.entries import Condition, Spelling
    from torchrepro_lint.library_versions import Libraries
    from torchrepro_lint.order.context import Orders
    from torchrepro_lint.settings import Settings


_Answer = TypeVar("_Answer")


class Site(Small, frozen=True):
    """A call of a module: its function (``path:`` for the top level, class bodies included), what is called, and what
    surrounds it.
    """

    call: Call
    function: str
    names: tuple[str, ...]
    guards: tuple[Guard, ...]
    statement: Statement


class Called(Small, frozen=True):
    """A call, its function, and the event that it is, before it is asked what is called."""

    call: Call
    function: str
    event: Event


def _place(called: Called) -> tuple[int, int]:
    return called.call.start, -called.call.end


def _accelerate(_start: int, happenings: Sequence[Happening]) -> bool:
    return any(
        accelerates(happening.names, happening.event.value)
        for happening in happenings
        if happening.event.kind == "call" and isinstance(happening.event.value, Call)
    )


class Program(NamedTuple):
    """An entry point, what its run reaches, and what that does."""

    entry: Entry
    run: Run
    effects: Effects


class Reached(NamedTuple):
    """Of a program: the functions that it reaches, their files, and whether it may run on an accelerator."""

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


def reached(functions: Iterable[str], *, accelerated: bool) -> Reached:
    """What a program reaches, by its functions."""
    return Reached(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


class _Place(NamedTuple):
    """A program by its file and its number among those of the file, and whether it may run on an accelerator."""

    path: str
    number: int
    accelerated: bool


class Work(NamedTuple):
    """What the workers of a loader run, and what that does."""

    run: Run
    effects: Effects


class Project:
    """The modules of a project (by path from its root), linked.

    ``tree`` is that of all modules, where ``files`` are some of them, ``scripts`` the targets of
    ``[project.scripts]``, ``libraries`` what is asked for of libraries; ``position`` tells where an offset of a file lies, for messages; its row is 0 where the
    project has no texts. ``text`` is what a file says, for fixes. ``link`` is that of a project before
    files changed, where it was told of the changes.
    """

    def __init__(
        self,
        files: Mapping[str, Facts],
        settings: Settings,
        catalogue: Catalogue,
        tree: ModuleTree | None = None,
        scripts: Sequence[str] = (),
        position: Callable[[str, int], Position] = lambda _path, _offset: Position(0, 0),
        text: Callable[[str], str] = lambda _path: "",
        libraries: Libraries = (),
        link: Link | None = None,
    ) -> None:
        self.libraries = libraries
        self.position = position
        self.text = text
        # What others work out once for a project, by their names. A table of theirs with weak keys would keep the
        # project for ever where its values refer to it.
        self.kept: dict[str, Any] = {}
        self.link = link or Link(files, tree or ModuleTree(files, (".",)), catalogue.version)
        self.files = self.link.files
        self.resolver = self.link.names
        self._settings = settings
        self._catalogue = catalogue
        self._scripts = scripts
        self._accelerator: dict[str, bool] = {}
        self._accelerated: dict[Entry, bool] = {}
        self._seeding = Memo()
        self._called_by_place: dict[str, dict[tuple[int, int], Called]] = {}
        self._own_effects: dict[str, Effects] = {}
        self._work: dict[tuple[str, ...], Work] = {}
        self._placed: dict[str, tuple[Placed, ...]] = {}
        self._loaders: dict[str, tuple[Loader, ...]] = {}
        self._switching: dict[int, tuple[Touch, ...]] = {}
        # Which programs reach a function, or any of a file, and from what that is known.
        self._reaching: dict[str, tuple[tuple[_Place, ...], int]] = {}

    def names(self, path: str, expression: Expression) -> tuple[str, ...]:
        """The names that an expression of a file may stand for; see ``names``."""
        return self.resolver.names(path, expression)

    def values(self, path: str, expression: Expression) -> list[tuple[str, Expression]]:
        """The expressions behind a variable, each with its file; anything else stands for itself."""
        return list(self.resolver.values(path, expression))

    def calls(self, path: str) -> tuple[Site, ...]:
        """All calls of a module in the order of the text, but for those that constant tests rule out."""
        return self.link.sites.of(path, lambda: tuple(self.site(path, each) for each in self._called(path)))

    def calls_by(self, path: str, words: frozenset[str]) -> Iterator[Site]:
        """Those of ``calls`` that may call what has one of these last words."""
        meant = words_in(self.files[path], words)
        for each in self._called(path):
            if not meant.isdisjoint(held_words(each.call.func)):
                yield self.site(path, each)

    def calls_on(self, path: str, words: frozenset[str]) -> Iterator[Called]:
        """The calls of a module by an attribute or method with one of these names."""
        for each in self._called(path):
            match each.call.func:
                case Ref(path=(*_, word)) if word in words:
                    yield each

    def site(self, path: str, called: Called) -> Site:
        """A call of a module with what it calls."""
        names = self.resolver.names(path, called.call.func)
        event = called.event
        return Site(called.call, called.function, names, event.guards, event.statement)

    def _called(self, path: str) -> tuple[Called, ...]:
        return self.link.called.of(path, lambda: tuple(sorted(self._find_called(path), key=_place)))

    def _find_called(self, path: str) -> Iterator[Called]:
        facts = self.files[path]
        bodies = [("", facts.body)]
        bodies += ((each.name, each.body) for each in facts.functions)
        for name, body in bodies:
            yield from self._called_in(f"{path}{name or ':'}", body)

    def _called_in(self, function: str, body: tuple[Statement, ...]) -> Iterator[Called]:
        for event in self.resolver.events.of_body(body):
            if event.kind == "call" and isinstance(event.value, Call):
                yield Called(event.value, function, event)

    def called_at(self, function: str, start: int, end: int) -> Called:
        """A call of a function (``path:`` for the top level) by its offsets."""
        path = path_of(function)
        facts = self.files[path]
        known = self._called_by_place.get(function)
        if known is None:
            own = function[len(path) :]
            bodies = [each.body for each in facts.functions if each.name == own] if own != ":" else [facts.body]
            known = self._called_by_place[function] = {
                (each.call.start, each.call.end): each for body in bodies for each in self._called_in(function, body)
            }
        return known[start, end]

    def sites_of(self, name: str) -> tuple[tuple[str, Site], ...]:
        """The calls of a function or class of the project, each with its file; a constructor is called by its class."""
        naming = all_calls(self).naming(name)
        return tuple((path, site) for path in naming for site in self.calls(path) if name in site.names)

    def settings(self, path: str) -> tuple[Placed, ...]:
        """The flags and variables that a module sets, function by function; what constant tests rule out is not there."""
        if path not in self._placed:
            self._placed[path] = tuple(placed(self.resolver, self._catalogue, path))
        return self._placed[path]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Where runs start, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """Where runs start, file by file."""
        return EntryPoints(self.link, self._scripts, self._settings.entry_points)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """What each entry point of the project runs, sorted by path."""
        return tuple(program for path in sorted(self.files) for program in self.programs_of(path))

    def ask_all(self) -> None:
        """Work out what is asked of all files together."""
        _ = self.programs, self.seeds_workers, self.torch_modules, self.loader_paths, self._filled_words
        _ = (
            self.enters_device,
            self.scripting,
            self.worker_functions,
            self.handed_words,
            self._worker_seeds,
            self._seeding_files,
        )
        for entries in self._entries:
            self._reached(entries)
        seeding = self._seeding_files
        for path in seeding.paths:
            self.resolver.modules.behind(path)
            self._seeding_in(path, seeding.words)

    def programs_in(self, path: str) -> tuple[Program, ...]:
        """The programs that run anything of a file."""
        return self._programs(self._where(f"in {path}", lambda each: path in each.paths))

    def programs_of(self, path: str) -> tuple[Program, ...]:
        """What the entry points of a file run."""
        entries = self.entry_points.of(path)
        return self.link.programs.of(entries, lambda: tuple(self._find_programs(entries))) if entries else ()

    def _find_programs(self, entries: Sequence[Entry]) -> Iterator[Program]:
        names, tables, commands = self.resolver, self.link.runs, [each for each in entries if each.function]
        paths = {each.path for each in commands}
        begun = Run.of_module(paths.pop(), names, tables) if len(commands) > 1 and len(paths) == 1 else None
        runs = [(entry, Run.from_entry(entry, names, tables, begun)) for entry in entries]
        started = next((run.functions for entry, run in runs if entry.function is None), frozenset())
        for entry, run in runs:
            # A command that the module's own __main__ block calls is that same run.
            if entry.function is None or entry.function not in started:
                yield Program(entry, run, self._effects(run))

    def _effects(self, run: Run) -> Effects:
        return Effects(run, self.resolver, self._catalogue, dict(self._settings.seeders), self.link.telling)

    def work_of(self, functions: Sequence[str]) -> Work:
        """What functions of the project do when a loader's workers run them."""
        key = tuple(functions)
        if key not in self._work:
            run = Run(self.resolver, self.link.runs, key, mode="worker")
            self._work[key] = Work(run, self._effects(run))
        return self._work[key]

    @cached_property
    def origins(self) -> Origins:
        """What the expressions of the project stand for."""
        return Origins(self)

    @cached_property
    def fetching(self) -> Fetching:
        """What the workers of the project's loaders draw from."""
        return Fetching(self.origins)

    @property
    def loader_paths(self) -> tuple[str, ...]:
        """The files that may construct a DataLoader, sorted."""
        return self._kept("loaders", lambda: paths_constructing(self.resolver, sorted(loader_names())))

    def of_file(self, name: str, path: str, compute: Callable[[str], _Answer]) -> _Answer:
        """An answer about one file that stays for as long as nothing changes that it was worked out from: only what the link
        tells may be asked for it.
        """
        found: _Answer = self.link.of_files.of((name, path), lambda: compute(path))
        return found

    def mentioning(self, words: frozenset[str]) -> Mentions:
        """What may call something from outside with one of these last words; see ``mentions``."""
        return self._kept(f"mentioning {' '.join(sorted(words))}", lambda: mentions(self.resolver, words))

    def holding(self, word: str) -> frozenset[str]:
        """A word, and those of what may hold or return what has it; see ``holders``."""
        return self._kept(f"holding {word}", lambda: holders(self.resolver, (word,)))

    def _kept(self, name: str, compute: Callable[[], _Answer]) -> _Answer:
        """An answer about the whole project that stays for as long as nothing changes that it was worked out from: only
        what the link tells may be asked for it.
        """
        found: _Answer = self.link.answers.of(name, compute)
        return found

    def _afresh(self) -> Project:
        """For answers that are kept across changes: a project of the same link that has worked nothing out yet, so that all
        is noted that they look into. Where nothing is kept, this one.
        """
        if not self.resolver.modules.reads.keeps:
            return self
        return Project(
            self.files,
            self._settings,
            self._catalogue,
            None,
            self._scripts,
            self.position,
            self.text,
            self.libraries,
            self.link,
        )

    def loaders(self, path: str) -> tuple[Loader, ...]:
        """The DataLoaders that a module constructs."""
        if path not in self._loaders:
            self._loaders[path] = tuple(find_loaders(self, path))
        return self._loaders[path]

    def dataset_of(self, loader: Scoped) -> tuple[Scoped, ...]:
        """The dataset that the construction of a loader passes."""
        assert isinstance(loader.value, Call)
        for name in self.names(loader.path, loader.value.func):
            if (kind := loader_kinds().get(name)) is not None and kind.dataset:
                return read_arguments(self.origins, loader, kind.parameters).given.get(kind.dataset, ())
        return ()

    def scopes_of(self, function: str) -> Iterator[Scope]:
        """What each call of a function passes for its parameters."""
        for definition in self.resolver.functions(function):
            for path, call in self.resolver.calls_of.of(function, definition):
                skip = self.resolver.calls_of.is_bound(path, call.func, definition)
                yield bind(self.origins, Scoped(path, call), function, definition, skip=skip, outer=Scope())

    def effects_in(self, function: str) -> Effects:
        """What running a function, or a module's top level, does."""
        if function not in self._own_effects:
            run = Run(self.resolver, self.link.runs, (function,), main=function.endswith(":"))
            self._own_effects[function] = self._effects(run)
        return self._own_effects[function]

    def only_seeds(self, path: str, call: Call) -> bool:
        """Whether a call of a file seeds generators, itself or through a function of the project, and draws from none."""
        for name in self.names(path, call.func):
            if ":" in name and self.resolver.functions(name):
                effects = self.effects_in(name)
                if effects.seeds and not effects.draws and not effects.matters:
                    return True
            elif seeded(self._catalogue, dict(self._settings.seeders), plain(name), call):
                return True
        return False

    def is_called(self, word: str) -> bool:
        """Whether anything in the project calls a function or method of that name."""
        return self.resolver.calls_of.calls(word)

    def initialises_from_outside(self, word: str) -> bool:
        """Whether the project fills parameters that it goes over, applies a function to modules, or fills a ``x.word``."""
        return word in self._filled_words or "" in self._filled_words

    @property
    def _filled_words(self) -> frozenset[str]:
        return self._kept("filled", lambda: filled_words(self))

    @cached_property
    def orders(self) -> Orders:
        """What becomes of values whose order is arbitrary."""
        from torchrepro_lint.order.context import Orders

        return Orders(self)

    @property
    def torch_modules(self) -> frozenset[str]:
        """The modules that import torch, and those that such a module imports."""
        return self._kept("torch", lambda: torch_modules(self.resolver.modules))

    def seeds(self, name: str) -> bool:
        """Whether a function from outside seeds a generator."""
        return ":" not in name and self._catalogue.seeder(name.replace("().", ".")) is not None

    @property
    def seeding_words(self) -> frozenset[str]:
        """The last words of what seeds generators, of the packages that the project mentions."""
        return self._kept("seeding words", lambda: seeding_words(self.resolver.modules.mentions))

    def seeding_functions(self, behind: str) -> Iterator[str]:
        """The functions and module bodies that seed generators by their own calls, of the files that import a file, directly
        or not, and its own.
        """
        found = self._seeding_files
        for path in found.paths:
            if behind in self.resolver.modules.behind(path):
                yield from self._seeding_in(path, found.words)

    @property
    def _seeding_files(self) -> Mentions:
        return self._kept("seeding", lambda: mentions(self.resolver, self.seeding_words))

    def _seeding_in(self, path: str, words: frozenset[str]) -> tuple[str, ...]:
        key = path, words
        return self.link.seeding.of(key, lambda: tuple(seeding_functions(self, self._catalogue, path, words)))

    @property
    def seeds_workers(self) -> bool:
        """Whether the project makes a framework seed the workers of all loaders: ``seed_everything(workers=True)``."""
        return self._kept("seeds workers", self._find_whether_workers_are_seeded)

    def _find_whether_workers_are_seeded(self) -> bool:
        seeders = mentions(self.resolver, worker_seeding_words(self.resolver.modules.mentions))
        return any(
            setting.flag == "worker-seeds" and setting.value is True and self._sets(site.call, form, setting.when)
            for path in seeders.paths
            for site in self.calls_by(path, seeders.words)
            for name in site.names
            for form, setting in self._catalogue.settings(name.replace("().", "."))
        )

    @property
    def scripting(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What the project hands to ``torch.jit.script``: the file that does, and the names of the value."""
        from torchrepro_lint.scripted import handed

        return self._kept("scripting", lambda: tuple(handed(self)))

    @property
    def enters_device(self) -> bool:
        """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
        from torchrepro_lint.infer.modes import enters_device

        return self._kept("enters device", lambda: enters_device(self))

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
                    for called in self._called(path)
                    if (called.call.start, called.call.end) == (each.start, each.end)
                )

    @property
    def _worker_seeds(self) -> tuple[WorkerSeedPlace, ...]:
        return self._kept("worker seeds", lambda: tuple(worker_seeds(self._afresh(), self._catalogue)))

    @property
    def handed_words(self) -> frozenset[str]:
        """The words of what may be handed to loaders' workers; see ``worker_functions``."""
        return self._kept("handed words", lambda: handed_words(self))

    @property
    def worker_functions(self) -> frozenset[str]:
        """The functions of the project that are passed as ``worker_init_fn``."""
        return self._kept(
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

    def reaching(self, function: str) -> tuple[Program, ...]:
        """The programs that reach a function (``path:`` is a module's top level)."""
        return self._programs(self._where(function, lambda each: function in each.functions))

    def _programs(self, places: tuple[_Place, ...]) -> tuple[Program, ...]:
        return tuple(self.programs_of(each.path)[each.number] for each in places)

    def _where(self, what: str, wanted: Callable[[Reached], bool]) -> tuple[_Place, ...]:
        """Which programs reach what is wanted; those of other entry points are not run for that."""
        reads = self.resolver.modules.reads
        if what not in self._reaching:
            outer, reads.seen = reads.seen, 0
            found = tuple(
                _Place(entries[0].path, number, each.accelerated)
                for entries in self._entries
                for number, each in enumerate(self._reached(entries))
                if wanted(each)
            )
            self._reaching[what] = found, reads.seen
            reads.seen |= outer
        found, seen = self._reaching[what]
        reads.seen |= seen
        return found

    @cached_property
    def _entries(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def _reached(self, entries: tuple[Entry, ...]) -> tuple[Reached, ...]:
        return self.link.reached.of(entries, lambda: tuple(map(self._reached_by, self.programs_of(entries[0].path))))

    def _reached_by(self, program: Program) -> Reached:
        return reached(program.run.functions, accelerated=self.on_accelerator(program))

    def switching(self, program: Program) -> tuple[Touch, ...]:
        """What a program does to flags, variables of the environment, and devices, in order."""
        known = self._switching.get(id(program.run))
        if known is None:
            known = self._switching[id(program.run)] = tuple(
                switching(program.run, self.resolver, self._catalogue, self.kept)
            )
        return known

    def on_accelerator(self, program: Program) -> bool:
        """Whether a program may run on an accelerator: whether anything that it reaches names one."""
        if program.entry not in self._accelerated:
            self._accelerated[program.entry] = any(
                self._names_accelerator(function) for function in sorted(program.run.functions)
            ) or any(in_parts(program.run, "accelerates", _accelerate))
        return self._accelerated[program.entry]

    def _names_accelerator(self, function: str) -> bool:
        if function not in self._accelerator:
            if function.endswith(":"):
                bodies = [self.files[function[:-1]].body]
            else:
                bodies = [each.body for each in self.resolver.functions(function)]
            self._accelerator[function] = any(names_accelerator(body) for body in bodies)
        return self._accelerator[function]

    def may_use_accelerator(self, function: str) -> bool:
        """Whether a call in ``function`` may run on an accelerator, under the ``device`` setting.

        Under ``auto`` it may, unless programs reach the function and none of them names an accelerator.
        """
        if self._settings.device != "auto":
            return self._settings.device != "cpu"
        reached = self._where(function, lambda each: function in each.functions)
        return not reached or any(each.accelerated for each in reached)
