"""The cells of the overview: the state of each control in one entry point, with its reason.

States are computed from the timeline of the entry point: seeds and their order, flags (cuDNN, deterministic algorithms, the
cuBLAS workspace), loaders and operations. Findings can only make a state worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.catalogue.rows import CUBLAS_NOT_NEEDED_SINCE, CUBLAS_VARIABLE, FAMILIES, Family
from torchrepro_lint.domain.determinism_mode import flag_writes_in, sets_flag
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, DETERMINISTIC, WARN, is_off
from torchrepro_lint.domain.loaders.constructions import Loader, loaders
from torchrepro_lint.domain.operations.gaps import first_gap
from torchrepro_lint.domain.operations.reached_operations import (
    is_convolution,
    operations_needing_mode,
    operations_raising,
)
from torchrepro_lint.domain.programs import Program, is_relevant
from torchrepro_lint.domain.timeline import Timeline, TimelineEvent
from torchrepro_lint.interfaces.overview.controls import (
    CONTROL_OF,
    CONTROLS,
    NOT_KNOWN,
    NOT_NEEDED,
    SEEDS,
    SHORT_MESSAGES,
    STATES,
    lane_key,
)
from torchrepro_lint.interfaces.overview.gaps import across_gap, as_sentence, capitalised, first_run_gap
from torchrepro_lint.interfaces.overview.records import Cell, FindingRecord, Location
from torchrepro_lint.interfaces.report.summary import counted
from torchrepro_lint.source.files import release
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.qualified_names import path_of
from torchrepro_lint.trace.traces import Context

_NONE = "No DataLoader was found in this run."


def _loader_cells(context: Context, program: Program) -> Iterator[Cell]:
    """The cells of loader order and workers, for the loaders that the entry point constructs."""
    found = list(_loaders(context, program))
    if not found:
        yield Cell("loaders", "unused", "no loader", _NONE)
        yield Cell("workers", "unused", "no loader", _NONE)
        return
    closed = [each for each in found if not each[1].arguments.complete]
    if closed:
        path, first = closed[0]
        place = Location(path, *context.project.position(path, first.site.call.start))
        because = f"The arguments of {counted(len(closed), 'loader')} cannot be read, first at {place}."
        yield Cell("loaders", "unknown", "arguments not known", because)
        yield Cell("workers", "unknown", "arguments not known", because)
        return
    yield _loader_order([each for _, each in found])
    yield _workers([each for _, each in found])


def _loaders(context: Context, program: Program) -> Iterator[tuple[str, Loader]]:
    """The loaders that are constructed, one for each call, with their files."""
    reached = program.run.functions
    for path in sorted({path_of(function) for function in reached}):
        seen: set[Call] = set()
        for each in loaders(context.project, path):
            if each.site.function in reached and each.site.call not in seen:
                seen.add(each.site.call)
                yield path, each


def _loader_order(found: Sequence[Loader]) -> Cell:
    shuffled = sum(each.shuffles for each in found)
    if not shuffled:
        return Cell(
            "loaders", "good", "nothing is shuffled", f"{counted(len(found), 'loader')}. None of them shuffles."
        )
    if any(each.shuffles and not each.passes("generator") for each in found):
        because = f"{counted(len(found), 'loader')}, of which {shuffled} may shuffle; they draw their order from torch's global generator."
        return Cell("loaders", "risk", "shuffled by the global generator", because)
    because = f"{counted(len(found), 'loader')}; those that shuffle ({shuffled}) have their own generator."
    return Cell("loaders", "good", "own generators", because)


def _workers(found: Sequence[Loader]) -> Cell:
    working = sum(each.has_workers for each in found)
    if not working:
        return Cell("workers", "good", "no workers", f"{counted(len(found), 'loader')}, all in the main process.")
    because = f"{counted(len(found), 'loader')}, {working} with workers. The workers are seeded, or they draw nothing."
    return Cell("workers", "good", "workers draw nothing unseeded", because)


# Where something is missing, but no finding of this entry point reports it.
_NOT_REPORTED = (
    "There is no finding here: the entry point whose function this run calls has it, or a comment or setting hides it."
)
_ASKS = {"torch": "torch.manual_seed", "numpy": "np.random.seed", "python": "random.seed"}


def _seed_cells(
    context: Context, program: Program, timeline: Timeline, items: Mapping[str, Sequence[FindingRecord]]
) -> Iterator[Cell]:
    """The cells of the seeds of Python, NumPy, torch and CUDA, and of the order of events."""
    found = {each.key: _generator(context, program, timeline, each, bool(items.get(each.key))) for each in FAMILIES}
    yield from (found[key] for key in SEEDS)
    yield _cuda(timeline, found["torch"], [each for each in items.get("torch", ()) if each.code == "TRL101"])
    yield _seed_order(timeline)


def _lane_state(timeline: Timeline, key: str) -> str:
    """The state of a generator's lane: seeded, late, unseeded, ..."""
    return next(lane.state for lane in timeline.lanes if lane.key == key)


