"""Consumers of random numbers: the rows of the catalogue about a callee, and whether a call draws by a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import ArgumentReader, Truth, argument_reader, evaluate, is_unknown_argument
from torchrepro_lint.catalogue.libraries import LibraryVersions, transform_models
from torchrepro_lint.catalogue.rows import FAMILIES, Consumer, Scalar
from torchrepro_lint.dataflow.constants import display_name, propagated_constant
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.gradients.modes import only_in_training_mode
from torchrepro_lint.domain.rng.seeders import method_and_receiver
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.control_flow import is_main_test, uncertain_guards
from torchrepro_lint.syntax.definitions import targets
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
    Try,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    constructed_class,
    in_project,
    instance_value,
    is_inherited_constructor,
    is_instance,
    is_module,
    is_nested,
    is_own,
    is_self,
    module_symbol,
    passes_call,
    simple_name,
    split_last,
    split_method,
    top_package,
    without_calls,
)
from torchrepro_lint.syntax.scopes import control_flow_position, function_at
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.use_def import flattened_values
from torchrepro_lint.syntax.visitor import is_none, last_identifier, receiver_of, statements, subexpressions
from torchrepro_lint.trace.events import TraceEvent, guards
from torchrepro_lint.trace.library_models import trains_or_measures
from torchrepro_lint.trace.loaded_weights import given_variables, loaded_by, own_weights

if TYPE_CHECKING:
    from torchrepro_lint.trace.builder import Trace

# The members of torchvision's enumerations of weights.
_NAMED_WEIGHTS = lazy_pattern(r"torchvision\.models\.(\w+\.)*\w+_Weights\.\w+")


# Rows, each with the callee and the call that made the element.
_Elements: TypeAlias = "tuple[tuple[Consumer, str, Call], ...]"


def called_word(call: Call) -> str:
    """The last word of a callee; of ``net.train(False)`` that of ``net.eval()``, which does the same."""
    word, mode = method_and_receiver(call.func)[0], known_argument(call, 0, "mode")
    return "eval" if word == "train" and isinstance(mode, Constant) and mode.value is False else word


class Consumers:
    """The rows of the catalogue about the calls of a project."""

    def __init__(self, names: Names, catalogue: Catalogue) -> None:
        self._names = names
        self._catalogue = catalogue
        self._elements: MemoTable[tuple[str, Expression], tuple[tuple[str, _Elements], ...]]
        self._elements = names.database.table("run elements", compare=True)

    def external_names(self, names: tuple[str, ...]) -> Iterator[str]:
        """The external names of a callee: for a project class its inherited constructor, for results of torch the
        methods of tensors.
        """
        for name in names:
            if in_project(name):
                if self._names.classes(name):
                    methods = self._names.methods(name, "__init__")
                    yield from (constructed_class(each) for each in methods if not in_project(each))
            elif is_inherited_constructor(name):
                yield constructed_class(name)
            else:
                yield name
                head, word = split_last(name)
                is_method = head.startswith("torch.") and passes_call(head)
                if is_method and not self._catalogue.consumer(without_calls(name)):
                    yield f"torch.Tensor.{word}"

    def of(self, name: str, known: str) -> Iterator[Consumer]:
        """The rows of a callee: a class constructs, a function or an instance draws when called."""
        called = is_instance(name)
        for row in self._catalogue.consumer(class_of(known)):
            is_class = simple_name(class_of(known))[:1].isupper()
            if called == (
                row.phase == "called" or (row.phase == "call" and is_class)
            ) and not self._matches_constructor_only(name, row):
                yield row

    def _matches_constructor_only(self, name: str, row: Consumer) -> bool:
        """Whether a row matches a method only because its pattern matches the constructor: ``models.resnet18().cuda``."""
        maker, method = split_method(name)
        makers = self._catalogue.consumer(without_calls(maker)) if method else ()
        return "__dict__" in name.split(".") or any(
            (each.evidence, each.source, each.phase) == (row.evidence, row.source, row.phase) for each in makers
        )

    def of_elements(
        self, trace_event: TraceEvent, call: Call, libraries: LibraryVersions, run: Trace
    ) -> list[tuple[Consumer, str, Call]]:
        """The rows of what a called container runs, the layers of a ``Sequential`` and the transforms of a ``Compose``, each with the
        callee and the call that made the element. A container of a function that a program does not call is left out.
        """
        if not any(map(runs_elements, trace_event.names)):
            return []
        path, func = trace_event.path, call.func
        found = self._elements.of((path, func), lambda: tuple(self._of_container(path, func, libraries)))
        is_program = any(map(is_module, run.starts))
        return [each for maker, some in found if not (is_program and maker) or maker in run.functions for each in some]

    def _of_container(self, path: str, func: Expression, libraries: LibraryVersions) -> Iterator[tuple[str, _Elements]]:
        self._names.modules.reads.record_read(path)  # the key is a node of this file
        for file, made in self._names.values_through_calls(path, func):
            if isinstance(made, Call):
                function = function_at(self._names.modules.files[file], made.start)
                maker = file + function.name if function is not None else ""
                yield maker, tuple(self._of_elements(file, made, libraries, limits.MAX_NESTED_CONTAINERS))

    def _of_elements(
        self, path: str, container: Call, libraries: LibraryVersions, depth: int
    ) -> Iterator[tuple[Consumer, str, Call]]:
        for element in flattened_values(arg.value for arg in container.args):
            for file, made in self._names.values(path, element):
                if isinstance(made, Call):
                    for name in self._names.names(file, made.func):
                        if runs_elements(instance_value(name)) and depth:
                            yield from self._of_elements(file, made, libraries, depth - 1)
                        yield from ((row, name, made) for row in self._of_element(name, libraries))

    def _of_element(self, name: str, libraries: LibraryVersions) -> Iterator[Consumer]:
        """The rows of a layer or transform that is called, with conditions on the call that made it."""
        yield from (row._replace(phase="construct") for row in self.of(instance_value(name), name))
        for model in list(transform_models(name, libraries))[:1]:
            for family in sorted(model.draws.intersection(each.key for each in FAMILIES)):
                yield Consumer(model.signature, family, "construct", (), "", "", model.when)

    def runs_later(self, name: str) -> str:
        """The class of an object that draws in its methods, where one of these is called: ``sklearn.model_selection.KFold``."""
        maker, method = split_method(name)
        draws = method and not method.startswith(("get_", "set_"))
        return maker if draws and any(row.phase == "later" for row in self._catalogue.consumer(maker)) else ""

    def draws(self, row: Consumer, trace_event: TraceEvent, call: Call, *, only_evaluates: bool) -> bool:
        """Whether a call may draw by a row; ``only_evaluates`` says that the run only evaluates modules."""
        if row.phase == "later" and _is_filled(self._names, trace_event):
            return False
        argument = self._argument_reader(row, trace_event, call, only_evaluates=only_evaluates)
        given = [value for word in row.generators if (value := argument(word)) is not None]
        if not all(is_none(each) or self._stands_for_none(trace_event.path, each) for each in given):
            return False
        if any(condition.test == "given" and is_unknown_argument(argument(condition.of)) for condition in row.when):
            return False
        known = self._classes(row, trace_event, argument)
        if only_evaluates:
            known["module.training"] = False
            flags = [each.path[-1:] for word in ("training", "train") if isinstance(each := argument(word), Ref)]
            if only_in_training_mode(self._names, trace_event) or ("training",) in flags:
                return False
        return evaluate(row.when, row.signature, argument, known) is not Truth.FAILS

    def _argument_reader(
        self, row: Consumer, trace_event: TraceEvent, call: Call, *, only_evaluates: bool
    ) -> ArgumentReader:
        """The arguments of a call, with the constant that a variable can only be: ``pretrained`` of a function that all calls pass True;
        of ``self.p if self.training else 0`` what holds in evaluation.
        """
        read = argument_reader(row.signature, self._construction(row, trace_event, call))

        def argument(word: str) -> Expression | None:
            value = _in_evaluation(read(word)) if only_evaluates else read(word)
            if not isinstance(value, Ref) or is_unknown_argument(value):
                return value
            found = [each for _, each in self._names.values(trace_event.path, value)]
            found = [_in_evaluation(each) or each for each in found] if only_evaluates else found
            known = {(type(each.value), each.value) if isinstance(each, Constant) else None for each in found}
            return found[0] if len(known) == 1 and None not in known else value

        return argument

    def _stands_for_none(self, path: str, value: Expression) -> bool:
        """Whether a variable can only be None: ``RANDOM_STATE = None``."""
        return isinstance(value, Ref) and propagated_constant(self._names, path, value) is None

    def _classes(self, row: Consumer, trace_event: TraceEvent, argument: ArgumentReader) -> dict[str, Scalar]:
        """The classes of the arguments, for conditions on ``class.parameter``."""
        found: dict[str, Scalar] = {}
        for condition in row.when:
            head, _, word = condition.of.partition(".")
            given = argument(word) if head == "class" else None
            names = self._names.names(trace_event.path, given) if given is not None else ()
            if isinstance(given, Constant):
                found[condition.of] = type(given.value).__name__
            elif len(names) == 1 and is_instance(names[0]):
                found[condition.of] = simple_name(class_of(names[0]))
            elif names and all(map(_NAMED_WEIGHTS.fullmatch, names)):
                found[condition.of] = "Weights"
        return found

    def _construction(self, row: Consumer, trace_event: TraceEvent, call: Call) -> Call:
        """The call whose arguments a row's conditions test: for a called object, the one that created it."""
        if row.phase != "call" or not any(map(is_instance, trace_event.names)):
            return call
        made = (
            value
            for _, value in self._names.values_through_calls(trace_event.path, call.func)
            if isinstance(value, Call)
        )
        return next(made, call)


