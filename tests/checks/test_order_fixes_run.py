"""Safe fixes of orders keep programs running: generated programs run before and after, and give the same elements.

Each program fills a set with elements of several types, or lists a directory, and returns what it iterates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from one_file import fixed
from torchrepro_lint.checks import directory_listing, unordered_iteration

HEADER = """\
import enum
import glob
import os
from pathlib import Path
from typing import Optional

import torch


class Plain:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


class Word(str):
    pass


class Backward(str):
    def __lt__(self, other):
        raise TypeError("no order")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


TABLE = {"a": "x", "b": "y"}


def maybe(word):
    if word > "a":
        return word


def marked(word):
    return word.upper() if word > "a" else None


def upper(word: str):
    return word.upper()


SHARED = {"g", "h"}


def share(element):
    SHARED.add(element)


def shared():
    return SHARED


def made(words: list[str], element=None):
    found = set(words)
    if element is not None:
        found.add(element)
    return found


def filled(found, element):
    found.add(element)
    return found


class Keeper:
    def __init__(self, words: list[str], pad=None):
        self.words = set(words)
        self.names: set[str] = {"n", *words}
        self.first = words[0]
        self.pad = pad

    def add(self, element):
        self.words.add(element)


"""
PARAMETERS = (
    'words: list[str] = ["b", "a", "c"]',
    'holes: list[Optional[str]] = ["b", None, "a"]',
    'mixed: list = ["b", 1, None]',
    'pairs: list[tuple[str, int]] = [("b", 1), ("a", 2)]',
    'partly: list[tuple[str, int | None]] = [("b", 1), ("b", None)]',
    'known: set[str] = {"k", "l"}',
    'gaps: "set[str | None]" = {"k", None}',
    "pad: str | None = None",
    "label: Optional[str] = None",
    "end: str = None",
    'word: str = "w"',
    "count: int = 3",
    "flag: bool = True",
)
ELEMENTS = (
    *(
        '"d"',
        '"e"',
        "word",
        "pad",
        "label",
        "end",
        "None",
        "1",
        "count",
        'b"b"',
        '("a", 1)',
        '("a", None)',
        '("a", "b")',
    ),
    *('frozenset({"a"})', 'frozenset({"b"})', "Plain", "Word", 'Word("v")', 'Backward("u")', 'Plain("p")', "Color.RED"),
    *("Color.BLUE", 'pad or "z"', "word if flag else None", 'TABLE.get("q")', 'TABLE.get("q", "r")', 'maybe("a")'),
    *('upper("s")', "Path(word)", "[*words][0]", "holes[1]", "str(count)", 'f"{word}!"', "1.5"),
)
LISTS = (
    "words",
    "words",
    "holes",
    "mixed",
    "pairs",
    "partly",
    "known",
    "gaps",
    '("a", "b")',
    '"text"',
    "TABLE",
    "[word, pad]",
)
OTHER_SETS = (
    *(
        "made(words)",
        "made(words, {0})",
        "made({1})",
        "shared()",
        "SHARED",
        "SHARED | {{{0}}}",
        "filled(set(words), {0})",
    ),
    *("keeper.words", "keeper.names", "keeper.names | {{{0}}}", "{{keeper.first, word}}", "{{keeper.pad, word}}"),
    *("set.union(set(words), {1})", "set(map(upper, {1}))", "set([{0}, *{1}])", "set(sorted(words))", "set(words[:2])"),
    *('set("a b".split()).intersection({1})', "{{(each, at) for at, each in enumerate({1})}}", "set(zip(words, {1}))"),
)
MAPPINGS = (
    *("each", "each", "upper(each)", "maybe(each)", "marked(each)", "TABLE.get(each)", "(each, 1)", "(each, pad)"),
    *("frozenset({each})", "Plain(each)", "Word(each)", 'each if each != "a" else None', "str(each)", "each or word"),
)
TESTS = ("", "", " if each", " if each is not None", ' if each != "a"')
FOLDERS = (
    *("os.listdir(folder)", 'glob.glob(folder + "/*")', 'glob.iglob(folder + "/*")', "Path(folder).iterdir()"),
    *("[each.name for each in os.scandir(folder)]", 'Path(folder).rglob("*")', "map(Path, os.listdir(folder))"),
)
VIEWS = (
    *("list({0})", "tuple({0})", "[*{0}]", "[each for each in {0}]", "[each for _, each in enumerate({0})]"),
    *("[each for each, _ in zip({0}, range(99))]", "list(map(lambda each: each, {0}))", "list(iter({0}))"),
    *("list(dict.fromkeys({0}))", "list(filter(None, {0}))", "list(other := {0})", "list({{each: 1 for each in {0}}})"),
)


def program(dice: random.Random) -> str:
    """A program whose function ``run`` fills a set, or lists a directory, and returns what it iterates."""
    lines = _of_listing(dice) if dice.random() < 0.2 else _of_set(dice)
    body = "".join(f"    {line}\n" for line in lines)
    return f"{HEADER}def run({', '.join(('folder', *PARAMETERS))}):\n{body}"


def _of_set(dice: random.Random) -> list[str]:
    lines = ["keeper = Keeper(words)", f"found = {_set(dice)}"]
    for _ in range(dice.randrange(3)):
        lines += _change(dice)
    return [*lines, *_iterated(dice, "found" if len(lines) > 2 or dice.random() < 0.5 else _set(dice))]


def _of_listing(dice: random.Random) -> list[str]:
    if dice.random() < 0.2:
        return [
            "kept = []",
            "for at, folders, names in os.walk(folder):",
            "    kept += [*folders, *names]",
            "return kept",
        ]
    return _iterated(dice, dice.choice(FOLDERS))


def _set(dice: random.Random) -> str:
    match dice.randrange(9):
        case 0 | 1:
            stars = [f"*{dice.choice(LISTS)}"] if dice.random() < 0.5 else []
            return "{" + ", ".join([*dice.choices(ELEMENTS, k=dice.randint(1, 3)), *stars]) + "}"
        case 2:
            return f"{dice.choice(('set', 'frozenset'))}({dice.choice(LISTS)})"
        case 3:
            return f"set({dice.choice(LISTS)}) {dice.choice('|&-^')} {{{dice.choice(ELEMENTS)}}}"
        case 4:
            return f"{{{dice.choice(MAPPINGS)} for each in {dice.choice(LISTS)}{dice.choice(TESTS)}}}"
        case 5:
            return f"set({dice.choice(LISTS)}).union([{dice.choice(ELEMENTS)}])"
        case 6:
            return dice.choice(OTHER_SETS).format(dice.choice(ELEMENTS), dice.choice(LISTS))
        case 7:
            return f"frozenset({dice.choice(LISTS)}) - set({dice.choice(LISTS)})"
    return "set()"


def _change(dice: random.Random) -> list[str]:
    element, many = dice.choice(ELEMENTS), dice.choice(LISTS)
    return dice.choice(
        (
            [f"found.add({element})"],
            ["if pad is not None:", "    found.add(pad)"],
            ["if label:", "    found.add(label)"],
            ["if end is None:", '    end = "end"', "found.add(end)"],
            [f"found.update({many})"],
            [f"found |= {{{element}}}"],
            [f"for each in {many}:", f"    found.add({dice.choice(MAPPINGS)})"],
            [f"for each in {many}:", "    if each is None:", "        continue", "    found.add(each)"],
            ["other = found", f"other.add({element})"],
            ["def more():", f"    found.add({element})", "more()"],
            [f"more = lambda: found.add({element})", "more()"],
            [f"[found.add(each) for each in {many}]"],
            [f"set.add(found, {element})"],
            ["groups = [found]", f"groups[0].add({element})"],
            [f"found.symmetric_difference_update({many})"],
            [f"if (given := {element}) is not None:", "    found.add(given)"],
            ["groups = {'a': found}", f"groups['a'].add({element})"],
            [f"pool = [*{many}]", f"pool.append({element})", "found.update(pool)"],
            ["pool = [word]", "known = pool", f"known.append({element})", "found.update(pool)"],
            [f"filled(found, {element})"],
            [f"share({element})"],
            [f"SHARED.add({element})"],
            [f"keeper.add({element})"],
            [f"keeper.words.add({element})"],
            [f"keeper.first = {element}"],
            ["try:", f"    found.add({element})", "finally:", "    found.discard(1)"],
        )
    )


def _iterated(dice: random.Random, what: str) -> list[str]:
    if dice.random() < 0.25:
        return ["kept = []", f"for each in {what}:", "    kept.append(each)", "return kept"]
    if dice.random() < 0.2:
        return [f"names = {what}", "return [each for each in names]"]
    return [f"return {dice.choice(VIEWS).format(what)}"]


def outcome(text: str, folder: Path) -> Counter[str] | str:
    """The elements that a program gives, in no order; the name of the error where it raises one."""
    names: dict[str, Any] = {"__name__": "generated"}
    try:
        exec(compile(text.replace("import torch\n", ""), "generated", "exec"), names)
        return Counter(map(_shown, names["run"](str(folder))))
    except (TypeError, AttributeError) as error:
        return type(error).__name__


def _shown(element: object) -> str:
    return f"frozenset{sorted(map(_shown, element))}" if isinstance(element, frozenset) else repr(element)


def _safely_fixed(text: str) -> str:
    checks: tuple[Callable[..., Any], ...] = (unordered_iteration.check, directory_listing.check)
    for check in checks:
        text = fixed(check, text, unsafe=False)
    return text


@pytest.mark.parametrize("programs", [500, pytest.param(5000, marks=pytest.mark.long)])
def test_a_program_that_ran_before_a_safe_fix_runs_after_it(tmp_path: Path, programs: int) -> None:
    for name in ("b.pt", "a.pt", "c/d.pt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    ran = changed = 0
    for number in range(programs):
        text = program(random.Random(number))
        before = outcome(text, tmp_path)
        if isinstance(before, str):
            continue
        ran += 1
        after = _safely_fixed(text)
        changed += after != text
        assert outcome(after, tmp_path) == before, (
            f"program {number} was\n{text[len(HEADER) :]}and is\n{after[len(HEADER) :]}"
        )
    # Most run, and many are fixed: else the test would show nothing.
    assert ran > programs * 0.6
    assert changed > programs * 0.15
