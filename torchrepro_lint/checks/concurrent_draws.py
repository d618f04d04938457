"""TRL506: concurrent tasks that draw from a global generator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.rows import FAMILIES, NUMPY, Family
from torchrepro_lint.checks.repetition import runs_often
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import propagated_constant
from torchrepro_lint.domain.programs import effects_in
from torchrepro_lint.domain.rng.effects import Draw
from torchrepro_lint.domain.rng.feasibility import is_feasible
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.binding import UNKNOWN_ARGUMENT, bound_argument, known_argument, launched_call
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    Loop,
    Record,
    Ref,
    Statement,
    span,
)
from torchrepro_lint.syntax.qualified_names import in_project, instance_value, is_instance, is_self, qualifier_of
from torchrepro_lint.syntax.scopes import control_flow_position
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import expressions_within, is_none, last_identifier, statements
from torchrepro_lint.trace.call_paths import call_path, place_of
from torchrepro_lint.trace.traces import Context

# Prefilter: a file that starts tasks imports one of these.
_PACKAGES = lazy_pattern(r"(^|[ .])(threading|concurrent|joblib|(torch\.)?multiprocess(ing)?)\b")
_MAPS = r"map|imap|imap_unordered|starmap|map_async|starmap_async"
_METHODS = rf"({_MAPS}|submit|apply|apply_async)"
_THREADS = lazy_pattern(
    r"threading\.(Thread|Timer)|multiprocessing\.dummy\.Process|"
    rf"(concurrent\.futures\.(thread\.)?ThreadPoolExecutor|multiprocessing\.(pool\.Thread|dummy\.)Pool)\(\)\.{_METHODS}"
)
_PROCESSES = lazy_pattern(
    r"(torch\.)?multiprocess(ing)?\.((process|context)\.)?(get_context\(\)\.)?\w*Process|"
    rf"(concurrent\.futures\.(process\.)?ProcessPoolExecutor|(torch\.)?multiprocess(ing)?\.(pool\.|get_context\(\)\.)?Pool)\(\)\.{_METHODS}"
)
_THREAD_CLASSES = frozenset({"threading.Thread", "threading.Timer"})
_PROCESS_CLASSES = frozenset({"multiprocessing.Process", "torch.multiprocessing.Process"})
_WORKERS = frozenset({"max_workers", "processes"})

# joblib's pool is called with the calls that ``delayed`` makes. It starts new interpreters, or threads where an option says so.
_JOBLIB = "joblib.Parallel()"
_DELAYED = "joblib.delayed()"
_THREAD_OPTIONS = frozenset({"threads", "threading", "sharedmem"})

# Calls that choose how processes start, and the choices that copy nothing.
_METHOD_SETTERS = frozenset({"get_context", "set_start_method"})
_FRESH = frozenset({"spawn", "forkserver"})


class TaskStart(Record, frozen=True):
    """A call that starts tasks: whether they are processes, whether one call starts several, what they run, the call
    that makes their pool, and whether that starts new interpreters whatever the program asks for.
    """

    site: CallSite
    processes: bool
    several: bool
    functions: tuple[str, ...]
    pool: Call | None
    fresh: bool = False


def check(context: Context) -> Iterator[Finding]:
    """Each call that starts tasks which draw from a generator that they share, or of which each has a copy."""
    if not _PACKAGES.search(" ".join(context.tree.summary.imports)):
        return
    starts = [(start, found) for start in _task_starts(context) if (found := _first_draw(context, start)) is not None]
    for start, (family, draw) in starts:
        if start.several or _is_repeated(context, start, [one for one, _ in starts]):
            steps = call_path(context.project, draw.trace_event, f"{draw.label} draws from {family.owner}")
            yield Finding("TRL506", span(start.site.call), _message(context, start, family, draw), steps=steps)


def _message(context: Context, start: TaskStart, family: Family, draw: Draw) -> str:
    place = place_of(context.project, draw.trace_event)
    if not start.processes:
        what = f"several threads draw from {family.owner} ({draw.label}, "
        return Message(
            what, place, "), so timing decides which of them gets which number; give each task a seeded generator"
        )
    if start.fresh or _spawns(context):
        what = f"{family.owner} is not seeded in spawned processes ({draw.label}, "
    elif family is NUMPY:
        what = f"forked processes copy numpy's global generator and all draw the same numbers ({draw.label}, "
    else:
        what = f"{family.owner} is seeded from entropy in each forked process ({draw.label}, "
    return Message(what, place, "); give each task a seeded generator")


def _spawns(context: Context) -> bool:
    """Whether the file asks for processes that are new interpreters."""
    return any(
        isinstance(arg.value, Constant) and arg.value.value in _FRESH
        for called in context.project.calls_by(context.path, _METHOD_SETTERS)
        for arg in called.call.args[:1]
    )


def _task_starts(context: Context) -> Iterator[TaskStart]:
    for site in context.project.calls(context.path):
        names = [name for name in site.names if not in_project(name)]
        for name in site.names:
            if in_project(name):
                yield from _of_class(context, site, name)
        if _JOBLIB in names:
            yield from _of_joblib(context, site)
        if any(_is_start(name, processes) for name in names for processes in (False, True)):
            pool = _pool(context, site.call)
            if pool is None or not _is_alone_or_seeded(context, pool):
                made = names if pool is None else _of_pool(context, pool, site.call)
                yield from _of_library(context, site, made, pool)


def _of_library(context: Context, site: CallSite, names: list[str], pool: Call | None) -> Iterator[TaskStart]:
    for processes in (False, True):
        if any(_is_start(name, processes) for name in names):
            several = pool is not None and re.fullmatch(_MAPS, last_identifier(site.call.func)) is not None
            yield TaskStart(site, processes, several, _functions(context, site.call), pool)
            return


def _of_joblib(context: Context, site: CallSite) -> Iterator[TaskStart]:
    """The tasks of ``Parallel(n_jobs=4)(delayed(f)(row) for row in rows)``; none where there is one worker."""
    project, path = context.project, context.path
    pool = _construction(context, site.call.func, site.call)
    tasks = site.call.args[0].value if site.call.args else None
    jobs = known_argument(pool, 0, "n_jobs") if pool is not None else None
    if pool is None or not isinstance(tasks, Comprehension) or jobs is None:
        return
    options = {propagated_constant(project.resolver, path, arg.value) for arg in pool.args}
    if propagated_constant(project.resolver, path, jobs) in (1, None) or "sequential" in options:
        return
    for task in tasks.elements:
        if isinstance(task, Call) and _DELAYED in project.names(path, task.func):
            functions = _functions(context, task)
            processes = _THREAD_OPTIONS.isdisjoint(options)
            yield TaskStart(site, processes, True, functions, pool, "multiprocessing" not in options)


def _is_start(name: str, processes: bool) -> bool:
    return (_PROCESSES if processes else _THREADS).fullmatch(name) is not None


def _pool(context: Context, call: Call) -> Call | None:
    """The construction of the pool whose method a call is."""
    receiver = receiver_or_container(call.func) if re.fullmatch(_METHODS, last_identifier(call.func)) else None
    return _construction(context, receiver, call) if receiver is not None else None


def _construction(context: Context, receiver: Expression, call: Call) -> Call | None:
    """The call that makes the object which a call uses: the last one above it, where there are several."""
    resolver = context.project.resolver
    made = [value for path, value in resolver.values_through_calls(context.path, receiver) if path == context.path]
    if isinstance(receiver, Ref) and not receiver.path:
        made += (value for root in receiver.roots for _, value in resolver.assigned(context.path + root))
    above = [each for each in made if isinstance(each, Call) and each.start <= call.start]
    return max(above, key=lambda each: each.start, default=None)


def _of_pool(context: Context, pool: Call, call: Call) -> list[str]:
    """The names of a method of a pool."""
    word = last_identifier(call.func)
    return [f"{instance_value(name)}.{word}" for name in context.project.names(context.path, pool.func)]


def _of_class(context: Context, site: CallSite, name: str) -> Iterator[TaskStart]:
    """The construction of a thread or process whose class is one of the project, with a method ``run``."""
    if context.project.resolver.classes(name):
        bases = {*context.project.resolver.ancestry(name)}
        for processes, classes in ((False, _THREAD_CLASSES), (True, _PROCESS_CLASSES)):
            if not bases.isdisjoint(classes):
                run = tuple(filter(in_project, context.project.resolver.methods(name, "run")))
                yield TaskStart(site, processes, False, run, None)


def _functions(context: Context, call: Call) -> tuple[str, ...]:
    """The functions of the project that the tasks run; also those that an object was given to run, as ``self.process``."""
    made = call.func if isinstance(call.func, Call) else call  # ``delayed(f)(row)``
    started = launched_call(made)
    if started is None:
        return ()
    resolver = context.project.resolver
    found = resolver.names(context.path, started.func) or resolver.object_names(context.path, started.func)
    return tuple(each for name in found if in_project(name) for each in _bodies(context, name))


def _bodies(context: Context, name: str) -> Iterator[str]:
    """A function itself, or the method that calling an object runs."""
    if context.project.resolver.functions(name):
        yield name
    elif is_instance(name):
        yield from filter(in_project, context.project.resolver.call_methods(name))


def _is_alone_or_seeded(context: Context, pool: Call) -> bool:
    """Whether a pool has a single worker, or seeds its workers, or may do so."""
    workers, initializer = bound_argument(pool, 0, *_WORKERS), bound_argument(pool, 1, "initializer")
    values = [value for _, value in context.project.values(context.path, workers)] if workers is not None else []
    alone = bool(values) and all(isinstance(each, Constant) and each.value == 1 for each in values)
    return alone or workers is UNKNOWN_ARGUMENT or (initializer is not None and _may_seed(context, initializer))


def _may_seed(context: Context, function: Expression) -> bool:
    """Whether an initializer seeds something, or is not known."""
    names = context.project.names(context.path, function)
    return not is_none(function) and (not names or any(not in_project(name) or _seeds(context, name) for name in names))


def _seeds(context: Context, name: str) -> bool:
    effects = effects_in(context.project, name)
    return bool(effects.seeds or effects.entropic or effects.unknown_seeder)


def _first_draw(context: Context, start: TaskStart) -> tuple[Family, Draw] | None:
    """The first draw of a task from a generator that it does not seed. Processes have a generator of torch that is copied
    with the rest, which is told where the run is not seeded.
    """
    for function in start.functions:
        effects = effects_in(context.project, function)
        if effects.unknown_seeder:
            continue
        for family in FAMILIES:
            if start.processes and family.key == "torch":
                continue
            if family.key not in effects.seeds and family.key not in effects.entropic:
                for draw in effects.draws.get(family.key, ()):
                    if (
                        _is_certain(draw)
                        and not _only_waits(context, draw)
                        and _is_given(context, start, draw)
                        and is_feasible(context.project, effects.run, draw.trace_event, likely=False)
                    ):
                        return family, draw
    return None


def _is_certain(draw: Draw) -> bool:
    """Whether the callee is known, and runs in the task itself, not in a loader's workers."""
    event = draw.trace_event
    return event.mode != "worker" and not event.assumed and len(event.names) <= limits.MAX_CERTAIN_NAMES


