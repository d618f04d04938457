"""The fixes of TRL301 to TRL303: one seeded generator for all loaders, samplers and splits of a function.

For torch before 1.9, and for datasets with a generator of their own, TRL301 also gets a function that seeds each
worker. What several fixes of a file need is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.import_block import ensure_import
from torchrepro_lint.checks.fixes.insertions import free_name, insert_statement, shadowed
from torchrepro_lint.checks.fixes.written_seed import written_seed
from torchrepro_lint.checks.repetition import function_runs_often
from torchrepro_lint.domain.loaders.constructions import (
    SPLIT_PARAMETERS,
    Loader,
    readable_loaders,
    splits_without_generator,
    takes_generator,
)
from torchrepro_lint.domain.loaders.fetch_effects import unseeded_worker_draws
from torchrepro_lint.domain.programs import programs_reaching
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import call_candidates
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix, join_insertions
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Constant,
    DefinitionStatement,
    Expression,
    Function,
    If,
    Lambda,
    Loop,
    Record,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import (
    MODULE_ROOT,
    is_own,
    is_top_level,
    local_symbol,
    locals_prefix,
    qualname_of,
    simple_name,
)
from torchrepro_lint.syntax.scopes import (
    ControlFlowPosition,
    comprehension_names,
    control_flow_position,
    function_at,
    is_elif,
)
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier, subexpressions
from torchrepro_lint.trace.traces import Traces

KEYWORD = "generator"
_GENERATOR_OBJECT = "torch.Generator()"
# The fixes of a file ask the same questions, one after the other.
_CACHED = 1024


@query(lru=_CACHED)
def position_at(project: Traces, path: str, offset: int) -> ControlFlowPosition | None:
    """The control-flow position of an offset of a file."""
    return control_flow_position(project.files[path], offset)


@query(lru=_CACHED)
def _calls_needing(project: Traces, path: str) -> tuple[int, ...]:
    """The starts of the calls of a file that draw from a generator and get none."""
    calls = [each.site.call for each in readable_loaders(project, path) if _needs_generator(project, each)]
    calls += [site.call for site, _ in splits_without_generator(project, path) if takes_generator(site)]
    starts = {each.start for each in calls if not caller_may_pass_generator(project, path, each)}
    return tuple(sorted(starts))


def _needs_generator(project: Traces, loader: Loader) -> bool:
    return not loader.passes(KEYWORD) and (
        loader.shuffles or bool(unseeded_worker_draws(project, loader, before=False))
    )


def visible_generator(project: Traces, path: str, position: ControlFlowPosition, taken: frozenset[str]) -> str:
    """A CPU generator of torch that is bound before the place: a variable, a parameter, or the module's.

    Names in ``taken`` mean something else at the place and are left out.
    """
    return next((word for word in _visible_generators(project, path, position) if word not in taken), "")


def _visible_generators(project: Traces, path: str, position: ControlFlowPosition) -> Iterator[str]:
    inside = locals_prefix(position.function.name) if position.function else MODULE_ROOT
    for block_position in position.spots:
        for at, word in _generators_assigned(project, path, block_position.block):
            if at < block_position.at and not _is_passed(project, path, f"{inside}{word}"):
                yield word
    if position.function is None:
        return
    for param in position.function.params:
        variable = Ref(0, 0, (local_symbol(position.function.name, param.name),), (), 0)
        if _GENERATOR_OBJECT in project.resolver.names_of(path, variable) and param.default is None:
            yield param.name
    for word in _module_generators(project, path):
        if not shadowed(project.files[path], word, position.function.name) and not _is_passed(
            project, path, f":{word}"
        ):
            yield word


def _is_passed(project: Traces, path: str, variable: str) -> bool:
    """Whether a generator is passed to a loader or sampler already: two that share one would disturb each other."""
    spots = project.uses.spots(path)
    return any(
        isinstance(above := here.parent, Call)
        and any(arg.value == ref and arg.keyword == KEYWORD for arg in above.args)
        for ref in spots.uses(variable)
        if not ref.path and (here := spots.of(ref)) is not None
    )


def _generators_assigned(project: Traces, path: str, block: tuple[Statement, ...]) -> tuple[tuple[int, str], ...]:
    """The statements of a block that set a variable to a generator, with the variable."""
    # The first statement identifies a block.
    key = path, block[:1]
    return project.remembered("generators", key, lambda: tuple(_find_generators_assigned(project, path, block)))


def _find_generators_assigned(project: Traces, path: str, block: tuple[Statement, ...]) -> Iterator[tuple[int, str]]:
    for at, statement in enumerate(block):
        if isinstance(statement, Assign) and statement.value is not None:
            plain = (each for each in statement.targets if isinstance(each, Ref) and not each.path)
            target = next(plain, None)
            if target is not None and _is_generator(project, path, statement.value):
                yield at, simple_name(target.roots[0])


@query(lru=_CACHED)
def _module_generators(project: Traces, path: str) -> tuple[str, ...]:
    """The variables of the module that are only ever set to a generator."""
    return tuple(
        qualname_of(name)
        for name, values in project.files[path].assigned.items()
        if is_own(name) and is_top_level(name) and len(values) == 1 and _is_generator(project, path, values[0][1])
    )


@query(lru=_CACHED)
def _is_generator(project: Traces, path: str, value: Expression) -> bool:
    """``torch.Generator()``, seeded or not, but none for a device."""
    if _GENERATOR_OBJECT not in project.names(path, value):
        return False
    made = [
        each
        for each in subexpressions(value)
        if isinstance(each, Call) and "torch.Generator" in project.names(path, each.func)
    ]
    return all(not each.args or _is_cpu(each.args[0].value) for each in made)


def _is_cpu(value: Expression) -> bool:
    return isinstance(value, Constant) and value.value == "cpu"


def caller_may_pass_generator(project: Traces, path: str, call: Call) -> bool:
    """Whether callers of the function may pass a generator."""
    function = function_at(project.files[path], call.start)
    return function is not None and any(_forwards_keywords(function, arg) for arg in call.args)


def _forwards_keywords(function: Function, arg: Arg) -> bool:
    """Whether an argument is the function's own ``**kwargs``, by which callers may pass a generator."""
    own = {local_symbol(function.name, param.name) for param in function.params if param.kind == "**"}
    return arg.star == "**" and isinstance(arg.value, Ref) and not own.isdisjoint(arg.value.roots)


