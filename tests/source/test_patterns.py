"""Regular expressions that compile themselves: they do what a compiled one does, and each in the program is valid."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import torchrepro_lint
from torchrepro_lint.source.patterns import lazy_pattern

TEXT = "a1 b22 c333"


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("search", (TEXT, 2)),
        ("match", (TEXT, 1)),
        ("fullmatch", (TEXT, 1, 2)),
        ("finditer", (TEXT,)),
        ("findall", (TEXT,)),
        ("split", (TEXT, 1)),
        ("sub", ("-", TEXT)),
        ("subn", ("-", TEXT)),
    ],
)
def test_each_method_is_that_of_the_compiled_expression(method: str, arguments: tuple[Any, ...]) -> None:
    lazy = lazy_pattern(r"(?P<digits>\d)+", re.ASCII)
    compiled = re.compile(r"(?P<digits>\d)+", re.ASCII)
    for _ in range(2):  # before and after it was compiled
        assert _plain(getattr(lazy, method)(*arguments)) == _plain(getattr(compiled, method)(*arguments))


def test_it_has_the_attributes_of_the_compiled_expression() -> None:
    lazy = lazy_pattern(r"(?P<digits>\d)+", re.ASCII)
    assert (lazy.pattern, lazy.groups, dict(lazy.groupindex)) == (r"(?P<digits>\d)+", 1, {"digits": 1})
    assert lazy.flags & re.ASCII
    assert lazy_pattern(rb"\d").findall(b"1 2") == [b"1", b"2"]
    assert not hasattr(lazy, "other")


def test_each_constant_compiles() -> None:
    """An error in one would otherwise show only where it is first used."""
    found = [each for module in _modules() for value in vars(module).values() for each in _patterns(value)]
    assert len(found) > 200
    for each in found:
        re.compile(each.pattern, each._flags)  # type: ignore[attr-defined]


def _modules() -> Iterator[Any]:
    for each in pkgutil.walk_packages(torchrepro_lint.__path__, "torchrepro_lint."):
        if each.name.rpartition(".")[2] != "__main__" and ".lsp" not in each.name:
            yield importlib.import_module(each.name)


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, lazy_pattern):  # type: ignore[arg-type]
        yield value
    elif isinstance(value, dict):
        yield from (each for one in value.values() for each in _patterns(one))
    elif isinstance(value, (tuple, list)):
        yield from (each for one in value for each in _patterns(one))


def _plain(found: Any) -> Any:
    """Matches by what they matched and where."""
    if isinstance(found, re.Match):
        return found.span(), found.groupdict()
    return [_plain(each) for each in found] if isinstance(found, Iterator) else found
