"""Effect summaries of calls, as far as the order of rounds matters: what trains a model, draws, or seeds a generator.

A call has an effect itself, by its name, or through the functions of the project that it runs. Training is a step of an
optimizer or a backward pass, however the loss is written; a draw and a seeder are what the catalogue says. A body that
makes the optimizer for itself trains for itself: its rounds have only the draws in common.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import canonical, consumers, seeder_of
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.query.database import query
from torchrepro_lint.query.tabling import SetEquations
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Function, Ref
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    locals_prefix,
    passes_call,
    path_of,
    simple_name,
    split_last,
    without_calls,
)
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    is_none,
    last_identifier,
    receiver_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchrepro_lint.catalogue.rows import Consumer
    from torchrepro_lint.resolve.names import Names

# What a body does: a step of an optimizer, a backward pass, a draw, seeding, and the construction of an optimizer.
STEPS, BACKWARD, DRAWS, SEEDS, OPTIMIZER = "steps", "backward", "draws", "seeds", "optimizer"
_OF_TRAINING = frozenset({STEPS, BACKWARD})

_BACKWARD = lazy_pattern(
    r"torch\.autograd\.(backward|grad)|torch\.func\.(grad|vjp|jacrev)\w*|"
    r"(lightning|pytorch_lightning|transformers|trl|sentence_transformers|composer|fastai|detectron2|mmengine|"
    r"ultralytics|torchtune|stable_baselines3|monai|torchnet)\b.*\.(fit|train|run|learn|fit_one_cycle|backward)|"
    r"(transformers|trl|sentence_transformers)\b.*\.training_step|"
    r"timm\.utils\.(\w+\.)?(NativeScaler|ApexScaler)\(\)|"
    # Other engines of ignite run only functions of the project.
    r"ignite\.engine\.(\w+\.)?create_supervised_(tbptt_)?trainer|ignite\.contrib\..*create_supervised_tbptt_trainer"
)


def is_backward(call: Call, names: tuple[str, ...]) -> bool:
    """Whether a call, by its name or by its callee, runs a backward pass."""
    match call.func:
        case Ref(path=(*_, "backward")) | Attribute(name="backward"):
            return True
    return _has_backward(names)


@lru_cache(maxsize=1 << 12)
def _has_backward(names: tuple[str, ...]) -> bool:
    return any(_BACKWARD.fullmatch(name) for name in names if not in_project(name))


def trains(names: Names, path: str, call: Call) -> bool:
    """Whether a call runs a backward pass, itself or in the functions of the project that it runs."""
    called = names.names(path, call.func)
    return is_backward(call, called) or any(_backward_passes(names, each) for each in called if in_project(each))


# Functions call one another.
_CALLS = SetEquations()


@query(cutoff=True, cycle=_CALLS)
def _backward_passes(names: Names, name: str) -> Iterator[str]:
    """``backward`` where a function, or the constructor of a class, runs a backward pass."""
    for each in _functions(names, name):
        names.modules.reads.record_read(path_of(each))
        for call in (call for function in names.functions(each) for call in _calls(function)):
            called = names.names(path_of(each), call.func)
            if is_backward(call, called):
                yield BACKWARD
            for inner in filter(in_project, called):
                yield from _backward_passes(names, inner)


def _functions(names: Names, name: str) -> tuple[str, ...]:
    """The functions that a call of a name of the project runs; instances of modules only compute."""
    if names.classes(name):
        return tuple(each for each in names.methods(name, "__init__") if names.functions(each))
    return (name,) if names.functions(name) else ()


# Gradients that are returned and change no model.
_ONLY_GRADIENTS = lazy_pattern(r"torch\.(autograd|func)\.\w+")
# Methods that train where nothing is known of their object.
_TRAINING_WORDS = frozenset({"train_step", "training_step", "partial_fit", "fit", "train_one_epoch"})
_OPTIMIZING_PACKAGES = frozenset({"torch", "timm", "apex", "bitsandbytes", "transformers"})
_SHORT_OPTIMIZER = lazy_pattern(r"opt(_?[a-z0-9]{1,2})?")
_STEPPING = lazy_pattern(r"(torch\.optim\.(?!lr_scheduler\.)|deepspeed\.|torch\.(amp|cuda\.amp)\.).*\.step")
_OPTIMIZERS = lazy_pattern(r"torch\.optim\.(?!lr_scheduler\.)")
_SCALER = lazy_pattern(r"\w*scaler", re.IGNORECASE)
_GENERATORS = (
    "random.Random()",
    "numpy.random.default_rng()",
    "numpy.random.RandomState()",
    "numpy.random.Generator()",
)


class CallEffects:
    """The effects of calls of a project; what each function does is remembered."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.database = names.database

    def of(self, path: str, call: Call, is_outside: Callable[[Ref], bool]) -> frozenset[str]:
        """What a call does, itself or in the functions of the project that it runs.

        ``is_outside`` says whether an object is older than the body that is summarised: a generator or an optimizer that a
        body makes for itself is its own matter.
        """
        own, called = self._one(path, call, is_outside)
        return own.union(*(self._reached(each, limits.MAX_TRAINING_STEP_CALLS) for each in called))

    def has_optimizer(self, path: str, calls: Iterable[Call]) -> bool:
        """Whether some of a file's calls is the step of an optimizer."""
        return any(STEPS in self._one(path, call, lambda _: True)[0] for call in calls)

    def _one(self, path: str, call: Call, is_outside: Callable[[Ref], bool]) -> tuple[frozenset[str], list[str]]:
        """What a call does by its name, and the functions of the project that it runs."""
        names = self._names.names(path, call.func)
        called = [each for name in names if in_project(name) for each in _functions(self._names, name)]
        own = frozenset(() if called else _own_effects(call, names, is_outside))
        return own.union(self._of_optimizers(call, names, is_outside)), called

    def _of_optimizers(self, call: Call, names: Iterable[str], is_outside: Callable[[Ref], bool]) -> Iterator[str]:
        """What a call does that makes or steps an optimizer of the project, whose class extends one of torch."""
        receiver = receiver_of(call.func)
        for name in filter(in_project, names):
            made = bool(self._names.classes(name))
            owner, method = (name, "") if made else split_last(name)
            if (made or method == "step") and any(map(_OPTIMIZERS.match, self._names.ancestry(owner))):
                if made:
                    yield OPTIMIZER
                elif not isinstance(receiver, Ref) or is_outside(receiver):
                    yield STEPS

    @query()
    def _reached(self, name: str, depth: int) -> frozenset[str]:
        """What a function does, with those that it calls."""
        own, called = self._summary(name)
        found = own.union(*(self._reached(each, depth - 1) for each in called if depth))
        return found - _OF_TRAINING if OPTIMIZER in found else found

    @query()
    def _summary(self, name: str) -> tuple[frozenset[str], tuple[str, ...]]:
        """What a function does by the names that it calls, and the functions of the project that it runs."""
        pairs = [
            self._one(path_of(name), call, _OutsideFunction(function))
            for function in self._names.functions(name)
            for call in _calls(function)
        ]
        effects = frozenset(effect for own, _ in pairs for effect in own)
        return effects, tuple(dict.fromkeys(each for _, called in pairs for each in called))


