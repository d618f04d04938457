"""The search path: the directories that a project puts on ``sys.path``, and the folders in which its imports find modules.

``ModuleTree`` works with paths alone; of the syntax trees it needs changes of ``sys.path`` and which files are scripts.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterator, Mapping, Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import described_packages
from torchrepro_lint.source.files import OWN_MODULES, Configuration, join_path, parent_folders, stems_of
from torchrepro_lint.syntax.binding import receiving_parameters
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    Operation,
    Ref,
    Statement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import is_own, local_symbol, top_package
from torchrepro_lint.syntax.summary import imports_torch, is_command
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of, statements

_SYS = frozenset({"sys", "sys.path"})
# What puts a folder on it, the last four as projects name functions for that; and functions that return the path that they get.
_ADDING = frozenset({"sys.path.append", "sys.path.insert", "add_path", "add_pypath", "add_sys_path", "add_to_path"})
_SAME = ("os.path.abspath", "os.path.realpath", "os.path.normpath", "builtins.str", "pathlib.Path", "os.fspath")


def entries_of(path: str, facts: SyntaxTree) -> tuple[str, ...]:
    """The directories that one file puts on ``sys.path``."""
    if _SYS.isdisjoint(facts.summary.imports) or not any(word in facts.summary.calls for word in ("append", "insert")):
        return ()
    return tuple(entry for entry in _entries(path, facts) if not entry.startswith(".."))


def _entries(path: str, facts: SyntaxTree) -> Iterator[str]:
    functions = {function.name: function for function in facts.functions}
    for call in _called(facts.body):
        match call.func:
            case Ref(roots=(root,), path=()) if root in functions:
                received = receiving_parameters(functions[root], call, bound=False)
                plain = {local_symbol(root, param.name): arg.value for arg, param in received if param.kind[:1] != "*"}
                read = _Paths(path, facts, plain)
                for inner in _called(functions[root].body):
                    yield from read.put(inner)
            case _:
                yield from _Paths(path, facts, {}).put(call)


def path_values(path: str, facts: SyntaxTree, expression: Expression) -> Iterator[str]:
    """``_Paths.folders`` of an expression of a file."""
    return _Paths(path, facts, {}).folders(expression)


def _called(body: Sequence[Statement]) -> Iterator[Call]:
    """The calls that are statements of their own."""
    for statement in statements(body):
        if isinstance(statement, ExpressionStatement) and isinstance(statement.value, Call):
            yield statement.value


class _Paths:
    """The values of path expressions in one file; in a function, for the arguments of one call."""

    def __init__(self, path: str, facts: SyntaxTree, passed: Mapping[str, Expression]) -> None:
        self._path = path
        self._variables = facts.assigned
        self._given = passed

    def put(self, call: Call) -> Iterator[str]:
        """The directories that a call puts on ``sys.path``."""
        match call:
            case Call(func=func, args=(*_, last)) if not _ADDING.isdisjoint((_name(func), last_identifier(func))):
                yield from map(_normal, self.folders(last.value))

    def folders(self, expression: Expression) -> Iterator[str]:
        """The possible values of a path, relative to the root; a literal is tried from the file's directory and from the root."""
        starts = dict.fromkeys((posixpath.dirname(self._path), ""))  # where the program may be started
        if here := dict.fromkeys(each for start in starts if (each := self._from_file(expression, start)) is not None):
            yield from here
            return
        match self._written(expression):
            case Constant(value=str(text)) if not text.startswith(("/", "~")):
                yield from (posixpath.join(posixpath.dirname(self._path), text), text)
            case Call(func=func, args=(arg,)) if _name(func) in _SAME:
                yield from self.folders(arg.value)

    def _written(self, expression: Expression) -> Expression:
        """The value of an expression: of a module variable that is assigned once, its assignment."""
        for _ in range(limits.MAX_PATH_STEPS):
            match expression:
                case Ref(roots=(root,), path=()) if is_own(root):
                    values = tuple(self._variables.get(root, ()))
                    if root in self._given and not values:
                        expression = self._given[root]
                    elif len(values) == 1 and values[0][0] == "=":
                        expression = values[0][1]
                    else:
                        break
                case Ref(roots=(root,), path=(word,)) if (kept := self._attribute(root, word)) is not None:
                    expression = kept
                case _:
                    break
        return expression

    def _attribute(self, root: str, word: str) -> Expression | None:
        """What a class assigns to an attribute of its own, once; also of an object of it: ``cfg = Config()``."""
        match self._variables.get(root, ()):
            case ((_, Call(func=Ref(roots=(owner,), path=()))),):
                root = owner
        values = tuple(self._variables.get(f"{root}.{word}", ()))
        return values[0][1] if len(values) == 1 else None

    def _from_file(self, expression: Expression, start: str, depth: int = 0) -> str | None:
        """A path that is built from ``__file__``, from ``sys.path[0]``, which is the folder of the script, or from the working directory."""
        match written := self._written(expression):
            case Ref(roots=(root, *_), path=()) if root.endswith("__file__"):
                return self._path
            case Subscript(value=value, indices=(Constant(value=0),)) if _name(value) == "sys.path":
                return posixpath.dirname(self._path)
            case Call(func=func, args=()) if _name(func) in ("os.getcwd", "pathlib.Path.cwd"):
                return start
        inner, rest = _taken(written)
        if inner is None or depth > limits.MAX_PATH_STEPS:
            return None
        found = self._from_file(inner, start, depth + 1)
        for step in rest if found is not None else ():
            found = None if found is None else self._step(found, step)
        return found

    def _step(self, folder: str, step: Expression | str | int) -> str | None:
        """A folder so many levels above another, below it by a name, or with a text behind it."""
        match step:
            case int(levels):
                for _ in range(min(levels, limits.MAX_PATH_LEVELS)):
                    folder = posixpath.dirname(_normal(folder))
                return folder
            case str(text):
                return folder + text if folder else text.lstrip("/")
        name = self._written(step)
        if isinstance(name, Constant) and isinstance(name.value, str):
            return posixpath.join(folder, name.value)
        return None