def _is_given(context: Context, start: TaskStart, draw: Draw) -> bool:
    """Whether a task runs the function that draws: not where a thread's class calls ``self.function``, and gets another one."""
    frame = next(iter(draw.trace_event.call_path), None)
    match frame.event.value if frame is not None and len(start.functions) == 1 else None:
        case Call(func=Ref(roots=(root,), path=(_,))) if is_self(root):
            names = [name for arg in start.site.call.args for name in context.project.names(context.path, arg.value)]
            given = {name for name in names if context.project.resolver.functions(name)}
            own = frame is None or frame.into in given or qualifier_of(frame.into) == qualifier_of(start.functions[0])
            return own or not given
    return True


def _only_waits(context: Context, draw: Draw) -> bool:
    """``time.sleep(random.random())``, also by a variable: a pause that changes no result."""
    statement, path = draw.trace_event.event.statement, draw.trace_event.path
    match statement:
        case ExpressionStatement(value=Call(func=func)):
            return last_identifier(func) == "sleep"
        case Assign(targets=(Ref(roots=(root,), path=()),), op="="):
            spots = context.project.uses.spots(path)
            reads = [spot for ref in spots.uses(root) if (spot := spots.of(ref)) is not None and not spot.written]
            calls = [spot.parent for spot in reads if isinstance(spot.parent, Call)]
            return len(calls) == len(reads) > 0 and all(last_identifier(each.func) == "sleep" for each in calls)
    return False


