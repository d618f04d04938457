"""Identifier draws: random numbers that only become a port, a URL, a temporary name or another identifier.

They change no result, and a fixed one would make two jobs collide, so they count as no draws.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.rng.effects import RngEffects
from torchrepro_lint.query import limits
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import is_lambda, is_module, simple_name
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, passing_argument

_SCALAR_DRAWS = lazy_pattern(
    r"random\.(randint|randrange|getrandbits|random|uniform|choices?|sample|randbytes)|"
    r"numpy\.random\.(randint|choice|random|rand|uniform|bytes)|torch\.(randint|rand)"
)
# Names that say what a value is for.
IDENTIFIERS = lazy_pattern(
    r"(?i)(\w*_)?(ports?|url|uri|addr(ess)?|endpoint|init_method|uuid|guid|uid|(run|job|session|group|sweep)_?id|nonce|"
    r"token|salt|(tmp|temp)\w*|suffix|file_?name|dir_?name|(run|exp|experiment|job|group|project)_?name|(run|exp)_?dir|"
    r"(save|log|out|output|ckpt|checkpoint)_?(dir|path))|\w*(port|uuid)"
)
_MACHINES = lazy_pattern(r"(?i)(\w*_)?(gpus?|devices?|hosts?|nodes?|ports?)")
# Functions that make such a value, by their last word.
MAKERS = lazy_pattern(r"(?i)(\w*_)?(port|url|uuid|suffix|filename|dirname)")
# Calls whose result still is the number or its text.
_PASSES_ON = lazy_pattern(
    r"builtins\.(str|int|hex|oct|repr|format|bytes|chr|round|abs|iter)|os\.path\.\w+|os\.fspath|pathlib\.\w+|posixpath\.\w+|"
    r"'str'\.\w+|builtins\.str\(\)\.\w+"
)
_TEXT_METHODS = frozenset({"join", "format", "item", "hex", "zfill", "rjust", "ljust", "tolist"})
# Calls that use a value as an identifier.
_USES = lazy_pattern(
    r"builtins\.open|os\.(makedirs|mkdir|remove|unlink|rename|replace|environ\.\w+|putenv|system|removedirs|"
    r"path\.(exists|isfile|isdir|islink|lexists|getsize))|"
    r"(shutil|tempfile|socket|subprocess|wandb|mlflow|neptune|comet_ml|clearml)\..*|"
    r"torch\.distributed\.(init_process_group|TCPStore|FileStore|rpc\..*|elastic\..*)|"
    r"torch\.utils\.tensorboard\..*|tensorboardX\..*"
)


def without_identifier_draws(project: ValueFlow, effects: RngEffects) -> RngEffects:
    """The effects of a trace, less the draws that only make an identifier."""
    known: dict[tuple[str, Call], bool] = {}
    for family, draws in list(effects.draws.items()):
        kept = []
        for draw in draws:
            call = draw.trace_event.event.value
            if isinstance(call, Call) and any(map(_SCALAR_DRAWS.fullmatch, draw.trace_event.names)):
                key = draw.trace_event.path, call
                if key not in known:
                    known[key] = only_identifies(project, *key)
                if known[key]:
                    continue
            kept.append(draw)
        if kept:
            effects.draws[family] = kept
        else:
            del effects.draws[family]
    return effects


def only_identifies(project: ValueFlow, path: str, drawn: Call) -> bool:
    """Whether all uses of a drawn number make it a port, a URL, a name or another identifier."""
    return _IdentifierUses(project).only(path, drawn, limits.MAX_IDENTIFIER_DEPTH)


def only_makes_identifiers(project: ValueFlow, path: str, generator: Call) -> bool:
    """Whether all numbers that are drawn from a generator, which this call makes, become identifiers."""
    return _IdentifierUses(project).generator(path, generator, limits.MAX_IDENTIFIER_DEPTH)


class _IdentifierUses:
    """A forward search over the uses of a value."""

    def __init__(self, project: ValueFlow) -> None:
        self._project = project

    def only(self, path: str, value: Expression, depth: int) -> bool:
        """Whether a value where it stands only becomes an identifier."""
        here = self._project.uses.spots(path).of(value)
        if here is None or depth == 0:
            return False
        match here.parent:
            case None:
                return self._statement(path, here, depth)
            case Call(func=func) as call if func is not value:
                return self._argument(path, value, call, depth)
            case Attribute(name=name) as method if name in _TEXT_METHODS:
                above = self._project.uses.spots(path).of(method)
                return above is not None and isinstance(above.parent, Call) and self.only(path, above.parent, depth - 1)
            case Operation(op="f" | "+" | "-" | "%" | "*" | "/" | "//" | "if" | "or") as whole:
                return self.only(path, whole, depth - 1)
            case Comprehension(elements=elements) as whole if any(each is value for each in elements):
                return self.only(path, whole, depth - 1)
            case Subscript(value=held) as whole if held is value:
                return self.only(path, whole, depth - 1)
            case Collection(kind="dict", items=items):
                keys = [key for key, item in zip(items[::2], items[1::2], strict=True) if item is value]
                return all(isinstance(key, Constant) and IDENTIFIERS.fullmatch(str(key.value)) for key in keys)
            case Collection(kind="tuple") as whole if is_lambda(here.function):
                return self.only(path, whole, depth - 1)
        return False

    def generator(self, path: str, made: Expression, depth: int) -> bool:
        """Whether all that is drawn from a generator, where it is made, only becomes an identifier."""
        spots = self._project.uses.spots(path)
        here = spots.of(made)
        match here.parent if here is not None else None:
            case Attribute() as method:
                above = spots.of(method)
                drawn = above.parent if above is not None else None
                return isinstance(drawn, Call) and drawn.func is method and self.only(path, drawn, depth)
        if here is None or here.parent is not None or not isinstance(here.statement, Assign):
            return False
        targets = [each for each in here.statement.targets if isinstance(each, Ref) and not each.path]
        if len(targets) != len(here.statement.targets):
            return False
        found = (self._project.uses.of_variable(path, each, here, here.statement.end) for each in targets)
        reads = [use for uses in found for use in uses]
        return bool(reads) and all(self._is_drawn_for_identifier(file, ref, depth) for file, ref, _ in reads)

    def _is_drawn_for_identifier(self, path: str, ref: Expression, depth: int) -> bool:
        """Whether a read of a generator is a draw that only becomes an identifier: ``rng.choice(letters)``."""
        spot = self._project.uses.spots(path).of(ref)
        drawn = spot.parent if spot is not None else None
        return isinstance(drawn, Call) and drawn.func is ref and self.only(path, drawn, depth)

    def _argument(self, path: str, value: Expression, call: Call, depth: int) -> bool:
        arg = next((each for each in call.args if each.value is value), None)
        if arg is None or arg.star:
            return False
        if arg.keyword is not None and IDENTIFIERS.fullmatch(arg.keyword):
            return True
        names = self._project.names(path, call.func)
        if names and all(map(_USES.fullmatch, names)):
            return True
        if any(map(_PASSES_ON.fullmatch, names)) or last_identifier(call.func) in _TEXT_METHODS:
            return self.only(path, call, depth - 1)
        if any(name in ("torch.save", "numpy.save", "numpy.savez") for name in names):
            return arg is passing_argument(call, int("torch.save" in names), "f", "file")
        # The parameter that gets the value may be named for an identifier.
        return any(
            each is arg and IDENTIFIERS.fullmatch(param.name)
            for name in names
            for function in self._project.resolver.functions(name)
            for each, param in self._project.resolver.call_graph.receiving(path, call, function)
        )

    def _statement(self, path: str, here: ExpressionPosition, depth: int) -> bool:
        match here.statement:
            case Assign(op="=" | ":", targets=targets):
                return all(self._target(path, each, here, depth) for each in targets)
            case SimpleStatement(kind="return"):
                return self._returned(path, here.function, depth)
            case Loop(target=target) if target is not None:
                return isinstance(target, Ref) and IDENTIFIERS.fullmatch(last_identifier(target)) is not None
        return False

    def _target(self, path: str, target: Expression, here: ExpressionPosition, depth: int) -> bool:
        match target:
            case Ref() | Attribute() if IDENTIFIERS.fullmatch(last_identifier(target)):
                return True
            case Subscript(indices=(Constant(value=str(key)),)):
                return IDENTIFIERS.fullmatch(key) is not None
            case Ref(path=()):
                reads = list(self._project.uses.of_variable(path, target, here, here.statement.end))
                return bool(reads) and all(
                    not words and file == path and self.only(file, ref, depth - 1) for file, ref, words in reads
                )
        return False

    def _returned(self, path: str, function: str, depth: int) -> bool:
        word = simple_name(function)
        if MAKERS.fullmatch(word) or (is_lambda(function) and self._orders_machines(path, function)):
            return True
        calls = self._project.uses.of_result(f"{path}{function}") if not is_module(function) else []
        return bool(calls) and all(self.only(file, call, depth - 1) for file, call in calls)

    def _orders_machines(self, path: str, function: str) -> bool:
        """Whether a lambda is the key by which devices or hosts are sorted: what a job takes first is no result of it."""
        return any(
            arg.keyword == "key"
            and isinstance(arg.value, Lambda)
            and arg.value.function == function
            and _is_machines(site.call)
            for site in self._project.calls_by(path, frozenset({"sort", "sorted"}))
            for arg in site.call.args
        )


def _is_machines(call: Call) -> bool:
    """Whether a call sorts what is named for devices or hosts."""
    match call:
        case Call(func=Ref(roots=roots, path=(*words, "sort"))):
            named = words[-1] if words else simple_name(roots[0])
            return _MACHINES.fullmatch(named) is not None
        case Call(args=(first, *_)):
            return _MACHINES.fullmatch(last_identifier(first.value)) is not None
    return False