def _location(moment: TimelineEvent) -> str:
    """The location of an event of the timeline: ``train.py:12``."""
    return str(Location(moment.path, *moment.place))


def _located(moment: TimelineEvent) -> str:
    """``torch.manual_seed(0) at train.py:12``."""
    return f"{moment.text} at {_location(moment)}"


def _only(moment: TimelineEvent) -> str:
    """The conditions of an event."""
    return " and ".join(dict.fromkeys(moment.conditions))


def _no_cuda(control: str) -> Cell:
    return Cell(control, "unused", "no CUDA", "Nothing that this run reaches names a CUDA device.")


def _moments(timeline: Timeline, what: str, kind: str) -> list[TimelineEvent]:
    return [each for each in timeline.moments if (each.kind, each.what) == (kind, what)]


def _generator(context: Context, program: Program, timeline: Timeline, family: Family, reported: bool) -> Cell:
    key, state = family.key, _lane_state(timeline, family.key)
    draws, seeds = _moments(timeline, key, "draw"), _moments(timeline, key, "seed")
    first = f"{draws[0].text} ({_location(draws[0])}) draws first" if draws else "Nothing was found to draw from it"
    if state in ("untouched", "seeded") and not seeds:
        return Cell(key, "unused", "not used", f"Nothing in this run draws from {family.owner}.")
    if state == "seeded":
        return _seeded(key, seeds, draws)
    if state == "late":
        because = f"{first}, and {seeds[0].text} comes after it ({_location(seeds[0])})."
        return Cell(key, "risk", "seeded too late", because)
    if state == "entropy":
        anew = _moments(timeline, key, "entropy")[0]
        return Cell(key, "bad", "new seed in each run", f"{anew.text} ({_location(anew)}) seeds it anew in each run.")
    if state == "unknown":
        return Cell(key, "unknown", "perhaps seeded", f"{first}. A call that is not followed may seed it.")
    if not is_relevant(context.project, program):
        because = f"{first}, and nothing seeds it. No rule reports it, because the run saves and measures nothing."
        return Cell(key, "risk", "never seeded", because)
    told = "" if reported else f" {_NOT_REPORTED}"
    return Cell(key, "risk", "never seeded", f"{first}, and nothing seeds it: {_ASKS[key]}(...).{told}")


def _seeded(key: str, seeds: Sequence[TimelineEvent], draws: Sequence[TimelineEvent]) -> Cell:
    plain = next((each for each in seeds if not each.conditions), None)
    count = sum(each.times for each in draws)
    before = "the one draw that was found" if count == 1 else f"all {count} draws that were found"
    then = f", before {before}." if count else "; nothing was found to draw from it."
    if plain is not None:
        return Cell(key, "good", "seeded", f"{_located(plain)}{then}")
    return Cell(key, "risk", "seeded under a condition", f"{_located(seeds[0])}, but only {_only(seeds[0])}.")


