"""Uninitialised memory: the calls that return it, and whether the first use of such a value reads it.

A use fills the value, reads it, or looks only at its shape. What is not known counts as filling: a call that is not followed,
a value that is stored, returned or captured.
"""

from __future__ import annotations

from enum import Enum

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Loop,
    Match,
    Operation,
    Ref,
    Subscript,
    Try,
)
from torchrepro_lint.syntax.qualified_names import in_project, local_symbol, path_of, split_last
from torchrepro_lint.syntax.use_def import Block, ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import is_same_reference, last_identifier


class Use(Enum):
    """What a use does to an uninitialised value; ``NEUTRAL`` uses neither read nor fill it."""

    READS = "reads"
    FILLS = "fills"
    NEUTRAL = "neutral"


# Prefilter: the last words of what returns such memory.
EMPTY_WORDS = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "ndarray", "Tensor"}
    | {f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte")}
)
_FACTORIES = lazy_pattern(
    r"torch\.(empty(_like|_strided|_permuted)?|(.*\.)?new_empty(_strided)?)|numpy\.(empty(_like)?|ndarray)"
)
# Constructors that take sizes, but also data.
_CONSTRUCTORS = lazy_pattern(r"torch\.(cuda\.)?(\w+Tensor|Tensor)")
_LIKE = frozenset({"empty_like"})
_OBJECTS = frozenset({"builtins.object", "numpy.object_", "numpy.object", "numpy.dtype"})


def returns_empty(project: ValueFlow, path: str, site: CallSite) -> str:
    """The name of a call that returns uninitialised memory with at least one element, as far as is known; else empty."""
    call, word = site.call, last_identifier(site.call.func)
    if not call.args or not (is_factory(site.names, word) or _is_sized(project, path, site)):
        return ""
    for arg in call.args:
        if arg.keyword in ("out", "buffer") or (arg.keyword == "device" and _is_text(arg.value, "meta")):
            return ""
        if arg.keyword == "dtype" and (_is_object(project, path, arg.value)):
            return ""
    sizes = call.args[0].value
    if word not in _LIKE and any(map(_is_zero, [arg.value for arg in call.args if arg.keyword in (None, "size")])):
        return ""
    if any(_is_object(project, path, arg.value) for arg in call.args[1:2]) or _is_text(sizes, "meta"):
        return ""
    return word


def is_factory(names: tuple[str, ...], word: str) -> bool:
    """Whether a callee always returns uninitialised memory."""
    return any(map(_FACTORIES.fullmatch, names)) or (not names and word in ("new_empty", "new_empty_strided"))


def _is_sized(project: ValueFlow, path: str, site: CallSite) -> bool:
    """``torch.Tensor(n, m)``, and ``torch.Tensor(n)`` with what is known to be a number."""
    if not any(map(_CONSTRUCTORS.fullmatch, site.names)) or any(arg.keyword or arg.star for arg in site.call.args):
        return False
    values = [arg.value for arg in site.call.args]
    return len(values) > 1 or type_inference(project).of(path, values[0]).kind == "int"


def _is_zero(size: Expression) -> bool:
    match size:
        case Constant(value=value):
            return value == 0
        case Collection(items=items):
            return any(item is not None and _is_zero(item) for item in items)
    return False


def _is_text(value: Expression, text: str) -> bool:
    match value:
        case Constant(value=known):
            return known == text
        case Call(args=(arg, *_)):
            return _is_text(arg.value, text)
    return False


def _is_object(project: ValueFlow, path: str, dtype: Expression) -> bool:
    """Whether an array holds objects, which start as None."""
    match dtype:
        case Constant(value="O" | "object"):
            return True
        case Ref() | Call():
            return not _OBJECTS.isdisjoint(project.names(path, dtype))
    return False


# --- uses ------------------------------------------------------------------------------------------------------------

