"""Parsing: a source text to its syntax tree, by Python's own parser where that can be trusted, else by libcst's.

``AstTree`` is the tree of Python's parser: ten times as fast as libcst's, for what the running Python can read. Texts nested so
deeply that a parser would crash or hang are refused before it is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.source.files import MAX_ANALYSED_CHARACTERS
from torchrepro_lint.source.text import PARSER_ERRORS, parse
from torchrepro_lint.syntax import lowering_rules, parser_tree
from torchrepro_lint.syntax.ast_expressions import EXPRESSIONS, SIGNS, arguments, deleted, fast_converter, other
from torchrepro_lint.syntax.lowering import TreeLowering
from torchrepro_lint.syntax.nodes import Arg, SimpleStatement, Statement, SyntaxTree
from torchrepro_lint.syntax.parser_tree import (
    ComprehensionClause,
    Convert,
    Lowering,
    Node,
    Parameter,
    ParserTree,
    ToStatement,
    UnreliableTree,
)
from torchrepro_lint.syntax.scopes import Imported, Scope
from torchrepro_lint.syntax.syntax_errors import (
    ASYNC,
    certain_problem,
    deep_brackets,
    has_unnormalised_names,
    long_chain,
    long_expression,
    reserved_names,
    stops_at_a_reserved_name,
    with_stand_in,
)
from torchrepro_lint.syntax.tokens import Columns, after_opening, end_of_trailers, skip, string_literals


def _delete(lowering: Lowering, scope: Scope, node: ast.Delete, start: int, end: int) -> Statement:
    return SimpleStatement(start, end, "del", (deleted(lowering, scope, node, end),))


def _pass(*_: object) -> None:
    """No statement: scopes are built from ``global`` and ``nonlocal`` elsewhere."""


_STATEMENTS: Mapping[type, ToStatement] = {
    **lowering_rules.by_node_type(ast, lowering_rules.STATEMENTS),
    ast.Delete: _delete,
    **dict.fromkeys((ast.Pass, ast.Global, ast.Nonlocal), _pass),
}


class AstTree(ParserTree):
    """A text as the running Python parses it. Raises one of ``ipython.PARSER_ERRORS``, or UnreliableTree."""

    expressions = EXPRESSIONS
    statements = _STATEMENTS
    binders = lowering_rules.by_node_type(ast, parser_tree.BINDERS)
    blocks = lowering_rules.by_node_type(ast, parser_tree.BLOCKS)
    other = staticmethod(other)

    def __init__(self, text: str) -> None:
        if not text.isascii() and (has_unnormalised_names(text) or text.startswith("\ufeff")):
            raise UnreliableTree
        self.text = text
        self.module = _parsed(text)
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


def _parsed(text: str) -> ast.Module:
    """The module of a text, in which ``async`` may be a name. Raises one of ``PARSER_ERRORS``."""
    try:
        found: ast.Module = parse(text)
    except SyntaxError:
        if (replaced := with_stand_in(text)) is None:
            raise
        found = parse(replaced[0])
        _put_back(found, replaced[1])
    return found


def _put_back(module: ast.Module, word: str) -> None:
    """Write ``async`` again where a stand-in is in the tree."""
    for node in ast.walk(module):
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and word in value:
                setattr(node, field, value.replace(word, ASYNC))
            elif isinstance(value, list) and word in value:  # of `global`
                setattr(node, field, [ASYNC if each == word else each for each in value])


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


class ParseError(Exception):
    """The text cannot be analysed; ``offset`` is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def parse_module(text: str, parser: str = "auto") -> SyntaxTree:
    """The syntax tree of a module's text. Raises ParseError where it is not Python, nested too deeply, or too large.

    ``parser`` is that of the settings: with ``libcst`` Python's own parser is not used.
    """
    if len(text) > MAX_ANALYSED_CHARACTERS:
        raise ParseError(
            f"too large to analyse: {len(text):,} characters, where {MAX_ANALYSED_CHARACTERS:,} are the most", 0
        )
    if deep := long_chain(text):
        raise ParseError(*deep)
    if parser == "auto":
        if quick := parse_with_ast(text):
            return quick
        if not (deep_brackets(text) or long_expression(text)) and (problem := certain_problem(text)):
            raise ParseError(*problem)
    return parse_with_libcst(text)


def parse_with_ast(text: str) -> SyntaxTree | None:
    """The syntax tree from Python's own parser; None where that fails or cannot be trusted."""
    try:
        return TreeLowering(AstTree(text)).lower()
    except (*PARSER_ERRORS, UnreliableTree, RecursionError):
        return None


def parse_with_libcst(text: str) -> SyntaxTree:
    """The syntax tree from libcst: the reference, and the source of messages about syntax errors."""
    import libcst

    from torchrepro_lint.syntax import syntax_errors
    from torchrepro_lint.syntax.libcst_positions import LostSource
    from torchrepro_lint.syntax.libcst_tree import LibcstTree

    if deep := deep_brackets(text) or long_expression(text):
        raise ParseError(*deep)
    try:
        return TreeLowering(LibcstTree(text)).lower()
    except libcst.ParserSyntaxError as error:
        raise ParseError(*syntax_errors.explain(text, error)) from error
    except libcst.CSTValidationError as error:  # accepted by its parser, but not by Python
        raise ParseError(*syntax_errors.refused(text, str(error))) from error
    except UnicodeEncodeError as error:
        raise ParseError("half of a surrogate pair, which is no character", error.start) from error
    except LostSource as error:
        raise ParseError("a line that goes on before the first statement", 0) from error
    except RecursionError as error:
        raise ParseError("nested too deeply to analyse", 0) from error


def read_as_names(text: str) -> tuple[int, ...]:
    """The offsets where ``async`` is a name in a text that was parsed; none where each is a keyword."""
    return found if (found := reserved_names(text)) and not _is_modern(text) else ()


def _is_modern(text: str) -> bool:
    """Whether a text can be parsed as it stands."""
    if stops_at_a_reserved_name(text):
        return False
    import libcst

    try:
        parse(text)
    except PARSER_ERRORS:
        try:
            libcst.parse_module(text)
        except (libcst.ParserSyntaxError, *PARSER_ERRORS):
            return False
    return True
