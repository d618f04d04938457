"""Whether a gradient can come back to a call from what is made of its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Expression,
    If,
    Leave,
    Operation,
    Ref,
    Subscript,
)

if TYPE_CHECKING:
    from torchrepro_lint.project import Project
    from torchrepro_lint.syntax.use_def import Spot

# What of a tensor no gradient comes back from: a copy without one, Python's numbers, an array, sizes, whole numbers.
_CUTTING = re.compile(
    r"detach|item|tolist|numpy|data|shape|dtype|device|ndim|is_cuda|size|dim|numel|nelement|element_size|arg\w+|"
    r"long|int|short|bool|byte|char|eq|ne|lt|le|gt|ge|equal|is\w+|any|all|nonzero|count_nonzero|sign|round|floor|ceil"
)
# Methods of a tensor that give another, from which a gradient comes back.
_GIVING = re.compile(
    r"cpu|cuda|to|type|type_as|float|double|half|bfloat16|view|view_as|reshape|reshape_as|permute|transpose|t|T|mT|squeeze|"
    r"unsqueeze|expand|expand_as|repeat|contiguous|clone|flatten|unflatten|flip|roll|narrow|select|split|chunk|unbind|"
    r"mean|sum|prod|std|var|norm|max|min|amax|amin|abs|neg|exp|log|log2|log10|log1p|sqrt|rsqrt|square|pow|clamp|add|sub|"
    r"mul|div|mm|bmm|matmul|dot|softmax|log_softmax|sigmoid|tanh|relu|sin|cos|masked_fill|where"
)
_COMPARING = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "not", "f"})
_CALCULATING = frozenset({"+", "-", "*", "/", "**", "@", "%", "//", "and", "or", "if"})
_READING = frozenset(f"builtins.{word}" for word in ("print", "len", "float", "int", "bool", "str", "repr", "format"))
_VARIABLES = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
# Functions of torch that make tensors of tensors and do nothing else.
_FUNCTION = re.compile(r"torch\.(nn\.functional\.)?[a-z]\w*(?<!_)")
_OTHER = frozenset({"save", "compile", "manual_seed"})
_MOST = 200


def cut_off(project: Project, path: str, call: Call) -> bool:
    """Whether all that is made of a call's result ends where no gradient is kept: in ``.detach()``, a number, a test.

    Followed through variables, calculations, torch's functions and the callers of the function that returns it.
    """
    return _Look(project).is_cut(path, call)


class _Look:
    """One look; each expression is looked at once."""

    def __init__(self, project: Project) -> None:
        self._names = project.resolver
        self._uses = project.uses
        self._seen: set[tuple[str, int, int]] = set()

    def is_cut(self, path: str, node: Expression) -> bool:
        """Whether a gradient comes back from nothing that is made of an expression."""
        key = (path, node.start, node.end)
        if key in self._seen:
            return True
        self._seen.add(key)
        spot = self._uses.spots(path).of(node)
        if spot is None or spot.written or len(self._seen) > _MOST:
            return False
        if spot.parent is None:
            return self._in_statement(path, spot)
        return self._in_expression(path, node, spot.parent)

    def _in_expression(self, path: str, node: Expression, parent: Expression) -> bool:
        match parent:
            case Attribute(name=word):
                return self._read(path, parent, (word,))
            case Call(func=func) if func is not node:
                return self._passed(path, parent)
            case Subscript(value=value):
                return value is not node or self.is_cut(path, parent)
            case Operation(op=op, operands=operands):
                if op in _COMPARING or (op == "if" and operands[0] is node):
                    return True
                return op in _CALCULATING and self.is_cut(path, parent)
            case Collection(kind="tuple" | "list"):
                outer = self._uses.spots(path).of(parent)
                return outer is not None and isinstance(outer.parent, Call) and self.is_cut(path, parent)
        return False

    def _passed(self, path: str, call: Call) -> bool:
        names = self._names.names(path, call.func)
        if names and all(name in _READING or name in _VARIABLES for name in names):
            return True
        plain = [name for name in names if _FUNCTION.fullmatch(name) and name.rpartition(".")[2] not in _OTHER]
        if not plain or len(plain) != len(names) or any(arg.keyword == "out" for arg in call.args):
            return False
        return _cuts(plain[0].rpartition(".")[2]) or self.is_cut(path, call)

    def _read(self, path: str, read: Expression, words: Sequence[str]) -> bool:
        """An expression that reads attributes of the value, or calls the last of them."""
        if not words:
            return self.is_cut(path, read)
        spot = self._uses.spots(path).of(read)
        if spot is None or _cuts(words[0]):
            return spot is not None
        if len(words) > 1 or not _GIVING.fullmatch(words[0]):
            return False
        called = isinstance(spot.parent, Call) and spot.parent.func is read
        return self.is_cut(path, spot.parent if called and spot.parent is not None else read)

    def _in_statement(self, path: str, spot: Spot) -> bool:
        match spot.statement:
            case If():
                return True
            case Assign(op="=" | ":", targets=targets, end=end):
                return all(self._assigned(path, target, spot, end) for target in targets)
            case Leave(kind="return"):
                return self._returned(path, spot.function)
        return False

    def _assigned(self, path: str, target: Expression, spot: Spot, end: int) -> bool:
        if not isinstance(target, Ref) or target.path or not all("<locals>" in root for root in target.roots):
            return False
        reads = list(self._uses.of_variable(path, target, spot, end))
        return bool(reads) and all(self._read(file, read, words) for file, read, words in reads)

    def _returned(self, path: str, function: str) -> bool:
        """Whether all that is known of a function are calls whose results are cut off; a method may be called unseen."""
        if function == ":" or ".<locals>." in function or self._names.owner(path + function):
            return False
        calls = 0
        for file, read, words in self._uses.of_definition(path, function):
            spot = self._uses.spots(file).of(read)
            if words or spot is None or not isinstance(spot.parent, Call) or spot.parent.func is not read:
                return False
            calls += 1
            if not self.is_cut(file, spot.parent):
                return False
        return calls > 0


def _cuts(word: str) -> bool:
    return _CUTTING.fullmatch(word) is not None
