"""Unknown calls: whether a callee that is not resolved may be code of the project, or an object of which nothing is known.

What a package from outside does is in the catalogue. A function of a package that has no row there is taken for one that
computes; an object of such a package, which may wrap anything, is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import described_packages
from torchrepro_lint.catalogue.tensor_operations import tensor_operations
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.syntax.binding import parameter_argument, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    element_value,
    in_project,
    instance_value,
    is_instance,
    is_object,
    local_symbol,
    path_of,
    simple_name,
    split_call,
    top_package,
)
from torchrepro_lint.syntax.visitor import body_expressions, is_same_reference
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.events import CallEdge
from torchrepro_lint.trace.traces import Traces

# Functions that read any object from a file, and those that choose one by a name: it may be the project's.
_READING = frozenset(
    {"torch.load", "torch.package.PackageImporter", "pickle.load", "pickle.loads", "joblib.load", "dill.load"}
    | {"cloudpickle.load"}
)
_CHOOSING = frozenset(
    {"builtins.getattr", "importlib.import_module", "builtins.__import__", "builtins.eval", "operator.attrgetter"}
    | {"builtins.vars", "builtins.globals", "builtins.locals", "pydoc.locate", "hydra.utils.instantiate"}
    | {"hydra.utils.call", "hydra.utils.get_class", "hydra.utils.get_method", "hydra.utils.get_object"}
)
# Those that import or make what they choose when they are called; what others choose is a gap where it is called.
CHOOSING_AT_ONCE = frozenset(
    {"importlib.import_module", "builtins.__import__", "hydra.utils.instantiate", "hydra.utils.call"}
)
# What the last two read holds its own code.
_ANYTHING = _READING | _CHOOSING | {"torch.jit.load", "torch.hub.load"}
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")
# Packages that only rearrange, measure or describe tensors, and need no row in a table.
_COMPUTING = frozenset({"einops", "opt_einsum", "torchmetrics", "jaxtyping", "tensordict", "PIL", "cv2"})
# Methods of Python's own containers and texts; those of tensors are in the table of tensor operations.
_OF_CONTAINERS = frozenset(
    word for kind in (dict, list, tuple, set, str, int, float, bytes) for word in dir(kind) if word[0] != "_"
)
# Methods that every object has: those that make an object apart, they run no code of a class that does not define them.
_OF_OBJECTS = frozenset(dir(object)) - {"__class__", "__init__", "__new__", "__init_subclass__", "__subclasshook__"}
_OF_TENSORS = frozenset(
    {
        "backward",
        "detach",
        "numpy",
        "item",
        "tolist",
        "data_ptr",
        "retain_grad",
        "requires_grad_",
        "register_hook",
        "new",
    }
    | {"cuda", "to", "cpu", "type", "half", "bfloat16", "contiguous", "clone", "new_zeros", "new_ones", "new_tensor"}
)
# Methods of every network that only list its parts.
_OF_NETWORKS = frozenset(
    f"{prefix}{word}" for prefix in ("", "named_") for word in ("parameters", "children", "modules", "buffers")
)
_OF_VALUES = _OF_CONTAINERS | _OF_OBJECTS | _OF_TENSORS | _OF_NETWORKS


class UnknownCalls:
    """The calls of a project that may run anything."""

    def __init__(self, project: Traces) -> None:
        self._names = project.resolver
        self.database = project.database

    def are_unknown(self, names: Sequence[str]) -> bool:
        """Whether a callee may be an object, or the method of one, of which nothing is known: of a base class, or of a
        package without a row in the catalogue. A class of the project counts where it leaves the method to subclasses,
        and none of them is named.
        """
        own = [*filter(in_project, names)]
        if all(self._is_abstract_method(name) if in_project(name) else is_from_elsewhere(name) for name in names):
            return True
        hidden = (name for name in names if not in_project(name) and not (own and is_from_elsewhere(name)))
        return any(map(self._is_unknown_object, hidden))

    def _is_unknown_object(self, name: str) -> bool:
        made, called, rest = split_call(name)
        if is_abstract(name):
            return not _is_of_values(simple_name(name))
        if not called or is_known_package(top_package(made)):
            return False
        return not rest or is_object(rest) or self._is_of_modules(simple_name(rest))

    def _is_abstract_method(self, name: str) -> bool:
        """Whether an object has only a ``forward`` that its subclasses must define."""
        targets = (
            self._names.call_methods(name) if is_instance(name) else (name,) if self._names.functions(name) else ()
        )
        return bool(targets) and all(
            all(map(_is_left_out, definition.body)) for each in targets for definition in self._names.functions(each)
        )

    def may_be_project_code(self, path: str, function: str, func: Expression) -> bool:
        """Whether a callee that has no name may run code of the project.

        A variable, an element or a result may; so may an attribute of an object's own, and a method that some network of
        the project has.
        """
        match func:
            case Ref(path=()):
                return True
            case Ref(roots=roots, path=words):
                own = self._is_own(path, function, roots) and len(words) == 1
                return (own and not _is_of_values(words[-1])) or self._is_of_modules(words[-1])
            case Attribute(name=word):
                return self._is_of_modules(word)
            case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(_, Arg(value=key), *_)):
                words = self._names.literal_texts(path, key)  # ``getattr(x, "float")()`` is a method of tensors
                return not words or not all(map(_is_of_values, words))
        return True

    def _is_own(self, path: str, function: str, roots: tuple[str, ...]) -> bool:
        """Whether a reference starts at the receiver of a method."""
        firsts = [
            each.params[0].name for each in self._names.functions(function) if each.params and takes_receiver(each)
        ]
        return any(f"{path}{root}" == local_symbol(function, word) for root in roots for word in firsts)

    def _is_of_modules(self, word: str) -> bool:
        """Whether networks of the project have a method of this name, and values do not."""
        return not _is_of_values(word) and word in self._methods()

    @query()
    def _methods(self) -> frozenset[str]:
        """The methods of all networks of the project."""
        owners = [each for module in _MODULES for each in self._names.subclasses(module)]
        found = (word for owner in owners for each in self._names.classes(owner) for word, _ in each.methods)
        return frozenset({*found, "forward"})

    def yielded(self, function: str) -> Iterator[Expression]:
        """The expressions that a generator of the project yields."""
        for definition in self._names.functions(function):
            for part in body_expressions(definition.body) if definition.generator else ():
                if isinstance(part, Operation) and part.op == "yield":
                    yield from part.operands


def passed_on_edges(project: Traces, run: Trace, path: str, function: Symbol, func: Expression) -> frozenset[Value]:
    """The names of what all calls by which a trace comes to a function pass for its parameter that is called: ``residual(x, attention)``
    calls ``forward``, which may hand it on to another method. Empty where one passes something that is not known.
    """
    return _HandedOn(project, run).of(path, function, func, limits.MAX_HANDED_ON)


class _HandedOn:
    """What the calls of a trace hand on from parameter to parameter, each way remembered while one question is answered."""

    def __init__(self, project: Traces, run: Trace) -> None:
        self._names, self._run, self._unknown = project.resolver, run, UnknownCalls(project)
        self._known: dict[tuple[Symbol, Root, int], frozenset[Value]] = {}

    def of(self, path: str, function: Symbol, func: Expression, hops: int) -> frozenset[Value]:
        root = func.roots[0] if isinstance(func, Ref) and not func.path else ""
        if (key := (function, root, hops)) not in self._known:
            self._known[key] = self._find(path, function, root, hops)
        return self._known[key]

    def _find(self, path: str, function: Symbol, root: Root, hops: int) -> frozenset[Value]:
        names, known = self._names, self._names.parameter(path + root) if root else None
        if known is None or known.is_receiver or path + known.function.name != function:
            return frozenset()
        if hops < limits.MAX_HANDED_ON and names.assigned(path + root):
            return frozenset()  # what is handed on may be another object than the parameter's
        found: set[Value] = set()
        for edge in self._run.call_edges.get(function, ()):
            for call in _calls_of_edge(names, edge) or (None,):
                bound = takes_receiver(known.function)
                arg = (
                    parameter_argument(call, known.function, known.position, bound=bound) if call is not None else None
                )
                if arg is None or arg.star:
                    return frozenset()
                passed = names.objects(path_of(edge.caller), arg.value)
                if passed.complete and not self._unknown.are_unknown(passed.names):
                    found.update(passed.names)
                elif handed := self.of(path_of(edge.caller), edge.caller, arg.value, hops - 1) if hops else ():
                    found.update(handed)
                else:
                    return frozenset()
        entered = {target for name in found if in_project(name) for target in entered_functions(names, name, "call")}
        return frozenset(found) if entered <= self._run.functions else frozenset()


def _calls_of_edge(names: Names, edge: CallEdge) -> tuple[Call, ...]:
    """The call of an edge; where a container's element is entered as it is read, ``self.layers[0](x)``, the calls of elements of it."""
    value, path = edge.event.value, path_of(edge.caller)
    if isinstance(value, Call) and edge.event.kind == "call":
        called = names.names(path, value.func) or names.object_names(path, value.func)
        runs = (each for name in called if in_project(name) for each in entered_functions(names, name, "call"))
        return (value,) if edge.function in runs else ()  # else a package gets the function
    calls = (each.value for each in names.events.of(edge.caller) if each.kind == "call")
    return tuple(
        each
        for each in calls
        if isinstance(each, Call) and isinstance(each.func, Subscript) and is_same_reference(each.func.value, value)
    )


