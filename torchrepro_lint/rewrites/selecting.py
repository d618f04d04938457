"""The ``index_select`` calls of a module, taken apart: what is selected from, along which dimension, by which index."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.domain.project import Project
from torchrepro_lint.resolve.program_index import Site
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Collection, Constant, Expression, Ref

_WORD = "index_select"
_FUNCTIONS = frozenset({"torch.index_select", "torch.Tensor.index_select"})
_TENSORS = frozenset({"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})
# Libraries whose objects are no torch tensors.
_OTHERS = re.compile(r"(numpy|pandas|builtins|paddle|jax|tensorflow|mlx|cupy|polars|pyarrow)\b.*")
# Where an import fails, ``object`` takes the place of a module, and has nothing of what the module has.
_STAND_IN = "builtins.object."
# What torch also accepts, for numpy's sake.
ALIASES = {"axis": "dim", "self": "input"}


class Selecting(NamedTuple):
    """The parts of a call. ``input`` is None in the method form, where ``source`` is the receiver; ``by`` is the index.

    ``out`` is the buffer that is given (None where it is left out or the constant None), ``plain`` says that nothing but
    input, dimension and index is given.
    """

    call: Call
    source: Expression
    input: Arg | None
    dim: Arg
    by: Arg
    out: Arg | None
    plain: bool


def selecting(project: Project, path: str, site: Site) -> Selecting | None:
    """The parts of a call that is torch's ``index_select`` unless inference says otherwise, else None."""
    if site.names and _FUNCTIONS.issuperset(site.names):
        return _taken_apart(site.call, None)
    source = _receiver(site.call)
    if source is None or isinstance(source, (Constant, Collection)):
        return None
    if not all(_may_be_tensor(project, name) for name in project.resolver.receiver(path, site.call.func)):
        return None
    if any(":" in name for name in site.names):
        return None
    return _taken_apart(site.call, source)


def _receiver(call: Call) -> Expression | None:
    """What a method of this name is called on."""
    match call.func:
        case Attribute(value=value, name=word) if word == _WORD:
            return value
        case Ref(start=start, roots=roots, path=(*before, word), base_end=end) if word == _WORD:
            return Ref(start, end, roots, tuple(before), end)
    return None


def _may_be_tensor(project: Project, name: str) -> bool:
    """Whether a value of this name may be a tensor: no module, class or function, and no instance of another class."""
    if name.startswith(_STAND_IN):
        return True
    if _OTHERS.fullmatch(name):
        return False
    made = name.removesuffix("()")
    if ":" in name:
        return name.endswith(("[]", "()")) and not _is_other_class(project, made)
    if "()" in made or name.endswith("[]"):
        return True
    word = made.rpartition(".")[2]
    return name.endswith("()") and (not word[:1].isupper() or word.endswith(("Tensor", "Parameter")))


def _is_other_class(project: Project, name: str) -> bool:
    if name.endswith(".<super>"):
        return True
    return bool(project.resolver.classes(name)) and not _TENSORS.intersection(project.resolver.ancestry(name))


def _taken_apart(call: Call, source: Expression | None) -> Selecting | None:
    """None where dimension or index is not given, as other classes' methods have it."""
    order = ("dim", "index") if source is not None else ("input", "dim", "index")
    given: dict[str, Arg] = {}
    plain = True
    for position, arg in enumerate(call.args):
        if arg.star:
            plain = False
        elif arg.keyword is not None:
            given[ALIASES.get(arg.keyword, arg.keyword)] = arg
        elif plain and position < len(order):
            given[order[position]] = arg
        else:
            plain = False
    if not all(name in given for name in order):
        return None
    plain = plain and len(given) == len(call.args) and set(given) <= set(order)
    out = given.get("out")
    if out is not None and isinstance(out.value, Constant) and out.value.value is None:
        out = None
    input_ = given["input"] if source is None else None
    return Selecting(call, source or given["input"].value, input_, given["dim"], given["index"], out, plain)
