"""Options: those of the command line that a project declares with argparse, click or absl, and the entries of a configuration, as
they are written in a dictionary, read from it and stored in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.definitions import ContainerUpdate, container_updates, targets
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Record,
    Ref,
    Statement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import is_local, is_own, simple_name
from torchrepro_lint.syntax.visitor import body_expressions, expressions_within, last_identifier, receiver_of

_CLICK = frozenset(f"{library}.option" for library in ("click", "rich_click", "cloup", "asyncclick"))
_FLAG = lazy_pattern(r"--?[A-Za-z][\w-]*")
# Arguments of argparse's that other functions that get a flag hardly have.
_ARGPARSE = frozenset({"type", "action", "nargs", "required", "choices", "dest", "metavar"})
_NONE = Constant(0, 0, None)
_SWITCHES = {"store_true": Constant(0, 0, False), "store_false": Constant(0, 0, True)}

# Methods of a dictionary that give the value of a key.
_PARTS = frozenset({"get", "pop"})
# Stands for a key that is not known.
ANY_KEY = "*"


class Option(Record, frozen=True):
    """A command-line option: where it is declared (``function`` is empty at the top level), its flag as typed, the identifier by
    which the program reads it, its default and literal choices, and what converts its text (None: nothing does).

    ``default`` is None where the option is required; an option without one has the literal ``None``.
    """

    path: str
    function: str
    call: Call
    flag: str
    word: str
    default: Expression | None
    choices: tuple[Constant, ...]
    converter: Expression | None = None

    @property
    def is_text(self) -> bool:
        """Whether the option always has a text: it is required, or has its place, and nothing converts it."""
        words = {arg.keyword for arg in self.call.args}
        if "nargs" in words:
            return False
        placed = not self.flag.startswith("-") and not is_click(self.call) and "default" not in words
        named = last_identifier(self.converter) if self.converter is not None else "str"
        return (self.default is None or placed) and named in ("str", "Path") and not self.choices

    @property
    def literals(self) -> tuple[Constant, ...]:
        """The known values of the option: its choices, and its default."""
        default = (self.default,) if isinstance(self.default, Constant) and self.default.value is not None else ()
        return self.choices + tuple(each for each in default if each.value not in [one.value for one in self.choices])


def declared_word(call: Call) -> str:
    """The identifier by which a program reads the option that a call declares; empty where it declares none."""
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
        if (default := known_argument(call, 1, "default")) is not None:
            given["default"] = default
    named = given.get("dest")
    word = named.value if isinstance(named, Constant) and isinstance(named.value, str) else _identifier(texts)
    flag = max(texts, key=lambda text: (text.startswith("--"), text.startswith("-")))
    choices = tuple(_literals(given.get("choices", given.get("type"))))
    return Option(path, function, call, flag, word, _default(given), choices, given.get("type"))


def _declares(call: Call) -> bool:
    """Whether a call declares an option; called for every call of every file."""
    func = call.func
    if type(func) is Attribute:
        return func.name == "add_argument"
    if type(func) is not Ref:
        return False
    if not func.path:
        return not _CLICK.isdisjoint(func.roots) or _takes_flag(call)
    word = func.path[-1]
    return word == "add_argument" or word.startswith("DEFINE_") or (word == "option" and is_click(call))


def _takes_flag(call: Call) -> bool:
    """Whether a function of the program's own gets a flag and what argparse takes: ``add = parser.add_argument; add("--n", type=int)``."""
    if not call.args or all(arg.keyword not in _ARGPARSE for arg in call.args):
        return False
    first, func = call.args[0].value, call.func
    is_flag = isinstance(first, Constant) and isinstance(first.value, str) and _FLAG.fullmatch(first.value) is not None
    return is_flag and isinstance(func, Ref) and any(map(is_own, func.roots))


def is_click(call: Call) -> bool:
    """Whether a call declares an option of click."""
    func = call.func
    return isinstance(func, Ref) and any(".".join((root, *func.path)) in _CLICK for root in func.roots)


def _is_absl(call: Call) -> bool:
    return isinstance(call.func, Ref) and bool(call.func.path) and call.func.path[-1].startswith("DEFINE_")


def _default(given: Mapping[str, Expression]) -> Expression | None:
    required = given.get("required")
    if isinstance(required, Constant) and required.value is not False:
        return None  # the parser ignores a default
    if "default" in given:
        return given["default"]
    action = given.get("action")
    if isinstance(action, Constant) and action.value in _SWITCHES:
        return _SWITCHES[str(action.value)]
    return _NONE


def _identifier(flags: list[str]) -> str:
    """The identifier of an option: a bare name, else the first long flag, else the first; ``--learning-rate`` is ``learning_rate``."""
    bare = [flag for flag in flags if not flag.startswith("-")]
    long = [flag for flag in flags if flag.startswith("--")]
    return (bare or long or flags)[0].lstrip("-").partition("/")[0].replace("-", "_")


def _literals(choices: Expression | None) -> Iterator[Constant]:
    """The literals of ``choices=[…]`` or ``click.Choice([…])``."""
    if isinstance(choices, Call) and choices.args:
        choices = choices.args[0].value
    if isinstance(choices, Collection) and choices.kind != "dict":
        yield from (item for item in choices.items if isinstance(item, Constant))