def _cuda(timeline: Timeline, torch: Cell, reported: Sequence[FindingRecord]) -> Cell:
    if timeline.device != "cuda":
        return _no_cuda("cuda")
    own, all_devices = _moments(timeline, "torch-cuda", "seed"), _moments(timeline, "torch", "seed")
    if all_devices and torch.state == "good":
        return Cell("cuda", "good", "seeded", f"{_located(all_devices[0])} seeds every device, too.")
    if own and not own[0].conditions:
        return Cell("cuda", "good", "seeded", f"{_located(own[0])}.")
    if torch.state == "unused":
        return Cell("cuda", "unused", "not used", "Nothing in this run was found to draw from torch's generators.")
    because = f"The devices' generators are seeded with torch's own: {torch.because}"
    return Cell("cuda", "bad" if reported else torch.state, torch.says, because, tuple(each.id for each in reported))


def _seed_order(timeline: Timeline) -> Cell:
    states = {family.key: _lane_state(timeline, family.key) for family in FAMILIES}
    late = [family for family in FAMILIES if states[family.key] == "late"]
    if late:
        owners = " and ".join(family.owner for family in late)
        return Cell("events", "risk", "draws before the seed", f"There are draws from {owners} before it is seeded.")
    drawn = {each.what for each in timeline.moments if each.kind == "draw"}
    if not drawn & set(states):
        because = "Nothing in this run was found to draw from a global generator."
        return Cell("events", "unused", "nothing is drawn", because)
    settled = [family.owner for family in FAMILIES if states[family.key] == "seeded" and family.key in drawn]
    if settled:
        return Cell("events", "good", "seeds come first", f"Seeded before the first draw: {', '.join(settled)}.")
    because = "The generators that the run draws from are never seeded, so their order does not matter."
    return Cell("events", "unused", "nothing is seeded", because)


_ONLY_WARNS = "only warns"
_AT_RUN_TIME = "the value is known only at run time."


def _switch_cells(
    context: Context, program: Program, timeline: Timeline, items: Mapping[str, Sequence[FindingRecord]]
) -> Iterator[Cell]:
    """The cells of cuDNN, deterministic algorithms and workspace. TRL203 concerns convolutions, too."""
    yield _cudnn(context, program, timeline, [each for each in items.get("algorithms", ()) if each.code == "TRL203"])
    yield _algorithms(context, program, timeline, bool(items.get("algorithms")))
    yield _workspace(context, program, timeline)


def _cudnn(context: Context, program: Program, timeline: Timeline, reported: Sequence[FindingRecord]) -> Cell:
    if timeline.device != "cuda":
        return _no_cuda("cudnn")
    timed = _undecided_setting(context, program, timeline, CUDNN_BENCHMARK)
    if timed:
        because = f"{_located(timed)}: its value is known only at run time."
        return Cell("cudnn", "unknown", "benchmark depends on the run", because)
    if not any(is_convolution(each.row) for each in operations_needing_mode(context, program)):
        because = "No convolution was found whose backward needs cuDNN's switch."
        return Cell("cudnn", "unused", "no convolution found", because)
    if fixed := _cudnn_fixed(context, program, timeline):
        return fixed
    because = "The backward of convolutions may take nondeterministic algorithms: neither cudnn.deterministic nor deterministic mode is on."
    return Cell(
        "cudnn", "bad" if reported else "risk", "kernels may vary", because, tuple(each.id for each in reported)
    )


def _cudnn_fixed(context: Context, program: Program, timeline: Timeline) -> Cell | None:
    """The cell of cuDNN in a program that asks for deterministic kernels, of cuDNN alone or of all; None in others."""
    asked = _mode_requested(context, program, timeline)
    if asked and (asked.state == "good" or asked.says == _ONLY_WARNS):
        return Cell("cudnn", "good", "kernels fixed", "Deterministic algorithms are enabled, and they include cuDNN's.")
    fixed = [each for each in flag_writes_in(context.project, program, CUDNN_DETERMINISTIC) if not is_off(each.value)]
    if not fixed:
        return asked and asked._replace(control="cudnn")
    said = next((each for each in _moments(timeline, CUDNN_DETERMINISTIC, "set") if not each.trouble), None)
    told = _located(said) if said else "A library sets it"
    if all(each.value is UNKNOWN_VALUE for each in fixed):
        return Cell("cudnn", "risk", "depends on an option", f"{told}: {_AT_RUN_TIME}")
    return Cell("cudnn", "good", "kernels fixed", f"{told}.")


