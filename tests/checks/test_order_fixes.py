"""The fixes of TRL502 and TRL503: which are safe, and what a finding says where there is none."""

from __future__ import annotations

import pytest

from one_file import findings
from torchrepro_lint.checks import directory_listing, unordered_iteration
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.source.text import NoFix

HEADER = """\
import enum
import glob
import os
from pathlib import Path
from typing import Optional

import torch


"""
NONE = "the set may contain None, and then sorted raises an error"
UNKNOWN = "the type of the elements is not known, so sorted may raise an error"
OBJECTS = "the elements may not be comparable, so sorted may raise an error"
SAFE, UNSAFE, KEPT = "sorted, safe", "sorted, unsafe", "dict.fromkeys, unsafe"

ORDERED = {
    "a set of strings": ("words: set[str]", "return list(words)"),
    "of bytes": ("words: set[bytes]", "return list(words)"),
    "of paths": ("words: set[Path]", "return list(words)"),
    "of tuples": ("words: set[tuple[str, int]]", "return list(words)"),
    "of longer and shorter tuples": ("words: set[tuple[str, ...]]", "return list(words)"),
    "None only where it is tested": ("words: list[str | None]", "return list({each for each in words if each})"),
    "None left out by a test": (
        "words: list[str], pad: str | None = None",
        "found = set(words)\n    if pad is not None:\n        found.add(pad)\n    return list(found)",
    ),
    "None replaced": (
        "words: list[str], pad: str | None = None",
        'if pad is None:\n        pad = "x"\n    return list({pad, *words})',
    ),
    "None replaced by or": ("words: list[str], pad: str | None = None", 'return list({pad or "x", *words})'),
}


@pytest.mark.parametrize("title", ORDERED)
def test_a_set_of_one_totally_ordered_type_is_sorted_safely(title: str) -> None:
    assert remedy(set_finding(*ORDERED[title])) == (SAFE, "write sorted(...)")


WITHOUT_ORDER = {
    "a parameter that may be None": ("words: list[str], pad: str | None = None", "return list({pad, *words})", NONE),
    "a parameter whose default is None": ("words: list[str], pad: str = None", "return list({pad, *words})", NONE),
    "None in a display": ("word: str", "return list({word, None})", NONE),
    "None in a union": ("words: list[str]", "return list(set(words) | {None})", NONE),
    "None that is added": (
        "words: list[str]",
        "found = set(words)\n    found.add(None)\n    return list(found)",
        NONE,
    ),
    "an annotation": ("words: set[Optional[str]]", "return list(words)", NONE),
    "a look-up": ("table: dict[str, str], words: list[str]", "return list({table.get(each) for each in words})", NONE),
    "the end of a long display": (
        "",
        f"return list({{{', '.join(repr(str(each)) for each in range(40))}, None}})",
        NONE,
    ),
    "None in tuples": (
        "words: set[tuple[str, int | None]]",
        "return list(words)",
        "the tuples of the set may contain None, and then sorted raises an error",
    ),
    "strings and numbers": ("words: list[str]", "return list(set(words) | {1})", UNKNOWN),
    "unknown elements": ("words: set", "return list(words)", UNKNOWN),
    "frozensets": (
        "words: list[str]",
        "return list({frozenset(each) for each in words})",
        "frozensets compare by inclusion, so sorting does not fix their order",
    ),
    "parameters": (
        "one: torch.nn.Parameter, other: torch.nn.Parameter",
        "return list({one, other})",
        "tensors compare element by element, so sorted raises an error",
    ),
    "modules": (
        "one: torch.nn.Module, other: torch.nn.Module",
        "return list({one, other})",
        "modules are not comparable, so sorted raises an error",
    ),
    "enumeration": ("", "return list({Color.RED, Color.BLUE})", OBJECTS),
    "floats in tuples": (
        "words: set[tuple[str, float]]",
        "return list(words)",
        "the numbers may contain a NaN, which has no order",
    ),
    "a class with an order of its own": (
        "words: set[Backward]",
        "return list(words)",
        "the class of the elements defines its own order, which may be partial",
    ),
    "such a class among strings": (
        "word: str, other: Backward",
        "return list({word, other})",
        "the class of the elements defines its own order, which may be partial",
    ),
    "a dict of pairs": ("pairs: list", "return list(dict(set(pairs)))", "the code that takes the set may treat a dict differently"),
    "a list of a set": ("pairs: set", "return [*set(list(pairs))]", UNKNOWN),
    "an f-string": ("words: set[str]", "return torch.load(f'{list(words)}')", "the expression is inside an f-string"),
    "another sorted": (
        "words: set[str], sorted",
        "return list(words)",
        "this module redefines sorted",
    ),
}  # fmt: skip
CLASSES = """\
class Backward(str):
    def __lt__(self, other):
        return self > other


class Color(enum.Enum):
    RED = 1
    BLUE = 2


"""


@pytest.mark.parametrize("title", WITHOUT_ORDER)
def test_a_set_without_a_total_order_has_no_fix_and_says_why(title: str) -> None:
    params, body, reason = WITHOUT_ORDER[title]
    assert remedy(set_finding(params, body))[0] == reason


