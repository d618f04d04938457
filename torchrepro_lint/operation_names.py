"""The catalogue's names of what a call runs: public functions and classes, and methods on what may be a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types.tensors import Tensors
from torchrepro_lint.subjects import receiver
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Ref

if TYPE_CHECKING:
    from torchrepro_lint.context import Context
    from torchrepro_lint.resolve.program_index import Site

# Methods that numpy, pandas or containers have too: they count on what is known to be a tensor.
_SHARED = frozenset(
    {"cumsum", "cumsum_", "median", "nanmedian", "gather", "scatter", "put", "put_", "bincount", "resize_", "take"}
    | {"sort", "argsort"}
)
# What gives floating point numbers, as methods of nothing but tensors (and modules, which have none of the above).
_FLOATING = frozenset({"float", "half", "double", "bfloat16"})


def operation_names(context: Context, site: Site, listed: Callable[[str], object]) -> Iterator[str]:
    """Those of the names of what a call runs that are ``listed``."""
    names = [name for name in site.names if ":" not in name and "()" not in name]
    method = f"torch.Tensor.{_word(site.call.func)}"
    if not names and listed(method) and _is_method(context, site):
        yield method
    yield from filter(listed, names)


def is_other(site: Site, listed: Callable[[str], object]) -> bool:
    """Whether a call, by what it is known to run, is of no function, class or method that is ``listed``, and of no object:
    of the project's own, or of something else by its name.
    """
    return bool(site.names) and not any(":" not in name and ("()" in name or listed(name)) for name in site.names)


def _is_method(context: Context, site: Site) -> bool:
    """Whether a call is of a tensor's method: on what inference shows to be one, or of a word that nothing else has."""
    source = receiver(site.call)
    if source is None or any(":" in name for name in site.names):
        return False
    kind = Tensors(context.project, context.path).what(source).kind
    if kind:
        return kind in ("tensor", "parameter", "loaded")
    if site.names:
        return any(map(_is_of_result, site.names))
    if isinstance(source, Call) and _word(source.func) in _FLOATING:
        return True
    return _word(site.call.func) not in _SHARED and not _is_other(context, site)


def _is_of_result(name: str) -> bool:
    """Whether a name is of a method of what a function or module of torch returned: ``torch.stft().cumsum``."""
    source, _, _ = name.rpartition(".")
    source = source.replace("[]", "")  # an element of a tensor, or of several, is one
    if not source.startswith("torch.") or not source.endswith("()"):
        return False
    made = source.split("()")[0].rpartition(".")[2]
    return not made[:1].isupper() or made.endswith("Tensor") or source.count("()") > 1


def _is_other(context: Context, site: Site) -> bool:
    """Whether a method is called on an object of a class of the project, which only shares the word."""
    resolver = context.project.resolver
    owners = [
        each[:-2] for each in resolver.receiver(context.path, site.call.func) if ":" in each and each[-2:] == "()"
    ]
    return bool(owners) and not any("torch.Tensor" in resolver.ancestry(each) for each in owners)


def _word(func: Expression) -> str:
    match func:
        case Ref(path=(*_, word)) | Attribute(name=word):
            return word
    return ""
