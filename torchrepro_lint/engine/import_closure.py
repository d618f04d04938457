"""The import closure: the given files of a project that is not taken whole, and all that they import, directly or not.

Imports are resolved as in a project that is read whole (``resolve.search_path``), but whether a module exists is asked of the
file system, so that nothing is searched. What is imported by a computed name is not found.

Of a directory that is taken whole, though nothing marks it and most of it was not given, only what imports may connect with the
given files is parsed: what is said of these is the same, and hundreds of unrelated scripts cost no time.

Also here: the connected components of the import graph of files that are parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from torchrepro_lint.config import discovery
from torchrepro_lint.config.discovery import MAX_UNMARKED_FILES, Exclusion, GivenFile, Plan, ProjectTree, source_roots
from torchrepro_lint.config.roots import ConfigOptions, FallbackRoot, UnionFind
from torchrepro_lint.source.files import is_notebook, join_path, parent_folders, read_program, top_folders
from torchrepro_lint.source.patterns import lazy_pattern

if TYPE_CHECKING:
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.syntax.nodes import ModuleSummary, SyntaxTree

# A folder without __init__.py is a package if it has a Python file among so many entries, at most so many levels down.
_MAX_ENTRIES = 1000
_MAX_LEVELS = 3


def plan(
    paths: Sequence[str],
    options: ConfigOptions,
    force_exclude: bool = False,
    stdin: GivenFile | None = None,
    fallback: FallbackRoot | None = None,
) -> Plan:
    """The plan of ``discovery.plan`` with all files that are read; raises ``UsageError`` for bad settings."""
    found = discovery.plan(paths, options, force_exclude, stdin, fallback)
    return found._replace(trees=tuple(_narrowed(with_imported_files(tree)) for tree in found.trees))


def with_imported_files(tree: ProjectTree) -> ProjectTree:
    """A project with the files that its given ones import; one that is taken whole stays as it is."""
    return tree._replace(files=tuple(sorted(_closure(tree)))) if tree.partial else tree


def _closure(tree: ProjectTree) -> set[str]:
    from torchrepro_lint.resolve.search_path import ModuleTree  # a project that is read whole needs none of this

    paths, trees, searched = set(tree.files), dict[str, "SyntaxTree"](), None
    stems, fresh = _FoundStems(tree), sorted(tree.files)
    while fresh and len(paths) <= MAX_UNMARKED_FILES:
        trees |= {path: facts for path in fresh if (facts := _parsed(tree, path)) is not None}
        stems.known.update(dict.fromkeys(fresh))
        modules = ModuleTree(trees, source_roots(tree._replace(files=tuple(paths))), stems)
        # Where modules are looked for may depend on any file.
        asking = fresh if modules.search_key == searched else sorted(trees)
        searched = modules.search_key
        fresh = sorted(
            {each for path in asking if path in trees for each in _run_by(modules, path, trees[path])} - paths
        )
        paths.update(fresh)
    return paths


def _parsed(tree: ProjectTree, path: str) -> SyntaxTree | None:
    """The syntax tree of a file; None for one that cannot be read or parsed."""
    from torchrepro_lint.engine.parsed_file import parse_bytes

    given = dict(tree.given).get(path)
    try:
        data = read_program(tree.place(path)) if given is None or given.data is None else given.data
    except (OSError, MemoryError):
        return None
    return parse_bytes(data, is_notebook(path), tree.root.settings.parser).facts


def _run_by(modules: ModuleTree, path: str, facts: SyntaxTree) -> Iterator[str]:
    """The files that the imports of a file run: each module, and the packages around it."""
    for name in facts.summary.imports:
        if file := modules.module(path, name):
            yield file
            packages = (modules.stems.get(folder) for folder in parent_folders(file) if folder)
            yield from (each for each in packages if each)


class _FoundStems(Mapping[str, str]):
    """The modules below a root as ``ModuleTree`` asks for them, looked up in the file system one by one."""

    def __init__(self, tree: ProjectTree) -> None:
        settings = tree.root.settings
        self._tree = tree
        self._exclusion = Exclusion(tree.root.path, (*settings.exclude, *settings.extend_exclude))
        self._found: dict[str, str | None] = {}
        self.known = dict.fromkeys(tree.files)

    def __getitem__(self, stem: str) -> str:
        if stem not in self._found:
            self._found[stem] = self._look_up(stem)
        found = self._found[stem]
        if found is None:
            raise KeyError(stem)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([stem for stem, path in self._found.items() if path is not None])

    def __len__(self) -> int:
        return sum(path is not None for path in self._found.values())

    def _look_up(self, stem: str) -> str | None:
        if stem in self.known and not stem.endswith(".py"):
            return stem  # a script without a suffix
        for path in (join_path(stem, "__init__.py"), f"{stem}.py"):
            place = self._tree.place(path)
            if path in self.known or (os.path.isfile(place) and not self._exclusion.excludes(place)):
                return path
        place = self._tree.place(stem)
        if not stem:  # the root is no package by itself
            return None
        return (
            "" if os.path.isdir(place) and not self._exclusion.excludes(place, True) and _has_modules(place) else None
        )


def _has_modules(folder: str, levels: int = _MAX_LEVELS) -> bool:
    """Whether a folder holds Python files, as far as that is soon seen: one of pictures is no package."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, _MAX_ENTRIES), key=lambda entry: entry.name)
    except OSError:
        return False
    if any(entry.name.endswith(".py") for entry in found):
        return True
    below = (entry.path for entry in found if levels > 1 and entry.is_dir() and entry.name.isidentifier())
    return any(_has_modules(each, levels - 1) for each in below)


