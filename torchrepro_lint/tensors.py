"""What is known of the tensor that an expression gives: gradient, dtype, dimensions, layout. Unknown is never yes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Operation, Ref
from torchrepro_lint.project import Project
from torchrepro_lint.tensor_words import (
    CASTS,
    COMPARISONS,
    FACTORIES,
    FLOATS,
    INT32,
    INTEGER_FACTORIES,
    INTEGER_RESULTS,
    INTEGERS,
    KEEPS,
    SAME_SHAPE,
    SPARSE,
    SPARSE_METHODS,
)

# Whether a value has what is asked for; None where that is up to what its method is called on.
_Test = Callable[[str, Expression], bool | None]


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
        return self._any(expression, lambda path, value: self._has_dtype(path, value, INTEGERS))

    def int32(self, expression: Expression) -> bool:
        """Whether it holds 32-bit integers."""
        return self._any(expression, lambda path, value: self._has_dtype(path, value, INT32))

    def scalar(self, expression: Expression) -> bool:
        """Whether it has no dimensions."""
        return self._any(expression, self._is_scalar)

    def unusual(self, expression: Expression) -> bool:
        """Whether it is sparse, quantised or nested, which indexing does not take."""
        return self._any(expression, self._is_unusual)

    def contiguous(self, expression: Expression) -> bool:
        """Whether its elements lie in their order without gaps, whatever it is assigned; a parameter may be anything."""
        if isinstance(expression, Ref) and not set(expression.roots).isdisjoint(self._variable_inputs):
            return False
        values = self._project.values(self._path, expression)
        return bool(values) and all(self._is_contiguous(path, value) for path, value in values)

    @cached_property
    def _variable_inputs(self) -> frozenset[str]:
        """The variables of the file that hold more than what ``=`` gives them: parameters, loop variables and the like."""
        facts = self._project.files[self._path]
        params = {f"{each.name}.<locals>.{param.name}" for each in facts.functions for param in each.params}
        return frozenset(params | {name for name, values in facts.assigned if any(how != "=" for how, _ in values)})

    def _any(self, expression: Expression, test: _Test) -> bool:
        """Whether a test holds for a value of an expression, or for what methods that keep it are called on."""
        queue, seen = [(self._path, expression)], set()
        while queue:
            for path, value in self._project.values(*queue.pop()):
                if (path, value.start, value.end) in seen:
                    continue
                seen.add((path, value.start, value.end))
                if (answer := test(path, value)) is not None:
                    if answer:
                        return True
                elif (method := self._method(path, value)) is not None:
                    queue.append((path, method[2]))
        return False

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

    def _detached(self, path: str, value: Expression) -> bool | None:
        match value:
            case Attribute(name="data"):
                return True
            case Ref(roots=roots, path=(*before, "data")):
                # `self.data` is an attribute that someone has called so.
                return bool(before) or not any(root.endswith(".self") for root in roots)
        if (method := self._method(path, value)) is not None:
            return True if method[1] == "detach" else _kept(method[1], KEEPS | frozenset(CASTS))
        function = self._torch(path, value)
        return function is not None and function[1] in ("load", "hub.load_state_dict_from_url", "from_numpy")

    def _has_dtype(self, path: str, value: Expression, dtypes: frozenset[str]) -> bool | None:
        if isinstance(value, Operation):
            return value.op in COMPARISONS and "bool" in dtypes
        if (method := self._method(path, value)) is not None:
            call, word, _ = method
            if word in CASTS:
                return CASTS[word] in dtypes
            if (named := self._dtype(path, call)) is not None:
                return named in dtypes
            return "long" in dtypes if word in INTEGER_RESULTS else _kept(word, KEEPS | {"detach"})
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
        return "long" in dtypes and word in (INTEGER_FACTORIES | INTEGER_RESULTS)

    def _dtype(self, path: str, call: Call) -> str | None:
        """The dtype that an argument names (``dtype=torch.long``, ``.to(torch.int32)``)."""
        for arg in call.args:
            for name in self._project.names(path, arg.value) if arg.keyword in (None, "dtype") else ():
                word = name.removeprefix("torch.")
                if name.startswith("torch.") and (word in INTEGERS or word in FLOATS):
                    return word
        return None

    def _is_scalar(self, path: str, value: Expression) -> bool | None:
        if (method := self._method(path, value)) is not None:
            call, word, _ = method
            return not call.args if word in ("argmax", "argmin") else _kept(word, SAME_SHAPE)
        if (function := self._torch(path, value)) is None:
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
        plain = function is not None and function[1] in FACTORIES
        return plain and function is not None and all(arg.keyword != "memory_format" for arg in function[0].args)

    def _is_unusual(self, path: str, value: Expression) -> bool | None:
        if (method := self._method(path, value)) is not None:
            return True if method[1] in SPARSE_METHODS else _kept(method[1], KEEPS | {"detach"})
        function = self._torch(path, value)
        return function is not None and f"torch.{function[1]}".startswith(SPARSE)


def _kept(word: str, keeping: frozenset[str]) -> bool | None:
    """No answer for a method that keeps what its receiver has, else no."""
    return None if word in keeping else False


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
