"""The directories that a project puts on ``sys.path``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Constant,
    Do,
    Expression,
    Facts,
    Operation,
    Ref,
    Statement,
    Subscript,
    given,
)
from torchrepro_lint.syntax.visitor import statements

_SYS = frozenset({"sys", "sys.path"})
_METHODS = (("path", "append"), ("path", "insert"))
# What leaves a path as it is.
_SAME = ("os.path.abspath", "os.path.realpath", "os.path.normpath", "builtins.str", "pathlib.Path", "os.fspath")
# A path is followed through so many variables and calls, and goes so many levels up.
_MOST_STEPS = 20
_MOST_LEVELS = 20


def path_entries(files: Mapping[str, Facts]) -> tuple[str, ...]:
    """Directories relative to the root, in the order of files and statements; those outside the project are left out."""
    found: dict[str, None] = {}
    for path in sorted(files):
        found.update(dict.fromkeys(entries_of(path, files[path])))
    return tuple(found)


def entries_of(path: str, facts: Facts) -> tuple[str, ...]:
    """Those of one file."""
    summary = facts.summary
    if _SYS.isdisjoint(summary.imports) or not any(word in summary.calls for word in ("append", "insert")):
        return ()
    return tuple(entry for entry in _entries(path, facts) if not entry.startswith(".."))


def _entries(path: str, facts: Facts) -> Iterator[str]:
    functions = {function.name: function for function in facts.functions}
    for call in _called(facts.body):
        match call.func:
            case Ref(roots=(root,), path=()) if root in functions:
                passed = {f"{root}.<locals>.{word}": value for word, value in given(functions[root], call)}
                read = _Paths(path, facts, passed)
                for inner in _called(functions[root].body):
                    yield from read.put(inner)
            case _:
                yield from _Paths(path, facts, {}).put(call)


def _called(body: Sequence[Statement]) -> Iterator[Call]:
    """The calls that are statements of their own."""
    for statement in statements(body):
        if isinstance(statement, Do) and isinstance(statement.value, Call):
            yield statement.value


class _Paths:
    """What the paths that one file writes mean, in one call of a function what that was given."""

    def __init__(self, path: str, facts: Facts, passed: Mapping[str, Expression]) -> None:
        self._path = path
        self._variables = facts.assigned
        self._given = passed

    def put(self, call: Call) -> Iterator[str]:
        """The directories that a call puts on ``sys.path``."""
        match call:
            case Call(func=Ref(roots=("sys",), path=words), args=(*_, last)) if words in _METHODS:
                for folder in self.folders(last.value):
                    yield _normal(folder)

    def folders(self, expression: Expression) -> Iterator[str]:
        """What a path may be, relative to the root; a literal counts from the file's directory and from the root."""
        here = self._from_file(expression)
        if here is not None:
            yield here
            return
        match self._written(expression):
            case Constant(value=str(text)) if not text.startswith(("/", "~")):
                yield posixpath.join(posixpath.dirname(self._path), text)
                yield text
            case Call(func=func, args=(arg,)) if _name(func) in _SAME:
                yield from self.folders(arg.value)

    def _written(self, expression: Expression) -> Expression:
        """An expression, for a variable of the module that is assigned once what that is."""
        for _ in range(_MOST_STEPS):
            match expression:
                case Ref(roots=(root,), path=()) if root.startswith(":"):
                    values = tuple(self._variables.get(root, ()))
                    if root in self._given and not values:
                        expression = self._given[root]
                    elif len(values) == 1 and values[0][0] == "=":
                        expression = values[0][1]
                    else:
                        return expression
                case _:
                    return expression
        return expression

    def _from_file(self, expression: Expression, depth: int = 0) -> str | None:
        """A path that is built from ``__file__``."""
        written = self._written(expression)
        if isinstance(written, Ref) and not written.path and written.roots[0].endswith("__file__"):
            return self._path
        inner, rest = _taken(written)
        if inner is None or depth > _MOST_STEPS:
            return None
        found = self._from_file(inner, depth + 1)
        for step in rest if found is not None else ():
            found = None if found is None else self._step(found, step)
        return found

    def _step(self, folder: str, step: Expression | str | int) -> str | None:
        """A folder so many levels above another, below it by a name, or with a text behind it."""
        match step:
            case int(levels):
                for _ in range(min(levels, _MOST_LEVELS)):
                    folder = posixpath.dirname(_normal(folder))
                return folder
            case str(text):
                return folder + text
        name = self._written(step)
        if isinstance(name, Constant) and isinstance(name.value, str):
            return posixpath.join(folder, name.value)
        return None


def _taken(expression: Expression) -> tuple[Expression | None, Sequence[Expression | str | int]]:
    """The path that an expression begins with, and what it does to it: levels up, texts behind, names below."""
    match expression:
        case Call(args=args) if args:
            return _taken_by_call(_name(expression.func), [arg.value for arg in args])
        case Call(func=Attribute(value=value, name="resolve" | "absolute" | "as_posix")):
            return value, ()
        case Call(func=Ref(path=(*_, "resolve" | "absolute" | "as_posix")) as func):
            return _before(func), ()
        case Attribute(value=value, name="parent"):
            return value, (1,)
        case Ref(path=(*_, "parent")):
            return _before(expression), (1,)
        case Subscript(value=value, indices=(Constant(value=int(index)),)):
            return _picked(value, index)
        case Operation(op="/", operands=(left, right)):
            return left, (right,)
        case Operation(op="+" | "f", operands=(left, Constant(value=str(text)))):
            return left, (text,)
        case Operation(op="%", operands=(Constant(value=str(text)), value)) if text[:2] == "%s" and "%" not in text[2:]:
            return value, (text[2:],)
    return None, ()


def _taken_by_call(name: str, args: Sequence[Expression]) -> tuple[Expression | None, Sequence[Expression | int]]:
    if name == "os.path.join":
        return args[0], args[1:]
    if name == "os.path.dirname":
        return args[0], (1,)
    return (args[0], ()) if name in _SAME and len(args) == 1 else (None, ())


def _picked(value: Expression, index: int) -> tuple[Expression | None, Sequence[int]]:
    """``path.parents[1]``, and ``os.path.split(path)[0]``."""
    match value:
        case Attribute(value=inner, name="parents"):
            return inner, (index + 1,)
        case Ref(path=(*_, "parents")):
            return _before(value), (index + 1,)
        case Call(func=func, args=(arg,)) if _name(func) == "os.path.split" and index == 0:
            return arg.value, (1,)
    return None, ()


def _before(ref: Ref) -> Ref:
    """What the last attribute is read from."""
    return ref._replace(path=ref.path[:-1])


def _normal(folder: str) -> str:
    normal = posixpath.normpath(folder) if folder else ""
    return "" if normal == "." else normal


def _name(func: Expression) -> str:
    return ".".join((*func.roots[:1], *func.path)) if isinstance(func, Ref) else ""
