"""The lanes in which a timeline is drawn: one for each generator, and one for each switch that it has to do with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.rows import VARIABLE
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, CUDNN_ENABLED, DETERMINISTIC

if TYPE_CHECKING:
    from torchrepro_lint.domain.timeline import Moment, Trouble
    from torchrepro_lint.overview.records import Entry

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