def _in_evaluation(value: Expression | None) -> Expression | None:
    """The branch of ``self.p if self.training else 0`` that evaluation takes; any other value itself."""
    match value:
        case Operation(op="if", operands=(Operation(op="not", operands=(test,)), chosen, _)) if _is_own_mode(test):
            return chosen
        case Operation(op="if", operands=(test, _, chosen)) if _is_own_mode(test):
            return chosen
    return value


def _is_own_mode(test: Expression | None) -> bool:
    """``self.training``."""
    return isinstance(test, Ref) and test.path == ("training",) and any(map(is_self, test.roots))


def runs_elements(name: str) -> bool:
    """Whether a value is a container that runs its elements when it is called: ``torch.nn.Sequential()``."""
    if not is_instance(name) or in_project(name):
        return False
    return name == "torch.nn.Sequential()" or any(row.inner for row in transform_models(class_of(name)))


def method_name(call: Call) -> tuple[str, ...]:
    """An in-place sampler on an unknown receiver: only torch has such names."""
    word, _ = method_and_receiver(call.func)
    return (f"torch.Tensor.{word}",) if word.endswith("_") and not word.startswith("_") else ()


def draw_label(name: str, row: Consumer) -> str:
    """How a draw is named: ``nn.Linear``, ``sample() of pandas``."""
    made, method = split_method(name)
    if row.phase == "called":
        return f"a call of what {display_name(without_calls(name))} gives"
    is_method = method and not name.startswith("torch.")
    return f"{method}() of {top_package(made)}" if is_method else display_name(without_calls(name))


