"""What torch's functions, methods and layers give: the rules by word, and which of them a call is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer import layers
from torchrepro_lint.infer.function_rules import FACTORIES, FUNCTIONAL
from torchrepro_lint.infer.given import Given
from torchrepro_lint.infer.method_rules import METHODS, OWN
from torchrepro_lint.infer.modes import gradients_off
from torchrepro_lint.infer.rules import RULES
from torchrepro_lint.infer.what import NOTHING, UNKNOWN, What
from torchrepro_lint.syntax.nodes import Call

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

_MODULES = ("torch", "torch.Tensor", "torch.special", "torch._C._VariableFunctions")
_FUNCTIONAL = ("torch.nn.functional", "torch._C._nn")


def method(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What | None:
    """What a method of a tensor gives."""
    given = Given(kinds, call, spot, receiver)
    if given.waits:
        return NOTHING
    rule = METHODS.get(word) or RULES.get(word)
    if rule is None and word.endswith("_") and not word.startswith("_"):
        in_place = RULES.get(word[:-1])
        return _in_mode(kinds, _kept(receiver, in_place(given)), spot) if in_place else receiver._replace(kind="tensor")
    return UNKNOWN if rule is None else _in_mode(kinds, rule(given), spot)


def _kept(receiver: What, after: What) -> What:
    """In place neither dtype nor device changes."""
    if not after.is_tensor:
        return receiver._replace(kind="tensor")
    return after._replace(dtype=receiver.dtype, family=receiver.family, device=receiver.device)


def function(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """What a function of torch gives; None where nothing is known of it."""
    module, _, word = name.rpartition(".")
    given = Given(kinds, call, spot, None)
    if given.waits:
        return NOTHING
    if name in FACTORIES:
        return FACTORIES[name](given)
    if module in _FUNCTIONAL:
        rule = FUNCTIONAL.get(word) or RULES.get(word)
        return _in_mode(kinds, rule(given) if rule else UNKNOWN, spot)
    if module in _MODULES or (module == "torch.linalg" and word in ("norm", "vector_norm")):
        rule = RULES.get(word) or (METHODS.get(word) if module == "torch.Tensor" else None)
        return _in_mode(kinds, rule(given), spot) if rule else None
    return None


def made(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """What a class of torch gives that is more than an object of it: ``nn.Parameter(data)``."""
    return function(kinds, name, call, spot) if name in FACTORIES else None


_OF_DICT = frozenset({"items", "values", "keys", "get", "pop", "copy", "setdefault", "popitem", "update"})


def method_of_loaded(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What | None:
    """A method of what a file held: of a dictionary, or of a tensor in it."""
    if word in _OF_DICT:
        pair = What("tuple", items=(What("str", of=What("str")), receiver))
        return What("iterator", of=pair if word == "items" else receiver) if word in ("items", "values") else receiver
    return method(kinds, What("tensor", device=receiver.device, grad=False), word, call, spot)


def layer(kinds: TypeInference, called: What, call: Call, spot: Spot) -> What:
    """What calling a layer of torch gives."""
    if Given(kinds, call, spot, None).waits:
        return NOTHING
    return _in_mode(kinds, layers.output(kinds, called, call, spot), spot)


def by_word(kinds: TypeInference, receiver: What, word: str, call: Call, spot: Spot) -> What:
    """What a method gives on a value that may be anything: a tensor, where only tensors have it, else what it would be."""
    if word not in RULES and word not in METHODS:
        return UNKNOWN
    found = method(kinds, receiver._replace(kind="tensor"), word, call, spot) or UNKNOWN
    if word in OWN or not found.is_tensor:
        return found if word in OWN or found.kind == "nothing" else UNKNOWN
    return found._replace(kind="")


def computed(kinds: TypeInference, what: What, spot: Spot) -> What:
    """What an operator gives, where it stands."""
    return _in_mode(kinds, what, spot)


def _in_mode(kinds: TypeInference, what: What, spot: Spot) -> What:
    """Nothing that is computed under ``no_grad`` needs a gradient."""
    if what.is_tensor and what.kind != "parameter" and what.grad is None and gradients_off(kinds, spot):
        return what._replace(grad=False)
    if what.kind == "tuple" and what.items and gradients_off(kinds, spot):
        return what._replace(items=tuple(_in_mode(kinds, each, spot) for each in what.items))
    return what
