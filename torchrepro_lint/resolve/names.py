"""Points-to analysis by name: what an expression may stand for, through variables, attributes, calls and classes.

A call's result is its name with ``()`` (``torch.Generator()``, ``src/model.py:Net()``), an element is ``[]``. All possible
values are named; an unknown value has no name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from torchrepro_lint.catalogue.module_wrappers import is_fluent
from torchrepro_lint.query import limits
from torchrepro_lint.resolve.call_sites import CallSiteIndex
from torchrepro_lint.resolve.configurations import BUILDERS, FINDERS, MAKER_WORDS, MAKERS
from torchrepro_lint.resolve.imports import ImportResolver, torch_modules
from torchrepro_lint.resolve.object_sources import ANY_GLOBAL, ObjectSources
from torchrepro_lint.resolve.registries import registers_by_method
from torchrepro_lint.resolve.search_path import imports_torch, is_local_change
from torchrepro_lint.resolve.values import reads_namespaces
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    Lambda,
    Operation,
    Param,
    Ref,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_of,
    element_value,
    in_project,
    instance_value,
    is_absolute,
    is_definition,
    is_instance,
    is_local,
    is_module,
    is_object,
    is_own,
    is_super,
    module_symbol,
    path_of,
    project_classes,
    qualifier_of,
    split_last,
    split_name,
    unbound_method,
)
from torchrepro_lint.syntax.visitor import is_classmethod, last_identifier, takes_receiver

# Expressions without a name.
_WITHOUT_NAMES = frozenset({Constant, Collection, Comprehension})

_LOADED_MODULES = (("sys",), ("modules",))

# The name of an attribute of an outside module that is looked up under an unknown name.
UNKNOWN_ATTRIBUTE = "anything"


class Names(ObjectSources):
    """Name resolution of a project: points-to sets, on top of value sources and the class hierarchy.

    Results are memoised for the life of the project; ``replace`` invalidates those that a changed file affects.
    """

    def __init__(self, modules: ImportResolver, torch: str) -> None:
        super().__init__(modules, torch)
        # The call sites of all files, as they were last asked for.
        self.call_sites = CallSiteIndex()

    # --- invalidation ----------------------------------------------------------------------------------------------

    def replace(self, path: str, facts: SyntaxTree) -> int | None:
        """Replace the tree of a changed file; returns the bits of what has changed, None where that may affect all files.

        It needs tables that record dependencies. Results that do not depend on the change stay.
        """
        old = self.modules.files[path]
        if not is_local_change(path, old, facts):
            return None
        if old.summary.decorators != facts.summary.decorators and (
            self._has_registries or registers_by_method(facts.summary)
        ):
            return None
        if reads_namespaces(old.summary) is not reads_namespaces(facts.summary):
            return None
        if imports_torch(old.summary) is not imports_torch(facts.summary) and not self._imports_torch_beside(path):
            return None
        subclasses, decorated = vars(self).pop("_subclasses", None), self.registry.put_aside()
        changed = self._forget(path, old, facts)
        with self.modules.reads.untracked():
            same = (subclasses is None or subclasses == self._subclasses) and (
                decorated is None or self.registry.is_still(decorated)
            )
            return changed if same else None

    def _imports_torch_beside(self, path: str) -> bool:
        """Whether another file than this one imports torch, so that the project uses it either way."""
        return any(imports_torch(each.summary) for other, each in self.modules.files.items() if other != path)

    def prepare_revision(self) -> None:
        """Compute what ``replace`` compares."""
        _ = self._subclasses, self.registry.tables

    def _forget(self, path: str, old: SyntaxTree, facts: SyntaxTree) -> int:
        reads, before, after = self.modules.reads, old.summary, facts.summary
        changed = reads.bits[path]
        callers, options = self.call_graph, self.options  # built from the old files
        for kind in ("calls", "values", "inner", "keywords"):
            for word in {*getattr(before, kind)} ^ {*getattr(after, kind)}:
                changed |= reads.word(kind, word)
        for kind in ("partials", "through", "imports", "exports", "entered", "decorators"):
            if getattr(before, kind) != getattr(after, kind):
                changed |= reads.word(kind, "")
        self.events.forget(path, old)
        self.modules.replace(path, facts)
        self._definitions.forget(path)
        callers.replace(path, before, after)
        options.forget(path)
        for owner in [owner for owner in self._attributes if path_of(owner) == path]:
            self._attributes.pop(owner)
        self.database.invalidate(changed)
        return changed

    def imports(self, path: str, other: str) -> bool:
        """Whether a file is another, or imports it, directly or not; a solver's answer, since these are compared and few edits change imports."""
        behind = self._memo.solve(("behind", path), lambda: self.modules.behind(path))
        at = bisect_left(behind, other)
        return behind[at : at + 1] == (other,)

    def torch_modules(self) -> frozenset[str]:
        """The modules that import torch, and those that such a module imports."""
        return frozenset(self._memo.solve(("torch",), lambda: torch_modules(self.modules)))

    # --- expressions -------------------------------------------------------------------------------------------------

    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression of a file may stand for, sorted."""
        kind = type(expression)
        if kind in _WITHOUT_NAMES:
            return ()
        if kind is not Ref:
            return self._memo.solve((path, expression), lambda: self._names(path, expression))
        roots, words = expression.roots, expression.path  # type: ignore[union-attr]  # narrowed by exact type
        if len(roots) == 1:
            root = roots[0]
            if is_absolute(root):
                if self.modules.is_outside(path, root):
                    return (".".join((root, *words)),)
            elif is_own(root) and not words:
                return self._points_to(path + root)
        # Equal references stand for the same, wherever they are in the file.
        return self._memo.solve((path, roots, words), lambda: self._referred(path, roots, words))

    def _names(self, path: str, expression: Expression) -> Iterable[Value]:
        self.modules.reads.record_read(path)  # the key is a node of this file
        match expression:
            case Ref(roots=roots, path=words):
                return self._referred(path, roots, words)
            case Attribute(value=value, name=word):
                return [found for name in self.names(path, value) for found in self.follow(name, (word,))]
            case Call():
                return self._results(path, expression)
            case Subscript(value=value, indices=index):
                return self._elements(path, value, index)
            case Operation(op="if", operands=(_, *operands)) | Operation(op="or" | "and", operands=operands):
                return [name for operand in operands for name in self.names(path, operand)]
            case Operation(op="await" | "*", operands=(value,)) | Operation(op=":=", operands=(_, value)):
                return self.names(path, value)
            case Lambda(function=function):
                return (path + function,)
        return ()

    def names_of(self, path: str, reference: Ref) -> tuple[Value, ...]:
        """``names`` of a reference that the caller constructed, without a memo entry for it."""
        return tuple(sorted(set(self._names(path, reference))))

    def _referred(self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]) -> list[Value]:
        self.modules.reads.record_read(path)
        return [
            found for root in roots for name in self.modules.resolve(path, root) for found in self.follow(name, words)
        ]

    def receiver(self, path: str, func: Expression) -> Iterator[Value]:
        """The names of the receiver of the method ``func``; for a function of a module, the module."""
        match func:
            case Ref(roots=roots, path=words) if words:
                for root in roots:
                    for name in self.modules.resolve(path, root):
                        yield from self.follow(name, words[:-1])
            case Attribute(value=value):
                yield from self.names(path, value)

    # --- variables and attributes ------------------------------------------------------------------------------------

    def follow(self, name: Value, words: tuple[str, ...]) -> tuple[Value, ...]:
        """The names that a chain of attributes of a name may stand for."""
        found = self._points_to(name)
        for word in words:
            found = tuple(sorted({target for each in found for target in self._attribute(each, word)}))
        return found

    def _points_to(self, name: Value) -> tuple[Value, ...]:
        """The points-to set of a name: itself, or for a variable or parameter its values."""
        path, colon, rest = split_name(name)
        if not colon or not rest or not is_definition(name) or self._definitions.defines(name):
            return (name,)
        return self._memo.solve(name, lambda: self._variable(path, name))

    def _variable(self, path: str, name: Symbol) -> Iterator[Value]:
        parameter, assigned = self._definitions.parameter(name), self._definitions.assigned(name)
        if parameter:
            yield from self._parameter(path, *parameter)
        for how, value in (assigned or ()) if len(assigned or ()) <= limits.MAX_ASSIGNMENTS else ():
            if how in ("=", "with"):
                yield from self.names(path, value)
            elif how == "[]":
                row = self._of_row(path, name, value) if isinstance(value, Subscript) else ()
                yield from (each for file, item in row for each in self.names(file, item))
                yield from () if row else self._elements(path, value, ())
            elif how == ":":
                yield from self._annotated(path, value)
        if parameter is None and assigned is None:
            yield from self._dangling(name)

    def _dangling(self, name: Symbol) -> Iterator[Value]:
        """``a.py:x.y.z`` as an import left it: resolve the longest known prefix, then attributes."""
        head, tail = split_last(name)
        if head and not is_local(tail) and split_name(head)[2]:
            yield from self.follow(head, (tail,))

    def _parameter(self, path: str, function: Function, param: Param, position: int) -> Iterator[Value]:
        if position == 0 and takes_receiver(function) and not param.kind.startswith("*"):
            yield f"{path}{function.owner}" if is_classmethod(function) else instance_value(f"{path}{function.owner}")
            return
        if param.annotation is not None:
            yield from self._annotated(path, param.annotation)
        if param.default is not None:
            yield from self.names(path, param.default)

    def _annotated(self, path: str, annotation: Expression) -> Iterator[Value]:
        """Instances of the classes that an annotation names, including the members of a union or ``Optional``."""
        match annotation:
            case Operation(op="|", operands=operands):
                for operand in operands:
                    yield from self._annotated(path, operand)
            case Subscript(value=value, indices=index):
                if set(self.names(path, value)) & {"typing.Optional", "typing.Union", "typing.Annotated"}:
                    for each in index:
                        yield from self._annotated(path, each)
            case _:
                for name in self.names(path, annotation):
                    if not is_object(name) and not self.functions(name):
                        yield instance_value(name)

    def _attribute(self, name: Value, word: str) -> tuple[Value, ...]:
        path, colon, rest = split_name(name)
        if not colon:
            return (f"{name}.{word}",)
        if not rest:
            return self._each_value(self.modules.attribute(path, word) or ())
        if is_instance(name):
            return self._of_instance(class_of(name), word)
        if self.classes(name):
            inner = (
                self._each_value((f"{name}.{word}",))
                if self._definitions.assigned(f"{name}.{word}") is not None
                else ()
            )
            return inner or tuple(map(unbound_method, self.methods(name, word)))
        return ()

    def _each_value(self, names: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(sorted({value for name in names for value in self._points_to(name)}))

    def _of_instance(self, owner: Value, word: str) -> tuple[Value, ...]:
        """A method, or the values that the class and its bases assign to ``self.word``."""
        if is_super(owner):
            return self.methods(owner, word)
        if word == "__class__" and in_project(owner):
            return (owner,)
        found: set[str] = set()
        assigned = False
        for each in self.ancestry(owner):
            if not in_project(each):
                continue
            path = path_of(each)
            for how, _, value in self.instance_attributes(each).get(word, ()):
                assigned = True
                found.update(self.names(path, value) if how == "=" else ())
            if self._definitions.assigned(f"{each}.{word}") is not None:
                assigned = True
                found.update(self._points_to(f"{each}.{word}"))
        if assigned:
            return tuple(sorted(found))
        methods = self.methods(owner, word)
        if any(self.is_property(method) for method in methods):
            return tuple(sorted({value for method in methods for value in self.returns(method)}))
        return methods

    # --- calls and elements ------------------------------------------------------------------------------------------

    def _results(self, path: str, call: Call) -> Iterator[Value]:
        """The names that a call may return."""
        match call.func:
            case Ref(path=(*words, "get")) as func if call.args:
                table = func._replace(path=tuple(words))
                for file, display in self.displays(path, table):
                    yield from self._items(file, display, path, call.args[0].value)
                yield from self._registered(path, table, call.args[0].value)
                yield from self._of_namespace(path, table, call.args[0].value)  # ``vars(module).get(key)``
            case Attribute(value=table, name="get") if call.args:
                yield from self._of_namespace(path, table, call.args[0].value)
        registered = self._has_registries and call.args and last_identifier(call.func) in BUILDERS
        built = [*self._built(path, call)] if registered else []
        yield from (name for each in built for name in self._called_result(each))
        names = self.names(path, call.func) if not built else ()
        if not built and self.has_namespaces and (not names or names == ANY_GLOBAL):
            names = self.factories(path, call.func) or names
        for name in names:
            yield from self._result(path, call, name)

    def configured(self, path: str, call: Call) -> tuple[Value, ...]:
        """The classes and functions that a call constructs or runs because a configuration or a registry names them."""
        func = call.func
        word = func.path[-1] if type(func) is Ref and func.path else last_identifier(func) if call.args else ""
        if call.args and (
            (word in BUILDERS and self._has_registries)
            or (word in MAKER_WORDS and not (MAKERS - FINDERS).isdisjoint(self.names(path, call.func)))
        ):
            return self._memo.solve(("configured", path, call), lambda: self._find_configured(path, call))
        return ()

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
                    words = self.configurations.keys_of(path, given) or self._texts(path, given)
                    yield from self.registry.entries(name, words)

    def _made(self, path: str, call: Call, *, nested: bool) -> Iterator[Value]:
        self.modules.reads.record_read(path)
        given = call.args[0].value
        yield from self.configurations.named(path, given, nested=nested)
        for text in self._texts(path, given):
            yield from self.configurations.dotted(path, text)

    def _result(self, path: str, call: Call, name: Value) -> Iterator[Value]:
        """The names that a call may return where the callee has this name."""
        if name in MAKERS and call.args and (made := [*self._made(path, call, nested=False)]):
            for each in made:
                yield from (each,) if name in FINDERS else self._called_result(each)
        elif call.args and (given := self._handed_back(call, name)) is not None:
            yield from self.names(path, given)
        elif self.classes(name) or is_super(name):
            yield instance_value(name)
        elif self.functions(name):
            yield from (instance_value(name),) if self.is_generator(name) else self._returned_to(path, call, name)
        elif name == "builtins.getattr" and len(call.args) > 1:
            yield from self._looked_up(path, self._holders(path, call.args[0].value), call.args[1].value)
        elif name == "builtins.type" and len(call.args) == 1:
            objects = self.names(path, call.args[0].value)
            yield from [*project_classes(objects)] or ("builtins.type()",)
        elif name == "importlib.import_module" and call.args:
            yield from self._imported(path, call.args[0].value)
        elif not in_project(name):
            yield from self.receiver(path, call.func) if is_fluent(name) else (instance_value(name),)
        elif is_instance(name):
            for method in self.call_methods(name):
                yield from self.returns(method)

    def _returned_to(self, path: str, call: Call, name: Symbol) -> Iterable[Value]:
        """The names that a function returns; an inherited method that returns ``self`` returns an object of the receiver's class."""
        found, owner = self.returns(name), qualifier_of(name)
        own = instance_value(owner)
        if own not in found or not self.subclasses(owner):
            return found
        receivers = sorted({each for each in self.receiver(path, call.func) if self._is_of(class_of(each), owner)})
        objects = [each if is_instance(each) else instance_value(each) for each in receivers]
        return [*(each for each in found if each != own), *objects] if objects else found

    def _is_of(self, name: Value, owner: Symbol) -> bool:
        """Whether a class is another, or inherits from it."""
        return in_project(name) and owner in self.ancestry(name)

    def _called_result(self, name: Value) -> Iterable[Value]:
        """The names that calling a class or a function gives."""
        if self.functions(name) and not self.is_generator(name):
            return self.returns(name)
        return (instance_value(name),)

    def _holders(self, path: str, value: Expression) -> tuple[Value, ...]:
        """The objects of a ``getattr``; for a parameter the modules that are passed for it, unless they have too many names."""
        if owners := self.names(path, value):
            return owners
        passed = {name for file, each in self.values(path, value) for name in self.names(file, each)}
        modules = sorted(filter(is_module, passed))
        few = sum(len(self.modules.files[path_of(name)].exports) for name in modules) <= limits.MAX_LOOKED_UP_NAMES
        return tuple(modules) if few else ()

    def _looked_up(self, path: str, owners: tuple[Value, ...], key: Expression) -> Iterator[Value]:
        """``getattr(module, key)`` and ``module.__dict__[key]``: the attributes that a literal key, or an option's default or
        choices, names; else, unless the key is a literal, everything in the module.
        """
        words = self._texts(path, key)
        for owner in owners:
            home, colon, rest = split_name(owner)
            known = [name for word in words for name in self._attribute(owner, word)]
            yield from known
            if not colon and not words:
                yield f"{owner}.{UNKNOWN_ATTRIBUTE}"
            elif colon and not rest and not known and not isinstance(key, Constant):
                yield from self.defined_in(home)

    def _imported(self, path: str, key: Expression) -> Iterator[Value]:
        for word in self._texts(path, key):
            if all(part.isidentifier() for part in word.lstrip(".").split(".")):
                yield from self.modules.resolve(path, word)

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

    def _of_called_namespace(self, path: str, table: Expression, key: Expression) -> Iterator[Value]:
        for each in self.held_calls(path, table):
            match each:
                case Call(func=Ref(roots=("builtins.vars",), path=()), args=(Arg(value=module),)):
                    yield from self._looked_up(path, self._holders(path, module), key)
                case Call(func=Ref(roots=("builtins.globals",), path=()), args=()):
                    yield from self._looked_up(path, (module_symbol(path),), key) if self._texts(path, key) else ()

    def _elements(self, path: str, value: Expression, index: tuple[Expression, ...]) -> Iterator[Value]:
        """An element of a display (the one under a literal key, else any), or ``name[]``."""
        key = index[0] if len(index) == 1 else None
        by_name = key is not None and (self.has_namespaces or (type(value) is Ref and value.path[-1:] == ("__dict__",)))
        if by_name and key is not None and (found_in := [*self._of_namespace(path, value, key)]):
            yield from found_in
            return
        if key is not None and isinstance(value, Ref) and (value.roots, value.path) == _LOADED_MODULES:
            yield from self._loaded(path, key)
            return
        for file, found in self.values(path, value):
            if isinstance(found, Collection):
                yield from self._items(file, found, path, key)
            elif isinstance(found, Comprehension):
                for element in found.elements[-1:]:
                    yield from self.names(file, element)
        yield from self._registered(path, value, key)
        for name in self.names(path, value):
            yield element_value(name)