def _taken(expression: Expression) -> tuple[Expression | None, Sequence[Expression | str | int]]:
    """The path that an expression starts from, and its steps: levels up, texts to append, names to join."""
    match expression:
        case Call(func=func, args=args) if args and last_identifier(func) == "joinpath":
            return receiver_of(func), [arg.value for arg in args]
        case Call(args=args) if args:
            return _taken_by_call(_name(expression.func), [arg.value for arg in args])
        case Call(func=func) if last_identifier(func) in ("resolve", "absolute", "as_posix"):
            return receiver_of(func), ()
        case Attribute(name="parent") | Ref(path=(*_, "parent")):
            return receiver_of(expression), (1,)
        case Subscript(value=value, indices=(Constant(value=int(index)),)):
            return _picked(value, index)
        case Operation(op="/", operands=(left, right)):
            return left, (right,)
        case Operation(op="+" | "f", operands=(left, Constant(value=str(text)))):
            return left, (text,)
        case Operation(op="%", operands=(Constant(value=str(text)), value)) if text[:2] == "%s" and "%" not in text[2:]:
            return value, (text[2:],)
    return None, ()


def _taken_by_call(name: str, args: Sequence[Expression]) -> tuple[Expression | None, Sequence[Expression | int]]:
    if name == "os.path.join":
        return args[0], args[1:]
    if name == "os.path.dirname":
        return args[0], (1,)
    return (args[0], ()) if name in _SAME and len(args) == 1 else (None, ())


def _picked(value: Expression, index: int) -> tuple[Expression | None, Sequence[int]]:
    """``path.parents[1]``, and ``os.path.split(path)[0]``."""
    match value:
        case Attribute(name="parents") | Ref(path=(*_, "parents")):
            return receiver_of(value), (index + 1,)
        case Call(func=func, args=(arg,)) if _name(func) == "os.path.split" and index == 0:
            return arg.value, (1,)
    return None, ()


def _normal(folder: str) -> str:
    return "" if (normal := posixpath.normpath(folder)) == "." else normal


def _name(func: Expression) -> str:
    return ".".join((*func.roots[:1], *func.path)) if isinstance(func, Ref) else ""


# Calls that find a module or class by a text, which may come from any file.
_FINDING_BY_TEXT = frozenset({"locate", "get_class", "get_method", "get_object", "instantiate"})


