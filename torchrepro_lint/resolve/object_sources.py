"""Object sources: the objects that an expression may be at run time, by what the callers of its function pass.

An annotation such as ``nn.Module`` names a base class and hides which class comes. So the object is followed backward
through arguments, attributes, returned values, methods that return their object, and calls that wrap a module, to where
it is made. This is context-insensitive: all callers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import (
    FLUENT_METHODS,
    element_of_result,
    is_fluent,
    iterated_containers,
    module_wrapper,
    wrapped_module,
)
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.registries import passed_for_field
from torchrepro_lint.resolve.symbols import NAMES
from torchrepro_lint.resolve.values import Values
from torchrepro_lint.syntax.definitions import unpacking_index
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    class_of,
    element_value,
    in_project,
    instance_value,
    is_element,
    is_instance,
    is_module,
    local_symbol,
    passes_call,
    path_of,
    simple_name,
    split_call,
)
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

# Calls whose result stands for their first argument. Those that wrap modules are in the catalogue.
_TRANSPARENT = frozenset(
    {"functools.partial", "copy.copy", "copy.deepcopy", "builtins.iter", "builtins.next"}
    | {"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.std.tqdm", "tqdm.notebook.tqdm"}
)
# Classes that an annotation gives for any object of a kind: they say nothing of what a call runs.
_ABSTRACT = frozenset(
    {"torch.nn.Module", "torch.nn.modules.module.Module", "typing.Callable", "collections.abc.Callable"}
    | {"typing.Any", "builtins.object", "types.FunctionType"}
)
# The methods of such classes that run no forward: of ``torch.nn.Module``, and by their beginnings.
_OWN_METHODS = FLUENT_METHODS | frozenset(
    {"apply", "type", "children", "modules", "buffers", "parameters", "state_dict", "load_state_dict", "zero_grad"}
    | {"extra_repr", "compile", "add_module", "T_destination", "dump_patches", "call_super_init", "ipu", "mtia"}
)
_OWN_PREFIXES = ("named_", "register_", "get_", "set_", "_")
# The attributes by which wrappers of modules have the module.
_INNER = frozenset({"module", "_orig_mod", "_forward_module"})
# What a call gives that makes an empty container.
_EMPTY = frozenset({"builtins.dict()", "builtins.list()", "collections.OrderedDict()", "collections.defaultdict()"})
# Stands among the names of an object for a source that was not followed to where an object is made.
_UNKNOWN = "?"


_ELEMENTS = tuple(
    element_value(instance_value(f"builtins.{word}"))
    for word in ("tuple", "list", "dict", "zip", "enumerate", "map", "iter")
)


def is_abstract(name: Value) -> bool:
    """Whether a name is an object of a class that says nothing of what a call runs, or a method that its subclass has."""
    made, called, rest = split_call(name)
    if not called or made not in _ABSTRACT or passes_call(rest):
        return False
    word = simple_name(rest)
    return word == "__call__" or not (word in _OWN_METHODS or word.startswith(_OWN_PREFIXES))


class Objects(Record, frozen=True):
    """The objects that an expression may be, by name; ``complete`` if each of its sources was followed to one."""

    names: tuple[str, ...]
    complete: bool


_Sources = list[tuple[str, Expression]]


class ObjectSources(Values):
    """The object sources of a project, on top of its value sources."""

    def objects(self, path: str, expression: Expression) -> Objects:
        """The objects that an expression of a file may be; for a method ``net.encode`` the functions."""
        return _objects(self._known_objects(path, expression))

    def object_names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names of the objects that an expression of a file may be; for a method ``net.encode`` of the functions."""
        return self.objects(path, expression).names

    def attribute_objects(self, owner: Symbol, words: tuple[str, ...]) -> Objects:
        """The same for a chain of attributes of an object of a class: ``self.model.forward`` in a method of it."""
        found = self._attribute_objects(owner, words[0])
        return _objects(found if len(words) == 1 else self._followed(found, words[1:]))

    @query(cutoff=True, cycle=NAMES)
    def _attribute_objects(self, owner: Symbol, word: str) -> Iterable[Value]:
        return self._follow(self._of_class_attribute(owner, word))

    def _known_objects(self, path: str, expression: Expression) -> tuple[Value, ...]:
        what = expression.access_path if isinstance(expression, Ref) else expression
        # Equal references stand for the same, so the key is not the expression.
        table = self.database.table("objects", compare=True, cycle=NAMES)
        return table.of((path, what), lambda: self._follow([(path, expression)]))  # type: ignore[no-any-return]

    def _follow(self, queue: _Sources) -> set[str]:
        """Follow each expression once, however many ways lead to it."""
        found: set[str] = set() if queue else {_UNKNOWN}
        seen: set[tuple[str, object]] = set()
        ends = 0
        while queue:
            path, value = queue.pop()
            key = (path, value.access_path if isinstance(value, Ref) else value)
            if key in seen or isinstance(value, Constant):
                continue  # no constant can be called
            seen.add(key)
            if len(seen) - ends > limits.MAX_OBJECT_STEPS:
                return found | {_UNKNOWN}
            self.modules.reads.record_read(path)
            behind = self._sources(path, value)
            queue += reversed(behind)
            if not behind:
                before = len(found)
                found.update(self._stands_for(path, value))
                ends += len(found) > before  # the number of classes has a limit of its own
            if len(found) > limits.MAX_FAMILY_CLASSES:
                return {_UNKNOWN}
        return found if len(found) <= limits.MAX_OBJECT_CLASSES or self._are_related(found) else {_UNKNOWN}

    def _are_related(self, found: Iterable[Value]) -> bool:
        """Whether objects are of one family: of classes that share a base class of the project, so that they share methods, too."""
        shared: set[Value] | None = None
        for each in sorted(found):
            if each != _UNKNOWN:
                bases = set(filter(in_project, self.ancestry(class_of(each)))) if is_instance(each) else set()
                shared = bases if shared is None else shared & bases
                if not shared:
                    return False
        return True

    def _stands_for(self, path: str, value: Expression) -> Iterator[Value]:
        """The names of a value that is followed no further; for ``net.encode`` by the objects that ``net`` may be."""
        holder, word = _parted(value)
        owners = self._known_objects(path, holder) if holder is not None else ()
        yield from self._followed(owners, (word,))
        if holder is None or _UNKNOWN in owners:
            names = self.names(path, value)
            yield from names
            if not names or any(map(is_abstract, names)):
                yield _UNKNOWN

    def _followed(self, owners: tuple[Value, ...], words: tuple[str, ...]) -> tuple[Value, ...]:
        """The names that a chain of attributes of objects may stand for."""
        known = [each for each in owners if each != _UNKNOWN and not is_abstract(each)]
        found = {name for each in known for name in self.follow(each, words)}
        if len(found) > limits.MAX_OBJECT_CLASSES:
            return (_UNKNOWN,)
        return tuple(sorted(found | ({_UNKNOWN} if _UNKNOWN in owners else set())))

    def _sources(self, path: str, value: Expression) -> _Sources:
        """The expressions that an object comes from, one step back; nothing where it is made here."""
        match value:
            case Ref(path=()):
                found = [pair for root in value.roots for pair in self._values_of(path, root, ())]
                return [*found, *self._of_elements(path, value)]
            case Ref() | Attribute():
                return self._of_attribute(path, value)
            case Call():
                return self._of_call(path, value)
            case Operation(op="if", operands=(_, *operands)) | Operation(op="or" | "and", operands=operands):
                return [(path, each) for each in operands]
            case Operation(op="await", operands=(inner,)) | Operation(op=":=", operands=(_, inner)):
                return [(path, inner)]
            case Subscript(value=Call() as call, indices=(Constant(value=int(index)),)):
                return self._of_result(path, call, index)
            case Subscript(value=table, indices=(key,)):
                return self._of_table(path, table, key)
        return []

    def _of_table(self, path: str, table: Expression, key: Expression) -> _Sources:
        """The entries of a dictionary or list under a key, followed through arguments and results: in its displays, and what is stored
        where the container is seen to be made (one from elsewhere has other entries, too).
        """
        queue: list[tuple[str, Expression, tuple[Expression, ...]]] = [(path, table, (key,))]
        stored: list[tuple[str, Expression, tuple[Expression, ...]]] = []
        found: _Sources = []
        seen: set[tuple[str, object, int]] = set()
        is_made = False
        while queue or (stored and is_made):
            queue, stored = (queue, stored) if queue else (stored, [])
            file, value, keys = queue.pop()
            state = (file, value.access_path if isinstance(value, Ref) else value, len(keys))
            if not keys:
                found.append((file, value))
            elif state not in seen and len(seen) < limits.MAX_OBJECT_STEPS:
                seen.add(state)
                self.modules.reads.record_read(file)
                entries = [(file, each, keys[1:]) for each in self.events.entries(file, value, keys[0])]
                more = stored if isinstance(value, Ref) else queue
                more += reversed(entries)
                if isinstance(value, Subscript) and len(value.indices) == 1:
                    queue.append((file, value.value, (*value.indices, *keys)))
                elif behind := self._sources(file, value):
                    queue += reversed([(*each, keys) for each in behind])
                elif isinstance(value, Collection) or not _EMPTY.isdisjoint(self.names(file, value)):
                    is_made = True
        return found

    def _of_elements(self, path: str, value: Ref) -> Iterator[tuple[str, Expression]]:
        """``net, optimizer = prepare(net, optimizer)``, ``for name, net in nets.items()``."""
        for root in value.roots:
            for how, made in self.assigned(path + root):
                gives_tuple = how == "[]" and isinstance(made, Call) and self._gives_tuple(path, made)
                if how == "[]" and isinstance(made, Call) and (gives_tuple or iterated_containers(made, None)):
                    place = self._place(path, root, made)
                    for held in iterated_containers(made, place):
                        yield path, Subscript(made.start, made.end, held, (made,), made.end)  # under any key
                        added = self.events.added(path, held) if isinstance(held, Ref) else ()
                        yield from ((path, each) for each in added)
                    if gives_tuple:
                        yield from self._of_result(path, made, place)

    def _gives_tuple(self, path: str, call: Call) -> bool:
        """Whether a call may return a tuple whose elements are known: a wrapper's, or that of a function of the project."""
        return any(
            self.functions(name) if in_project(name) else module_wrapper(name) for name in self.names(path, call.func)
        )

    def _of_result(self, path: str, call: Call, index: int | None) -> _Sources:
        """The expressions behind one element of a call's result."""
        found: _Sources = []
        if index is None:
            return found
        for name in self.names(path, call.func):
            wrapper = module_wrapper(name) if not in_project(name) else None
            given = element_of_result(wrapper, call, index) if wrapper is not None else None
            found += [(path, given)] if given is not None else []
        for file, returned in self.values_through_calls(path, call):
            items = returned.items if isinstance(returned, Collection) else ()
            item = items[index] if -len(items) <= index < len(items) else None
            found += [(file, item)] if item is not None else []
        return found

    def _returned_by(self, name: Symbol) -> _Sources:
        """What a function returns; for a method that a base class leaves to subclasses, what theirs return."""
        found = [(path_of(name), value) for value in self.return_expressions(name)]
        owner = self.owner(name) if not found else ""
        own = {each for one in self.subclasses(owner) for each in self.methods(one, simple_name(name))} if owner else ()
        return found or [(path_of(each), value) for each in sorted(own) for value in self.return_expressions(each)]

    def _of_attribute(self, path: str, value: Ref | Attribute) -> _Sources:
        """The values that are assigned to an attribute, and for ``net.module`` the module that was wrapped."""
        holder, word = _parted(value)
        if holder is None:
            return []
        found: _Sources = []
        inner = False
        for owner in self._known_objects(path, holder):
            if is_instance(owner) and in_project(owner):
                found += self._of_class_attribute(class_of(owner), word)
                inner = inner or not any(map(self.functions, self.methods(class_of(owner), word)))
            elif is_module(owner):
                targets = self.modules.attribute(path_of(owner), word) or ()
                found += [(path_of(name), one) for name in targets for how, one in self.assigned(name) if how == "="]
        return [(path, holder)] if inner and word in _INNER and not found else found

    def _of_class_attribute(self, owner: Symbol, word: str) -> _Sources:
        """The values that methods and the body of a class, its bases and a dataclass's callers assign to an attribute; where these leave
        it to subclasses, what those assign.
        """
        found = [*self.attribute_values(owner, word), *passed_for_field(self, self.call_graph, owner, word)]
        if not found and not self.methods(owner, word):
            found += (pair for each in self.subclasses(owner) for pair in self.attribute_values(each, word))
        for each in self.ancestry(owner):
            for how, method, made in self.stored_attributes(each, word) if in_project(each) else ():
                if how == "[]" and isinstance(made, Call):
                    for function in self.functions(method):
                        own = local_symbol(function.name, function.params[0].name)
                        index = unpacking_index(function.body, own, made, (word,))
                        found += self._of_result(path_of(each), made, index)
        return found

    def _of_call(self, path: str, call: Call) -> _Sources:
        """The module that a call wraps, the receiver of a fluent method, or what a function of the project returns."""
        found: _Sources = []
        names, (holder, word) = self.names(path, call.func), _parted(call.func)
        if not names and holder is not None and word in FLUENT_METHODS | {"apply"}:
            return [(path, holder)]  # of a parameter without annotation
        for name in names:
            given = self._handed_back(call, name) if call.args else None
            if given is None and not in_project(name):
                given = holder if is_fluent(name) else None
                if given is None:
                    return []
            if given is not None:
                found.append((path, given))
            elif not self.is_generator(name):
                returned = self._returned_by(name)
                if not returned:
                    return []
                found += returned
        return found

    def _handed_back(self, call: Call, name: Value) -> Expression | None:
        """The argument that a call returns, itself or in a wrapper; see ``catalogue.libraries``."""
        if name in _TRANSPARENT or self._only_wraps(name):
            return call.args[0].value
        wrapper = module_wrapper(name) if not in_project(name) else None
        return wrapped_module(wrapper, call) if wrapper is not None else None

    def _only_wraps(self, name: Symbol) -> bool:
        """Whether a class of the project only inherits how it runs a module from a wrapper of modules."""
        if not self.classes(name) or not any(
            not in_project(each) and module_wrapper(each) for each in self.ancestry(name)
        ):
            return False
        return not self.call_methods(name)

    def names_from_callers(self, path: str, reference: Ref) -> tuple[Value, ...]:
        """The names that a variable, or an attribute of one, may stand for by the arguments that calls pass for parameters."""
        found: set[str] = set()
        for file, value in self.values(path, reference._replace(path=())):
            names = self.names(file, value)
            if all(map(is_element, names)):
                wrapped = value.args[0].value if isinstance(value, Call) and value.args else value
                names = self.destructured_names(file, wrapped) or names
            for name in names or self._made_by_parameter(file, value):
                found.update(self.follow(name, reference.path))
        if not found and len(reference.path) == 1:
            for file, value in self.values(path, reference):
                found.update(self.names(file, value) if (file, value) != (path, reference) else ())
        if len(reference.path) == 1 and not any(map(in_project, found)):
            found.update(self._passed_for_field(path, reference))
        return tuple(sorted(found))

    def _made_by_parameter(self, path: str, value: Expression) -> Iterator[Value]:
        """The names of what a function returns that calls pass for a parameter: ``make()`` of ``train(lambda: gym.make(name))``."""
        if isinstance(value, Call) and isinstance(value.func, Ref) and not value.func.path:
            for file, passed in self.values(path, value.func):
                for name in self.names(file, passed):
                    yield from self.returns(name) if self.functions(name) else ()

    def _passed_for_field(self, path: str, reference: Ref) -> Iterator[Value]:
        """The names that ``options.make`` may stand for by the arguments of the calls that construct a dataclass."""
        holder = reference._replace(path=())
        for name in sorted({*self.names(path, holder), *self.names_from_callers(path, holder)}):
            owner = class_of(name) if is_instance(name) and self.classes(class_of(name)) else ""
            for each in (owner, *self.subclasses(owner)) if owner else ():
                for file, value in passed_for_field(self, self.call_graph, each, reference.path[0]):
                    yield from self.names(file, value)


def _objects(found: tuple[str, ...]) -> Objects:
    """The names of objects, and whether all are known. Of too many it is not known which one is called."""
    if len(found) > limits.MAX_OBJECT_CLASSES:
        return Objects((), False)
    return Objects(tuple(each for each in found if each != _UNKNOWN), bool(found) and _UNKNOWN not in found)


def _parted(value: Expression) -> tuple[Expression | None, str]:
    """The holder of an attribute and its word: ``self.net`` and ``encode`` of ``self.net.encode``."""
    holder = receiver_of(value)
    return holder, last_identifier(value) if holder is not None else ""


def specified(found: tuple[str, ...], objects: Objects) -> tuple[str, ...]:
    """The names of an annotated callee and of the objects that it may be; those of base classes go where all are known."""
    kept = (name for name in found if not (objects.complete and (is_abstract(name) or is_held(name))))
    return tuple(sorted({*kept, *objects.names}))


def is_held(name: str) -> bool:
    """Whether a name is an element of a container of Python's own, or of such an element: ``tuple(models)[0].encode``."""
    return name.startswith(_ELEMENTS)
