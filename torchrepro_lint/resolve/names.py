"""Points-to analysis by name: what an expression may stand for, through variables, attributes, calls and classes.

A call's result is its name with ``()`` (``torch.Generator()``), an element is ``[]``. All possible values are named; an unknown one is not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import is_fluent
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import CallSiteIndex
from torchrepro_lint.resolve.computed_names import CHOOSERS, ComputedNames
from torchrepro_lint.resolve.configurations import BUILDERS, FINDERS, MAKERS
from torchrepro_lint.resolve.definitions import is_local_change
from torchrepro_lint.resolve.imports import ImportResolver, torch_modules
from torchrepro_lint.resolve.registries import registers_by_method
from torchrepro_lint.resolve.symbols import NAMES
from torchrepro_lint.syntax.binding import is_classmethod, takes_receiver
from torchrepro_lint.syntax.nodes import (
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
    is_object,
    is_own,
    is_super,
    path_of,
    project_classes,
    qualifier_of,
    ray_attribute,
    split_last,
    split_name,
    unbound_method,
)
from torchrepro_lint.syntax.summary import imports_torch, reads_namespaces
from torchrepro_lint.syntax.visitor import last_identifier

# Expressions without a name.
_WITHOUT_NAMES = frozenset({Constant, Collection, Comprehension})

_LOADED_MODULES = (("sys",), ("modules",))


class Names(ComputedNames):
    """Name resolution of a project: points-to sets, on top of computed names, value sources and the class hierarchy.

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
        self.forget(path)
        callers.replace(path, before, after)
        options.forget(path)
        for owner in [owner for owner in self._attributes if path_of(owner) == path]:
            self._attributes.pop(owner)
        self.database.invalidate(changed)
        return changed

    def imports(self, path: str, other: str) -> bool:
        """Whether a file is another, or imports it, directly or not."""
        behind = self._imported_by(path)
        at = bisect_left(behind, other)
        return behind[at : at + 1] == (other,)

    @query(cutoff=True)
    def _imported_by(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(self.modules.behind(path)))

    @query(cutoff=True)
    def torch_modules(self) -> frozenset[str]:
        """The modules that import torch, and those that such a module imports."""
        return torch_modules(self.modules)

    # --- expressions -------------------------------------------------------------------------------------------------

    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression of a file may stand for, sorted."""
        kind = type(expression)
        if kind in _WITHOUT_NAMES:
            return ()
        if kind is not Ref:
            return self._names(path, expression)
        roots, words = expression.roots, expression.path  # type: ignore[union-attr]  # narrowed by exact type
        if len(roots) == 1:
            root = roots[0]
            if is_absolute(root):
                if self.modules.is_outside(path, root):
                    return (".".join((root, *words)),)
            elif is_own(root) and not words:
                return self._points_to(path + root)
        # Equal references stand for the same, wherever they are in the file.
        return self._referred(path, roots, words)

    @query(cutoff=True, cycle=NAMES)
    def _names(self, path: str, expression: Expression) -> Iterable[Value]:
        self.modules.reads.record_read(path)  # the key is a node of this file
        match expression:
            case Attribute(value=value, name=word):
                return [each for name in self.names(path, value) for each in self._of_plain(path, name, (word,))]
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
        return tuple(sorted(set(self._followed_from(path, reference.roots, reference.path))))

    @query(cutoff=True, cycle=NAMES)
    def _referred(self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]) -> Iterator[Value]:
        return self._followed_from(path, roots, words)

    def _followed_from(self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]) -> Iterator[Value]:
        self.modules.reads.record_read(path)
        for name, rest in self.modules.referents(path, roots, words):
            yield from self._of_plain(path, name, rest)

    def receiver(self, path: str, func: Expression) -> Iterator[Value]:
        """The names of the receiver of the method ``func``; for a function of a module, the module."""
        match func:
            case Ref(roots=roots, path=words) if words:
                for name, rest in self.modules.referents(path, roots, words[:-1]):
                    yield from self.follow(name, rest)
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
        _, colon, rest = split_name(name)
        if not colon or not rest or not is_definition(name) or self.defines(name):
            return (name,)
        return self._variable(name)

    @query(cutoff=True, cycle=NAMES)
    def _variable(self, name: Symbol) -> Iterator[Value]:
        path, own = path_of(name), (name.removeprefix(path_of(name)),)
        parameter, assigned = self.parameter(name), self.assigned(name)
        if parameter:
            yield from self._parameter(path, *parameter)
        for how, value in assigned if len(assigned) <= limits.MAX_ASSIGNMENTS else ():
            if how in ("=", "with"):
                yield from self.names(path, value)
                if isinstance(value, Call) and isinstance(value.func, Ref) and value.func.access_path == (own, ()):
                    # ``net = nets[name]``, ``net = net(width)``: this cycle begins with the classes that are assigned before.
                    before = (each for _, given in assigned if given != value for each in self.names(path, given))
                    yield from map(instance_value, filter(self.classes, before))
            elif how == "[]":
                parts = self.unpacked(path, name, value)
                yield from (each for file, item in parts for each in self.names(file, item))
                yield from () if parts else self._elements(path, value, ())
            elif how == ":":
                yield from self._annotated(path, value)
        if parameter is None and not assigned:
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
                yield from (each for operand in operands for each in self._annotated(path, operand))
            case Subscript(value=value, indices=index):
                if set(self.names(path, value)) & {"typing.Optional", "typing.Union", "typing.Annotated"}:
                    for each in index:
                        yield from self._annotated(path, each)
                yield from map(instance_value, filter(self.is_generic, self.names(path, value)))
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
            inner = self._each_value((f"{name}.{word}",)) if self.assigned(f"{name}.{word}") else ()
            return inner or tuple(map(unbound_method, self.methods(name, word))) or ray_attribute(name, word)
        return ray_attribute(name, word) if self.functions(name) else ()

    def _each_value(self, names: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(sorted({value for name in names for value in self._points_to(name)}))

    def _of_instance(self, owner: Value, word: str) -> tuple[Value, ...]:
        """A method, subclasses' where the class leaves it to these, or what it and its bases assign to ``self.word``, or a class within."""
        if is_super(owner):
            return self.methods(owner, word)
        if word == "__class__" and in_project(owner):
            return (owner,)
        found, assigned = set[str](), False
        for each in self.ancestry(owner):
            if not in_project(each):
                continue
            path, inner = path_of(each), f"{each}.{word}"
            rows, kept = self.stored_attributes(each, word), self.assigned(inner) or self.classes(inner)
            assigned = assigned or bool(rows or kept)
            found.update(name for how, _, value in rows if how == "=" for name in self.names(path, value))
            found.update(self._points_to(inner) if kept else ())
        if assigned:
            return tuple(sorted(found))
        methods = self.methods(owner, word)
        if any(self.is_property(method) for method in methods):
            return tuple(sorted({value for method in methods for value in self.returns(method)}))
        left = {name for each in self.subclasses(owner) for name in self.methods(each, word)} if not methods else ()
        return methods or tuple(sorted(filter(in_project, left)))

    # --- calls and elements ------------------------------------------------------------------------------------------

    def _results(self, path: str, call: Call) -> Iterator[Value]:
        """The names that a call may return."""
        match call.func:
            case Ref(path=(*words, "get")) as func if call.args:
                table = func._replace(path=tuple(words))
                for file, display in self.displays(path, table):
                    yield from self.items(file, display, path, call.args[0].value)
                yield from self._registered(path, table, call.args[0].value)
                yield from self._of_namespace(path, table, call.args[0].value)  # ``vars(module).get(key)``
            case Attribute(value=table, name="get") if call.args:
                yield from self._of_namespace(path, table, call.args[0].value)
            case Attribute(value=holder, name="__getattribute__") if call.args:
                yield from self._looked_up(path, self._holders(path, holder), call.args[0].value)
        registered = self._has_registries and call.args and last_identifier(call.func) in BUILDERS
        built = [*self._built(path, call)] if registered else []
        yield from (name for each in built for name in self._called_result(each))
        names = self.names(path, call.func) if not built else ()
        if not built and self.is_chosen(names):
            names = self.factories(path, call.func) or names
        if not names and isinstance(call.func, Ref) and call.func.path and self.starts_at_receiver(path, call.func):
            # ``self.made_class()``, where calls pass the class.
            yield from map(instance_value, filter(self.classes, self.object_names(path, call.func)))
        for name in names:
            yield from self._result(path, call, name)

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
        elif name in CHOOSERS and call.args:
            yield from self._chosen(path, call, name)
        elif name == "builtins.type" and len(call.args) == 1:
            yield from [*project_classes(self.names(path, call.args[0].value))] or ("builtins.type()",)
        elif not in_project(name):
            yield from self.receiver(path, call.func) if is_fluent(name) else (instance_value(name),)
        elif is_instance(name):
            for method in self.call_methods(name):
                yield from self.returns(method)

    def _returned_to(self, path: str, call: Call, name: Symbol) -> Iterable[Value]:
        """The names that a function returns; an inherited method that returns ``self`` returns an object of the receiver's class. Of a
        class and its object it is the object: ``net = nets[name]``, ``net = net(width)``.
        """
        made = {class_of(each) for each in self.returns(name) if is_instance(each)}
        found, owner = tuple(each for each in self.returns(name) if each not in made), qualifier_of(name)
        if (own := instance_value(owner)) not in found or not self.subclasses(owner):
            return found
        receivers = sorted({each for each in self.receiver(path, call.func) if owner in self.ancestry(class_of(each))})
        objects = [each if is_instance(each) else instance_value(each) for each in receivers]
        return [*(each for each in found if each != own), *objects] if objects else found

    def _called_result(self, name: Value) -> Iterable[Value]:
        """The names that calling a class or a function gives."""
        runs = self.functions(name) and not self.is_generator(name)
        return self.returns(name) if runs else (instance_value(name),)

    def _elements(self, path: str, value: Expression, index: tuple[Expression, ...]) -> Iterator[Value]:
        """An element of a display (the one under a literal key, else any), or ``name[]``."""
        key = index[0] if len(index) == 1 else None
        by_name = key is not None and (self.has_namespaces or (type(value) is Ref and value.path[-1:] == ("__dict__",)))
        looked_up = self._of_namespace(path, value, key) if by_name and key is not None else self._listed(path, value)
        if found_in := [*looked_up]:
            yield from found_in
            return
        if key is not None and isinstance(value, Ref) and value.access_path == _LOADED_MODULES:
            yield from self._loaded(path, key)
            return
        for file, found in self.values(path, value):
            if isinstance(found, Collection):
                yield from self.items(file, found, path, key)
            elif isinstance(found, Comprehension):
                for element in found.elements[-1:]:
                    yield from self.names(file, element)
        yield from self._registered(path, value, key)
        for name in self.names(path, value):
            yield name if self.is_generic(name) else element_value(name)
