"""source text → ``Facts``: one libcst parse and one walk over it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import libcst as cst

from torchrepro_lint.bindings import bind_body, bind_globals, target_words
from torchrepro_lint.expressions import LOCATED, arguments, convert
from torchrepro_lint.facts import Class, Expression, Facts, Function, Leave, Operation, Param, Statement
from torchrepro_lint.offsets import locate
from torchrepro_lint.scopes import Scope
from torchrepro_lint.statements import STATEMENTS, body_of, imports_end
from torchrepro_lint.summary import summarise
from torchrepro_lint.text import Lines

# libcst's parser is recursive and dies of a signal at some 3,000 levels; Python itself stops at 200.
_DEEPEST = 400
# A chain of method calls or operators nests as deeply as it is long, and libcst takes quadratic time over it.
_LONGEST_CHAIN = 500
_CHAIN = re.compile(
    rf"(?:\.\w+\([^()\n]*\)\s*){{{_LONGEST_CHAIN}}}|(?:\b\w+[ \t]*(?:[-+*/%@&|^]|<<|>>)[ \t]*){{{_LONGEST_CHAIN}}}"
)
_GLOBAL = re.compile(r"(?:^|[;:])[ \t]*global[ \t]", re.MULTILINE)
_BRACKET = re.compile(r"[\[({]|[\])}]")
# The same beside what hides brackets: strings and comments.
_REAL_BRACKET = re.compile(
    r"[\[({]|[\])}]|#[^\r\n]*|\"{3}(?s:\\.|.)*?\"{3}|'{3}(?s:\\.|.)*?'{3}"
    r"|\"(?:\\(?s:.)|[^\"\\\r\n])*\"|'(?:\\(?s:.)|[^'\\\r\n])*'"
)
_OPENING = frozenset("[({")


_CLAUSES = (cst.MatchCase, cst.ExceptHandler, cst.ExceptStarHandler)


class CollectError(Exception):
    """The text can't be analysed; ``offset`` is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def collect(text: str) -> Facts:
    """The facts of a module's text. Raises CollectError where it is no Python, or nested too deeply."""
    _check_nesting(text)
    try:
        tree = cst.parse_module(text)
        return Collector(tree, text).facts()
    except cst.ParserSyntaxError as error:
        raise CollectError(_reason(error), _place(error, text)) from error
    except RecursionError as error:
        raise CollectError("nested too deeply to analyse", 0) from error


