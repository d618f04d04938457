"""What decides whether a run can be repeated: the columns of the overview, and which rule speaks of which.

Whether a finding about an operation concerns an entry point: by the device that it runs on, and its backward pass.

The lanes in which a timeline is drawn: one for each generator, and one for each switch that it has to do with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.rows import VARIABLE
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, CUDNN_ENABLED, DETERMINISTIC
from torchrepro_lint.domain.gradients.modes import has_backward
from torchrepro_lint.domain.operations.cases import cases
from torchrepro_lint.domain.operations.reached import device_of
from torchrepro_lint.syntax.nodes import span as span_of

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.timeline import Moment, Trouble
    from torchrepro_lint.interfaces.overview.records import Entry
    from torchrepro_lint.source.text import Span


class Control(NamedTuple):
    """A column: its key, what it is called in a table, and what it means in a sentence."""

    key: str
    title: str
    meaning: str


CONTROLS = (
    Control("python", "Python seed", "Python's global generator, random.*, is seeded."),
    Control("numpy", "NumPy seed", "NumPy's global generator, np.random.*, is seeded."),
    Control("torch", "torch seed", "torch's generator on the CPU is seeded; it initialises models and shuffles loaders."),
    Control("cuda", "CUDA seed", "The generators of the CUDA devices are seeded; dropout draws from them."),
    Control("events", "Order of events", "Seeds are set before the first draw."),
    Control("cudnn", "cuDNN", "cuDNN takes deterministic convolutions, and does not choose them by timing."),
    Control("algorithms", "Deterministic algorithms", "torch is asked for deterministic kernels where it has both."),
    Control("workspace", "cuBLAS workspace", "cuBLAS has the workspace of a fixed size that it needs to be deterministic."),
    Control("loaders", "Loader order", "Loaders, samplers and splits have an order that nothing else can move."),
    Control("workers", "Workers", "The random numbers of loader workers are fixed."),
    Control("operations", "Operations", "No operation is used that torch cannot repeat."),
    Control("order", "Sets and listings", "The order of no set, directory or hash decides anything."),
)  # fmt: skip
TITLES: Mapping[str, str] = {each.key: each.title for each in CONTROLS}
SEEDS = ("python", "numpy", "torch")


class State(NamedTuple):
    """What may be said of a control: a mark and a word that go with the colour, and how good it is (higher is better)."""

    key: str
    mark: str
    word: str
    meaning: str
    rank: int


STATES: Mapping[str, State] = {
    each.key: each
    for each in (
        State("bad", "✗", "to mend", "Two runs differ, or one of them crashes.", 0),
        State("risk", "!", "depends", "Repeatable under a condition that the sentence names.", 1),
        State("unknown", "?", "unknown", "The source does not tell.", 2),
        State("good", "✓", "settled", "Nothing to mend was found.", 3),
        State("unused", "\u2013", "not used", "The run has nothing of the kind.", 3),
    )
}
# Which control a rule is about, and what it says in the few words that a cell has room for. No control: about one
# generator of several, which the finding tells.
_RULES = (
    ("TRL101", "torch", "never seeded"),
    ("TRL102", "numpy", "never seeded"),
    ("TRL103", "python", "never seeded"),
    ("TRL104", "events", "drawn from too early"),
    ("TRL105", "", "new seed in each run"),
    ("TRL106", "", "generator without a seed"),
    ("TRL107", "", "seeded only on request"),
    ("TRL108", "numpy", "environment without a seed"),
    ("TRL109", "torch", "seed option is not read"),
    ("TRL110", "", "function that misses a seed"),
    ("TRL111", "torch", "parameter that nothing fills"),
    ("TRL201", "cudnn", "benchmark is on"),
    ("TRL202", "cudnn", "told to be nondeterministic"),
    ("TRL203", "algorithms", "never asked for"),
    ("TRL204", "algorithms", "asked for in vain"),
    ("TRL205", "workspace", "missing or set too late"),
    ("TRL206", "algorithms", "kernels picked by timing"),
    ("TRL301", "workers", "random numbers not fixed"),
    ("TRL302", "loaders", "global generator shuffles"),
    ("TRL303", "loaders", "global generator splits"),
    ("TRL304", "workers", "all workers draw the same"),
    ("TRL305", "loaders", "batches as they finish"),
    ("TRL306", "workers", "as many as there are cores"),
    ("TRL307", "workers", "seeds change, or are alike"),
    ("TRL401", "operations", "index_select's backward varies"),
    ("TRL402", "operations", "one that no setting repeats"),
    ("TRL403", "operations", "some need deterministic mode"),
    ("TRL404", "operations", "one that no setting repeats"),
    ("TRL405", "operations", "a library's varies"),
    ("TRL406", "operations", "ties come in any order"),
    ("TRL501", "order", "hash seed is set too late"),
    ("TRL502", "order", "a set's order decides"),
    ("TRL503", "order", "a listing's order decides"),
    ("TRL504", "order", "a hash of a string decides"),
    ("TRL505", "order", "results come as they finish"),
)
CONTROL_OF: Mapping[str, str] = {code: control for code, control, _ in _RULES if control}
WORDS: Mapping[str, str] = {code: words for code, _, words in _RULES}


# The rules that speak of rows of the catalogue.
_OF_ROWS = ("TRL401", "TRL402", "TRL403", "TRL404", "TRL406")


def concerns(context: Context, program: Program, code: str, span: Span) -> bool:
    """Whether a run that reaches a finding of the context's file has the device and the phase that it is about."""
    rows = _rows(context).get(span, []) if code in _OF_ROWS else []
    if not rows:
        return True
    device = device_of(context, program)
    return any(
        ("any" in row.devices or device in row.devices) and (row.phase != "backward" or has_backward(program))
        for row in rows
    )


