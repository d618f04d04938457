"""What is known of the tensor that an expression gives: gradient, dtype, dimensions, layout. Unknown is never yes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Operation, Ref
from torchrepro_lint.project import Project

_INTEGERS = frozenset({"uint8", "int8", "int16", "short", "int32", "int", "int64", "long", "bool"})
_INT32 = frozenset({"int32", "int"})
# Methods that return their receiver with another dtype, and the attribute of torch that names it.
_CASTS = frozenset({"long", "int", "short", "char", "byte", "bool"})
# Methods whose result is shaped as the receiver is and keeps what is asked here.
_KEEPS = frozenset(
    {"to", "cuda", "cpu", "clone", "contiguous", "flatten", "reshape", "view", "squeeze", "unsqueeze", "t"}
)
_INTEGER_RESULTS = frozenset({"argmax", "argmin", "argsort", "nonzero", "eq", "ne", "lt", "le", "gt", "ge", "isnan"})
_INTEGER_FACTORIES = frozenset(
    {"randint", "randperm", "bincount", "isfinite", "tril_indices", "triu_indices", "bucketize", "searchsorted"}
)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_FACTORIES = frozenset(
    {
        "randn",
        "rand",
        "zeros",
        "ones",
        "empty",
        "full",
        "tensor",
        "arange",
        "linspace",
        "eye",
        "stack",
        "randint",
        "randperm",
        "from_numpy",
    }
)
_SPARSE = ("torch.sparse", "torch.quantize_per_", "torch._sparse", "torch.nested")
_SPARSE_METHODS = frozenset(
    {
        "to_sparse",
        "to_sparse_csr",
        "to_sparse_csc",
        "to_sparse_coo",
        "to_sparse_bsr",
        "to_sparse_bsc",
        "coalesce",
        "to_mkldnn",
    }
)

_Test = Callable[[str, Expression], bool]


class Tensors:
    """Answers for the expressions of one file."""

    def __init__(self, project: Project, path: str) -> None:
        self._project = project
        self._path = path

    def without_gradient(self, expression: Expression) -> bool:
        """Whether nothing flows back into it: detached, ``.data``, loaded from a file, or of integers or booleans."""
        return self._any(expression, self._detached) or self.integral(expression)

    def integral(self, expression: Expression) -> bool:
        """Whether it holds integers or booleans."""
        return self._any(expression, lambda path, value: self._has_dtype(path, value, _INTEGERS))

    def int32(self, expression: Expression) -> bool:
        """Whether it holds 32-bit integers."""
        return self._any(expression, lambda path, value: self._has_dtype(path, value, _INT32))

    def scalar(self, expression: Expression) -> bool:
        """Whether it has no dimensions."""
        return self._any(expression, self._is_scalar)

    def contiguous(self, expression: Expression) -> bool:
        """Whether its elements lie in their order without gaps, whatever value it is."""
        values = list(self._values(expression))
        return bool(values) and all(self._is_contiguous(path, value) for path, value in values)

    def unusual(self, expression: Expression) -> bool:
        """Whether it is sparse, quantised or nested, which indexing does not take."""
        return self._any(expression, self._is_unusual)

    def _any(self, expression: Expression, test: _Test) -> bool:
        return any(test(path, value) for path, value in self._values(expression))

    def _values(self, expression: Expression) -> Iterator[tuple[str, Expression]]:
        yield from self._project.values(self._path, expression)

    def _method(self, path: str, value: Expression) -> tuple[Call, str, Expression] | None:
        """A method call on a value: the call, the method's word, and the receiver; a module's function is none."""
        if not isinstance(value, Call):
            return None
        match value.func:
            case Attribute(value=inner, name=word):
                return value, word, inner
            case Ref(start=start, roots=roots, path=(*before, word), base_end=end):
                base = Ref(start, end, roots, tuple(before), end)
                return None if self._is_module(path, value.func) else (value, word, base)
        return None

    def _is_module(self, path: str, func: Expression) -> bool:
        names = self._project.resolver.receiver(path, func)
        return any(name.partition(".")[0] == "torch" and "()" not in name for name in names)

    def _torch(self, path: str, value: Expression) -> tuple[Call, str] | None:
        """A call of a function of torch, and its word."""
        if isinstance(value, Call):
            for name in self._project.names(path, value.func):
                if name.startswith("torch.") and "()" not in name:
                    return value, name.removeprefix("torch.")
        return None

    def _detached(self, path: str, value: Expression) -> bool:
        if isinstance(value, Ref) and value.path[-1:] == ("data",):
            return any(root.partition(".")[0] != root or ":" in root for root in value.roots)
        if isinstance(value, Attribute) and value.name == "data":
            return True
        if (method := self._method(path, value)) is not None:
            _, word, inner = method
            return word == "detach" or (word in _KEEPS and self.within(path).without_gradient(inner))
        function = self._torch(path, value)
        return function is not None and function[1] in ("load", "hub.load_state_dict_from_url", "from_numpy")

    def within(self, path: str) -> Tensors:
        """The same for the expressions of another file."""
        return self if path == self._path else Tensors(self._project, path)

    def _has_dtype(self, path: str, value: Expression, dtypes: frozenset[str]) -> bool:
        if isinstance(value, Operation):
            return value.op in _COMPARISONS and "bool" in dtypes
        if (method := self._method(path, value)) is not None:
            call, word, inner = method
            if word in _CASTS:
                return word in dtypes or (word in {"char", "byte"} and dtypes is _INTEGERS)
            if (named := self._dtype(path, call)) is not None:
                return named in dtypes
            if word in _INTEGER_RESULTS:
                return "long" in dtypes
            return word in _KEEPS and any(
                self._has_dtype(file, each, dtypes) for file, each in self._project.values(path, inner)
            )
        if (function := self._torch(path, value)) is not None:
            return self._made_with(path, *function, dtypes)
        return False

    def _made_with(self, path: str, call: Call, word: str, dtypes: frozenset[str]) -> bool:
        if (named := self._dtype(path, call)) is not None:
            return named in dtypes
        if word.endswith("Tensor"):
            return word.removesuffix("Tensor").lower().removeprefix("cuda.") in dtypes
        if word in ("arange", "tensor", "as_tensor"):
            return (
                "long" in dtypes and bool(call.args) and all(_integers(a.value) for a in call.args if a.keyword is None)
            )
        return "long" in dtypes and word in (_INTEGER_FACTORIES | _INTEGER_RESULTS)

    def _dtype(self, path: str, call: Call) -> str | None:
        """The dtype that an argument names (``dtype=torch.long``, ``.to(torch.int32)``)."""
        for arg in call.args:
            for name in self._project.names(path, arg.value) if arg.keyword in (None, "dtype") else ():
                word = name.removeprefix("torch.")
                if name.startswith("torch.") and (word in _INTEGERS or word in _FLOATS):
                    return word
        return None

    def _is_scalar(self, path: str, value: Expression) -> bool:
        if (method := self._method(path, value)) is not None:
            call, word, inner = method
            if word in ("argmax", "argmin"):
                return not call.args
            kept = word in _CASTS or word in ("to", "cuda", "cpu", "clone", "detach")
            return kept and any(self._is_scalar(file, each) for file, each in self._project.values(path, inner))
        function = self._torch(path, value)
        if function is None:
            return False
        call, word = function
        first = call.args[0].value if call.args else None
        if word in ("tensor", "as_tensor"):
            return isinstance(first, Constant)
        return word in ("argmax", "argmin") and len(call.args) == 1

    def _is_contiguous(self, path: str, value: Expression) -> bool:
        if (method := self._method(path, value)) is not None:
            return method[1] == "contiguous" and not method[0].args
        function = self._torch(path, value)
        plain = function is not None and function[1] in _FACTORIES
        return plain and function is not None and all(arg.keyword != "memory_format" for arg in function[0].args)

    def _is_unusual(self, path: str, value: Expression) -> bool:
        if (method := self._method(path, value)) is not None:
            if method[1] in _SPARSE_METHODS:
                return True
            return method[1] in _KEEPS and any(
                self._is_unusual(file, each) for file, each in self._project.values(path, method[2])
            )
        function = self._torch(path, value)
        return function is not None and f"torch.{function[1]}".startswith(_SPARSE)


_FLOATS = frozenset({"float", "float16", "float32", "float64", "half", "double", "bfloat16", "cfloat", "complex64"})


def _integers(value: Expression) -> bool:
    """Whether a literal consists of integers."""
    match value:
        case Constant(value=number):
            return isinstance(number, int)
        case Collection(kind="list" | "tuple", items=items):
            return bool(items) and all(item is not None and _integers(item) for item in items)
        case Call(func=Ref(roots=("builtins.len",))):
            return True
    return False
