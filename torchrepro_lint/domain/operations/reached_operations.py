"""Catalogued operations on a trace: those that a program reaches and deterministic mode affects, in trace order.

A model of another library stands for one typical operation, such as a convolution. Also here: whether a program could run to its end
in strict mode, or what is known against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.domain.determinism_mode import programs_reaching_or_importing
from torchrepro_lint.domain.gradients.frozen import entered_without_gradient, frozen_calls
from torchrepro_lint.domain.gradients.liveness import receives_gradient
from torchrepro_lint.domain.gradients.modes import only_in_training_mode
from torchrepro_lint.domain.operations.cases import Case
from torchrepro_lint.domain.operations.gaps import first_gap
from torchrepro_lint.domain.operations.verdicts import strict_mode_would_stop, verdicts_of
from torchrepro_lint.domain.programs import (
    Program,
    has_backward,
    is_for_xla,
    on_accelerator,
    program_at,
    programs_reaching,
)
from torchrepro_lint.domain.rng.feasibility import is_reachable
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Expression,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_instance, is_nested, simple_name
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier, statements
from torchrepro_lint.trace.bodies import MODULE_CONTAINERS
from torchrepro_lint.trace.call_paths import place_of
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import TraceEvent, calls_in, prefix_and_rest
from torchrepro_lint.trace.traces import Context, Traces

# The typical operation of models of other libraries.
_VISION = lazy_pattern(r"(torchvision\.models|timm|segmentation_models_pytorch)\..*")
_TEXT = lazy_pattern(
    r"transformers\.(.*\.)?(?!DataCollator|TF[A-Z]|Flax|\w*(Output|Processor|Tokenizer|Config|Card|Arguments))"
    r"\w*(Model|LMHead|For[A-Z]\w+)\w*(\(\)|\.(from_config|from_pretrained))?"
)
# Its packages before it was called transformers, whose attention is made of products of matrices.
_OLD_TEXT = lazy_pattern(
    r"pytorch_(transformers|pretrained_bert)\.(.*\.)?(?!TF[A-Z]|\w*(Tokenizer|Config))"
    r"\w*(Model|LMHead|For[A-Z]\w+)\w*(\(\)|\.from_pretrained)?"
)
# Layers whose messages are selected by node and summed up by scatter_add_. Dense and fused ones have kernels of their own,
# and HeteroConv only holds others.
_GRAPH = lazy_pattern(
    r"torch_geometric\.nn\.(.*\.)?(?!Dense|CuGraph|Fused|HeteroConv|XConv|WLConv)(\w+Conv|MessagePassing|APPNP|GCN|GraphSAGE|GIN|GAT|PNA|EdgeCNN)"
)
# What makes matrices of graphs, and the layers that then run ``message_and_aggregate``, whose kernel has an order of its own.
_SPARSE_GRAPHS = frozenset({"torch_geometric.transforms.ToSparseTensor"})
_FUSED = lazy_pattern(
    r"\.(APPNP|ARMAConv|ClusterGCNConv|EGConv|GatedGraphConv|GCN2?Conv|GCN|GIN(Conv)?|GraphConv|GraphSAGE|LGConv|MFConv|"
    r"MixHopConv|PANConv|PDNConv|SAGEConv|SGConv|SignedConv|SimpleConv|SSGConv|TAGConv)$"
)
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_STANDS_FOR = (
    (_VISION, {"torch.nn.Conv2d": "the convolutions"}),
    (_TEXT, {"torch.nn.Embedding": "the embedding", _ATTENTION: "the attention"}),
    (_OLD_TEXT, {"torch.nn.Embedding": "the embedding"}),
    (_GRAPH, {"torch.Tensor.scatter_add_": "the message passing"}),
)
# Names below which all that matches above is a model or a layer; of others only what initialises parameters is.
_ONLY_MODELS = ("transformers.", "pytorch_transformers.", "pytorch_pretrained_bert.", "torch_geometric.")


# Classes whose objects run no layer by themselves, and what runs the layers of a network without naming them.
_PLAIN = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "builtins.object"})
_WITHOUT_NAMES = frozenset({"IntermediateLayerGetter", "create_feature_extractor", "getattr", "vars", "attrgetter"})
_WITHOUT_NAMES |= {"_modules", "modules", "named_modules", "children", "named_children", "get_submodule"}
_WITHOUT_NAMES |= {"methodcaller", "__dict__", "__getattr__"}

_MAKING = lazy_pattern(r"\.(from_pretrained|from_config)$")


class ReachedOperation(Record, frozen=True):
    """A catalogued operation that a trace runs or constructs: its label for messages, its row and its event."""

    label: str
    row: OperationRow
    trace_event: TraceEvent
    order: int


def operations_needing_mode(context: Context, program: Program) -> tuple[ReachedOperation, ...]:
    """The operations with a deterministic implementation that torch takes only in deterministic mode."""
    return tuple(each for each in _operations(context, program) if each.row.behaviour == "deterministic")


def operations_raising(context: Context, program: Program) -> tuple[ReachedOperation, ...]:
    """The operations at which deterministic mode would raise."""
    return tuple(each for each in _operations(context, program) if each.row.behaviour == "raises")


def why_not_strict(context: Context, program: Program) -> str:
    """What speaks against turning strict mode on in a program, in one sentence; empty if nothing is known to.

    An operation at which it would stop, or a gap between what is trained and the loss, behind which one may lie.
    """
    if _shares_weights(program):
        return "processes share the weights and update them in no fixed order, which deterministic algorithms do not change"
    stop = next(reachable(context, program, operations_raising(context, program)), None)
    if stop is not None:
        return Message(
            f"deterministic algorithms would raise an error at {stop.label} (",
            place_of(context.project, stop.trace_event),
            ")",
        )
    for each in operations_needing_mode(context, program):
        if (version := context.catalogue.stops_elsewhere(each.row)) is not None:
            told = f"with torch {version}, which the project allows, deterministic algorithms would raise an error at "
            return Message(told, f"{each.label} (", place_of(context.project, each.trace_event), ")")
    gap = first_gap(context.project, program)
    return Message(gap, ", and deterministic algorithms may raise an error there") if gap else ""


def _shares_weights(program: Program) -> bool:
    """Whether a program trains one copy of its weights in several processes, as Hogwild does."""
    return any(prefix_and_rest(program.run, "shares memory", _contains_sharing))


def _contains_sharing(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(last_identifier(call.func) == "share_memory" for _, call in calls_in(trace_events))


def why_not_strict_in(context: Context, function: str) -> str:
    """The same for the programs that reach a function; without programs, for all that the project calls."""
    told = (why_not_strict(context, each) for each in programs_reaching_or_importing(context.project, function))
    found = next(filter(None, told), "")
    if not found and strict_mode_would_stop(context, function):
        return "deterministic algorithms would raise an error at an operation that is called"
    return found


def reachable(context: Context, program: Program, found: Iterable[ReachedOperation]) -> Iterator[ReachedOperation]:
    """The operations to which some call path leads, as far as literal arguments and defaults tell."""
    return (
        each
        for each in found
        if is_reachable(context.project, program.run, each.trace_event)
        and _is_constructed(context.project, program, each.trace_event.function)
        and _may_run(context.project, program, each.trace_event)
    )


def _is_constructed(project: Traces, program: Program, function: str) -> bool:
    """Whether a run constructs an object that has this method; another program may pass one for the same parameter."""
    resolver = project.resolver
    owner = resolver.owner(function)
    if not owner or simple_name(function) == "__init__":
        return True
    related = (owner, *resolver.ancestry(owner), *resolver.subclasses(owner))
    made = {f"{each}.__init__" for each in related if resolver.functions(f"{each}.__init__")}
    return not made or not made.isdisjoint(program.run.functions)


def _may_run(project: Traces, program: Program, made: TraceEvent) -> bool:
    """Whether a run may call what it makes: not a layer of a network that runs, in an attribute that no function of the run reads, as the
    head of one of which only the features are taken.
    """
    resolver, owner = project.resolver, project.resolver.owner(made.function)
    match made.event.statement:
        case Assign(targets=(Ref(path=(word,)),), value=value) if owner and value == made.event.value:
            runs = any(each in program.run.functions for each in resolver.methods(owner, "forward"))
            plain = all(in_project(each) or each in _PLAIN for each in resolver.ancestry(owner))
            return not (runs and plain) or _is_read(project, program, word)
    return True


def _is_read(project: Traces, program: Program, word: str) -> bool:
    """Whether a function of a run reads an attribute of this name, or the parts of a network without their names."""
    for path in sorted(program.run.paths):
        summary = project.resolver.modules.summary(path)
        words = (summary.calls, summary.values, summary.inner)
        if any(has_word(each, part) for part in _WITHOUT_NAMES for each in words):
            return True
        if any(has_word(each, word) for each in words):
            facts = project.files[path]
            nested = (each.body for each in facts.functions if is_nested(each.name))
            reached = (each.body for each in facts.functions if f"{path}{each.name}" in program.run.functions)
            if any(_reads(each, word) for body in (facts.body, *nested, *reached) for each in statements(body)):
                return True
    return False


def _reads(statement: Statement, word: str) -> bool:
    """Whether a statement reads an attribute: neither assigns nor deletes it."""
    written = statement.targets if isinstance(statement, Assign) else ()
    deletes = isinstance(statement, SimpleStatement) and statement.kind == "del"
    for each in () if deletes else expressions_within(statement):
        match each:
            case Ref(path=words) if word in words and each not in written:
                return True
            case Attribute(name=name) if name == word and each not in written:
                return True
    return False


def first_of_each(context: Context, program: Program, found: Iterable[ReachedOperation]) -> list[ReachedOperation]:
    """The first event of each different operation that is ``reachable``."""
    by_name: dict[str, list[ReachedOperation]] = {}
    for each in found:
        by_name.setdefault(each.row.operation, []).append(each)
    first = (next(reachable(context, program, events), None) for events in by_name.values())
    return [each for each in first if each is not None]


def is_convolution(row: OperationRow) -> bool:
    """Whether cuDNN's own flag makes it deterministic. It does not cover the padding that some convolutions begin with."""
    return row.operation.startswith("torch.nn.Conv") and not any(each.of == "padding_mode" for each in row.when)


