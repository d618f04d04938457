"""Configurations that name their classes: the dictionaries and files that a program builds its objects from.

A configuration is followed backward from where it is used, through variables, arguments, keys and calls that copy or merge it,
to a literal dictionary, or to a file of the project that is loaded by a literal path. Hydra's defaults lists are composed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import cached_property

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.search_path import path_values
from torchrepro_lint.resolve.symbols import ClassHierarchy
from torchrepro_lint.source.files import Configuration, composed_texts, join_path, parent_folders, spellings
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.cli_options import is_dict_call, items_of, read_part, stores_of
from torchrepro_lint.syntax.definitions import attribute_stores
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
)
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    in_project,
    is_object,
    last_word,
    path_of,
    qualname_of,
    simple_name,
    top_package,
)
from torchrepro_lint.syntax.visitor import all_statements, last_identifier, receiver_of

_CACHED_FILES = 100
# The keys under which a configuration names a class or a function.
CLASS_KEYS = ("_target_", "class_path", "type", "target", "class")
# Functions that make the objects that a configuration names.
MAKERS = frozenset(
    {"hydra.utils.instantiate", "hydra.utils.call", "hydra.utils.get_class", "hydra.utils.get_method"}
    | {"hydra.utils.get_object", "pydoc.locate", "monai.bundle.ConfigParser().get_parsed_content"}
    | {f"{package}.build_from_cfg" for package in ("mmengine", "mmengine.registry", "mmcv", "mmcv.utils")}
)
# Those of them that give the class itself.
FINDERS = frozenset({"hydra.utils.get_class", "hydra.utils.get_method", "hydra.utils.get_object", "pydoc.locate"})
MAKER_WORDS = frozenset(map(simple_name, MAKERS))
# Methods of a registry that make an object of an entry.
BUILDERS = frozenset({"build", "create", "make", "instantiate", "build_from_cfg"})
# Functions that read a configuration from a file, by their last words and packages.
_LOADERS = frozenset({"load", "safe_load", "full_load", "unsafe_load", "loads", "fromfile", "file2dict"})
_PACKAGES = frozenset(
    {"yaml", "json", "tomllib", "tomli", "toml", "omegaconf", "mmengine", "mmcv", "ruamel", "rtoml", "oyaml", "json5"}
)
# Functions that return the configuration that they get, or one that has what is in each of them.
_SAME = frozenset(
    {"create", "to_container", "merge", "copy", "deepcopy", "dict", "EasyDict", "Munch", "munchify", "Box"}
    | {"Config", "edict", "AttrDict", "structured", "DotMap", "unsafe_merge", "resolve", "masked_copy", "Bunch"}
    | {"ConfigDict"}
)
_READERS = frozenset({"open", "read_text", "read_bytes", "read"})
_Keys = tuple[str, ...]


class Found(Record, frozen=True):
    """A part of a configuration: an expression of a file, or what a configuration file has below some keys; ``origin`` says what
    reads that file: a variable or an expression, with its own file; ``copies`` are the calls that copy it, the last one first.
    """

    path: str
    value: Expression | None
    keys: _Keys
    origin: tuple[str, str | int] = ("", "")
    copies: tuple[tuple[str, int], ...] = ()

    def holds(self, stored: Found) -> bool:
        """Whether what is stored in another part of a configuration may be in this one: in the same object, or in what it copies."""
        return self.origin == stored.origin and self.copies[len(self.copies) - len(stored.copies) :] == stored.copies


class Configurations:
    """The configurations of a project."""

    def __init__(self, names: ClassHierarchy) -> None:
        self._names = names
        self.database = names.database

    def texts(self, path: str, expression: Expression) -> Iterator[str]:
        """The texts that a part of a configuration may be: ``config["model"]["type"]``."""
        for found in self._parts(path, expression):
            if found.value is None:
                yield from (text for keys, text in self._in_file(found.path, found.keys) if text and not keys)
            elif isinstance(found.value, Constant) and isinstance(found.value.value, str):
                yield found.value.value

    def sections(self, path: str, expression: Expression) -> Iterator[tuple[str, list[tuple[_Keys, str]]]]:
        """The files that have a part of a configuration, each with the texts below it by their keys."""
        for found in self._parts(path, expression) if self._files else ():
            if found.value is None and (below := [*self._in_file(found.path, found.keys)]):
                yield found.path, below

    def scalars(self, path: str, expression: Expression) -> Iterator[tuple[str, str]]:
        """The files that have a part of a configuration, each with its text there; an empty one for what is no scalar."""
        for file, below in self.sections(path, expression):
            yield file, below[0][1] if len(below) == 1 and not below[0][0] else ""

    def places(self, path: str, expression: Expression) -> list[Found]:
        """Where a part of a configuration is: also below keys that no file has."""
        return self._parts(path, expression) if self._files else []

    @query()
    def stores(self, path: str) -> dict[Found, list[tuple[int, Expression | None]]]:
        """What a file of the program stores in the configurations that are read: by the part of a configuration, the last key of
        which is ``ANY_KEY`` if it is not known, the ends of the statements with the values; None for one that is not known.
        """
        found: dict[Found, list[tuple[int, Expression | None]]] = {}
        for statement in all_statements(self._names.modules.files[path]) if self._files else ():
            for holder, key, value in stores_of(statement):
                for part in self.places(path, holder):
                    if part.value is None:
                        below = part._replace(keys=(*part.keys, *key.split(".")))
                        found.setdefault(below, []).append((statement.end, value))
        return found

    def named(self, path: str, expression: Expression, *, nested: bool = False) -> Iterator[Value]:
        """The names of the classes and functions that a configuration leads to; with ``nested`` those within it, too."""
        for found in self._parts(path, expression):
            if found.value is None:
                for keys, text in self._in_file(found.path, found.keys):
                    if text and keys and keys[-1] in CLASS_KEYS and (nested or len(keys) == 1):
                        yield from self.dotted(path, text)
            else:
                yield from self._named_in(found.path, found.value, nested)

    def keys_of(self, path: str, expression: Expression) -> tuple[str, ...]:
        """The texts by which a configuration names an entry of a registry."""
        found: list[str] = []
        for part in self._parts(path, expression):
            if part.value is None:
                found += (text for keys, text in self._in_file(part.path, part.keys) if text and keys[:1] == ("type",))
            else:
                values = (value for key, value in items_of(part.value) if key == "type")
                found += (each.value for each in values if isinstance(each, Constant) and isinstance(each.value, str))
        return tuple(dict.fromkeys(found))

    def arguments(self, owner: Symbol, word: str) -> Iterator[tuple[str, Expression]]:
        """The objects that configuration files name for a parameter of a class of the project, each as a call that makes it."""
        for path, below, text in self._by_class.get(qualname_of(owner), ()):
            if owner in self.dotted(path_of(owner), text):
                for keys, inner in self._in_file(path, below):
                    if keys[0] == word and len(keys) == 2 and keys[1] in CLASS_KEYS:
                        yield path_of(owner), Call(0, 0, Ref(0, 0, (inner,), (), 0), (), 0)

    @cached_property
    def _by_class(self) -> dict[str, list[tuple[str, _Keys, str]]]:
        """The places where configuration files name a class, by its last word."""
        found: dict[str, list[tuple[str, _Keys, str]]] = {}
        for path in self._files:
            for keys, text in self._in_file(path, ()):
                if keys[-1] in CLASS_KEYS:
                    found.setdefault(last_word(text), []).append((path, keys[:-1], text))
        return found

    def dotted(self, path: str, text: str) -> Iterator[Value]:
        """What a dotted text names, where Python would find it from a file, or from the root of the project."""
        if "." in text and all(part.isidentifier() for part in text.split(".")):
            found = [name for at in (path, "") for name in self._names.modules.resolve(at, text)]
            inside = [*filter(in_project, found)]
            for name in inside or found[:1]:
                yield from self._names.follow(name, ())

    def _named_in(self, path: str, value: Expression, nested: bool) -> Iterator[Value]:
        for key, item in items_of(value):
            if key in CLASS_KEYS and isinstance(item, Constant) and isinstance(item.value, str):
                yield from self.dotted(path, item.value)
            elif key in CLASS_KEYS and isinstance(item, Ref):
                yield from (name for name in self._names.names(path, item) if not is_object(name))
            elif nested and item is not None:
                yield from self._named_in(path, item, nested)
        if nested and isinstance(value, Collection) and value.kind != "dict":
            for item in value.items:
                yield from self._named_in(path, item, nested) if item is not None else ()

    # --- where a configuration comes from ----------------------------------------------------------------------------

    def _parts(self, path: str, expression: Expression) -> list[Found]:
        queue: list[tuple[str, Expression, _Keys, tuple[tuple[str, int], ...]]] = [(path, expression, (), ())]
        found: list[Found] = []
        seen: set[tuple[str, object, _Keys]] = set()
        while queue:
            file, value, keys, copies = queue.pop()
            key = (file, value.access_path if isinstance(value, Ref) else value, keys)
            if key in seen or len(seen) > limits.MAX_CONFIGURATION_STEPS:
                continue
            seen.add(key)
            self._names.modules.reads.record_read(file)
            loaded = list(self._loaded(file, value))
            origin = (file, value.roots[0] if isinstance(value, Ref) else value.start)
            found += (Found(each, None, keys, origin, copies) for each in loaded)
            behind = [] if loaded else list(self._behind(file, value, keys))
            if isinstance(value, Call) and _same_parts(value) is not None:
                copies = (*copies, (file, value.start))
            queue += ((*each, copies) for each in behind)
            if not keys and not loaded and not behind:
                found.append(Found(file, value, ()))
        return found

    def _behind(self, path: str, value: Expression, keys: _Keys) -> Iterator[tuple[str, Expression, _Keys]]:
        """The expressions that a part of a configuration comes from, one step back, with the keys below which it is there."""
        if isinstance(value, Collection) or is_dict_call(value):
            yield from ((path, item, rest) for item, rest in _picked(value, keys))
        elif (read := read_part(value)) is not None:
            inner, word = read
            yield path, inner, (word, *keys)
        elif (same := _same_parts(value)) is not None:
            yield from ((path, each, keys) for each in same)
        elif isinstance(value, Ref | Call):
            yield from self._values(path, value, keys)
        if isinstance(value, Call):
            yield from self._set_below(path, value, keys)

    def _values(self, path: str, value: Ref | Call, keys: _Keys) -> Iterator[tuple[str, Expression, _Keys]]:
        """The values of a variable or attribute, or what a call returns; else an attribute is a key of what has it."""
        found = [each for each in self._names.values_through_calls(path, value) if each != (path, value)]
        yield from ((file, each, keys) for file, each in found)
        if not found and isinstance(value, Ref) and value.path:
            yield path, value._replace(path=value.path[:-1]), (value.path[-1], *keys)
        elif not found and isinstance(value, Ref):
            yield from ((path, each, keys) for each in self._unpacked(path, value))

    def _set_below(self, path: str, made: Call, keys: _Keys) -> Iterator[tuple[str, Expression, _Keys]]:
        """What is stored below keys of a configuration that a variable has: ``config.model.name = "net"``."""
        for (root, words), stored in self._stores(path).items() if keys else ():
            if words == keys[: len(words)] and any(value == made for _, value in self._names.assigned(path + root)):
                yield from ((path, value, keys[len(words) :]) for value in stored)

    @query(lru=_CACHED_FILES)
    def _stores(self, path: str) -> dict[tuple[str, _Keys], list[Expression]]:
        """The stores to attributes of a file's variables, by variable and attributes."""
        found: dict[tuple[str, _Keys], list[Expression]] = {}
        for target, value in attribute_stores(self._names.modules.files[path]):
            for root in target.roots:
                found.setdefault((root, target.path), []).append(value)
        return found

    def _unpacked(self, path: str, value: Ref) -> Iterator[Expression]:
        """What a ``with`` statement enters for a variable, and the list of which it is an element."""
        yield from (each for root in value.roots for how, each in self._names.assigned(path + root) if how == "with")

    # --- files -------------------------------------------------------------------------------------------------------

    @cached_property
    def _files(self) -> dict[str, Configuration]:
        return {each.path: each for each in self._names.modules.configurations}

    def _loaded(self, path: str, value: Expression) -> Iterator[str]:
        """The configuration files that an expression reads: a call of a loader, the parameter of a program of hydra's."""
        if not self._files:
            return
        if isinstance(value, Ref) and not value.path:
            for root in value.roots:
                yield from self._of_hydra(path, root)
        elif isinstance(value, Call) and value.args:
            word = last_identifier(value.func)
            if word in _LOADERS and any(top_package(name) in _PACKAGES for name in self._names.names(path, value.func)):
                yield from self._read(path, value.args[0].value)
            elif word == "compose" and "hydra.compose" in self._names.names(path, value.func):
                given = known_argument(value, 0, "config_name")
                words = self._literals(path, given) if given is not None else ()
                yield from (each for each in self._files if _stem(each) in map(_stem, words))

    def _read(self, path: str, source: Expression) -> Iterator[str]:
        """The files that ``open("x.yaml")``, a file variable, or a path stands for."""
        for file, each in self._sources(path, source, 0):
            written = [*self._paths(file, each), *self._literals(file, each)]
            yield from dict.fromkeys(one for text in written for one in self._at(file, text))

    def _sources(self, path: str, value: Expression, depth: int) -> Iterator[tuple[str, Expression]]:
        """The path expressions behind a file that is read."""
        inner: Expression | None = None
        match value:
            case Call(func=func, args=(first, *_)) if last_identifier(func) == "open":
                inner = first.value
            case Call(func=func) if last_identifier(func) in _READERS:
                inner = receiver_of(func)
        if depth > limits.MAX_CONFIGURATION_DEPTH:
            return
        entered = [inner] if inner is not None else []
        if isinstance(value, Ref) and not value.path:
            entered = [*self._unpacked(path, value)]
        for each in entered:
            yield from self._sources(path, each, depth + 1)
        for file, each in self._names.values(path, value) if not entered else ():
            if isinstance(each, Call) and (file, each) != (path, value):
                yield from self._sources(file, each, depth + 1)
            else:
                yield file, each

    def _literals(self, path: str, value: Expression) -> Iterable[str]:
        """The texts that an expression may be, from literals and from the literals of options."""
        return self._names.literal_texts(path, value)

    def _at(self, path: str, text: str) -> Iterator[str]:
        """The configuration file that a text of a file names: from the root, or from a folder above the file."""
        for folder in ("", *parent_folders(path)):
            place = posixpath.normpath(join_path(folder, text))
            if place in self._files:
                yield place
                return

    def _of_hydra(self, path: str, root: str) -> Iterator[str]:
        """The configuration of a program whose main function hydra calls with it."""
        parameter = self._names.parameter(path + root)
        for decorator in parameter.function.decorators if parameter is not None and parameter.position == 0 else ():
            if isinstance(decorator, Call) and "hydra.main" in self._names.names(path, decorator.func):
                folder_given = known_argument(decorator, 0, "config_path")
                name = known_argument(decorator, 1, "config_name")
                folders = [""] if folder_given is None else [*self._literals(path, folder_given)]
                folders = [posixpath.join(posixpath.dirname(path), each) for each in folders]
                folders = folders or [*self._paths(path, folder_given)]
                for word in self._stems(path, name) if name is not None else ("",):  # "" before hydra 1.0
                    stems = (posixpath.normpath(posixpath.join(folder, word)) for folder in folders)
                    yield from (each for stem in stems for each in spellings(stem) if each in self._files)

    def _paths(self, path: str, value: Expression | None) -> Iterator[str]:
        """The paths that are built from ``__file__`` or written out."""
        return iter(()) if value is None else path_values(path, self._names.modules.files[path], value)

    def _stems(self, path: str, name: Expression) -> Iterable[str]:
        """The names of a configuration: texts, or ``Path(__file__).stem``."""
        holder = receiver_of(name) if last_identifier(name) == "stem" else None
        return self._literals(path, name) if holder is None else map(_stem, self._paths(path, holder))

    def _in_file(self, path: str, below: _Keys) -> Iterator[tuple[_Keys, str]]:
        """The texts of a file below some keys, each under the rest of its keys; with what its defaults list adds."""
        for keys, text in composed_texts(self._files, path):
            if keys[: len(below)] == below:
                yield keys[len(below) :], text


