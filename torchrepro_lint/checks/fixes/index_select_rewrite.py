"""Rewriting of ``index_select`` calls as indexing, whose gradient torch computes in a fixed order on CUDA.

A call becomes a subscript or a call of a helper. The text of input and index stays outside the edits, so that nested
calls can be rewritten in the same round; comments and line breaks stay.
"""

from __future__ import annotations

from torchrepro_lint.checks.fixes.arguments import (
    argument_span,
    argument_trivia,
    comments_and_layout,
    has_comma,
    has_comment,
    has_line_end,
    last_indent,
)
from torchrepro_lint.checks.fixes.index_select_call import ALIASES, IndexSelectCall
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import PARSER_ERRORS, Edit, NoFix, Span, parse
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Record,
    Ref,
    Subscript,
)

_EMPTY_LINES = lazy_pattern(r"(\r\n|\r|\n)[ \t]*(?=[\r\n])")
# Expressions that a subscript or an attribute can follow without parentheses.
_PRIMARY = (Ref, Attribute, Call, Subscript, Collection, Comprehension)


class SubscriptShape(Record, frozen=True):
    """The text around the index: ``x`` ``lead`` ``[before, wrap[0] index wrap[1], after]`` ``tail``."""

    before: str
    after: str
    wrap: tuple[str, str] = ("", "")
    tail: str = ""
    lead: str = ""


def subscript_edits(text: str, parts: IndexSelectCall, shape: SubscriptShape) -> tuple[Edit, ...]:
    """The edits that turn the call into a subscript; none where a comment would be lost.

    Input and index are never part of an edit, so that calls nested in them can be rewritten in the same round.
    """
    if parts.input is not None and parts.input.start > parts.by.start:
        return _reordered_edits(text, parts, shape)
    lead = _before_bracket(text, parts)
    if lead is None:
        return ()
    edits, start, kept = lead
    opening = Edit(
        Span(start, parts.by.start), f"{kept}{shape.lead}[{_text_before_index(text, parts, shape)}{shape.wrap[0]}"
    )
    closing = Edit(Span(parts.by.end, parts.call.end), shape.wrap[1] + _text_after_index(text, parts, shape))
    return (*edits, opening, closing)


def needs_parentheses(text: str, arg: Arg) -> bool:
    """Whether an argument needs parentheses before a subscript or an attribute can follow it."""
    if arg.start != arg.value.start:
        return False
    return not is_primary(arg.value) or not _is_one_line(text[arg.start : arg.end])


def is_primary(value: Expression) -> bool:
    """Whether a subscript or an attribute can follow an expression without parentheses."""
    if isinstance(value, (Collection, Comprehension)):
        return value.kind not in ("tuple", "generator")
    return isinstance(value, _PRIMARY)


def _is_one_line(source: str) -> bool:
    """Whether an expression can stand outside brackets: it has line ends only inside its own."""
    if "\n" not in source and "\r" not in source:
        return True
    try:
        parse(source, "eval")
    except PARSER_ERRORS:
        return False
    return True


def _before_bracket(text: str, parts: IndexSelectCall) -> tuple[tuple[Edit, ...], int, str] | None:
    """The edits before the bracket, the start of the text between input and index, and the part of it that stays
    outside.
    """
    call = parts.call
    if parts.input is not None:
        left, right = ("(", ")") if needs_parentheses(text, parts.input) else ("", "")
        return (Edit(Span(call.start, parts.input.start), left),), parts.input.end, right
    func = call.func
    assert isinstance(func, (Ref, Attribute))
    around, dot, name = text[func.base_end : call.open].rpartition(".")
    if call.start != func.start or not dot or has_comment(name):
        return None
    return (), func.base_end, around if has_line_end(around) or "\\" in around else ""


