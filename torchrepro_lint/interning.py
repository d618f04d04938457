"""Interning of tuples of words: equal ones are one object, since thousands of records have them alike."""

from __future__ import annotations

# Of so many names the words are remembered here: as many as half a million lines have, and no more for ever.
_MOST = 1 << 18

_words: dict[tuple[str, ...], tuple[str, ...]] = {}
# ``words``, where they are known: for whoever asks half a million times.
known_words = _words.get


def words(of: tuple[str, ...]) -> tuple[str, ...]:
    """Equal words: the same object for all that ask."""
    known = _words.get(of)
    if known is None:
        if len(_words) >= _MOST:
            _words.clear()
        known = _words[of] = of
    return known


def forget() -> None:
    """Once all files are read: what they share stays with them."""
    _words.clear()
