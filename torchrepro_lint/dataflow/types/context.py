"""Type inference as its own modules see it: a protocol with the questions that transfer functions ask.

With it, what ``with`` statements and decorators put in force at a program point, the gradient mode and the default
device; and the arguments of a torch call, a function and a method alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.dataflow.types.bindings import MODES
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, AbstractValue, device_type
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Operation, Record, Ref, SimpleStatement, With
from torchrepro_lint.syntax.qualified_names import in_project, is_instance, locals_prefix, path_of, root_of, simple_name
from torchrepro_lint.syntax.visitor import bodies, last_identifier, statements

if TYPE_CHECKING:
    from collections.abc import Hashable

    from torchrepro_lint.dataflow.types.bindings import Binding, ProgramPoint
    from torchrepro_lint.dataflow.types.flow import FileFlows
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.query.cycles import FixpointSolver
    from torchrepro_lint.query.database import Database
    from torchrepro_lint.query.memo_tables import MemoTable
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.nodes import Expression


class TypeInference(Protocol):
    """The protocol of type inference, for the modules that implement it."""

    @property
    def project(self) -> ValueFlow:
        """The project."""
        ...

    @property
    def database(self) -> Database:
        """The database of the project."""
        ...

    @property
    def types(self) -> MemoTable[Hashable, AbstractValue]:
        """The types that may depend on themselves."""
        ...

    @property
    def solver(self) -> FixpointSolver[AbstractValue]:
        """The solver of recursive questions."""
        ...

    @property
    def default_device(self) -> str:
        """The device of tensors that name none."""
        ...

    def infer(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        """The abstract value of an expression at a program point."""
        ...

    def program_point(self, path: str, offset: int, calls_left: int = ...) -> ProgramPoint:
        """The program point at an offset, from which so many calls are followed."""
        ...

    def flows(self, path: str) -> FileFlows:
        """The type environments of a file."""
        ...

    def tensors_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a tensor."""
        ...

    def sparse_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a sparse tensor."""
        ...

    def indices_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function that torch takes as indices."""
        ...

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """The buffers, parameters and modules that a class registers under a literal name."""
        ...


def gradients_off(inference: TypeInference, point: ProgramPoint) -> bool:
    """Whether gradients are off at a program point."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and (mode := gradient_mode(inference.project, point.path, binding.value)):
            return mode == "off"
        binding = binding.predecessors[0] if binding.predecessors else None
    return False


def device_at(inference: TypeInference, point: ProgramPoint) -> str:
    """The device of tensors that name none: of the innermost ``with torch.device(...)``, else the default."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and is_device(inference.project, point.path, binding.value):
            return device_type(inference.infer(binding.value, point))
        binding = binding.predecessors[0] if binding.predecessors else None
    return inference.default_device


class TorchArguments(Record, frozen=True):
    """The arguments of a torch call; a method's ``receiver`` is the first argument. ``operands`` are the values of those that
    the result is computed from.
    """

    inference: TypeInference
    call: Call
    point: ProgramPoint
    receiver: AbstractValue | None
    operands: tuple[AbstractValue, ...] = ()

    @property
    def input(self) -> AbstractValue:
        """The first argument."""
        found = self.value_of(0, "input")
        return UNKNOWN if found is None else found

    @property
    def tensor(self) -> AbstractValue:
        """The first argument, taken to be a tensor."""
        return as_tensor(self.input)

    def value_of(self, position: int, keyword: str = "") -> AbstractValue | None:
        """The abstract value of an argument; None if it is left out, unknown if a star may pass it."""
        if position == 0 and self.receiver is not None:
            return self.receiver
        words = (keyword, "axis") if keyword == "dim" else (keyword,)
        found = passing_argument(self.call, position - (self.receiver is not None), *words)
        if found is None:
            return None
        return UNKNOWN if found.star else self.inference.infer(found.value, self.point)

    def constant(self, position: int, keyword: str = "", default: object = None) -> object:
        """The constant value of an argument; ``default`` if it is left out, ``...`` if it is unknown."""
        found = self.value_of(position, keyword)
        if found is None:
            return default
        if found.kind == "none":
            return None
        return ... if found.value is None else found.value

    def integer(self, position: int, keyword: str = "", default: int | None = None) -> int | None:
        """The integer value of an argument; None if unknown."""
        found = self.constant(position, keyword, default)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def flag(self, position: int, keyword: str) -> bool | None:
        """The value of a boolean argument with default False; None if unknown."""
        found = self.constant(position, keyword, default=False)
        return bool(found) if isinstance(found, int) else None

    def integers(self, position: int, keyword: str = "") -> tuple[int | None, ...] | None:
        """Sizes or dimensions, as one sequence or as all arguments from ``position``; None if their number is unknown."""
        first = self.value_of(position, keyword)
        if first is None:
            return () if not self.has_stars else None
        if first.kind in ("list", "tuple"):
            return None if first.items is None else tuple(map(_number, first.items))
        if self.has_stars:
            return None
        found = self._positional(position)
        return tuple(map(_number, found)) if all(each.kind == "int" for each in found) else None

    @property
    def has_bottom(self) -> bool:
        """Whether an argument is bottom: then so is the result."""
        return any(self.inference.infer(arg.value, self.point).kind == "nothing" for arg in self.call.args)

    @property
    def has_stars(self) -> bool:
        """Whether a star passes unknown arguments."""
        return any(arg.star for arg in self.call.args)

    def rest(self, position: int) -> tuple[AbstractValue, ...]:
        """The elements of a sequence, or all positional arguments from a position."""
        first = self.value_of(position) or UNKNOWN
        if first.kind in ("list", "tuple"):
            return first.items or (first.element,)
        if self.has_stars or not first.kind:
            return (UNKNOWN,)
        return self._positional(position)

    def _positional(self, position: int) -> tuple[AbstractValue, ...]:
        found = (self.value_of(at) for at in range(position, position + len(self.call.args)))
        return tuple(each for each in found if each is not None)


