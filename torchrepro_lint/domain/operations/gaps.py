"""Gaps on the way to the loss: calls whose result may reach a backward pass, and of which nothing says what they run.

A backward slice from each backward pass of a program, through variables, attributes and the functions that the program
reaches. It is flow-insensitive. Behind a gap may lie an operation at which deterministic mode would stop, so nothing that
needs to know all that is trained holds across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import loader_names
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.domain.operations.callee_origins import CalleeOrigins
from torchrepro_lint.domain.operations.unknown_calls import UnknownCalls, is_known_package, passed_on_edges
from torchrepro_lint.domain.programs import Program, program_at
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.resolve.values import is_abstract
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Loop,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    SUPER,
    element_value,
    in_project,
    instance_value,
    is_element,
    path_of,
    project_classes,
    simple_name,
    top_package,
)
from torchrepro_lint.syntax.use_def import flattened_values
from torchrepro_lint.syntax.visitor import is_none, last_identifier, operands_of, receiver_of, statements
from torchrepro_lint.trace.call_paths import place_of
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Traces

# The functions of an object that a trainer of a framework trains, which return the loss.
_STEPS = frozenset({"training_step", "forward", "compute_loss", "loss", "train_step"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "not"})
# Functions that iterate over the elements of their arguments.
_ITERATING = frozenset(
    f"builtins.{word}" for word in ("enumerate", "zip", "reversed", "iter", "list", "tuple", "filter")
) | {f"itertools.{word}" for word in ("chain", "zip_longest", "cycle", "islice")}
_CONTAINERS = ("torch.nn.Sequential()", "torch.nn.ModuleList()", "torch.nn.ModuleDict()")


class Gap(Record, frozen=True):
    """A place where a program leads into something that is not followed: the call, what of it is unknown, and its event with its order."""

    call: str
    unknown: str
    trace_event: TraceEvent
    order: int


def gaps_to_loss(project: Traces, program: Program) -> tuple[Gap, ...]:
    """The gaps between what a program trains and its backward passes, in trace order; none without a backward pass.

    An object of a package counts here, too, if no table describes it: the forward pass of a model may lie behind it.
    """
    return _gaps_to_loss_from(project, program.entry)


@query()
def _gaps_to_loss_from(project: Traces, entry: Entry) -> tuple[Gap, ...]:
    return tuple(_LossSlice(project, program_at(project, entry)).gaps())


def first_gap(project: Traces, program: Program) -> str:
    """What is not followed first, and where, for a message; empty without a gap."""
    found = gaps_to_loss(project, program)
    return told(project, found[0]) if found else ""


def told(project: Traces, gap: Gap) -> Message:
    """``what self.model(x) (train.py:9) runs is not known``."""
    return Message(f"what {gap.call} (", place_of(project, gap.trace_event), f") {gap.unknown} is not known")


class _LossSlice:
    """The backward slice of one program from its backward passes."""

    def __init__(self, project: Traces, program: Program) -> None:
        self._project = project
        self._names = project.resolver
        self._run = program.run
        self._unknown = UnknownCalls(project)
        self._events: dict[tuple[str, Call], list[tuple[int, TraceEvent]]] = {}
        for order, each in enumerate(program.run.trace_events):
            resolved = each.resolved  # its properties would cost a call each, for a million events
            if resolved.event.kind == "call" and isinstance(resolved.event.value, Call):
                self._events.setdefault((resolved.path, resolved.event.value), []).append((order, each))
        self._found: dict[int, Gap] = {}
        # The expressions that were visited, with the number of the backward pass from which each was visited first.
        self._seen: dict[tuple[str, object], int] = {}
        self._root = 0
        # An expression with its file, and whether it is the loss itself: no call lies between.
        self._queue: list[tuple[str, Expression, bool]] = []
        self._calls = 0
        self._is_cut_off = False
        self._data: set[tuple[str, Expression]] = set()

    def gaps(self) -> Iterator[Gap]:
        """The gaps, in trace order."""
        for order, trace_event in sorted(each for found in self._events.values() for each in found[:1]):
            call = trace_event.event.value
            if isinstance(call, Call) and is_backward(call, trace_event.names):
                self._from_backward(order, trace_event, call)
        yield from (self._found[order] for order in sorted(self._found))

    def _from_backward(self, order: int, trace_event: TraceEvent, call: Call) -> None:
        """Follow what one backward pass, or one trainer of a framework, goes back through."""
        if any(map(in_project, trace_event.names)):
            return  # the project's own method of this name, which the trace enters
        path, self._calls = trace_event.path, 0
        self._root += 1
        if last_identifier(call.func) not in ("backward", "grad"):
            self._from_trainer(order, trace_event, call)
            return
        self._data |= self._loops_around(trace_event.function, call)
        self._push(path, _holder(call.func), *(arg.value for arg in call.args), loss=True)
        self._follow()
        if not self._calls or self._is_cut_off:
            self._found.setdefault(order, Gap(call_text(call), "goes back through", trace_event, order))

    def _from_trainer(self, order: int, trace_event: TraceEvent, call: Call) -> None:
        """A trainer trains the steps of the object that it gets."""
        entered = [
            name
            for name, edges in self._run.call_edges.items()
            if simple_name(name) in _STEPS and any(edge.event == trace_event.event for edge in edges)
        ]
        for name in entered:
            self._descend(name)
        if not entered:
            self._push(trace_event.path, *(arg.value for arg in call.args), loss=True)
        self._follow()
        for model in () if entered else self._models(trace_event.path, call):
            found = self._names.objects(trace_event.path, model)
            if not found.names:
                gap = Gap(call_text(call), f"trains as {describe(model)}", trace_event, order)
                self._found.setdefault(order, gap)

    def _models(self, path: str, call: Call) -> Iterator[Expression]:
        """The arguments named ``model`` of a trainer's call, and of those that construct the trainer."""
        made = [call]
        if (holder := _holder(call.func)) is not None:
            made += (each for _, each in self._names.values(path, holder) if isinstance(each, Call))
        yield from (arg.value for each in made for arg in each.args if arg.keyword == "model")

    def _loops_around(self, function: str, call: Call) -> set[tuple[str, Expression]]:
        """The sources of the loops around a call, with their file: the data that is trained on."""
        path = path_of(function)
        bodies = [each.body for each in self._names.functions(function)] or [self._project.files[path].body]
        return {
            (path, each.source)
            for body in bodies
            for each in statements(body)
            if isinstance(each, Loop) and each.start <= call.start < each.end
        }

    def _push(self, path: str, *values: Expression | None, loss: bool = False) -> None:
        self._queue += (
            (path, value, loss) for value in values if value is not None and (path, value) not in self._data
        )

    def _follow(self) -> None:
        while self._queue:
            path, value, loss = self._queue.pop()
            key = (path, (value.roots, value.path, loss) if isinstance(value, Ref) else value)
            if key in self._seen:
                self._calls += self._seen[key] < self._root  # what is behind it is known from another backward pass
            else:
                self._seen[key] = self._root
                if len(self._seen) < limits.MAX_SLICE_EXPRESSIONS:
                    self._visit(path, value, loss)
                else:
                    self._is_cut_off = True

    def _visit(self, path: str, value: Expression, loss: bool) -> None:
        """Push the values that an expression is made of."""
        match value:
            case Constant() | Lambda():
                pass
            case Ref(path=()):
                self._variable(path, value, loss)
            case Ref():
                self._attribute(path, value, loss)
            case Call():
                self._calls += 1
                self._call(path, value)
            case Attribute(value=inner) | Subscript(value=inner):
                self._push(path, inner, loss=loss)
            case Operation(op=op) if op in _COMPARISONS:
                pass
            case Operation(op="if", operands=(_, *operands)):
                self._push(path, *operands, loss=loss)
            case Comprehension(elements=elements):
                self._push(path, *elements, loss=loss)
            case _:
                self._push(path, *operands_of(value), loss=loss)

    def _variable(self, path: str, value: Ref, loss: bool) -> None:
        """The values that are assigned to a variable or added to it; for a parameter that is the loss, what is passed."""
        for root in value.roots:
            for name in self._names.modules.resolve(path, root):
                file = path_of(name)
                self._push(file, *(each for _, each in self._names.assigned(name)), loss=loss)
                for each, passed in self._names.passed(name) if loss else ():
                    self._push(each, passed, loss=True)
        self._push(path, *self._added(path, value), loss=loss)

    def _attribute(self, path: str, value: Ref, loss: bool) -> None:
        """The values of an attribute of an object of the project; else it is read from a value."""
        holder = value._replace(path=value.path[:-1])
        owners = [*project_classes(self._names.names_of(path, holder))]
        for owner in owners:
            for each in self._names.ancestry(owner):
                for _, _, made in self._names.stored_attributes(each, value.path[-1]) if in_project(each) else ():
                    self._push(path_of(each), made, loss=loss)
        self._push(path, *self._added(path, value), loss=loss)
        if not owners:
            self._push(path, holder, loss=loss)

    def _added(self, path: str, value: Ref) -> Iterator[Expression]:
        """What is added to a list or dictionary in a variable: ``losses.append(...)``, ``out["x"] = ...``."""
        yield from self._names.events.added(path, value)
        yield from self._names.events.stored(path, value)

    def _call(self, path: str, call: Call) -> None:
        """A call on the way: its gap, what it returns, and the values that it gets."""
        seen = self._events.get((path, call), ())
        names = sorted({name for _, each in seen for name in each.names}) or self._names.names(path, call.func)
        if not names or self._unknown.are_unknown(names):
            function = seen[0][1].function if names and seen else ""
            passed = passed_on_edges(self._project, self._run, path, function, call.func) if function else ()
            names = self._objects(path, call.func) or sorted(passed) or names
        if names and all(map(is_element, names)):
            names = [*self._elements(path, call.func)] or names
        if not loader_names().isdisjoint(names):
            return
        origins = self._origins(path, seen[0][1].function, call.func) if seen and not names else None
        names = names or [*(origins or ())]
        entered = [target for name in names if in_project(name) for target in self._entered(name)]
        for target in entered:
            self._descend(target)
        is_unknown = self._unknown.are_unknown(names) if names else origins is None
        if seen and not _is_of_super(call.func) and is_unknown:
            if names or self._may_be_project_code(path, seen[0][1].function, call.func):
                self._report(seen[0], call)
        elif seen and self._has_unknown_contents(path, call, names):
            self._report(seen[0], call)
        if not any(self._is_network_or_dataset(name) for name in names):
            self._push(path, *(arg.value for arg in call.args))
            for value in flattened_values(arg.value for arg in call.args):
                self._passed_on(path, value)
        if not entered:
            self._push(path, _holder(call.func))

    def _objects(self, path: str, func: Expression) -> tuple[str, ...]:
        """The objects that a callee without a name may be; of an attribute, ``model.module``, if all are known and entered."""
        if isinstance(func, Ref) and not func.path:
            return ()
        found = self._names.objects(path, func)
        entered = all(map(self._entered, filter(in_project, found.names)))
        return found.names if isinstance(func, Subscript | Call) or (found.complete and entered) else ()

    def _origins(self, path: str, function: str, func: Expression) -> Sequence[str] | None:
        """What calls pass for a parameter that is called, or for the variable that runs over it: nothing where it is no code. None if
        that is not known.
        """
        passed = sorted(passed_on_edges(self._project, self._run, path, function, func))
        if passed or not isinstance(func, Ref) or func.path:
            return passed or None
        found = CalleeOrigins(self._project).of(path, func)
        known = all(is_known_package(top_package(name)) for name in found.outside)
        entered = not found.names or any(map(self._entered, found.names))
        return (*found.names, *found.outside) if known and entered and found.reason is None else None

    def _may_be_project_code(self, path: str, function: str, func: Expression) -> bool:
        """Whether a callee without a name may be code of the project: not a parameter for which nothing but None is passed."""
        passed = ((file, value, self._names.default(file, value)) for file, value in self._names.values(path, func))
        is_nothing = all(is_none(value if default is None else default) for _, value, default in passed)
        return self._unknown.may_be_project_code(path, function, func) and not is_nothing

    def _elements(self, path: str, func: Expression) -> Iterator[str]:
        """The names of what a loop over ``enumerate(self.layers)`` or ``enumerate(zip(self.layers, xs))`` calls."""
        for root in func.roots if isinstance(func, Ref) and not func.path else ():
            for how, source in self._names.assigned(path + root):
                if how == "[]" and self._iterates(path, source):
                    yield from self._elements_of(path, source)

    def _elements_of(self, path: str, source: Expression) -> Iterator[str]:
        for arg in source.args if isinstance(source, Call) else ():
            if self._iterates(path, arg.value):
                yield from self._elements_of(path, arg.value)
            else:
                yield from (element_value(name) for name in self._names.names(path, arg.value))

    def _iterates(self, path: str, source: Expression) -> bool:
        return isinstance(source, Call) and bool(_ITERATING.intersection(self._names.names(path, source.func)))

    def _entered(self, name: str) -> list[str]:
        """The functions that calling a name of the project runs in this trace; none for constructing an object."""
        entered = () if self._names.classes(name) else entered_functions(self._names, name, "call")
        return [each for each in entered if each in self._run.functions]

    def _is_network_or_dataset(self, name: str) -> bool:
        """Whether a name is a class of networks or datasets: what an object of it was made with is no value of its results."""
        ancestry = self._names.ancestry(name) if self._names.classes(name) else ()
        frameworks = ("torch.nn.", "torch.utils.data.", "lightning", "pytorch_lightning")
        return any(each.startswith(frameworks) for each in ancestry)

    def _passed_on(self, path: str, value: Expression) -> None:
        """A function or object that is passed to another, as ``checkpoint(self.block, x)`` runs it."""
        if isinstance(value, Ref):
            for name in self._names.names(path, value):
                for target in self._entered(name) if in_project(name) else ():
                    self._descend(target)

    def _descend(self, function: str) -> None:
        """What a function of the project returns and yields."""
        path = path_of(function)
        for definition in self._names.functions(function):
            for statement in statements(definition.body):
                if isinstance(statement, SimpleStatement) and statement.kind == "return":
                    self._push(path, *statement.values)
        self._push(path, *self._unknown.yielded(function))

    def _has_unknown_contents(self, path: str, call: Call, names: Iterable[str]) -> bool:
        """Whether a container of modules is called that was made of objects that are not known."""
        if not any(name.startswith(_CONTAINERS) for name in names):
            return False
        for file, made in self._names.values(path, call.func):
            if isinstance(made, Call) and any(
                instance_value(name) in _CONTAINERS for name in self._names.names(file, made.func)
            ):
                given = (arg.value for arg in made.args if not arg.star)
                held = [each for each in flattened_values(given) if isinstance(each, Ref)]
                if any(
                    self._is_unknown_part(file, each, whole=each in [arg.value for arg in made.args]) for each in held
                ):
                    return True
        return False

    def _is_unknown_part(self, path: str, part: Ref, *, whole: bool) -> bool:
        """Whether an element is not known; a variable alone may be the list of all elements."""
        names = self._names.names(path, part)
        found = self._names.objects(path, part)
        if whole and not names:
            return self._names.parameter(f"{path}{part.roots[0]}") is not None and not found.names and not part.path
        return bool(names) and any(map(is_abstract, names)) and not found.complete

    def _report(self, seen: tuple[int, TraceEvent], call: Call) -> None:
        order, trace_event = seen
        self._found.setdefault(order, Gap(call_text(call), "runs", trace_event, order))


def _holder(func: Expression) -> Expression | None:
    """The value whose method is called."""
    return func if isinstance(func, Call) else receiver_of(func)


def _is_of_super(func: Expression) -> bool:
    """``super().forward``: which class is next depends on the object's, and its own method is entered by its name."""
    holder = _holder(func)
    return isinstance(holder, Call) and last_identifier(holder.func) in ("super", SUPER)


def call_text(call: Call) -> str:
    """A call as short text: ``self.model(x)``; ``model(...)`` where there are several arguments or long ones."""
    given = [describe(arg.value) for arg in call.args if arg.keyword is None and not arg.star]
    short = ", ".join(given) if len(given) == len(call.args) and "..." not in given else "..."
    return f"{describe(call.func)}({short if len(short) <= _SHORT else '...'})"


_SHORT = 24
