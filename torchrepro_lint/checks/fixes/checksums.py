"""The fix of a hash that differs between runs: a checksum of the same text or bytes, which each run computes alike."""

from __future__ import annotations

from torchrepro_lint.checks.fixes.import_block import ensure_import
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.source.text import Edit, NoFix
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Ref, Subscript, span
from torchrepro_lint.syntax.qualified_names import in_project
from torchrepro_lint.syntax.visitor import (
    all_expressions,
    last_identifier,
)
from torchrepro_lint.trace.traces import Traces

# Functions and methods of libraries that give bytes, and those that give text.
_MAKING_BYTES = frozenset(
    (
        *(
            f"{each}.dumps"
            for each in ("pickle", "_pickle", "cPickle", "marshal", "dill", "cloudpickle", "msgpack", "orjson")
        ),
        *("struct.pack", "base64.b64encode", "base64.urlsafe_b64encode", "zlib.compress", "binascii.hexlify"),
    )
)
_GIVING_BYTES = frozenset({"tobytes", "digest", "to_bytes"})
_GIVING_TEXT = frozenset({"hexdigest"})


def hashed_kind(project: Traces, path: str, value: Expression) -> str:
    """What ``hash`` is taken of: ``str``, ``bytes``, another type by its name; empty where that is not known."""
    known = type_inference(project).of(path, value).kind
    if known:
        return known
    found = {_made_kind(project, file, each) for file, each in project.values(path, value)}
    return found.pop() if len(found) == 1 else ""


def _made_kind(project: Traces, path: str, value: Expression) -> str:
    """The kind of what a call of a library makes; empty for anything else."""
    if not isinstance(value, Call):
        return ""
    names, word = project.names(path, value.func), last_identifier(value.func)
    if any(map(in_project, names)):
        return ""
    if (names and _MAKING_BYTES.issuperset(names)) or (word in _GIVING_BYTES and isinstance(value.func, Ref)):
        return "bytes"
    return "str" if word in _GIVING_TEXT else ""


def checksum_advice(kind: str) -> str:
    """What to write instead of a hash of a value of some kind."""
    match kind:
        case "str":
            return "use zlib.crc32 of the encoded text"
        case "bytes":
            return "use zlib.crc32 of the bytes"
        case "tuple":
            return "use zlib.crc32 of its encoded repr"
        case "":
            return "use a checksum, such as zlib.crc32 of the encoded text"
    return "use a checksum of bytes that represent the value, such as zlib.crc32"


def checksum_edits(project: Traces, path: str, call: Call, kind: str) -> tuple[Edit, ...] | NoFix:
    """Write ``zlib.crc32`` for a call of ``hash`` with one argument, of the encoded text or of the bytes."""
    if kind not in ("str", "bytes"):
        return _no_bytes(kind)
    tree, text, arg = project.files[path], project.text(path), call.args[0]
    if any(each.start <= call.start < each.end for each in _formatted_strings(project, path)):
        return NoFix("the call is inside an f-string, which the fix does not edit")
    word, imports = ensure_import(tree, text, "zlib")
    given = text[arg.start : arg.end]
    if kind == "str":
        plain = isinstance(arg.value, (Constant, Ref, Call, Subscript)) or getattr(arg.value, "op", "") == "f"
        given = f"{given}.encode()" if plain or given.startswith("(") else f"({given}).encode()"
    return (*imports, Edit(span(call), f"{word}.crc32({given})"))


def _no_bytes(kind: str) -> NoFix:
    if not kind:
        return NoFix("it is not known whether the value is text or bytes, and a checksum takes only bytes")
    return NoFix(f"a checksum takes only bytes, and there are several ways to turn this {kind} into bytes")


def _formatted_strings(project: Traces, path: str) -> list[Operation]:
    found = all_expressions(project.files[path])
    return [each for each in found if isinstance(each, Operation) and each.op == "f"]
