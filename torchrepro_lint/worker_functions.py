"""The functions that loaders' workers run first: what is passed as ``worker_init_fn``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.arguments import is_partial
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.loaders import kind_of
from torchrepro_lint.syntax.nodes import Call, Lambda, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.loader_queries import LoaderQueries

WORD = "worker_init_fn"
_POSITION = 10


class WorkerFunction(NamedTuple):
    """A function of the project that workers run, what is known of its parameters, and those that are the worker's number."""

    function: str
    scope: Scope
    numbers: frozenset[str]


def worker_functions(project: LoaderQueries) -> Iterator[WorkerFunction]:
    """Each way in which a function is handed to a loader that may have workers, in the order of files and text."""
    seen = set()
    for path in _handing(project):
        for given in _given(project, path):
            for each in project.origins.of(given):
                for found in _functions(project, each):
                    if (key := (found.function, id(found.scope), found.numbers)) not in seen:
                        seen.add(key)
                        yield found


def handed_words(project: LoaderQueries) -> frozenset[str]:
    """The words that files mention which may hand functions to loaders' workers: a worker function's, or its class's."""
    return project.of_all("handed words", lambda: _find_handed_words(project))


def _find_handed_words(project: LoaderQueries) -> frozenset[str]:
    summaries = [project.files[path].summary for path in _handing(project)]
    return frozenset(word for each in summaries for word in (*each.values, *each.calls))


def _handing(project: LoaderQueries) -> tuple[str, ...]:
    """The files that may hand functions to loaders' workers, sorted."""
    modules = project.resolver.modules
    modules.reads.see_word("keywords", WORD)
    passing = {path for path, each in modules.summaries() if WORD in each.keywords}
    return tuple(sorted(passing.union(project.loader_paths))) if passing else ()


def _given(project: LoaderQueries, path: str) -> Iterator[Scoped]:
    if not any(_may_pass(site.call) for site in project.calls(path)):
        return
    known = set()
    for loader in project.loaders(path):
        known.add(id(loader.site.call))
        if loader.has_workers or not loader.arguments.complete:
            yield from loader.arguments.given.get(WORD, ())
    for site in project.calls(path):
        if id(site.call) not in known and not any(":" in name or kind_of(name) for name in site.names):
            yield from (Scoped(path, arg.value) for arg in site.call.args if arg.keyword == WORD)


def _may_pass(call: Call) -> bool:
    return len(call.args) > _POSITION or any(arg.keyword == WORD or arg.star for arg in call.args)


def _functions(
    project: LoaderQueries, each: Scoped, positional: int = 0, bound: frozenset[str] = frozenset()
) -> Iterator[WorkerFunction]:
    """A function, lambda or method; what a partial or a callable object runs."""
    value = each.value
    if isinstance(value, Call) and is_partial(project.origins, each):
        first, *rest = value.args
        words = frozenset(arg.keyword for arg in rest if arg.keyword)
        count = sum(arg.keyword is None and not arg.star for arg in rest)
        for inner in project.origins.of(each._replace(value=first.value)):
            for found in _functions(project, inner, count + positional, words | bound):
                yield found._replace(scope=_bound(project, found, each, value))
        return
    names = project.names(each.path, value.func if isinstance(value, Call) else value)
    if isinstance(value, Lambda):
        names = (each.path + value.function,)
    for name in names:
        scope = each.scope
        targets = [name] if project.resolver.functions(name) and not isinstance(value, Call) else []
        if isinstance(value, Call) and project.resolver.classes(name):
            targets = list(project.resolver.call_methods(f"{name}()"))
            scope = project.origins.construct(each, name).scope
        elif isinstance(value, Ref) and ":" in name and name.endswith("()"):
            targets = list(project.resolver.call_methods(name))
        for target in targets:
            yield WorkerFunction(target, scope, _numbers(project, target, positional, bound))


def _bound(project: LoaderQueries, found: WorkerFunction, each: Scoped, partial: Call) -> Scope:
    """The parameters that a partial gives: by their names, and in their order."""
    given = dict(found.scope.given)
    for function in project.resolver.functions(found.function):
        params = function.params[bool(function.owner) :]
        path = path_of(found.function)
        plain = iter(params)
        for arg in partial.args[1:]:
            word = arg.keyword or ("" if arg.star else next((param.name for param in plain), ""))
            if word:
                given[f"{path}{function.name}.<locals>.{word}"] = (each._replace(value=arg.value),)
    return found.scope._replace(given=given)


def _numbers(project: LoaderQueries, target: str, positional: int, bound: frozenset[str]) -> frozenset[str]:
    """The parameter that gets the worker's number: the first that nothing has been given for; all of a ``*args``."""
    found = set()
    for function in project.resolver.functions(target):
        params = [param for param in function.params[bool(function.owner) :] if param.name not in bound][positional:]
        path = path_of(target)
        if params:
            found.add(f"{path}{function.name}.<locals>.{params[0].name}")
    return frozenset(found)