CURES = {
    NONE: "write sorted(..., key=...) with a key that handles None, too",
    UNKNOWN: "write sorted(...), with a key if the elements are not comparable",
    OBJECTS: "write sorted(..., key=...)",
    "frozensets compare by inclusion, so sorting does not fix their order": "write sorted(..., key=sorted) if their elements are comparable",
    "tensors compare element by element, so sorted raises an error": "keep them in a list, or as the keys of a dict",
}


@pytest.mark.parametrize("reason", CURES)
def test_the_message_says_what_to_write_instead(reason: str) -> None:
    params, body, _ = next(each for each in WITHOUT_ORDER.values() if each[2] == reason)
    assert remedy(set_finding(params, body)) == (reason, CURES[reason])


FILLED_ELSEWHERE = {
    "another name": "other = found\n    other.add(None)",
    "a nested function": "def more():\n        found.add(None)\n    more()",
    "a lambda": "more = lambda: found.add(None)\n    more()",
    "a container": "groups = [found]\n    groups[0].add(None)",
    "a method as a function": "set.add(found, None)",
    "a comprehension": "[found.add(each) for each in (None, 1)]",
    "a method that is not followed": "found.symmetric_difference_update([None])",
}


@pytest.mark.parametrize("title", FILLED_ELSEWHERE)
def test_a_set_that_may_be_filled_elsewhere_is_not_sorted_safely(title: str) -> None:
    body = f"found = set(words)\n    {FILLED_ELSEWHERE[title]}\n    return list(found)"
    assert remedy(set_finding("words: list[str]", body))[0] == UNSAFE


ATTRIBUTE = """\
class Words:
    def __init__(self, words: list[str]):
        self.words{annotation} = set(words)

    def add(self, word):
        self.words.add(word)

    def all(self):
        return list(self.words)
"""


def test_an_attribute_is_sorted_safely_only_where_it_is_declared() -> None:
    plain, declared = (only(unordered_iteration, ATTRIBUTE.format(annotation=each)) for each in ("", ": set[str]"))
    assert remedy(plain)[0] == UNSAFE
    assert remedy(declared)[0] == SAFE


IN_ORDER = {
    "a list": ("words: list", "return list(set(words))"),
    "strings or None in a list": ("words: list[str | None]", "return [each for each in set(words)]"),
    "a star": ("layers: list[torch.nn.Module]", "return torch.nn.Sequential(*set(layers))"),
    "a loop": ("words: list", "kept = []\n    for each in set(words):\n        kept.append(each)\n    return kept"),
}


@pytest.mark.parametrize("title", IN_ORDER)
def test_a_set_of_something_in_order_becomes_a_dict(title: str) -> None:
    assert remedy(set_finding(*IN_ORDER[title])) == (KEPT, "write dict.fromkeys(...)")


def test_a_set_that_is_used_as_a_set_later_does_not_become_a_dict() -> None:
    body = "found = set(words)\n    kept = list(found)\n    found.add(1)\n    return kept"
    assert remedy(set_finding("words: list", body))[0] == UNKNOWN


LISTINGS = {
    "return first(Path(folder).iterdir())": "the code that gets the iterator may call next, which a list does not allow",
    "with os.scandir(folder) as found:\n        return [each.name for each in found]": (
        "it is used in a with statement, which a list does not allow"
    ),
    "return torch.load(f'{os.listdir(folder)[0]}')": "the expression is inside an f-string",
    "return [each for each in os.walk(folder)]": "no for loop iterates it, so there is no place to sort the folders",
    "kept = []\n    for each in os.walk(folder):\n        kept.append(each)\n    return kept": (
        "the loop does not name the folders and the files separately"
    ),
    "kept = []\n    for at, _, names in os.walk(folder, topdown=False):\n        kept += names\n    return kept": (
        "it may walk bottom-up, and then the folders are read before the loop can sort them"
    ),
}


@pytest.mark.parametrize("body", LISTINGS)
def test_a_listing_without_a_fix_says_why(body: str) -> None:
    text = f"def first(found):\n    return torch.load(next(found))\n\n\ndef run(folder):\n    {body}\n"
    assert remedy(only(directory_listing, text))[0] == LISTINGS[body]


def set_finding(params: str, body: str) -> Finding:
    return only(unordered_iteration, f"{CLASSES}def run({params}):\n    {body}\n")


def only(module: object, text: str) -> Finding:
    (found,) = findings(module.check, HEADER + text)  # type: ignore[attr-defined]
    return found


def remedy(finding: Finding) -> tuple[str, str]:
    """The kind of a finding's fix, or why there is none; and what its message says to write."""
    cure = finding.message.rpartition("; ")[2]
    if isinstance(finding.remedy, NoFix):
        return finding.remedy.reason, cure
    assert finding.fix is not None
    fix = "sorted" if finding.fix.title == "Sort the set" else "dict.fromkeys"
    return f"{fix}, {'safe' if finding.fix.safe else 'unsafe'}", cure