class _OutsideFunction:
    """Whether an object is older than a call of a function: a parameter, or no variable of the function."""

    def __init__(self, function: Function) -> None:
        self._local = locals_prefix(function.name)
        self._given = {f"{self._local}{param.name}" for param in function.params}

    def __call__(self, ref: Ref) -> bool:
        return any(root in self._given or not root.startswith(self._local) for root in ref.roots)


def _calls(function: Function) -> Iterator[Call]:
    return (each for each in body_expressions(function.body) if isinstance(each, Call))


def _own_effects(call: Call, names: tuple[str, ...], is_outside: Callable[[Ref], bool]) -> Iterator[str]:
    """What a call that no function of the project answers does."""
    word = last_identifier(call.func)
    if word in ("backward", "manual_backward"):
        yield BACKWARD
    elif (_steps if word == "step" else _fits)(call, names, is_outside):
        yield STEPS
    for name in names:
        if (seeder := seeder_of(without_calls(name))) is not None and seeder.families and not seeder.holds:
            yield SEEDS
        elif _makes_optimizer(name):
            yield OPTIMIZER
        elif _draws(call, name, is_outside):
            yield DRAWS


def _steps(call: Call, names: tuple[str, ...], is_outside: Callable[[Ref], bool]) -> bool:
    """``optimizer.step()``, ``scaler.step(optimizer)``, ``engine.step()``."""
    receiver = receiver_of(call.func)
    if isinstance(receiver, Ref) and not is_outside(receiver):
        return False
    if any(map(_STEPPING.fullmatch, names)):
        return True
    word = _receiver_word(call.func)
    return not any(map(in_project, names)) and bool(
        names_optimizer(word) or "engine" in word.lower() or (_SCALER.fullmatch(word) and call.args)
    )