def _text_before_index(text: str, parts: IndexSelectCall, shape: SubscriptShape) -> str:
    """The text between the bracket and the index: ``before``, and the comments and line breaks of the arguments."""
    written, space = "", ""
    for arg, gap in zip(parts.call.args, argument_trivia(text, parts.call).before, strict=True):
        if has_comment(gap):
            written = _with_comments(written, space, comments_and_layout(gap))
            space = ""
        elif not _at_line_start(written) and (written or arg == parts.call.args[0]):
            # The line break after a removed dimension or input is removed with it.
            space = space or last_indent(gap) or (" " if written else "")
        if arg == parts.by:
            break
        if arg == parts.dim and shape.before:
            written, space = f"{written}{space}{shape.before},", ""
    if shape.before and parts.dim.start > parts.by.start:
        return f"{written}{space}{shape.before}, "
    return written + space


def _with_comments(written: str, space: str, layout: str) -> str:
    """Add comments with their line breaks; they end at the start of a line."""
    layout = layout.lstrip(" \t")
    if not layout.startswith("#") or _at_line_start(written):
        return written + layout
    return f"{written}{space if has_line_end(space) else '  '}{layout}"


def _at_line_start(written: str) -> bool:
    return written.rstrip(" \t").endswith(("\n", "\r"))


def _text_after_index(text: str, parts: IndexSelectCall, shape: SubscriptShape) -> str:
    """The text after the index: ``after``, comments and line breaks, the bracket and the tail."""
    spread = argument_trivia(text, parts.call)
    gap = "".join((*spread.before[parts.call.args.index(parts.by) + 1 :], spread.after))
    several = bool(shape.before or shape.after)
    comma = "," if several and has_line_end(spread.after) and has_comma(spread.after) else ""
    layout = (
        _EMPTY_LINES.sub(r"\1", comments_and_layout(gap)).rstrip(" \t")
        if has_comment(gap)
        else last_indent(spread.after)
    )
    if has_comment(gap):
        layout += last_indent(spread.after).lstrip("\r\n")
    after = f", {shape.after}" if shape.after else ""
    return f"{after}{comma}{layout}]{shape.tail}"


def _reordered_edits(text: str, parts: IndexSelectCall, shape: SubscriptShape) -> tuple[Edit, ...]:
    """Swap an index that stands before the input, if neither has effects and there is no comment between."""
    assert parts.input is not None
    names = (Ref, Constant)
    calm = isinstance(parts.input.value, names) or isinstance(parts.by.value, names)
    if argument_trivia(text, parts.call).commented or not calm:
        return ()
    source = text[parts.input.start : parts.input.end]
    if needs_parentheses(text, parts.input):
        source = f"({source})"
    before = f"{shape.before}, " if shape.before else ""
    after = f", {shape.after}" if shape.after else ""
    index = shape.wrap[0] + text[parts.by.start : parts.by.end] + shape.wrap[1]
    return (Edit(Span(parts.call.start, parts.call.end), f"{source}{shape.lead}[{before}{index}{after}]{shape.tail}"),)


# Beyond these dimensions the helper's name is clearer than a row of colons.
_LAST, _FIRST = 4, -4


class RewriteOptions(Record, frozen=True):
    """Options of a rewriting.

    ``flatten``: the index has no dimensions. ``long``: the target torch rejects its dtype in indexing. ``viewed``: the
    memory layout of the result matters. ``contiguous``: the input is contiguous. ``scripted``: TorchScript compiles the
    code.
    """

    flatten: bool = False
    long: bool = False
    viewed: bool = False
    contiguous: bool = False
    scripted: bool = False


class Rewrite(Record, frozen=True):
    """The edits of a call, and whether they call the helper."""

    edits: tuple[Edit, ...]
    helped: bool = False


