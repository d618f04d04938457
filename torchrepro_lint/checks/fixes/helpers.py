"""Helper functions that fixes call.

A helper is written once per file, or imported from the module of the project that defines it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cache

from torchrepro_lint.checks.fixes.import_block import ensure_import, insert_import
from torchrepro_lint.checks.fixes.insertions import free_word, insert_function, means_builtin, shadowed
from torchrepro_lint.domain.programs import all_programs
from torchrepro_lint.source.text import Edit, join_insertions
from torchrepro_lint.syntax.nodes import Function, Import, Record, fields
from torchrepro_lint.syntax.qualified_names import is_top_level, module_symbol, qualname_of
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.syntax.visitor import statements
from torchrepro_lint.trace.traces import Traces

_POSITION_FIELDS = frozenset({"start", "end", "base_end", "open", "name"})


class Helper(Record, frozen=True):
    """A function that fixes call; ``source`` is its text without the last line end, which uses only ``builtins`` and
    modules.

    ``modules`` are those with the names by which the source calls them: ``("numpy", "np")``.
    """

    word: str
    source: str
    builtins: tuple[str, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """The source as a file of its own."""
        return "".join(f"import {module} as {word}\n" for module, word in self.modules) + f"{self.source}\n"


def provide_helper(
    project: Traces, path: str, text: str, helper: Helper, before: int
) -> tuple[str, tuple[Edit, ...]] | None:
    """The name under which a file has a helper, and the edits that add it; no edits where it is there.

    ``before`` is the start of the first top-level statement that may call it. None where it cannot be inserted above,
    or where the file gives another meaning to a builtin that it needs.
    """
    tree = project.files[path]
    for function in _definitions(tree.functions, helper):
        if not shadowed(tree, qualname_of(function.name)):
            return qualname_of(function.name), ()
    word = free_word(text, helper.word)
    for word_here, names in tree.exports:
        if len(names) == 1 and not shadowed(tree, word_here) and _is_helper(project, path, names[0], helper):
            return word_here, ()
    if (module := _module_with_helper(project, path, helper)) is not None:
        suffix = f" as {word}" if word != helper.word else ""
        imported = insert_import(tree, text, f"from {module} import {helper.word}{suffix}")
        return (word, (imported,)) if imported.span.end <= before or before >= len(text) else None
    if not all(means_builtin(project, path, each) for each in helper.builtins):
        return None
    source = helper.source.replace(helper.word, word)
    imports: list[Edit] = []
    for module, short in helper.modules:
        found, edits = ensure_import(tree, text, module, short)
        source = re.sub(rf"\b{short}\.", f"{found}.", source)
        imports += edits
    edit = insert_function(tree, text, source, before)
    return (word, join_insertions((*imports, edit))) if edit else None


def _definitions(functions: Iterable[Function], helper: Helper) -> Iterator[Function]:
    """The top-level functions that are the helper, by content and under any name."""
    for function in functions:
        plain = is_top_level(function.name) and not function.decorators and bool(function.body)
        if plain and _content(function) == _content_of_source(helper.whole):
            yield function


def _is_helper(project: Traces, path: str, name: str, helper: Helper) -> bool:
    found = [
        each for target in project.resolver.modules.resolve(path, name) for each in project.resolver.functions(target)
    ]
    return len(found) == 1 and _content(found[0]) == _content_of_source(helper.whole)


def _module_with_helper(project: Traces, path: str, helper: Helper) -> str | None:
    """How ``path`` imports the module that defines the helper and does not import ``path``."""
    for other in sorted(project.files):
        tree = project.files[other]
        own = (each for each in tree.functions if each.name == f":{helper.word}")
        named = any(True for _ in _definitions(own, helper))
        if named and other != path and _can_be_imported(project, path, other):
            module = _import_path(project, path, other)
            if module is not None:
                return module
    return None


def _can_be_imported(project: Traces, path: str, other: str) -> bool:
    """Whether a file is no entry point, does not import ``path``, and is no test unless ``path`` is."""
    if is_test(other, project.files[other].summary) and not is_test(path, project.files[path].summary):
        return False
    return all(program.entry.path != other for program in all_programs(project)) and path not in _files_imported(
        project, other
    )


def _files_imported(project: Traces, path: str) -> set[str]:
    """The files that importing a file runs."""
    found, queue = {path}, [path]
    while queue:
        current = queue.pop()
        for statement in statements(project.files[current].body):
            for module in statement.modules if isinstance(statement, Import) else ():
                target = project.resolver.modules.module(current, module)
                if target is not None and target not in found:
                    found.add(target)
                    queue.append(target)
    return found


def _import_path(project: Traces, path: str, other: str) -> str | None:
    """The shortest way to write a module that leads from ``path`` to ``other``; relative within one package."""
    folder, stem = posixpath.dirname(path), other.removesuffix(".py").removesuffix("/__init__")
    if folder == posixpath.dirname(other) and posixpath.join(folder, "__init__.py") in project.files:
        return f".{posixpath.basename(stem)}"
    parts = stem.split("/")
    for start in range(len(parts) - 1, -1, -1):
        name = ".".join(parts[start:])
        if project.resolver.modules.resolve(path, name) == (module_symbol(other),):
            return name
    return None


@cache
def _content_of_source(source: str) -> object:
    from torchrepro_lint.syntax.parse import parse_module

    return _content(parse_module(source).functions[0])


def _content(function: Function) -> object:
    """The content of a function without positions and name; annotations and docstrings do not count."""
    params = tuple(
        (param.name, param.kind, _without_positions(param.default, function.name)) for param in function.params
    )
    return params, _without_positions(function.body, function.name)


def _without_positions(record: object, name: str) -> object:
    if isinstance(record, tuple):
        return tuple(_without_positions(each, name) for each in record)
    if isinstance(record, Record):
        pairs = zip(record.__struct_fields__, fields(record), strict=True)
        return (
            type(record).__name__,
            *(_without_positions(each, name) for field, each in pairs if field not in _POSITION_FIELDS),
        )
    return record.removeprefix(f"{name}.") if isinstance(record, str) else record