def _number(what: AbstractValue) -> int | None:
    return what.value if isinstance(what.value, int) else None


def as_tensor(what: AbstractValue) -> AbstractValue:
    """A value, taken to be a tensor."""
    if what.kind == "loaded":
        return AbstractValue("tensor", device=what.device, grad=False)
    return what if what.is_tensor else AbstractValue("tensor") if what.kind else what._replace(kind="tensor")


def is_device(project: ProgramIndex, path: str, value: Expression) -> bool:
    """Whether an expression is a ``torch.device``."""
    if isinstance(value, Call):
        return last_identifier(value.func) == "device" and "torch.device" in project.names(path, value.func)
    return isinstance(value, Ref) and "torch.device()" in project.names(path, value)


@query()
def has_device_context(project: ProgramIndex) -> bool:
    """Whether the project enters a device as a context: calls inside it make their tensors there."""
    modules = project.resolver.modules
    modules.reads.record_word("entered", "")
    return any(
        is_device(project, path, value)
        for path, summary in modules.summaries()
        if any(word == "device()" or not is_instance(word) for word in summary.entered)
        for body in bodies(project.files[path])
        for statement in statements(body)
        if isinstance(statement, With)
        for value, _ in statement.items
    )


_NO_GRADIENT = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)


# Methods and functions of libraries that wrap torch's context managers: ``accelerator.inference_mode()``.
_MODE_METHODS = frozenset({"no_grad", "inference_mode"})


def gradient_mode(project: ProgramIndex, path: str, value: Expression) -> str:
    """The gradient mode that a context manager or decorator sets: ``off``, ``on``, or empty for neither."""
    called = value.func if isinstance(value, Call) else value
    argument = value.args[0].value if isinstance(value, Call) and value.args else None
    switched = argument.value if isinstance(argument, Constant) else None
    names = project.names(path, called)
    if not names and isinstance(called, Ref | Attribute) and last_identifier(called) in _MODE_METHODS:
        return "on" if switched is False else "off"
    for name in names:
        word = simple_name(name)
        if name in _NO_GRADIENT:
            return "on" if word == "inference_mode" and switched is False else "off"
        if name in ("torch.enable_grad", "torch.autograd.enable_grad"):
            return "on"
        if name in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
            return "off" if switched is False else "on"
        if in_project(name) and (_is_no_gradient_decorator(project, name) or _yields_in_no_gradient(project, name)):
            return "off"
        if not in_project(name) and word in _MODE_METHODS:
            return "on" if switched is False else "off"
    return ""


def _is_no_gradient_decorator(project: ProgramIndex, name: str) -> bool:
    """Whether a function is a decorator that returns ``torch.no_grad()(function)``, possibly from a nested one."""
    path, own = path_of(name), root_of(name)
    if not project.resolver.functions(name):
        return False
    return any(
        _applies_mode(project, path, value)
        for function in project.files[path].functions
        if function.name == own or function.name.startswith(locals_prefix(own))
        for statement in statements(function.body)
        if isinstance(statement, SimpleStatement) and statement.kind == "return"
        for value in statement.values
    )


def _yields_in_no_gradient(project: ProgramIndex, name: str) -> bool:
    """Whether a function is a context manager that yields inside ``with torch.no_grad():``."""
    return any(
        isinstance(statement, With)
        and any(
            _NO_GRADIENT.intersection(project.names(path_of(name), value.func if isinstance(value, Call) else value))
            for value, _ in statement.items
        )
        for function in project.resolver.functions(name)
        if function.generator and function.decorators
        for statement in statements(function.body)
    )


def _applies_mode(project: ProgramIndex, path: str, value: Expression) -> bool:
    match value:
        case Call(func=Call(func=mode)):
            chosen = mode.operands[1:] if isinstance(mode, Operation) and mode.op == "if" else (mode,)
            return all(_NO_GRADIENT.intersection(project.names(path, each)) for each in chosen)
    return False
