"""Where the modules of a project lie, and in which folders imports find them: paths alone, whatever the modules say."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.config.roots import join, parents
from torchrepro_lint.syntax.nodes import Facts, Summary
from torchrepro_lint.syspath import entries_of, path_entries

# Names of modules that projects have and no library offers for import.
_OWN = frozenset(
    {
        "utils",
        "util",
        "utilities",
        "helper",
        "helpers",
        "common",
        "misc",
        "tools",
        "functions",
        "ops",
        "const",
        "constants",
    }
    | {"model", "models", "module", "modules", "net", "nets", "network", "networks", "layer", "layers", "architectures"}
    | {"data", "dataset", "dataloader", "dataloaders", "data_loader", "data_utils", "preprocess", "preprocessing"}
    | {"loss", "losses", "metric", "metrics", "criterion", "train", "trainer", "test", "evaluation", "solver"}
    | {"config", "configs", "option", "options", "opts", "args", "arguments", "params", "hparams", "agent", "agents"}
)


class ModuleTree:
    """The modules of a project by their places.

    ``source_roots`` are directories in which absolute imports are looked up; those that the project puts on ``sys.path`` are
    added. ``stems`` has the file of each module by its path without suffix; for a folder without ``__init__.py`` an empty one.
    """

    def __init__(self, files: Mapping[str, Facts], source_roots: Sequence[str]) -> None:
        roots = ("" if root == "." else root.strip("/") for root in source_roots)
        self.source_roots = tuple(dict.fromkeys((*roots, *path_entries(files))))
        self.stems = _stems(files)
        self._script_folders = {posixpath.dirname(path) for path, each in files.items() if each.summary.guarded}
        self._command_folders = {posixpath.dirname(path) for path, each in files.items() if is_command(each.summary)}
        self._files = frozenset(files)
        self._folders = {path: posixpath.dirname(path) for path in files}
        self._homes: dict[tuple[str, str], str | None] = {}
        self._searched: dict[str, tuple[str, ...]] = {}
        self._nearer: dict[str, tuple[str, ...]] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """What everything here rests on: equal for trees in which all imports lead to the same modules."""
        folders = (tuple(sorted(self._script_folders)), tuple(sorted(self._command_folders)))
        return self.source_roots, *folders, tuple(sorted(self._files))

    def folder(self, path: str) -> str:
        """The directory of a file; it is asked for at every name."""
        known = self._folders.get(path)
        return posixpath.dirname(path) if known is None else known

    def module(self, path: str, name: str) -> str | None:
        """The file of the module that an import of ``name`` in ``path`` leads to, or of the nearest one around what it names; None
        where it leads out of the project.
        """
        dots = len(name) - len(name.lstrip("."))
        parts = [part for part in name[dots:].split(".") if part]
        if dots:
            place: str | None = self.above(path, dots)
        else:
            place = self.home_for(path, parts)
            if place is None and self.beside(self.folder(path), parts[0]):
                place = self.folder(path)
        found = None
        if place is not None:
            found = self.stems.get(place) if dots else None
            for part in parts:
                place = join(place, part)
                below = self.stems.get(place)
                if below is None:
                    break
                found = below or found
        return found or None

    def above(self, path: str, dots: int) -> str:
        """The folder in which a relative import with so many dots begins."""
        folder = self.folder(path)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        return folder

    def home_for(self, path: str, parts: Sequence[str]) -> str | None:
        """The directory in which an absolute import in a file finds its first word; None: no such one.

        A file does not import itself: ``utils/model.py`` means the package ``model`` by that word.
        """
        folder, word = self.folder(path), parts[0]
        if (nearer := self._of_its_own(path, folder, parts)) is not None:
            return nearer
        home = self._home(folder, word)
        if home is None or self.stems[join(home, word)] != path:
            return home
        others = (each for each in self._searched[folder] if self.stems.get(join(each, word), path) != path)
        return next(others, home)

    def _of_its_own(self, path: str, folder: str, parts: Sequence[str]) -> str | None:
        """The nearest folder around that is a program's own, with a script in it, and that has the module which is meant, where
        the root of the project may have one of that name as well; None where there is no such one.
        """
        if folder not in self._nearer:
            around = [each for each in parents(folder) if each in self._command_folders and each]
            self._nearer[folder] = tuple(each for each in around if join(each, "__init__.py") not in self._files)
        for each in self._nearer[folder]:
            stem = join(each, parts[0])
            is_file = self.stems.get(stem) == f"{stem}.py" != path
            if is_file or (join(each, "/".join(parts[:2])) in self.stems):
                return each
        return None

    def _home(self, folder: str, word: str) -> str | None:
        """The directory in which an absolute import in a file of ``folder`` finds a top-level module; None: no such one."""
        key = (folder, word)
        if key not in self._homes:
            if folder not in self._searched:
                self._searched[folder] = tuple(dict.fromkeys(self._search_path(folder)))
            found = (each for each in self._searched[folder] if join(each, word) in self.stems)
            self._homes[key] = next(found, None)
        return self._homes[key]

    def beside(self, folder: str, word: str) -> bool:
        """Whether a package's folder has a module of a name, where one of its files is started as a script and so looks there.

        Last of all, and not for the standard library's names: a package's ``random.py`` is no ``random``. What is called
        as only a project's own modules are is meant in any case.
        """
        if (folder not in self._script_folders and word not in _OWN) or word in sys.stdlib_module_names:
            return False
        return join(folder, word) in self.stems

    def _search_path(self, folder: str) -> Iterator[str]:
        """Where Python would look: a script's own folder, the source roots; then what encloses it, for ``PYTHONPATH``.

        Directories that the project puts on ``sys.path`` are among the roots. The folder of a package's module is not,
        however often it holds a ``random.py``.
        """
        above = [folder, *parents(folder)] if folder else [""]
        plain = [each for each in above if join(each, "__init__.py") not in self._files]
        yield from plain[:1] if plain and plain[0] == folder else ()
        yield from self.source_roots
        yield from plain


def places_of(path: str, facts: Facts) -> tuple[object, ...]:
    """What a file decides of where modules are found."""
    return facts.summary.guarded, is_command(facts.summary), entries_of(path, facts)


def is_command(summary: Summary) -> bool:
    """Whether a file is a script that takes arguments, or says itself that it may be one."""
    return summary.guarded or (summary.acts and "argparse" in summary.imports)


def _stems(files: Iterable[str]) -> dict[str, str]:
    found = dict.fromkeys((folder for path in files for folder in parents(path) if folder), "")
    found |= {path.removesuffix(".py"): path for path in files}
    found |= {posixpath.dirname(path): path for path in files if posixpath.basename(path) == "__init__.py"}
    return found
