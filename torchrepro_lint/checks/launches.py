"""Launches: the calls that start a function in threads or processes, whether several times at once, and whether in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument, launched_call
from torchrepro_lint.syntax.nodes import Call, Comprehension, Constant, Expression, Lambda, Loop, Record, Ref
from torchrepro_lint.syntax.qualified_names import in_project, is_instance, is_module, split_last, without_brackets
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

_STARTING = frozenset({"Thread", "Process"})
_SPAWNING = frozenset({"spawn", "start_processes"})
_SUBMITTING = frozenset({"submit", "apply_async", "add_done_callback"})
CALLING_BACK = frozenset({"apply_async", "add_done_callback"})
_MAPPING = frozenset({"map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async"})
_LAUNCHING = _STARTING | _SPAWNING | _SUBMITTING | _MAPPING
_MAKING_POOLS = frozenset({"ThreadPoolExecutor", "ProcessPoolExecutor", "Pool", "ThreadPool"})
_THREADS = lazy_pattern(r".*(ThreadPoolExecutor|ThreadPool|multiprocessing\.dummy\.Pool|threading\.Thread)\b.*")


class Launch(Record, frozen=True):
    """A call that starts a function in threads or processes: whether in several, and whether these share memory.

    ``made`` is the call of the function.
    """

    path: str
    call: Call
    function: str
    several: bool
    shares: bool
    made: Call


@query()
def launches(project: TaintFlow) -> tuple[Launch, ...]:
    """All launches of the project."""
    return tuple(_all_launches(project))


def _all_launches(project: TaintFlow) -> Iterator[Launch]:
    graph = project.resolver.call_graph
    for path in sorted(graph.paths(_LAUNCHING - {"map"}) | (graph.paths(["map"]) & graph.paths(_MAKING_POOLS))):
        yield from _in_file(project, path)
    yield from _of_classes(project)


def _in_file(project: TaintFlow, path: str) -> Iterator[Launch]:
    for site in project.calls_by(path, _LAUNCHING):
        word = last_identifier(site.call.func)
        if any(map(in_project, site.names)):
            continue
        made, several, shares = _launched(project, path, site, word)
        if made is not None:
            for target in _targets(project, path, made.func):
                yield Launch(path, site.call, target, several, shares, made)


def _launched(project: TaintFlow, path: str, site: CallSite, word: str) -> tuple[Call | None, bool, bool]:
    """The call that a call starts, whether several times at once, and whether in threads of this process."""
    call, made = site.call, launched_call(site.call)
    if word in _STARTING:
        return made, is_repeated(project, path, call), word == "Thread"
    if word in _SPAWNING:
        return made, not _is_one(known_argument(call, 2, "nprocs")), False
    if word == "add_done_callback":
        return made, is_repeated(project, path, call), True
    if word == "apply_async" and (callback := known_argument(call, 3, "callback")) is not None:
        return call._replace(func=callback, args=()), is_repeated(project, path, call), True
    if not any(map(_is_of_pool, site.names)) or _has_one_worker(project, path, call):
        return None, False, False
    repeated = word in _MAPPING or is_repeated(project, path, call)
    return made, repeated, any(map(_THREADS.fullmatch, site.names))


def _targets(project: TaintFlow, path: str, given: Expression) -> Iterator[str]:
    """The functions of the project that a value is; of a partial, the function."""
    match given:
        case Lambda(function=function):
            yield path + function
        case Call(func=func, args=(arg, *_)) if last_identifier(func) == "partial":
            yield from _targets(project, path, arg.value)
        case Ref():
            yield from (
                name for name in project.names(path, given) if in_project(name) and project.resolver.functions(name)
            )


def _of_classes(project: TaintFlow) -> Iterator[Launch]:
    """The objects of subclasses of Thread and Process: each runs their ``run``."""
    names = project.resolver
    for word in sorted(_STARTING):
        for base in (f"threading.{word}", f"multiprocessing.{word}", f"torch.multiprocessing.{word}"):
            for owner in names.subclasses(base):
                for run in names.methods(owner, "run"):
                    for path, call in names.call_graph.constructor_calls(owner) if names.functions(run) else ():
                        several, made = is_repeated(project, path, call), call._replace(args=())
                        yield Launch(path, call, run, several, word == "Thread", made)


def is_repeated(project: TaintFlow, path: str, call: Call) -> bool:
    """Whether a call stands in a loop or comprehension, or is in a function that is called in one."""
    spot = project.uses.spots(path).of(call)
    if spot is None:
        return False
    if _is_in_loop(project, path, call, spot):
        return True
    callers = project.uses.of_result(path + spot.function) if not is_module(spot.function) else []
    return any(
        (there := project.uses.spots(file).of(each)) is not None and _is_in_loop(project, file, each, there)
        for file, each in callers
    )


def starts_several(project: TaintFlow, launch: Launch, made: Iterable[tuple[str, Call]]) -> bool:
    """Whether a repeated launch is repeated for one of the objects that it is given, too: not where both are made in the same round."""
    spots = project.uses.spots(launch.path)
    here = spots.of(launch.call)
    if here is None or last_identifier(launch.call.func) in _MAPPING | _SPAWNING:
        return True
    if next(comprehensions(project, launch.path, launch.call), None) is not None:
        return True
    places = [spots.of(each) if path == launch.path else None for path, each in made]
    return not all(
        each is not None and each.function == here.function and set(_loops(here)) <= set(_loops(each))
        for each in places
    )


def _loops(spot: ExpressionPosition) -> Iterator[Loop]:
    """The loops in whose rounds an expression stands, in its own function."""
    return (block.owner for block in spot.blocks if isinstance(block.owner, Loop) and block.number == 0)


def _is_in_loop(project: TaintFlow, path: str, node: Expression, spot: ExpressionPosition) -> bool:
    if next(_loops(spot), None) is not None:
        return True
    return next(comprehensions(project, path, node), None) is not None


def comprehensions(project: TaintFlow, path: str, node: Expression) -> Iterator[Comprehension]:
    """The comprehensions whose elements contain an expression, innermost first."""
    for inner, around in project.uses.spots(path).enclosing(node):
        if isinstance(around, Comprehension) and not any(inner == each.source for each in around.clauses):
            yield around


def _is_one(value: Expression | None) -> bool:
    return isinstance(value, Constant) and value.value == 1


def _has_one_worker(project: TaintFlow, path: str, call: Call) -> bool:
    """Whether a pool has one worker: ``ThreadPoolExecutor(max_workers=1)``."""
    receiver = receiver_of(call.func)
    made = list(project.resolver.values(path, receiver)) if receiver is not None else []
    if isinstance(receiver, Ref) and not receiver.path:
        made += [(path, value) for root in receiver.roots for _, value in project.resolver.assigned(path + root)]
    return any(
        isinstance(each, Call) and _is_one(known_argument(each, 0, "max_workers", "processes")) for _, each in made
    )


def launches_of(project: TaintFlow, function: str, depth: int = 0) -> Iterator[Launch]:
    """The launches of a function, and of those that call it."""
    yield from (each for each in launches(project) if each.function == function)
    if depth < limits.MAX_WORKER_CALLS:
        for path, call in project.uses.of_result(function):
            spot = project.uses.spots(path).of(call)
            if spot is not None and not is_module(spot.function) and path + spot.function != function:
                yield from launches_of(project, path + spot.function, depth + 1)


def _is_of_pool(name: str) -> bool:
    """Whether a name is that of a method of a pool: ``multiprocessing.Pool().map``, also of a context's."""
    made, method = split_last(name)
    words = without_brackets(made).split(".")
    modules = words[:2] == ["concurrent", "futures"] or "multiprocessing" in words[:-1]
    return is_instance(made) and modules and words[-1] in _MAKING_POOLS and method.isidentifier()
