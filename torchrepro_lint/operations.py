"""The calls of a module that are cases of catalogued operations, as far as their conditions are not known to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.candidates import readings
from torchrepro_lint.conditions import NOTHING, Known, Truth, applicable
from torchrepro_lint.determinism import warns_only
from torchrepro_lint.facts import Arg, Attribute, Call, Expression, Ref
from torchrepro_lint.gradients import forward_only, switched_off
from torchrepro_lint.signatures import Argument, arguments
from torchrepro_lint.tensors import Tensors

if TYPE_CHECKING:
    from torchrepro_lint.entries import Row, Scalar, Spelling
    from torchrepro_lint.project import Site
    from torchrepro_lint.rule import Context

# Methods that numpy, pandas or containers have too: they count on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
    | {"sort", "argsort"}
)
# Parameters through which a gradient may flow back.
_DIFFERENTIABLE = ("grid", "weight", "offset", "log_probs")
_ATTENTION = ("query", "key", "value")
_ANYTHING = Arg(0, 0, None, "**", Ref(0, 0, (), (), 0))


class Case(NamedTuple):
    """A call that a row of the catalogue may speak of."""

    site: Site
    row: Row
    truth: Truth


def cases(
    context: Context, known: Known = NOTHING, inferred: Callable[[Site], Known] = lambda _: NOTHING
) -> Iterator[Case]:
    """The rows that hold, or may hold, for each call of the module under check, those that hold first.

    ``known`` is what is certain of every call, whatever the code says; ``inferred`` tells what is known of the input of
    one. A module whose input decides is a case where it is called, with the arguments of its constructor.
    """
    for site in context.project.calls(context.path):
        name = next((each for each in operation_names(site) if context.catalogue.operation(each)), None)
        if name is not None and not _is_no_tensor(context, site, name):
            rows = context.catalogue.operation(name)
            spelling, subjects = rows[0].spelling, {condition.of for row in rows for condition in row.when}
            facts = {**surroundings(context, site, spelling), **inferred(site), **known}
            yield from _cases(context, site, name, readings(context, spelling, site, subjects), facts)
        elif input_facts := inferred(site):
            for module in (each[:-2] for each in site.names if each.endswith("()") and ":" not in each):
                if rows := context.catalogue.operation(module):
                    facts = {**surroundings(context, site, rows[0].spelling), **input_facts, **known}
                    yield from _cases(context, site, module, _constructed(context, rows[0].spelling, site), facts)


def _cases(context: Context, site: Site, name: str, readings: Iterable[Argument], known: Known) -> Iterator[Case]:
    found: dict[Row, Truth] = {}
    for argument in readings:
        for row, truth in applicable(context.catalogue.operation(name), argument, known):
            found[row] = max(truth, found.get(row, truth))
    for row, truth in sorted(found.items(), key=lambda each: -each[1]):
        if row.phase != "backward" or not _no_backward(context, site, row):
            yield Case(site, row, truth)


def surroundings(context: Context, site: Site, spelling: Spelling) -> dict[str, Scalar]:
    """What stands around a call decides: the device, how the program asks for determinism; and an input of integers."""
    known: dict[str, Scalar] = {"device": _device(context, site)}
    if warns_only(context.project, site.function):
        known["program.warn_only"] = True
    source = tensor(spelling, site.call, "input")
    if source is not None and Tensors(context.project, context.path).integral(source):
        known["input.dtype"] = "integer"
    return known


def _no_backward(context: Context, site: Site, row: Row) -> bool:
    """Whether no gradient flows back through a call: where it stands, who calls it, what it is given."""
    project, path = context.project, context.path
    if switched_off(project, site):
        return True
    given = [each for word in _differentiable(row) if (each := tensor(row.spelling, site.call, word)) is not None]
    tensors = Tensors(project, path)
    if given and all(tensors.without_gradient(each) for each in given):
        return True
    return not row.spelling.name.rpartition(".")[2][:1].isupper() and forward_only(project, site.function)


def _differentiable(row: Row) -> Iterator[str]:
    if row.operation.startswith("torch.nn.Embedding"):
        yield "weight"  # the input is indices
    elif "query" in row.spelling.parameters:
        yield from _ATTENTION
    else:
        yield from ("input", *(word for word in _DIFFERENTIABLE if word in row.spelling.parameters))


def tensor(spelling: Spelling, call: Call, word: str) -> Expression | None:
    """The tensor that a function or method is given by a parameter; a method's own is called ``input``."""
    if word == "input" and spelling.name.startswith("torch.Tensor."):
        match call.func:
            case Attribute(value=value):
                return value
            case Ref(start=start, roots=roots, path=(*before, _), base_end=end):
                return Ref(start, end, roots, tuple(before), end)
    return arguments(spelling, call)(word)


def _is_no_tensor(context: Context, site: Site, name: str) -> bool:
    """Whether a method is called on an object of a class of the project, which only shares the word."""
    if site.names or not name.startswith("torch.Tensor."):
        return False
    resolver = context.project.resolver
    owners = [
        each[:-2] for each in resolver.receiver(context.path, site.call.func) if ":" in each and each[-2:] == "()"
    ]
    return bool(owners) and not any("torch.Tensor" in resolver.ancestry(each) for each in owners)


def _constructed(context: Context, spelling: Spelling, site: Site) -> Iterator[Argument]:
    """The arguments of the constructor of a called module; nothing is known of one that is not found."""
    found = [
        each
        for _, each in context.project.values(context.path, site.call.func)
        if isinstance(each, Call) and each is not site.call
    ]
    yield from (arguments(spelling, each) for each in found)
    if not found:
        yield arguments(spelling, site.call._replace(args=(_ANYTHING,)))


def operation_names(site: Site) -> Iterator[str]:
    """The catalogue's names of what is called: public functions and classes, and methods on what may be a tensor."""
    for name in site.names:
        if ":" in name:
            continue
        if "()" not in name:
            yield name
        elif (method := _tensor_method(name)) is not None:
            yield method
    word = _word(site.call.func)
    if not site.names and word and word not in _SHARED:
        yield f"torch.Tensor.{word}"


def _tensor_method(name: str) -> str | None:
    """``torch.Tensor.cumsum`` for ``torch.randn().cumsum``: a method of what a function or module of torch returned."""
    receiver, _, word = name.rpartition(".")
    receiver = receiver.replace("[]", "")  # an element of a tensor, or of several, is one
    if not word or word.endswith("()") or not receiver.startswith("torch.") or not receiver.endswith("()"):
        return None
    made = receiver.split("()")[0].rpartition(".")[2]
    is_module = made[:1].isupper() and made not in ("Tensor", "LongTensor", "FloatTensor") and receiver.count("()") == 1
    return None if is_module else f"torch.Tensor.{word}"


def _word(func: Expression) -> str:
    match func:
        case Ref(path=(*_, word)) | Attribute(name=word):
            return word
    return ""


def _device(context: Context, site: Site) -> str:
    if context.settings.device != "auto":
        return context.settings.device
    return "cuda" if context.project.may_use_accelerator(site.function) else "cpu"
