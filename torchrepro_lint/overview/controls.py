"""What decides whether a run can be repeated: the columns of the overview, and which rule speaks of which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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
