"""How far a long run has come, in a file: it can be ended, what it has found be mended, and the run go on."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from .failure import Failure
from .kinds import Input
from .running import Tried
from .trying import attempt


class State(NamedTuple):
    """The inputs that were tried, the failures that are left with their inputs, and how many inputs failed at first."""

    seed: int
    done: int = 0
    seconds: float = 0.0
    counts: Counter[str] = Counter()
    failures: tuple[tuple[Input, Failure], ...] = ()
    mended: int = 0

    def after(self, tried: Tried, seconds: float) -> State:
        """The state after more inputs."""
        counts, failures = self.counts + tried.counts, self.failures + tried.failures
        done = self.done + sum(tried.counts.values())
        return self._replace(done=done, seconds=self.seconds + seconds, counts=counts, failures=failures)

    def tried_again(self) -> State:
        """What failed is tried again, as the tool is now."""
        inputs = list(dict.fromkeys(given for given, _ in self.failures))
        left = tuple((given, failure) for given in inputs for failure in attempt(given.name, given.data))
        return self._replace(failures=left, mended=self.mended + len(inputs) - len({given for given, _ in left}))


def read(path: Path, seed: int) -> State:
    """The state in a file; the beginning of a run where there is none."""
    if not path.exists():
        return State(seed)
    known = json.loads(path.read_text(encoding="utf-8"))
    failures = tuple(
        (Input(kind, name, b64decode(data)), Failure(*failure)) for kind, name, data, failure in known["failures"]
    )
    return State(**{**known, "counts": Counter(known["counts"]), "failures": failures})


def write(state: State, path: Path) -> None:
    """Write a state down."""
    failures = [[given.kind, given.name, b64encode(given.data).decode(), failure] for given, failure in state.failures]
    path.write_text(json.dumps({**state._asdict(), "failures": failures}), encoding="utf-8")
