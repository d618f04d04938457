"""Mutations that make a reproducible program irreproducible, each with the code and location of its finding.

Written from the rules' contract; nothing of the package is used here. A program is a mapping of paths to texts. Comments in
it mark what only a run can know: ``# first torch``, ``# first numpy``, ``# first python`` stand on the statement of
``train.py`` through which the generator is first drawn from, ``# numpy here`` and the like on the first draw in a function that
no run reaches, ``# … convolves`` where a module is made that needs deterministic algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mutations_of_data as data
import mutations_of_seeds as seeds
import mutations_of_switches as switches
from mutating import Files, Mutant

Operator = Callable[[Files], Iterator[Mutant]]

OPERATORS: tuple[Operator, ...] = (
    seeds.drop_seeder,
    seeds.only_cuda,
    seeds.seed_late,
    seeds.seed_from_entropy,
    seeds.seed_that_changes,
    seeds.unseed_generator,
    seeds.ignore_option,
    seeds.optional_seed,
    seeds.unseeded_environment,
    switches.switch_benchmark_on,
    switches.switch_cudnn_off,
    switches.switch_strict_mode,
    switches.workspace,
    switches.autotune,
    data.drop_generator,
    data.draw_a_sampler,
    data.break_workers,
    data.replace,
    data.hash_seed_inside,
    data.resume_and_watch_the_clock,
)


def mutants(files: Files) -> Iterator[Mutant]:
    """All mutants of a program."""
    for operator in OPERATORS:
        yield from operator(files)