def _undecided_setting(context: Context, program: Program, timeline: Timeline, what: str) -> TimelineEvent | None:
    """The event that sets a flag to a value unknown before the run."""
    if any(each.value is UNKNOWN_VALUE for each in flag_writes_in(context.project, program, what)):
        return next((each for each in _moments(timeline, what, "set") if each.value is None), None)
    return None


def _algorithms(context: Context, program: Program, timeline: Timeline, reported: bool) -> Cell:
    if asked := _mode_requested(context, program, timeline):
        return asked
    cudnn = sets_flag(context.project, program, CUDNN_DETERMINISTIC)
    reached = operations_needing_mode(context, program)
    waiting = sorted({each.row.operation for each in reached if not (cudnn and is_convolution(each.row))})
    if waiting:
        told = "" if reported else f" {_NOT_REPORTED}"
        who = f"{waiting[0]} needs" if len(waiting) == 1 else f"{len(waiting)} operations, first {waiting[0]}, need"
        return Cell("algorithms", "risk", "not enabled", f"{who} torch.use_deterministic_algorithms(True).{told}")
    gap = first_gap(context.project, program)
    if gap:
        because = f"{capitalised(gap)}, so operations there may need torch.use_deterministic_algorithms(True)."
        return Cell("algorithms", "unknown", NOT_KNOWN, because)
    if reached:
        because = "Only convolutions would need it, and cudnn.deterministic is set for them."
        return Cell("algorithms", "good", NOT_NEEDED, because)
    because = "No operation was found that is deterministic on request only."
    return Cell("algorithms", "unused", "nothing needs it", because)


def _mode_requested(context: Context, program: Program, timeline: Timeline) -> Cell | None:
    """The cell of deterministic algorithms in a program that requests them; None in others."""
    on = [each for each in flag_writes_in(context.project, program, DETERMINISTIC) if not is_off(each.value)]
    said = [each for each in _moments(timeline, DETERMINISTIC, "set") if not each.trouble]
    return _algorithms_on(on[0].value, said) if on else None


def _algorithms_on(value: object, said: Sequence[TimelineEvent]) -> Cell:
    """The cell where deterministic algorithms are requested: always, on a condition, or for warnings only."""
    moment = said[0] if said else None
    place = _located(moment) if moment else "A library enables them"
    if value == WARN:
        because = f"{place}: an operation without a deterministic kernel only warns."
        return Cell("algorithms", "risk", _ONLY_WARNS, because)
    if value is UNKNOWN_VALUE:
        return Cell("algorithms", "risk", "depends on an option", f"{place}: {_AT_RUN_TIME}")
    if moment and moment.conditions:
        return Cell("algorithms", "risk", "on under a condition", f"{place}, but only {_only(moment)}.")
    return Cell("algorithms", "good", "on", f"{place}.")


def _workspace(context: Context, program: Program, timeline: Timeline) -> Cell:
    if timeline.device != "cuda":
        return _no_cuda("workspace")
    if release(context.catalogue.version) >= CUBLAS_NOT_NEEDED_SINCE:
        first = ".".join(map(str, CUBLAS_NOT_NEEDED_SINCE))
        because = f"From torch {first} on deterministic mode needs no {CUBLAS_VARIABLE}."
        return Cell("workspace", "unused", NOT_NEEDED, because)
    said = [each for each in _moments(timeline, CUBLAS_VARIABLE, "set") if not each.trouble]
    if said:
        return Cell("workspace", "good", "set", f"{_located(said[0])}.")
    if not sets_flag(context.project, program):
        because = "It matters only where deterministic algorithms are enabled."
        return Cell("workspace", "unused", "mode is not enabled", because)
    because = f"Deterministic algorithms are enabled, and nothing sets {CUBLAS_VARIABLE}."
    return Cell("workspace", "risk", "not set", because)


