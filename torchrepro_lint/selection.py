"""Which rules run: codes, prefixes and names, of which the more specific one decides."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from torchrepro_lint.source.errors import UsageError

EVERYTHING = "ALL"
COMMAND_LINE = "the command line"
_BY_NAME = 1000


class Selectable(Protocol):
    """What is chosen from: a rule, as far as selectors look at it."""

    @property
    def code(self) -> str:
        """``TRL301``."""
        ...

    @property
    def name(self) -> str:
        """``missing-worker-seed``."""
        ...

    @property
    def default(self) -> bool:
        """Whether it belongs to the default selection."""
        ...


class Selection(NamedTuple):
    """One layer of choices; ``origin`` says where they were made. ``select=None`` keeps what the layer below has."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    origin: str = COMMAND_LINE


def selected(rules: Sequence[Selectable], layers: Iterable[Selection]) -> frozenset[str]:
    """The codes of the rules that run.

    As in Ruff: within a layer the most specific selector decides and, at equal specificity, ``ignore`` does; a later
    layer overrules an earlier one. Raises ``UsageError`` for a selector that fits no rule.
    """
    chosen = frozenset(rule.code for rule in rules if rule.default)
    for layer in layers:
        validate(rules, layer)
        start = frozenset[str]() if layer.select is not None else chosen
        chosen = frozenset(rule.code for rule in rules if _decide(rule, layer, rule.code in start))
    return chosen


def matching(rules: Iterable[Selectable], selectors: Iterable[str]) -> frozenset[str]:
    """The codes of the rules that any of the selectors fits."""
    wanted = tuple(selectors)
    return frozenset(rule.code for rule in rules if any(_specificity(rule, one) is not None for one in wanted))


def validate(rules: Sequence[Selectable], layer: Selection) -> None:
    """Raise ``UsageError`` for the first selector of a layer that fits no rule."""
    for key, selectors in (
        ("select", layer.select or ()),
        ("extend-select", layer.extend_select),
        ("ignore", layer.ignore),
    ):
        said = f"--{key}" if layer.origin == COMMAND_LINE else f"{key} of {layer.origin}"
        require_known(rules, selectors, said)


def require_known(rules: Sequence[Selectable], selectors: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for the first selector that fits no rule, suggesting the nearest one."""
    for selector in selectors:
        if all(_specificity(rule, selector) is None for rule in rules):
            names = [name for rule in rules for name in (rule.code, rule.name)]
            raise UsageError(f"unknown rule {selector!r} in {where}{did_you_mean(selector, names)}")


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """``; did you mean 'TRL301'?``, where a name is near without regard to case; else nothing."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def _decide(rule: Selectable, layer: Selection, before: bool) -> bool:
    added = _strongest(rule, (*(layer.select or ()), *layer.extend_select))
    removed = _strongest(rule, layer.ignore)
    if added < 0 and removed < 0:
        return before
    return added > removed


def _strongest(rule: Selectable, selectors: Iterable[str]) -> int:
    ranks = (_specificity(rule, selector) for selector in selectors)
    return max((rank for rank in ranks if rank is not None), default=-1)


def _specificity(rule: Selectable, selector: str) -> int | None:
    """How closely a selector names a rule: 0 for ALL, the length of a prefix, most for a name; None if it does not."""
    if selector == EVERYTHING:
        return 0
    if selector and rule.code.startswith(selector):
        return _BY_NAME if selector == rule.code else len(selector)
    return _BY_NAME if selector == rule.name else None
