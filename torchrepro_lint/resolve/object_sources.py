"""Object sources: the objects that an expression may be at run time, by what the callers of its function pass.

An annotation such as ``nn.Module`` names a base class and hides which class comes. So the object is followed backward through arguments,
attributes, returned values, methods that return their object, and calls that wrap a module, to where it is made. It is context-insensitive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import (
    FLUENT_METHODS,
    containers_behind,
    element_of_result,
    is_fluent,
    module_wrapper,
    wrapped_module,
)
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.registries import passed_for_field
from torchrepro_lint.resolve.symbols import NAMES
from torchrepro_lint.resolve.values import Values, is_abstract
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import base_constructor_calls
from torchrepro_lint.syntax.definitions import EACH, Keys, joined_keys, subscript_keys
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_of,
    in_project,
    instance_value,
    is_element,
    is_instance,
    is_module,
    is_progress_bar,
    is_self,
    path_of,
    project_classes,
)
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

# Calls whose result stands for their first argument. Those that wrap modules are in the catalogue.
_TRANSPARENT = frozenset({"functools.partial", "copy.copy", "copy.deepcopy", "builtins.iter", "builtins.next"})
# The attributes by which wrappers of modules have the module.
_INNER = frozenset({"module", "_orig_mod", "_forward_module"})
# What a call gives that makes an empty container, or one whose places are filled later.
_EMPTY = frozenset({"builtins.dict()", "builtins.list()", "collections.OrderedDict()", "collections.defaultdict()"})
_EMPTY |= {"torch.nn.ModuleList()", "torch.nn.ModuleDict()", "builtins.range()"}
# The methods that give the children of a module of a class of the project.
_CHILDREN = lazy_pattern(r"torch\.nn\.Module\(\)\.((named_)?(children|modules)|_modules\.(values|items))")
# Stands among the names of an object for a source that was not followed to where an object is made.
_UNKNOWN = "?"


class Objects(Record, frozen=True):
    """The objects that an expression may be, by name; ``complete`` if each of its sources was followed to one."""

    names: tuple[str, ...]
    complete: bool


_Expressions = list[tuple[str, Expression]]
# Expressions with their files, each with the keys under which it has what is looked for; none where it is that itself.
_Sources = list[tuple[str, Expression, Keys]]


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
        return self._follow(self._taken(self._of_class_attribute(owner, word)))

    def _known_objects(self, path: str, expression: Expression) -> tuple[Value, ...]:
        what = expression.access_path if isinstance(expression, Ref) else expression
        # Equal references stand for the same, so the key is not the expression.
        table = self.database.table("objects", compare=True, cycle=NAMES)
        return table.of((path, what), lambda: self._follow([(path, expression)]))  # type: ignore[no-any-return]

    def _follow(self, queue: _Expressions) -> set[str]:
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
            behind = self._taken(self._sources(path, value))
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
        known = [each for each in found if each != _UNKNOWN]
        bases = [set(filter(in_project, self.ancestry(class_of(each)))) for each in known if is_instance(each)]
        return len(bases) == len(known) and bool(set.intersection(*bases))

    def _stands_for(self, path: str, value: Expression) -> Iterator[Value]:
        """The names of a value that is followed no further; for ``net.encode`` by the objects that ``net`` may be."""
        holder, word = _parted(value)
        owners = self._known_objects(path, holder) if holder is not None else ()
        yield from self._followed(owners, (word,))
        if holder is None or _UNKNOWN in owners:
            names = self.names(path, value) or self.made_by_parameter(path, value)
            yield from names
            if not names or any(map(is_abstract, names)):
                yield _UNKNOWN

    def _followed(self, owners: tuple[Value, ...], words: tuple[str, ...]) -> tuple[Value, ...]:
        """The names that a chain of attributes of objects may stand for. A class without the method is not asked for it."""
        known = [each for each in owners if each != _UNKNOWN and not is_abstract(each)]
        found = {name for each in known for name in self.follow(each, words)}
        found = {each for each in found if not is_abstract(each)} or found
        every = tuple(sorted(found.union({_UNKNOWN}.intersection(owners))))
        return every if len(found) <= limits.MAX_OBJECT_CLASSES else (_UNKNOWN,)

    def _sources(self, path: str, value: Expression) -> _Sources:
        """The expressions that an object comes from, one step back; nothing where it is made here."""
        match value:
            case Ref(path=()):
                return [*self._of_variable(path, value)]
            case Ref() | Attribute():
                return self._of_attribute(path, value)
            case Call():
                return _whole(self._of_call(path, value))
            case Operation(op="if" | "or" | "and" | "await" | ":=" as op, operands=operands):
                return [(path, each, ()) for each in operands[op in ("if", ":=") :]]
            case Subscript(value=inner):
                return [(path, inner, subscript_keys(value))]
        return []

    def _of_variable(self, path: str, value: Ref) -> Iterator[tuple[str, Expression, Keys]]:
        """The values of a variable, and those of which it gets a part: ``for name, (net, weight) in nets.items()``."""
        for root in value.roots:
            yield from _whole(self._values_of(path, root, ()))
            for how, made in self.assigned(path + root):
                if how == "[]" and (keys := self.unpacking(path, root, made)):
                    yield path, made, keys

    def _taken(self, sources: _Sources) -> _Expressions:
        """The sources themselves, or what these containers have under the keys."""
        return [each for file, value, keys in sources for each in self.elements(file, value, keys)]

    def elements(self, path: str, container: Expression, keys: Keys) -> _Expressions:
        """What a container has under keys, through arguments and results: what displays have, and is stored where it is seen to be made."""
        if not keys:
            return [(path, container)]
        queue: _Sources = [(path, container, keys)]
        stored: _Sources = []
        found: _Expressions = []
        seen: set[tuple[str, object, Keys]] = set()
        is_made = False
        while queue or (stored and is_made):
            queue, stored = (queue, stored) if queue else (stored, [])
            file, value, left = queue.pop()
            state = (file, value.access_path if isinstance(value, Ref) else value, left)
            if not left:
                found.append((file, value))
            elif state not in seen and len(seen) < limits.MAX_ELEMENT_STEPS and len(left) <= limits.MAX_KEYS:
                seen.add(state)
                self.modules.reads.record_read(file)
                (stored if isinstance(value, Ref) else queue).extend(reversed([*self.entries(file, value, left)]))
                behind = self._behind_element(file, value, left)
                queue += reversed(behind)
                made = not behind and (
                    isinstance(value, Collection | Comprehension) or not _EMPTY.isdisjoint(self.names(file, value))
                )
                is_made |= made
        return found

    def _behind_element(self, path: str, value: Expression, keys: Keys) -> _Sources:
        """The expressions that an element of a container comes from, one step back."""
        if isinstance(value, Operation) and value.op in ("+", "|"):
            return [(path, each, keys) for each in value.operands]
        if isinstance(value, Operation) and value.op == "*":  # ``[None] * n``, whose places are filled later
            return [(path, each, (EACH, *keys[1:])) for each in value.operands if isinstance(each, Collection)]
        if isinstance(value, Call):
            names = self.names(path, value.func)
            if wrappers := [each for name in names if not in_project(name) and (each := module_wrapper(name))]:
                given = [element_of_result(each, value, keys[0]) for each in wrappers if isinstance(keys[0], int)]
                return [(path, each, keys[1:]) for each in given if each is not None]
            if any(map(_CHILDREN.fullmatch, names)):
                return [*self._children(path, value.func, keys)]
            held = [(path, *each) for each in containers_behind(names, value, keys)]
            if held := held or self._handed_to_base(path, names, value, keys):
                return held
        if isinstance(value, Subscript):
            return [(path, value.value, subscript_keys(value, keys))]
        return [(file, each, joined_keys(taken, keys)) for file, each, taken in self._sources(path, value)]

    def _children(self, path: str, func: Expression, keys: Keys) -> Iterator[tuple[str, Expression, Keys]]:
        """The modules that a call of a method gives one by one: ``self.children()``, ``net.named_children()``, ``self._modules.values()``."""
        holder, word = _parted(func)
        holder = receiver_of(holder) if holder and word in ("values", "items") else holder
        in_pair = word == "items" or word.startswith("named_")
        for owner in self._known_objects(path, holder) if holder and (not in_pair or keys[1:2] == (1,)) else ():
            own = class_of(owner) if is_instance(owner) else ""
            below = self.subclasses(own) if isinstance(holder, Ref) and any(map(is_self, holder.roots)) else ()
            for each in filter(in_project, (*self.ancestry(own), *below)):
                for how, _, value in (row for found in self.instance_attributes(each).values() for row in found):
                    names = self.names(path_of(each), value) if how == "=" else ()
                    if any(is_instance(it) and self.is_module_class(class_of(it)) for it in names):
                        yield path_of(each), value, keys[1 + in_pair :]

    def _handed_to_base(self, path: str, names: tuple[Value, ...], call: Call, keys: Keys) -> _Sources:
        """The same for a class of the project that is a container, by what its base gets: ``super().__init__(body, head)``."""
        found: _Sources = []
        for name in filter(self.classes, names):
            outside = tuple(each for each in self.ancestry(name) if not in_project(each))[:1]
            own = [one for each in self.methods(name, "__init__") for one in self.functions(each)]
            calls = [(path_of(name), made) for each in own for made in base_constructor_calls(each)]
            for file, made in calls if own else [(path, call)]:
                found += [(file, *each) for each in containers_behind(outside, made, keys)]
        return found

    def destructured_names(self, path: str, value: Expression) -> tuple[Value, ...]:
        """The objects and functions of the project that a variable gets when a function's result is destructured: ``net, step = build()``."""
        roots = value.roots if isinstance(value, Ref) and not value.path else ()
        return tuple(sorted({name for root in roots for name in self._destructured_parts(path, root)}))

    @query(cutoff=True, cycle=NAMES)
    def _destructured_parts(self, path: str, root: Root) -> Iterator[Value]:
        for how, made in self.assigned(path + root):
            if how == "[]" and isinstance(made, Call) and any(map(self.functions, self.names(path, made.func))):
                keys = self.unpacking(path, root, made)
                for file, item in self.elements(path, made, keys) if keys else ():
                    found = (it for it in self.names(file, item) if in_project(it))
                    yield from (it for it in found if is_module(it) or self.functions(it) or self.classes(class_of(it)))

    def _of_attribute(self, path: str, value: Ref | Attribute) -> _Sources:
        """The values that are assigned to an attribute, and for ``net.module`` the module that was wrapped."""
        holder, word = _parted(value)
        found, inner = list[tuple[str, Expression, Keys]](), False
        for owner in self._known_objects(path, holder) if holder is not None else ():
            if is_instance(owner) and in_project(owner):
                found += self._of_class_attribute(class_of(owner), word)
                inner = inner or not any(map(self.functions, self.methods(class_of(owner), word)))
            elif kept := [*self.stored_in(path, owner, word)]:
                found += _whole(kept)
            elif owner == "torch.nn.ModuleDict()" and holder is not None:
                found.append((path, holder, (word,)))
            elif is_module(owner):
                targets = self.modules.attribute(path_of(owner), word) or ()
                found += _whole((path_of(it), one) for it in targets for how, one in self.assigned(it) if how == "=")
        if not found and isinstance(holder, Ref) and not holder.path:
            found = [*self._of_passed_object(path, holder, word)]
        return [(path, holder, ())] if holder and inner and word in _INNER and not found else found

    def _of_passed_object(self, path: str, holder: Ref, word: str) -> Iterator[tuple[str, Expression, Keys]]:
        """The attribute where it is set on an object from outside, ``args.step = noise``, and that of what calls pass."""
        for root in holder.roots:
            for name in filter(in_project, self.modules.resolve(path, root)):
                yield from _whole(self._set_on(path, name, word))
                for file, value in self.passed(name):
                    if isinstance(value, Ref):
                        yield file, value._replace(path=(*value.path, word)), ()

    def _of_class_attribute(self, owner: Symbol, word: str) -> _Sources:
        """What a class, its bases and a dataclass's callers assign to an attribute; if that is nothing, what subclasses assign."""
        whole = [*self.attribute_values(owner, word), *passed_for_field(self, self.call_graph, owner, word)]
        if not whole and not any(map(self.functions, self.methods(owner, word))):
            whole += (pair for each in self.subclasses(owner) for pair in self.attribute_values(each, word))
        found = _whole(whole)
        for each in self.ancestry(owner):
            for how, method, made in self.stored_attributes(each, word) if in_project(each) else ():
                keys = self.attribute_unpacking(method, word, made) if how == "[]" else None
                found += [(path_of(each), made, keys)] if keys else []
        return found

    def _of_call(self, path: str, call: Call) -> _Expressions:
        """The module that a call wraps, the receiver of a fluent method, or what a function of the project returns."""
        found: _Expressions = []
        names, (holder, word) = self.names(path, call.func), _parted(call.func)
        if not names and holder is not None and word in FLUENT_METHODS | {"apply"}:
            return [(path, holder)]  # of a parameter without annotation
        known = [each for each in names if not each.startswith(tuple(_EMPTY))]  # a registry names what its table has
        for name in known or names:
            given = self._handed_back(call, name) if call.args else None
            if given is None and not in_project(name) and (given := holder if is_fluent(name) else None) is None:
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
        if name in _TRANSPARENT or is_progress_bar(name) or self._only_wraps(name):
            return call.args[0].value
        wrapper = module_wrapper(name) if not in_project(name) else None
        return wrapped_module(wrapper, call) if wrapper is not None else None

    def _only_wraps(self, name: Symbol) -> bool:
        """Whether a class of the project only inherits how it runs a module from a wrapper of modules."""
        bases = self.ancestry(name) if self.classes(name) and not self.call_methods(name) else ()
        return any(not in_project(each) and module_wrapper(each) for each in bases)

    def names_from_callers(self, path: str, reference: Ref) -> tuple[Value, ...]:
        """The names that a variable, or an attribute of one, may stand for by the arguments that calls pass for parameters."""
        found: set[str] = set()
        for file, value in self.values(path, reference._replace(path=())):
            names = self.names(file, value)
            if all(map(is_element, names)):
                wrapped = value.args[0].value if isinstance(value, Call) and value.args else value
                names = self.destructured_names(file, wrapped) or names
            made = names or self.made_by_parameter(file, value, *reference.path[:1])
            found.update(each for name in made for each in self.follow(name, reference.path))
        if not found and len(reference.path) == 1:
            for file, value in self.values(path, reference):
                found.update(self.names(file, value) if (file, value) != (path, reference) else ())
        if len(reference.path) == 1 and not any(map(in_project, found)):
            found.update(self._passed_for_field(path, reference))
        return tuple(sorted(found))

    @query(cutoff=True, cycle=NAMES)
    def made_by_parameter(self, path: str, value: Expression, word: str = "forward") -> Iterator[Value]:
        """The names of what a passed function or class makes, if that has the method: ``make()``, ``block(3)``, ``self.kind().train``."""
        for file, made in self.values_through_calls(path, value) if isinstance(value, Call) else ():
            if isinstance(made, Call) and isinstance(made.func, Ref):
                for name in (name for each in self.values(file, made.func) for name in self.names(*each)):
                    found = (instance_value(name),) if self.methods(name, word) else ()
                    yield from found if self.classes(name) else self.returns(name)

    def _passed_for_field(self, path: str, reference: Ref) -> Iterator[Value]:
        """The names that ``options.make`` may stand for by the arguments of the calls that construct a dataclass."""
        holder = reference._replace(path=())
        for owner in project_classes(sorted({*self.names(path, holder), *self.names_from_callers(path, holder)})):
            for file, value in passed_for_field(self, self.call_graph, owner, reference.path[0]):
                yield from self.names(file, value)


def _objects(found: tuple[str, ...]) -> Objects:
    """The names of objects, and whether all are known. Of too many it is not known which one is called."""
    if len(found) > limits.MAX_OBJECT_CLASSES:
        return Objects((), False)
    return Objects(tuple(each for each in found if each != _UNKNOWN), bool(found) and _UNKNOWN not in found)


def _whole(expressions: Iterable[tuple[str, Expression]]) -> _Sources:
    """Expressions that are what is looked for themselves."""
    return [(path, value, ()) for path, value in expressions]


def _parted(value: Expression) -> tuple[Expression | None, str]:
    """The holder of an attribute and its word: ``self.net`` and ``encode`` of ``self.net.encode``."""
    holder = receiver_of(value)
    return holder, last_identifier(value) if holder is not None else ""
