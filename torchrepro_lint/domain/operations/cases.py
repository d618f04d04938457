"""Matching of calls against the catalogue's operations, by abstract evaluation of each row's conditions.

A call is a case of a row unless a condition is known to fail. Methods count on what may be a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from torchrepro_lint.catalogue.conditions import (
    NO_SUBJECTS,
    ArgumentReader,
    Subjects,
    Truth,
    applicable_rows,
    argument_reader,
    refuted,
)
from torchrepro_lint.catalogue.rows import OperationRow, Signature
from torchrepro_lint.dataflow.alternative_arguments import alternative_arguments
from torchrepro_lint.dataflow.types.tensor_facts import TensorFacts
from torchrepro_lint.dataflow.types.variables import LOSS_NAMES
from torchrepro_lint.domain.determinism_mode import only_warnings_enabled
from torchrepro_lint.domain.gradients.liveness import (
    called_without_gradient,
    is_gradient_dead,
    used_without_gradient,
)
from torchrepro_lint.domain.gradients.modes import in_evaluation_mode, in_no_grad_mode, made_for_inference
from torchrepro_lint.domain.operations.condition_variables import (
    TENSOR,
    call_subjects,
    is_only_weight_read,
    module_subjects,
    receiver,
    tensor_argument,
)
from torchrepro_lint.domain.operations.order_free import is_order_free
from torchrepro_lint.domain.operations.subscripts import ImplicitCall, implicit_calls, subscript_rows
from torchrepro_lint.domain.programs import may_use_accelerator
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import UNKNOWN_ARGUMENT
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Expression, Record, Ref
from torchrepro_lint.syntax.nodes import Collection as Display
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    constructed_class,
    in_project,
    is_inherited_constructor,
    is_instance,
    passes_call,
    project_classes,
    qualifier_of,
    simple_name,
    split_call,
    without_elements,
)
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.traces import Context

# Methods that numpy, pandas or containers have, too: they count only on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
    | {"sort", "argsort"}
)
# Conversions that only tensors have (and modules, which have none of the methods above).
_FLOATING = frozenset({"float", "half", "double", "bfloat16"})


def catalogue_names(context: Context, site: CallSite, listed: Callable[[str], object]) -> Iterator[str]:
    """The resolved names of a callee for which ``listed`` gives something."""
    names = [name for name in site.names if not in_project(name) and not passes_call(name)]
    method = TENSOR + _word(site.call.func)
    if not names and listed(method) and _is_method(context, site):
        yield method
    yield from filter(listed, names)


def is_uncatalogued(site: CallSite, listed: Callable[[str], object]) -> bool:
    """Whether a call's resolved callees are neither ``listed`` functions, classes or methods nor objects: code of the
    project, or another library's.
    """
    return bool(site.names) and not any(
        not in_project(name) and (passes_call(name) or listed(name)) for name in site.names
    )


def _with_outside_classes(context: Context, site: CallSite) -> CallSite:
    """A call that constructs an object of a project class by a class from outside, with that class among its names: one that
    inherits its constructor and its ``forward``, or ``super().__init__(...)`` in one that inherits its ``forward``.
    """
    resolver = context.project.resolver
    found: list[str] = []
    for name in site.names:
        if in_project(name):
            made = resolver.methods(name, "__init__")[:1] if resolver.classes(name) else ()
            owner = name
        else:
            made = (name,) if is_inherited_constructor(name) else ()
            owner = resolver.owner(site.function) if made else ""
        if owner and not any(map(in_project, (*made, *resolver.methods(owner, "forward")))):
            found += map(constructed_class, made)
    return site._replace(names=(*found, *site.names)) if found else site


def _is_method(context: Context, site: CallSite) -> bool:
    """Whether a call is of a tensor's method: on an inferred tensor, or by a name that only tensors have."""
    source = receiver(site.call)
    if source is None or any(map(in_project, site.names)):
        return False
    kind = TensorFacts(context.project, context.path).value(source).kind
    if kind:
        return kind in ("tensor", "parameter", "loaded")
    if site.names:
        return any(map(_is_of_result, site.names))
    if isinstance(source, Call) and _word(source.func) in _FLOATING:
        return True
    return _word(site.call.func) not in _SHARED and not _is_project_object(context, site)


