"""Layers that are never run: tables of learned tokens, of which only the weight is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Assign, Attribute, Expression, Ref, Statement, Subscript
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import bodies, expressions, parts, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.project import Project
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.syntax.nodes import Facts

_TABLES = frozenset({"torch.nn.Embedding", "torch.nn.modules.sparse.Embedding"})
# What is read of a table without running it.
_READ = frozenset({"weight", "num_embeddings", "embedding_dim"})


def gives_only_weights(project: Project, path: str, site: Site) -> bool:
    """Whether a constructed table is kept in an attribute of which the project reads nothing but its weight."""
    words = {target.path[0] for target in _kept(project, site) if isinstance(target, Ref) and len(target.path) == 1}
    if len(words) != 1 or not _TABLES.intersection(site.names):
        return False
    word, owner = words.pop(), project.resolver.owner(site.function)
    own = (each.body for each in project.files[path].functions if each.owner and f"{path}{each.owner}" == owner)
    if not all(only for of, only in _uses(own, word) if not of or _related(project, f"{path}{of}", owner)):
        return False  # as nearly all are, and no more need be looked into
    readings = _readings(project, word)
    if path not in readings:
        readings = {**readings, path: _in_file(project.files[path], word)}
    uses = [
        only
        for each, by_class in readings.items()
        for of, only in by_class.items()
        if not of or _related(project, f"{each}{of}", owner)
    ]
    return bool(uses) and all(uses)


def _readings(project: Project, word: str) -> dict[str, dict[str, bool]]:
    """The uses of an attribute in each file where it is called or named as a value at all."""
    known: dict[str, dict[str, dict[str, bool]]] = project.kept.setdefault("attributes read", {})
    if word not in known:
        known[word] = {
            path: _in_file(facts, word)
            for path, facts in project.files.items()
            if has_word(facts.summary.values, word) or has_word(facts.summary.calls, word)
        }
    return known[word]


def _in_file(facts: Facts, word: str) -> dict[str, bool]:
    """Whether nothing but a table's weight is read of an attribute, by the class on whose ``self``; empty for other objects."""
    found: dict[str, bool] = {}
    for of, only in _uses(bodies(facts), word):
        found[of] = only and found.get(of, True)
    return found


def _related(project: Project, one: str, other: str) -> bool:
    return other in project.resolver.ancestry(one) or one in project.resolver.ancestry(other)


def _kept(project: Project, site: Site) -> list[Expression]:
    """What keeps what is made: the targets of its assignment, and of another that hands a variable on to them."""
    found = []
    for target in _targets(site):
        if not isinstance(target, Ref) or target.path:
            found.append(target)
            continue
        for function in project.resolver.functions(site.function):
            for statement in statements(function.body):
                if isinstance(statement, Assign) and statement.value is not None and statement is not site.statement:
                    named = (each.roots for each in within(statement.value) if isinstance(each, Ref))
                    found += statement.targets if target.roots in named else ()
    return found


def _targets(site: Site) -> tuple[Expression, ...]:
    """The targets of the assignment that keeps what is made, by itself or in a list."""
    statement = site.statement
    if not isinstance(statement, Assign) or statement.value is None:
        return ()
    return statement.targets if any(each is site.call for each in within(statement.value)) else ()


def _uses(some: Iterable[tuple[Statement, ...]], word: str) -> Iterator[tuple[str, bool]]:
    """Of each reading of an attribute in some bodies the class on whose ``self`` it is, and whether only a table's weight is
    read.
    """
    for body in some:
        for statement in statements(body):
            targets = statement.targets if isinstance(statement, Assign) else ()
            for expression in expressions(statement):
                if not any(expression is target for target in targets):
                    yield from _found(expression, word, "")


def _found(expression: Expression, word: str, above: str) -> Iterator[tuple[str, bool]]:
    """``above`` is the attribute that is read of the expression."""
    match expression:
        case Ref(roots=roots, path=path) if word in path:
            after = path[path.index(word) + 1 :]
            method, _, variable = roots[0].rpartition(".<locals>.")
            own = method.rpartition(".")[0] if variable == "self" and path[0] == word else ""
            yield own, (after[0] if after else above) in _READ
        case Subscript(value=value, indices=indices):
            yield from _found(value, word, above)
            for each in indices:
                yield from _found(each, word, "")
        case Attribute(value=value, name=name):
            yield from _found(value, word, name)
        case _:
            for each in parts(expression):
                yield from _found(each, word, "")
