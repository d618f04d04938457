"""TRL109: a seed option that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.forward_uses import CONFIGURATION_NAME, OptionReads, option_reads
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import declared_default
from torchrepro_lint.domain.programs import programs_of, programs_reaching
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Class,
    Collection,
    Constant,
    Expression,
    Function,
    Record,
    Ref,
    span,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    instance_value,
    last_word,
    module_symbol,
    path_of,
    simple_name,
)
from torchrepro_lint.trace.bodies import COMMAND_LINES
from torchrepro_lint.trace.traces import Context

_SEED = lazy_pattern(r"(?=\w*\Z)(?:(?!(num|n|nb|number|max)_)(\w+_)?seed(_\w+)?|(manual|random|global|rng)Seed)")
_COMMAND_WORDS = frozenset(map(last_word, COMMAND_LINES))
_DATACLASS_DECORATORS = frozenset(
    {"dataclasses.dataclass", "attr.s", "attrs.define", "attr.dataclass", "pydantic.dataclasses.dataclass"}
)


class _SeedOption(Record, frozen=True):
    """A seed option: its place, its flag as typed, the word by which it is read, its declaration, and the object that
    holds it.

    ``holder`` is a resolved name; empty for argparse's namespace. ``function`` is the function that has it as a
    parameter.
    """

    place: Span
    flag: str
    word: str
    by: Expression | None
    holder: str
    function: str


def check(context: Context) -> Iterator[Finding]:
    """Options whose declaration an entry point reaches."""
    for declared in _seed_options(context):
        programs = programs_reaching(context.project, declared.function or module_symbol(context.path))
        files = sorted({path for program in programs for path in program.run.paths})
        if files and not _is_read(context, declared, files):
            message = f"{declared.flag} is declared but nothing reads it; pass it to the seeders or drop it"
            yield Finding("TRL109", declared.place, message)


def _seed_options(context: Context) -> Iterator[_SeedOption]:
    for option in context.project.resolver.options.declared_in(context.path):
        if _SEED.fullmatch(option.word):
            function = f"{context.path}{option.function}" if option.function else ""
            click = isinstance(option.call.func, Ref) and option.call.func.path[-1:] == ("option",)
            holder = _decorated_function(context, option.call) if click else ""
            yield _SeedOption(span(option.call), option.flag, option.word, option.call, holder, function)
    for owner in context.tree.classes:
        yield from _field_options(context, owner)
    for name, values in context.tree.assigned.items():
        for how, value in values:
            if how == "=" and isinstance(value, Collection) and CONFIGURATION_NAME.fullmatch(simple_name(name)):
                yield from _key_options(context.path, name, value)
    for command in sorted({*_commands(context)}):
        for definition in context.project.resolver.functions(command):
            yield from _parameter_options(context, command, definition)


def _commands(context: Context) -> Iterator[str]:
    """The functions of a file that a command line calls: a typer command, and what ``typer.run`` or ``fire.Fire`` is given."""
    yield from (each.entry.function for each in programs_of(context.project, context.path) if each.entry.function)
    for site in context.project.calls_by(context.path, _COMMAND_WORDS):
        if site.call.args and not COMMAND_LINES.isdisjoint(site.names):
            given = context.project.names(context.path, site.call.args[0].value)
            yield from (name for name in given if in_project(name) and path_of(name) == context.path)


def _decorated_function(context: Context, call: Call) -> str:
    """The function that a click option decorates."""
    return next((context.path + each.name for each in context.tree.functions if call in each.decorators), "")


def _field_options(context: Context, owner: Class) -> Iterator[_SeedOption]:
    """Fields of a dataclass, and of a class that is named like a configuration and only holds constants."""
    decorators = [each.func if isinstance(each, Call) else each for each in owner.decorators]
    plain = not (decorators or owner.bases or owner.methods) and CONFIGURATION_NAME.fullmatch(simple_name(owner.name))
    if plain or any(
        _DATACLASS_DECORATORS.intersection(context.project.names(context.path, each)) for each in decorators
    ):
        for statement in owner.body:
            match statement:
                case Assign(targets=(Ref(roots=(root, *_)), *_), value=value) if _SEED.fullmatch(simple_name(root)):
                    default = declared_default(context.project.resolver, context.path, value) if value else None
                    if isinstance(default, Constant):
                        word, holder = simple_name(root), instance_value(f"{context.path}{owner.name}")
                        yield _SeedOption(span(statement), word, word, value, holder, "")


def _key_options(path: str, name: str, display: Collection) -> Iterator[_SeedOption]:
    if display.kind == "dict":
        for key, value in zip(display.items[::2], display.items[1::2], strict=True):
            if not (isinstance(key, Constant) and isinstance(value, Constant)):
                continue
            if isinstance(key.value, str) and _SEED.fullmatch(key.value):
                yield _SeedOption(span(key), key.value, key.value, key, f"{path}{name}", "")


def _parameter_options(context: Context, name: str, function: Function) -> Iterator[_SeedOption]:
    """Parameters of a command; click's have their own declaration."""
    options = context.project.resolver.options
    for param in function.params:
        if param.default is not None and _SEED.fullmatch(param.name) and not options.named(param.name):
            row = context.lines.position(param.default.start).row
            start = context.lines.offset(row)
            found = context.lines.text.rfind(param.name, start, param.default.start)
            place = Span(max(found, start), param.default.end)
            yield _SeedOption(place, param.name, param.name, None, name, name)


def _is_read(context: Context, declared: _SeedOption, files: list[str]) -> bool:
    reads: OptionReads = option_reads(context.project, files)
    if declared.holder and context.project.resolver.functions(declared.holder):
        return reads.reads_parameter(declared.holder, declared.word)
    if reads.reads_word(declared.word, declared.by):
        return True
    return reads.escapes(declared.holder)
