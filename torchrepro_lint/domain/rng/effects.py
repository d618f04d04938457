"""What a run does to random generators, and whether it is a run that matters."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchrepro_lint.catalogue.catalogue import canonical
from torchrepro_lint.catalogue.conditions import Argument, Truth, arguments, evaluate, is_hidden
from torchrepro_lint.catalogue.loaders import loader_names
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.domain.flags import items
from torchrepro_lint.domain.rng.seeders import (
    changing_source,
    families,
    from_entropy,
    leaves_result,
    logs_metric,
    may_log,
    method,
    reads_data,
    seed_given,
)
from torchrepro_lint.resolve.names import ANYTHING, Names
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, Ref
from torchrepro_lint.trace.builder import Run, fetches
from torchrepro_lint.trace.trace import CallFrame, Happening, guards, in_parts

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Consumer, Scalar, Seeder
    from torchrepro_lint.query.memo_tables import Kept

# A call that cannot be followed and is called like a seeder may be one: then nothing is said of the run.
_SEEDER_WORD = re.compile(
    r"(?=\w*\Z)(?!(?:to|as|is|are|has|get|check|assert|verify)_)"  # those ask or convert, and set nothing
    r"(?:(set|fix|init|setup|manual|same|torch|all|global|random|reset|make|enable|ensure)\w*seed|"
    r"seed_\w+|seeding|\w*(determinis|reproduc)\w*)"
)


class Draw(NamedTuple):
    """A draw from a family's generator: what draws, as people write it, where it happens, and as which event of the run.

    ``family`` is the generator's own, whatever seeds it.
    """

    label: str
    happening: Happening
    order: int
    family: str


class Seed(NamedTuple):
    """A call that seeds a family, likewise."""

    label: str
    happening: Happening
    order: int


# What may come of calls of names, by a method and its receiver's word: see ``Effects._may``.
Telling: TypeAlias = "Kept[tuple[tuple[str, ...], tuple[str, str]], str]"


class Effects:
    """The draws of each family in a run, in order, what it seeds, and whether it leaves or measures something (``matters``).

    ``acts`` says whether the entry's own statements do any of that, not only what they import. ``reseeds`` are the seeds that
    workers set while they fetch samples, which seed nothing of the run. ``entropic`` are what seeds families anew
    in each run. ``iterates`` says that a loader is gone along; what is to draw then, and is not seen to be gone along, draws
    at the ``end``.
    """

    def __init__(
        self, run: Run, names: Names, catalogue: Catalogue, user_seeders: dict[str, tuple[str, ...]], telling: Telling
    ) -> None:
        self.draws: dict[str, list[Draw]] = {}
        self.seeds: dict[str, list[Seed]] = {}
        self.matters = False
        self.acts = False
        self.reseeds: dict[str, list[Seed]] = {}
        self.unknown_seeder = False
        self.entropic: dict[str, list[Seed]] = {}
        self.iterates = False
        self.end = len(run.happenings)
        self._names = names
        self._catalogue = catalogue
        self._user = user_seeders
        self._telling = telling
        self._run = run
        self._measured: list[Happening] = []
        self._seeded_forks: set[int] = set()
        self._seeded_blocks: dict[int, tuple[str, ...]] = {}
        iterated: dict[str, list[Draw]] = {}
        self._reads = False
        for order, happening in self._acting():
            self._order = order
            value = happening.event.value
            if happening.event.kind == "call" and isinstance(value, Call):
                self._call(happening, value, iterated)
            elif happening.event.kind == "iterate":
                self._iterate(happening)
        if self._reads:
            self.matters = self.matters or bool(self._measured)
            for each in self._measured:
                self._act(each)
        for family, draws in iterated.items():
            if family not in self.draws:
                self.draws[family] = [draw._replace(order=self.end) for draw in draws]

    def _acting(self) -> Iterator[tuple[int, Happening]]:
        """The happenings of which anything may come, with their orders."""
        for part in in_parts(self._run, "acting", self._acting_in):
            yield from part

    def _acting_in(self, start: int, happenings: Sequence[Happening]) -> list[tuple[int, Happening]]:
        """Of those that do no more than read data, the first stands for all."""
        found: list[tuple[int, Happening]] = []
        reads = False
        for order, happening in enumerate(happenings, start):
            may = self._may(happening)
            if may == "act" or (may == "read" and not reads):
                found.append((order, happening))
            reads = reads or may == "read"
        return found

    def _may(self, happening: Happening) -> str:
        """What may come of a happening, in whatever run: ``act``, ``read`` where it may read data and no more, or nothing."""
        call = happening.event.value
        if happening.event.kind != "call" or not isinstance(call, Call):
            return "act" if happening.event.kind == "iterate" else ""
        names = happening.names
        return self._telling.of((names, method(call.func)), lambda: self._tells(names, call))

    def _tells(self, names: tuple[str, ...], call: Call) -> str:
        """The same of all calls of what has these names, by this method."""
        if leaves_result(self._names, names, call) or may_log(names, call):
            return "act"
        acts = any(
            known in self._user
            or self._catalogue.seeder(known) is not None
            or bool(self._catalogue.consumer(known.removesuffix("()")))
            or self._is_suspect(known)
            for known in map(plain, self._outside(names or _method_name(call)))
        )
        return "act" if acts else "read" if reads_data(names) else ""

    @cached_property
    def _evaluates(self) -> bool:
        """Whether modules are only evaluated: ``eval()`` is called, and neither ``train()`` nor a backward pass is."""
        words = frozenset().union(*in_parts(self._run, "words", _words))
        return "eval" in words and not words & {"train", "backward"}

    @cached_property
    def _has_workers(self) -> bool:
        """Whether some loader may have workers, as far as the run shows its loaders."""
        calls = [(each, each.event.value) for each in self._run.happenings if not loader_names().isdisjoint(each.names)]
        loaders = [(each, call) for each, call in calls if each.event.kind == "call" and isinstance(call, Call)]
        return not loaders or any(fetches(self._names, each.path, call, each.names) for each, call in loaders)

    @cached_property
    def _calls(self) -> tuple[array[int], ...]:
        """The calls of the run, by identity, in parts, each in order: a set would take ten times the room, for each run."""
        return in_parts(self._run, "calls", _values)

    def _call(self, happening: Happening, call: Call, iterated: dict[str, list[Draw]]) -> None:
        self._reads = self._reads or reads_data(happening.names)
        if leaves_result(self._names, happening.names, call):
            self.matters = True
            self._act(happening)
        elif logs_metric(happening.names, call):
            self._measured.append(happening)
        for name in self._outside(happening.names or _method_name(call)):
            known = plain(name)
            self._seed(happening, call, known)
            for row in self._consumers(name, known):
                if self._draws(row, happening, call) and not self._is_reseeded(row.family, happening):
                    self._act(happening)
                    kept = iterated if row.phase in ("iterate", "later") else self.draws
                    family = self._family(row, happening)
                    if family != "torch" or not self._is_seeded_by_loader(happening):
                        kept.setdefault(family, []).append(Draw(label(known), happening, self._order, row.family))

    def _is_reseeded(self, family: str, happening: Happening) -> bool:
        """Whether a worker has seeded what it draws from on its way there, under no condition of its own."""
        return happening.mode == "worker" and any(
            happening.way[: len(seed.way)] == seed.way and guards(happening)[: len(guards(seed))] == guards(seed)
            for seed in (each.happening for each in self.reseeds.get(family, ()))
        )

    def _is_seeded_by_loader(self, happening: Happening) -> bool:
        """Whether only workers come there whose loader has a generator, from which torch takes their seeds."""
        if happening.mode != "worker":
            return False
        loaders = [loader for step in happening.way for loader in self._loaders(step)]
        return bool(loaders) and all(_has_generator(self._spelled_out(path, call)) for path, call in loaders)

    def _loaders(self, step: CallFrame) -> Iterator[tuple[str, Call]]:
        """The loaders that a step of a way makes, or iterates."""
        value = step.event.value
        made = self._names.made(step.path, value) if value is not None and step.event.kind == "iterate" else ()
        for path, each in [(step.path, value)] if step.event.kind == "call" else made:
            if isinstance(each, Call) and any(map(self._makes_loader, self._names.names(path, each.func))):
                yield path, each

    def _makes_loader(self, name: str) -> bool:
        return not loader_names().isdisjoint(self._names.ancestry(name) if ":" in name else (name,))

    def _outside(self, names: tuple[str, ...]) -> Iterator[str]:
        """The names from outside: of a class of the project the constructor that it inherits, of what torch returned its
        tensors' methods.
        """
        for name in names:
            if ":" in name:
                if self._names.classes(name):
                    yield from (
                        each[: -len("().__init__")] for each in self._names.methods(name, "__init__") if ":" not in each
                    )
            elif name.endswith("().__init__"):
                yield name[: -len("().__init__")]
            else:
                yield name
                head, _, word = name.rpartition(".")
                if head.startswith("torch.") and "()" in head and not self._catalogue.consumer(plain(name)):
                    yield f"torch.Tensor.{word}"

    def _act(self, happening: Happening) -> None:
        self.acts = self.acts or not (happening.way and happening.way[0].event.kind == "import")

    def _iterate(self, happening: Happening) -> None:
        if happening.event.value is None or not any(
            name.removesuffix("()") in loader_names() for name in happening.names
        ):
            return
        self.iterates = True
        made = [each for each in self._names.made(happening.path, happening.event.value) if isinstance(each[1], Call)]
        # What the calls of other programs pass is not iterated in this run.
        for path, value in [each for each in made if any(_is_in(part, each[1]) for part in self._calls)] or made:
            if isinstance(value, Call):
                spelled_out = self._spelled_out(path, value)
                for row in self._catalogue.consumer("torch.utils.data.DataLoader"):
                    if row.phase == "iterate" and self._draws(row, happening, spelled_out):
                        drawn = self.draws.setdefault("torch", [])
                        drawn.append(Draw("DataLoader(shuffle=True)", happening, self._order, "torch"))

    def _spelled_out(self, path: str, call: Call) -> Call:
        """A call with the keywords that ``**options`` stands for, where that is one literal dictionary."""
        args: list[Arg] = []
        for arg in call.args:
            found = [*self._names.values(path, arg.value)] if arg.star == "**" else []
            given = [*items(self._names, path, arg.value)] if len(found) == 1 else []
            args += [arg._replace(keyword=key, star="", value=value) for key, _, value in given] or [arg]
        return call._replace(args=tuple(args))

    def _consumers(self, name: str, known: str) -> Iterator[Consumer]:
        """The rows of what is called: a class constructs, a function or an instance draws when called."""
        called = name.endswith("()")
        for row in self._catalogue.consumer(known.removesuffix("()")):
            is_class = known.removesuffix("()").rpartition(".")[2][:1].isupper()
            if called == (row.phase == "called" or (row.phase == "call" and is_class)) and not self._is_made(name, row):
                yield row

    def _is_made(self, name: str, row: Consumer) -> bool:
        """Whether a row only fits a method because its pattern fits what made the object: ``models.resnet18().cuda``."""
        maker = plain(name.partition("().")[0]) if "()." in name else ""
        makers = self._catalogue.consumer(maker) if maker else ()
        return "__dict__" in name.split(".") or any(
            (each.evidence, each.source, each.phase) == (row.evidence, row.source, row.phase) for each in makers
        )

    def _draws(self, row: Consumer, happening: Happening, call: Call) -> bool:
        if row.family == "torch" and (happening.mode == "loaded" or _forks(happening) & self._seeded_forks):
            return False
        if any(row.family in self._seeded_blocks.get(id(guard.value), ()) for guard in guards(happening)):
            return False
        argument = arguments(row.spelling, self._construction(row, happening, call))
        given = [value for word in row.generators if (value := argument(word)) is not None]
        if any(map(_is_something, given)):
            return False
        if any(condition.test == "given" and is_hidden(argument(condition.of)) for condition in row.when):
            return False
        known = self._classes(row, happening, argument)
        if self._evaluates:
            known["module.training"] = False
        if self._evaluates and any(_follows_the_mode(argument(word)) for word in ("training", "train")):
            return False
        return evaluate(row.when, row.spelling, argument, known) is not Truth.FAILS

    def _classes(self, row: Consumer, happening: Happening, argument: Argument) -> dict[str, Scalar]:
        """The classes of the objects that are passed, for conditions on ``class.parameter``."""
        found: dict[str, Scalar] = {}
        for condition in row.when:
            head, _, word = condition.of.partition(".")
            given = argument(word) if head == "class" else None
            names = self._names.names(happening.path, given) if given is not None else ()
            if len(names) == 1 and names[0].endswith("()"):
                found[condition.of] = names[0][:-2].rpartition(".")[2].rpartition(":")[2]
        return found

    def _construction(self, row: Consumer, happening: Happening, call: Call) -> Call:
        """The call whose arguments a row speaks of: for an object of a class that is called, the one that made it."""
        if row.phase != "call" or not any(name.endswith("()") for name in happening.names):
            return call
        made = (value for _, value in self._names.made(happening.path, call.func) if isinstance(value, Call))
        return next(made, call)

    def _family(self, row: Consumer, happening: Happening) -> str:
        """Workers' Python and NumPy generators are seeded from torch's (NumPy's from torch 1.9)."""
        if happening.mode != "worker" or row.family == "torch" or not self._has_workers:
            return row.family
        before = tuple(map(int, self._catalogue.version.split("."))) < (1, 9)
        return "numpy" if row.family == "numpy" and before else "torch"

    def _seed(self, happening: Happening, call: Call, name: str) -> None:
        seeding = seeded(self._catalogue, self._user, name, call)
        if seeding and name not in self._user and self._changes(happening.path, name, call):
            self._randomise(seeding, happening, name)
            seeding = ()
        elif (seeder := self._catalogue.seeder(name)) is not None and from_entropy(seeder, call):
            self._randomise(seeder.families, happening, name)
        if seeding is None:
            self.unknown_seeder = self.unknown_seeder or self._is_suspect(name)
        elif _seeds_block(self._catalogue.seeder(name)):
            self._seeded_blocks[id(call)] = seeding
        else:
            worker = happening.mode == "worker"
            forks = _forks(happening)
            self._seeded_forks |= forks if not worker else set()
            kept = self.reseeds if worker else self.seeds
            for family in () if forks and not worker else seeding:
                kept.setdefault(family, []).append(Seed(label(name), happening, self._order))

    def _randomise(self, families_: tuple[str, ...], happening: Happening, name: str) -> None:
        for family in families_:
            self.entropic.setdefault(family, []).append(Seed(label(name), happening, self._order))

    def _changes(self, path: str, name: str, call: Call) -> bool:
        """Whether the seed is another one in each run, so that it seeds from entropy in effect."""
        seeder = self._catalogue.seeder(name)
        seed = seeder and seed_given(seeder, call)
        return seed is not None and changing_source(self._names, path, seed) is not None

    def _is_suspect(self, name: str) -> bool:
        """``mylib.set_seed``: from outside, unknown, and called like a seeder."""
        root, word = name.partition(".")[0], name.rpartition(".")[2]
        if root in _KNOWN_PACKAGES or "()" in name or not _SEEDER_WORD.fullmatch(word.lower()):
            return False
        return not self._catalogue.framework(name)


def _words(_start: int, happenings: Sequence[Happening]) -> frozenset[str]:
    """The last words of what is called."""
    return frozenset(
        method(happening.event.value.func)[0]
        for happening in happenings
        if happening.event.kind == "call" and isinstance(happening.event.value, Call)
    )


def _values(_start: int, happenings: Sequence[Happening]) -> array[int]:
    """The calls, by their identity, in order."""
    return array("Q", sorted({id(each.event.value) for each in happenings if each.event.kind == "call"}))


def _is_in(values: array[int], value: Expression) -> bool:
    at = bisect_left(values, id(value))
    return at < len(values) and values[at] == id(value)


def _follows_the_mode(value: Expression | None) -> bool:
    """``training=self.training``."""
    return isinstance(value, Ref) and value.path[-1:] == ("training",)


# Whose functions are known: one that is called like a seeder and is not in the catalogue seeds none of our families.
_KNOWN_PACKAGES = frozenset(
    {
        "torch",
        "numpy",
        "random",
        "tensorflow",
        "jax",
        "dgl",
        "gym",
        "gymnasium",
        "builtins",
        "os",
        "time",
        "cupy",
        "imgaug",
    }
)


def seeded(catalogue: Catalogue, user: Mapping[str, tuple[str, ...]], name: str, call: Call) -> tuple[str, ...] | None:
    """The families that calling ``name`` seeds: none for a seed from entropy; None where it is no seeder."""
    if name in user:
        return user[name]
    seeder = catalogue.seeder(name)
    return None if seeder is None else families(seeder, call)


def _seeds_block(seeder: Seeder | None) -> bool:
    """Whether the generators are put back at the end of the block that a call is entered for."""
    return seeder is not None and seeder.within


def _forks(happening: Happening) -> set[int]:
    """The ``torch.random.fork_rng`` blocks around, after which torch's generators are put back, by identity."""
    return {
        id(guard.value)
        for guard in guards(happening)
        if guard.kind == "with"
        and isinstance(guard.value, Call)
        and isinstance(guard.value.func, Ref)
        and (*guard.value.func.roots, *guard.value.func.path)[-1].endswith("fork_rng")
    }


def _method_name(call: Call) -> tuple[str, ...]:
    """An in-place sampler of tensors, on a receiver that nothing is known of: only torch has such names."""
    word, _ = method(call.func)
    return (f"torch.Tensor.{word}",) if word.endswith("_") and not word.startswith("_") else ()


def called_value(func: Expression) -> str:
    """The last word where a variable or an attribute of ``self`` is called as it is: ``self.transform(x)``."""
    match func:
        case Ref(roots=roots, path=(word,)) if any(root.endswith(".<locals>.self") for root in roots):
            return word
        case Ref(roots=roots, path=()) if any(".<locals>." in root for root in roots):
            return roots[0].rpartition(".")[2]
    return ""


_SHORT = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.utils.data.", ""), ("numpy.", "np."))


def label(name: str) -> str:
    """A public name as people write it: ``nn.Linear``, ``F.dropout``, ``np.random.rand``."""
    plain = canonical(name.replace("()", ""))
    if plain.endswith(f".{ANYTHING}"):
        return f"what is looked up in {plain.removesuffix(f'.{ANYTHING}')}"
    for prefix, short in _SHORT:
        if plain.startswith(prefix):
            return short + plain[len(prefix) :]
    return plain


def _has_generator(loader: Call) -> bool:
    """Whether a loader is given a generator, which begins with a constant seed if it is given none."""
    return any(arg.keyword == "generator" and _is_something(arg.value) for arg in loader.args)


def _is_something(value: Expression) -> bool:
    """Whether a value may be other than None."""
    return not isinstance(value, Constant) or value.value is not None
