"""Effect summaries of a linked project: what each of its programs and functions does to generators, flags and devices.

Attribution of trace events: which of the entry points that reach an event has to answer for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import seeding_words
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.domain.devices import names_accelerator
from torchrepro_lint.domain.flag_effects import Placed, Touch, placed, switching
from torchrepro_lint.domain.programs import Link, Program, Reached, Work, reached
from torchrepro_lint.domain.rng.effects import Effects, seeded
from torchrepro_lint.domain.rng.seeders import seeding_functions
from torchrepro_lint.resolve.call_sites import Mentions, mentions
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.trace.framework_models import accelerates
from torchrepro_lint.trace.trace import in_parts
from torchrepro_lint.trace.traces import Traces

if TYPE_CHECKING:
    from typing_extensions import Self

    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.loaders import Libraries
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.syntax.nodes import Facts
    from torchrepro_lint.trace.builder import Run
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.trace import Happening


def _accelerate(_start: int, happenings: Sequence[Happening]) -> bool:
    return any(
        accelerates(happening.names, happening.event.value)
        for happening in happenings
        if happening.event.kind == "call" and isinstance(happening.event.value, Call)
    )


class _Place(NamedTuple):
    """A program by its file and its number among those of the file, and whether it may run on an accelerator."""

    path: str
    number: int
    accelerated: bool


class ProgramEffects(Traces):
    """A project whose programs are known, each with its trace and what that does; and what single functions do.

    A program is worked out once, whoever asks; which programs reach a function is known without the others being run
    again, where the link tells. It promises nothing of loaders and workers.

    ``tree`` is that of all modules, where ``files`` are some of them, ``scripts`` the targets of
    ``[project.scripts]``, ``libraries`` what is asked for of libraries; ``position`` tells where an offset of a file lies,
    for messages; its row is 0 where the project has no texts. ``text`` is what a file says, for fixes. ``link`` is that of
    a project before files changed, where it was told of the changes.
    """

    link: Link

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
        super().__init__(
            link or Link(files, tree or ModuleTree(files, (".",)), catalogue.version),
            scripts,
            settings.entry_points,
            position,
            text,
            libraries,
        )
        self._settings = settings
        self._catalogue = catalogue
        self._accelerator: dict[str, bool] = {}
        self._accelerated: dict[Entry, bool] = {}
        self._own_effects: dict[str, Effects] = {}
        self._work: dict[tuple[str, ...], Work] = {}
        self._placed: dict[str, tuple[Placed, ...]] = {}
        self._switching: dict[int, tuple[Touch, ...]] = {}
        # Which programs reach a function, or any of a file, and from what that is known.
        self._reaching: dict[str, tuple[tuple[_Place, ...], int]] = {}

    def _afresh(self) -> Self:
        """For answers that are kept across changes: a project of the same link that has worked nothing out yet, so that all
        is noted that they look into. Where nothing is kept, this one.
        """
        if not self.resolver.modules.reads.keeps:
            return self
        return type(self)(
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

    # --- programs ----------------------------------------------------------------------------------------------------

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """What each entry point of the project runs, sorted by path."""
        return tuple(program for path in sorted(self.files) for program in self.programs_of(path))

    def programs_of(self, path: str) -> tuple[Program, ...]:
        """What the entry points of a file run."""
        entries = self.entry_points.of(path)
        return self.link.programs.of(entries, lambda: tuple(self._find_programs(entries))) if entries else ()

    def _find_programs(self, entries: Sequence[Entry]) -> Iterator[Program]:
        for entry, run in self.runs_from(entries):
            yield Program(entry, run, self._effects(run))

    def programs_in(self, path: str) -> tuple[Program, ...]:
        """The programs that run anything of a file."""
        return self._programs(self._where(f"in {path}", lambda each: path in each.paths))

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
                for entries in self.entries_by_file
                for number, each in enumerate(self._reached(entries))
                if wanted(each)
            )
            self._reaching[what] = found, reads.seen
            reads.seen |= outer
        found, seen = self._reaching[what]
        reads.seen |= seen
        return found

    def _reached(self, entries: tuple[Entry, ...]) -> tuple[Reached, ...]:
        return self.link.reached.of(entries, lambda: tuple(map(self._reached_by, self.programs_of(entries[0].path))))

    def _reached_by(self, program: Program) -> Reached:
        return reached(program.run.functions, accelerated=self.on_accelerator(program))

    # --- effects -----------------------------------------------------------------------------------------------------

    def _effects(self, run: Run) -> Effects:
        return Effects(run, self.resolver, self._catalogue, dict(self._settings.seeders), self.link.telling)

    def work_of(self, functions: Sequence[str]) -> Work:
        """What functions of the project do when a loader's workers run them."""
        key = tuple(functions)
        if key not in self._work:
            run = self.run_in_worker(key)
            self._work[key] = Work(run, self._effects(run))
        return self._work[key]

    def effects_in(self, function: str) -> Effects:
        """What running a function, or a module's top level, does."""
        if function not in self._own_effects:
            self._own_effects[function] = self._effects(self.run_of(function))
        return self._own_effects[function]

    def settings(self, path: str) -> tuple[Placed, ...]:
        """The flags and variables that a module sets, function by function; what constant tests rule out is not there."""
        if path not in self._placed:
            self._placed[path] = tuple(placed(self.resolver, self._catalogue, path))
        return self._placed[path]

    def switching(self, program: Program) -> tuple[Touch, ...]:
        """What a program does to flags, variables of the environment, and devices, in order."""
        known = self._switching.get(id(program.run))
        if known is None:
            known = self._switching[id(program.run)] = tuple(
                switching(program.run, self.resolver, self._catalogue, self.kept)
            )
        return known

    # --- seeds -------------------------------------------------------------------------------------------------------

    def seeds(self, name: str) -> bool:
        """Whether a function from outside seeds a generator."""
        return ":" not in name and self._catalogue.seeder(name.replace("().", ".")) is not None

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

    @property
    def seeding_words(self) -> frozenset[str]:
        """The last words of what seeds generators, of the packages that the project mentions."""
        return self.of_all("seeding words", lambda: seeding_words(self.resolver.modules.mentions))

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
        return self.of_all("seeding", lambda: mentions(self.resolver, self.seeding_words))

    def _seeding_in(self, path: str, words: frozenset[str]) -> tuple[str, ...]:
        key = path, words
        return self.link.seeding.of(key, lambda: tuple(seeding_functions(self, self._catalogue, path, words)))

    # --- devices -----------------------------------------------------------------------------------------------------

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


def belongs_elsewhere(project: ProgramEffects, entry: Entry, happening: Happening, family: str = "") -> bool:
    """Whether something lies behind another entry point's function, so that this one only launches it.

    Where the other one seeds ``family``, does not draw from it there, or is no run that matters, it has nothing to say,
    and this one has.
    """
    entered = {step.into for step in happening.way}
    return any(
        other.entry.path != entry.path
        and other.effects.matters
        and other.effects.acts
        and family not in other.effects.seeds
        and any(
            name.startswith(f"{other.entry.path}:") and name in other.run.functions and not name.endswith(":")
            for name in entered
        )
        and any(name == other.entry.function or name in other.run.started for name in entered)
        and (
            not family
            or any(mark(draw.happening.event) == mark(happening.event) for draw in other.effects.draws.get(family, ()))
        )
        for other in project.programs
    )
