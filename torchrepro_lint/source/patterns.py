"""Regular expressions that are compiled when they are first used.

Two hundred stand in the modules of the program. Compiling all of them takes as long as a small project takes to be read, and a run
uses few.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """A regular expression that is compiled at first use. An error in it shows then, so constants need a test."""

else:

    class lazy_pattern:  # noqa: N801  called as a function
        """A regular expression: it compiles itself at first use, and then has the methods of the compiled one."""

        def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            for each in _METHODS:
                setattr(self, each, getattr(compiled, each))
            return getattr(compiled, name)


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")
