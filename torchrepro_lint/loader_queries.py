"""DataLoaders of a linked project, and the effects of what their workers run to fetch samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from torchrepro_lint.catalogue.loaders import loader_names
from torchrepro_lint.fetching import Fetching
from torchrepro_lint.loaders import Loader, find_loaders
from torchrepro_lint.program_effects import ProgramEffects
from torchrepro_lint.resolve.call_sites import paths_constructing


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
