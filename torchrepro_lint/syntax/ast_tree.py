"""The tree of Python's own parser: ten times as fast as libcst's, for what the running Python can read."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.source import ipython
from torchrepro_lint.syntax import lowering_rules, scope_builder
from torchrepro_lint.syntax.ast_expressions import EXPRESSIONS, SIGNS, arguments, deleted, fast_converter, other
from torchrepro_lint.syntax.ast_strings import Columns
from torchrepro_lint.syntax.nodes import Arg, SimpleStatement, Statement
from torchrepro_lint.syntax.scope_builder import (
    ComprehensionClause,
    Convert,
    Lowering,
    Node,
    Parameter,
    ParserTree,
    ToStatement,
    UnreliableTree,
    by_node_type,
)
from torchrepro_lint.syntax.scopes import Imported, Scope
from torchrepro_lint.syntax.tokens import after_opening, end_of_trailers, has_unnormalised_names, skip, string_literals


def _delete(lowering: Lowering, scope: Scope, node: ast.Delete, start: int, end: int) -> Statement:
    return SimpleStatement(start, end, "del", (deleted(lowering, scope, node, end),))


def _pass(*_: object) -> None:
    """No statement: scopes are built from ``global`` and ``nonlocal`` elsewhere."""


_STATEMENTS: Mapping[type, ToStatement] = {
    **by_node_type(ast, lowering_rules.STATEMENTS),
    ast.Delete: _delete,
    **dict.fromkeys((ast.Pass, ast.Global, ast.Nonlocal), _pass),
}


class AstTree(ParserTree):
    """A text as the Python that runs reads it. Raises one of ``quiet.REFUSALS``, or Untrusted."""

    expressions = EXPRESSIONS
    statements = _STATEMENTS
    binders = by_node_type(ast, scope_builder.BINDERS)
    blocks = by_node_type(ast, scope_builder.BLOCKS)
    other = staticmethod(other)

    def __init__(self, text: str) -> None:
        if not text.isascii() and (has_unnormalised_names(text) or text.startswith("\ufeff")):
            raise UnreliableTree
        self.text = text
        self.module = ipython.parse(text)
        self.stand(Columns(text))
        self.walrus = ":=" in text

    def stand(self, columns: Columns) -> None:
        """Use these columns from now on: those of the whole text, or of a part of it."""
        self.columns, self.span = columns, columns.span

    def converter(self, lowering: Lowering) -> Convert:
        return fast_converter(lowering, self.columns) if self.columns.narrow else super().converter(lowering)

    def body(self, block: Node) -> Sequence[Node]:
        found: Sequence[Node] = block if isinstance(block, list) else block.body
        return found

    def extent(self, statement: Node) -> tuple[int, int]:
        span = self.span(statement)
        if self.text[span[1] - 1] == ";":  # of the last line of a block
            return span[0], self.extent(self._last(statement))[1]
        return span

    def _last(self, statement: Node) -> Node:
        """The last statement in a compound one."""
        fields = self.blocks.get(type(statement), ("body",))
        last = next(block for field in reversed(fields) if (block := getattr(statement, field)))[-1]
        return last if isinstance(last, ast.stmt) else self._last(last)

    def walruses(self, node: Node) -> Iterable[Node]:
        if isinstance(node, ast.stmt) and self.text.find(":=", *self.span(node)) < 0:
            return
        stack = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _BLOCKS)]
        while stack:
            each = stack.pop()
            if isinstance(each, ast.NamedExpr):
                yield each.target
            stack.extend([each.args] if isinstance(each, ast.Lambda) else ast.iter_child_nodes(each))

    def docstring_end(self) -> int:
        match self.module.body[:1]:
            case [ast.Expr(value=ast.Constant(value=str())) as first]:
                return self.span(first)[1]
        return 0

    def word(self, target: Node) -> str | None:
        return target.id if type(target) is ast.Name else None

    def elements(self, target: Node) -> Iterable[tuple[Node, bool]]:
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                if isinstance(element, ast.Starred):
                    yield element.value, True
                else:
                    yield element, False

    def targets(self, assign: ast.Assign) -> Sequence[Node]:
        return assign.targets

    def annotation(self, assign: ast.AnnAssign) -> Node:
        return assign.annotation

    def operator(self, assign: ast.AugAssign) -> str:
        return _AUGMENTED.get(type(assign.op), "?=")

    def entered(self, node: ast.With) -> Iterator[tuple[Node, Node | None]]:
        return ((item.context_expr, item.optional_vars) for item in node.items)

    def caught(self, handler: ast.ExceptHandler) -> str | None:
        return handler.name

    def captured(self, case: ast.match_case) -> Iterator[str]:
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "rest" if isinstance(pattern, ast.MatchMapping) else "name", None)
            if name is not None:
                yield name

    def declared(self, node: Node) -> Iterator[str]:
        return iter(node.names)

    def imported(self, node: Node) -> Imported:
        aliases = tuple((alias.name, alias.asname or "") for alias in node.names)
        if isinstance(node, ast.Import):
            return Imported(None, aliases)
        star = aliases[0][0] == "*"
        return Imported("." * node.level + (node.module or ""), () if star else aliases, star)

    def name(self, node: Node) -> str:
        return str(node.name)

    def decorators(self, node: Node) -> Sequence[Node]:
        decorators: Sequence[Node] = node.decorator_list
        return decorators

    def params(self, node: Node) -> Iterator[Parameter]:
        args: ast.arguments = node.args
        positional = [*(("/", arg) for arg in args.posonlyargs), *(("", arg) for arg in args.args)]
        without = len(positional) - len(args.defaults)
        for index, (kind, arg) in enumerate(positional):
            yield Parameter(arg.arg, kind, arg.annotation, args.defaults[index - without] if index >= without else None)
        if args.vararg:
            yield Parameter(args.vararg.arg, "*", args.vararg.annotation, None)
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            yield Parameter(arg.arg, "kw", arg.annotation, default)
        if args.kwarg:
            yield Parameter(args.kwarg.arg, "**", args.kwarg.annotation, None)

    def returns(self, node: ast.FunctionDef) -> Node | None:
        return node.returns

    def bases(self, lowering: Lowering, scope: Scope, node: ast.ClassDef) -> Iterable[Arg]:
        if not node.bases and not node.keywords:
            return ()
        at = skip(self.text, self.span(node)[0] + len("class")) + len(node.name)
        if parameters := getattr(node, "type_params", ()):
            end = self.span(parameters[-1])[1]
            at = skip(self.text, end_of_trailers(self.text, end, len(self.text)))
            if not self.text.startswith("]", at):
                raise UnreliableTree
            at += 1
        return arguments(lowering, scope, node.bases, node.keywords, after_opening(self.text, at))

    def quoted(self, annotation: Node) -> str | None:
        value = annotation.value if type(annotation) is ast.Constant else None
        if not isinstance(value, str):
            return None
        start, end = self.span(annotation)
        if end - start > len(value) + 2 and len(list(string_literals(self.text, start, end))) > 1:
            return None
        return value

    def loops(self, comprehension: Node) -> Iterator[ComprehensionClause]:
        return (ComprehensionClause(clause.target, clause.iter, clause.ifs) for clause in comprehension.generators)

    def compared(self, comparison: ast.Compare) -> Iterator[tuple[str, Node]]:
        return zip((SIGNS[type(operator)] for operator in comparison.ops), comparison.comparators, strict=True)


_AUGMENTED: dict[type, str] = {
    ast.Add: "+=",
    ast.Sub: "-=",
    ast.Mult: "*=",
    ast.Div: "/=",
    ast.BitOr: "|=",
    ast.BitAnd: "&=",
}

# Nodes that contain statements, which are visited on their own.
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