def device_of(context: Context, program: Program) -> str:
    """The device that a program runs on: from the settings, else an accelerator if it names one.

    The catalogue has no rows for ``xla``.
    """
    if context.settings.device != "auto":
        return context.settings.device
    if is_for_xla(context.project, program.entry.path):
        return "xla"
    return "cuda" if on_accelerator(context.project, program) else "cpu"


def _operations(context: Context, program: Program) -> tuple[ReachedOperation, ...]:
    """The operations on the program's device, in the phases that it has."""
    return _operations_from(context, program.entry)


@query()
def _operations_from(context: Context, entry: Entry) -> tuple[ReachedOperation, ...]:
    program = program_at(context.project, entry)
    device, backward = device_of(context, program), has_backward(program)
    return tuple(
        each
        for each in _all_operations(context, program)
        if (device in each.row.devices or ("any" in each.row.devices and device != "xla"))
        and _runs_phase(context, program, each, backward=backward)
    )


def _runs_phase(context: Context, program: Program, operation: ReachedOperation, *, backward: bool) -> bool:
    """Whether a program runs the affected phase of an operation. One without a backward pass trains no network."""
    if operation.row.phase == "backward":
        return backward and not _gets_no_gradient(context, program, operation)
    return backward or not only_in_training_mode(context.project.resolver, operation.trace_event)


