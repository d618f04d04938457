"""The command-line options that a project declares with argparse, click or absl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.facts import Attribute, Call, Collection, Constant, Expression, Ref
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.facts import Facts

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


class Options:
    """All options of a project, by word; a file is looked into when one of its options is asked for."""

    def __init__(self, files: Mapping[str, Facts]) -> None:
        self._files = files
        self._declared: dict[str, tuple[Option, ...]] = {}
        self._paths: dict[str, list[str]] = {}
        for path in sorted(files):
            for word in files[path].summary.options:
                self._paths.setdefault(word, []).append(path)

    def forget(self, path: str) -> None:
        """A file has changed, which declares options by the same words as before."""
        self._declared.pop(path, None)

    def named(self, word: str) -> list[Option]:
        """The options that are read by a word, in the order of files and declarations."""
        return [
            option for path in self._paths.get(word, ()) for option in self.declared_in(path) if option.word == word
        ]

    @property
    def words(self) -> list[str]:
        """The words by which the options of the project are read, sorted."""
        return sorted(self._paths)

    def declared_in(self, path: str) -> tuple[Option, ...]:
        """The options that a file declares."""
        if path not in self._declared:
            options = self._files[path].summary.options
            self._declared[path] = tuple(_declared(path, self._files[path])) if options else ()
        return self._declared[path]

    def of(self, path: str, expression: Expression) -> tuple[Option, ...]:
        """The options that ``args.arch``, ``args["arch"]`` or a click parameter ``arch`` of a file may read.

        A file that declares such an option reads its own; else it may be any of the project.
        """
        match expression:
            case Ref(path=(*_, word)) | Attribute(name=word):
                found = self.named(word)
            case Ref(roots=roots, path=()) if "<locals>" in roots[0]:
                found = [each for each in self.named(roots[0].rpartition(".")[2]) if _is_click(each.call)]
            case _:
                return ()
        own = tuple(each for each in found if each.path == path)
        return own or tuple(found)


def declared_word(call: Call) -> str:
    """The word by which a program reads the option that a call declares; empty where it declares none."""
    option = _option("", "", call)
    return option.word if option else ""


def _declared(path: str, facts: Facts) -> Iterator[Option]:
    bodies = [("", facts.body), *((each.name, each.body) for each in facts.functions)]
    for function, body in bodies:
        for statement in statements(body):
            for expression in expressions(statement):
                for each in within(expression):
                    if isinstance(each, Call) and (option := _option(path, function, each)):
                        yield option


def _option(path: str, function: str, call: Call) -> Option | None:
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
    return word == "add_argument" or word.startswith("DEFINE_") or (word == "option" and _is_click(call))


def _is_click(call: Call) -> bool:
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
