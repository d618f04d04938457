"""Computed names: what lookups by a name that is computed at run time may give.

``getattr(module, key)``, ``globals()[key]``, ``sys.modules[key]``, ``import_module(key)``, and calls that build what a configuration
or a registry names. Also the files that a program may load with such imports.
"""

from __future__ import annotations

import posixpath
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.configurations import BUILDERS, FINDERS, MAKER_WORDS, MAKERS
from torchrepro_lint.resolve.object_sources import ObjectSources
from torchrepro_lint.resolve.symbols import GAP, NAMES, gapped_text, may_be_one
from torchrepro_lint.source.files import join_path, parent_folders
from torchrepro_lint.source.patterns import lazy_pattern, wildcard_expression
from torchrepro_lint.syntax.definitions import ITEM
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Comprehension,
    Constant,
    Expression,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    class_of,
    instance_value,
    is_instance,
    is_module,
    is_own,
    module_symbol,
    path_of,
    project_classes,
    simple_name,
    split_call,
    split_name,
)
from torchrepro_lint.syntax.summary import reads_namespaces
from torchrepro_lint.syntax.visitor import all_expressions, last_identifier, operands_of, receiver_of, subexpressions

# The name of an attribute of an outside module that is looked up under an unknown name.
UNKNOWN_ATTRIBUTE = "anything"
# Functions that give what a text names.
CHOOSERS = frozenset({"builtins.getattr", "builtins.eval", "builtins.__import__", "importlib.import_module"})
# The names of an element of a module's namespace under any key, and of what a text means there.
ANY_GLOBAL, EVALUATED = "builtins.globals()[]", "builtins.eval()"

# Functions that import a module by a string, and those of them that get its name.
_DYNAMIC_IMPORTS = frozenset(
    {"import_module", "__import__", "spec_from_file_location", "run_path", "run_module", "locate", "instantiate"}
    | {"load_source", "load_module"}
)
_BY_NAME = frozenset({"import_module", "__import__"})
# A text of a file's own name with fewer literal letters means too many names.
_LEAST_LETTERS = 4
# The most programs whose loadable files are kept.
_CACHED_PROGRAMS = 8


