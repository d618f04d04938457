"""The tree of libcst's parser: any Python from 3.0 on, and the reference for what other trees say."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import libcst as cst

from torchrepro_lint.source.text import PARSER_ERRORS, literal
from torchrepro_lint.syntax import lowering_rules, parser_tree
from torchrepro_lint.syntax.libcst_expressions import EXPRESSIONS, SIGNS, arguments, other
from torchrepro_lint.syntax.libcst_positions import locate
from torchrepro_lint.syntax.nodes import Arg
from torchrepro_lint.syntax.parser_tree import ComprehensionClause, Lowering, Node, Parameter, ParserTree
from torchrepro_lint.syntax.scopes import Imported, Scope
from torchrepro_lint.syntax.syntax_errors import ASYNC, has_unnormalised_names, with_stand_in

_STATEMENTS = lowering_rules.by_node_type(cst, lowering_rules.STATEMENTS)

# Node types whose spans are recorded.
LOCATED: frozenset[type] = frozenset({*EXPRESSIONS, *_STATEMENTS, cst.Slice, cst.StarredElement})


class LibcstTree(ParserTree):
    """A text as libcst parses it. Raises what ``libcst.parse_module`` raises."""

    expressions = EXPRESSIONS
    statements = _STATEMENTS
    binders = lowering_rules.by_node_type(cst, parser_tree.BINDERS)
    blocks = lowering_rules.by_node_type(cst, parser_tree.BLOCKS)
    other = staticmethod(other)

    def __init__(self, text: str) -> None:
        self.text = text
        self.walrus = ":=" in text
        written, word = text, ""
        try:
            self.module = cst.parse_module(text)
        except cst.ParserSyntaxError:
            if (replaced := with_stand_in(text)) is None:
                raise
            written, word = replaced
            self.module = cst.parse_module(written)
        self.offsets = locate(self.module, written, LOCATED)
        if word:
            _put_back(self.module, word)
        self.span = self.offsets.inner
        if not text.isascii() and has_unnormalised_names(text):
            _normalise_names(self.module)

    def body(self, block: Node | None) -> Sequence[Node]:
        if isinstance(block, (cst.Else, cst.Finally)):
            block = block.body
        if isinstance(block, (cst.BaseSuite, cst.Module)):
            return [each for line in block.body for each in _small(line)]
        if block is None or isinstance(block, Sequence):
            return block or ()
        return (block,)  # an `elif`

    def extent(self, statement: Node) -> tuple[int, int]:
        return self.span(statement)

    def walruses(self, node: Node) -> Iterable[Node]:
        span = self.offsets.find(node)
        if self.text.find(":=", *span) < 0 if span else not isinstance(node, _CLAUSES):
            return
        stack = [child for child in node.children if not isinstance(child, _BLOCKS)]
        while stack:
            each = stack.pop()
            if isinstance(each, cst.NamedExpr):
                yield each.target
            stack.extend(each.params.children if isinstance(each, cst.Lambda) else each.children)

    def docstring_end(self) -> int:
        try:
            if self.module.get_docstring(clean=False) is None:
                return 0
        except PARSER_ERRORS:
            pass  # a string that Python refuses: with a NUL in it
        return self.span(self.body(self.module)[0])[1]

    def word(self, target: Node) -> str | None:
        return target.value if isinstance(target, cst.Name) else None

    def elements(self, target: Node) -> Iterable[tuple[Node, bool]]:
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                yield element.value, isinstance(element, cst.StarredElement)

    def targets(self, assign: cst.Assign) -> Sequence[Node]:
        return [target.target for target in assign.targets]

    def annotation(self, assign: cst.AnnAssign) -> Node:
        return assign.annotation.annotation

    def operator(self, assign: cst.AugAssign) -> str:
        return _AUGMENTED.get(type(assign.operator), "?=")

    def entered(self, node: cst.With) -> Iterator[tuple[Node, Node | None]]:
        for item in node.items:
            yield item.item, item.asname.name if item.asname else None

    def caught(self, handler: Node) -> str | None:
        return self.word(handler.name.name) if handler.name else None

    def captured(self, case: cst.MatchCase) -> Iterator[str]:
        stack: list[cst.CSTNode] = [case.pattern]
        while stack:
            pattern = stack.pop()
            name = getattr(pattern, "name", None) if isinstance(pattern, (cst.MatchAs, cst.MatchStar)) else None
            rest = pattern.rest if isinstance(pattern, cst.MatchMapping) else None
            yield from (word.value for word in (name, rest) if word is not None)
            stack.extend(pattern.children)

    def declared(self, node: Node) -> Iterator[str]:
        return (item.name.value for item in node.names)

    def imported(self, node: Node) -> Imported:
        star = isinstance(node.names, cst.ImportStar)
        aliases = () if star else tuple((_dotted(each.name), _alias(each)) for each in node.names)
        if isinstance(node, cst.Import):
            return Imported(None, aliases)
        return Imported("." * len(node.relative) + _dotted(node.module), aliases, star)

    def name(self, node: Node) -> str:
        return str(node.name.value)

    def decorators(self, node: Node) -> Sequence[Node]:
        return [decorator.decorator for decorator in node.decorators]

    def params(self, node: Node) -> Iterator[Parameter]:
        params: cst.Parameters = node.params
        for kind, group in (("/", params.posonly_params), ("", params.params)):
            yield from (_param(kind, param) for param in group)
        if isinstance(params.star_arg, cst.Param):
            yield _param("*", params.star_arg)
        yield from (_param("kw", param) for param in params.kwonly_params)
        if params.star_kwarg:
            yield _param("**", params.star_kwarg)

    def returns(self, node: cst.FunctionDef) -> Node | None:
        return node.returns.annotation if node.returns else None

    def bases(self, lowering: Lowering, scope: Scope, node: cst.ClassDef) -> Iterable[Arg]:
        return arguments(lowering, scope, (*node.bases, *node.keywords))

    def quoted(self, annotation: Node) -> str | None:
        value = literal(annotation.value) if isinstance(annotation, cst.SimpleString) else None
        return value if isinstance(value, str) else None

    def loops(self, comprehension: Any) -> Iterator[ComprehensionClause]:
        clause = comprehension.for_in
        while clause is not None:
            yield ComprehensionClause(clause.target, clause.iter, [condition.test for condition in clause.ifs])
            clause = clause.inner_for_in

    def compared(self, comparison: cst.Comparison) -> Iterator[tuple[str, Node]]:
        for target in comparison.comparisons:
            yield SIGNS[type(target.operator)], target.comparator


def _put_back(module: cst.Module, word: str) -> None:
    """Write ``async`` again where a stand-in is in the tree; the spans are known already."""
    for node in _all_nodes(module):
        if isinstance(node, (cst.Name, cst.SimpleString)) and word in node.value:
            object.__setattr__(node, "value", node.value.replace(word, ASYNC))


def _normalise_names(module: cst.Module) -> None:
    """Normalise all names as Python does; their spans are known already."""
    for node in _all_nodes(module):
        if isinstance(node, cst.Name) and not node.value.isascii():
            object.__setattr__(node, "value", unicodedata.normalize("NFKC", node.value))


def _all_nodes(module: cst.Module) -> Iterator[cst.CSTNode]:
    stack: list[cst.CSTNode] = [module]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def _small(line: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return line.body if isinstance(line, cst.SimpleStatementLine) else (line,)


def _param(kind: str, param: cst.Param) -> Parameter:
    return Parameter(param.name.value, kind, param.annotation.annotation if param.annotation else None, param.default)


def _dotted(node: cst.CSTNode | None) -> str:
    """The text of a dotted name; empty for None."""
    match node:
        case cst.Name(value=word):
            return word
        case cst.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr.value}"
        case _:
            return ""


def _alias(alias: cst.ImportAlias) -> str:
    return _dotted(alias.asname.name) if alias.asname else ""


_AUGMENTED: dict[type, str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
    cst.BitOrAssign: "|=",
    cst.BitAndAssign: "&=",
}

_CLAUSES = (cst.MatchCase, cst.ExceptHandler, cst.ExceptStarHandler)

# Nodes that contain statements, which are visited on their own.
_BLOCKS = (cst.BaseSuite, cst.BaseStatement, cst.Else, cst.Finally, *_CLAUSES)
