"""Which attributes the files of a project read, in the order of their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.query.memo_tables import tight
from torchrepro_lint.syntax.nodes import Attribute, Comprehension, Define, Expression, Facts, Lambda, Ref, Statement
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.use_def import targets
from torchrepro_lint.syntax.visitor import blocks, expressions, parts

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.nodes import Summary


class AttributeReads:
    """The reads of attributes in a project; a file is gone through when its summary has the word."""

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        self._known: dict[str, list[tuple[str, Expression, int]]] = {}

    def having(self, word: str) -> list[tuple[str, Expression, int]]:
        """All reads of an attribute by its word: file, expression, and the place of the word in a reference's path."""
        if word not in self._known:
            modules = self._project.resolver.modules
            self._known[word] = [
                (path, each, at)
                for path in sorted(modules.files)
                if may_read(modules.summary(path), word)
                for each in self._project.of_file("attributes", path, self._by_word).get(word, ())
                for at in ([at for at, one in enumerate(each.path) if one == word] if isinstance(each, Ref) else (0,))
            ]
        return self._known[word]

    def _by_word(self, path: str) -> dict[str, tuple[Ref | Attribute, ...]]:
        """The reads of attributes in a file by their words, each once for a word."""
        found: dict[str, list[Ref | Attribute]] = {}
        for each in attributes_read(self._project.files[path]):
            for word in dict.fromkeys(each.path) if isinstance(each, Ref) else (each.name,):
                found.setdefault(word, []).append(each)
        return tight(found)


def may_read(summary: Summary, word: str) -> bool:
    """Whether a file may read an attribute by that word, be it to call it, or to read another from it."""
    return any(has_word(words, word) for words in (summary.values, summary.inner, summary.calls))


def attributes_read(facts: Facts) -> list[Ref | Attribute]:
    """All references with attributes, and attributes of what is no name, but for those that a statement assigns to as such."""
    found: list[Ref | Attribute] = []
    for body in (facts.body, *(each.body for each in facts.functions)):
        _in_body(body, found)
    return found


def _in_body(body: tuple[Statement, ...], found: list[Ref | Attribute]) -> None:
    for statement in body:
        written = set(map(id, targets(statement)))
        for expression in expressions(statement):
            if type(expression) is not Ref or id(expression) not in written:
                _in_expression(expression, found)
        for block in blocks(statement):
            _in_body(block, found)
        if type(statement) is Define:
            _in_body(statement.body, found)


def _in_expression(expression: Expression, found: list[Ref | Attribute]) -> None:
    kind = type(expression)
    if kind is Ref:
        if expression.path:  # type: ignore[union-attr]  # narrowed by exact type
            found.append(expression)  # type: ignore[arg-type]
        return
    if kind is Lambda:
        return
    if kind is Attribute:
        found.append(expression)  # type: ignore[arg-type]
    if kind is Comprehension:
        for clause in expression.clauses:  # type: ignore[union-attr]
            _in_expression(clause.target, found)
    for part in parts(expression):
        _in_expression(part, found)