def seed_argument(row: Consumer) -> str:
    """The argument of a callable that takes a seed as a number: ``random_state``."""
    return next((each for each in row.generators if each.endswith(("seed", "random_state"))), "")


def called_variable(func: Expression) -> str:
    """The last word where a variable or an attribute of ``self`` is called: ``self.transform(x)``."""
    match func:
        case Ref(roots=roots, path=(word,)) if any(map(is_self, roots)):
            return word
        case Ref(roots=roots, path=()) if any(map(is_nested, roots)):
            return simple_name(roots[0])
    return ""


_NO_GRADIENT = frozenset({"no_grad", "inference_mode"})


def _is_filled(names: Names, trace_event: TraceEvent) -> bool:
    """Whether what a call makes is not fitted but filled: an estimator of scikit-learn keeps what it learned in attributes that end in
    an underscore, ``kmeans.cluster_centers_ = saved``, ``kmeans.__dict__["cluster_centers_"] = saved``.
    """
    match trace_event.event.statement:
        case Assign(targets=(Ref(roots=roots, path=()),)):
            bodies = names.bodies(trace_event.function)
            written = (each for body in bodies for one in statements(body) for each in targets(one))
            return any(_is_learned(each, roots) for each in written)
    return False


def _is_learned(target: Expression, roots: tuple[str, ...]) -> bool:
    match target:
        case Ref(path=(word,)):
            return target.roots == roots and word.endswith("_")
        case Subscript(value=Ref(path=("__dict__",)) as held, indices=(Constant(value=str(word)),)):
            return held.roots == roots and word.endswith("_")
    return False


# Methods of a network that leave its numbers as they are.
_MOVING = frozenset({"eval", "train", "to", "cuda", "cpu", "load_state_dict", "requires_grad_"})