def outside_loops(position: ControlFlowPosition) -> ControlFlowPosition:
    """The position of the outermost loop around a place of a function; the place itself where there is none."""
    depth = next(
        (number for number, each in enumerate(position.spots) if isinstance(each.parent, Loop)), len(position.spots)
    )
    return ControlFlowPosition(position.function, position.spots[:depth])


# torch's global generator, which counts as none.
_DEFAULT_GENERATORS = frozenset({"torch.default_generator", "torch.random.default_generator"})


def fix_generator(project: Traces, path: str, call: Call) -> Fix | NoFix:
    """Pass a generator that the function has, or one that is created before the call.

    There is none in a function that runs for each epoch, batch or sample, where a new generator would repeat the same
    numbers, and where no statement can stand before the call.
    """
    found = generator_edits(project, path, call)
    return found if isinstance(found, NoFix) else Fix("Pass a seeded generator", found, safe=False, takes_seed=True)


def generator_edits(project: Traces, path: str, call: Call) -> tuple[Edit, ...] | NoFix:
    """The edits that create a generator, where there is none, and pass it; the last one passes it."""
    position = position_at(project, path, call.start)
    if position is None or isinstance(position.spots[-1].statement, DefinitionStatement) or _in_lambda(position, call):
        return NoFix("there is no place before the call to create a generator")
    given = next((arg for arg in call.args if arg.keyword == KEYWORD), None)
    if (
        given is not None
        and isinstance(given.value, Ref)
        and _DEFAULT_GENERATORS.isdisjoint(project.names(path, given.value))
    ):
        return NoFix("the generator is created elsewhere; seed it there")
    if _may_compute_on_gpu(project, position.symbol(path)):
        return NoFix(
            "torch's default device may be a GPU here, and only the author can say which one the generator needs"
        )
    if caller_may_pass_generator(project, path, call):
        return NoFix("callers may pass a generator through **, so they choose the seed")
    loader = _enclosing_loader(project, path, call)
    shared = known_argument(loader, None, KEYWORD)
    if isinstance(shared, Ref) and not shared.path and loader != call:
        return (_pass_generator(project, path, call, last_identifier(shared)),)
    if word := visible_generator(project, path, position, comprehension_names(position, call.start)):
        return (_pass_generator(project, path, call, word),)
    made = _make_generator(project, path, position, loader)
    return made if isinstance(made, NoFix) else (*made.edits, _pass_generator(project, path, call, made.word))


