"""TRL504: a hash that differs between runs becomes a seed, a bucket or a split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.checksums import checksum_advice, checksum_edits, hashed_kind
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.class_hashes import has_repeated_hash
from torchrepro_lint.dataflow.taint.numeric_sets import elements_are_numbers
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.rng.forward_uses import NumberUse, seed_or_split_use
from torchrepro_lint.source.text import Fix, Message, NoFix, Reference
from torchrepro_lint.syntax.nodes import Call, Expression, span

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.lattice import AbstractValue
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.resolve.program_index import CallSite

_TYPE_WORDS = {"str": "of a string ", "bytes": "of bytes ", "": "may be of a string and "}


def check(context: Context) -> Iterator[Finding]:
    """Each ``hash()`` that becomes a seed, a bucket or a split."""
    if context.path not in context.project.torch_modules:
        return
    kinds = type_inference(context.project)
    for site in context.project.calls(context.path):
        if "builtins.hash" not in site.names or len(site.call.args) != 1 or _is_dunder(site):
            continue
        value = site.call.args[0].value
        what = kinds.of(context.path, value)
        if what.kind == "tensor" or _repeats(context, value, what):
            continue
        use = seed_or_split_use(context.project, context.path, site.call)
        if use is not None:
            kind = hashed_kind(context.project, context.path, value)
            cause = f"hash() {_TYPE_WORDS.get(kind, '')}differs between runs, and {use.said}"
            message = Message(cause, *_place(context, site.call, use), f"; {checksum_advice(kind)}")
            yield Finding("TRL504", span(site.call), message, _remedy(context, site.call, kind))


def _repeats(context: Context, value: Expression, what: AbstractValue) -> bool:
    """Whether a value has the same hash in every run."""
    return has_repeated_hash(context.project, what) or elements_are_numbers(context.project, context.path, value)


def _place(context: Context, call: Call, use: NumberUse) -> tuple[str | Reference, ...]:
    """The line of a use in parentheses, unless it is that of the call."""
    position = context.project.position
    line = position(use.path, use.node.start).line
    if use.path == context.path and line == position(context.path, call.start).line:
        return ()
    return " (", Reference(use.path, line), ")"


def _remedy(context: Context, call: Call, kind: str) -> Fix | NoFix:
    edits = checksum_edits(context.project, context.path, call, kind)
    return edits if isinstance(edits, NoFix) else Fix("Use a checksum", edits, safe=False)


def _is_dunder(site: CallSite) -> bool:
    return site.function.rpartition(".")[2] == "__hash__"
