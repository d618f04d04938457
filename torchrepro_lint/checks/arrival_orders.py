"""Taint sources of concurrency: what several threads or processes put into one queue or one list is in the order of their arrival.

A launch starts a function in a thread or process: ``Thread(target=work)``, ``pool.submit(work, x)``, a subclass with ``run``. What is
received from a queue is tainted by the loop that receives it; a list that threads append to, where it is read after the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.checks.launches import (
    CALLING_BACK,
    Launch,
    comprehensions,
    is_repeated,
    launches,
    launches_of,
    starts_several,
)
from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.dataflow.taint.context import Sink, TaintedValue
from torchrepro_lint.dataflow.taint.effects import Arrival, arrival_effects
from torchrepro_lint.dataflow.taint.propagation import consequences
from torchrepro_lint.dataflow.taint.transfer import COMPLETION, MAPPING, OrderTaint
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.definitions import Parameter
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument, parameter_argument, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    Function,
    Loop,
    Record,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    locals_prefix,
    path_of,
    top_package,
)
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier, receiver_of, statements

# Without an import of any of these a project has no workers, without a call of any of those no queues.
_WORKER_MODULES = frozenset({"threading", "multiprocessing", "concurrent"})
_MAKING_QUEUES = frozenset({"Queue", "SimpleQueue", "LifoQueue", "JoinableQueue"})
_QUEUES = lazy_pattern(
    r"(queue|asyncio(\.queues)?|(\w+\.)*multiprocessing(\.\w+(\(\))?)*)\.(Simple|Lifo|Joinable)?Queue"
)
_PUTTING = frozenset({"put", "put_nowait"})
_TAKING = frozenset({"get", "get_nowait", "iter"})
_GROWING = frozenset({"append", "extend", "appendleft", "insert"})


class ArrivalOrder(Record, frozen=True):
    """A place that takes or leaves values in the order of their arrival: what is said of it, and what it taints."""

    node: Expression
    said: str
    cure: str
    tainted: tuple[TaintedValue | Sink, ...]


def arrival_orders(project: TaintFlow, path: str) -> Iterator[ArrivalOrder]:
    """The places of a file that take or leave values in the order in which several threads or processes give them."""
    graph = project.resolver.call_graph
    if _has_workers(project):
        if graph.paths(_MAKING_QUEUES) and launches(project):
            yield from _received(project, path)
        yield from _grown(project, path)


@query()
def _has_workers(project: TaintFlow) -> bool:
    """Whether any file of the project imports a module for threads or processes."""
    modules = project.resolver.modules
    modules.reads.record_word("imports", "")
    imports = (each for _, summary in modules.summaries() for each in summary.imports)
    return any(not _WORKER_MODULES.isdisjoint(each.split(".")) for each in imports)


# --- queues ----------------------------------------------------------------------------------------------------------


def _received(project: TaintFlow, path: str) -> Iterator[ArrivalOrder]:
    """What is taken from queues that several workers fill."""
    summary = project.resolver.modules.summary(path)
    for site in project.calls(path) if not _TAKING.isdisjoint(summary.calls) else ():
        got = site.call.func
        if last_identifier(got) not in _TAKING:
            continue
        if "builtins.iter" in site.names and len(site.call.args) == 2:
            got = site.call.args[0].value
        made = set() if not isinstance(got, Ref) else set(_creations(project, path, got._replace(path=got.path[:-1])))
        names = (name for file, each in made for name in project.names(file, each.func))
        if not any(_QUEUES.fullmatch(base) for name in names for base in project.resolver.ancestry(name)):
            continue
        if not _has_several_producers(project, made, site.function):
            continue
        if got != site.call.func:
            tainted: tuple[TaintedValue | Sink, ...] = (TaintedValue(path, site.call, COMPLETION),)
        else:
            tainted = tuple(_taken(project, path, site.call))
        yield ArrivalOrder(
            site.call,
            "several workers put their results into this queue, and the order in which they finish ",
            "put each result with the index of its input, and sort by it",
            tainted,
        )


def _taken(project: TaintFlow, path: str, call: Call, depth: int = 0) -> Iterator[TaintedValue | Sink]:
    """What a call that takes one value taints: the list of a comprehension, or what the loop around leaves behind; what its function
    returns is taken by that one's calls.
    """
    for comprehension in comprehensions(project, path, call):
        if comprehension.kind in ("list", "generator"):
            yield TaintedValue(path, comprehension, COMPLETION)
        return
    spot = project.uses.spots(path).of(call)
    if spot is None:
        return
    loop = next((b.owner for b in reversed(spot.blocks) if isinstance(b.owner, Loop) and b.number == 0), None)
    loop = spot.statement if isinstance(spot.statement, Loop) and loop is None else loop
    if isinstance(loop, Loop):
        arrival = Arrival(call, spot.statement)
        yield from consequences(
            arrival_effects(project.taint, TaintedValue(path, call, COMPLETION), loop, spot, arrival)
        )
    elif (
        isinstance(spot.statement, SimpleStatement)
        and spot.statement.values == (call,)
        and depth < limits.MAX_WORKER_CALLS
    ):
        for file, each in project.uses.of_result(path + spot.function):
            yield from _taken(project, file, each, depth + 1)


def _has_several_producers(project: TaintFlow, made: set[tuple[str, Call]], taker: str) -> bool:
    """Whether several workers fill a queue, beside the function that takes from it: that one puts back what it leaves to others."""
    started: set[tuple[str, int]] = set()
    for file in sorted(project.resolver.call_graph.paths(_PUTTING)):
        for site in (each for each in project.calls(file) if last_identifier(each.call.func) in _PUTTING):
            receiver = receiver_of(site.call.func)
            starts = [] if receiver is None else list(launches_of(project, site.function))
            if (
                receiver is None
                or not starts
                or site.function == taker
                or made.isdisjoint(_creations(project, file, receiver))
            ):
                continue
            starts = [each for each in starts if _may_pass(project, each, site, receiver, made)]
            if any(each.several and starts_several(project, each, made) for each in starts):
                return True
            started.update((each.path, each.call.start) for each in starts)
    return len(started) > 1


def _may_pass(
    project: TaintFlow, launch: Launch, site: CallSite, receiver: Expression, made: set[tuple[str, Call]]
) -> bool:
    """Whether a launch may pass one of these queues to the function that puts into its own parameter."""
    path = path_of(launch.function)
    if not isinstance(receiver, Ref) or receiver.path or launch.function != site.function:
        return True
    for parameter in filter(None, (project.resolver.parameter(path + root) for root in receiver.roots)):
        bound = takes_receiver(parameter.function)
        arg = parameter_argument(launch.made, parameter.function, parameter.position, bound=bound)
        given = set() if arg is None or arg.star else set(_creations(project, launch.path, arg.value))
        if given and given.isdisjoint(made):
            return False
    return True


def _creations(project: TaintFlow, path: str, queue: Expression, depth: int = 0) -> Iterator[tuple[str, Call]]:
    """The calls that make a queue, with their files."""
    for file, value in project.resolver.values_through_calls(path, queue):
        if isinstance(value, Call) and last_identifier(value.func).endswith("Queue"):
            yield file, value
    if isinstance(queue, Ref) and not queue.path and depth < limits.MAX_WORKER_CALLS:
        for root in queue.roots:
            parameter = project.resolver.parameter(path + root)
            if parameter is not None:
                for file, given in _passed_by_launches(project, path, parameter):
                    yield from _creations(project, file, given, depth + 1)


def _passed_by_launches(project: TaintFlow, path: str, parameter: Parameter) -> Iterator[tuple[str, Expression]]:
    """The arguments that pools pass for a parameter: ``submit(work, queue)``, ``apply_async(work, (queue,))``."""
    function = parameter.function
    for launch in launches(project):
        if launch.function == path + function.name:
            arg = parameter_argument(launch.made, function, parameter.position, bound=takes_receiver(function))
            yield from ((launch.path, arg.value),) if arg is not None and not arg.star else ()


# --- lists and dicts -------------------------------------------------------------------------------------------------


def _grown(project: TaintFlow, path: str) -> Iterator[ArrivalOrder]:
    """The lists and dicts that several threads fill: the calls and assignments of a file that do so."""
    started: dict[str, list[Launch]] = {}
    for launch in launches(project):
        if launch.shares and path_of(launch.function) == path:
            started.setdefault(launch.function, []).append(launch)
    for function, starts in sorted(started.items()):
        if len(starts) > 1 or starts[0].several:
            for definition in project.resolver.functions(function):
                yield from _filled(project, path, definition, starts)
    calls_back = not CALLING_BACK.isdisjoint(project.resolver.modules.summary(path).calls)
    for site in project.calls(path) if calls_back else ():
        if last_identifier(site.call.func) in CALLING_BACK:
            yield from _callback(project, path, site)


def _callback(project: TaintFlow, path: str, site: CallSite) -> Iterator[ArrivalOrder]:
    """``pool.apply_async(work, args, callback=results.append)`` in a loop."""
    match known_argument(site.call, 3, "callback"):
        case Ref(path=(*words, word)) as given if word in _GROWING:
            spot = project.uses.spots(path).of(site.call)
            if spot is not None and is_repeated(project, path, site.call):
                kept = given._replace(path=tuple(words))
                reads = project.taint.reads(path, kept, COMPLETION, spot, site.call.end)
                yield _order(project, path, site.call, kept, tuple(reads))


def _filled(project: TaintFlow, path: str, function: Function, starts: list[Launch]) -> Iterator[ArrivalOrder]:
    for statement in statements(function.body):
        for each in expressions_within(statement):
            match each:
                case Call(func=Ref(path=(*words, word)) as func) if word in _GROWING:
                    kept = func._replace(path=tuple(words))
                    tainted = tuple(_reads(project, path, function, kept, starts, COMPLETION))
                    yield _order(project, path, each, kept, tainted)
        for target in statement.targets if isinstance(statement, Assign) else ():
            match target:
                case Subscript(value=Ref() as kept, indices=(index,)) if not isinstance(index, Constant):
                    tainted = tuple(_reads(project, path, function, kept, starts, MAPPING))
                    if _is_dict(project, path, function, kept, starts):
                        yield _order(project, path, target, kept, tainted)


def _order(
    project: TaintFlow, path: str, node: Expression, kept: Ref, tainted: tuple[TaintedValue | Sink, ...]
) -> ArrivalOrder:
    name = project.text(path)[kept.start : kept.base_end if not kept.path else kept.end]
    name = ".".join((top_package(name), *kept.path))
    said = f"several threads add to `{name}` in the order in which they finish, which "
    return ArrivalOrder(node, said, "use map, which keeps the order, or an index for each result", tainted)


def _reads(
    project: TaintFlow, path: str, function: Function, kept: Ref, starts: list[Launch], taint: OrderTaint
) -> Iterator[TaintedValue]:
    """The reads of a container outside the function that fills it, after it was started."""
    for launch, file, outside in _outside(path, function, kept, starts):
        spot = project.uses.spots(launch.path).of(launch.call)
        here = spot if file == launch.path else project.uses.spots(file).of(kept)
        if here is None:
            continue
        after = launch.call.end if file == launch.path else kept.end
        for read in project.taint.reads(file, outside, taint, here, after):
            inside = read.path == path and function.start <= read.node.start < function.end
            passed = read.path == launch.path and launch.call.start <= read.node.start < launch.call.end
            if not inside and not passed:
                yield read


def _outside(path: str, function: Function, kept: Ref, starts: list[Launch]) -> Iterator[tuple[Launch, str, Ref]]:
    """A container as it is named where it lives longer than the function: around it, or by who launches it."""
    own = locals_prefix(function.name)
    for launch in starts:
        for root in kept.roots:
            word = root.removeprefix(own) if root.startswith(own) else ""
            params = [param.name for param in function.params]
            if not word or (function.owner and params and word == params[0] and len(kept.path) == 1):
                yield launch, path, kept
            elif word in params and not kept.path:
                arg = parameter_argument(launch.made, function, params.index(word), bound=takes_receiver(function))
                if arg is not None and not arg.star and isinstance(arg.value, Ref):
                    yield launch, launch.path, arg.value


def _is_dict(project: TaintFlow, path: str, function: Function, kept: Ref, starts: list[Launch]) -> bool:
    """Whether a container is known to be a dict that is filled from nothing."""
    for _, file, outside in _outside(path, function, kept, starts):
        for _, value in project.resolver.values(file, outside):
            match value:
                case Collection(kind="dict", items=()):
                    return True
                case Call(func=func, args=()) if last_identifier(func) in ("dict", "OrderedDict"):
                    return True
    return False
