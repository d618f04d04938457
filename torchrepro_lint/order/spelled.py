"""Methods that are called by a name that is put together: ``getattr(self, f"get_{word}_names")()``."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Constant, Expression, Operation, Ref

if TYPE_CHECKING:
    from torchrepro_lint.uses import Uses

# So many letters of a name must be given, or it might be any.
_LEAST = 4


class Spelled:
    """Answers for all files that call ``getattr``."""

    def __init__(self, uses: Uses, files: tuple[str, ...]) -> None:
        self._uses, self._files = uses, files

    def calls(self, word: str) -> list[tuple[str, Call]]:
        """The calls of what ``getattr`` finds under a name that may be this one, each with its file."""
        return [(path, call) for pattern, path, call in self._patterns if pattern.fullmatch(word)]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, Call]]:
        found = []
        for path in self._files:
            if "getattr" not in self._uses.summary(path).calls:
                continue
            for each, spot in self._uses.spots(path).items():
                outer = spot.parent
                if isinstance(each, Call) and isinstance(outer, Call) and outer.func is each:
                    pattern = _pattern(each)
                    if pattern is not None:
                        found.append((pattern, path, outer))
        return found


def _pattern(call: Call) -> re.Pattern[str] | None:
    match call:
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(_, name, *_)):
            texts = _texts(name.value)
            if sum(map(len, texts)) >= _LEAST:
                return re.compile("".join(re.escape(text) if text else r"\w*" for text in texts))
    return None


def _texts(name: Expression) -> list[str]:
    """The parts of a text, empty for what is not known; nothing where all of it is known, or none."""
    if isinstance(name, Operation) and name.op in ("f", "+"):
        return [
            each.value if isinstance(each, Constant) and isinstance(each.value, str) else "" for each in name.operands
        ]
    return []