def _gets_no_gradient(context: Context, program: Program, operation: ReachedOperation) -> bool:
    """Whether no gradient reaches an operation in this program, where it or its module runs."""
    function, value = operation.trace_event.function, operation.trace_event.event.value
    if not _is_layer(operation.row):
        return entered_without_gradient(context.project, program.run, function)
    return _trains_no_layer(context, program, function, value, reached=True)


def _is_layer(row: OperationRow) -> bool:
    return simple_name(row.signature.name)[:1].isupper()


def _trains_no_layer(context: Context, program: Program, function: str, made: Expression | None, reached: bool) -> bool:
    """Whether a program gives no gradient to the layer that an expression of a function constructs."""
    project, run = context.project, program.run
    resolver, owner = project.resolver, project.resolver.owner(function)
    ways = [resolver.methods(owner, "forward") if owner else ()]
    if owner and not MODULE_CONTAINERS.isdisjoint(resolver.ancestry(owner)) and not any(map(in_project, ways[0])):
        # A list of layers runs where the network runs that makes it for itself.
        callers = [each.caller for each in run.call_edges.get(function, ())]
        makers = [resolver.owner(each) if simple_name(each) == "__init__" else "" for each in callers]
        ways = [resolver.methods(each, "forward") if each else () for each in makers]
    untrained = [any(entered_without_gradient(project, run, each) for each in some) for some in ways]
    if untrained and all(untrained):
        return True
    frozen = frozen_calls(project, run, function, made, reached=reached)
    return frozen is not None and not any(receives_gradient(project, run, each) for each in frozen)


def runs_only_without_gradient(context: Context, case: Case) -> bool:
    """Whether programs construct a layer, and each runs it without gradient, however it keeps it.

    Functions and methods are not asked: ``cases`` looks at their callers.
    """
    if case.row.phase != "backward" or not _is_layer(case.row):
        return False
    programs = programs_reaching(context.project, case.site.function)
    return bool(programs) and all(
        _trains_no_layer(context, program, case.site.function, case.expression, reached=False) for program in programs
    )


