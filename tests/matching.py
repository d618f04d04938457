"""A backtracking matcher of regular expressions like Python's own, which counts its steps.

It tells how the work grows with the text, which a clock cannot tell in a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

try:
    from re import _constants as codes
    from re import _parser as parser
except ImportError:  # before Python 3.11
    import sre_constants as codes  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

# More are too many, whatever the text.
MOST = 30_000
_On: TypeAlias = "Callable[[int], bool]"


class _TooManyError(Exception):
    """The steps have come to ``MOST``."""


def steps(pattern: re.Pattern[str], text: str, *, search: bool, whole: bool = False) -> int:
    """How many steps it takes to match at the beginning of a text, or all of it, or to find all matches in it; ``MOST`` at most."""
    matcher = _Matcher(text, pattern.flags)
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    at, ends = 0, [0]

    def end(stop: int) -> bool:
        ends[0] = stop
        return not whole or stop == len(text)

    with suppress(_TooManyError):
        while at <= len(text):
            matched = matcher.sequence(tree, 0, at, end)
            if not search:
                break
            at = max(ends[0], at + 1) if matched else at + 1
    return matcher.count


class _Matcher:
    def __init__(self, text: str, flags: int) -> None:
        self.count = 0
        self._text = text if not flags & re.IGNORECASE else text.lower()
        self._dot = bool(flags & re.DOTALL)
        self._lines = bool(flags & re.MULTILINE)
        self._groups: dict[int, str] = {}

    def sequence(self, items: list[Any], index: int, at: int, then: _On) -> bool:
        """Match the items from one on, and what comes after them."""
        while index < len(items):
            self._step()
            op, argument = items[index]
            if op in _ONE:
                if not (at < len(self._text) and self._fits(op, argument, self._text[at])):
                    return False
                at, index = at + 1, index + 1
                continue
            return self._item(op, argument, at, partial(self._go_on, items, index + 1, then))
        return then(at)

    def _go_on(self, items: list[Any], index: int, then: _On, stop: int) -> bool:
        return self.sequence(items, index, stop, then)

    def _item(self, op: Any, argument: Any, at: int, then: _On) -> bool:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT) or str(op) == "POSSESSIVE_REPEAT":
            return self._repeat(op, *argument, at, then)
        if op is codes.SUBPATTERN:
            number, items = argument[0], list(argument[-1])

            def close(stop: int) -> bool:
                if number is not None:
                    self._groups[number] = self._text[at:stop]
                return then(stop)

            return self.sequence(items, 0, at, close)
        if op is codes.BRANCH:
            return any(self.sequence(list(each), 0, at, then) for each in argument[1])
        if op in (codes.ASSERT, codes.ASSERT_NOT):
            return self._look(op, argument, at) and then(at)
        if str(op) == "ATOMIC_GROUP":
            stop = self._first(list(argument), at)
            return stop is not None and then(stop)
        if op is codes.AT:
            return self._stands(argument, at) and then(at)
        if op is codes.GROUPREF:
            held = self._groups.get(argument, "")
            return self._text.startswith(held, at) and then(at + len(held))
        raise NotImplementedError(str(op))

    def _repeat(self, op: Any, low: int, high: int, inner: Any, at: int, then: _On) -> bool:
        items = list(inner)
        if len(items) == 1 and items[0][0] in _ONE:
            return self._run(op, low, high, items[0], at, then)

        def more(count: int, start: int) -> bool:
            def again(stop: int) -> bool:
                return (stop > start or count < low) and more(count + 1, stop)

            if count < low:
                return self.sequence(items, 0, start, again)
            if op is codes.MIN_REPEAT:
                return then(start) or (count < high and self.sequence(items, 0, start, again))
            return (count < high and self.sequence(items, 0, start, again)) or then(start)

        return more(0, at)

    def _run(self, op: Any, low: int, high: int, item: Any, at: int, then: _On) -> bool:
        """A repeated letter: as many as there are, and then one less at a time."""
        stop = at
        while stop < len(self._text) and stop - at < high and self._fits(*item, self._text[stop]):
            self._step()
            stop += 1
        if stop - at < low:
            return False
        if str(op) == "POSSESSIVE_REPEAT":
            return then(stop)
        every = range(stop, at + low - 1, -1)
        return any(then(each) for each in (reversed(every) if op is codes.MIN_REPEAT else every))

    def _look(self, op: Any, argument: Any, at: int) -> bool:
        direction, items = argument
        if direction > 0:
            found = self._first(list(items), at) is not None
        else:
            width = items.getwidth()[0]
            found = at >= width and self._first(list(items), at - width) == at
        return found == (op is codes.ASSERT)

    def _first(self, items: list[Any], at: int) -> int | None:
        ends: list[int] = []
        self.sequence(items, 0, at, lambda stop: not ends.append(stop))  # type: ignore[func-returns-value]
        return ends[0] if ends else None

    def _stands(self, where: Any, at: int) -> bool:
        name, text = str(where), self._text
        if "BOUNDARY" in name:
            sides = [0 <= each < len(text) and (text[each].isalnum() or text[each] == "_") for each in (at - 1, at)]
            return (sides[0] != sides[1]) != ("NON" in name)
        if name == "AT_BEGINNING":
            return at == 0 or (self._lines and text[at - 1] == "\n")
        if name == "AT_END":
            return text[at:] in ("", "\n") or (self._lines and text[at] == "\n")
        return at == (0 if "BEGINNING" in name else len(text))

    def _fits(self, op: Any, argument: Any, letter: str) -> bool:
        self._step()
        return fits(op, argument, letter, self._dot)

    def _step(self) -> None:
        self.count += 1
        if self.count > MOST:
            raise _TooManyError


def fits(op: Any, argument: Any, letter: str, dot: bool = True) -> bool:
    """Whether one letter is what an item means."""
    if op is codes.ANY:
        return dot or letter != "\n"
    if op is codes.LITERAL:
        return ord(letter) == argument
    if op is codes.NOT_LITERAL:
        return ord(letter) != argument
    negated = bool(argument) and argument[0][0] is codes.NEGATE
    return any(_in(each, letter) for each in argument[negated:]) != negated


def _in(item: Any, letter: str) -> bool:
    op, argument = item
    if op is codes.LITERAL:
        return ord(letter) == argument
    if op is codes.RANGE:
        return bool(argument[0] <= ord(letter) <= argument[1])
    name = str(argument)
    found = (
        letter.isdigit()
        if "DIGIT" in name
        else letter.isspace()
        if "SPACE" in name
        else letter.isalnum() or letter == "_"
    )
    return found != ("NOT" in name)


_ONE = (codes.ANY, codes.LITERAL, codes.NOT_LITERAL, codes.IN)


def inputs(pattern: re.Pattern[str], length: int) -> list[str]:
    """Texts that a pattern is likely to try in many ways: the beginnings of what it matches, and repeated ones after these:
    letters of its own, empty lines, and again beginnings.
    """
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    letters = list(dict.fromkeys(_letters(tree)))[:6]
    openings = sorted({each for each in _openings(tree) if 1 < len(each) <= 40}, key=len)[-8:]
    pumps = [*letters, *(one + other for one in letters for other in letters if one != other)][:12]
    pumps += ["\n", "\r\n", *openings]
    starts = sorted({"", *(_example(tree[:count]) for count in range(len(tree) + 1))}, key=len)[:3]
    return [f"{start}{pump * length}{end}" for start in starts for pump in pumps for end in ("", "\0")]


_SOME = " \t\n#\"'\\\\()[]{}.,:;=-+*/!<>@%&|~`$^?ab01_zAé\f"


def _example(items: Any) -> str:
    """A short text that items match, as far as that is easy."""
    found = ""
    for op, argument in items:
        if op is codes.LITERAL:
            found += chr(argument)
        elif op in _ONE:
            found += next((each for each in f"a{_SOME}" if fits(op, argument, each)), "a")
        elif op is codes.SUBPATTERN:
            found += _example(argument[-1])
        elif op is codes.BRANCH:
            found += min((_example(each) for each in argument[1]), key=len)
        elif "REPEAT" in str(op):
            found += _example(argument[2]) * min(argument[0], 3)  # so deep does each take the matcher
    return found


def _openings(items: Any, before: str = "") -> Iterator[str]:
    """What has been matched of a text where an item begins, also within groups and where a group might be left out."""
    for op, argument in items:
        inner = [argument[-1]] if op is codes.SUBPATTERN else argument[1] if op is codes.BRANCH else []
        for each in [argument[2]] if "REPEAT" in str(op) else inner:
            yield from _openings(each, before)
        once = [(op, (1, *argument[1:]))] if "REPEAT" in str(op) and not argument[0] else [(op, argument)]
        before += _example(once)
        yield before


def _letters(items: Any) -> Iterator[str]:
    """Letters that items take: those written out, and of classes the first and the last."""
    for op, argument in items:
        if op is codes.LITERAL:
            yield chr(argument)
        elif op in _ONE:
            taken = [each for each in _SOME if fits(op, argument, each)]
            yield from (*taken[:1], *taken[-1:], *(each for each in taken if each in "a\\"))
        elif op is codes.BRANCH:
            for each in argument[1]:
                yield from _letters(each)
        elif op is codes.SUBPATTERN:
            yield from _letters(argument[-1])
        elif "REPEAT" in str(op):
            yield from _letters(argument[2])
