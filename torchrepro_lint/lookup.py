"""Find operations by any name that people write for them."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from torchrepro_lint.catalogue import canonical
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.tables import error_names, spellings

_SHORT = (
    ("F.", "torch.nn.functional."),
    ("nn.", "torch.nn."),
    ("Tensor.", "torch.Tensor."),
    ("functional.", "torch.nn.functional."),
)


def operations_named(wanted: str) -> tuple[str, ...]:
    """The operations that a name stands for, sorted: ``F.interpolate``, ``nn.Upsample``, ``index_select``.

    A public name is taken as it is, a shorter one fits every name that ends in it. Raises ``UsageError`` with near names.
    """
    name = canonical(_long(wanted.strip().removesuffix("()")))
    known = _operations()
    found = known.get(name) or _ending(name, known)
    if not found:
        near = nearest(wanted, known)
        raise UsageError(f"no operation {wanted!r} in the catalogue" + (f"; did you mean {near}?" if near else ""))
    return tuple(sorted(found))


def nearest(wanted: str, names: Iterable[str]) -> str:
    """Up to three names near to one, by their last words; empty where none is near."""
    last = {}
    for name in sorted(names, reverse=True):
        last[name.rpartition(".")[2].lower()] = name
    close = difflib.get_close_matches(wanted.rpartition(".")[2].lower(), last, 3, cutoff=0.6)
    return " or ".join(last[word] for word in close)


def _long(name: str) -> str:
    return next((long + name[len(short) :] for short, long in _SHORT if name.startswith(short)), name)


def _ending(name: str, known: dict[str, set[str]]) -> set[str]:
    """The operations with a name that ends in these words, in this spelling if any has it, else in any."""
    for same in (str, str.lower):
        end = same(f".{name}")
        found = set().union(*(known[each] for each in known if same(each).endswith(end)))
        if found:
            return found
    return set()


@lru_cache(maxsize=1)
def _operations() -> dict[str, set[str]]:
    """All public names: the spellings, and calls that only end where an operation does."""
    found: dict[str, set[str]] = defaultdict(set)
    for operation, ones in spellings().items():
        for one in ones:
            found[one.name].add(operation)
    for error in error_names():
        for call in error.calls:
            if call not in found:
                found[call].update(error.operations)
    return dict(found)