def _stem(path: str) -> str:
    return posixpath.basename(path).removesuffix(".yaml").removesuffix(".yml").removesuffix(".py")


def _picked(value: Expression, keys: _Keys) -> Iterator[tuple[Expression, _Keys]]:
    """What a literal dictionary or list has under the first of some keys, and the rest of the keys."""
    if isinstance(value, Collection) and value.kind != "dict":
        at = int(keys[0]) if keys and keys[0].isdigit() else len(value.items)
        if at < len(value.items) and (picked := value.items[at]) is not None:
            yield picked, keys[1:]
        return
    for key, item in items_of(value) if keys else ():
        if item is not None and key in (None, keys[0]):
            yield item, keys if key is None else keys[1:]


def _same_parts(value: Expression) -> list[Expression] | None:
    """The configurations that an expression copies, merges or chooses from."""
    match value:
        case Call(func=Ref(path=(*words, "copy" | "clone")) as func, args=()):
            return [func._replace(path=tuple(words))]
        case Call(func=func, args=args) if args and last_identifier(func) in _SAME:
            return [arg.value for arg in args if arg.keyword is None]
        case Operation(op="|" | "or" | "and", operands=operands):
            return list(operands)
        case Operation(op="if", operands=(_, *chosen)):
            return chosen
    return None
