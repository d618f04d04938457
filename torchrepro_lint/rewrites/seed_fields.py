"""The seed in a namespace, a configuration or an object, if the project shows that there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchrepro_lint.builtin_words import means_builtin
from torchrepro_lint.domain.project import Project
from torchrepro_lint.domain.rng.seeders import changing_source
from torchrepro_lint.rewrites.seed_uses import WORD, seed_uses, targets_of
from torchrepro_lint.syntax.control_flow import Level
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, Ref, Statement, path_of
from torchrepro_lint.syntax.summary import Option
from torchrepro_lint.syntax.visitor import statements

# What a seed is where the program has none.
FALLBACK = "0"
_PARSED = re.compile(r".*\.(parse_args|parse_known_args|parse_intermixed_args|parse_args_into_dataclasses)\(\)(\[\])*")


def fields(project: Project, path: str, level: Level, root: str, word: str) -> tuple[str, ...]:
    """How the seed in a namespace, a configuration or an object is written, if the project shows that it is there."""
    uses = seed_uses(project, level.body)
    if root in uses.writes:
        return tuple(_fields(project, path, level, root, word))
    # Nothing of it depends on the place in the body.
    if (root, word) not in uses.fields:
        uses.fields[root, word] = tuple(_fields(project, path, level, root, word))
    return uses.fields[root, word]


def _fields(project: Project, path: str, level: Level, root: str, word: str) -> Iterator[str]:
    variable = Ref(0, 0, (root,), (), 0)
    written = {
        target.path
        for each in field_writes(project, level, root)
        for inner in statements((each,))
        for target in targets_of(inner)
        if isinstance(target, Ref)
    }
    for option in _seed_options(project, path, variable):
        # ``if args.seed is None: args.seed = …`` has made sure that there is one.
        yield from of_option(project, path, option, f"{word}.{option.word}", given=(option.word,) in written)
        return
    for name in project.resolver.names_of(path, variable):
        if ":" in name and name.endswith("()"):
            for attribute, value in _class_fields(project, name[:-2]):
                if not WORD.fullmatch(attribute) or not may_be_number(value):
                    continue
                if changing_source(project.resolver, path_of(name), value) is None:
                    yield unless_none(f"{word}.{attribute}", value)
                    return
    for reference in _reads(project, level, root):
        text = ".".join((word, *reference.path))
        yield unless_none(text, Constant(0, 0, None) if seed_uses(project, level.body).tests(reference) else None)
        return


def _seed_options(project: Project, path: str, variable: Ref) -> Iterator[Option]:
    """The seed options in a variable, or a parameter, that is what a parser of options in the same file returns."""
    names = project.resolver.names_of(path, variable) or project.resolver.through_calls(path, variable)
    if any(_PARSED.fullmatch(name) for name in names):
        parsed_in = {file for file, _ in project.resolver.made(path, variable)} | {path}
        for word in project.resolver.options.words:
            if WORD.fullmatch(word):
                yield from (each for each in project.resolver.options.named(word) if each.path in parsed_in)


def _class_fields(project: Project, owner: str) -> Iterator[tuple[str, Expression]]:
    for each in project.resolver.ancestry(owner):
        for definition in project.resolver.classes(each):
            for statement in definition.body:
                if isinstance(statement, Assign) and statement.value is not None:
                    for target in statement.targets:
                        if isinstance(target, Ref) and not target.path:
                            yield target.roots[0].rpartition(".")[2].lstrip(":"), statement.value
        for word, values in project.resolver.instance_attributes(each).items() if ":" in each else ():
            yield from ((word, value) for how, _, value in values if how == "=")


def _reads(project: Project, level: Level, root: str) -> Iterator[Ref]:
    """Where the function reads a seed from a variable: ``cfg.train.seed``. What it writes itself may not be there yet."""
    uses = seed_uses(project, level.body)
    if root in uses.writes:
        early = {id(inner) for outer in level.before for inner in statements((outer,))}
        if any(id(each) not in early for each in uses.writes[root]):
            return
    yield from uses.read.get(root, ())


def field_writes(project: Project, level: Level, root: str) -> list[Statement]:
    """The statements before that assign to a seed in a variable, with the blocks that they stand in."""
    writing = {id(each) for each in seed_uses(project, level.body).writes.get(root, ())}
    return (
        [outer for outer in level.before for inner in statements((outer,)) if id(inner) in writing] if writing else []
    )


def of_option(project: Project, path: str, option: Option, text: str, *, given: bool = False) -> Iterator[str]:
    """An option as an integer, written in ``path``: one that is off by default and not ``given``, or that comes as text, is
    turned into one.
    """
    kind = next((arg.value for arg in option.call.args if arg.keyword == "type"), None)
    names = project.names(option.path, kind) if kind is not None else ()
    default = option.default.value if option.default else 0
    if isinstance(default, (str, bool, bytes)) or (kind is not None and "builtins.str" in names):
        return
    is_integer = "builtins.int" in names or (kind is not None and not names) or "click.INT" in names
    is_click = isinstance(option.call.func, Ref) and option.call.func.path[-1:] == ("option",)
    is_absl = isinstance(option.call.func, Ref) and option.call.func.path[-1:] == ("DEFINE_integer",)
    converted = text if is_integer or is_absl or (is_click and type(default) is int) else f"int({text})"
    if converted != text and not means_builtin(project, path, "int"):
        return
    yield (
        f"{FALLBACK} if {text} is None else {converted}"
        if option.default and default is None and not given
        else converted
    )


def unless_none(text: str, default: Expression | None) -> str:
    if isinstance(default, Constant) and default.value is None:
        return f"{FALLBACK} if {text} is None else {text}"
    return text


def may_be_number(value: Expression | None) -> bool:
    """What is assigned to a seed, as far as that is known: an integer, None, or an expression."""
    return not isinstance(value, Constant) or value.value is None or type(value.value) is int
