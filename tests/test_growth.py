"""Long programs take time in proportion, or at most as the square of their length: counted in calls, never by the clock."""

from __future__ import annotations

import pytest

from fuzz.growth import work
from fuzz.repeats import REPEATS
from fuzz.trying import EVERYTHING, attempt

# Three times as long: a square makes nine times the work, a cube twenty-seven times.
SHORT, LONG, MOST = 15, 45, 12


@pytest.mark.parametrize("name", REPEATS)
def test_work_does_not_grow_as_the_cube(name: str) -> None:
    write = REPEATS[name]
    work(write(SHORT))  # what is loaded once is loaded
    assert work(write(LONG)) < MOST * work(write(SHORT))


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


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_chain_of_classes_is_read(count: int) -> None:
    """It once took minutes: each class asked for all classes above it."""
    text = REPEATS["modules, each of the one before"](count)
    assert attempt("x.py", text.encode(), EVERYTHING._replace(reference=False, seconds=300.0)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", REPEATS)
def test_thousands_are_no_trouble(name: str) -> None:
    text = REPEATS[name](2000)
    assert attempt("x.py", text.encode(), EVERYTHING._replace(fixes=False, seconds=300.0)) == []