_NEUTRAL = frozenset(
    {"shape", "dtype", "device", "ndim", "size", "dim", "numel", "layout", "requires_grad", "is_cuda", "nbytes"}
    | {"itemsize", "element_size", "stride", "is_contiguous", "storage_offset", "nelement", "strides", "flags"}
    | {"is_leaf", "get_device", "is_floating_point", "ndimension", "type"}
)
# Attributes and methods that give the same memory, or a copy of it.
_PASSING = frozenset(
    {"T", "mT", "H", "data", "real", "imag", "flat", "view", "reshape", "unsqueeze", "squeeze", "expand"}
    | {"expand_as", "transpose", "permute", "t", "flatten", "contiguous", "to", "cuda", "cpu", "float", "double"}
    | {"half", "long", "int", "astype", "clone", "copy", "detach", "requires_grad_", "pin_memory", "unsqueeze_"}
    | {"squeeze_", "view_as", "bool", "numpy", "ravel", "swapaxes", "narrow", "select", "bfloat16", "repeat"}
    | {"movedim", "type_as", "retain_grad"}
)
_READING = frozenset(
    {"sum", "mean", "std", "var", "min", "max", "argmax", "argmin", "item", "tolist", "any", "all", "norm"}
    | {"abs", "exp", "log", "sqrt", "rsqrt", "pow", "matmul", "mm", "bmm", "mv", "dot", "softmax", "log_softmax"}
    | {"sigmoid", "tanh", "relu", "add", "sub", "mul", "div", "clamp", "clip", "argsort", "topk", "cumsum"}
    | {"cumprod", "prod", "median", "unique", "nonzero", "round", "floor", "ceil", "eq", "ne", "gt", "lt", "ge"}
    | {"le", "tobytes", "tofile", "sin", "cos", "logsumexp", "addmm", "baddbmm", "einsum", "outer", "inner"}
    | {"trace", "inverse", "det", "svd", "cholesky", "square", "neg", "sign", "minimum", "maximum", "isnan"}
    | {"isfinite", "isinf", "allclose", "equal", "array_equal", "histc", "bincount", "diff", "nanmean", "nansum"}
    | {"average", "percentile", "quantile", "multiply", "divide", "subtract", "power", "tensordot"}
    | {"count_nonzero", "backward", "log1p", "expm1", "lerp", "cdist", "cosine_similarity", "reciprocal", "erf"}
    | {"cross"}
)
# Those whose result is no tensor, or that have none.
_TELLING = frozenset({"item", "tolist", "tobytes", "tofile", "backward"})
# In-place methods that read what they write to.
_ACCUMULATING = frozenset(
    {"add_", "sub_", "div_", "addcmul_", "addcdiv_", "index_add_", "scatter_add_", "addmm_", "addmv_"}
    | {"addbmm_", "baddbmm_"}
)
_SAVING = frozenset(
    {"torch.save", "numpy.save", "numpy.savez", "numpy.savetxt", "numpy.savez_compressed", "builtins.print"}
)
_LOOKING = frozenset(
    {f"builtins.{word}" for word in ("len", "isinstance", "type", "id", "hasattr")}
    | {
        f"numpy.{word}"
        for word in ("shape", "ndim", "size", "zeros_like", "ones_like", "empty_like", "full_like", "iscomplexobj")
    }
    | {f"torch.{word}_like" for word in ("zeros", "ones", "empty", "full", "rand", "randn", "randint")}
    | {"torch.is_tensor", "torch.numel", "torch.is_floating_point"}
)
_CONVERTING = frozenset(
    {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable", "torch.as_tensor"}
    | {"torch.from_numpy", "torch.tensor", "numpy.asarray", "numpy.array", "numpy.ascontiguousarray"}
    | {"torch.clone", "torch.squeeze", "numpy.copy", "torch.unsqueeze", "torch.reshape", "numpy.reshape"}
    | {"torch.transpose", "numpy.transpose", "torch.flatten"}
)
_NUMBERS = frozenset(f"builtins.{word}" for word in ("float", "int", "bool", "sum", "repr", "str"))
_COMPUTING = frozenset(
    {"+", "-", "*", "/", "//", "%", "**", "@", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "~", "<<", ">>", "f"}
)
_TESTING = frozenset({"is", "is not", "not"})


class FirstUses:
    """The first uses of uninitialised values in one file."""

    def __init__(self, project: ValueFlow, path: str, depth: int = limits.MAX_FILLING_CALLS) -> None:
        self._project = project
        self._depth = depth
        self._path = path
        self._spots: UseDefIndex = project.uses.spots(path)

    def of(self, value: Expression) -> tuple[Use, Expression]:
        """What the first use of a value that is not neutral does, and where; ``NEUTRAL`` if there is none."""
        spot = self._spots.of(value)
        if spot is None or spot.written:
            return Use.FILLS, value
        return self._in_statement(value, spot) if spot.parent is None else self._in_expression(value, spot.parent)

    def of_reference(self, ref: Ref, words: tuple[str, ...]) -> tuple[Use, Expression]:
        """What a reference to a value does, of which it reads the attributes ``words``."""
        spot = self._spots.of(ref)
        if spot is None:
            return Use.FILLS, ref
        for number, word in enumerate(words):
            if word in _NEUTRAL:
                return Use.NEUTRAL, ref
            last = number == len(words) - 1
            if last and isinstance(spot.parent, Call) and spot.parent.func == ref:
                return self._of_method(word, spot.parent)
            if word not in _PASSING:
                return Use.FILLS, ref
        if spot.written:
            return _assigned(spot), ref
        return self.of(ref)

    def _of_method(self, word: str, call: Call) -> tuple[Use, Expression]:
        if any(arg.keyword == "out" or _drops_input(arg) for arg in call.args):
            return Use.FILLS, call
        if word in _TELLING or word in _ACCUMULATING:
            return Use.READS, call
        if word in _READING:
            return self._result(call), call
        if word in _PASSING:
            return self.of(call)
        return (Use.NEUTRAL if word in _NEUTRAL else Use.FILLS), call

    # --- places of a value -------------------------------------------------------------------------------------------

    def _in_statement(self, value: Expression, spot: ExpressionPosition) -> tuple[Use, Expression]:
        match spot.statement:
            case Assign(targets=(Ref(path=()) as target,), op="=" | ":"):
                return self._of_variable(value, target, spot)
            case Assign(op="=" | ":"):
                return Use.FILLS, value
            case Assign():
                return Use.READS, value
            case ExpressionStatement():
                return Use.NEUTRAL, value
        return Use.FILLS, value

    def _in_expression(self, value: Expression, parent: Expression) -> tuple[Use, Expression]:
        match parent:
            case Operation(op="f"):
                return Use.READS, value
            case Operation(op=op) if op in _COMPUTING:
                return self._result(parent), value
            case Operation(op=op):
                return (Use.NEUTRAL if op in _TESTING else Use.FILLS), value
            case Attribute(name=word):
                return self._of_attribute(word, parent)
            case Subscript():
                return self._of_element(value, parent)
            case Call():
                return self._of_argument(value, parent)
        return Use.FILLS, value

    def _of_attribute(self, word: str, read: Attribute) -> tuple[Use, Expression]:
        """An attribute of the call itself: ``torch.empty(3).sum``."""
        spot = self._spots.of(read)
        is_made = isinstance(read.value, Call) and last_identifier(read.value.func) in EMPTY_WORDS
        if word in _NEUTRAL or (word == "backward" and is_made):  # its own gradient is 1, whatever it holds
            return Use.NEUTRAL, read
        if spot is not None and isinstance(spot.parent, Call) and spot.parent.func == read:
            return self._of_method(word, spot.parent)
        return self.of(read) if word in _PASSING else (Use.FILLS, read)

    def _of_element(self, value: Expression, parent: Subscript) -> tuple[Use, Expression]:
        spot = self._spots.of(parent)
        if parent.value != value:
            return Use.READS, value  # it is an index
        if spot is not None and (spot.written or (spot.parent is None and isinstance(spot.statement, Assign))):
            return _assigned(spot), parent
        return self.of(parent)

    def _of_argument(self, value: Expression, call: Call) -> tuple[Use, Expression]:
        if call.func == value or any(
            (arg.value == value and arg.star)
            or (arg.keyword == "out" and (arg.value == value or is_same_reference(arg.value, value)))
            or (_drops_input(arg) and call.args[0].value == value)
            for arg in call.args
        ):
            return Use.FILLS, call
        names = self._project.names(self._path, call.func)
        if len(names) == 1 and in_project(names[0]):
            return self._in_callee(names[0], value, call), call
        if not names or any(map(in_project, names)):
            return Use.FILLS, call
        uses = {self._of_callee(name, call) for name in names}
        if uses == {"converts"}:
            return self.of(call)
        if uses == {"computes"}:
            return self._result(call), call
        return {"reads": Use.READS, "looks": Use.NEUTRAL}.get(uses.pop() if len(uses) == 1 else "", Use.FILLS), call

    def _result(self, computed: Expression) -> Use:
        """What a computation does: it reads the value, unless only the shape of its result is looked at."""
        return Use.NEUTRAL if self.of(computed)[0] is Use.NEUTRAL else Use.READS

    def _in_callee(self, name: str, value: Expression, call: Call) -> Use:
        """What a function of the project does with an argument first."""
        if not self._depth:
            return Use.FILLS
        found = {self._in_function(path_of(name), each, value, call) for each in self._project.resolver.functions(name)}
        return found.pop() if len(found) == 1 else Use.FILLS

    def _in_function(self, path: str, function: Function, value: Expression, call: Call) -> Use:
        received = self._project.resolver.call_graph.receiving(self._path, call, function)
        word = next((param.name for arg, param in received if arg.value == value and param.kind[:1] != "*"), "")
        if not word or not function.body or function.generator or function.decorators:
            return Use.FILLS
        inside = FirstUses(self._project, path, self._depth - 1)
        return inside.of_parameter(function, word)

    def of_parameter(self, function: Function, word: str) -> Use:
        """What a function does first with the value of a parameter."""
        root = local_symbol(function.name, word)
        block = Block(None, 0, function.end, "")
        defined = ExpressionPosition(None, function.body[0], function.name, (block,), False)
        if self._is_used_elsewhere(root, function.name):
            return Use.FILLS
        return self._first(root, defined, function.start, Constant(0, 0, None))[0]

    def _of_callee(self, name: str, call: Call) -> str:
        module, word = split_last(name)
        if name in _CONVERTING:
            return "converts"
        if name in _LOOKING:
            return "looks"
        if name in _SAVING or name in _NUMBERS:
            return "reads"
        if module == "torch.nn.functional":
            return "" if word.endswith("_") or any(arg.keyword == "inplace" for arg in call.args) else "computes"
        if module in ("torch", "numpy", "torch.linalg", "numpy.linalg") and word in _READING:
            return "computes"
        return ""

    # --- variables ---------------------------------------------------------------------------------------------------

    def _of_variable(self, value: Expression, target: Ref, defined: ExpressionPosition) -> tuple[Use, Expression]:
        """The first use of a local variable, or of one that only the top level uses, that the definition reaches."""
        if len(target.roots) != 1 or self._is_used_elsewhere(target.roots[0], defined.function):
            return Use.FILLS, value
        return self._first(target.roots[0], defined, defined.statement.end, value)

    def _first(self, root: str, defined: ExpressionPosition, after: int, value: Expression) -> tuple[Use, Expression]:
        """The first use behind an offset that a definition of a variable reaches."""
        reached = {*self._project.uses.reaching(self._path, root, (), defined, after)}
        for ref in sorted(self._spots.uses(root), key=self._evaluated_at):
            spot = self._spots.of(ref)
            if ref.start < after or spot is None or not (ref in reached or spot.written):
                continue
            use, place = self.of_reference(ref, ref.path)
            if use is Use.READS and not self._is_certain(root, defined, spot, ref):
                return Use.FILLS, place
            if use is not Use.NEUTRAL:
                return use, place
        return Use.NEUTRAL, value

    def _evaluated_at(self, ref: Ref) -> tuple[int, int]:
        """Targets are written after the right side is evaluated."""
        spot = self._spots.of(ref)
        return (spot.statement.end if spot is not None and spot.written else ref.start), ref.start

    def _is_used_elsewhere(self, root: str, function: str) -> bool:
        """Whether another function uses the variable, which may fill it; or may be it is a global one."""
        spots = map(self._spots.of, self._spots.uses(root))
        return any(spot is not None and spot.function != function for spot in spots)

    def _is_certain(self, root: str, defined: ExpressionPosition, read: ExpressionPosition, ref: Ref) -> bool:
        """Whether nothing in a loop around a conditional read may have filled the value in an earlier round."""
        outer = {block.key for block in defined.blocks}
        inner = [block for block in read.blocks if block.key not in outer]
        loops = [number for number, block in enumerate(inner) if isinstance(block.owner, Loop)]
        if not loops:
            return True
        loop = inner[loops[0]].owner
        assert isinstance(loop, Loop)
        conditional = any(isinstance(block.owner, (If, Try, Match)) for block in inner[loops[0] :]) or _is_branch(
            self._spots, ref
        )
        return not conditional or not any(self._may_fill(each, loop) for each in self._spots.uses(root) if each != ref)

    def _may_fill(self, ref: Ref, loop: Loop) -> bool:
        if not loop.start <= ref.start < loop.end:
            return False
        spot = self._spots.of(ref)
        return spot is None or self.of_reference(ref, ref.path)[0] is Use.FILLS


def _drops_input(arg: Arg) -> bool:
    """``beta=0`` of ``torch.baddbmm(out, a, b, beta=0)``, with which the first argument is not read."""
    return arg.keyword == "beta" and isinstance(arg.value, Constant) and arg.value.value == 0


def _assigned(spot: ExpressionPosition) -> Use:
    """What an assignment of an element does: ``out[i] += x`` reads it."""
    accumulates = isinstance(spot.statement, Assign) and spot.statement.op not in ("=", ":")
    return Use.READS if accumulates and spot.parent is None else Use.FILLS


def _is_branch(spots: UseDefIndex, ref: Ref) -> bool:
    """Whether a reference is in a conditional expression or behind an ``and``."""
    return any(isinstance(each, Operation) and each.op in ("if", "and", "or") for _, each in spots.enclosing(ref))
