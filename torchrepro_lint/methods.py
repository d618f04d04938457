"""What a method gets for its first parameter, as its decorators say."""

from __future__ import annotations

from torchrepro_lint.facts import Function, Ref


def takes_object(function: Function) -> bool:
    """Whether the first parameter of a function is the object, or the class, that it is a method of."""
    return bool(function.owner) and not _is_decorated(function, "builtins.staticmethod")


def is_on_class(function: Function) -> bool:
    """Whether a method gets its class."""
    return _is_decorated(function, "builtins.classmethod")


def _is_decorated(function: Function, name: str) -> bool:
    return any(isinstance(each, Ref) and each.roots == (name,) for each in function.decorators)
