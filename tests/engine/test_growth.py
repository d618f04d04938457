"""Long programs take linear, or at most quadratic time: counted in calls, never by the clock."""

from __future__ import annotations

import pytest

from fuzz.growth import work
from fuzz.repeats import REPEATS
from fuzz.trying import EVERYTHING, attempt

# Three times as long: a square makes nine times the work, a cube twenty-seven times.
SHORT, LONG, MOST = 15, 45, 12


# What is there by the hundreds in real files takes time in proportion: once its square, and a thousand loaders 20 seconds.
IN_PROPORTION = (
    "loaders",
    "loaders of one variable",
    "draws of an own generator",
    "datasets",
    "sets",
    "results as they come",
    "commands",
    "imports",
)


@pytest.mark.parametrize("name", IN_PROPORTION)
def test_work_grows_as_the_length(name: str) -> None:
    write = REPEATS[name]
    work(write(SHORT))
    assert work(write(120)) < 4 * work(write(40))


# Every second one is tried each time, and all by `pytest -m long`.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if number % 2 else ())
        for number, name in enumerate(name for name in REPEATS if name not in IN_PROPORTION)
    ],
)
def test_work_does_not_grow_as_the_cube(name: str) -> None:
    write = REPEATS[name]
    work(write(SHORT))  # what is loaded once is loaded
    assert work(write(LONG)) < MOST * work(write(SHORT))


_OPTIONS = """
from torch.utils.data import DataLoader


def make(datasets=None, size=1, **options):
    loaders = {{}}
    for name, source in datasets.items():
        loaders[name] = DataLoader(source, **options)
    return loaders


def ready(loaders, seed):
    if not isinstance(loaders[list(loaders)[0]], DataLoader):
        loaders = make(seed=seed, **loaders)
    return loaders


class Runner:
    def start(self):
        self.loaders = ready(loaders={loaders}, seed=self.seed)
"""


def test_options_that_are_worked_out_from_themselves_come_to_an_end() -> None:
    """They took longer than any deadline: each dictionary led back to itself by several ways."""
    work(_OPTIONS.format(loaders="given()"))
    assert work(_OPTIONS.format(loaders="self.loaders")) < 300 * work(_OPTIONS.format(loaders="given()"))


def _passing_on(count: int) -> str:
    """Functions that call one another with the dictionaries that they get."""
    calls = [f"    step{each}(call, **options)\n    step{each}(more, options=more, **call)\n" for each in range(count)]
    steps = "".join(
        f"def step{each}(call, options, more=None):\n{''.join(calls)}    return call(**options)\n\n\n"
        for each in range(count)
    )
    return f"import torch\n\n\nclass Options(dict):\n    pass\n\n\n{steps}step0(torch.rand, Options(rate=1))\n"


def test_dictionaries_that_many_functions_pass_on_are_read() -> None:
    """What a key of such a dictionary has was asked for again on each way through the functions."""
    text = _passing_on(6)
    assert work(text) < 50 * work(text.replace("**", ""))


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_chain_of_classes_is_read(count: int) -> None:
    """It once took minutes: each class asked for all classes above it."""
    text = REPEATS["modules, each of the one before"](count)
    assert attempt("x.py", text.encode(), EVERYTHING._replace(reference=False, seconds=300.0)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", REPEATS)
def test_thousands_are_no_trouble(name: str) -> None:
    text = REPEATS[name](2000)
    assert attempt("x.py", text.encode(), EVERYTHING._replace(fixes=False, seconds=300.0)) == []
