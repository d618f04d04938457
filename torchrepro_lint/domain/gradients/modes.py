"""Grad modes: whether gradients are recorded at a call, by ``no_grad`` blocks, decorators and functions that wrap them.

Also here: code that runs only in evaluation mode, code that trains nothing (data preparation, plotting, export), and statements that
freeze parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchrepro_lint.dataflow.types.context import gradient_mode
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.control_flow import Guard
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Arg,
    Assign,
    Attribute,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    in_project,
    local_symbol,
    outermost_function,
    path_of,
    simple_name,
    split_name,
)
from torchrepro_lint.syntax.visitor import all_statements, blocks, expressions_within, last_identifier, statements
from torchrepro_lint.trace.events import TraceEvent, guards

_EVALUATION_FLAGS = frozenset({"inference_mode", "deploy", "exporting", "is_exporting"})
_EVALUATION_STEPS = frozenset(
    f"{word}_{part}" for word in ("validation", "test", "predict") for part in ("step", "step_end", "epoch_end")
)
# Functions of torch that return true while a network is exported. A traced or scripted one may be trained.
_EXPORTING = frozenset({"is_in_onnx_export", "is_exporting"})


def in_evaluation_mode(project: ProgramIndex, function: str, at: int, guards: Iterable[Guard]) -> bool:
    """Whether a call at an offset of a function, under ``guards``, runs only when the network is not in training mode."""
    for guard in guards:
        if guard.kind == "else" and _is_training(guard.value):
            return True
        if guard.kind == "if" and _is_evaluating(guard.value):
            return True
    return is_evaluation_step(project, function) or any(
        _returns_in_training(each.body, at) for each in project.resolver.functions(function)
    )


def only_in_training_mode(names: Names, trace_event: TraceEvent) -> bool:
    """Whether an event of a trace happens only when the network is in training mode: under ``if self.training:``, or behind
    ``if not training: return x`` of a function on its call path.
    """
    always = _always_training(names, trace_event)
    tests = (each for each in guards(trace_event) if each.kind != "with")
    if any(_implies_training(each.value, always, truth=each.kind == "if") for each in tests):
        return True
    functions = [step.into for step in trace_event.call_path] or [trace_event.function]
    places = [*(step.event for step in trace_event.call_path[1:]), trace_event.event]
    return any(
        _returns_in_evaluation(each.body, place.statement.start, always)
        for function, place in zip(functions, places, strict=True)
        for each in names.functions(function)
    )


def _always_training(names: Names, trace_event: TraceEvent) -> frozenset[Root]:
    """The parameters ``training`` for which the calls that lead to an event pass a literal: ``drop_path(x, 0.1, True)``."""
    return frozenset(
        local_symbol(function.name, param.name)
        for step in trace_event.call_path
        if isinstance(call := step.event.value, Call)
        for function in names.functions(step.into)
        for arg, param in names.call_graph.receiving(step.path, call, function)
        if param.name == "training" and isinstance(arg.value, Constant) and arg.value.value
    )


def _implies_training(test: Expression, always: frozenset[Root], *, truth: bool) -> bool:
    """Whether a test with this truth says that the network is in training mode, by ``self.training`` or a parameter of that name."""
    match test:
        case Operation(op="not", operands=(inner,)):
            return _implies_training(inner, always, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands):
            holds = any if truth == (op == "and") else all
            return holds(_implies_training(each, always, truth=truth) for each in operands)
    if not isinstance(test, Ref) or last_identifier(test) != "training":
        return False
    return truth and (bool(test.path) or always.isdisjoint(test.roots))


def _returns_in_evaluation(body: tuple[Statement, ...], offset: int, always: frozenset[Root]) -> bool:
    """Whether ``if not training: return x`` precedes an offset in a body, or in a block around it."""
    for statement in body:
        if statement.start <= offset < statement.end:
            return any(_returns_in_evaluation(block, offset, always) for block in blocks(statement))
        match statement:
            case If(test=test, body=(*_, SimpleStatement(kind="return" | "raise"))):
                if _implies_training(test, always, truth=False):
                    return True
    return False


def is_evaluation_step(project: ProgramIndex, function: str) -> bool:
    """Whether Lightning runs a method without gradients: validation, test and prediction steps."""
    outer = outermost_function(function)
    if simple_name(outer) not in _EVALUATION_STEPS:
        return False
    owner = project.resolver.owner(outer)
    return bool(owner) and "LightningModule" in map(simple_name, project.resolver.ancestry(owner))


def _returns_in_training(body: tuple[Statement, ...], offset: int) -> bool:
    """Whether ``if self.training: return ...`` precedes an offset in a body, or in a block around it."""
    for statement in body:
        if statement.start <= offset < statement.end:
            return any(_returns_in_training(block, offset) for block in blocks(statement))
        match statement:
            case If(test=test, body=(*_, SimpleStatement(kind="return" | "raise"))) if _is_training(test):
                return True
    return False


def _is_training(test: Expression) -> bool:
    """``self.training``, a test that gradients are recorded, or that nothing is exported."""
    match test:
        case Call(func=func):
            return last_identifier(func) == "is_grad_enabled"
        case Operation(op="not", operands=(Call(func=func),)):
            return last_identifier(func) in _EXPORTING
    return isinstance(test, Ref) and test.path[-1:] == ("training",)


def _is_evaluating(test: Expression) -> bool:
    """``not self.training``, alone or in a conjunction; a test for export; or a flag named after evaluation."""
    match test:
        case Call(func=func):
            return last_identifier(func) in _EXPORTING
        case Ref():
            return last_identifier(test) in _EVALUATION_FLAGS
        case Operation(op="not", operands=(inner,)):
            return _is_training(inner)
        case Operation(op="and", operands=operands):
            return any(map(_is_evaluating, operands))
    return False


# The names by which a file turns gradients off.
GRADIENT_MODES = ("no_grad", "inference_mode", "set_grad_enabled")
_GRADIENT_STEPS = (".forward", ".backward")
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


def grad_mode_at(project: ProgramIndex, function: str, guards: Iterable[Guard]) -> str:
    """The innermost grad mode around a call, its function's decorators included: ``off``, ``on``, or empty."""
    path = path_of(function)
    modes = [mode for guard in guards if guard.kind == "with" and (mode := gradient_mode(project, path, guard.value))]
    decorators = (each for one in project.resolver.functions(function) for each in one.decorators)
    modes = [*(mode for each in decorators if (mode := gradient_mode(project, path, each))), *modes]
    if not modes and _in_autograd_function(project, function):
        return "off"
    return modes[-1] if modes else ""


