"""Callee origins: where a callee that has no name comes from, and the first origin that cannot be followed, as a reason.

The callee is followed backward through variables, arguments, attributes, containers and returned values, as an object is (see
``resolve/object_sources.py``), but what is left at an end is judged: a constant cannot be called, an object from a package is no
code of the project, and an argument that nothing passes has its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import containers_behind
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.domain.operations.unknown_calls import CHOOSING_AT_ONCE, choosing_function, is_from_elsewhere
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.definitions import Parameter
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import parameter_argument, takes_receiver
from torchrepro_lint.syntax.definitions import EACH, ITEM, Keys, joined_keys, subscript_keys
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Expression,
    Lambda,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    enclosing_function,
    in_project,
    instance_value,
    is_absolute,
    is_element,
    is_instance,
    is_lambda,
    is_module,
    is_relative,
    passes_call,
    path_of,
    readable_name,
    simple_name,
    split_call,
    split_name,
)
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of
from torchrepro_lint.trace.bodies import MODULE_CONTAINERS
from torchrepro_lint.trace.traces import Traces

# The kinds of reasons, each with its sentence; ``{}`` is what cannot be followed.
REASONS = {
    "argument": "no value that is passed for {} is known",
    "attribute": "no value of {} is known",
    "value": "{} may be code of the project that this program is not known to reach",
    "element": "the elements of {} are not known",
    "run-time": "{} chooses it while the program runs",
    "stored": "{} reads it from a file",
    "subclass": "{} is left to subclasses, and none is known",
    "missing": "{} is not defined in the files of the project",
    "limit": "the search ends at {}",
    "loss": "no call before it is known",
    "package": "no table describes the package {}",
}
# Functions whose results have the elements of their arguments, and methods of a container that give one of its elements, or all: those
# of which no key is known.
_ITERATING = frozenset({"builtins.filter", "collections.ChainMap"})
_TAKING = frozenset({"popleft", "popitem"})
_ALL_OF = frozenset({"values", "items", "children", "modules", "named_children", "named_modules"})
_OF_CONTAINER = lazy_pattern(r"\.?\b(items|values|copy|get|pop|setdefault)\(\)")
_THROUGH = frozenset({"if", "or", "and", "+", "|", "await", "*", ":="})


class Reason(Record, frozen=True):
    """Why a call is not followed: its kind, one of ``REASONS``, and what could not be followed, as it is written.

    Calls with one ``origin`` have one cause; empty where that is not told.
    """

    kind: str
    what: str
    origin: str = ""

    @property
    def sentence(self) -> str:
        """The reason in words: ``no value that is passed for step is known``."""
        return REASONS[self.kind].format(self.what)


class Origins(Record, frozen=True):
    """The reason why a callee is not known, if there is one, else the functions, classes and objects of the project that it may be,
    and those from ``outside``.
    """

    reason: Reason | None
    names: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


class _Origin(NamedTuple):
    """An expression of a file on the way, the keys by which an element is taken of it, and whether it is the object whose method or
    attribute is called.
    """

    path: str
    value: Expression
    keys: Keys = ()
    held: bool = False


@query()
def _decorator_words(names: Names) -> frozenset[str]:
    """The last words of all decorators of the project."""
    names.modules.reads.record_word("decorators", "")
    every = (each for _, summary in names.modules.summaries() for each in summary.decorators)
    return frozenset(simple_name((path or roots)[-1]) for roots, path in every if roots or path)


class CalleeOrigins:
    """The origins of callees of one project."""

    def __init__(self, project: Traces) -> None:
        self._project, self._names = project, project.resolver
        self._calls: dict[str, list[tuple[str, Call]]] = {}  # by function, those whose results are followed

    def of(self, path: str, callee: Expression) -> Origins:
        """The origins of a callee of a file; neither a reason nor names where it cannot be code of the project."""
        queue, seen, names = [_Origin(path, callee)], set[object](), set[str]()
        self._calls.clear()
        while queue:
            one = queue.pop()
            value = one.value
            what = value.access_path if isinstance(value, Ref) else value
            key = one.path, what, one.keys, one.held
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > limits.MAX_CALLEE_ORIGINS:
                return Origins(Reason("limit", f"{limits.MAX_CALLEE_ORIGINS} expressions"))
            found = self._step(one)
            if isinstance(found, Reason):
                return Origins(found)
            if not found and not one.keys:
                names.update(self._names.names(one.path, value))
            queue += reversed(found)
        own = sorted(filter(in_project, names))
        return Origins(None, tuple(own), tuple(sorted(names.difference(own))))

    def _step(self, one: _Origin) -> list[_Origin] | Reason:
        """The expressions one step back; a reason where there is none to follow."""
        path, value, keys, _ = one
        if not keys and (known := self._known(path, value)) is not None:
            return known
        match value:
            case Ref(path=()):
                return self._of_variable(one, value)
            case Ref():
                return self._of_attribute(one, value)
            case Call():
                return self._of_call(one, value)
            case Subscript(value=inner):
                return [_Origin(path, inner, subscript_keys(value, keys))]
            case Collection() | Comprehension() if keys:
                return self._entries(one)
            case Operation(op=op, operands=operands) if op in _THROUGH:
                skipped = op in ("if", ":=")
                return [_Origin(path, each, keys) for each in operands[skipped:]]
        return []

    def _entries(self, one: _Origin) -> list[_Origin]:
        """What a container is seen to have under the first of some keys."""
        if not one.keys or len(one.keys) > limits.MAX_KEYS:
            return []
        return [_Origin(*each) for each in self._names.entries(one.path, one.value, one.keys)]

    def _known(self, path: str, value: Expression) -> list[_Origin] | Reason | None:
        """Nothing more to follow where a value has names, or a reason where these say that it may be anything; None without names."""
        names = [name for name in self._names.names(path, value) if not is_abstract(name)]
        if not names:
            return None
        if not all(map(is_from_elsewhere, names)):
            return []
        chosen = (split_call(name) for name in names)
        # What a chosen function gives is behind the call of that function, which is a gap of its own.
        found = [
            reason
            for made, _, rest in chosen
            if (reason := _reason_of(made)) is not None and not passes_call(_OF_CONTAINER.sub("", rest))
        ]
        return found[0]._replace(origin=self._origin(path, value)) if found else []

    def _origin(self, path: str, value: Expression) -> str:
        """The place of the call that made an object."""
        whole = [value, value._replace(path=())] if isinstance(value, Ref) else [value]
        made = (pair for each in whole for pair in self._names.values(path, each) if isinstance(pair[1], Call))
        return next((f"{file}:{call.start}" for file, call in made), f"{path}:{describe(value)}")

    def _of_variable(self, one: _Origin, value: Ref) -> list[_Origin] | Reason:
        found: list[_Origin] = []
        for root in value.roots:
            targets = self._names.modules.resolve(one.path, root)
            if not targets and self._is_in_package(one.path, root):
                return Reason("missing", root.lstrip("."))
            for name in targets:
                behind = self._behind_name(name, one)
                if isinstance(behind, Reason):
                    return behind
                found += behind
        return found + self._entries(one)

    def _is_in_package(self, path: str, root: str) -> bool:
        """Whether an imported name that leads nowhere begins with a package of the project, or with dots."""
        parts = root.split(".")
        heads = (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
        return is_relative(root) or (
            is_absolute(root)
            and any(
                is_module(each) and path_of(each).endswith(".py")
                for head in heads
                for each in self._names.modules.resolve(path, head)
            )
        )

    def _behind_name(self, name: str, one: _Origin) -> list[_Origin] | Reason:
        """The values that a name of the project gets."""
        file, colon, _ = split_name(name)
        if not colon:
            return []
        found: list[_Origin] = []
        parameter = self._names.parameter(name)
        if parameter is not None:
            given = self._of_parameter(name, parameter, one)
            if isinstance(given, Reason):
                return given
            found += given
        assigned = self._names.assigned(name)
        if len(assigned) > limits.MAX_ASSIGNMENTS:
            return Reason("limit", f"{limits.MAX_ASSIGNMENTS} assignments")
        for how, value in assigned:
            if how in ("=", "with"):
                found.append(_Origin(file, value, one.keys, one.held))
            elif how == "[]":
                taken = self._names.unpacking(file, name[len(file) :], value)
                keys = joined_keys((EACH,) if taken is None else taken, one.keys)
                found.append(_Origin(file, value, keys, one.held))
        return found

    def _of_parameter(self, name: str, parameter: Parameter, one: _Origin) -> list[_Origin] | Reason:
        """What calls pass for a parameter; its default where none is seen, since a package that calls the function passes no code."""
        function, param, position = parameter
        path = path_of(name)
        if param.kind.startswith("*") or (position == 0 and takes_receiver(function)):
            return []  # what a call passes by a star or a keyword is entered where it is passed
        own = path + function.name
        given = [*self._bound(own, parameter)] or self._names.passed(name) or self._passed_to_object(own, parameter)
        if given:
            return [_Origin(file, value, one.keys, one.held) for file, value in given]
        if mapped := self._mapped(own, position):
            return [_Origin(path, each, (EACH, *one.keys), one.held) for each in mapped]
        if param.default is not None:
            return [_Origin(path, param.default, one.keys, one.held)]
        if self._is_decorator(function.name) or (one.held and self._is_called_from_outside(own)) or self._is_base(own):
            return []
        return Reason("element" if one.keys else "argument", param.name, f"{own} {param.name}")

    def _mapped(self, function: str, position: int) -> list[Expression]:
        """The containers whose elements a lambda gets for a parameter: ``map(lambda transform: transform(image), transforms)``."""
        path = path_of(function)
        around = [each for each in self._project.calls(path) if each.function == enclosing_function(function)]
        return [
            site.call.args[position + 1].value
            for site in (around if is_lambda(function) else ())
            if "builtins.map" in site.names and len(site.call.args) > position + 1
            for first in (site.call.args[0].value,)
            if isinstance(first, Lambda) and path + first.function == function
        ]

    def _bound(self, function: str, parameter: Parameter) -> Iterator[tuple[str, Expression]]:
        """What the calls that are being followed pass for a parameter."""
        for path, call in self._calls.get(function, ()):
            arg = self._names.call_graph.argument(path, call, parameter.function, parameter.position)
            if arg is not None and not arg.star:
                yield path, arg.value

    def _passed_to_object(self, method: str, parameter: Parameter) -> list[tuple[str, Expression]]:
        """What calls of objects pass for a parameter of their ``forward`` or ``__call__``: ``self.residual(x, self.attention)``."""
        if simple_name(method) not in ("forward", "__call__"):
            return []
        owner = self._names.owner(method)
        objects = {instance_value(each) for each in (owner, *self._names.subclasses(owner))} if owner else set()
        found: list[tuple[str, Expression]] = []
        for path in self._project.files if objects else ():
            for site in self._project.calls(path):
                arg = parameter_argument(site.call, parameter.function, parameter.position, bound=True)
                if arg is not None and not arg.star and not objects.isdisjoint(self._called_objects(path, site)):
                    found.append((path, arg.value))
        return found

    def _called_objects(self, path: str, site: CallSite) -> tuple[str, ...]:
        """The names of a callee; of an element of a container, ``self.layers[0](x, step)``, the objects that it may be."""
        func = site.call.func
        if site.names and not all(map(is_element, site.names)):
            return site.names
        is_held = isinstance(func, Subscript) or (isinstance(func, Ref) and (not func.path or bool(site.names)))
        return self._names.object_names(path, func) if is_held else ()

    def _is_called_from_outside(self, function: str) -> bool:
        """Whether no call of the project is by the name of a function: a package calls it, as ``apply`` does with each module."""
        return not self._names.call_graph.calls(simple_name(function))

    def _is_base(self, method: str) -> bool:
        """Whether no call runs a constructor: all objects of its class are of subclasses that have one of their own."""
        calls, owner = self._names.call_graph, self._names.owner(method) if simple_name(method) == "__init__" else ""
        runs = (call for each in self._names.functions(method) for call in calls.of(method, each))
        is_base = bool(owner and self._names.subclasses(owner)) and not self._names.has_namespaces
        return is_base and not any(runs) and not calls.is_address_taken(method)

    def _is_decorator(self, function: str) -> bool:
        """Whether a function, or one around it, is used as a decorator: what it gets is entered by its own name."""
        return not _decorator_words(self._names).isdisjoint(readable_name(function).split("."))

    def _of_attribute(self, one: _Origin, value: Ref) -> list[_Origin] | Reason:
        """The values of an attribute of an object or a module of the project."""
        path, keys = one.path, one.keys
        word, holder = value.path[-1], value._replace(path=value.path[:-1])
        owners = [name for name in self._names.names_of(path, holder) if not is_abstract(name)]
        if not owners:
            return [_Origin(path, holder, held=True)]
        found: list[_Origin] = []
        for owner in owners:
            if is_instance(owner) and in_project(owner):
                behind = self._of_instance(class_of(owner), word, keys)
                if not behind and not self._has_outside_base(class_of(owner)) and not keys:
                    return Reason("attribute", describe(value))
                found += behind
            elif is_module(owner):
                for target in self._names.modules.attribute(path_of(owner), word) or ():
                    more = self._behind_name(target, one)
                    if isinstance(more, Reason):
                        return more
                    found += more
        return found + self._entries(one)

    def _of_instance(self, owner: str, word: str, keys: Keys) -> list[_Origin]:
        """The values that a class, its bases and its subclasses assign to an attribute."""
        found: list[_Origin] = []
        for each in dict.fromkeys((*self._names.ancestry(owner), *self._names.subclasses(owner))):
            if not in_project(each):
                continue
            path = path_of(each)
            for how, method, made in self._names.stored_attributes(each, word):
                taken = self._names.attribute_unpacking(method, word, made) or (EACH,) if how == "[]" else ()
                found.append(_Origin(path, made, joined_keys(taken, keys)))
            for how, made in self._names.assigned(f"{each}.{word}"):
                if how in ("=", "[]"):
                    found.append(_Origin(path, made, (EACH, *keys) if how == "[]" else keys))
        return found

    def _has_outside_base(self, owner: str) -> bool:
        """Whether a class may get an attribute from a base that is not the project's."""
        return any(not in_project(each) and each != "builtins.object" for each in self._names.ancestry(owner))

    def _of_call(self, one: _Origin, call: Call) -> list[_Origin] | Reason:
        """The expressions behind a call's result. A callee that is not known is a gap of its own."""
        path, keys = one.path, one.keys
        names = self._names.names(path, call.func)
        if held := [*containers_behind(names, call, keys)]:
            return [_Origin(path, *each) for each in held]
        word = last_identifier(call.func)
        holder = receiver_of(call.func) if word in _TAKING | _ALL_OF else None
        if holder is not None and not any(map(in_project, names)):
            return [_Origin(path, holder, (ITEM, *keys) if word in _TAKING else keys)]
        found = self._entries(one)
        for name in names:
            if name in _ITERATING:
                found += (_Origin(path, arg.value, keys) for arg in call.args)
            elif name in MODULE_CONTAINERS and keys:
                found += (_Origin(path, arg.value, keys if arg.star else keys[1:]) for arg in call.args)
            elif name in CHOOSING_AT_ONCE:
                return []
            elif not keys and (reason := _reason_of(name)) is not None:
                return reason._replace(origin=f"{path}:{call.start}")
            elif in_project(name) and not self._names.classes(name):
                self._calls.setdefault(name, []).append((path, call))
                made = self._names.return_expressions(name)
                found += (_Origin(path_of(name), each, keys) for each in made)
        return found


def _reason_of(function: str) -> Reason | None:
    """The reason why the result of a function is not known that chooses an object or reads it from a file; None for any other."""
    chooses = None if function in CHOOSING_AT_ONCE else choosing_function(function)
    return None if chooses is None else Reason("run-time" if chooses else "stored", function.removeprefix("builtins."))