@query()
def _may_compute_on_gpu(project: Traces, function: str) -> bool:
    """Whether programs that reach a function may make tensors on a GPU by default: a permutation needs a generator of that device."""
    programs = programs_reaching(project, function)
    candidates = call_candidates(project.resolver, _DEVICE_SETTERS)
    given = (
        arg.value
        for where in candidates.paths
        if not programs or any(where in each.run.paths for each in programs)
        for site in project.calls_by(where, candidates.words)
        if any(each.startswith("torch.") and simple_name(each) in _DEVICE_SETTERS for each in site.names)
        for arg in site.call.args
    )
    return not all(_names_cpu(each) for each in given)


def _names_cpu(value: Expression) -> bool:
    """``"cpu"``, ``torch.device("cpu")``, ``"torch.FloatTensor"``, ``torch.DoubleTensor``; and None, which is torch's own default."""
    value = value.args[0].value if isinstance(value, Call) and value.args else value
    text = str(value.value) if isinstance(value, Constant) else ".".join(value.path) if isinstance(value, Ref) else ""
    return _CPU.fullmatch(text) is not None


_DEVICE_SETTERS = frozenset({"set_default_device", "set_default_tensor_type"})
_CPU = lazy_pattern(r"cpu|None|(torch\.)?[A-Z]\w*Tensor")


def _enclosing_loader(project: Traces, path: str, call: Call) -> Call:
    """The loader that a sampler is written in the arguments of: both draw from one generator. Else the call itself."""
    for _, around in project.uses.spots(path).enclosing(call):
        if isinstance(around, Call) and (
            around.start in _calls_needing(project, path) or any(arg.keyword == KEYWORD for arg in around.args)
        ):
            return around
    return call


def _make_generator(project: Traces, path: str, position: ControlFlowPosition, call: Call) -> _MadeGenerator | NoFix:
    """The statement that creates a generator for one call, before its statement and outside all loops."""
    tree, text = project.files[path], project.text(path)
    outer = outside_loops(position)
    statement_of = outer.spots[-1].statement
    if is_elif(text, statement_of) or isinstance(statement_of, DefinitionStatement):
        return NoFix("there is no place before the call to create a generator")
    if function_runs_often(project, path, position):
        return NoFix(
            "its function runs many times, and a generator with a fixed seed would repeat its numbers each time"
        )
    seed = written_seed(project, path, statement_of.start)
    if isinstance(seed, NoFix):
        return seed
    inside = position.function.name if position.function else ""
    torch, imports = ensure_import(tree, text, "torch", inside=inside, at=statement_of.start)
    word = _unused_name(project, path, position, call)
    value = seed.plus(_above(project, path, call).all).text
    statement = f"{word} = {torch}.Generator().manual_seed({value})"
    made = insert_statement(text, statement_of.start, statement, below_heading=True)
    return _MadeGenerator(word, join_insertions(dict.fromkeys((*imports, *seed.edits, made))))


class _MadeGenerator(Record, frozen=True):
    """A new generator: its name, and the edits that create it."""

    word: str
    edits: tuple[Edit, ...]


# The construction of a network, and not of torch's generator.
_NETWORK = lazy_pattern(r"(?<!torch\.)\b\w*Generators?\(|(?<!torch\.)\bGenerator\w*\(")
_PARTS = frozenset({"train", "training", "val", "valid", "validation", "test", "eval", "dev", "source", "target"})
_LOADER_WORDS = ("loaders", "loader", "dl", "sampler", "iterator", "iter", "data")


