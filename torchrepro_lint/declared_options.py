"""Declarations of command-line options: what a call of argparse, click or absl says of the option that it declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Ref

_CLICK = frozenset(f"{library}.option" for library in ("click", "rich_click", "cloup", "asyncclick"))
_NONE = Constant(0, 0, None)
_SWITCHES = {"store_true": Constant(0, 0, False), "store_false": Constant(0, 0, True)}


class Option(NamedTuple):
    """An option: where it is declared (in ``function``, empty for the top level), as it is typed, the word by which the
    program reads it, its literal default and choices.

    ``default`` is None where it is not literal or the option is required; an option without one has the literal None.
    """

    path: str
    function: str
    call: Call
    flag: str
    word: str
    default: Constant | None
    choices: tuple[Constant, ...]

    @property
    def literals(self) -> tuple[Constant, ...]:
        """What the option may be as far as the program says: its default, else its choices."""
        return (self.default,) if self.default and self.default.value is not None else self.choices


def declared_word(call: Call) -> str:
    """The word by which a program reads the option that a call declares; empty where it declares none."""
    option = option_of("", "", call)
    return option.word if option else ""


def option_of(path: str, function: str, call: Call) -> Option | None:
    """The option that a call of a function declares, if it declares any."""
    if not _declares(call):
        return None
    flags = [arg.value.value for arg in call.args if arg.keyword is None and isinstance(arg.value, Constant)]
    texts = [flag for flag in flags if isinstance(flag, str)]
    if not texts:
        return None
    given = {arg.keyword: arg.value for arg in call.args if arg.keyword}
    if _is_absl(call):
        texts = texts[:1]
        if len(call.args) > 1:
            given.setdefault("default", call.args[1].value)
    named = given.get("dest")
    word = named.value if isinstance(named, Constant) and isinstance(named.value, str) else _word(texts)
    flag = max(texts, key=lambda text: (text.startswith("--"), text.startswith("-")))
    choices = tuple(_literals(given.get("choices", given.get("type"))))
    return Option(path, function, call, flag, word, _default(given), choices)


def _declares(call: Call) -> bool:
    """Asked of every call of every file."""
    func = call.func
    if type(func) is Attribute:
        return func.name == "add_argument"
    if type(func) is not Ref:
        return False
    if not func.path:
        return not _CLICK.isdisjoint(func.roots)
    word = func.path[-1]
    return word == "add_argument" or word.startswith("DEFINE_") or (word == "option" and is_click(call))


def is_click(call: Call) -> bool:
    """Whether a call makes an option of click."""
    func = call.func
    return isinstance(func, Ref) and any(".".join((root, *func.path)) in _CLICK for root in func.roots)


def _is_absl(call: Call) -> bool:
    return isinstance(call.func, Ref) and bool(call.func.path) and call.func.path[-1].startswith("DEFINE_")


def _default(given: Mapping[str, Expression]) -> Constant | None:
    if "default" in given:
        default = given["default"]
        return default if isinstance(default, Constant) else None
    action, required = given.get("action"), given.get("required")
    if isinstance(action, Constant) and action.value in _SWITCHES:
        return _SWITCHES[str(action.value)]
    is_required = isinstance(required, Constant) and required.value is not False
    return None if is_required else _NONE


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