# Packages of torch whose functions return no tensors: queues, handles, optimizers.
_WITHOUT_TENSORS = lazy_pattern(
    r"torch\.(multiprocessing|distributed|utils|profiler|backends|optim|package|onnx|fx|futures|monitor|cuda\.(?!\w*Tensor))\b"
)


def _is_of_result(name: str) -> bool:
    """Whether a name is of a method of a result of a torch function or module: ``torch.stft().cumsum``."""
    source = without_elements(qualifier_of(name))  # an element of a tensor, or of several, is one
    if not source.startswith("torch.") or not is_instance(source) or _WITHOUT_TENSORS.match(source):
        return False
    made = simple_name(split_call(source)[0])
    return not made[:1].isupper() or made.endswith("Tensor") or passes_call(class_of(source))


def _is_project_object(context: Context, site: CallSite) -> bool:
    """Whether a method's receiver is an object of the project that only shares the method's name."""
    resolver = context.project.resolver
    owners = [*project_classes(resolver.receiver(context.path, site.call.func))]
    return bool(owners) and not any("torch.Tensor" in resolver.ancestry(each) for each in owners)


def _word(func: Expression) -> str:
    match func:
        case Ref(path=(*_, word)) | Attribute(name=word):
            return word
    return ""


# Parameters through which a gradient may flow back.
_DIFFERENTIABLE = ("grid", "weight", "offset", "log_probs", "src", "source")
_ATTENTION = ("query", "key", "value")
_UNKNOWN_ARGUMENTS = Arg(0, 0, None, "**", Ref(0, 0, (), (), 0))


class Case(Record, frozen=True):
    """A call that matches a row of the catalogue, and whether the row's conditions hold or may hold.

    ``expression`` is the call itself, or the subscript that runs it.
    """

    site: CallSite
    row: OperationRow
    truth: Truth
    expression: Expression


def _any_row(_: OperationRow) -> bool:
    return True


def cases(
    context: Context, known: Subjects = NO_SUBJECTS, spoken: Callable[[OperationRow], bool] = _any_row
) -> Iterator[Case]:
    """The rows that hold, or may hold, for each call of the module under check, those that hold first.

    Operations without a ``spoken`` row are skipped. ``known`` is assumed of every call, whatever the code says. A
    module whose input decides is a case where it is called, with the arguments of its constructor.
    """
    yield from call_cases(context, known, spoken)
    yield from subscript_cases(context, known, spoken)


def call_cases(
    context: Context, known: Subjects = NO_SUBJECTS, spoken: Callable[[OperationRow], bool] = _any_row
) -> Iterator[Case]:
    """The cases of the calls."""
    operation = context.catalogue.operation
    for each in context.project.calls(context.path):
        site = _with_outside_classes(context, each)
        if is_uncatalogued(site, operation) or not _may_be_reported(site, operation, spoken):
            continue
        name = next(catalogue_names(context, site, operation), None)
        if name is not None:
            if any(map(spoken, operation(name))):
                yield from _operation_cases(context, site, name, known)
        else:
            names = tuple(each for each in site.names if not is_abstract(each)) or _passed_losses(context, site)
            for module in (class_of(name) for name in names if is_instance(name) and not in_project(name)):
                if _accepts(module, site.call):
                    yield from _module_cases(context, site, module, known)


def subscript_cases(
    context: Context, known: Subjects = NO_SUBJECTS, spoken: Callable[[OperationRow], bool] = _any_row
) -> Iterator[Case]:
    """The cases of the subscripts, of which the types of all variables must be inferred."""
    for each in implicit_calls(context) if any(map(spoken, subscript_rows(context))) else ():
        if any(map(spoken, context.catalogue.operation(each.name))):
            yield from _subscript_cases(context, each, known)


