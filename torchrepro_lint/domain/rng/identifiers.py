"""Identifier draws: random numbers that only become a port, a URL, a temporary name or another identifier.

They change no result, and a fixed one would make two jobs collide, so they count as no draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torchrepro_lint import limits
from torchrepro_lint.dataflow.feasibility import ruling_tests, test_of_flags
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.rng.consumers import is_replaced, models_loaded_elsewhere
from torchrepro_lint.domain.rng.effects import Draw, RngEffects
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import is_lambda, is_module, is_self, simple_name
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of, statements, subexpressions
from torchrepro_lint.trace.dead_initialisation import CACHED_LOADS
from torchrepro_lint.trace.events import TraceEvent

_SCALAR_DRAWS = lazy_pattern(
    r"random\.(randint|randrange|getrandbits|random|uniform|choices?|sample|randbytes)|"
    r"numpy\.random\.(randint|choice|random|rand|uniform|bytes)|torch\.(randint|randn?)(_like)?"
)
# Draws that change nothing but their generator.
_VALUES = lazy_pattern(
    r"random\.(random|randint|randrange|uniform|gauss|choices?|sample)|"
    r"torch\.((rand|randn|randint)(_like)?|randperm|normal|bernoulli|multinomial)|"
    r"numpy\.random\.(rand|randn|randint|random|uniform|normal|choice|permutation)|"
    r"torchvision\.transforms\.(\w+\.)*get_params"
)
# Names that say what a value is for.
IDENTIFIERS = lazy_pattern(
    r"(?i)(\w*_)?(ports?|url|uri|addr(ess)?|endpoint|init_method|uuid|guid|uid|(run|exp|experiment|job|session|group|sweep)_?id|nonce|"
    r"token|salt|(tmp|temp)\w*(dir|file|path|name|folder|root|key)\w*|suffix|(file|dir)_?name|"
    r"(run|exp|experiment|job|group|project)_?name|(run|exp|save|log|out|output|ckpt|checkpoint)_?(dir|path))|\w*(port|uuid)"
)
# Those that what is chosen among files may have, too.
_FILE_NAMES = lazy_pattern(r"(?i)(\w*_)?(file|dir)_?name")
# What lists files, and what lists of files are called.
_LISTING = frozenset({"listdir", "scandir", "glob", "iglob", "rglob", "iterdir", "walk"})
_FILES = lazy_pattern(
    r"(?i)\w*(path|file|image|img|frame|video|clip|audio|wav|sample|patient|scan|mask)s?(_?(list|names?|paths?|files?))?"
)
_NAMES = lazy_pattern(r"(?i)(\w*_)?(name|slug|version)")
_MACHINES = lazy_pattern(r"(?i)(\w*_)?(gpus?|devices?|hosts?|nodes?|ports?)")
# Functions that make such a value, by their last word.
MAKERS = lazy_pattern(
    r"(?i)(\w*_)?(port|url|uuid|suffix|(file|dir|folder)_?(name|str(ing)?))|"
    r"(\w*_)?(random|unique|run|exp|experiment|job|session|project)_?(name|id|slug)"
)
# Calls whose result still is the number or its text.
_PASSES_ON = lazy_pattern(
    r"builtins\.(str|int|hex|oct|repr|format|bytes|chr|round|abs|iter)|os\.path\.\w+|os\.fspath|pathlib\.\w+|posixpath\.\w+|"
    r"'str'\.\w+|builtins\.str\(\)\.\w+|torch\.autograd\.(variable\.)?Variable"
)
_CHOICES = frozenset({"choice", "choices", "sample"})
_MOVES = frozenset({"to", "cuda", "cpu", "half", "float", "double", "type", "unsqueeze", "repeat", "contiguous"})
_TEXT_METHODS = frozenset({"join", "format", "item", "hex", "zfill", "rjust", "ljust", "tolist"}) | _MOVES
# Calls that use a value as an identifier, or an input for its shape: the graph of operations is the same for all.
_USES = lazy_pattern(
    r"torch\.onnx\.(export|dynamo_export|utils\.export)|torch\.jit\.trace(_module)?|(thop|torchsummary|torchinfo|ptflops|torchviz)\..*|"
    r"builtins\.open|os\.(makedirs|mkdir|remove|unlink|rename|replace|environ\.\w+|putenv|system|removedirs|"
    r"path\.(exists|isfile|isdir|islink|lexists|getsize))|"
    r"(shutil|tempfile|socket|subprocess|wandb|mlflow|neptune|comet_ml|clearml|coolname)\..*|"
    r"torch\.distributed\.(init_process_group|TCPStore|FileStore|rpc\..*|elastic\..*)|"
    r"torch\.utils\.tensorboard\..*|tensorboardX\..*|tensorflow(\.\w+)*\.(import_graph_def|(name|variable)_scope)"
)


def without_identifier_draws(project: ValueFlow, effects: RngEffects) -> RngEffects:
    """The effects of a trace, less the draws that only make an identifier, or that weights of the network stand for."""
    models = models_loaded_elsewhere(project, effects.run) if "torch" in effects.draws else frozenset()

    def counts(draw: Draw) -> bool:
        made, call = draw.trace_event, draw.trace_event.event.value
        if not isinstance(call, Call):
            return True
        identifies = any(map(_SCALAR_DRAWS.fullmatch, made.names)) and only_identifies(project, made.path, call)
        loaded = draw.family == "torch" and (is_replaced(made, models) or _initialises_once(project, made))
        return not (identifies or loaded or _is_discarded(draw, call))

    for family, draws in list(effects.draws.items()):
        effects.draws[family] = list(filter(counts, draws))
        if not effects.draws[family]:
            del effects.draws[family]
    return effects


def _is_discarded(draw: Draw, call: Call) -> bool:
    """Whether nothing gets what is drawn, as where a program tries whether a device can be used."""
    statement = draw.trace_event.event.statement
    return (
        isinstance(statement, ExpressionStatement)
        and statement.value == call
        and any(map(_VALUES.fullmatch, draw.trace_event.names))
        and not any(arg.keyword == "out" for arg in call.args)
    )


def _initialises_once(project: ValueFlow, trace_event: TraceEvent) -> bool:
    """Whether a test of a buffer keeps an event from running once a network has been initialised: ``if self.inited: return``. Buffers are
    saved and loaded with the weights, which stand for what is drawn there; who trains from scratch draws weights, too.
    """
    into = (step.into for step in trace_event.call_path)
    inside = (*(step.event for step in trace_event.call_path[1:]), trace_event.event)
    for function, event in zip(into, inside, strict=False):
        if flags := _tested_buffers(project, function):
            at = (event.value or event.statement).start
            bodies = [each.body for each in project.resolver.functions(function)]
            if all(any(True for _ in ruling_tests(body, at, partial(test_of_flags, flags))) for body in bodies):
                return True
    return False


@query(lru=CACHED_LOADS, bounded_when_watched=False)
def _tested_buffers(project: ValueFlow, function: str) -> Mapping[str, bool]:
    """The buffers of its object that a method tests, each as set."""
    owner = project.resolver.owner(function)
    tests = [
        part.path[0]
        for each in (project.resolver.functions(function) if owner else ())
        for statement in statements(each.body)
        if isinstance(statement, If)
        for part in subexpressions(statement.test)
        if isinstance(part, Ref) and len(part.path) == 1 and any(map(is_self, part.roots))
    ]
    classes = project.resolver.ancestry(owner) if tests else ()
    buffers = {word for each in classes for word in type_inference(project).registered(each)}
    return {word: True for word in tests if word in buffers}


@query(cutoff=True)
def only_identifies(project: ValueFlow, path: str, drawn: Call) -> bool:
    """Whether all uses of a drawn number make it a port, a URL, a name or another identifier."""
    return _IdentifierUses(project, chooses=_chooses(project, path, drawn)).only(
        path, drawn, limits.MAX_IDENTIFIER_DEPTH
    )


def _chooses(project: ValueFlow, path: str, drawn: Call) -> bool:
    """Whether a draw takes an element of a list of files: of a listing, or of what is called so, as ``self.image_paths``."""
    given = drawn.args[0].value if drawn.args and last_identifier(drawn.func) in _CHOICES else None
    if given is None:
        return False
    made = (each for _, value in project.values(path, given) for each in subexpressions(value))
    listed = any(isinstance(each, Call) and last_identifier(each.func) in _LISTING for each in made)
    return listed or (isinstance(given, Ref) and _FILES.fullmatch(last_identifier(given)) is not None)


def only_makes_identifiers(project: ValueFlow, path: str, generator: Call) -> bool:
    """Whether all that is drawn from a generator, which this call makes, becomes identifiers.

    Characters do: who makes a generator of its own for them, with another seed in each run, wants a name that no other run has.
    """
    return _IdentifierUses(project).generator(path, generator, limits.MAX_IDENTIFIER_DEPTH)


class _IdentifierUses:
    """A forward search over the uses of a value; ``chooses``: it is one of some files, so the name of a file leads to data."""

    def __init__(self, project: ValueFlow, *, chooses: bool = False) -> None:
        self._project = project
        self._chooses = chooses

    def _names_one(self, word: str) -> bool:
        return IDENTIFIERS.fullmatch(word) is not None and not (self._chooses and _FILE_NAMES.fullmatch(word))

    def only(self, path: str, value: Expression, depth: int) -> bool:
        """Whether a value where it stands only becomes an identifier."""
        here = self._project.uses.spots(path).of(value)
        if here is None or depth == 0:
            return False
        match here.parent:
            case None:
                return self._statement(path, here, depth)
            case Call(func=func) as call if func != value:
                return self._argument(path, value, call, depth)
            case Attribute(name=name) as method if name in _TEXT_METHODS:
                above = self._project.uses.spots(path).of(method)
                return above is not None and isinstance(above.parent, Call) and self.only(path, above.parent, depth - 1)
            case Operation(op="f" | "+" | "-" | "%" | "*" | "/" | "//" | "if" | "or") as whole:
                return self.only(path, whole, depth - 1)
            case Comprehension(elements=elements) as whole if any(each == value for each in elements):
                return self.only(path, whole, depth - 1)
            case Subscript(value=held) as whole if held == value:
                return self.only(path, whole, depth - 1)
            case Collection(kind="dict", items=items):
                keys = [key for key, item in zip(items[::2], items[1::2], strict=True) if item == value]
                return all(isinstance(key, Constant) and self._names_one(str(key.value)) for key in keys)
            case Collection(kind="tuple") as whole:
                return self.only(path, whole, depth - 1)
            case Operation(op="==" | "!=" | "in" | "not in"):
                # Whether a name is taken, or what it may not be.
                return isinstance(value, Ref) and _NAMES.fullmatch(last_identifier(value)) is not None
        return False

    def generator(self, path: str, made: Expression, depth: int) -> bool:
        """Whether all that is drawn from a generator, where it is made, only becomes an identifier."""
        spots = self._project.uses.spots(path)
        here = spots.of(made)
        match here.parent if here is not None else None:
            case Attribute() as method:
                above = spots.of(method)
                drawn = above.parent if above is not None else None
                return isinstance(drawn, Call) and drawn.func == method and self._is_identifier(path, drawn, depth)
            case Call(func=func) as call if func != made:
                return self._argument(path, made, call, depth)
        if here is None or here.parent is not None or not isinstance(here.statement, Assign):
            return False
        targets = [each for each in here.statement.targets if isinstance(each, Ref) and not each.path]
        if len(targets) != len(here.statement.targets):
            return False
        found = (self._project.uses.of_variable(path, each, here, here.statement.end) for each in targets)
        reads = [use for uses in found for use in uses]
        drawn_by = [one for file, ref, _ in reads if (one := self._call_of(file, ref)) is not None and file == path]
        if len(drawn_by) < len(reads):
            return False
        texts = [each for each in drawn_by if self._draws_characters(path, each)]
        rest = [  # they may be shuffled, too
            each for each in drawn_by if each not in texts and not (texts and last_identifier(each.func) == "shuffle")
        ]
        return bool(drawn_by) and all(self.only(path, each, depth) for each in rest)

    def _call_of(self, path: str, ref: Expression) -> Call | None:
        """The call of what is read: ``rng.choice(letters)``."""
        spot = self._project.uses.spots(path).of(ref)
        called = spot.parent if spot is not None else None
        return called if isinstance(called, Call) and called.func == ref else None

    def _moved(self, path: str, ref: Expression, words: tuple[str, ...]) -> Expression | None:
        """A variable where it is read, or the call of a method of it that gives the same value."""
        return ref if not words else self._call_of(path, ref) if _MOVES.issuperset(words) else None

    def _is_identifier(self, path: str, drawn: Call, depth: int) -> bool:
        return self._draws_characters(path, drawn) or self.only(path, drawn, depth)

    def _draws_characters(self, path: str, drawn: Call) -> bool:
        """``choice(string.ascii_letters)``, ``choices("abc", k=6)``."""
        given = drawn.args[0].value if drawn.args and last_identifier(drawn.func) in _CHOICES else None
        return given is not None and any(
            is_text(self._project, file, each) for file, each in self._project.values(path, given)
        )

    def _argument(self, path: str, value: Expression, call: Call, depth: int) -> bool:
        arg = next((each for each in call.args if each.value == value), None)
        if arg is None or arg.star:
            return False
        if arg.keyword is not None and self._names_one(arg.keyword):
            return True
        names = self._project.names(path, call.func)
        if names and all(map(_USES.fullmatch, names)):
            return True
        if any(map(_PASSES_ON.fullmatch, names)) or last_identifier(call.func) in _TEXT_METHODS:
            return self.only(path, call, depth - 1)
        if any(name in ("torch.save", "numpy.save", "numpy.savez") for name in names):
            return arg == passing_argument(call, int("torch.save" in names), "f", "file")
        # The parameter that gets the value may be named for an identifier.
        return any(
            each == arg and self._names_one(param.name)
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
                return isinstance(target, Ref) and self._names_one(last_identifier(target))
        return False

    def _target(self, path: str, target: Expression, here: ExpressionPosition, depth: int) -> bool:
        match target:
            case Ref() | Attribute() if self._names_one(last_identifier(target)):
                return True
            case Subscript(indices=(Constant(value=str(key)),)):
                return self._names_one(key)
            case Ref(path=()):
                reads = list(self._project.uses.of_variable(path, target, here, here.statement.end))
                moved = [self._moved(file, ref, words) if file == path else None for file, ref, words in reads]
                return bool(moved) and all(each is not None and self.only(path, each, depth - 1) for each in moved)
        return False

    def _returned(self, path: str, function: str, depth: int) -> bool:
        word = simple_name(function)
        if MAKERS.fullmatch(word) or (is_lambda(function) and _orders_machines(self._project, path, function)):
            return True
        calls = self._project.uses.of_result(f"{path}{function}") if not is_module(function) else []
        return bool(calls) and all(self.only(file, call, depth - 1) for file, call in calls)


def keyed_call(project: ValueFlow, path: str, function: str) -> Call | None:
    """The call that gets a lambda as its ``key``, as a sort does."""
    spots = project.uses.spots(path)
    made = spots.lambda_of(function)
    here = None if made is None else spots.of(made)
    if here is None or not isinstance(here.parent, Call):
        return None
    return here.parent if any(arg.keyword == "key" and arg.value == made for arg in here.parent.args) else None


def _orders_machines(project: ValueFlow, path: str, function: str) -> bool:
    """Whether a lambda is the key by which devices or hosts are sorted: what a job takes first is no result of it."""
    call = keyed_call(project, path, function)
    word = "" if call is None else last_identifier(call.func)
    if call is None or word not in ("sort", "sorted"):
        return False
    ordered = receiver_of(call.func) if word == "sort" else call.args[0].value
    return ordered is not None and _MACHINES.fullmatch(last_identifier(ordered)) is not None


def is_text(project: ValueFlow, path: str, value: Expression) -> bool:
    """Whether an expression is a literal text, a constant of the module ``string``, or a sum of such."""
    return all(
        (isinstance(each, Constant) and isinstance(each.value, str))
        or (isinstance(each, Ref) and any(name.startswith("string.") for name in project.names(path, each)))
        or (isinstance(each, Operation) and each.op == "+")
        for each in subexpressions(value)
    )
