"""The command-line options that a project declares: argparse, click, typer and absl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Ref
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchrepro_lint.facts import Facts

_CLICK = ("click.option", "rich_click.option", "cloup.option", "asyncclick.option")


class Option(NamedTuple):
    """An option: where it is declared, the word by which the program reads it, its literal default and choices.

    ``default`` is None where none is given, which for every one of the four means None.
    """

    path: str
    call: Call
    word: str
    default: Constant | None
    choices: tuple[Constant, ...]

    @property
    def literals(self) -> tuple[Constant, ...]:
        """What the option may be as far as the program says: its default, else its choices."""
        return (self.default,) if self.default and self.default.value is not None else self.choices


class Options:
    """All options of a project, by word."""

    def __init__(self, files: Mapping[str, Facts]) -> None:
        self.by_word: dict[str, list[Option]] = {}
        for path in sorted(files):
            for option in _declared(path, files[path]):
                self.by_word.setdefault(option.word, []).append(option)

    def of(self, expression: Expression) -> tuple[Option, ...]:
        """The options that ``args.arch``, ``cfg["arch"]`` or a click parameter ``arch`` may read."""
        match expression:
            case Ref(path=(*_, word)) | Attribute(name=word):
                return tuple(self.by_word.get(word, ()))
            case Ref(roots=roots, path=()) if "<locals>" in roots[0]:
                return tuple(self.by_word.get(roots[0].rpartition(".")[2], ()))
        return ()


def _declared(path: str, facts: Facts) -> Iterator[Option]:
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            for expression in expressions(statement):
                for each in within(expression):
                    if isinstance(each, Call) and (option := _option(path, each)):
                        yield option


def _option(path: str, call: Call) -> Option | None:
    match call.func:
        case Ref(path=(*_, "add_argument")) | Attribute(name="add_argument"):
            flags = [arg.value.value for arg in call.args if arg.keyword is None and isinstance(arg.value, Constant)]
        case Ref(roots=roots, path=words) if any(".".join((root, *words)) in _CLICK for root in roots):
            flags = [arg.value.value for arg in call.args if arg.keyword is None and isinstance(arg.value, Constant)]
        case Ref(path=(*_, word)) if word.startswith("DEFINE_"):
            flags = [arg.value.value for arg in call.args[:1] if isinstance(arg.value, Constant)]
        case _:
            return None
    given = {arg.keyword: arg.value for arg in call.args if arg.keyword}
    named = given.get("dest")
    texts = [flag for flag in flags if isinstance(flag, str)]
    if isinstance(named, Constant) and isinstance(named.value, str):
        word = named.value
    elif texts:
        word = _word(texts)
    else:
        return None
    default = given.get("default", call.args[1].value if _is_flag(call) and len(call.args) > 1 else None)
    choices = given.get("choices", given.get("type"))
    return Option(path, call, word, default if isinstance(default, Constant) else None, tuple(_literals(choices)))


def _is_flag(call: Call) -> bool:
    return isinstance(call.func, Ref) and call.func.path[-1:] != () and call.func.path[-1].startswith("DEFINE_")


def _word(flags: list[str]) -> str:
    """A bare name, else the first long flag, else the first: ``--learning-rate`` is read as ``learning_rate``."""
    bare = [flag for flag in flags if not flag.startswith("-")]
    long = [flag for flag in flags if flag.startswith("--")]
    return (bare or long or flags)[0].lstrip("-").partition("/")[0].replace("-", "_")


def _literals(choices: Expression | None) -> Iterator[Constant]:
    """The literals of ``choices=[…]`` or ``click.Choice([…])``."""
    if isinstance(choices, Call) and choices.args:
        choices = choices.args[0].value
    if isinstance(choices, Collection) and choices.kind != "dict":
        yield from (item for item in choices.items if isinstance(item, Constant))