def _subscript_cases(context: Context, implicit: ImplicitCall, known: Subjects) -> Iterator[Case]:
    """The cases of a subscript by integer tensors."""
    site, rows = implicit.site, context.catalogue.operation(implicit.name)
    tensors = TensorFacts(context.project, context.path)
    subjects = call_subjects(tensors, rows[0].signature, site.call)
    tree = {**_known_context(context, site), **subjects, "input.index": "tensors", **known}
    for each in _matching_cases(context, site, rows, [argument_reader(rows[0].signature, site.call)], tree):
        if each.row.phase != "backward" or not is_gradient_dead(context.project, context.path, implicit.subscript):
            spelling = each.row.signature._replace(name=implicit.written)
            yield each._replace(row=each.row._replace(signature=spelling), expression=implicit.subscript)


def _may_be_reported(
    site: CallSite, operation: Callable[[str], tuple[OperationRow, ...]], spoken: Callable[[OperationRow], bool]
) -> bool:
    """Whether a call may be more than a tensor method without a ``spoken`` row: a test that needs no type inference."""
    if site.names:
        return True
    method = operation(f"torch.Tensor.{last_identifier(site.call.func)}")
    return not method or any(map(spoken, method))


def _operation_cases(context: Context, site: CallSite, name: str, known: Subjects) -> Iterator[Case]:
    rows = _rows(context, site, name)
    spelling, subjects = rows[0].signature, {condition.of for row in rows for condition in row.when}
    read = list(alternative_arguments(context.project, context.path, spelling, site, subjects))
    if all(refuted(rows, argument, known) for argument in read):
        return  # nothing need be known of the input
    tensors = TensorFacts(context.project, context.path)
    tree = {**_known_context(context, site), **call_subjects(tensors, spelling, site.call), **known}
    lengths = {condition.of for row in rows for condition in row.when if condition.test == "length"}
    plain = argument_reader(spelling, site.call)
    sequences = {word: _sequence(tensors, value) for word in sorted(lengths) if isinstance(value := plain(word), Ref)}
    sized = [_with(sequences, each) for each in read] if any(sequences.values()) else read
    yield from _matching_cases(context, site, rows, sized, tree)


def _with(known: Mapping[str, Expression | None], read: ArgumentReader) -> ArgumentReader:
    return lambda word: known.get(word) or read(word)


def _sequence(tensors: TensorFacts, value: Ref) -> Expression | None:
    """A sequence in a variable, as long as inference says it is at the call; None where it says nothing."""
    what = tensors.value(value)
    if what.kind not in ("list", "tuple"):
        return None
    items = None if what.items is None else (UNKNOWN_ARGUMENT,) * len(what.items)
    return UNKNOWN_ARGUMENT if items is None else Display(value.start, value.end, "tuple", items)


def _rows(context: Context, site: CallSite, name: str) -> tuple[OperationRow, ...]:
    """The rows of a callee. A method that is called unbound, ``torch.Tensor.median(x)``, gets its tensor as the first argument."""
    rows = context.catalogue.operation(name)
    if not name.startswith(TENSOR) or name not in site.names:
        return rows
    return tuple(
        row._replace(signature=row.signature._replace(parameters=("input", *row.signature.parameters))) for row in rows
    )


def _passed_losses(context: Context, site: CallSite) -> tuple[str, ...]:
    """The losses that may be called, where the callee is a parameter or an attribute set from one."""
    if isinstance(site.call.func, Ref) and LOSS_NAMES.fullmatch(last_identifier(site.call.func)):
        resolver = context.project.resolver
        passed = resolver.names_from_callers(context.path, site.call.func)
        return passed if not any(map(is_abstract, passed)) else resolver.object_names(context.path, site.call.func)
    return ()


def _accepts(module: str, call: Call) -> bool:
    """Whether a module accepts this number of arguments: of several candidates, not all do."""
    return not module.endswith(_PAIRWISE) or len(call.args) <= 2


# Losses of an input and a target.
_PAIRWISE = ("CrossEntropyLoss", "NLLLoss", "NLLLoss2d")


