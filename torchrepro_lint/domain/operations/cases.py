"""The catalogue's names of what a call runs: public functions and classes, and methods on what may be a tensor.

The calls of a module that are cases of catalogued operations, as far as their conditions are not known to fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import NOTHING, Argument, Known, Truth, applicable, arguments, refuted
from torchrepro_lint.dataflow.forwarding import readings
from torchrepro_lint.dataflow.types.tensors import Tensors
from torchrepro_lint.domain.determinism_mode import warns_only
from torchrepro_lint.domain.gradients.liveness import cut_off, forward_only, switched_off, used_without_gradient
from torchrepro_lint.domain.gradients.modes import in_evaluation, made_for_inference
from torchrepro_lint.domain.operations.order_free import order_free
from torchrepro_lint.domain.operations.subjects import gives_only_weights, of_call, of_module, receiver, tensor
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Expression, Ref
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row, Spelling
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.resolve.program_index import Site


# Methods that numpy, pandas or containers have too: they count on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
    | {"sort", "argsort"}
)
# What gives floating point numbers, as methods of nothing but tensors (and modules, which have none of the above).
_FLOATING = frozenset({"float", "half", "double", "bfloat16"})


def operation_names(context: Context, site: Site, listed: Callable[[str], object]) -> Iterator[str]:
    """Those of the names of what a call runs that are ``listed``."""
    names = [name for name in site.names if ":" not in name and "()" not in name]
    method = f"torch.Tensor.{_word(site.call.func)}"
    if not names and listed(method) and _is_method(context, site):
        yield method
    yield from filter(listed, names)


def is_other(site: Site, listed: Callable[[str], object]) -> bool:
    """Whether a call, by what it is known to run, is of no function, class or method that is ``listed``, and of no object:
    of the project's own, or of something else by its name.
    """
    return bool(site.names) and not any(":" not in name and ("()" in name or listed(name)) for name in site.names)


def _is_method(context: Context, site: Site) -> bool:
    """Whether a call is of a tensor's method: on what inference shows to be one, or of a word that nothing else has."""
    source = receiver(site.call)
    if source is None or any(":" in name for name in site.names):
        return False
    kind = Tensors(context.project, context.path).what(source).kind
    if kind:
        return kind in ("tensor", "parameter", "loaded")
    if site.names:
        return any(map(_is_of_result, site.names))
    if isinstance(source, Call) and _word(source.func) in _FLOATING:
        return True
    return _word(site.call.func) not in _SHARED and not _is_other(context, site)


def _is_of_result(name: str) -> bool:
    """Whether a name is of a method of what a function or module of torch returned: ``torch.stft().cumsum``."""
    source, _, _ = name.rpartition(".")
    source = source.replace("[]", "")  # an element of a tensor, or of several, is one
    if not source.startswith("torch.") or not source.endswith("()"):
        return False
    made = source.split("()")[0].rpartition(".")[2]
    return not made[:1].isupper() or made.endswith("Tensor") or source.count("()") > 1


def _is_other(context: Context, site: Site) -> bool:
    """Whether a method is called on an object of a class of the project, which only shares the word."""
    resolver = context.project.resolver
    owners = [
        each[:-2] for each in resolver.receiver(context.path, site.call.func) if ":" in each and each[-2:] == "()"
    ]
    return bool(owners) and not any("torch.Tensor" in resolver.ancestry(each) for each in owners)


def _word(func: Expression) -> str:
    match func:
        case Ref(path=(*_, word)) | Attribute(name=word):
            return word
    return ""


# Parameters through which a gradient may flow back.
_DIFFERENTIABLE = ("grid", "weight", "offset", "log_probs", "src", "source")
_ATTENTION = ("query", "key", "value")
_ANYTHING = Arg(0, 0, None, "**", Ref(0, 0, (), (), 0))


class Case(NamedTuple):
    """A call that a row of the catalogue may speak of."""

    site: Site
    row: Row
    truth: Truth


def _any(_: Row) -> bool:
    return True


def cases(context: Context, known: Known = NOTHING, spoken: Callable[[Row], bool] = _any) -> Iterator[Case]:
    """The rows that hold, or may hold, for each call of the module under check, those that hold first; of operations of
    which none is ``spoken`` of, nothing.

    ``known`` is what is certain of every call, whatever the code says. A module whose input decides is a case where it is
    called, with the arguments of its constructor.
    """
    operation = context.catalogue.operation
    for site in context.project.calls(context.path):
        if is_other(site, operation) or not _may_be_spoken_of(site, operation, spoken):
            continue
        name = next(operation_names(context, site, operation), None)
        if name is not None:
            if any(map(spoken, operation(name))):
                yield from _of_operation(context, site, name, known)
        else:
            names = site.names or _passed(context, site)
            for module in (each[:-2] for each in names if each.endswith("()") and ":" not in each):
                if _takes(module, site.call):
                    yield from _called(context, site, module, known)