# Import statements, with what parentheses hold; a comment or a string may be taken for one.
_IMPORT = lazy_pattern(rb"(?:^|[:;])[ \t]*(?:from|import)\b(?:[^\n(\\]|\\\r?\n|\([^)]*)*", re.MULTILINE)
_NAME = lazy_pattern(rb"[^\W\d]\w*")
_KEYWORD = lazy_pattern(rb"\b(?:from|import)\b")
# Where a file may import by a string, or is a notebook with quoted lines, each word counts.
_BY_STRING = lazy_pattern(
    rb"\b(?:import_module|__import__|spec_from_file_location|run_path|run_module|locate|instantiate|exec|load_source|load_module)\b"
)


def _narrowed(tree: ProjectTree) -> ProjectTree:
    """A project without the files that no import can connect with the given ones, where many were not given."""
    if not tree.unasked or tree.partial:
        return tree
    given, every = [path for path, _ in tree.given], frozenset(tree.files)
    local = frozenset(word for path in tree.files for word in (_own_name(path), *os.fsencode(path).split(b"/")))
    by_name: dict[bytes, list[str]] = {}
    for path in tree.files:
        by_name.setdefault(_own_name(path), []).append(path)
    groups = UnionFind(tree.files)
    for path in tree.files:
        for name in sorted(_named(tree, path, local) & by_name.keys()):
            for other in by_name[name]:
                groups.join(path, other)
            by_name[name] = by_name[name][:1]  # from now on they are one group
        for folder in parent_folders(path):
            if (package := join_path(folder, "__init__.py")) in every:
                groups.join(path, package)
    for path in given:
        groups.join(path, given[0])
    return tree._replace(files=tuple(path for path in tree.files if groups.together(path, given[0])))


def _own_name(path: str) -> bytes:
    """The last word of the module in a file."""
    stem = path.removesuffix("/__init__.py").removesuffix(".py")
    return stem.rpartition("/")[2].encode("utf-8", "surrogateescape")


def _named(tree: ProjectTree, path: str, local: frozenset[bytes]) -> set[bytes]:
    """The words of modules that a file may import, where ``local`` are the names of all files and folders."""
    given = dict(tree.given).get(path)
    try:
        data = read_program(tree.place(path)) if given is None or given.data is None else given.data
    except (OSError, MemoryError):
        return set()
    if is_notebook(path) or _BY_STRING.search(data):
        return set(_NAME.findall(data))
    statements = (statement for line in _IMPORT.findall(data) for statement in line.split(b";"))
    return {word for statement in statements for word in _imported(statement, local)}


def _imported(statement: bytes, local: frozenset[bytes]) -> Iterator[bytes]:
    """The words of an import statement; none of ``from torch import nn`` where no file or folder is called torch."""
    keyword = _KEYWORD.search(statement)
    rest = statement[keyword.end() :] if keyword else statement
    for part in rest.split(b",") if keyword and keyword[0] == b"import" else (rest,):
        words = _NAME.findall(part)
        relative = part.lstrip(b" \t\r\n\\").startswith(b".")
        if relative or keyword is None or (words[:1] and words[0] in local):
            yield from words


