"""What the workers of a loader draw from where they fetch samples: from a dataset, its transforms, a collating function.

The answer is a set of generators: torch, numpy, python; ``own`` for one that no worker seeds, ``unknown`` where it may be any.
Empty means that nothing is drawn, as far as all that runs is known.

DataLoaders of a linked project, and the effects of what their workers run to fetch samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.loaders import Dataset, dataset, loader_kinds, loader_names
from torchrepro_lint.dataflow.arguments import read_arguments
from torchrepro_lint.dataflow.environment import Scoped
from torchrepro_lint.dataflow.reaching_definitions import attribute_values
from torchrepro_lint.domain.loaders.callable_effects import NOTHING, UNKNOWN, Draws, Transforming
from torchrepro_lint.domain.loaders.sites import Loader, find_loaders, samples
from torchrepro_lint.domain.program_effects import ProgramEffects
from torchrepro_lint.resolve.call_sites import paths_constructing
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Comprehension, Constant, Operation, Ref, Subscript

_FETCH = ("__getitem__", "__getitems__", "__iter__", "__next__", "get")
_PLAIN = (
    "torch.utils.data.",
    "typing.",
    "abc.",
    "builtins.object",
    "collections.abc.",
    "torchvision.datasets.VisionDataset",
    "torchvision.datasets.vision.VisionDataset",
)
_SEQUENCES = frozenset(f"builtins.{word}" for word in ("list", "tuple", "range", "zip", "enumerate", "sorted", "dict"))
_MOST = 12


class Fetching:
    """Answers for the datasets and callables of a project."""

    def __init__(self, project: ProgramEffects) -> None:
        self._origins = project.origins
        self._project = project
        self._transforming = Transforming(project, self.draws)
        self._known: dict[int, Draws] = {}

    def of_loader(self, loader: Loader) -> Draws:
        """What the workers of a loader draw from."""
        if id(loader) not in self._known:
            # The project keeps its loaders, so none gets another's identity.
            self._known[id(loader)] = self._of(loader)
        return self._known[id(loader)]

    def _of(self, loader: Loader) -> Draws:
        kind, given = loader.kind, loader.arguments.given
        found = {kind.draws} if kind.draws and samples(loader) else set()
        if kind.dataset:
            found |= self._each(given[kind.dataset]) if given.get(kind.dataset) else UNKNOWN
        for each in given.get("collate_fn", ()) if kind.dataset else ():
            found |= self._transforming.draws(each)
        return frozenset(found)

    def _each(self, given: Iterable[Scoped]) -> Draws:
        return NOTHING.union(*(self.draws(each) for each in given))

    def draws(self, given: Scoped, depth: int = 0) -> Draws:
        """What fetching a sample of a dataset draws from."""
        if depth > _MOST:
            return UNKNOWN
        return NOTHING.union(*(self._one(each, depth) for each in self._origins.of(given)))

    def _one(self, each: Scoped, depth: int) -> Draws:
        match each.value:
            case Constant() | Collection() | Comprehension():
                return NOTHING
            case Call(func=func):
                names = self._project.names(each.path, func) or self._passed(each._replace(value=func))
                return NOTHING.union(*(self._made(each, name, depth) for name in names)) if names else UNKNOWN
            case Subscript(value=value) | Operation(op="*", operands=(value,)):
                return self._part(each._replace(value=value), depth)
            case Operation(op="+", operands=operands):
                return NOTHING.union(*(self.draws(each._replace(value=one), depth + 1) for one in operands))
            case Ref(path=(*_, "dataset")) as ref:
                return self._of_loader(each._replace(value=ref._replace(path=ref.path[:-1])), depth)
            case Ref():
                names = self._project.names(each.path, each.value)
                return NOTHING.union(*(self._declared(name) for name in names)) if names else UNKNOWN
        return UNKNOWN

    def _passed(self, called: Scoped) -> tuple[str, ...]:
        """The names of what is called as a parameter, where all of what may be passed has some."""
        found = [self._project.names(each.path, each.value) for each in self._origins.of(called)]
        return tuple(dict.fromkeys(name for names in found for name in names)) if all(found) else ()

    def _part(self, whole: Scoped, depth: int) -> Draws:
        """A part of what is known to be like its whole: of a split, of a dataset of graphs that is indexed by many."""
        found: set[str] = set()
        for each in self._origins.of(whole) if depth <= _MOST else ():
            if isinstance(each.value, Subscript):
                found |= self._part(each._replace(value=each.value.value), depth + 1)
                continue
            names = self._project.names(each.path, each.value.func) if isinstance(each.value, Call) else ()
            known = bool(names) and all(self._has_parts(name) for name in names)
            found |= self._one(each, depth + 1) if known else UNKNOWN
        return frozenset(found)

    def _has_parts(self, name: str) -> bool:
        if ":" in name:
            return any(dataset(base) for base in self._project.resolver.ancestry(name) if not base.startswith(_PLAIN))
        return dataset(_plain(name)) is not None or name.startswith(("torch.", "numpy."))

    def _of_loader(self, loader: Scoped, depth: int) -> Draws:
        """The dataset of ``loader.dataset``."""
        found: set[str] = set()
        for each in self._origins.of(loader):
            given = self._dataset_of(each) if isinstance(each.value, Call) else ()
            found |= NOTHING.union(*(self.draws(one, depth + 1) for one in given)) if given else UNKNOWN
        return frozenset(found)

    def _dataset_of(self, loader: Scoped) -> tuple[Scoped, ...]:
        """The dataset that the construction of a loader passes."""
        assert isinstance(loader.value, Call)
        for name in self._project.names(loader.path, loader.value.func):
            if (kind := loader_kinds().get(name)) is not None and kind.dataset:
                return read_arguments(self._origins, loader, kind.parameters).given.get(kind.dataset, ())
        return ()

    def _declared(self, name: str) -> Draws:
        """What is only known to be an object of a class, by an annotation."""
        if not name.endswith("()"):
            return UNKNOWN
        if self._project.resolver.classes(name[:-2]):
            return self._instance(name[:-2], None)
        row = dataset(_plain(name))
        return NOTHING if row is not None and not row.calls and not row.wraps and not row.unless else UNKNOWN

    def _made(self, call: Scoped, name: str, depth: int) -> Draws:
        """What a call makes: a dataset of a library or the project, tensors, a sequence."""
        if self._project.resolver.classes(name):
            return self._instance(name, call)
        plain = _plain(name)
        row = dataset(plain)
        if row is not None:
            return self._of_row(call, row, depth)
        if plain in _SEQUENCES or (
            plain.startswith(("torch.", "numpy.")) and not plain.startswith(("torch.utils", "torch.load"))
        ):
            return NOTHING
        return UNKNOWN

    def _of_row(self, call: Scoped, row: Dataset, depth: int) -> Draws:
        assert isinstance(call.value, Call)
        if any(self._project.is_called(word) for word in row.unless) or not self._holds(call, row):
            return UNKNOWN
        if not row.wraps:
            return row.draws | self._transforming.passed(call, row.calls) | self._set_later(call, row.calls)
        first = next((arg.value for arg in call.value.args if not arg.star), None)
        if first is None:
            return UNKNOWN
        inner = call._replace(value=first)
        items = self._origins.collected(inner)
        parts = items.spare if items.complete and items.spare else (inner,)
        return NOTHING.union(*(self.draws(each, depth + 1) for each in parts))

    def _holds(self, call: Scoped, row: Dataset) -> bool:
        """Whether a row is known to hold of the call that makes a dataset, or of the one whose methods made it of that."""
        assert isinstance(call.value, Call)
        if not row.when:
            return True
        receivers: Iterable[Scoped] = ()
        match call.value.func:
            case Attribute(value=value):
                receivers = self._origins.of(call._replace(value=value))
            case Ref(path=(*words, _)) as func:
                receivers = self._origins.of(call._replace(value=func._replace(path=tuple(words))))
        made = [each for each in receivers if isinstance(each.value, Call)]
        if made:
            return all(self._holds(each, row) for each in made)
        return evaluate(row.when, row.spelling, arguments(row.spelling, call.value)) is Truth.HOLDS

    def _set_later(self, call: Scoped, words: Sequence[str]) -> Draws:
        """What the callables draw from that a file sets as attributes of what may be this one: ``dataset.transform = ...``."""
        found: set[str] = set()
        for each in self._origins.set_attributes(call.path, words, call):
            found |= self._transforming.draws(each)
        return frozenset(found)

    def _instance(self, owner: str, call: Scoped | None) -> Draws:
        """A dataset of the project: what its methods do, and what of the library's classes that it inherits from."""
        resolver = self._project.resolver
        methods = [m for word in _FETCH for m in resolver.methods(owner, word) if resolver.functions(m)]
        bases = [base for base in resolver.ancestry(owner) if ":" not in base and not base.startswith(_PLAIN)]
        if not methods and not bases:
            return UNKNOWN
        found = set(self._transforming.instance(owner, call, methods)) if methods else set()
        outside = {} if call is None else dict(self._origins.construct(call, owner).outside)
        for base in bases:
            row = dataset(base)
            if row is None or row.wraps or row.unless:
                return UNKNOWN
            made = outside.get(base)
            found |= self._set_later(call, row.calls) if call is not None else NOTHING
            passed = self._transforming.passed(made, row.calls) if made is not None or not row.calls else None
            found |= row.draws | (self._kept(owner, call, row.calls) if passed is None else passed)
        return frozenset(found)

    def _kept(self, owner: str, call: Scoped | None, words: Sequence[str]) -> Draws:
        """What the callables draw from that an object sets itself as these attributes, where its base is told nothing."""
        if call is None:
            return UNKNOWN
        scope = self._origins.construct(call, owner).scope
        kept = [each for word in words for each in attribute_values(self._origins, owner, word, scope)]
        return NOTHING.union(*map(self._transforming.draws, kept)) if kept else UNKNOWN


def _plain(name: str) -> str:
    return name.replace("()", "").replace("[]", "")


class LoaderQueries(ProgramEffects):
    """A project whose loaders are known. A loader stays the same object for as long as the project is there: what is known
    of it may be kept by its identity.
    """

    @cached_property
    def _loaders(self) -> dict[str, tuple[Loader, ...]]:
        return {}

    @property
    def loader_paths(self) -> tuple[str, ...]:
        """The files that may construct a DataLoader, sorted."""
        return self.of_all("loaders", lambda: paths_constructing(self.resolver, sorted(loader_names())))

    def loaders(self, path: str) -> tuple[Loader, ...]:
        """The DataLoaders that a module constructs."""
        if path not in self._loaders:
            self._loaders[path] = tuple(find_loaders(self, path))
        return self._loaders[path]

    def readable_loaders(self, path: str) -> Iterator[Loader]:
        """The DataLoaders that a module constructs, in the order of the text, all of whose arguments can be read."""
        yield from (each for each in self.loaders(path) if each.arguments.complete)

    @cached_property
    def fetching(self) -> Fetching:
        """What the workers of the project's loaders draw from."""
        return Fetching(self)