def choosing_function(name: str) -> bool | None:
    """Whether a function chooses an object by a name, true, or reads it from a file, false; None for any other."""
    return name in _CHOOSING if name in _CHOOSING | _READING else None


def is_from_elsewhere(name: str) -> bool:
    """Whether a callee is what a container of Python's own holds, or what a file or a table of names gave: it is known if
    another source says so, as of a model that is made, and read back from its checkpoint.
    """
    made, called, rest = split_call(name)
    if called and made in _ANYTHING:
        return not rest or is_object(rest) or not _is_of_values(simple_name(rest))
    held = top_package(made) in sys.stdlib_module_names and name.startswith(element_value(instance_value(made)))
    return held and is_object(rest)


def _is_of_values(word: str) -> bool:
    """Whether all objects, or tensors, containers or texts, have a method of this name."""
    return tensor_operations().method(word) is not None or word in _OF_VALUES


@lru_cache(maxsize=1 << 12)
def is_known_package(package: str) -> bool:
    """Whether a top-level package is Python's own, or the catalogue says what it does."""
    return package in sys.stdlib_module_names or package in _COMPUTING or package in described_packages()


def _is_left_out(statement: Statement) -> bool:
    """Whether a statement of a function's body leaves the body to subclasses: ``raise NotImplementedError``, a docstring."""
    match statement:
        case SimpleStatement(kind="raise", values=(Ref(roots=roots), *_) | (Call(func=Ref(roots=roots)), *_)):
            return "builtins.NotImplementedError" in roots
        case ExpressionStatement(value=Constant()):
            return True
    return False