def in_no_grad_mode(project: ProgramIndex, site: CallSite) -> bool:
    """Whether the innermost grad mode around a call is off."""
    return grad_mode_at(project, site.function, site.guards) == "off"


def _in_autograd_function(project: ProgramIndex, function: str) -> bool:
    """Whether it is a step of an ``autograd.Function``, in which torch records nothing."""
    if not function.endswith(_GRADIENT_STEPS):
        return False
    owner = project.resolver.owner(function)
    return bool(owner) and not _FUNCTIONS.isdisjoint(project.resolver.ancestry(owner))


# Endings of the names of base classes. A class that is also a module belongs to a network.
_DATA_BASES = ("Dataset", "Data", "DataModule", "Transform", "IterDataPipe", "MapDataPipe")
_DATA_METHODS = ("__getitem__", "__iter__", "__next__", "__call__", "train_dataloader")
# Names of functions that fold several layers into one, for inference only.
_FOLDING = lazy_pattern(r"_?(fuse|fold|merge|reparam\w*|switch_to_deploy|convert_to_deploy)(_\w+)?")
# Names of packages and modules that hold only such code. A network in a data module may be trained, one in an export
# module is not.
_DATA_MODULES = lazy_pattern(r"data|data_?sets?|data_?loaders?|loaders?|samplers?")
_OUTPUT_MODULES = lazy_pattern(r"visuali[sz]\w*|plot(s|ting)?|export(er|ers|s|ing)?|export_\w+|\w+_export")
_PIPELINE_STEPS = lazy_pattern(r"_?(pre_?process\w*|collate\w*|load_(\w+_)?data(_?set|_?loader)?)")


def trains_nothing(project: ProgramIndex, function: str) -> bool:
    """Whether a function prepares data or produces output: by its class, its module's name, or its own name."""
    path, _, name = split_name(function)
    outer = outermost_function(name)
    words = path.removesuffix(".py").split("/")
    if _PIPELINE_STEPS.fullmatch(simple_name(outer)) or any(map(_OUTPUT_MODULES.fullmatch, words)):
        return True
    owner = project.resolver.owner(f"{path}:{outer}")
    ancestry = project.resolver.ancestry(owner) if owner else ()
    if owner and project.resolver.is_module_class(owner):
        return False
    if any(_gives_data(project, owner, each) for each in ancestry[1:]) or any(map(_DATA_MODULES.fullmatch, words)):
        return True
    return "transforms" in words[:-1] and path.rpartition("/")[0] in _transform_directories(project)