@lru_cache(maxsize=1)
def _has_network(text: str) -> bool:
    """Whether a file may construct a network that is called a generator, too."""
    return _NETWORK.search(text) is not None


class _Above(Record, frozen=True):
    """How many generators are, or will be, created above a call of its function: in all, and under the same name."""

    all: int
    alike: int


def _above(project: Traces, path: str, call: Call) -> _Above:
    return _generators_above(project, path).get(call.start, _Above(0, 0))


@query(lru=_CACHED)
def _generators_above(project: Traces, path: str) -> dict[int, _Above]:
    """The numbers for each call that needs a generator, by its start."""
    return dict(_count_above(project, path))


def _count_above(project: Traces, path: str) -> Iterator[tuple[int, _Above]]:
    made = {
        site.call.start: "" for site in project.calls(path) if "torch.Generator" in site.names and not site.call.args
    }
    created: dict[int, tuple[Function | None, str, frozenset[tuple[int, bool]]]] = {}
    for start in sorted({*made, *_calls_needing(project, path)}):
        if (position := position_at(project, path, start)) is not None:
            word = made.get(start, _generator_name(position.spots[-1].statement))
            tests = [(each.parent, each.block) for each in position.spots]
            branches = frozenset((test.start, block == test.body) for test, block in tests if isinstance(test, If))
            created[start] = position.function, word, branches
    for start, (function, word, branches) in created.items():
        # What stands in another branch of a test is not there, too.
        others = {(at, not first) for at, first in branches}
        above = [
            each for at, each in created.items() if at < start and each[0] == function and others.isdisjoint(each[2])
        ]
        if word:
            yield start, _Above(len(above), sum(each[1] == word for each in above))


def _unused_name(project: Traces, path: str, position: ControlFlowPosition, call: Call) -> str:
    """A free name that no call above, of the function's calls without a generator, gets: ``generator``, ``generator_2``."""
    word = _generator_name(position.spots[-1].statement)
    tree, inside = project.files[path], position.function.name if position.function else ""
    if word.startswith(KEYWORD) and _has_network(project.text(path)):
        word = f"loader_{word}"  # the module's generator is a network
    numbered = (f"{word}_{number + 1}" if number else word for number in count(_above(project, path, call).alike))
    return next(each for each in numbered if free_name(tree, each, inside) == each)


def _generator_name(statement: Statement) -> str:
    """``train_generator`` for what ``train_loader`` is assigned, ``generator_2`` for ``loader2``, ``split_generator`` for a
    split; else ``generator``.
    """
    value = statement.value if isinstance(statement, Assign) else None
    if isinstance(value, Call) and last_identifier(value.func) == "random_split":
        return f"split_{KEYWORD}"
    targets = statement.targets if isinstance(statement, Assign) else ()
    if len(targets) == 1 and isinstance(targets[0], Ref):
        word = last_identifier(targets[0]).lower()
        part = next((each for each in word.split("_") if each in _PARTS), "")
        prefix = bare = word.rstrip("0123456789")
        for each in _LOADER_WORDS:
            prefix = prefix.removesuffix(each).rstrip("_")
        if part or (prefix.strip("_") and prefix != bare):
            return f"{part or prefix.strip('_')}_{KEYWORD}"
        if bare not in (prefix, word):
            return f"{KEYWORD}_{word.removeprefix(bare)}"
    return KEYWORD


def _pass_generator(project: Traces, path: str, call: Call, word: str) -> Edit:
    parameters = SPLIT_PARAMETERS.get(last_identifier(call.func))
    for at, arg in enumerate(call.args):
        here = arg.keyword is None and (parameters is None or parameters[at : at + 1] == (KEYWORD,))
        is_global = here and not arg.star and _DEFAULT_GENERATORS.intersection(project.names(path, arg.value))
        if arg.keyword == KEYWORD or is_global:
            return replace_argument(arg, word)
    return append_argument(call, project.text(path), f"{KEYWORD}={word}")


def _in_lambda(position: ControlFlowPosition, call: Call) -> bool:
    """Whether a call stands in a lambda, which may run repeatedly."""
    return any(
        isinstance(each, Lambda) and each.start <= call.start < each.end
        for each in expressions_within(position.spots[-1].statement)
    )
