"""What is said of the seeds of a run, and of their place in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.overview.controls import SEEDS
from torchrepro_lint.overview.records import Cell, Place

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.timeline import Moment, Timeline
    from torchrepro_lint.overview.records import Item

# Said where the run lacks something, and no finding of its own says so.
NOT_REPORTED = (
    "No finding says so here: it is reported with the entry point whose function this run calls, or it is hidden."
)
_ASKS = {"torch": "torch.manual_seed", "numpy": "np.random.seed", "python": "random.seed"}


def seed_cells(program: Program, timeline: Timeline, items: Mapping[str, Sequence[Item]]) -> Iterator[Cell]:
    """Python, NumPy, torch, CUDA, and the order of events."""
    found = {each.key: _generator(program, timeline, each, bool(items.get(each.key))) for each in FAMILIES}
    yield from (found[key] for key in SEEDS)
    yield _cuda(timeline, found["torch"], [each for each in items.get("torch", ()) if each.code == "TRL101"])
    yield _order(timeline)


def lane_state(timeline: Timeline, key: str) -> str:
    """What became of a generator."""
    return next(lane.state for lane in timeline.lanes if lane.key == key)


def at(moment: Moment) -> str:
    """Where something happens: ``train.py:12``."""
    return str(Place(moment.path, *moment.place))


def _moments(timeline: Timeline, what: str, kind: str) -> list[Moment]:
    return [each for each in timeline.moments if (each.kind, each.what) == (kind, what)]


def _generator(program: Program, timeline: Timeline, family: Family, reported: bool) -> Cell:
    key, state = family.key, lane_state(timeline, family.key)
    draws, seeds = _moments(timeline, key, "draw"), _moments(timeline, key, "seed")
    first = f"{draws[0].text} ({at(draws[0])}) draws first" if draws else "Nothing was found to draw from it"
    if state in ("untouched", "seeded") and not seeds:
        return Cell(key, "unused", "not used", f"Nothing in this run draws from {family.owner}.")
    if state == "seeded":
        return _seeded(key, seeds, draws)
    if state == "late":
        because = f"{first}, and {seeds[0].text} comes after it ({at(seeds[0])})."
        return Cell(key, "risk", "seeded, but late", because)
    if state == "entropy":
        anew = _moments(timeline, key, "entropy")[0]
        return Cell(key, "bad", "new seed in each run", f"{anew.text} ({at(anew)}) seeds it anew in each run.")
    if state == "unknown":
        return Cell(key, "unknown", "perhaps seeded", f"{first}; a call that is not followed may seed it.")
    if not (program.effects.matters and program.effects.acts):
        because = f"{first}, and nothing seeds it. No rule reports that: the run saves and measures nothing."
        return Cell(key, "risk", "never seeded", because)
    told = "" if reported else f" {NOT_REPORTED}"
    return Cell(key, "risk", "never seeded", f"{first}, and nothing seeds it: {_ASKS[key]}(...).{told}")


def _seeded(key: str, seeds: Sequence[Moment], draws: Sequence[Moment]) -> Cell:
    plain = next((each for each in seeds if not each.conditions), None)
    count = sum(each.times for each in draws)
    before = "the one draw that was found" if count == 1 else f"all {count} draws that were found"
    then = f", before {before}." if count else "; nothing was found to draw from it."
    if plain is not None:
        return Cell(key, "good", "seeded", f"{plain.text} at {at(plain)}{then}")
    seed = seeds[0]
    says = f"{seed.text} at {at(seed)}, but only {' and '.join(dict.fromkeys(seed.conditions))}."
    return Cell(key, "risk", "seeded on a condition", says)


def _cuda(timeline: Timeline, torch: Cell, reported: Sequence[Item]) -> Cell:
    if timeline.device != "cuda":
        return Cell("cuda", "unused", "no CUDA", "Nothing that this run reaches names a CUDA device.")
    own, all_devices = _moments(timeline, "torch-cuda", "seed"), _moments(timeline, "torch", "seed")
    if all_devices and torch.state == "good":
        return Cell("cuda", "good", "seeded", f"{all_devices[0].text} at {at(all_devices[0])} seeds every device, too.")
    if own and not own[0].conditions:
        return Cell("cuda", "good", "seeded", f"{own[0].text} at {at(own[0])}.")
    if torch.state == "unused":
        return Cell("cuda", "unused", "not used", "Nothing in this run was found to draw from torch's generators.")
    because = f"The devices' generators are seeded with torch's own: {torch.because}"
    return Cell("cuda", "bad" if reported else torch.state, torch.says, because, tuple(each.id for each in reported))


def _order(timeline: Timeline) -> Cell:
    states = {family.key: lane_state(timeline, family.key) for family in FAMILIES}
    late = [family for family in FAMILIES if states[family.key] == "late"]
    if late:
        owners = " and ".join(family.owner for family in late)
        return Cell("events", "risk", "drawn from too early", f"There are draws from {owners} before it is seeded.")
    drawn = {each.what for each in timeline.moments if each.kind == "draw"}
    if not drawn & set(states):
        return Cell(
            "events", "unused", "nothing is drawn", "Nothing in this run was found to draw from a global generator."
        )
    settled = [family.owner for family in FAMILIES if states[family.key] == "seeded" and family.key in drawn]
    if settled:
        return Cell("events", "good", "seeds come first", f"Seeded before the first draw: {', '.join(settled)}.")
    return Cell(
        "events", "unused", "nothing is seeded", "What is drawn from is never seeded, so there is no order to keep."
    )
