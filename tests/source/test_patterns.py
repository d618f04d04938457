"""No regular expression takes more than linear time, counted in steps."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import torchrepro_lint
from matching import MOST, inputs, steps
from torchrepro_lint.checks.fixes.insertions import below_docstring
from torchrepro_lint.source.ipython import is_indented, neutralised

TOP = Path(torchrepro_lint.__file__).parent
SEARCHING = ("finditer", "findall", "search", "split", "sub", "subn")
# Two look for five hundred operators or calls in a row, and so at each of them no farther than that; the other reads the strings
# of valid JSON, in which each has its end.
BOUNDED = {"_METHODS", "_OPERATORS", "_TOKEN"}
LENGTH = 12


def modules() -> Iterator[str]:
    for each in pkgutil.walk_packages([str(TOP)], "torchrepro_lint."):
        if not each.name.endswith("__main__") and ".generate" not in each.name:
            yield each.name


def patterns() -> dict[re.Pattern[str], str]:
    """Those of all modules, each with the name by which it is known."""
    found: dict[re.Pattern[str], str] = {}
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # of an extra that is not installed
        for word, value in vars(module).items():
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, re.Pattern) and isinstance(each.pattern, str):
                    found.setdefault(each, word)
    return found


def used(*ways: str) -> set[str]:
    """The names of patterns of which such a method is called."""
    found = set()
    for path in TOP.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ways:
                value = node.value.value if isinstance(node.value, ast.Subscript) else node.value
                found.add(value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", ""))
    return found


PATTERNS = patterns()
SEARCHED = used(*SEARCHING) - BOUNDED
WHOLE = used("fullmatch")


@pytest.fixture(autouse=True)
def _deep() -> Iterator[None]:
    """Each letter takes the matcher a few calls deeper."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: f"{PATTERNS[pattern]} {pattern.pattern[:20]}")
def test_a_pattern_takes_steps_in_proportion(pattern: re.Pattern[str]) -> None:
    ways = [{"search": False}]
    ways += [{"search": True}] * (PATTERNS[pattern] in SEARCHED)
    ways += [{"search": False, "whole": True}] * (PATTERNS[pattern] in WHOLE)
    for short, long in zip(inputs(pattern, LENGTH), inputs(pattern, 2 * LENGTH), strict=True):
        for way in ways:
            few, many = (steps(pattern, each, **way) for each in (short, long))
            assert many < min(2.7 * few + 60, MOST), long


@pytest.mark.parametrize(
    ("bad", "text"), [(r"(a+)+b", "a"), (r"(?s:\\.|.)*?x", "\\"), (r"\s*#", " "), (r"\w*(?:a|b)\w*c", "a")]
)
def test_steps_tell_a_pattern_that_goes_back_again_and_again(bad: str, text: str) -> None:
    few, many = (steps(re.compile(bad), text * length, search=True) for length in (LENGTH, 2 * LENGTH))
    assert many > min(2.7 * few + 60, MOST)


def test_a_docstring_full_of_backslashes_takes_no_time() -> None:
    """It was tried in twice as many ways for each of them, where more follows on its line."""
    text = '"""' + "\\" * 80 + '""" + x\n'
    assert below_docstring(text) == 0


def test_a_cell_of_empty_lines_takes_no_time() -> None:
    """Each of its ends was tried as one and as two, with all the ways of the others."""
    text = "\r\n" * 80 + "x = 1"
    assert neutralised(text) == text
    assert not is_indented(text)
