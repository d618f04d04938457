"""What is said of a run's switches: cuDNN, deterministic algorithms, the workspace of cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.catalogue.rows import NOT_NEEDED_SINCE, VARIABLE
from torchrepro_lint.domain.determinism_mode import enables, set_in
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, DETERMINISTIC, WARN, is_off
from torchrepro_lint.domain.operations.reached import is_convolution, on_request
from torchrepro_lint.overview.records import Cell
from torchrepro_lint.overview.seed_cells import NOT_REPORTED, at
from torchrepro_lint.source.files import release

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.timeline import Moment, Timeline
    from torchrepro_lint.overview.records import Item

_ELSEWHERE = "Nothing that this run reaches names a CUDA device."


def switch_cells(
    context: Context, program: Program, timeline: Timeline, items: Mapping[str, Sequence[Item]]
) -> Iterator[Cell]:
    """The three of them. A finding of TRL203 is about the convolutions of a run, too."""
    yield _cudnn(context, program, timeline, [each for each in items.get("algorithms", ()) if each.code == "TRL203"])
    yield _algorithms(context, program, timeline, bool(items.get("algorithms")))
    yield _workspace(context, program, timeline)


def _settings(timeline: Timeline, what: str) -> list[Moment]:
    return [each for each in timeline.moments if each.kind == "set" and each.what == what]


def _cudnn(context: Context, program: Program, timeline: Timeline, reported: Sequence[Item]) -> Cell:
    if timeline.device != "cuda":
        return Cell("cudnn", "unused", "no CUDA", _ELSEWHERE)
    timed = _open(context, program, timeline, CUDNN_BENCHMARK)
    if timed:
        return Cell(
            "cudnn",
            "unknown",
            "benchmark is left open",
            f"{timed.text} at {at(timed)}: what that is depends on the run.",
        )
    if not any(is_convolution(each.row) for each in on_request(context, program)):
        return Cell(
            "cudnn", "unused", "no convolution found", "No convolution was found whose backward needs cuDNN's switch."
        )
    if enables(context.project, program):
        return Cell("cudnn", "good", "kernels fixed", "Deterministic algorithms are asked for, which includes cuDNN's.")
    fixed = [each for each in set_in(context.project, program, CUDNN_DETERMINISTIC) if not is_off(each.value)]
    if fixed:
        said = next((each for each in _settings(timeline, CUDNN_DETERMINISTIC) if not each.trouble), None)
        told = f"{said.text} at {at(said)}" if said else "A library sets it"
        if all(each.value is OPEN for each in fixed):
            return Cell("cudnn", "risk", "left to an option", f"{told}: whether that is on depends on the run.")
        return Cell("cudnn", "good", "kernels fixed", f"{told}.")
    because = "The backward of convolutions may take nondeterministic algorithms: neither cudnn.deterministic nor deterministic mode is on."
    return Cell(
        "cudnn", "bad" if reported else "risk", "kernels may vary", because, tuple(each.id for each in reported)
    )


def _open(context: Context, program: Program, timeline: Timeline, what: str) -> Moment | None:
    """Where a flag is set to what only the run knows."""
    if any(each.value is OPEN for each in set_in(context.project, program, what)):
        return next((each for each in _settings(timeline, what) if each.value is None), None)
    return None


def _algorithms(context: Context, program: Program, timeline: Timeline, reported: bool) -> Cell:
    on = [each for each in set_in(context.project, program, DETERMINISTIC) if not is_off(each.value)]
    if on:
        return _asked(on[0].value, [each for each in _settings(timeline, DETERMINISTIC) if not each.trouble])
    cudnn = enables(context.project, program, CUDNN_DETERMINISTIC)
    reached = on_request(context, program)
    waiting = sorted({each.row.operation for each in reached if not (cudnn and is_convolution(each.row))})
    if waiting:
        told = "" if reported else f" {NOT_REPORTED}"
        who = f"{waiting[0]} waits" if len(waiting) == 1 else f"{len(waiting)} operations, first {waiting[0]}, wait"
        return Cell(
            "algorithms", "risk", "never asked for", f"{who} for torch.use_deterministic_algorithms(True).{told}"
        )
    if reached:
        return Cell(
            "algorithms",
            "good",
            "not needed",
            "Only convolutions would need it, and cudnn.deterministic is set for them.",
        )
    return Cell(
        "algorithms", "unused", "nothing needs it", "No operation was found that is deterministic on request only."
    )


def _asked(value: object, said: Sequence[Moment]) -> Cell:
    """They are asked for: always, on a condition, or for warnings only."""
    moment = said[0] if said else None
    place = f"{moment.text} at {at(moment)}" if moment else "A library asks for them"
    if value == WARN:
        return Cell("algorithms", "risk", "only warns", f"{place}: what has no deterministic kernel only warns.")
    if value is OPEN:
        return Cell("algorithms", "risk", "left to an option", f"{place}: whether that is on depends on the run.")
    if moment and moment.conditions:
        only = " and ".join(dict.fromkeys(moment.conditions))
        return Cell("algorithms", "risk", "on, on a condition", f"{place}, but only {only}.")
    return Cell("algorithms", "good", "on", f"{place}.")


def _workspace(context: Context, program: Program, timeline: Timeline) -> Cell:
    if timeline.device != "cuda":
        return Cell("workspace", "unused", "no CUDA", _ELSEWHERE)
    if release(context.catalogue.version) >= NOT_NEEDED_SINCE:
        first = ".".join(map(str, NOT_NEEDED_SINCE))
        return Cell(
            "workspace", "unused", "not needed", f"From torch {first} on deterministic mode needs no {VARIABLE}."
        )
    said = [each for each in _settings(timeline, VARIABLE) if not each.trouble]
    if said:
        return Cell("workspace", "good", "set", f"{said[0].text} at {at(said[0])}.")
    if not enables(context.project, program):
        return Cell(
            "workspace",
            "unused",
            "matters with the mode only",
            "It matters once deterministic algorithms are asked for.",
        )
    return Cell("workspace", "risk", "not set", f"Deterministic algorithms are asked for, and nothing sets {VARIABLE}.")
