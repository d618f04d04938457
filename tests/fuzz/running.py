"""Many inputs, in a process that may die of one of them."""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from torchrepro_lint.engine.process_pool import WorkerFailure, run_tasks

from .corpus import Corpus
from .failure import Failure
from .kinds import Input, make
from .trying import DEADLINE, Effort, attempt

# So many inputs are one task of a process.
_TOGETHER = 250
# After so many all is loaded that most of them need, and forked processes share it.
_TO_LOAD = 12
_NAME = re.compile(r"\bx\.\w+|(?<![\w:])\d+")
_RELEASES = ("2.13", "2.13", "2.13", "1.8", "2.2")


class Tried(NamedTuple):
    """What became of inputs: how many there were of each kind, and the failures with their inputs."""

    counts: Counter[str]
    failures: tuple[tuple[Input, Failure], ...]


def run(seed: int, corpus: Corpus, goes_on: Callable[[int], bool], done: int = 0) -> Iterator[Tried]:
    """Try inputs from one on, in stretches, as long as ``goes_on(how many there were)`` says so."""
    try_numbers(seed, corpus, range(_TO_LOAD))
    gc.freeze()
    while goes_on(done):
        stretch = range(done, done + _TOGETHER)
        yield _tried(seed, corpus, stretch)
        done += _TOGETHER


def try_numbers(seed: int, corpus: Corpus, numbers: range, seconds: float = DEADLINE) -> Tried:
    """Try the inputs of some numbers in this process."""
    counts: Counter[str] = Counter()
    failures = []
    for number in numbers:
        given = make(seed, number, corpus)
        counts[given.kind] += 1
        failures += [
            (given, each) for each in attempt(given.name, given.data, effort(number)._replace(seconds=seconds))
        ]
    return Tried(counts, tuple(failures))


def effort(number: int) -> Effort:
    """The reference is slow, so it is asked for a part; so are old releases."""
    return Effort(number % 5 == 0, True, _RELEASES[number % len(_RELEASES)])


def alike(failure: Failure) -> str:
    """The same for failures that have one cause, most likely."""
    return f"{failure.sort} {_NAME.sub('', failure.told)}"


def _tried(seed: int, corpus: Corpus, numbers: range) -> Tried:
    ((_, answer),) = run_tasks(partial(try_numbers, seed, corpus), [numbers], 1, deadline=_TOGETHER * 2)
    if not isinstance(answer, WorkerFailure):
        return answer
    # One of them has ended the process: each by itself.
    counts: Counter[str] = Counter()
    failures: list[tuple[Input, Failure]] = []
    singles = [range(number, number + 1) for number in numbers]
    work = partial(try_numbers, seed, corpus)
    for number, one in run_tasks(work, singles, 1, deadline=3 * DEADLINE):
        if isinstance(one, WorkerFailure):
            given = make(seed, singles[number][0], corpus)
            counts[given.kind] += 1
            failures.append((given, Failure("hang" if "longer" in one.reason else "crash", one.reason)))
        else:
            counts += one.counts
            failures += one.failures
    return Tried(counts, tuple(failures))


def until(minutes: float, count: int) -> Callable[[int], bool]:
    """Goes on for so many minutes, and so many inputs at most."""
    end = time.monotonic() + 60 * minutes
    return lambda done: done < count and time.monotonic() < end
