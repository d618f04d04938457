"""The program's own seed at a place: an option, a field of a configuration, a parameter, a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import Assign, Call, Constant, Do, Expression, Import, Operation, Ref, Statement, With
from torchrepro_lint.nesting import Level
from torchrepro_lint.project import Project
from torchrepro_lint.rewrites.seed_fields import field_writes, fields, may_be_number, of_option, unless_none
from torchrepro_lint.rewrites.seed_uses import WORD, seed_uses, targets_of
from torchrepro_lint.walk import statements

_HIGHEST = 2**32
# The object that a constructor is still making.
_OWN = (".__init__.<locals>.self", ".__new__.<locals>.cls")


class SeedValue(NamedTuple):
    """How a seed is written, and the statement after which it can be (None: from the start of the function on)."""

    text: str
    after: Statement | None


def seed_at(project: Project, path: str, level: Level) -> SeedValue | None:
    """The program's own seed, as a statement at ``level`` can write it; None where it has none."""
    own = own_seed(project, path, level) or module_constant(project, path, level)
    return own or _literal(project, path, level)


def own_seed(project: Project, path: str, level: Level) -> SeedValue | None:
    """An option, a field, a parameter or a variable: the one that is known first."""
    bound = _bound(level)
    found = [*_parameters(project, path, level, bound), *_variables(project, path, level, bound)]
    return min(found, key=lambda each: each.after.end if each.after else 0, default=None)


def _literal(project: Project, path: str, level: Level) -> SeedValue | None:
    """The 7 of ``torch.manual_seed(7)`` or ``seed_all(7)``, where the function has called that before."""
    for statement in level.before:
        match statement:
            case Do(value=Call(args=(first, *_)) as call) if _is_integer(project, path, first.value):
                if isinstance(first.value, Constant) and project.only_seeds(path, call):
                    return SeedValue(str(first.value.value), statement)
    return None


def _parameters(project: Project, path: str, level: Level, bound: dict[str, int]) -> Iterator[SeedValue]:
    """``seed`` of ``def main(seed)``, and ``args.seed`` of ``def main(args)``."""
    if level.function is None:
        return
    for param in level.function.params:
        root = f"{level.function.name}.<locals>.{param.name}"
        making = level.function.owner and param.name == level.function.params[0].name and root.endswith(_OWN)
        if param.kind.startswith("*") or root in bound or making:
            continue
        if WORD.fullmatch(param.name):
            click = project.resolver.options.of(path, Ref(0, 0, (root,), (), 0))
            if click:
                yield from (SeedValue(text, None) for text in of_option(project, path, click[0], param.name))
            elif may_be_number(param.default):
                tested = seed_uses(project, level.body).tests(Ref(0, 0, (root,), (), 0))
                none = Constant(0, 0, None) if tested else param.default
                yield SeedValue(unless_none(param.name, none), None)
        else:
            yield from (SeedValue(text, None) for text in fields(project, path, level, root, param.name))


def _variables(project: Project, path: str, level: Level, bound: dict[str, int]) -> Iterator[SeedValue]:
    """``args.seed`` after ``args = parser.parse_args()``, ``seed`` after ``seed = 7``."""
    for statement in level.before:
        for target in statement.targets if isinstance(statement, Assign) and statement.op in ("=", ":") else ():
            if (
                not isinstance(target, Ref)
                or target.path
                or len(target.roots) != 1
                or not isinstance(statement, Assign)
            ):
                continue
            root, word = target.roots[0], _word(target.roots[0])
            if bound[root] > statement.start or statement.value is None:
                continue
            if WORD.fullmatch(word):
                if _is_integer(project, path, statement.value):
                    yield SeedValue(word, statement)
            else:
                last = max([statement, *field_writes(project, level, root)], key=lambda each: each.start)
                yield from (SeedValue(text, last) for text in fields(project, path, level, root, word))


def _bound(level: Level) -> dict[str, int]:
    """The variables that statements before bind, each with the start of the last one that does, in whatever block."""
    found: dict[str, int] = {}
    for outer in level.before:
        for statement in statements((outer,)):
            for target in (
                *targets_of(statement),
                *((each for _, each in statement.items if each) if isinstance(statement, With) else ()),
            ):
                if isinstance(target, Ref) and not target.path:
                    found.update(dict.fromkeys(target.roots, outer.start))
    return found


def _is_integer(project: Project, path: str, value: Expression) -> bool:
    """A literal, or what is read from an option, or one of them as an alternative: nothing that changes between runs."""
    match value:
        case Constant(value=number):
            return type(number) is int and 0 <= number < _HIGHEST
        case Ref(path=(*_, word)):
            return bool(WORD.fullmatch(word))
        case Operation(op="if" | "or", operands=operands):
            return all(_is_integer(project, path, each) for each in operands[-2:])
        case Call(func=Ref(roots=("builtins.int",)), args=(arg,)):
            return _is_integer(project, path, arg.value)
    return False


def module_constant(project: Project, path: str, level: Level) -> SeedValue | None:
    """``SEED`` of the module, its own or imported, where it is bound before."""
    facts = project.files[path]
    for word, names in facts.exports:
        if not WORD.fullmatch(word) or len(names) != 1:
            continue
        values = [
            value
            for target in project.resolver.modules.resolve(path, names[0])
            for _, value in project.resolver.assigned(target)
        ]
        if len(values) != 1 or not _is_integer(project, path, values[0]) or not isinstance(values[0], Constant):
            continue
        binding = next((each for each in facts.body if _binds(each, word)), None)
        if binding is not None and (level.function is not None or binding in level.before):
            return SeedValue(word, None if level.function is not None else binding)
    return None


def _binds(statement: Statement, word: str) -> bool:
    if isinstance(statement, Import):
        return any(local == word for local, _ in statement.names)
    return any(
        isinstance(each, Ref) and each.roots == (f":{word}",) and not each.path for each in targets_of(statement)
    )


def _word(name: str) -> str:
    return name.rpartition(".")[2].lstrip(":")
