"""Import resolution: the file that an import loads, and what a name of a module stands for across re-exports.

Names of the project are ``path:qualified.name`` (``src/train.py:main``; ``src/train.py:`` is the module itself), the path with
slashes and relative to the root; all other names are dotted as imports write them (``torch.nn``). Syntax trees are the inputs of
queries: reading one records a dependency.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from torchrepro_lint.catalogue.catalogue import described_packages
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.query.memo_tables import DependencyTracker
from torchrepro_lint.query.tabling import SetEquations
from torchrepro_lint.resolve.definitions import TrackedFiles
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.files import Configuration, join_path, parent_folders
from torchrepro_lint.syntax.nodes import Collection, Constant, ModuleSummary, Ref, SyntaxTree
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    in_project,
    is_module,
    is_own,
    is_unresolved,
    last_word,
    module_symbol,
    path_of,
    root_of,
    simple_name,
    split_name,
    top_package,
)
from torchrepro_lint.syntax.summary import imports_torch

# A file with this many star imports gets an index of the words that each may export; with fewer, all are searched.
_MANY_STARS = 8
# The kind of dependency of a query that asks which files mention a word.
MENTION = "mention"
# Modules that import names from one another.
_IMPORTS = SetEquations()


class ImportResolver:
    """The modules of a project and the imports between them; ``tree`` has the places of all modules of the project."""

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        tree: ModuleTree,
        *,
        incremental: bool = False,
        early_cutoff: bool = False,
    ) -> None:
        self.reads = DependencyTracker(files, incremental=incremental, early_cutoff=early_cutoff)
        self.files = TrackedFiles(files, self.reads) if incremental else files
        self._exports: dict[str, dict[str, tuple[str, ...]]] = {}
        self._mentioned: dict[str, set[str]] = {}
        self.tree = tree
        self._outside: dict[tuple[str, str], bool] = {}
        # A file that is not among ``files`` cannot be loaded.
        self._stems = {stem: path if path in files else "" for stem, path in tree.stems.items()}
        self.database = Database(self.reads)

    @property
    def uses_torch(self) -> bool:
        """Whether any file of the whole project imports torch."""
        return self.tree.uses_torch

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The configuration files of the project."""
        return self.tree.configurations

    def summary(self, path: str) -> ModuleSummary:
        """The summary of a file, without a dependency: for queries over all files."""
        return self.peek(path).summary

    def summaries(self) -> Iterator[tuple[str, ModuleSummary]]:
        """The summaries of all files, each with its path, without dependencies."""
        return ((path, self.summary(path)) for path in self.files)

    def peek(self, path: str) -> SyntaxTree:
        """The syntax tree of a file, without a dependency."""
        files = self.files
        return files.peek(path) if isinstance(files, TrackedFiles) else files[path]

    def replace(self, path: str, facts: SyntaxTree) -> None:
        """Replace the tree of a changed file; ``Database.invalidate`` drops the results that depend on it."""
        assert isinstance(self.files, TrackedFiles)
        self.files[path] = facts
        self._exports.pop(path, None)
        self._mentioned.clear()
        for each in ("_importers", "aliases"):
            vars(self).pop(each, None)

    def mentions(self, package: str, word: str) -> bool:
        """Whether any file that imports a top-level package from outside imports, names or calls a word."""
        self.reads.record_word(MENTION, package)
        self.reads.record_word(MENTION, word)
        return word in self._words_beside(package)

    def _words_beside(self, package: str) -> set[str]:
        """The words that are mentioned by files that import a package from outside."""
        if package not in self._mentioned:
            found = self._mentioned[package] = set()
            for path in self._importers.get(package, ()):
                if self.is_outside(path, package):
                    summary = self.summary(path)
                    found.update(summary.calls, summary.values, map(last_word, summary.imports))
        return self._mentioned[package]

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        """The files that import by a first word, as written."""
        found: dict[str, list[str]] = {}
        for path, summary in self.summaries():
            for package in {*map(top_package, summary.imports)} - {""}:
                found.setdefault(package, []).append(path)
        return found

    @cached_property
    def aliases(self) -> dict[str, set[str]]:
        """The last words of names that modules export under other words, each with those aliases."""
        found: dict[str, set[str]] = {}
        for _, summary in self.summaries():
            for word, names in summary.exports:
                for name in names:
                    last = last_word(name)
                    if last != word and not in_project(name):  # what the module defines itself has its own word
                        found.setdefault(last, set()).add(word)
        return found

    def resolve(self, path: str, name: Root) -> tuple[Value, ...]:
        """The names that a name of one file stands for: of the project, or dotted where it leads out of it."""
        if is_own(name):
            return (path + name,)
        return self._resolve(path, name)

    @query(cutoff=True, cycle=_IMPORTS)
    def _resolve(self, path: str, name: Root) -> Iterator[Value]:
        if is_unresolved(name):
            yield from self._from_stars(path, simple_name(name))
        elif name[0] == ".":
            dots = len(name) - len(name.lstrip("."))
            folder = self.tree.above(path, dots)
            yield from self._walk(folder, [part for part in name[dots:].split(".") if part])
        else:
            folder, parts = self.tree.folder(path), name.split(".")
            if (home := self.tree.home_for(path, parts)) is not None:
                yield from tuple(self._walk(home, parts)) or self._hidden(home, parts)
            else:
                yield from self._beside(folder, parts) or (name,)

    def referents(
        self, path: str, roots: Iterable[Root], words: tuple[str, ...]
    ) -> Iterator[tuple[Value, tuple[str, ...]]]:
        """What roots stand for, each with the words left: a folder without ``__init__.py`` is no module, ``nets.small`` in it is one."""
        for root in roots:
            start, rest = root, words
            while not (found := self.resolve(path, start)) and rest and not (is_own(start) or is_unresolved(start)):
                start, rest = f"{start}.{rest[0]}", rest[1:]
            yield from ((name, rest) for name in found)

    def _hidden(self, home: str, parts: list[str]) -> tuple[Value, ...]:
        """A name of a package from outside, where a folder of the project without ``__init__.py`` has the package's name, but no such
        module, or of a known package no such name in it: Python finds the package first.
        """
        inner = join_path(join_path(home, parts[0]), parts[1]) if len(parts) > 1 else ""
        is_other = inner not in self._stems or (self._stems[inner] and parts[0] in described_packages())
        is_plain = self._stems.get(join_path(home, parts[0])) == ""
        return (".".join(parts),) if inner and is_plain and is_other else ()

    def is_outside(self, path: str, name: Root) -> bool:
        """Whether a dotted name leads out of the project."""
        known = self._outside.get((path, name))
        if known is None:
            folder, parts = self.tree.folder(path), name.split(".")
            known = self.tree.home_for(path, parts) is None and not self._beside(folder, parts[:1])
            if not self.reads.incremental:  # else what it reads has to be recorded each time
                self._outside[path, name] = known
        return known

    def _beside(self, folder: str, parts: list[str]) -> tuple[Value, ...]:
        """The names that a name stands for in the folder of a file, where Python looks there; see ``ModuleTree.beside``."""
        return tuple(self._walk(folder, parts)) if self.tree.beside(folder, parts[0]) else ()

    def module(self, path: str, name: str) -> str | None:
        """The file that an import of ``name`` in ``path`` runs last, if it is one of the project's."""
        for target in self.resolve(path, name):
            file = path_of(target)
            if file in self.files:
                return file
        return None

    @query()
    def imported_files(self, path: str, imported: tuple[str, ...]) -> tuple[str, ...]:
        """The files of the project that an import statement of ``path`` runs: packages from the outermost in, then the module."""
        return tuple(dict.fromkeys(self._find_run_by(path, imported)))

    def _find_run_by(self, path: str, imported: tuple[str, ...]) -> Iterator[str]:
        for module in imported:
            file = self.module(path, module)
            if file and file != path:
                folder, parts = self.tree.folder(path), module.split(".")
                # The packages around the search path do not run; a relative import stands in a package that does.
                near = parts[0] and self.tree.beside(folder, parts[0])
                home = folder if near else (self.tree.home_for(path, parts) or "") if parts[0] else ""
                above = (each for each in reversed([*parent_folders(file)]) if each)
                inside = (join_path(each, "__init__.py") for each in above if not f"{home}/".startswith(f"{each}/"))
                yield from (each for each in inside if each in self.files and each != file)
                yield file

    def loaded(self, path: str, name: str) -> str | None:
        """The module of the project that an import of ``name`` in ``path`` loads, by files alone; re-exports do not count."""
        stem = self._stem(path, name)
        if stem is None:
            folder, parts = self.tree.folder(path), name.split(".")
            stem = join_path(folder, "/".join(parts)) if self.tree.beside(folder, parts[0]) else ""
        return self._stems.get(stem) or None

    def submodules(self, path: str, package: str) -> Iterator[tuple[str, str]]:
        """The modules directly in the package that an import of ``package`` in ``path`` names: the last word of each, and its file."""
        folder = self._stem(path, package) if package else None
        for stem, file in sorted(self._stems.items()) if folder is not None else ():
            if file and posixpath.dirname(stem) == folder:
                yield posixpath.basename(stem), file

    def _stem(self, path: str, name: str) -> str | None:
        """The path without suffix of what an import names, by its first word; None where the project has no such module."""
        dots = len(name) - len(name.lstrip("."))
        home = self.tree.above(path, dots) if dots else self.tree.home_for(path, name.split("."))
        rest = name[dots:].replace(".", "/")
        return join_path(home, rest) if rest and home is not None else home

    @query()
    def behind(self, path: str) -> frozenset[str]:
        """A file, and those that it imports, directly or not."""
        found, waiting = {path}, [path]
        while waiting:
            new = [each for each in self.imported(waiting.pop()) if each not in found]
            found.update(new)
            waiting += new
        return frozenset(found)

    @query(durable="imported")
    def imported(self, path: str) -> tuple[str, ...]:
        """The files that a file imports, sorted."""
        return tuple(sorted({file for name in self.files[path].summary.imports if (file := self.module(path, name))}))

    def attribute(self, path: str, word: str) -> tuple[Value, ...] | None:
        """What ``word`` is in the module of ``path``; None where it has no such name."""
        names = self._exported(path).get(word, ())
        found = tuple(sorted({target for name in names for target in self.resolve(path, name)}))
        if not found and posixpath.basename(path) == "__init__.py":
            submodule = self._stems.get(join_path(posixpath.dirname(path), word))
            found = (self._over(path, submodule, word) or (module_symbol(submodule),)) if submodule else ()
        return found or tuple(self._from_stars(path, word)) or None

    def imported_variables(self, path: str, ref: Ref) -> Iterator[tuple[str, Ref]]:
        """The variable of another module that an imported name is, or an attribute of an imported module: its file and a reference there."""
        for name in (target for root in ref.roots if not is_own(root) for target in self.resolve(path, root)):
            word = ref.path[0] if is_module(name) and ref.path else ""
            for variable in self.attribute(path_of(name), word) or () if word else (name,):
                home = path_of(variable)
                if in_project(variable) and not is_module(variable) and home != path:
                    self.reads.record_read(home)
                    yield home, ref._replace(roots=(root_of(variable),), path=ref.path[bool(word) :])

    def _over(self, path: str, submodule: str, word: str) -> tuple[Value, ...]:
        """The names that a package has under the word of a submodule: a star import loads ``net``, then binds its ``net``."""
        loads = (file for _, file in self._stars_of(path))
        return self._from_star(submodule, word) if submodule in loads else ()

    def starred(self, path: str) -> tuple[str, ...]:
        """A file, and those that it star-imports, directly or not."""
        found, waiting = {path: None}, [path]
        while waiting:
            new = [each for _, each in self._stars_of(waiting.pop()) if each and each not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return tuple(found)

    def _exported(self, path: str) -> dict[str, tuple[str, ...]]:
        self.reads.record_read(path)
        if path not in self._exports:
            self._exports[path] = dict(self.files[path].exports)
        return self._exports[path]

    def _from_stars(self, path: str, word: str) -> Iterator[Value]:
        for star, file in self._stars_with(path, word):
            if word.startswith("_") and (file is None or not self._lists(file, word)):
                continue
            if file is not None and file != path:
                yield from self._from_star(file, word)
            elif self._leads_out(path, star, file):
                yield f"{star}.{word}"

    def _lists(self, path: str, word: str) -> bool:
        """Whether a star import takes a word of a file because ``__all__`` has it: one with an underscore is left out otherwise."""
        listed = self.files[path].assigned.get(":__all__", ()) if word in self._exported(path) else ()
        texts = (item for _, value in listed if isinstance(value, Collection) for item in value.items)
        return any(isinstance(item, Constant) and item.value == word for item in texts)

    def _leads_out(self, path: str, star: str, file: str | None) -> bool:
        """Whether a star import takes names from outside the project."""
        return file is None and star[0] != "." and self.is_outside(path, star)

    @query()
    def _stars_of(self, path: str) -> tuple[tuple[str, str | None], ...]:
        """The star imports of a file, each with the file of the project that it loads."""
        return tuple((each, self.loaded(path, each)) for each in self.files[path].summary.stars)

    def _stars_with(self, path: str, word: str) -> Iterable[tuple[str, str | None]]:
        """The star imports that may export a word: a package of packages has hundreds, of which one does."""
        stars = self._stars_of(path)
        if len(stars) < _MANY_STARS:
            return stars
        offers = self._offers(path)
        return [stars[number] for number in sorted({*offers.get(word, ()), *offers.get("*", ())})]

    @query()
    def _offers(self, path: str) -> dict[str, list[int]]:
        """The words that star imports may export, each with the numbers of these imports; under ``*`` those that may export any."""
        found: dict[str, list[int]] = {}
        for number, (star, file) in enumerate(self._stars_of(path)):
            words = {"*"} if self._leads_out(path, star, file) else set[str]()
            words.update(*map(self._words_of, self.starred(file) if file else ()))
            for word in words:
                found.setdefault(word, []).append(number)
        return found

    def _words_of(self, path: str) -> Iterator[str]:
        """The words that a file itself may export; ``*`` where it star-imports from outside, and so may export any."""
        yield from self._exported(path)
        if posixpath.basename(path) == "__init__.py":
            yield from self._below.get(posixpath.dirname(path), ())
        if any(self._leads_out(path, *each) for each in self._stars_of(path)):
            yield "*"

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        """The words of the modules in each folder."""
        found: dict[str, list[str]] = {}
        for stem in self._stems:
            found.setdefault(posixpath.dirname(stem), []).append(posixpath.basename(stem))
        return found

    @query(cutoff=True, cycle=_IMPORTS)
    def _from_star(self, file: str, word: str) -> tuple[Value, ...]:
        return self.attribute(file, word) or ()

    def _walk(self, folder: str, parts: list[str]) -> Iterator[Value]:
        """Follow dotted parts from a folder: modules first, as ``from a.b import`` does; the last may be an attribute."""
        file = self._stems.get(folder)
        for index, part in enumerate(parts):
            if file and index == len(parts) - 1 and (found := self.attribute(file, part)):
                yield from found
                return
            folder = join_path(folder, part)
            if (below := self._stems.get(folder)) is None:
                yield from self._attributes(module_symbol(file), parts[index:]) if file else ()
                return
            file = below
        if file:
            yield module_symbol(file)

    def _attributes(self, name: Symbol, parts: list[str]) -> Iterator[Value]:
        """Follow the first part as an attribute of a module; the rest stays on the name, for ``Names``."""
        file = path_of(name)
        for found in self.attribute(file, parts[0]) or ():
            _, colon, rest = split_name(found)
            if colon and not rest and len(parts) > 1:
                yield from self._attributes(found, parts[1:])
            else:
                yield ".".join((found, *parts[1:]))


@query()
def torch_modules(modules: ImportResolver) -> frozenset[str]:
    """The modules that import torch, and those that such a module imports, as paths; of a package also what it imports itself."""
    # By imports and what modules offer alone: that is noted at once, and not file by file.
    with modules.reads.untracked():
        direct = {path for path, summary in modules.summaries() if imports_torch(summary)}
        imported, waiting = set[str](), sorted(direct)
        while waiting:
            new = {*modules.imported(waiting.pop())} - imported
            imported |= new
            waiting += sorted(file for file in new if posixpath.basename(file) == "__init__.py")
        # A program that reads a configuration imports what it names.
        texts = {text for each in modules.configurations if direct for _, text in each.texts if "." in text}
        imported.update(filter(None, (modules.module("", text) for text in sorted(texts))))
    modules.reads.record_word("imports", "")
    modules.reads.record_word("exports", "")
    return frozenset(direct | imported)
