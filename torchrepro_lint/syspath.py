"""The directories that a project puts on ``sys.path``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from torchrepro_lint.facts import Attribute, Call, Constant, Do, Expression, Facts, Operation, Ref, Subscript
from torchrepro_lint.walk import statements

_SYS = frozenset({"sys", "sys.path"})
_METHODS = (("path", "append"), ("path", "insert"))
# What leaves a path as it is.
_SAME = ("os.path.abspath", "os.path.realpath", "os.path.normpath", "builtins.str", "pathlib.Path", "os.fspath")


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
    for statement in statements(facts.body):
        match statement:
            case Do(value=Call(func=Ref(roots=("sys",), path=words), args=args)) if words in _METHODS and args:
                for folder in _folders(path, args[-1].value):
                    yield _normal(folder)


def _folders(path: str, expression: Expression) -> Iterator[str]:
    """What a path may be, relative to the root; a literal counts from the file's directory and from the root."""
    here = _from_file(path, expression)
    if here is not None:
        yield here
        return
    match expression:
        case Constant(value=str(text)) if not text.startswith(("/", "~")):
            yield posixpath.join(posixpath.dirname(path), text)
            yield text
        case Call(func=func, args=(arg,)) if _name(func) in _SAME:
            yield from _folders(path, arg.value)


def _from_file(path: str, expression: Expression) -> str | None:
    """A path that is built from ``__file__``."""
    match expression:
        case Ref(roots=roots, path=()) if roots[0].endswith("__file__"):
            return path
        case Call(func=func, args=(arg,)) if _name(func) in _SAME:
            return _from_file(path, arg.value)
        case Call(func=func, args=(arg,)) if _name(func) == "os.path.dirname":
            inner = _from_file(path, arg.value)
            return None if inner is None else posixpath.dirname(_normal(inner))
        case Call(func=func, args=(first, *rest)) if _name(func) == "os.path.join":
            return _joined(_from_file(path, first.value), [arg.value for arg in rest])
        case Call(func=Attribute(value=value, name="resolve" | "absolute" | "as_posix"), args=()):
            return _from_file(path, value)
        case Attribute(value=value, name="parent"):
            inner = _from_file(path, value)
            return None if inner is None else posixpath.dirname(_normal(inner))
        case Subscript(value=Attribute(value=value, name="parents"), indices=(Constant(value=int(index)),)):
            inner = _from_file(path, value)
            for _ in range(min(index, 20) + 1) if inner is not None else ():
                inner = posixpath.dirname(_normal(inner or ""))
            return inner
        case Operation(op="/", operands=(left, right)):
            return _joined(_from_file(path, left), [right])
        case Operation(op="+", operands=(left, Constant(value=str(text)))):
            inner = _from_file(path, left)
            return None if inner is None else inner + text
    return None


def _joined(folder: str | None, parts: list[Expression]) -> str | None:
    for part in parts:
        if folder is None or not (isinstance(part, Constant) and isinstance(part.value, str)):
            return None
        folder = posixpath.join(folder, part.value)
    return folder


def _normal(folder: str) -> str:
    normal = posixpath.normpath(folder) if folder else ""
    return "" if normal == "." else normal


def _name(func: Expression) -> str:
    return ".".join((*func.roots[:1], *func.path)) if isinstance(func, Ref) else ""