def names_optimizer(word: str) -> bool:
    """Whether a variable is named for an optimizer: ``optimizer``, ``opt_g``, ``critic_opt``."""
    word = word.lower()
    named = "optim" in word or word.endswith("_opt") or _SHORT_OPTIMIZER.fullmatch(word) is not None
    return named and "sched" not in word


def _makes_optimizer(name: str) -> bool:
    """Whether a name is that of an optimizer's class, or of timm's function that makes one."""
    package, *modules, word = name.split(".")
    inside = any(each.startswith("optim") for each in modules)
    made = word.startswith("create_optimizer") or (word[:1].isupper() and not word.endswith("LR"))
    return package in _OPTIMIZING_PACKAGES and inside and made and word.isidentifier()


def _fits(call: Call, names: tuple[str, ...], is_outside: Callable[[Ref], bool]) -> bool:
    """Whether a call trains an older model by itself, as a trainer's ``fit`` does."""
    if not is_backward(call, names) and (names or last_identifier(call.func) not in _TRAINING_WORDS):
        return False
    given = [receiver_of(call.func), *(arg.value for arg in call.args)]
    older = any(isinstance(each, Ref) and is_outside(each) for each in given)
    return older and not any(map(_ONLY_GRADIENTS.fullmatch, names))


def _receiver_word(func: Expression) -> str:
    """The last word of what a method is called on: ``optimizers`` of ``self.optimizers().step``."""
    match func:
        case Ref(path=(*_, _)):
            return last_identifier(func._replace(path=func.path[:-1]))
        case Attribute(value=Call(func=made)):
            return last_identifier(made)
        case Attribute(value=value):
            return last_identifier(value)
    return ""


def _draws(call: Call, name: str, is_outside: Callable[[Ref], bool]) -> bool:
    """Whether a call draws from a global generator, or from one that is older than the body around it."""
    if "()." in name and name.startswith(_GENERATORS):
        receiver = receiver_of(call.func)
        return isinstance(receiver, Ref) and is_outside(receiver)
    known = without_calls(name)
    if passes_call(name) and known.startswith("torch.") and not known.startswith(("torch.optim.", "torch.utils.")):
        known = f"torch.Tensor.{simple_name(known)}"
    return any(_draws_by(row, call, is_outside) for row in consumers().of(canonical(known)))


def _draws_by(row: Consumer, call: Call, is_outside: Callable[[Ref], bool]) -> bool:
    is_class = simple_name(row.signature.name)[:1].isupper()
    if row.phase not in ("construct", "call") or (row.phase == "call" and is_class):
        return False
    argument = argument_reader(row.signature, call)
    for value in (argument(word) for word in row.generators):
        if value is not None and not is_none(value):
            return isinstance(value, Ref) and is_outside(value)
    return evaluate(row.when, row.signature, argument) is Truth.HOLDS
