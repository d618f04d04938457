"""The fix of TRL401: ``index_select`` by indexing, whose gradient torch computes in a fixed order on CUDA."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.gaps import argument_span, has_comment, has_line_end
from torchrepro_lint.rewrites.selecting import ALIASES, Selecting
from torchrepro_lint.rewrites.subscript import Shape, is_primary, subscript
from torchrepro_lint.source.text import Edit, Span
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
)

# Beyond these dimensions a row of colons says less than the helper's name does.
_LAST, _FIRST = 4, -4


class Wishes(NamedTuple):
    """What the surroundings ask of the rewriting.

    ``flatten``: the index has no dimensions. ``long``: the target refuses its dtype in indexing. ``viewed``: the
    result's layout matters. ``contiguous``: the input's elements lie in their order. ``scripted``: TorchScript compiles
    the code.
    """

    flatten: bool = False
    long: bool = False
    viewed: bool = False
    contiguous: bool = False
    scripted: bool = False


class Rewriting(NamedTuple):
    """The edits of a call, and whether they call the helper."""

    edits: tuple[Edit, ...]
    helped: bool = False


def rewrite(text: str, parts: Selecting, wishes: Wishes, helper: str) -> Rewriting | None:
    """What replaces a call; None where nothing gives exactly the same values, or a comment would be lost.

    ``helper`` is the name of the function for a dimension that is no constant.
    """
    if not parts.plain or parts.out is not None or not _is_tensor(parts.by.value):
        return None
    written = isinstance(parts.dim.value, Constant)  # then its text goes, with any comment in it
    if has_comment(_called(text, parts)) or (written and has_comment(text[parts.dim.start : parts.dim.end])):
        return None
    wrap = _wrap(parts, wishes)
    tail = ".contiguous()" if wishes.viewed and not wishes.contiguous else ""
    match parts.dim.value:
        case Constant(value=bool()) | Constant(value=str() | None):
            return None
        case Constant(value=int(dim)) if _FIRST <= dim <= _LAST and not (wishes.scripted and dim < 0):
            shape = Shape(*_indices(dim), wrap, tail)
        case Constant(value=int()) | Ref() if wishes.scripted:
            shape = _moved(text[parts.dim.start : parts.dim.end], wrap, wishes.viewed)
        case _ if wishes.scripted:
            return None
        case _:
            edits = _with_helper(text, parts, wrap, helper, tail)
            return Rewriting(edits, helped=True) if edits else None
    edits = subscript(text, parts, shape)
    return Rewriting(edits) if edits else None


def _is_tensor(index: Expression) -> bool:
    """Whether an index may be a tensor: ``index_select`` takes nothing else, and indexing reads others its own way."""
    return not isinstance(index, (Collection, Comprehension, Constant, Lambda))


def _called(text: str, parts: Selecting) -> str:
    """The text of what is called, where it is replaced: all of it in the function form."""
    func = parts.call.func
    start = func.base_end if parts.input is None and isinstance(func, (Ref, Attribute)) else parts.call.start
    lead, _, name = text[start : parts.call.open].rpartition(".")
    return name if parts.input is None else lead + name


def _wrap(parts: Selecting, wishes: Wishes) -> tuple[str, str]:
    """What stands around the index: conversions, and parentheses where it needs them."""
    value = parts.by.value
    methods = (".long()" if wishes.long else "") + (".reshape(-1)" if wishes.flatten else "")
    bare = parts.by.start == value.start
    loose = isinstance(value, Operation) and value.op == ":="
    if bare and (loose or (methods and not is_primary(value))):
        return "(", f"){methods}"
    return "", methods


def _indices(dim: int) -> tuple[str, str]:
    """What stands before and after the index of a dimension."""
    if dim >= 0:
        return ", ".join(":" * dim), ""
    return "...", ", ".join(":" * (-dim - 1))


def _moved(dim: str, wrap: tuple[str, str], viewed: bool) -> Shape:
    """TorchScript takes no tensor after an ellipsis: move the dimension to the front and back."""
    tail = f".movedim(0, {dim})" + (".contiguous()" if viewed else "")
    return Shape("", "", wrap, tail, f".movedim({dim}, 0)")


def _with_helper(text: str, parts: Selecting, wrap: tuple[str, str], helper: str, tail: str) -> tuple[Edit, ...]:
    """The edits that call ``helper(input, dim, index)`` with the arguments as they stand."""
    call, func = parts.call, parts.call.func
    assert isinstance(func, (Ref, Attribute))
    if parts.input is not None:
        edits = [Edit(Span(call.start, call.open), f"{helper}(")]
    elif call.start != func.start:
        return ()
    else:
        source, lead = text[call.start : func.base_end], text[func.base_end : call.open].rpartition(".")[0]
        comma = "," if has_line_end(text[call.open : call.args[0].start]) else ", "
        edits = [Edit(Span(call.start, call.open), f"{helper}({source}{lead if has_comment(lead) else ''}{comma}")]
    for arg in call.args:
        if arg.keyword in ALIASES:
            start = argument_span(text, call, arg).start
            if not text.startswith(arg.keyword, start):  # in other letters that Python reads as these, perhaps fewer
                return ()
            edits.append(Edit(Span(start, start + len(arg.keyword)), ALIASES[arg.keyword]))
    if any(wrap):
        edits += (Edit(Span(parts.by.start, parts.by.start), wrap[0]),) if wrap[0] else ()
        edits += (Edit(Span(parts.by.end, parts.by.end), wrap[1]),)
    if tail:
        edits.append(Edit(Span(call.end - 1, call.end), f"){tail}"))
    return tuple(edits)