def entry_of_vars(display: Expression, key: str) -> Expression | None:
    """The attribute that an entry of ``vars(args)`` is."""
    match display:
        case Call(func=Ref(roots=("builtins.vars",), path=()), args=(Arg(value=namespace),)):
            return Attribute(display.start, display.end, namespace, key, display.end)
    return None


def read_of_getattr(call: Call) -> Expression | None:
    """The attribute that ``getattr(args, "seed", -1)`` reads where there is one."""
    match call:
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(Arg(value=Ref() as held), Arg(value=name), *_)):
            if isinstance(name, Constant) and isinstance(name.value, str):
                return held._replace(path=(*held.path, name.value))
    return None


class Options:
    """The options of a project, by word; a file is looked into when one of its options is asked for."""

    def __init__(self, files: Mapping[str, SyntaxTree]) -> None:
        self._files = files
        self._declared: dict[str, tuple[Option, ...]] = {}
        self._paths: dict[str, list[str]] = {}
        for path in sorted(files):
            for word in files[path].summary.options:
                self._paths.setdefault(word, []).append(path)

    def forget(self, path: str) -> None:
        """Drop the options of a changed file, which declares the same words as before."""
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
            case Ref(roots=roots, path=()) if is_local(roots[0]):
                found = [each for each in self.named(simple_name(roots[0])) if is_click(each.call)]
            case _:
                return ()
        own = tuple(each for each in found if each.path == path)
        return own or tuple(found)


def _declared(path: str, facts: SyntaxTree) -> Iterator[Option]:
    bodies = [("", facts.body), *((each.name, each.body) for each in facts.functions)]
    calls = [(name, each) for name, body in bodies for each in body_expressions(body) if isinstance(each, Call)]
    reset = [arg for _, call in calls if last_identifier(call.func) == "set_defaults" for arg in call.args]
    for function, call in calls:
        if option := option_of(path, function, call):
            given = [arg.value for arg in reset if arg.keyword == option.word or arg.star]
            yield option._replace(default=given[0] if len(given) == 1 else None) if given else option


def read_part(value: Expression) -> tuple[Expression, str] | None:
    """What an expression reads a part of, and the key: ``config["model"]``, ``config.get("model")``, ``build().model``."""
    match value:
        case Subscript(value=inner, indices=(Constant(value=str() | int() as word),)):
            return inner, str(word)
        case Call(func=func, args=(Arg(value=Constant(value=str(word))), *_)) if last_identifier(func) in _PARTS:
            holder = receiver_of(func)
            return None if holder is None else (holder, word)
        case Attribute(value=inner, name=word):
            return inner, word
    return None


def stores_of(statement: Statement) -> Iterator[tuple[Expression, str, Expression | None]]:
    """The containers and objects in which a statement stores something, each with the key or attribute, and the value."""
    for target in targets(statement):
        if isinstance(target, Ref | Attribute) and (holder := receiver_of(target)) is not None:
            yield holder, last_identifier(target), statement.value if isinstance(statement, Assign) else None
    for call in expressions_within(statement):
        if isinstance(call, Call) and last_identifier(call.func) == "setattr" and len(call.args) == 3:
            named = call.args[1].value
            word = named.value if isinstance(named, Constant) and isinstance(named.value, str) else ANY_KEY
            yield call.args[0].value, word, call.args[2].value
    for holder, change in container_updates(statement):
        match change:
            case ContainerUpdate(
                args=(Arg(value=config), Arg(value=Constant(value=str(key))), Arg(value=value), *_)
            ) if last_identifier(holder) == "OmegaConf":
                yield config, key, value
            case ContainerUpdate(kind="merge", args=args):
                for arg in args:
                    is_literal = isinstance(arg.value, Collection) or is_dict_call(arg.value)
                    items = items_of(arg.value) if is_literal and not arg.keyword else ((arg.keyword, arg.value),)
                    yield from ((holder, key or ANY_KEY, value) for key, value in items)
            case ContainerUpdate(kind="set" | "default" | "drop", key=key, value=value):
                yield holder, key or ANY_KEY, value if change.kind == "set" else None


def items_of(value: Expression) -> Iterator[tuple[str | None, Expression | None]]:
    """The keys and values of a literal dictionary or of ``dict(key=value)``; the key of ``**other`` is None."""
    if isinstance(value, Collection) and value.kind == "dict":
        for key, item in zip(value.items[::2], value.items[1::2], strict=True):
            word = key.value if isinstance(key, Constant) else None
            if isinstance(word, str) or key is None:
                yield word if isinstance(word, str) else None, item
    elif isinstance(value, Call):
        yield from ((arg.keyword, arg.value) for arg in value.args if arg.keyword is not None or arg.star == "**")


def is_dict_call(value: Expression) -> bool:
    """Whether an expression is ``dict(type="Net")``."""
    return isinstance(value, Call) and last_identifier(value.func) == "dict" and any(arg.keyword for arg in value.args)
