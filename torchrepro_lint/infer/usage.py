"""What the uses of a variable show: what only tensors can do is done to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.infer.function_rules import FUNCTIONAL
from torchrepro_lint.infer.method_rules import OWN
from torchrepro_lint.infer.rules import RULES
from torchrepro_lint.infer.spot import Spot
from torchrepro_lint.syntax.nodes import Call, Expression, Ref
from torchrepro_lint.syntax.visitor import expressions, within

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.flow import Flow

# Who asks such a question of a value allows for several answers.
_TESTS = frozenset({"isinstance", "hasattr", "getattr", "type", "callable", "is_tensor", "issubclass"})
# Functions of torch that also take lists or numbers.
_LENIENT = frozenset(
    {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "column_stack", "meshgrid", "einsum", "pow"}
)
_ATTRIBUTES = frozenset({"requires_grad", "is_cuda", "grad_fn", "is_leaf", "is_sparse"})
_WITH_DIM = frozenset(
    {"sum", "mean", "max", "min", "softmax", "argmax", "argmin", "std", "var", "cumsum", "squeeze", "norm", "topk"}
)
_LAYERS = (
    "Conv",
    "Linear",
    "BatchNorm",
    "LayerNorm",
    "GroupNorm",
    "Embedding",
    "MaxPool",
    "AvgPool",
    "Dropout",
    "ReLU",
    "GELU",
)
_LAYERS_TOO = (
    "SiLU",
    "Sigmoid",
    "Tanh",
    "Softmax",
    "AdaptiveAvgPool",
    "InstanceNorm",
    "Upsample",
    "Flatten",
    "PixelShuffle",
)


def shown_tensors(kinds: TypeInference, path: str, flow: Flow) -> frozenset[Binding]:
    """The bindings of a function whose uses show that they are of tensors, and never ask what they are."""
    shown: set[Binding] = set()
    asked: set[Binding] = set()
    for place in flow.places:
        for expression in expressions(place.statement):
            for each in within(expression):
                if isinstance(each, Call):
                    _look(kinds, each, Spot(path, place.env, 0), shown, asked)
                elif isinstance(each, Ref) and each.path and each.path[0] in _ATTRIBUTES:
                    shown.update(_bindings(each, place.env))
    return frozenset(shown - _with_aliases(asked))


def _with_aliases(asked: set[Binding]) -> set[Binding]:
    """What is asked of a variable is asked of the one that it was assigned from."""
    waiting, found = list(asked), set(asked)
    while waiting:
        binding = waiting.pop()
        if binding.how == "=" and isinstance(binding.value, Ref) and not binding.value.path and binding.env is not None:
            more = _bindings(binding.value, binding.env) - found
            found |= more
            waiting += more
    return found


def _look(kinds: TypeInference, call: Call, spot: Spot, shown: set[Binding], asked: set[Binding]) -> None:
    first = call.args[0].value if call.args and not call.args[0].star else None
    match call.func:
        case Ref(roots=roots, path=()) if first is not None and roots[0].rpartition(".")[2] in _TESTS:
            asked.update(_bindings(first, spot.env))
        case Ref(path=(word,)) if _is_tensors(word, call):
            shown.update(_bindings(call.func, spot.env))
    if (
        isinstance(first, Ref)
        and not first.path
        and (found := _bindings(first, spot.env))
        and _takes_tensor(kinds, call, spot)
    ):
        shown.update(found)


def _is_tensors(word: str, call: Call) -> bool:
    """Whether only a tensor has a method that is called so."""
    if word in OWN or (word in ("size", "dim", "ndimension") and (word != "size" or call.args)):
        return True
    return word in _WITH_DIM and any(arg.keyword == "dim" for arg in call.args)


def _takes_tensor(kinds: TypeInference, call: Call, spot: Spot) -> bool:
    """Whether the first argument of a call has to be a tensor: of torch's functions, and of its layers."""
    names = kinds.project.names(spot.path, call.func)
    if not names or any(":" in name for name in names):
        return False
    return all(_is_strict(name) for name in names)


def _is_strict(name: str) -> bool:
    module, _, word = name.removesuffix("()").rpartition(".")
    if name.endswith("()"):
        return module.startswith("torch.nn") and word.startswith((*_LAYERS, *_LAYERS_TOO))
    if module == "torch.nn.functional":
        return word in FUNCTIONAL or word in RULES
    return module == "torch" and word in RULES and word not in _LENIENT


def _bindings(expression: Expression, env: Env) -> set[Binding]:
    """The bindings of a variable that an expression is, or of which it reads an attribute."""
    if not isinstance(expression, Ref):
        return set()
    return {env[root] for root in expression.roots if root in env}
