"""Constants of a module that are the program's seed: ``SEED``, and ``CFG.seed`` of a class that only holds constants."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.fixes.program_seed import SEED_NAME, SeedValue, binds, class_fields, is_integer
from torchrepro_lint.checks.forward_uses import CONFIGURATION_NAME
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.nodes import Constant, Expression, Statement
from torchrepro_lint.syntax.scopes import ControlFlowPosition
from torchrepro_lint.trace.traces import Traces


def module_constant(project: Traces, path: str, position: ControlFlowPosition) -> SeedValue | None:
    """``SEED`` of the module, its own or imported, if it is bound before; or ``CFG.seed``."""
    for text, binding in _seed_constants(project, path):
        if position.function is not None:
            return SeedValue(text, None)
        if binding.start < position.spots[0].statement.start:
            return SeedValue(text, binding)
    return None


@query()
def _seed_constants(project: Traces, path: str) -> tuple[tuple[str, Statement], ...]:
    """The seed constants of a module, with the statements that bind them."""
    return tuple(_find_seed_constants(project, path))


def _find_seed_constants(project: Traces, path: str) -> Iterator[tuple[str, Statement]]:
    tree = project.files[path]
    for word, names in tree.exports:
        if len(names) != 1:
            continue
        found = _values(project, path, word, names[0])
        if len(found) != 1 or not is_integer(found[0][1]) or not isinstance(found[0][1], Constant):
            continue
        binding = next((each for each in tree.body if binds(each, word)), None)
        if binding is not None:
            yield found[0][0], binding


def _values(project: Traces, path: str, word: str, name: str) -> list[tuple[str, Expression]]:
    """The values of a seed constant, or of the seed that a class holds, each with how it is written."""
    targets = project.resolver.modules.resolve(path, name)
    if SEED_NAME.fullmatch(word):
        return [(word, value) for target in targets for _, value in project.resolver.assigned(target)]
    if not CONFIGURATION_NAME.fullmatch(word):
        return []
    return [
        (f"{word}.{attribute}", value)
        for target in targets
        for definition in project.resolver.classes(target)
        if not definition.decorators and not definition.bases
        for attribute, value in class_fields(project, target)
        if SEED_NAME.fullmatch(attribute)
    ]
