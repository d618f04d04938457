"""Initialisation of parameters: which attributes of torch modules a project initialises from outside their class.

``torch.nn.init`` fills a parameter in place, often in a traversal of all modules or in a function that is applied to each.
"""

from __future__ import annotations

from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import call_candidates
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call, ModuleSummary, Ref
from torchrepro_lint.syntax.qualified_names import outermost_function

# Functions of torch.nn.init that also exist under their old names, without the underscore.
_OLD = (
    *("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal"),
    *("orthogonal", "sparse", "uniform", "xavier_normal", "xavier_uniform"),
)
_INIT_WORDS = frozenset({*_OLD, *(f"{stem}_" for stem in (*_OLD, "ones", "trunc_normal", "zeros"))})
# Methods of tensors that do the same.
_FILLING_METHODS = frozenset({"uniform_", "normal_"})


def initialises_from_outside(project: ProgramIndex, word: str) -> bool:
    """Whether the project initialises ``x.word``, or parameters in a traversal, or applies a function to modules."""
    found = initialised_attributes(project)
    return word in found or "" in found


@query()
def initialised_attributes(project: ProgramIndex) -> frozenset[str]:
    """The attributes of modules that functions of ``torch.nn.init`` initialise; empty for a variable of a loop over parameters, which
    a method of it may fill, too: ``weight.data.uniform_(-1, 1)``.
    """
    found: set[str] = set()
    filling = call_candidates(project.resolver, _INIT_WORDS | _FILLING_METHODS)
    for path in filling.paths:
        may_call = _may_call_init(project.resolver.modules.summary(path), filling.words)
        for site in project.calls_by(path, filling.words):
            match site.call.func:
                case Ref(path=("data", word) | (word,)) as func if word in _FILLING_METHODS:
                    found.update({_initialised_attribute(project, path, func._replace(path=()))} & {""})
            if may_call and any(name.startswith("torch.nn.init.") for name in site.names):
                for arg in site.call.args[:1]:
                    if isinstance(arg.value, Ref) and not any(r.endswith(".self") for r in arg.value.roots):
                        found.add(_initialised_attribute(project, path, arg.value))
    return frozenset(found)


def _may_call_init(summary: ModuleSummary, words: frozenset[str]) -> bool:
    """Whether a file may call functions of ``torch.nn.init``: it reads from ``init``, or imports it or one of its functions."""
    imported = {part for name in summary.imports for part in name.split(".")}
    return bool(summary.stars) or "init" in summary.inner or "init" in imported or not words.isdisjoint(imported)


def _initialised_attribute(project: ProgramIndex, path: str, value: Ref) -> str:
    """The attribute of a module that is initialised; empty for a variable of a loop over ``parameters()``: any."""
    if value.path:
        return "" if value.path[-1] == "data" else value.path[-1] if _is_any_module(project, path, value) else "?"
    for root in value.roots:
        for how, source in project.resolver.assigned(f"{path}{root}"):
            match source:
                case Call(func=Ref(path=(*_, "parameters" | "named_parameters"))) if how == "[]":
                    return ""
    return "?"


def _is_any_module(project: ProgramIndex, path: str, value: Ref) -> bool:
    """Whether ``module.weight`` is of a module in a traversal, as by ``apply`` and ``modules()``: a parameter of a
    function outside classes, or a loop variable.
    """
    for root in value.roots:
        name = f"{path}{root}"
        if any(how == "[]" for how, _ in project.resolver.assigned(name)):
            return True
        function = outermost_function(name)
        if any(not each.owner and each.params for each in project.resolver.functions(function)):
            return True
    return False