def _is_repeated(context: Context, start: TaskStart, others: list[TaskStart]) -> bool:
    """Whether a call runs more than once before what it starts has ended, or another one before that does the same."""
    call = start.site.call
    if any(_overlap(context, start, each) for each in others if each.site.call != call):
        return True
    return runs_often(context.project, context.path, call) and not _waits_in_loop(context, start)


def _overlap(context: Context, one: TaskStart, other: TaskStart) -> bool:
    """Whether two calls of a function start tasks on one pool, or threads that nothing waits for in between."""
    if one.site.function != other.site.function or one.pool != other.pool:
        return False
    first, last = sorted(each.site.call.start for each in (one, other))
    level = control_flow_position(context.tree, first)
    between = [each for each in statements(level.body if level else ()) if first < each.start < last]
    return not any(map(_waits, between))


def _waits_in_loop(context: Context, start: TaskStart) -> bool:
    """Whether the loop around a call waits for each task before it starts the next."""
    level = control_flow_position(context.tree, start.site.call.start)
    loops = [spot.parent for spot in level.spots if isinstance(spot.parent, Loop)] if level is not None else []
    return bool(loops) and not start.processes and any(map(_waits, statements(loops[-1].body)))


def _waits(statement: Statement) -> bool:
    for each in expressions_within(statement):
        match each:
            case Comprehension():
                return False
            case Call(func=Ref(path=(*_, "join" | "result")) | Attribute(name="join" | "result"), args=()):
                return True
    return False