def _module_cases(context: Context, site: CallSite, module: str, known: Subjects) -> Iterator[Case]:
    """The cases of a module's call; conditions on its constructor alone are matched at the constructor."""
    rows = context.catalogue.operation(module)
    if any(_is_decided_by_input(row) for row in rows):
        tree = {
            **_known_context(context, site),
            **module_subjects(TensorFacts(context.project, context.path), site.call),
            **known,
        }
        read = _constructor_arguments(context, rows[0].signature, site)
        yield from (each for each in _matching_cases(context, site, rows, read, tree) if _is_decided_by_input(each.row))


def _is_decided_by_input(row: OperationRow) -> bool:
    return any(condition.of.startswith("input.") for condition in row.when)


def _matching_cases(
    context: Context,
    site: CallSite,
    rows: tuple[OperationRow, ...],
    readings: Iterable[ArgumentReader],
    known: Subjects,
) -> Iterator[Case]:
    found: dict[OperationRow, Truth] = {}
    for argument in readings:
        for row, truth in applicable_rows(rows, argument, known):
            found[row] = max(truth, found.get(row, truth))
    for row, truth in sorted(found.items(), key=lambda each: -each[1]):
        if is_order_free(context.project, context.path, site.call, row, known):
            continue
        if row.phase != "backward" or not _has_no_backward(context, site, row):
            yield Case(site, row, truth, site.call)


def _known_context(context: Context, site: CallSite) -> dict[str, str | bool]:
    """Condition variables that the surroundings decide: the device, and how the program asks for determinism."""
    known: dict[str, str | bool] = {"device": _device(context, site)}
    if only_warnings_enabled(context.project, site.function):
        known["program.warn_only"] = True
    return known


def _has_no_backward(context: Context, site: CallSite, row: OperationRow) -> bool:
    """Whether no gradient flows back through a call: by its place, its callers or its arguments."""
    project = context.project
    if in_no_grad_mode(project, site) or in_evaluation_mode(project, site.function, site.call.start, site.guards):
        return True
    tensors, given = TensorFacts(project, context.path), list(_differentiable_inputs(site, row))
    if given and all(tensors.without_gradient(each) for each in given):
        return True
    if simple_name(row.signature.name)[:1].isupper():
        if made_for_inference(site) or used_without_gradient(project, context.path, site):
            return True
        return is_only_weight_read(project, context.path, site)
    return called_without_gradient(project, site.function) or is_gradient_dead(project, context.path, site.call)


def _differentiable_inputs(site: CallSite, row: OperationRow) -> Iterator[Expression]:
    """The tensors that a gradient may flow back to."""
    if simple_name(row.signature.name)[:1].isupper():
        # A layer is differentiable in its call; its constructor has no tensor argument.
        yield from (arg.value for arg in site.call.args[:1] if _is_decided_by_input(row) and not arg.star)
        return
    for word in _differentiable_parameters(row):
        if (found := tensor_argument(row.signature, site.call, word)) is not None:
            yield found


def _differentiable_parameters(row: OperationRow) -> Iterator[str]:
    if row.operation.startswith("torch.nn.Embedding"):
        yield "weight"  # the input is indices
    elif "query" in row.signature.parameters:
        yield from _ATTENTION
    else:
        yield from ("input", *(word for word in _DIFFERENTIABLE if word in row.signature.parameters))


def _constructor_arguments(context: Context, spelling: Signature, site: CallSite) -> Iterator[ArgumentReader]:
    """The arguments of a called module's constructor; unknown ones where no constructor is found."""
    found = [
        each
        for path, each in context.project.values(context.path, site.call.func)
        if isinstance(each, Call) and (path, each) != (context.path, site.call)
    ]
    yield from (argument_reader(spelling, each) for each in found)
    if not found:
        yield argument_reader(spelling, site.call._replace(args=(_UNKNOWN_ARGUMENTS,)))


def _device(context: Context, site: CallSite) -> str:
    if context.settings.device != "auto":
        return context.settings.device
    return "cuda" if may_use_accelerator(context.project, site.function) else "cpu"