def _gives_data(project: ProgramIndex, owner: str, base: str) -> bool:
    """Whether a class gives data, by the name of a base: with one of the project's own if its objects are indexed, iterated or called, or
    its loaders are asked for. A trainer of which ``TrainerDataset`` is a part does not.
    """
    if not simple_name(base).endswith(_DATA_BASES):
        return False
    methods = (name for word in _DATA_METHODS for name in project.resolver.methods(owner, word))
    return not in_project(base) or any(not name.startswith("builtins.object") for name in methods)


@query()
def _transform_directories(project: ProgramIndex) -> frozenset[str]:
    """The directories that define transforms of data; their helpers are there, too."""
    resolver = project.resolver
    classes = [each for each in resolver.all_classes() if "transforms/" in path_of(each)]
    return frozenset(
        path_of(each).rpartition("/")[0]
        for each in classes
        if any(simple_name(base).endswith("Transform") for base in resolver.ancestry(each)[1:])
    )


def made_for_inference(site: CallSite) -> bool:
    """Whether a layer is created without gradient, or by a function that folds layers into one for inference."""
    if _FOLDING.fullmatch(simple_name(site.function)):
        return True
    return any(_is_switched_off(each, site.call) for each in expressions_within(site.statement))


def _is_switched_off(each: Expression, made: Call) -> bool:
    """``nn.Conv2d(...).to(device).requires_grad_(False)``, and ``nn.Embedding(...).from_pretrained(vectors)``, which freezes by default."""
    match each:
        case Call(func=Attribute(value=value, name="from_pretrained")) if value == made:
            freeze = known_argument(each, 1, "freeze")
            return freeze is None or (isinstance(freeze, Constant) and bool(freeze.value))
        case Call(func=Attribute(value=value, name="requires_grad_"), args=(Arg(value=Constant(value=False)),)):
            while isinstance(value, Call) and value != made and isinstance(value.func, Attribute):
                value = value.func.value
            return value == made
    return False


# --- statements that freeze parameters --------------------------------------------------------------------------------


class GradientSetting(NamedTuple):
    """A statement that gives parameters a gradient, or takes it: the call that has them (``net.parameters()``)."""

    func: Ref
    freezes: bool


def gradient_settings(statement: Statement) -> Iterator[GradientSetting]:
    """``for p in net.parameters(): p.requires_grad = False``, and ``net.requires_grad_(False)``. Under a test only what gives a gradient
    counts, and a loop that may skip parameters freezes none.
    """
    match statement:
        case Loop(source=Call(func=Ref(path=(*_, "parameters" | "named_parameters")) as func), body=body):
            certain = not any(isinstance(each, SimpleStatement) for each in statements(body))
            for each in statements(body):
                kept = (freezes for freezes in _flags(each) if not freezes or (certain and each in body))
                yield from (GradientSetting(func, freezes) for freezes in kept)
        case ExpressionStatement(value=Call(func=Ref(path=(*_, "requires_grad_")) as func, args=args)):
            yield GradientSetting(func, bool(args) and _is_false(args[0].value))


def _flags(statement: Statement) -> Iterator[bool]:
    """Whether a statement takes a parameter's gradient, if it sets that."""
    match statement:
        case Assign(targets=targets, value=value) if any(last_identifier(each) == "requires_grad" for each in targets):
            yield _is_false(value)
        case ExpressionStatement(value=Call(func=Ref(path=(*_, "requires_grad_")), args=args)):
            yield bool(args) and _is_false(args[0].value)


def _is_false(value: Expression | None) -> bool:
    return isinstance(value, Constant) and value.value is False


# --- inputs of which the gradient is asked for -------------------------------------------------------------------------


@query()
def inputs_with_gradient(names: Names, path: str) -> frozenset[AccessPath]:
    """The variables and attributes of a file of which a statement asks for the gradient."""
    found: set[AccessPath] = set()
    for statement in all_statements(names.modules.files[path]):
        match statement:
            case ExpressionStatement(value=Call(func=Ref(roots=roots, path=(*words, "requires_grad_"))) as call):
                found.update({(roots, tuple(words))} if asks_for_gradient(call) else ())
            case Assign(targets=(Ref(roots=roots, path=(*words, "requires_grad")),), value=Constant(value=True)):
                found.add((roots, tuple(words)))
    return frozenset(found)


def asks_for_gradient(expression: Expression) -> bool:
    """Whether an expression makes a tensor of which the gradient is asked for: ``x.clone().requires_grad_()``, ``nn.Parameter(x)``."""
    if not isinstance(expression, Call):
        return False
    word, given = last_identifier(expression.func), known_argument(expression, None, "requires_grad")
    if word == "requires_grad_":
        given = known_argument(expression, 0, "requires_grad")
    on = isinstance(given, Constant) and given.value is True
    return on or (given is None and word in ("requires_grad_", "Parameter"))
