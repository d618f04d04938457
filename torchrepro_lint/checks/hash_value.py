"""TRL504: a hash that differs between runs becomes a seed, a bucket or a split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.insertions import ensure_import
from torchrepro_lint.checks.fixes.ordering import SortFixes
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.numeric_sets import elements_are_numbers, has_stable_hash
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.rng.forward_uses import seed_or_split_use
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.syntax.nodes import Call, Constant, Ref, Subscript, span

if TYPE_CHECKING:
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
        if has_stable_hash(what) or what.kind == "tensor" or elements_are_numbers(context.project, context.path, value):
            continue
        what_for = seed_or_split_use(context.project, context.path, site.call)
        if what_for:
            of = _TYPE_WORDS.get(what.kind, "")
            message = f"hash() {of}differs between runs, and {what_for}"
            fix = _fix(context, site.call, what.kind)
            yield Finding("TRL504", span(site.call), f"{message}; use zlib.crc32 of the encoded text", fix)


def _fix(context: Context, call: Call, kind: str) -> Fix | None:
    if kind not in ("str", "bytes") or not SortFixes(context).can_write(call):
        return None
    text, arg = context.lines.text, call.args[0]
    word, imports = ensure_import(context.tree, text, "zlib")
    given = text[arg.start : arg.end]
    if kind == "str":
        plain = isinstance(arg.value, (Constant, Ref, Call, Subscript)) or getattr(arg.value, "op", "") == "f"
        given = f"{given}.encode()" if plain or given.startswith("(") else f"({given}).encode()"
    edits = (*imports, Edit(Span(call.start, call.end), f"{word}.crc32({given})"))
    return Fix("Use a checksum", edits, safe=False)


def _is_dunder(site: CallSite) -> bool:
    return site.function.rpartition(".")[2] == "__hash__"