def _place(error: cst.ParserSyntaxError, text: str) -> int:
    """Where the mistake is. libcst names the beginning of a line, or a token too late; Python's parser is exact.

    Where Python itself takes the text, libcst's place is what there is.
    """
    lines = Lines(text)
    try:
        ast.parse(text)
    except SyntaxError as exact:
        if exact.lineno:
            return lines.offset(exact.lineno, max(exact.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError):
        pass  # a NUL, or nested too deeply for Python
    return lines.offset(error.raw_line, error.raw_column + 1)


def _reason(error: cst.ParserSyntaxError) -> str:
    """The parser's message, without the place that it repeats."""
    message = re.sub(r"\s+", " ", error.message).strip()
    message = re.sub(r"^parser error: error at \d+:\d+: ", "", message)
    return message.removeprefix("parser error: ") or "invalid syntax"


def _check_nesting(text: str) -> None:
    """A cheap upper bound first, in which brackets in strings and comments count too."""
    if (match := _CHAIN.search(text)) is not None:
        raise CollectError(
            f"nested too deeply to analyse: a chain of more than {_LONGEST_CHAIN} operations", match.start()
        )
    if _deepest(_BRACKET, text) is not None and (offset := _deepest(_REAL_BRACKET, text)) is not None:
        raise CollectError(f"nested too deeply to analyse: more than {_DEEPEST} open brackets", offset)


def _deepest(pattern: re.Pattern[str], text: str) -> int | None:
    """Where a bracket opens that has too many open ones around it."""
    depth = 0
    for match in pattern.finditer(text):
        if match[0] in _OPENING:
            depth += 1
            if depth > _DEEPEST:
                return match.start()
        elif len(match[0]) == 1 and match[0] in "])}":
            depth = max(depth - 1, 0)
    return None


class Collector:
    """The state of one walk. What is defined inside functions is walked after what stands around it."""

    def __init__(self, tree: cst.Module, text: str) -> None:
        self.tree = tree
        self.text = text
        self.offsets = locate(tree, text, LOCATED | frozenset(STATEMENTS))
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.assigned: dict[str, list[tuple[str, Expression]]] = {}
        self.generators: set[str] = set()
        self.stars: list[str] = []

    def facts(self) -> Facts:
        scope = Scope("module", ":", None)
        bind_body(scope, self.tree, self._may_bind)
        if _GLOBAL.search(self.text):
            bind_globals(scope, self.tree, self._may_bind)
        body = body_of(self, scope, self.tree)
        functions, classes = tuple(sorted(self.functions)), tuple(sorted(self.classes))
        exports = tuple((word, tuple(sorted(names))) for word, names in sorted(scope.bound.items()))
        return Facts(
            body=body,
            functions=functions,
            classes=classes,
            assigned=tuple((name, tuple(values)) for name, values in sorted(self.assigned.items())),
            imports_end=imports_end(self, body),
            summary=summarise(body, functions, classes, exports, tuple(self.stars)),
        )

    def _may_bind(self, node: cst.CSTNode) -> bool:
        """Whether the text of a statement has a ``:=``; a clause, whose place is not known, may have one."""
        span = self.offsets.find(node)
        return self.text.find(":=", *span) >= 0 if span else isinstance(node, _CLAUSES)

    def assign(self, scope: Scope, target: cst.CSTNode, how: str, value: Expression) -> None:
        """Note what the plain names of a target are assigned; targets and displays of one shape are paired."""
        match target:
            case cst.Name(value=word):
                self.assigned.setdefault(scope.variable(word), []).append((how, value))
            case cst.Tuple() | cst.List():
                for word in target_words(target):
                    self.assigned.setdefault(scope.variable(word), []).append(("[]", value))

    def define_function(self, scope: Scope, node: cst.FunctionDef) -> tuple[Expression, ...]:
        """Record a function; returns what its ``def`` statement evaluates: decorators, defaults, annotations."""
        start, end = self.offsets.inner(node)
        name = scope.own(node.name.value)
        decorators = tuple(convert(self, scope, decorator.decorator) for decorator in node.decorators)
        params = tuple(self._params(scope, node.params))
        returns = self.annotation(scope, node.returns.annotation) if node.returns else None
        inner = self._enter(scope, name, params)
        bind_body(inner, node.body, self._may_bind)
        body = body_of(self, inner, node.body)
        owner = scope.name[:-1] if scope.kind == "class" else None
        generator = inner.name in self.generators
        self.functions.append(Function(start, end, name, params, decorators, body, owner, generator, returns))
        return (*decorators, *(param.default for param in params if param.default is not None))

    def define_lambda(self, scope: Scope, node: cst.Lambda, start: int, end: int) -> str:
        """Record a lambda; returns its name."""
        name = scope.own(scope.numbered("<lambda>"))
        params = tuple(self._params(scope, node.params))
        value = convert(self, self._enter(scope, name, params), node.body)
        body: tuple[Statement, ...] = (Leave(value.start, value.end, "return", (value,)),)
        self.functions.append(Function(start, end, name, params, (), body, None, False, None))
        return name

    def define_class(self, scope: Scope, node: cst.ClassDef) -> tuple[tuple[Expression, ...], tuple[Statement, ...]]:
        """Record a class; returns what its statement evaluates, decorators and bases, and its body."""
        start, end = self.offsets.inner(node)
        name = scope.own(node.name.value)
        decorators = tuple(convert(self, scope, decorator.decorator) for decorator in node.decorators)
        bases = tuple(arguments(self, scope, (*node.bases, *node.keywords)))
        inner = Scope("class", f"{name}.", scope)
        bind_body(inner, node.body, self._may_bind)
        body = body_of(self, inner, node.body)
        methods = {f.name.rpartition(".")[2]: f.name for f in self.functions if f.owner == name}
        self.classes.append(Class(start, end, name, bases, decorators, body, tuple(sorted(methods.items()))))
        return (*decorators, *(base.value for base in bases)), body

    def _enter(self, scope: Scope, name: str, params: tuple[Param, ...]) -> Scope:
        inner = Scope("function", f"{name}.<locals>.", scope)
        for param in params:
            inner.bind(param.name)
        return inner

    def _params(self, scope: Scope, params: cst.Parameters) -> Iterator[Param]:
        for kind, group in (("/", params.posonly_params), ("", params.params)):
            yield from (self._param(scope, kind, param) for param in group)
        if isinstance(params.star_arg, cst.Param):
            yield self._param(scope, "*", params.star_arg)
        yield from (self._param(scope, "kw", param) for param in params.kwonly_params)
        if params.star_kwarg:
            yield self._param(scope, "**", params.star_kwarg)

    def _param(self, scope: Scope, kind: str, param: cst.Param) -> Param:
        annotation = self.annotation(scope, param.annotation.annotation) if param.annotation else None
        default = convert(self, scope, param.default) if param.default else None
        return Param(param.name.value, kind, annotation, default)

    def annotation(self, scope: Scope, node: cst.BaseExpression) -> Expression:
        """An annotation; one in quotes is read as the expression that it quotes, all at the quotes' span."""
        if isinstance(node, cst.SimpleString):
            quoted = node.evaluated_value
            start, end = self.offsets.inner(node)
            if isinstance(quoted, str) and re.fullmatch(r"[\w.]+", quoted):
                word, *path = quoted.split(".")
                return Operation(start, end, "annotation", ()) if not word else _quoted(scope, word, path, start, end)
        return convert(self, scope, node)


def _quoted(scope: Scope, word: str, path: list[str], start: int, end: int) -> Any:
    from torchrepro_lint.facts import Ref

    return Ref(start, end, scope.resolve(word), tuple(path), end)