def _rows(context: Context) -> dict[Span, list[Row]]:
    """The rows that may hold for each call of a file, worked out once."""
    known: dict[str, dict[Span, list[Row]]] = context.project.kept.setdefault(__name__, {})
    if context.path not in known:
        found = known.setdefault(context.path, {})
        for case in cases(context):
            found.setdefault(span_of(case.site.call), []).append(case.row)
    return known[context.path]


# Key, title, and whether the lane is drawn where nothing happens in it: always, on CUDA, or never.
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
_OF = {
    **dict.fromkeys((CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, CUDNN_ENABLED), "cudnn"),
    DETERMINISTIC: "algorithms",
    VARIABLE: "workspace",
    "torch-cuda": "cuda",
}
_MISSING = {"TRL203": "algorithms", "TRL205": "workspace"}
_GENERATORS = ("python", "numpy", "torch", "cuda", "own")


class Lane(NamedTuple):
    """A lane: ``moments`` are those in it by their number in the run, from 0; ``missing`` is what the run lacks there,
    in a sentence, else empty. ``state`` and ``says`` are those of the control, where the lane has one.
    """

    key: str
    title: str
    moments: tuple[tuple[int, Moment], ...]
    missing: str
    state: str
    says: str

    @property
    def generates(self) -> bool:
        """Whether it is a generator's."""
        return self.key in _GENERATORS


def lanes(entry: Entry) -> tuple[Lane, ...]:
    """Those of an entry point, from top to bottom."""
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
            found.append(Lane(key, title, moments, lacks, state, says))
    return tuple(found)


def lane_of(moment: Moment) -> str:
    """The title of the lane that a moment stands in first."""
    titles = {key: title for key, title, _ in _LANES}
    return titles[lane_key(moment)]


def lane_key(moment: Moment) -> str:
    """The key of that lane: of a switch that is a control, the control's."""
    return _OF.get(moment.what, "algorithms" if moment.kind == "operation" else moment.lane)


def _lanes_of(moment: Moment, entry: Entry) -> tuple[str, ...]:
    """Seeding torch seeds its devices, too."""
    first = lane_key(moment)
    both = first == "torch" and moment.kind in ("seed", "entropy") and entry.device == "cuda"
    return ("torch", "cuda") if both else (first,)


def _lane_of_trouble(trouble: Trouble) -> str:
    return _MISSING.get(trouble.code, trouble.lane)