def rewrite(text: str, parts: IndexSelectCall, wishes: RewriteOptions, helper: str) -> Rewrite | NoFix:
    """The replacement of a call, or why nothing gives exactly the same values without the loss of a comment.

    ``helper`` is the name of the function for a dimension that is not constant.
    """
    if (reason := _obstacle(text, parts)) is not None:
        return reason
    wrap = _index_wrapper(parts, wishes)
    tail = ".contiguous()" if wishes.viewed and not wishes.contiguous else ""
    match parts.dim.value:
        case Constant(value=bool()) | Constant(value=str() | None):
            return NoFix("the dimension is not a number, and indexing needs its position")
        case Constant(value=int(dim)) if _FIRST <= dim <= _LAST and not (wishes.scripted and dim < 0):
            shape = SubscriptShape(*_indices(dim), wrap, tail)
        case Constant(value=int()) | Ref() if wishes.scripted:
            shape = _movedim_shape(text[parts.dim.start : parts.dim.end], wrap, wishes.viewed)
        case _ if wishes.scripted:
            return NoFix("TorchScript compiles this function and cannot index a computed dimension")
        case _:
            edits = _with_helper(text, parts, wrap, helper, tail)
            return Rewrite(edits, helped=True) if edits else _UNUSUAL
    edits = subscript_edits(text, parts, shape)
    if edits:
        return Rewrite(edits)
    reordered = parts.input is not None and parts.input.start > parts.by.start
    return NoFix("the index is written before the input, and the two cannot be swapped") if reordered else _UNUSUAL


_UNUSUAL = NoFix("a comment or a line break in the call would be lost")


def _obstacle(text: str, parts: IndexSelectCall) -> NoFix | None:
    """What keeps a call from being rewritten, whatever its dimension."""
    if not parts.plain or parts.out is not None:
        return NoFix("the call passes something other than an input, a dimension and an index")
    if not _is_tensor(parts.by.value):
        return NoFix("the index is not a tensor, and indexing treats other values differently")
    written = isinstance(parts.dim.value, Constant)  # then its text is removed, with any comment in it
    if has_comment(_callee_text(text, parts)) or (written and has_comment(text[parts.dim.start : parts.dim.end])):
        return NoFix("a comment in the call would be lost")
    return None


def _is_tensor(index: Expression) -> bool:
    """Whether an index may be a tensor: ``index_select`` takes nothing else, and indexing treats other values
    differently.
    """
    return not isinstance(index, (Collection, Comprehension, Constant, Lambda))


def _callee_text(text: str, parts: IndexSelectCall) -> str:
    """The text of the callee that is replaced: all of it in the function form."""
    func = parts.call.func
    start = func.base_end if parts.input is None and isinstance(func, (Ref, Attribute)) else parts.call.start
    lead, _, name = text[start : parts.call.open].rpartition(".")
    return name if parts.input is None else lead + name


def _index_wrapper(parts: IndexSelectCall, wishes: RewriteOptions) -> tuple[str, str]:
    """The text around the index: conversions, and parentheses where it needs them."""
    value = parts.by.value
    methods = (".long()" if wishes.long else "") + (".reshape(-1)" if wishes.flatten else "")
    bare = parts.by.start == value.start
    is_walrus = isinstance(value, Operation) and value.op == ":="
    if bare and (is_walrus or (methods and not is_primary(value))):
        return "(", f"){methods}"
    return "", methods


def _indices(dim: int) -> tuple[str, str]:
    """The text before and after the index of a dimension."""
    if dim >= 0:
        return ", ".join(":" * dim), ""
    return "...", ", ".join(":" * (-dim - 1))


def _movedim_shape(dim: str, wrap: tuple[str, str], viewed: bool) -> SubscriptShape:
    """For TorchScript, which takes no tensor after an ellipsis: move the dimension to the front and back."""
    tail = f".movedim(0, {dim})" + (".contiguous()" if viewed else "")
    return SubscriptShape("", "", wrap, tail, f".movedim({dim}, 0)")


def _with_helper(text: str, parts: IndexSelectCall, wrap: tuple[str, str], helper: str, tail: str) -> tuple[Edit, ...]:
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