def models_loaded_elsewhere(project: ValueFlow, run: Trace) -> frozenset[tuple[str, Expression]]:
    """The networks, with their files, that modules keep in variables and whose weights other functions, or other modules, load in a trace
    for certain, before anything else is done with them: the values of the variables.
    """
    found: set[tuple[str, Expression]] = set()
    before: list[Call] = []
    summary = project.resolver.modules.summary
    loads = any(has_word(summary(each).calls, "load_state_dict") for each in run.paths)
    for event in run.trace_events if loads else ():
        call = event.event.value
        if event.event.kind != "call" or not isinstance(call, Call):
            continue
        if is_backward(call, event.names) or trains_or_measures(event.names):
            break
        model, word = receiver_of(call.func), last_identifier(call.func)
        if isinstance(model, Ref) and word == "load_state_dict" and _is_certain(project, event):
            models = [*_models_loaded(project, event, call, model)]
            found.update(models if models and last_identifier(model) not in _used(before) else ())
        elif not (isinstance(model, Ref) and word in _MOVING):
            before.append(call)
    return frozenset(found)


def _used(calls: Iterable[Call]) -> set[str]:
    """The variables that calls use, and the names imported with their module."""
    used = [each for call in calls for each in subexpressions(call) if isinstance(each, Ref)]
    imported = {word for each in used if not any(map(is_own, each.roots)) for word in each.path[:1]}
    return imported.union(simple_name(root) for each in used for root in each.roots)


def _is_certain(project: ValueFlow, load: TraceEvent) -> bool:
    """Whether nothing keeps a call from being made: no test, loop or handler around it or around what leads there, and no return before."""
    entered = ("", *(step.into for step in load.call_path))
    events = (*((step.path, step.event) for step in load.call_path), (load.path, load.event))
    for function, (path, event) in zip(entered, events, strict=True):
        at = control_flow_position(project.files[path], event.statement.start)
        plain = isinstance(event.statement, Assign | ExpressionStatement) and event.statement.value == event.value
        if at is None or not plain or any(not is_main_test(each.value) for each in uncertain_guards(event.guards)):
            return False
        inside = (each for body in project.resolver.bodies(function) for each in statements(body)) if function else ()
        before = (each for each in inside if each.start < event.statement.start)
        returns = any(isinstance(each, SimpleStatement) and each.kind == "return" for each in before)
        if returns or any(isinstance(spot.parent, Loop | Try) for spot in at.spots):
            return False
    return True


def _models_loaded(project: ValueFlow, event: TraceEvent, call: Call, model: Ref) -> Iterator[tuple[str, Expression]]:
    """What a call loads the weights of, if a module made it for a variable and the call stands elsewhere."""
    names = project.resolver
    own = set(own_weights(names.events.of(event.function)))
    for held, _ in loaded_by(names, names.events, event.path, call):
        reaching = project.value_sources.reaching_definitions(Closure(event.path, model), changes=False)
        sources = [each.value for each in reaching if held == model.access_path and isinstance(each.value, Closure)]
        values = [found for each in sources for found in project.values(each.path, each.value)]
        if len(values) == 1 and own.isdisjoint((held, each) for each in given_variables(call)):
            [(path, made)] = values
            at_top = any(isinstance(each, Assign) and each.value == made for each in project.files[path].body)
            yield from values if at_top and event.function != module_symbol(path) else ()


def is_replaced(made: TraceEvent, loaded: frozenset[tuple[str, Expression]]) -> bool:
    """Whether a layer is made for a network whose weights are loaded, by the statement of the variable that has it."""
    if not loaded or not any(each.startswith("torch.nn.") for each in made.names):
        return False
    around = (*((step.path, step.event.statement) for step in made.call_path), (made.path, made.event.statement))
    values = ((path, each.value) for path, each in around if isinstance(each, Assign) and each.value is not None)
    return not loaded.isdisjoint(values)


def is_without_gradient(trace_event: TraceEvent) -> bool:
    """Whether an event stands in a ``with torch.no_grad()`` block."""
    values = (guard.value for guard in guards(trace_event) if guard.kind == "with")
    return any(isinstance(each, Call) and last_identifier(each.func) in _NO_GRADIENT for each in values)


def has_generator(loader: Call) -> bool:
    """Whether a loader gets a generator; torch's starts with a constant seed unless it is given another."""
    return any(arg.keyword == "generator" and not is_none(arg.value) for arg in loader.args)