def _all_operations(context: Context, program: Program) -> Iterator[ReachedOperation]:
    functions, paths = program.run.functions, sorted(program.run.paths)
    rows = {
        (path, verdict.case.expression): verdict.case.row
        for path, verdict in verdicts_of(context, paths)
        if verdict.case.site.function in functions
    }
    parts = _calls_of(context, program)
    fused = any(part.makes_sparse for part in parts) and not any(part.passes_edges for part in parts)
    for part in parts:
        found = [
            each
            for each in part.library
            if (each.trace_event.path, each.trace_event.event.value) not in rows and not (fused and _is_fused(each))
        ]
        for value, row in rows.items():
            for order, trace_event in part.by_value.get(value, ()):
                found.append(ReachedOperation(display_name(row.signature.name), row, trace_event, order))
        yield from sorted(found, key=lambda each: each.order)


def _calls_of(context: Context, program: Program) -> tuple[_CallIndex, ...]:
    return prefix_and_rest(program.run, "operations", partial(_index_calls, context), context.database)


class _CallIndex(Record, frozen=True):
    """The calls and subscripts of a trace fragment by file and node, with their orders, and the operations of library models
    that they construct. ``makes_sparse``: graphs become sparse matrices; ``passes_edges``: a network gets the edges nonetheless.
    """

    by_value: dict[tuple[str, Expression | None], list[tuple[int, TraceEvent]]]
    library: tuple[ReachedOperation, ...]
    makes_sparse: bool
    passes_edges: bool


def _index_calls(context: Context, start: int, trace_events: Sequence[TraceEvent]) -> _CallIndex:
    by_value: dict[tuple[str, Expression | None], list[tuple[int, TraceEvent]]] = {}
    library: list[ReachedOperation] = []
    makes_sparse = passes_edges = False
    for order, trace_event in enumerate(trace_events, start):
        resolved = trace_event.resolved
        path, event, kind, value = resolved.path, resolved.event, resolved.event.kind, resolved.event.value
        if kind == "index" or (kind == "set" and isinstance(value, Subscript)):
            subscript = event.given if kind == "index" else value
            by_value.setdefault((path, subscript), []).append((order, trace_event))
        elif kind == "call" and isinstance(value, Call):
            by_value.setdefault((path, value), []).append((order, trace_event))
            library += _library_model_operations(context, trace_event, order)
            makes_sparse = makes_sparse or not _SPARSE_GRAPHS.isdisjoint(trace_event.names)
            passes_edges = passes_edges or _passes_edges(trace_event, value)
    return _CallIndex(by_value, tuple(library), makes_sparse, passes_edges)


def _passes_edges(trace_event: TraceEvent, call: Call) -> bool:
    """Whether a call that may be of a network passes ``edge_index``, or ``data.edge_index``."""
    return any(last_identifier(arg.value) == "edge_index" for arg in call.args) and not any(
        name.startswith("torch") and not is_instance(name) for name in trace_event.names
    )


def _is_fused(operation: ReachedOperation) -> bool:
    """Whether an operation is the message passing of a layer that multiplies by a sparse matrix instead."""
    return operation.row.operation == "torch.Tensor.scatter_add_" and _FUSED.search(operation.label) is not None


def _library_model_operations(context: Context, trace_event: TraceEvent, order: int) -> Iterator[ReachedOperation]:
    """The typical operation of a library's model, or of a project class that inherits from one."""
    resolver = context.project.resolver
    for name in trace_event.names:
        outside = (
            [each for each in resolver.ancestry(name) if not in_project(each)] if resolver.classes(name) else [name]
        )
        for each in outside:
            for pattern, operations in _STANDS_FOR:
                if pattern.fullmatch(each) and _makes_model(context, each):
                    rows = ((row, what) for one, what in operations.items() for row in context.catalogue.operation(one))
                    plain = (found for found in rows if found[0].behaviour == "deterministic" and not found[0].when)
                    for row, what in plain:
                        yield ReachedOperation(
                            f"{what} of {_MAKING.sub('', display_name(each))}", row, trace_event, order
                        )
                        return


def _makes_model(context: Context, name: str) -> bool:
    """Whether a name is that of a model or its factory, which initialises parameters."""
    return name.startswith(_ONLY_MODELS) or any(
        row.family == "torch" and row.phase == "construct" and "__dict__" not in name
        for row in context.catalogue.consumer(name)
    )
