"""The program's own seed at a place: an option, a field of a configuration, a parameter, a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.domain.project import Project
from torchrepro_lint.rewrites.seed_fields import field_writes, fields, may_be_number, of_option, unless_none
from torchrepro_lint.rewrites.seed_uses import WORD, seed_uses, targets_of
from torchrepro_lint.rewrites.seeds_before import is_integer, last_bound, seed_block
from torchrepro_lint.syntax.control_flow import Level
from torchrepro_lint.syntax.nodes import Constant, Import, Ref, Statement

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
    found = [*_parameters(project, path, level), *_variables(project, path, level)]
    return min(found, key=lambda each: each.after.end if each.after else 0, default=None)


def _literal(project: Project, path: str, level: Level) -> SeedValue | None:
    """The 7 of ``torch.manual_seed(7)`` or ``seed_all(7)``, where the function has called that before."""
    for spot in level.spots:
        found = seed_block(project, path, level, spot.block).literal
        if found is not None and found[0] < spot.at:
            return SeedValue(found[1], spot.block[found[0]])
    return None


def _parameters(project: Project, path: str, level: Level) -> Iterator[SeedValue]:
    """``seed`` of ``def main(seed)``, and ``args.seed`` of ``def main(args)``."""
    if level.function is None:
        return
    for param in level.function.params:
        root = f"{level.function.name}.<locals>.{param.name}"
        making = level.function.owner and param.name == level.function.params[0].name and root.endswith(_OWN)
        if param.kind.startswith("*") or making or last_bound(project, path, level, root) >= 0:
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


def _variables(project: Project, path: str, level: Level) -> Iterator[SeedValue]:
    """``args.seed`` after ``args = parser.parse_args()``, ``seed`` after ``seed = 7``."""
    for spot in level.spots:
        for at, root, word in seed_block(project, path, level, spot.block).variables:
            if at >= spot.at:
                break
            statement = spot.block[at]
            if last_bound(project, path, level, root) > statement.start:
                continue
            if WORD.fullmatch(word):
                yield SeedValue(word, statement)
            else:
                last = max([statement, *field_writes(project, level, root)], key=lambda each: each.start)
                yield from (SeedValue(text, last) for text in fields(project, path, level, root, word))


def module_constant(project: Project, path: str, level: Level) -> SeedValue | None:
    """``SEED`` of the module, its own or imported, where it is bound before."""
    known = _CONSTANTS.get(project)
    if known is None:
        known = _CONSTANTS[project] = {}
    if path not in known:
        known[path] = tuple(_constants(project, path))
    for word, binding in known[path]:
        if level.function is not None:
            return SeedValue(word, None)
        if binding.start < level.spots[0].statement.start:
            return SeedValue(word, binding)
    return None


_CONSTANTS: WeakKeyDictionary[Project, dict[str, tuple[tuple[str, Statement], ...]]] = WeakKeyDictionary()


def _constants(project: Project, path: str) -> Iterator[tuple[str, Statement]]:
    """The seeds that a module has, with the statements that bind them."""
    facts = project.files[path]
    for word, names in facts.exports:
        if not WORD.fullmatch(word) or len(names) != 1:
            continue
        values = [
            value
            for target in project.resolver.modules.resolve(path, names[0])
            for _, value in project.resolver.assigned(target)
        ]
        if len(values) != 1 or not is_integer(values[0]) or not isinstance(values[0], Constant):
            continue
        binding = next((each for each in facts.body if _binds(each, word)), None)
        if binding is not None:
            yield word, binding


def _binds(statement: Statement, word: str) -> bool:
    if isinstance(statement, Import):
        return any(local == word for local, _ in statement.names)
    return any(
        isinstance(each, Ref) and each.roots == (f":{word}",) and not each.path for each in targets_of(statement)
    )
