"""Calls of torch's ``index_select``, as a function or as a method of a tensor, with their arguments."""

from __future__ import annotations

from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Collection, Constant, Expression, Record
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_element,
    is_instance,
    is_object,
    is_super,
    passes_call,
    simple_name,
)
from torchrepro_lint.syntax.visitor import is_none, last_identifier, receiver_of
from torchrepro_lint.trace.traces import Traces

_WORD = "index_select"
_FUNCTIONS = frozenset({"torch.index_select", "torch.Tensor.index_select"})
_TENSORS = frozenset({"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})
# Libraries whose objects are no torch tensors.
_OTHER_LIBRARIES = lazy_pattern(r"(numpy|pandas|builtins|paddle|jax|tensorflow|mlx|cupy|polars|pyarrow)\b.*")
# Where an import fails, ``object`` may stand for the module, without its attributes.
_IMPORT_FALLBACK = "builtins.object."
# Other names that torch accepts for compatibility with NumPy.
ALIASES = {"axis": "dim", "self": "input"}


class IndexSelectCall(Record, frozen=True):
    """The arguments of a call. ``input`` is None in the method form, where ``source`` is the receiver; ``by`` is the
    index.

    ``out`` is the buffer argument (None where it is left out or the constant None); ``plain``: only input, dimension
    and index are passed.
    """

    call: Call
    source: Expression
    input: Arg | None
    dim: Arg
    by: Arg
    out: Arg | None
    plain: bool


def parse_index_select(project: Traces, path: str, site: CallSite) -> IndexSelectCall | None:
    """The arguments of a call that is torch's ``index_select`` unless inference says otherwise, else None."""
    if site.names and _FUNCTIONS.issuperset(site.names):
        return _parse_arguments(site.call, None)
    source = _receiver(site.call)
    if source is None or isinstance(source, (Constant, Collection)):
        return None
    if not all(_may_be_tensor(project, name) for name in project.resolver.receiver(path, site.call.func)):
        return None
    if any(map(in_project, site.names)) or _is_of_named_tensor(project, path, site.call):
        return None
    return _parse_arguments(site.call, source)


def _is_of_named_tensor(project: Traces, path: str, call: Call) -> bool:
    """Whether a method is that of a library's tensors with named dimensions: ``x.index_select(...).values``, a method of torch's tensors."""
    spots = project.uses.spots(path)
    match here.parent if (here := spots.of(call)) is not None else None:
        case Attribute(name="values") as read:
            above = spots.of(read)
            return above is None or not (isinstance(above.parent, Call) and above.parent.func == read)
    return False


def _receiver(call: Call) -> Expression | None:
    """The receiver of an ``index_select`` method call."""
    return receiver_of(call.func) if last_identifier(call.func) == _WORD else None


def _may_be_tensor(project: Traces, name: str) -> bool:
    """Whether a value of this name may be a tensor: no module, class, function or instance of another class."""
    if name.startswith(_IMPORT_FALLBACK):
        return True
    if _OTHER_LIBRARIES.fullmatch(name):
        return False
    made = class_of(name)
    if in_project(name):
        return is_object(name) and not _is_other_class(project, made)
    if passes_call(made) or is_element(name):
        return True
    word = simple_name(made)
    return is_instance(name) and (not word[:1].isupper() or word.endswith(("Tensor", "Parameter")))


def _is_other_class(project: Traces, name: str) -> bool:
    if is_super(name):
        return True
    return bool(project.resolver.classes(name)) and not _TENSORS.intersection(project.resolver.ancestry(name))


def _parse_arguments(call: Call, source: Expression | None) -> IndexSelectCall | None:
    """None where dimension or index is missing, as in methods of other classes."""
    order = ("dim", "index") if source is not None else ("input", "dim", "index")
    old = {name: alias for alias, name in ALIASES.items()}
    found = [passing_argument(call, position, name, old.get(name, name)) for position, name in enumerate(order)]
    given = [arg for arg in found if arg is not None and not arg.star]
    if len(given) < len(order):
        return None
    out = next((arg for arg in call.args if arg.keyword == "out" and not is_none(arg.value)), None)
    *first, by, index = given
    input_ = first[0] if first else None
    return IndexSelectCall(call, source or given[0].value, input_, by, index, out, len(call.args) == len(order))