# --- connected components ---------------------------------------------------------------------------------------------

_FIRST_WORD = lazy_pattern(r"[^\W\d]\w*")
_DOTTED = lazy_pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


def connected_components(files: Mapping[str, SyntaxTree], tree: ModuleTree) -> tuple[tuple[str, ...], ...]:
    """The connected components of the import graph: the sorted paths of each; ``tree`` is the module tree of the files.

    Two files are connected if one imports the other, or if they lie in one of ``top_folders``; a file that reads a configuration, or has
    one, is connected with the modules that configurations name. A file that calls
    ``import_module`` or ``__import__`` may import any module that a string in it begins with; a script at the root may import any file.
    """
    by_words = [path for path, each in files.items() if _imports_by_text(each.summary)]
    if any("/" not in path for path in by_words):
        return (tuple(sorted(files)),)
    groups = UnionFind(files)
    folders, first = top_folders(files), dict[str, str]()
    for path, facts in files.items():
        groups.join(path, first.setdefault(folders[path], path))
        for name in facts.summary.imports:
            other = tree.module(path, name)
            if other is not None:
                groups.join(path, other)
    for path, name in _named_by_configurations(files, tree):
        if (other := tree.module(path, name)) is not None:
            groups.join(path, other)
    for path in by_words:
        homes = ((tree.home_for(path, [word]), word) for word in _first_identifiers(files[path]))
        for place in {join_path(home, word) for home, word in homes if home is not None}:
            for other in files:
                if other == f"{place}.py" or other.startswith(f"{place}/"):
                    groups.join(path, other)
    return groups.sorted()


# What a file calls to read a configuration; the keys under which a configuration names classes.
_LOADS = frozenset({"safe_load", "load", "loads", "full_load", "fromfile", "compose"})
_STARTING = frozenset({"Thread", "Process", "Timer"})
_CLASS_KEYS = frozenset({"_target_", "class_path", "target"})


def _named_by_configurations(files: Mapping[str, SyntaxTree], tree: ModuleTree) -> Iterator[tuple[str, str]]:
    """The files that may build what a configuration names, each with the dotted name of a module, or of what is in it."""
    told = sorted({text for each in tree.configurations for _, text in each.texts if "." in text})
    for path, facts in files.items():
        loads = not _LOADS.isdisjoint(facts.summary.calls) or "hydra" in facts.summary.imports
        yield from ((path, text) for text in told if loads)
        if _may_configure(facts.summary):
            yield from ((path, text) for text in _texts_in(facts) if _DOTTED.fullmatch(text))


def _may_configure(summary: ModuleSummary) -> bool:
    """Whether a file may have a configuration: a ``target`` may also be that of a thread."""
    return not _CLASS_KEYS.isdisjoint(summary.keywords) and _STARTING.isdisjoint(summary.calls)


def _imports_by_text(summary: ModuleSummary) -> bool:
    """Whether a file imports modules that strings name."""
    return "import_module" in summary.calls or "__import__" in summary.calls


def _first_identifiers(facts: SyntaxTree) -> set[str]:
    """The identifiers with which strings in a file begin: each may name a module."""
    return {found[0] for text in _texts_in(facts) if (found := _FIRST_WORD.match(text))}


def _texts_in(facts: SyntaxTree) -> set[str]:
    """The strings in a file."""
    from torchrepro_lint.syntax.nodes import Constant
    from torchrepro_lint.syntax.visitor import all_expressions

    return {each.value for each in all_expressions(facts) if isinstance(each, Constant) and isinstance(each.value, str)}


def same_import_graph(before: Mapping[str, SyntaxTree], after: Mapping[str, SyntaxTree]) -> bool:
    """Whether the files and their imports are the same, and so the components."""
    return before.keys() == after.keys() and all(
        was is after[path] or _import_signature(path, was) == _import_signature(path, after[path])
        for path, was in before.items()
    )


def _import_signature(path: str, facts: SyntaxTree) -> tuple[object, ...]:
    from torchrepro_lint.resolve.search_path import places_of

    summary = facts.summary
    texts = _imports_by_text(summary) and _first_identifiers(facts)
    named = _may_configure(summary) and _texts_in(facts)
    return summary.imports, texts, named, not _LOADS.isdisjoint(summary.calls), *places_of(path, facts)
