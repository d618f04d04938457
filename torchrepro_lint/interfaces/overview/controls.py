"""Controls: what a repeatable run needs, one column of the overview each, with the rules that report on it.

Also which entry points a finding about an operation concerns (by device and backward pass), and the lanes in which a
timeline is drawn: one for each generator and flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchrepro_lint.catalogue.rows import CUBLAS_VARIABLE, OperationRow
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, CUDNN_ENABLED, DETERMINISTIC
from torchrepro_lint.domain.operations.cases import cases
from torchrepro_lint.domain.operations.reached_operations import device_of
from torchrepro_lint.domain.programs import Program, has_backward
from torchrepro_lint.domain.timeline import TimelineDiagnostic, TimelineEvent
from torchrepro_lint.interfaces.overview.records import EntryRecord
from torchrepro_lint.query.database import query
from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.nodes import span as span_of
from torchrepro_lint.trace.traces import Context


class Control(NamedTuple):
    """A control: its key, its title in a table, and its meaning in a sentence."""

    key: str
    title: str
    meaning: str


CONTROLS = (
    Control("python", "Python seed", "Python's global generator, random.*, is seeded."),
    Control("numpy", "NumPy seed", "NumPy's global generator, np.random.*, is seeded."),
    Control("torch", "torch seed", "torch's generator on the CPU is seeded; it initialises models and shuffles loaders."),
    Control("cuda", "CUDA seed", "The generators of the CUDA devices are seeded; dropout draws from them."),
    Control("events", "Order of events", "The generators are seeded before the first draw."),
    Control("cudnn", "cuDNN", "cuDNN uses deterministic convolutions, and does not choose them by timing."),
    Control("algorithms", "Deterministic algorithms", "torch uses its deterministic kernels, where it has them."),
    Control("workspace", "cuBLAS workspace", "cuBLAS has the workspace of a fixed size that it needs to be deterministic."),
    Control("loaders", "Loader order", "No other draw changes the order of loaders, samplers and splits."),
    Control("workers", "Workers", "The random numbers of loader workers are fixed."),
    Control("operations", "Operations", "The run uses no nondeterministic operation of torch."),
    Control("order", "Sets and listings", "Nothing depends on the order of a set, a directory or a hash."),
)  # fmt: skip
TITLES: Mapping[str, str] = {each.key: each.title for each in CONTROLS}
SEEDS = ("python", "numpy", "torch")


class ControlState(NamedTuple):
    """A state of a control: a mark and a word beside its colour, its meaning, and its rank (higher is better)."""

    key: str
    mark: str
    word: str
    meaning: str
    rank: int


STATES: Mapping[str, ControlState] = {
    each.key: each
    for each in (
        ControlState("bad", "✗", "to fix", "Two runs differ, or one of them crashes.", 0),
        ControlState("risk", "!", "depends", "The run repeats under a condition that the text names.", 1),
        ControlState("unknown", "?", "unknown", "The source does not say.", 2),
        ControlState("good", "✓", "settled", "Nothing to fix was found.", 3),
        ControlState("unused", "\u2013", "not used", "The run uses nothing of this kind.", 3),
    )
}
# What cells say in more than one case.
NOT_KNOWN, NOT_NEEDED = "not known: a call is not followed", "not needed"
# The control of each rule, and its message in the few words that fit a cell. Without a control the finding says
# which generator it is about. What TRL0 reports makes no run less repeatable.
_RULES = (
    ("TRL101", "torch", "never seeded"),
    ("TRL102", "numpy", "never seeded"),
    ("TRL103", "python", "never seeded"),
    ("TRL104", "events", "draws before the seed"),
    ("TRL105", "", "new seed in each run"),
    ("TRL106", "", "generator without a seed"),
    ("TRL107", "", "seeded only by an option"),
    ("TRL108", "numpy", "environment without a seed"),
    ("TRL109", "torch", "seed option is not read"),
    ("TRL110", "", "function seeds only some generators"),
    ("TRL111", "torch", "uninitialised memory"),
    ("TRL112", "events", "resumes without generators"),
    ("TRL113", "order", "the clock decides"),
    ("TRL201", "cudnn", "benchmark is on"),
    ("TRL202", "cudnn", "set to nondeterministic"),
    ("TRL203", "algorithms", "not enabled"),
    ("TRL204", "algorithms", "enabled without effect"),
    ("TRL205", "workspace", "missing or set too late"),
    ("TRL206", "algorithms", "kernels picked by timing"),
    ("TRL301", "workers", "seeded by the global generator"),
    ("TRL302", "loaders", "shuffled by the global generator"),
    ("TRL303", "loaders", "split by the global generator"),
    ("TRL304", "workers", "all workers draw the same"),
    ("TRL305", "loaders", "batches out of order"),
    ("TRL306", "workers", "as many workers as cores"),
    ("TRL307", "workers", "workers are seeded wrongly"),
    ("TRL401", "operations", "index_select's backward varies"),
    ("TRL402", "operations", "no deterministic version"),
    ("TRL403", "operations", "some need deterministic mode"),
    ("TRL404", "operations", "no deterministic version"),
    ("TRL405", "operations", "an operation of a library varies"),
    ("TRL406", "operations", "order of ties decides"),
    ("TRL501", "order", "hash seed is set too late"),
    ("TRL502", "order", "a set's order decides"),
    ("TRL503", "order", "a listing's order decides"),
    ("TRL504", "order", "a hash of a string decides"),
    ("TRL505", "order", "results in completion order"),
    ("TRL506", "order", "tasks share a generator"),
)
CONTROL_OF: Mapping[str, str] = {code: control for code, control, _ in _RULES if control}
SHORT_MESSAGES: Mapping[str, str] = {code: words for code, _, words in _RULES}


# The rules that report rows of the catalogue.
_OF_ROWS = ("TRL401", "TRL402", "TRL403", "TRL404", "TRL406")


def concerns_program(context: Context, program: Program, code: str, span: Span) -> bool:
    """Whether an entry point that reaches a finding runs on its device and in its phase (forward or backward)."""
    rows = _rows(context).get(span, []) if code in _OF_ROWS else []
    if not rows:
        return True
    device = device_of(context, program)
    return any(
        ("any" in row.devices or device in row.devices) and (row.phase != "backward" or has_backward(program))
        for row in rows
    )


def _rows(context: Context) -> dict[Span, list[OperationRow]]:
    """The rows of the catalogue that may hold for each call of a file, computed once."""
    return _rows_in(context, context.path)


@query()
def _rows_in(context: Context, _path: str) -> dict[Span, list[OperationRow]]:
    found: dict[Span, list[OperationRow]] = {}
    for case in cases(context):
        found.setdefault(span_of(case.site.call), []).append(case.row)
    return found


# Key, title, and whether the lane is drawn without events: always, on CUDA, or never.
_LANES = (
    ("python", "Python", "always"),
    ("numpy", "NumPy", "always"),
    ("torch", "torch", "always"),
    ("cuda", "CUDA", "cuda"),
    ("own", "Own generators", ""),
    ("cudnn", "cuDNN", "cuda"),
    ("algorithms", "Deterministic mode", "cuda"),
    ("workspace", "cuBLAS workspace", ""),
    ("flags", "Other flags", ""),
    ("variables", "Environment", ""),
    ("device", "Device", ""),
)
_LANE_OF = {
    **dict.fromkeys((CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, CUDNN_ENABLED), "cudnn"),
    DETERMINISTIC: "algorithms",
    CUBLAS_VARIABLE: "workspace",
    "torch-cuda": "cuda",
}
_MISSING = {"TRL203": "algorithms", "TRL205": "workspace"}
_GENERATORS = ("python", "numpy", "torch", "cuda", "own")


class DrawnLane(NamedTuple):
    """A lane of a drawn timeline: ``moments`` are its events with their number in the run, from 0; ``missing`` says in a
    sentence what the run lacks there, else it is empty. ``state`` and ``says`` are those of the control, where the lane has one.
    """

    key: str
    title: str
    moments: tuple[tuple[int, TimelineEvent], ...]
    missing: str
    state: str
    says: str

    @property
    def generates(self) -> bool:
        """Whether it is the lane of a generator."""
        return self.key in _GENERATORS


def lanes(entry: EntryRecord) -> tuple[DrawnLane, ...]:
    """The lanes of an entry point, from top to bottom."""
    timeline = entry.timeline
    missing = {_lane_of_trouble(each): each.text for each in timeline.missing}
    cells = {cell.control: cell for cell in entry.cells}
    found = []
    for key, title, shown in _LANES:
        moments = tuple((number, each) for number, each in enumerate(timeline.moments) if key in _lanes_of(each, entry))
        if moments or key in missing or shown in ("always", entry.device):
            cell = cells.get(key)
            state, says = (cell.state, cell.says) if cell else ("", "")
            lacks = missing.get(key, "" if moments or state != "bad" else says)
            found.append(DrawnLane(key, title, moments, lacks, state, says))
    return tuple(found)


def lane_title(moment: TimelineEvent) -> str:
    """The title of the first lane of an event."""
    titles = {key: title for key, title, _ in _LANES}
    return titles[lane_key(moment)]


def lane_key(moment: TimelineEvent) -> str:
    """The key of the first lane of an event: for a flag that is a control, the control's."""
    return _LANE_OF.get(moment.what, "algorithms" if moment.kind == "operation" else moment.lane)


def _lanes_of(moment: TimelineEvent, entry: EntryRecord) -> tuple[str, ...]:
    """The lanes of an event: seeding torch seeds its devices, too."""
    first = lane_key(moment)
    both = first == "torch" and moment.kind in ("seed", "entropy") and entry.device == "cuda"
    return ("torch", "cuda") if both else (first,)


def _lane_of_trouble(trouble: TimelineDiagnostic) -> str:
    return _MISSING.get(trouble.code, trouble.lane)