_BY_RULES = ("loaders", "workers", "operations", "order")
_WEIGHTS = ("note", "warning", "error")


def cells(
    context: Context, program: Program, timeline: Timeline, items: Iterable[FindingRecord], off: Collection[str] = ()
) -> tuple[Cell, ...]:
    """The cells of an entry point in the order of ``CONTROLS``.

    ``items`` are the findings that its run reaches, ``off`` the default rules that did not run. The state comes from the
    timeline, and findings can only make it worse, so a cell never contradicts its findings.
    """
    by_control: dict[str, list[FindingRecord]] = {}
    for item in items:
        by_control.setdefault(item.control, []).append(item)
    found = {
        each.control: _with_trouble(each, timeline) for each in _computed_cells(context, program, timeline, by_control)
    }
    gap = first_run_gap(context, program)
    checked = (across_gap(_unknown_without_rules(found[each.key], off), program, gap) for each in CONTROLS)
    return tuple(_with_findings(cell, by_control.get(cell.control, ())) for cell in checked)


def _computed_cells(
    context: Context, program: Program, timeline: Timeline, items: Mapping[str, Sequence[FindingRecord]]
) -> Iterable[Cell]:
    yield from _seed_cells(context, program, timeline, items)
    yield from _switch_cells(context, program, timeline, items)
    yield from _loader_cells(context, program)
    yield _operations(context, program)
    because = "Nothing was found that depends on the order of a set, a directory or a hash."
    yield Cell("order", "good", "none found", because)


def _operations(context: Context, program: Program) -> Cell:
    stopping = {each.row.operation for each in operations_raising(context, program)}
    if stopping:
        named = ", ".join(sorted(stopping))
        return Cell("operations", "risk", "no deterministic version", f"Deterministic mode stops at {named}.")
    gap = first_gap(context.project, program)
    if gap:
        because = f"{capitalised(gap)}, so deterministic mode may stop there."
        return Cell("operations", "unknown", NOT_KNOWN, because)
    waiting = {each.row.operation for each in operations_needing_mode(context, program)}
    if waiting:
        count = "1 operation has" if len(waiting) == 1 else f"{len(waiting)} operations have"
        told = f"{count} a deterministic implementation, which deterministic mode selects; none lacks one."
        return Cell("operations", "good", "all have a deterministic version", told)
    return Cell("operations", "unused", "none found", "No nondeterministic operation of torch was found.")


def _with_trouble(cell: Cell, timeline: Timeline) -> Cell:
    """A cell whose flag the timeline marks as wrong, also where no finding reports it."""
    for each in timeline.moments:
        wrong = each.trouble is not None and each.kind == "set" and lane_key(each) == cell.control
        if wrong and each.trouble and STATES[cell.state].rank > STATES["risk"].rank:
            told = f"{_located(each)} {each.trouble.text}. There is no finding: a test in the code decides it, or a comment or setting hides it."
            return Cell(cell.control, "risk", SHORT_MESSAGES[each.trouble.code], told)
    return cell


def _unknown_without_rules(cell: Cell, off: Collection[str]) -> Cell:
    """The cell as unknown, if only rules decide it and one of them did not run."""
    missing = sorted(code for code in off if CONTROL_OF.get(code) == cell.control)
    if missing and cell.control in _BY_RULES and cell.state == "good":
        because = f"The rules that check this did not run: {', '.join(missing)}."
        return Cell(cell.control, "unknown", "not checked", because)
    return cell


def _with_findings(cell: Cell, items: Sequence[FindingRecord]) -> Cell:
    if not items:
        return cell
    ids = tuple(item.id for item in items)
    worst = max(items, key=lambda item: _WEIGHTS.index(item.severity))
    state = "risk" if worst.severity == "note" else "bad"
    if STATES[cell.state].rank < STATES[state].rank:
        return cell._replace(findings=ids)
    more = f" And {len(items) - 1} more." if len(items) > 1 else ""
    return Cell(cell.control, state, SHORT_MESSAGES[worst.code], f"{as_sentence(worst.message)}{more}", ids)
