"""Loaders, their workers and splits: TRL301 to TRL307."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.plants import Edit, Operator, Plant, Source


def shuffle(source: Source) -> Iterator[Plant]:
    """TRL302: a loader that did not shuffle does."""
    for call in source.calls("DataLoader"):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        value = given.get("shuffle")
        if isinstance(value, ast.Constant) and value.value is False and not set(given) & _ORDERED:
            yield Plant((Edit(*source.span(value), "True"),), source.span(call))


def out_of_order(source: Source) -> Iterator[Plant]:
    """TRL305: a loader hands batches out as they come."""
    for call in source.calls("DataLoader"):
        if call.args or call.keywords:
            yield Plant((_argument(source, call, "in_order=False"),), source.span(call))


def _argument(source: Source, call: ast.Call, text: str) -> Edit:
    """One more keyword, in front of the keywords that are there."""
    keywords = [keyword for keyword in call.keywords if keyword.arg]
    if keywords:
        start = source.span(keywords[0])[0]
        return Edit(start, start, f"{text}, ")
    end = source.span([*call.args, *call.keywords][-1])[1]
    return Edit(end, end, f", {text}")


_ORDERED = {"generator", "sampler", "batch_sampler", None}

OPERATORS = (
    Operator("shuffle=False becomes True", "TRL302", "DataLoader", shuffle),
    Operator("in_order=False", "TRL305", "DataLoader", out_of_order),
)