class ComputedNames(ObjectSources):
    """The names that computed lookups may give, on top of object sources."""

    @abstractmethod
    def names_of(self, path: str, reference: Ref) -> tuple[Value, ...]:
        """``names`` of a reference that the caller constructed, without a memo entry for it."""

    @abstractmethod
    def _attribute(self, name: Value, word: str) -> tuple[Value, ...]:
        """The names that an attribute of a name may stand for."""

    def configured(self, path: str, call: Call) -> tuple[Value, ...]:
        """The classes and functions that a call constructs or runs because a configuration or a registry names them."""
        func = call.func
        word = func.path[-1] if type(func) is Ref and func.path else last_identifier(func) if call.args else ""
        if call.args and (
            (word in BUILDERS and self._has_registries)
            or (word in MAKER_WORDS and not (MAKERS - FINDERS).isdisjoint(self.names(path, call.func)))
        ):
            return self._find_configured(path, call)
        return ()

    @query(cutoff=True, cycle=NAMES)
    def _find_configured(self, path: str, call: Call) -> Iterator[Value]:
        self.modules.reads.record_read(path)  # the key is a node of this file
        yield from self._built(path, call)
        if not (MAKERS - FINDERS).isdisjoint(self.names(path, call.func)):
            yield from self._made(path, call, nested=True)

    def _built(self, path: str, call: Call) -> Iterator[Value]:
        """``REGISTRY.build(config)`` and ``build_from_cfg(config, REGISTRY)``: the entries that a configuration or text names."""
        held: list[Expression] = [arg.value for arg in call.args[1:2]]
        if isinstance(call.func, Ref) and call.func.path:
            held.append(call.func._replace(path=call.func.path[:-1]))
        for table in held:
            for name in self._registries(path, table):
                if self.registry.fills(name):
                    given = call.args[0].value
                    words = self.configurations.keys_of(path, given) or self.literal_texts(path, given)
                    yield from self.registry.entries(name, words)

    def _made(self, path: str, call: Call, *, nested: bool) -> Iterator[Value]:
        self.modules.reads.record_read(path)
        given = call.args[0].value
        yield from self.configurations.named(path, given, nested=nested)
        for owner in project_classes(self.names(path, given)):
            for file, value in self.attribute_values(owner, "_target_"):
                yield from (
                    each for text in self.literal_texts(file, value) for each in self.configurations.dotted(file, text)
                )
        for text in self.literal_texts(path, given):
            yield from self.configurations.dotted(path, text)

    def _registered(self, path: str, value: Expression, key: Expression | None) -> Iterator[Value]:
        """The entries of a registry of the project, under a key where that is known."""
        for name in filter(self.registry.fills, self._registries(path, value)):
            yield from self.registry.entries(name, () if key is None else self.literal_texts(path, key, whole=True))
        if key is not None and isinstance(value, Ref) and not (value.path and is_own(value.roots[0])):
            yield from self._stored_definitions(path, value, key)

    def _stored_definitions(self, path: str, table: Ref, key: Expression) -> Iterator[Value]:
        """The classes and functions that statements store in a table, under a key where that is known: ``NETS["small"] = Small``."""
        if stored := [*self.entries(path, table, (ITEM,))]:
            words = self.literal_texts(path, key, whole=True)
            stored = [each for word in words for each in self.entries(path, table, (word,))] or stored
        found = (name for file, item, left in stored if not left for name in self.names(file, item))
        yield from (name for name in found if self.classes(name) or self.functions(name))

    def _registries(self, path: str, value: Expression) -> Iterator[Symbol]:
        """The variables that an expression names, as candidates for registries."""
        if isinstance(value, Ref):
            for name in (name for root in value.roots for name in self.modules.resolve(path, root)):
                for target in (f"{name}.{'.'.join(value.path)}", f"{name}{'.'.join(value.path)}"):
                    yield target.rstrip(".")

    # --- dynamic imports ---------------------------------------------------------------------------------------------

    @query(lru=_CACHED_PROGRAMS)
    def may_load(self, path: str) -> frozenset[str]:
        """The files that a program that starts with a file may load: those that it imports, with their packages, and those that its
        dynamic imports may mean. A string that may name anything may name what is in the package that imports, or beside the program.
        """
        files, found, waiting, searched = self.modules.files, {path}, [path], set[str]()
        while waiting:
            each = waiting.pop()
            new = {*self.modules.imported(each), *(join_path(above, "__init__.py") for above in parent_folders(each))}
            stems = set(self._dynamic_imports(each))
            if None in stems:
                stems |= {posixpath.dirname(path), self._outermost_package(each)}
            for stem in {named for named in stems if named is not None} - searched:
                searched.add(stem)
                new.update(other for other in files if not stem or other.startswith((f"{stem}/", f"{stem}.py")))
            new = {each for each in new if each not in found and each in files}
            found |= new
            waiting += new
        return frozenset(found)

    @query()
    def _dynamic_imports(self, path: str) -> frozenset[str | None]:
        """The modules and folders, as paths without suffix, that a file imports by strings, as far as their first words tell; None
        for a string that may name anything.
        """
        if _DYNAMIC_IMPORTS.isdisjoint(self.modules.files[path].summary.calls):
            return frozenset()
        found: set[str | None] = set()
        for each in all_expressions(self.modules.files[path]):
            if isinstance(each, Call) and (word := last_identifier(each.func)) in _DYNAMIC_IMPORTS and each.args:
                value = each.args[0].value
                parts = gapped_text(value).partition(GAP)[0].split(".") if word in _BY_NAME else [""]
                is_whole = isinstance(value, Constant)
                if not parts[0] or not (is_whole or len(parts) > 1):
                    found.add(None)
                elif (home := self.modules.tree.home_for(path, parts)) is not None:
                    found.add(join_path(home, "/".join(parts if is_whole else parts[:-1])))
        return frozenset(found)

    def _outermost_package(self, path: str) -> str:
        """The outermost of the packages that a file is in; its folder, where that is none."""
        found = posixpath.dirname(path)
        for folder in parent_folders(path):
            if join_path(folder, "__init__.py") not in self.modules.files:
                break
            found = folder
        return found

    # --- namespaces --------------------------------------------------------------------------------------------------

    @cached_property
    def has_namespaces(self) -> bool:
        """Whether the project looks names up in ``globals()`` or ``vars(module)``."""
        return any(map(reads_namespaces, (each for _, each in self.modules.summaries())))

    def factories(self, path: str, called: Expression) -> tuple[Value, ...]:
        """What ``globals()[key]`` and ``eval(key)`` with any key may be: the functions and classes that the module does not call by name."""
        found: set[str] = set()
        looks_up = not isinstance(called, Attribute)
        for file, each in self.values_through_calls(path, called) if looks_up else ():
            match each:
                case (
                    Subscript(value=table, indices=(key,))
                    | Call(func=Attribute(value=table, name="get"), args=(Arg(value=key), *_))
                ):
                    if ("builtins.globals",) in (self.names(file, one.func) for one in self.held_calls(file, table)):
                        found.update(self._uncalled(file, self._composed(file, key)))
                case Call(func=Ref(roots=("builtins.eval",), path=()), args=(Arg(value=key), *_)):
                    found.update(() if self._composed(file, key) else self._uncalled(file, []))
        return tuple(sorted(found))

    def _uncalled(self, path: str, texts: list[str]) -> Iterator[Value]:
        """The functions and classes of a module that it does not call by name, and whose names may be one of some texts with gaps."""
        called_here = set(self.modules.files[path].summary.calls)
        return (each for each in _fitting(self.defined_in(path), texts) if simple_name(each) not in called_here)

    def is_chosen(self, names: tuple[Value, ...]) -> bool:
        """Whether a callee with these names may be in a module's namespace under any key: see ``factories``."""
        return names in ((ANY_GLOBAL,), (EVALUATED,)) or (not names and self.has_namespaces)

    def _composed(self, path: str, key: Expression) -> list[str]:
        """The texts with gaps that a key may be, if each of its values is known in part: ``dla*``."""
        texts = [gapped_text(value) for _, value in self.values(path, key)]
        return texts if all(texts) else []

    def _is_partly_known(self, path: str, key: Expression) -> bool:
        """Whether so many letters of a key are known that few names fit: ``"_augment_" + name``."""
        texts = self.literal_texts(path, key) or self._composed(path, key)
        return bool(texts) and all(len(each.replace(GAP, "")) >= _LEAST_LETTERS or GAP not in each for each in texts)

    def held_calls(self, path: str, value: Expression) -> Iterator[Call]:
        """A call, or those that are assigned to a variable of the file."""
        if isinstance(value, Call):
            yield value
        elif isinstance(value, Ref) and not value.path:
            for root in value.roots:
                yield from (made for how, made in self.assigned(path + root) if how == "=" and isinstance(made, Call))

    def _chosen(self, path: str, call: Call, name: str) -> Iterator[Value]:
        """What ``getattr``, ``import_module`` and ``eval`` give for a text."""
        first, *others = (arg.value for arg in call.args)
        if simple_name(name) in _BY_NAME:
            yield from self._imported(path, first)
        elif name == "builtins.eval":
            texts = (_PARTIAL.sub(r"\1", text).split(".") for text in self.literal_texts(path, first))
            dotted = (tuple(words) for words in texts if all(map(str.isidentifier, words)))
            found = [each for words in dotted for each in self.follow(module_symbol(path), words)]
            yield from found or [*self._evaluated(path, first)] or (instance_value(name),)
        elif others:
            given = self._looked_up(path, self._holders(path, first), others[0], own=self._is_chosen(path, first))
            # An object that is only passed may have been given what its base from outside does not have.
            yield from given if self.names(path, first) else (each for each in given if not split_call(each)[2])

    def _evaluated(self, path: str, key: Expression) -> Iterator[Value]:
        """What a text with a gap means in a file: ``"networks." + name + ".Net"``, ``name + "Dataset"``."""
        for text in self._composed(path, key):
            before, _, after = text.partition(GAP)
            package, _, start = before.rpartition(".")
            end, *rest = after.split(".")
            holders = self.follow(module_symbol(path), tuple(package.split("."))) if package else (module_symbol(path),)
            named = f"{start}{GAP}{end}"
            if not package and len(named.replace(GAP, "")) < _LEAST_LETTERS:
                continue
            for home in (path_of(each) for each in holders if is_module(each)):
                found = [*_fitting(self.defined_in(home), [named])]
                if package:
                    found += (
                        module_symbol(file)
                        for word, file in self.modules.submodules(path, package)
                        if may_be_one(word, named)
                    )
                for each in found:
                    yield from self.follow(each, tuple(rest)) if rest else (each,)

    def _holders(self, path: str, value: Expression) -> tuple[Value, ...]:
        """The objects of a ``getattr``; of a parameter the project's objects and the modules that are passed, unless those name too many."""
        if owners := self.names(path, value):
            return owners
        held = self.values(path, value)
        passed = {name for each in held for name in self.names(*each) or self.destructured_names(*each)}
        modules = sorted(filter(is_module, passed))
        few = sum(len(self.modules.files[path_of(name)].exports) for name in modules) <= limits.MAX_LOOKED_UP_NAMES
        objects = map(instance_value, project_classes(sorted(passed)))
        return (*objects, *(modules if few else ()))

    def _is_chosen(self, path: str, module: Expression) -> bool:
        """Whether a module is imported by a computed name: then what is looked up in it is defined there, not imported."""
        listed = [each for _, held in self._iterated(path, module) for each in operands_of(held)]
        return any(
            isinstance(each, Call) and last_identifier(each.func) == "import_module"
            for each in (*listed, *(value for _, value in self.values(path, module)))
        )

    def _looked_up(
        self, path: str, owners: tuple[Value, ...], key: Expression | None, *, own: bool = False
    ) -> Iterator[Value]:
        """``getattr(module, key)`` and ``module.__dict__[key]``: the attributes that a literal key, or an option's default or
        choices, names; else, unless the key is a literal, everything in the module, or its ``own`` definitions if it has any, and of an
        object what its class sets under composed names, and its methods that are named so.
        """
        words = self.literal_texts(path, key) if key is not None else ()
        all_known = key is not None and bool(self.literal_texts(path, key, whole=True))
        composed = self._composed(path, key) if key is not None and not words else []
        for owner in owners:
            home, colon, rest = split_name(owner)
            known = [name for word in words for name in self._attribute(owner, word)]
            known_here = known or (colon and not rest and any(self.modules.attribute(home, word) for word in words))
            yield from known
            for word in (composed or [""]) if is_instance(owner) and not words else ():
                for file, value in self.attribute_values(class_of(owner), word):
                    yield from self.names(file, value) or self.object_names(file, value)
                if len(word.replace(GAP, "")) >= _LEAST_LETTERS:
                    fitting = wildcard_expression(word, r"\w*", count())
                    yield from self.methods_like(class_of(owner), re.compile(fitting))
            if not colon and not words:
                yield f"{owner}.{UNKNOWN_ATTRIBUTE}"
            elif colon and not rest and not (known_here and all_known) and not isinstance(key, Constant):
                found = [*_fitting(self.defined_in(home), composed)]
                yield from (own and [name for name in found if path_of(name) == home]) or found

    def _imported(self, path: str, key: Expression) -> Iterator[Value]:
        words = self.literal_texts(path, key)
        for word in words:
            if all(part.isidentifier() for part in word.lstrip(".").split(".")):
                yield from self.modules.resolve(path, word)
        for text in [] if words else self._composed(path, key):
            package, _, last = text.rpartition(".")
            ends = tuple(self._tested_ends(path, key)) or ("",)
            for word, file in self.modules.submodules(path, package) if GAP not in package else ():
                if may_be_one(word, last) and file.endswith(ends):
                    yield module_symbol(file)

    def _tested_ends(self, path: str, key: Expression) -> Iterator[str]:
        """The ends that a comprehension asks of the file names that a key is composed of: ``if name.endswith("_model.py")``."""
        for each in subexpressions(key):
            for _, listed in self._iterated(path, each):
                for clause in listed.clauses if isinstance(listed, Comprehension) else ():
                    for call in (part for test in clause.tests for part in subexpressions(test)):
                        match call:
                            case Call(func=func, args=(Arg(value=Constant(value=str(end))),)):
                                yield from (end,) if last_identifier(func) == "endswith" else ()

    def _iterated(self, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
        """What a variable takes its values from, one after the other."""
        for root in value.roots if isinstance(value, Ref) and not value.path else ():
            for held in (each for how, each in self.assigned(path + root) if how == "[]"):
                is_sorted = isinstance(held, Call) and last_identifier(held.func) == "sorted"
                for each in operands_of(held)[1:2] if is_sorted else (held,):
                    yield from self.values(path, each)

    def _loaded(self, path: str, key: Expression) -> Iterator[Value]:
        """The modules that ``sys.modules`` has under a key: ``__name__``, ``network.__name__``, a text."""
        match key:
            case Ref(path=(*holder, "__name__")):
                yield from self.names_of(path, key._replace(path=tuple(holder)))
            case Ref() if last_identifier(key) == "__name__":
                yield module_symbol(path)
            case _:
                yield from self._imported(path, key)

    def _of_namespace(self, path: str, table: Expression, key: Expression) -> Iterator[Value]:
        """``module.__dict__[key]``, ``vars(module)[key]`` and ``globals()[key]``, also where the namespace is in a variable."""
        if isinstance(table, Ref) and table.path[-1:] == ("__dict__",):
            yield from self._looked_up(path, self.names_of(path, table._replace(path=table.path[:-1])), key)
        elif self.has_namespaces and isinstance(table, Call | Ref):
            yield from self._of_called_namespace(path, table, key)

    def _listed(self, path: str, value: Expression) -> Iterator[Value]:
        """What ``module.__dict__.items()`` gives: who searches it by name looks for a class, if the module has any."""
        listing = value.func if isinstance(value, Call) else value
        table = receiver_of(listing) if last_identifier(listing) in ("items", "values") else None
        module = receiver_of(table) if table is not None and last_identifier(table) == "__dict__" else None
        if module is not None:
            all_names = [*self._looked_up(path, self._holders(path, module), None, own=self._is_chosen(path, module))]
            yield from [*filter(self.classes, all_names)] or all_names

    def _of_called_namespace(self, path: str, table: Expression, key: Expression) -> Iterator[Value]:
        for each in self.held_calls(path, table):
            match each:
                case Call(func=Ref(roots=("builtins.vars",), path=()), args=(Arg(value=module),)):
                    yield from self._looked_up(path, self._holders(path, module), key)
                case Call(func=Ref(roots=("builtins.globals",), path=()), args=()) if self._is_partly_known(path, key):
                    yield from self._looked_up(path, (module_symbol(path),), key)


# A text for ``eval`` that says a function with some of its arguments: ``"partial(nn.init.normal_, std=1e-4)"``.
_PARTIAL = lazy_pattern(r"^(?:functools\.)?partial\(\s*([\w.]+)\s*[,)].*")


def _fitting(names: Iterable[Value], texts: list[str]) -> Iterator[Value]:
    """The names whose last words may be one of some texts with gaps; all names, where there is no text."""
    return (each for each in names if not texts or any(may_be_one(simple_name(each), text) for text in texts))
