"""TRL504: a hash or an address that differs between runs becomes a seed, a bucket, a split or an order."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.forward_uses import NumberUse, seed_or_split_use
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.context import TaintedValue
from torchrepro_lint.dataflow.taint.numeric_sets import elements_are_numbers, is_number
from torchrepro_lint.dataflow.taint.sinks import decisive_sink, describe_sink, is_followed_in, writes_data
from torchrepro_lint.dataflow.taint.stable_hashes import has_repeated_hash
from torchrepro_lint.dataflow.taint.ties import sort_key
from torchrepro_lint.dataflow.taint.transfer import LISTING, SCALAR
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.domain.rng.identifiers import only_identifies
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.text import Fix, Message, NoFix, Reference
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, span
from torchrepro_lint.syntax.qualified_names import in_project, simple_name
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of
from torchrepro_lint.trace.traces import Context

# Calls that take a key.
_SORTING = frozenset({"sorted", "sort", "min", "max"})
_KEYS = {
    "address": "a sort by id(), the address of each object, gives another order in each run",
    "hash": "a sort by hash(), which differs between runs for strings, gives another order in each run",
}
_NO_KEY = NoFix("what else the elements can be sorted by is not known")
_TYPE_WORDS = {"str": "of a string ", "bytes": "of bytes ", "": "may be of a string and "}


def check(context: Context) -> Iterator[Finding]:
    """Each ``hash()`` that becomes a seed, a bucket or a split, and each sort by ``hash`` or ``id`` whose order decides something."""
    if is_followed_in(context.project, context.path):
        found = list(_hashes(context))
        yield from found
        for each in _sorts(context):  # a bucket inside a key is one cause
            if not any(each.span.start <= other.span.start < each.span.end for other in found):
                yield each


def _hashes(context: Context) -> Iterator[Finding]:
    kinds = type_inference(context.project)
    for site in context.project.calls(context.path):
        if "builtins.hash" not in site.names or len(site.call.args) != 1 or _is_dunder(site):
            continue
        value = site.call.args[0].value
        what = kinds.of(context.path, value)
        if what.kind == "tensor" or _repeats(context, value, what) or not _counts(context):
            continue
        use = seed_or_split_use(context.project, context.path, site.call)
        if use is not None and not only_identifies(context.project, context.path, site.call):
            from torchrepro_lint.checks.fixes.checksums import checksum_advice, hashed_kind

            kind = hashed_kind(context.project, context.path, value)
            cause = f"hash() {_TYPE_WORDS.get(kind, '')}differs between runs, and {use.said}"
            message = Message(cause, *_place(context, site.call, use), f"; {checksum_advice(kind)}")
            yield Finding("TRL504", span(site.call), message, _remedy(context, site.call, kind))


def _counts(context: Context) -> bool:
    """Whether buckets and splits count in a module: one of torch, or one that writes data."""
    project, path = context.project, context.path
    return path in project.torch_modules or any(writes_data(project, path, site.call) for site in project.calls(path))


def _sorts(context: Context) -> Iterator[Finding]:
    """Sorts whose key is the address or the hash of each object."""
    project, path = context.project, context.path
    for site in project.calls(path) if has_word(context.tree.summary.keywords, "key") else ():
        if last_identifier(site.call.func) not in _SORTING or any(map(in_project, site.names)):
            continue
        key = sort_key(project.resolver, path, site.call)
        if key not in _KEYS or (key == "hash" and _has_repeated_elements(context, site.call)):
            continue
        taken = decisive_sink(project, path, _sorted_values(context, site.call))
        if taken is not None:
            what = describe_sink(project, path, site.call, taken)
            message = Message(f"{_KEYS[key]}, which ", what, "; sort by a name or another value that repeats")
            yield Finding("TRL504", span(site.call), message, _NO_KEY)


def _sorted_values(context: Context, call: Call) -> Iterator[TaintedValue]:
    """The result of a sort; of ``x.sort()`` the reads of the list afterwards; of ``min`` and ``max`` one element."""
    word, path = last_identifier(call.func), context.path
    if word != "sort":
        yield TaintedValue(path, call, LISTING if word == "sorted" else SCALAR)
        return
    position = context.project.uses.spots(path).of(call)
    if position is not None and isinstance(call.func, Ref):
        receiver = call.func._replace(path=call.func.path[:-1])
        yield from context.project.taint.reads(path, receiver, LISTING, position, call.end)


def _has_repeated_elements(context: Context, call: Call) -> bool:
    """Whether what is sorted by hash has the same hashes in every run."""
    value = receiver_of(call.func) if last_identifier(call.func) == "sort" else call.args[0].value
    if value is None:
        return False
    what = type_inference(context.project).of(context.path, value)
    return has_repeated_hash(context.project, what.element) or elements_are_numbers(
        context.project, context.path, value
    )


def _repeats(context: Context, value: Expression, what: AbstractValue) -> bool:
    """Whether a value has the same hash in every run."""
    project, path = context.project, context.path
    return (
        has_repeated_hash(project, what)
        or is_number(project, path, value)
        or elements_are_numbers(project, path, value)
    )


def _place(context: Context, call: Call, use: NumberUse) -> tuple[str | Reference, ...]:
    """The line of a use in parentheses, unless it is that of the call."""
    position = context.project.position
    line = position(use.path, use.node.start).line
    if use.path == context.path and line == position(context.path, call.start).line:
        return ()
    return " (", Reference(use.path, line), ")"


def _remedy(context: Context, call: Call, kind: str) -> Fix | NoFix:
    from torchrepro_lint.checks.fixes.checksums import checksum_edits

    edits = checksum_edits(context.project, context.path, call, kind)
    return edits if isinstance(edits, NoFix) else Fix("Use a checksum", edits, safe=False)


def _is_dunder(site: CallSite) -> bool:
    return simple_name(site.function) == "__hash__"