class ModuleTree:
    """The modules of a project by path. Absolute imports are looked up in ``source_roots``, and in what the project puts on ``sys.path``.
    ``stems`` has the file of each module by its path without suffix, or an empty text for a folder without ``__init__.py``; they are
    those of ``files`` unless others are given. ``configurations`` are files that name modules.
    """

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        source_roots: Sequence[str],
        stems: Mapping[str, str] | None = None,
        configurations: tuple[Configuration, ...] = (),
    ) -> None:
        roots = ["" if root == "." else root.strip("/") for root in source_roots]
        self._put = {path: found for path in sorted(files) if (found := entries_of(path, files[path]))}
        self._added = {each for found in self._put.values() for each in found}.difference(roots)
        self.source_roots = tuple(dict.fromkeys((*roots, *(each for found in self._put.values() for each in found))))
        self.stems = stems_of(files) if stems is None else stems
        # Whether any file of the project imports torch.
        self.uses_torch = any(imports_torch(each.summary) for each in files.values())
        self.configurations = configurations
        self._script_folders = {posixpath.dirname(path) for path, each in files.items() if each.summary.has_main_guard}
        commands = [path for path, each in files.items() if is_command(each.summary)]
        self._command_folders = {posixpath.dirname(path) for path in commands}
        imported = {name.rpartition(".")[2] for each in files.values() for name in each.summary.imports}
        # Only run, and not imported, each with what it imports: its own folder is searched first, even if it is a package.
        only_run = (path for path in commands if posixpath.basename(path).removesuffix(".py") not in imported)
        self._scripts = {path: frozenset(map(top_package, files[path].summary.imports)) for path in only_run}
        self._folders = {path: posixpath.dirname(path) for path in files}
        self._run_beside: dict[str, set[str]] = {}  # the folders of scripts, by the words that they import
        for path, word in ((path, word) for path, words in self._scripts.items() for word in words):
            self._run_beside.setdefault(word, set()).add(self._folders[path])
        self._homes: dict[tuple[str, str], str | None] = {}
        self._searched: dict[str, tuple[str, ...]] = {}
        self._nearer: dict[str, tuple[str, ...]] = {}

    def key_of(self, files: Mapping[str, SyntaxTree]) -> tuple[object, ...]:
        """A key of some files, which is equal for trees in which their imports and what they name by strings resolve to the same, and
        torch is used or is not. The files must have all that they may import, and what their strings and configurations may name.
        """
        around = {each for path in files for each in (self.folder(path), *parent_folders(self.folder(path)))}
        imports = [(path, *self._steps(path, name)) for path in files for name in files[path].summary.imports]
        folders = sorted(self._script_folders & around), sorted(self._command_folders & around)
        own = self.source_roots, self.uses_torch, self.configurations, folders, tuple(sorted(files)), imports
        finding = any(not _FINDING_BY_TEXT.isdisjoint(each.summary.calls) for each in files.values())
        words = {text.partition(".")[0] for each in self.configurations for _, text in each.texts if "." in text}
        named = [each for each in sorted(self.stems.items()) if finding or not words.isdisjoint(each[0].split("/"))]
        return *own, named, finding and self.search_key

    def _steps(self, path: str, name: str) -> tuple[object, ...]:
        """What decides where an import leads: the folder in which it begins, what is there at each step, and the file found."""
        dots, parts, place = self._start(path, name)
        found = [place, self.module(path, name) if parts or dots else None]
        for part in parts if place is not None else ():
            place = join_path(place or "", part)
            found.append(self.stems.get(place))
            if found[-1] is None:
                break
        return tuple(found)

    @property
    def search_key(self) -> tuple[object, ...]:
        """A key that is equal for trees in which all imports are looked up in the same folders."""
        places = map(sorted, (self._script_folders, self._command_folders, self._scripts))
        return self.source_roots, *self._put.items(), *places

    def folder(self, path: str) -> str:
        """The directory of a file; a hot path."""
        return posixpath.dirname(path) if (known := self._folders.get(path)) is None else known

    def module(self, path: str, name: str) -> str | None:
        """The file of the module that an import of ``name`` in ``path`` names, or of the nearest enclosing package; None where it
        leads out of the project.
        """
        dots, parts, place = self._start(path, name)
        if place is None and self.beside(self.folder(path), parts[0]):
            place = self.folder(path)
        found = self.stems.get(place) if dots and place is not None else None
        for part in parts if place is not None else ():
            place = join_path(place or "", part)
            below = self.stems.get(place)
            if below is None:
                break
            found = below or found
        return found or None

    def _start(self, path: str, name: str) -> tuple[int, list[str], str | None]:
        """The dots and words of an import, and the folder in which it begins."""
        dots = len(name) - len(name.lstrip("."))
        parts = [part for part in name[dots:].split(".") if part]
        return dots, parts, self.above(path, dots) if dots else self.home_for(path, parts) if parts else None

    def above(self, path: str, dots: int) -> str:
        """The folder in which a relative import with so many dots begins."""
        folder = self.folder(path)
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        return folder

    def home_for(self, path: str, parts: Sequence[str]) -> str | None:
        """The directory in which an absolute import in a file finds its first word; None where there is none.

        A file does not import itself: ``utils/model.py`` means the package ``model`` by that word, of the project or from outside it.
        ``utils.config`` is looked for in a folder ``utils`` before ``utils.py`` beside the file, which only a script finds there.
        """
        folder, word = self.folder(path), parts[0]
        if (nearer := self._of_its_own(path, folder, parts)) is not None:
            return nearer
        home = self._home(folder, word)
        if home in self._added and home != folder:  # what the file itself adds comes before what others add
            home = next((each for each in self._put.get(path, ()) if join_path(each, word) in self.stems), home)
        stem = join_path(home or "", word)
        below = any(join_path(stem, each) in self.stems for each in parts[1:2])
        if not self.stems.get(stem) and not below and word in described_packages():
            return None  # a folder without ``__init__.py`` yields to an installed library: ``gym.make`` beside a folder ``gym``
        if word == "torch" and home and home not in self._command_folders.union(self.source_roots):
            return None  # ``layers/torch/__init__.py`` is the package ``layers.torch``
        if home is None or self.stems[stem] not in (path, f"{stem}.py"):
            return home
        searched = self._searched[folder]
        if len(parts) > 2 or (len(parts) == 2 and folder not in self._script_folders | self._command_folders):
            deeper = (each for each in searched if join_path(each, "/".join(parts[:2])) in self.stems)
            if (found := next(deeper, None)) is not None:
                return found
        if self.stems[stem] != path:
            return home
        other = None if path == f"{stem}.py" else home  # a package's ``__init__.py`` imports its modules by its name
        return next((each for each in searched if self.stems.get(join_path(each, word), path) != path), other)

    def _of_its_own(self, path: str, folder: str, parts: Sequence[str]) -> str | None:
        """The nearest enclosing folder of a program, with a script in it, that has the imported module; the root may have one, too."""
        if folder not in self._nearer:
            around = [each for each in parent_folders(folder) if each in self._command_folders and each]
            self._nearer[folder] = tuple(each for each in around if not self._is_package(each))
        word = parts[0]
        own = path in self._scripts and word not in sys.stdlib_module_names and self._runs_in(path, folder, word)
        for each in ((folder,) if own else ()) + self._nearer[folder]:
            stem = join_path(each, word)
            if self.stems.get(stem) == f"{stem}.py" != path or (join_path(each, "/".join(parts[:2])) in self.stems):
                return each
        return None

    def _runs_in(self, path: str, folder: str, word: str) -> bool:
        """Whether a script's own folder has a module before a package of the folder's name: with others that are only there."""
        above, name = posixpath.split(folder)
        others = (each for each in self._scripts[path] if each and join_path(folder, each) in self.stems)
        return word != name or any(join_path(above, each) not in self.stems for each in others)

    def _home(self, folder: str, word: str) -> str | None:
        """The directory in which an absolute import in a file of ``folder`` finds a top-level module; None where there is none."""
        if (key := (folder, word)) not in self._homes:
            if folder not in self._searched:
                self._searched[folder] = tuple(dict.fromkeys(self._search_path(folder)))
            found = (each for each in self._searched[folder] if join_path(each, word) in self.stems)
            own = word in sys.stdlib_module_names  # Python's own come before all folders but that of the script
            home = next((each for each in found if not own or self._may_start(each)), None)
            self._homes[key] = self._beside_script(folder, word) if home is None and not own else home
        return self._homes[key]

    def _beside_script(self, folder: str, word: str) -> str | None:
        """The nearest package around a folder in which a script imports the module from beside itself; asked where no other has it."""
        around = (each for each in (folder, *parent_folders(folder)) if each in self._run_beside.get(word, ()))
        return next((each for each in around if join_path(each, word) in self.stems), None)

    def _may_start(self, folder: str) -> bool:
        """Whether a script may be started in a folder: it has one, or no folder above has."""
        starting = self._script_folders | self._command_folders
        return folder in starting or starting.isdisjoint(parent_folders(folder))

    def beside(self, folder: str, word: str) -> bool:
        """Whether a package's folder has a module of a name and may be searched: one of its files is started as a script. It is searched
        last, and not for names of the standard library (``random.py`` is not ``random``); names that only projects use are found always.
        """
        if (folder not in self._script_folders and word not in OWN_MODULES) or word in sys.stdlib_module_names:
            return False
        return join_path(folder, word) in self.stems

    def _search_path(self, folder: str) -> Iterator[str]:
        """The folders that Python searches: a script's own folder, the source roots, then enclosing folders, for ``PYTHONPATH``. From a
        directory that is put on ``sys.path``, the folder of who puts it there is searched, too; that of a module in a package is not.
        """
        plain = [each for each in dict.fromkeys((folder, *parent_folders(folder))) if not self._is_package(each)]
        yield from plain[:1] if plain and plain[0] == folder else ()
        yield from self.source_roots
        yield from plain
        yield from (self.folder(path) for path, added in self._put.items() if folder in added)

    def _is_package(self, folder: str) -> bool:
        return self.stems.get(folder) == join_path(folder, "__init__.py")


def places_of(path: str, facts: SyntaxTree) -> tuple[object, ...]:
    """The parts of a file that determine where modules are found."""
    return facts.summary.has_main_guard, is_command(facts.summary), entries_of(path, facts)
