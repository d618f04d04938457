"""Data flow over a linked project: where values come from (value sources), where they go (uses), and with which arguments
functions are entered (calling contexts).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from torchrepro_lint.device_contexts import enters_device
from torchrepro_lint.origins import Origins
from torchrepro_lint.passing import bind
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.scoped import Scope, Scoped
from torchrepro_lint.uses import Uses


class ValueFlow(ProgramIndex):
    """A project whose values are known: what type inference and the taint of orders are worked out from.

    It promises the same answers whoever asks first, and nothing of runs.
    """

    @cached_property
    def origins(self) -> Origins:
        """What the expressions of the project stand for."""
        return Origins(self)

    @cached_property
    def uses(self) -> Uses:
        """Where the values of the project go."""
        return Uses(self)

    def scopes_of(self, function: str) -> Iterator[Scope]:
        """What each call of a function passes for its parameters."""
        for definition in self.resolver.functions(function):
            for path, call in self.resolver.calls_of.of(function, definition):
                skip = self.resolver.calls_of.is_bound(path, call.func, definition)
                yield bind(self.origins, Scoped(path, call), function, definition, skip=skip, outer=Scope())

    @property
    def enters_device(self) -> bool:
        """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
        return self.of_all("enters device", lambda: enters_device(self))