def _may_be_spoken_of(site: Site, operation: Callable[[str], tuple[Row, ...]], spoken: Callable[[Row], bool]) -> bool:
    """Whether a call may be of more than a method of tensors of which nothing is ``spoken``: that needs no look at what it is
    called on.
    """
    if site.names:
        return True
    method = operation(f"torch.Tensor.{last_word(site.call.func)}")
    return not method or any(map(spoken, method))


def _of_operation(context: Context, site: Site, name: str, known: Known) -> Iterator[Case]:
    rows = context.catalogue.operation(name)
    spelling, subjects = rows[0].spelling, {condition.of for row in rows for condition in row.when}
    read = list(readings(context.project, context.path, spelling, site, subjects))
    if all(refuted(rows, argument, known) for argument in read):
        return  # nothing need be known of the input
    tensors = Tensors(context.project, context.path)
    facts = {**_surroundings(context, site), **of_call(tensors, spelling, site.call), **known}
    yield from _cases(context, site, name, read, facts)


def _passed(context: Context, site: Site) -> tuple[str, ...]:
    """What is called as a loss, where that is a parameter, or an attribute that a constructor is given."""
    if isinstance(site.call.func, Ref) and _LOSS.fullmatch(last_word(site.call.func)):
        return context.project.resolver.through_calls(context.path, site.call.func)
    return ()


_LOSS = re.compile(r"(?i)(?=\w*\Z)(?:\w*(criteri|loss|nll|crossentropy|cross_entropy|objective)\w*|ce)")


def _takes(module: str, call: Call) -> bool:
    """Whether a module may be called with so many values: where several may be meant, not all of them take what is passed."""
    return not module.endswith(_PAIRWISE) or len(call.args) <= 2


# Losses of an input and a target.
_PAIRWISE = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d")


def _called(context: Context, site: Site, module: str, known: Known) -> Iterator[Case]:
    """The cases of a module that is called; what its constructor alone decides is told there."""
    rows = context.catalogue.operation(module)
    if any(_by_input(row) for row in rows):
        facts = {
            **_surroundings(context, site),
            **of_module(Tensors(context.project, context.path), site.call),
            **known,
        }
        read = _constructed(context, rows[0].spelling, site)
        yield from (each for each in _cases(context, site, module, read, facts) if _by_input(each.row))


def _by_input(row: Row) -> bool:
    return any(condition.of.startswith("input.") for condition in row.when)


def _cases(context: Context, site: Site, name: str, readings: Iterable[Argument], known: Known) -> Iterator[Case]:
    found: dict[Row, Truth] = {}
    for argument in readings:
        for row, truth in applicable(context.catalogue.operation(name), argument, known):
            found[row] = max(truth, found.get(row, truth))
    for row, truth in sorted(found.items(), key=lambda each: -each[1]):
        if order_free(context.project, context.path, site.call, row, known):
            continue
        if row.phase != "backward" or not _no_backward(context, site, row):
            yield Case(site, row, truth)


def _surroundings(context: Context, site: Site) -> dict[str, str | bool]:
    """What stands around a call decides: the device, and how the program asks for determinism."""
    known: dict[str, str | bool] = {"device": _device(context, site)}
    if warns_only(context.project, site.function):
        known["program.warn_only"] = True
    return known


def _no_backward(context: Context, site: Site, row: Row) -> bool:
    """Whether no gradient flows back through a call: where it stands, who calls it, what it is given."""
    project = context.project
    if switched_off(project, site) or in_evaluation(project, site.function, site.call.start, site.guards):
        return True
    tensors, given = Tensors(project, context.path), list(_inputs(site, row))
    if given and all(tensors.without_gradient(each) for each in given):
        return True
    if row.spelling.name.rpartition(".")[2][:1].isupper():
        if made_for_inference(site) or used_without_gradient(project, context.path, site):
            return True
        return gives_only_weights(project, context.path, site)
    return forward_only(project, site.function) or cut_off(project, context.path, site.call)


def _inputs(site: Site, row: Row) -> Iterator[Expression]:
    """The tensors that a gradient may flow back to."""
    if row.spelling.name.rpartition(".")[2][:1].isupper():
        # A layer's own call: its constructor is given no tensor.
        yield from (arg.value for arg in site.call.args[:1] if _by_input(row) and not arg.star)
        return
    for word in _differentiable(row):
        if (found := tensor(row.spelling, site.call, word)) is not None:
            yield found


def _differentiable(row: Row) -> Iterator[str]:
    if row.operation.startswith("torch.nn.Embedding"):
        yield "weight"  # the input is indices
    elif "query" in row.spelling.parameters:
        yield from _ATTENTION
    else:
        yield from ("input", *(word for word in _DIFFERENTIABLE if word in row.spelling.parameters))


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


def _device(context: Context, site: Site) -> str:
    if context.settings.device != "auto":
        return context.settings.device
    return "cuda" if context.project.may_use_accelerator(site.function) else "cpu"
