"""The fixes of TRL301 to TRL303: one seeded generator for all loaders, samplers and splits of a function.

For torch before 1.9, and for datasets with a generator of their own, TRL301 also gets a function that seeds each
worker. What several fixes of a file need is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.helpers import Helper, provide_helper
from torchrepro_lint.checks.fixes.insertions import ensure_import, free_name, insert_statement, shadowed
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, seed_at
from torchrepro_lint.domain.loaders.queries import Loader
from torchrepro_lint.domain.loaders.splits import SPLIT_PARAMETERS, splits_without_generator, unseeded_worker_draws
from torchrepro_lint.domain.loaders.workers import WORKER_INIT
from torchrepro_lint.source.text import Edit, Fix, join_insertions
from torchrepro_lint.syntax.control_flow import (
    ControlFlowPosition,
    comprehension_names,
    control_flow_position,
    function_at,
    is_elif,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Constant,
    DefinitionStatement,
    Expression,
    Function,
    Lambda,
    Loop,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.visitor import expressions, last_identifier, path_of, subexpressions
from torchrepro_lint.trace.events import function_runs_often

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project


KEYWORD = "generator"
_GENERATOR_OBJECT = "torch.Generator()"


def functions_without_generator(project: Project, path: str) -> frozenset[int]:
    """The starts of the functions of a file that need a generator and have none."""
    known = _analysis(project)
    if path not in known.without_generator:
        needed = (each for found in _calls_by_function(project, path).values() for each in found)
        positions = ((start, position_at(project, path, start)) for start in needed)
        known.without_generator[path] = frozenset(
            position.function.start
            for start, position in positions
            if position is not None
            and position.function is not None
            and not visible_generator(project, path, position, comprehension_names(position, start))
        )
    return known.without_generator[path]


def position_at(project: Project, path: str, offset: int) -> ControlFlowPosition | None:
    """The control-flow position of an offset of a file."""
    known = _analysis(project).positions
    if (path, offset) not in known:
        known[path, offset] = control_flow_position(project.files[path], offset)
    return known[path, offset]


def calls_needing_generator(project: Project, path: str, position: ControlFlowPosition) -> list[int]:
    """The starts of the function's calls that draw from a generator and get none."""
    function = f"{path}{position.function.name}" if position.function else f"{path}:"
    return _calls_by_function(project, path).get(function, [])


def _calls_by_function(project: Project, path: str) -> dict[str, list[int]]:
    known = _analysis(project).needing
    if path not in known:
        sites = [loader.site for loader in project.readable_loaders(path) if _needs_generator(project, loader)]
        sites += [site for site, _ in splits_without_generator(project, path)]
        found: dict[str, list[int]] = {}
        for site in sites:
            if not caller_may_pass_generator(project, path, site.call):
                found.setdefault(site.function, []).append(site.call.start)
        known[path] = found
    return known[path]


class _GeneratorAnalysis(NamedTuple):
    """What the fixes of a file share.

    ``needing``: the calls that need a generator, by function. ``without_generator``: the starts of such functions.
    ``generators``: whether a value, by identity, is one. ``positions``: positions by offset. ``made``: the variables that
    a block, by identity, sets to one. ``own``: the module's own.
    """

    needing: dict[str, dict[str, list[int]]]
    without_generator: dict[str, frozenset[int]]
    generators: dict[int, bool]
    positions: dict[tuple[str, int], ControlFlowPosition | None]
    made: dict[int, tuple[tuple[int, str], ...]]
    own: dict[str, tuple[str, ...]]


def _analysis(project: Project) -> _GeneratorAnalysis:
    found = _ANALYSES.get(project)
    if found is None:
        found = _ANALYSES[project] = _GeneratorAnalysis({}, {}, {}, {}, {}, {})
    return found


_ANALYSES: WeakKeyDictionary[Project, _GeneratorAnalysis] = WeakKeyDictionary()


def _needs_generator(project: Project, loader: Loader) -> bool:
    return not loader.passes(KEYWORD) and (
        loader.shuffles or bool(unseeded_worker_draws(project, loader, before=False))
    )


def visible_generator(project: Project, path: str, position: ControlFlowPosition, taken: frozenset[str]) -> str:
    """A CPU generator of torch that is bound before the place: a variable, a parameter, or the module's.

    Names in ``taken`` mean something else at the place and are left out.
    """
    return next((word for word in _visible_generators(project, path, position) if word not in taken), "")


def _visible_generators(project: Project, path: str, position: ControlFlowPosition) -> Iterator[str]:
    for block_position in position.spots:
        for at, word in _generators_assigned(project, path, block_position.block):
            if at < block_position.at:
                yield word
    if position.function is None:
        return
    for param in position.function.params:
        variable = Ref(0, 0, (f"{position.function.name}.<locals>.{param.name}",), (), 0)
        if _GENERATOR_OBJECT in project.resolver.names_of(path, variable) and param.default is None:
            yield param.name
    known = _analysis(project).own
    if path not in known:
        known[path] = tuple(_module_generators(project, path))
    for word in known[path]:
        if not shadowed(project.files[path], word, position.function.name):
            yield word


def _generators_assigned(project: Project, path: str, block: tuple[Statement, ...]) -> tuple[tuple[int, str], ...]:
    """The statements of a block that set a variable to a generator, with the variable."""
    known = _analysis(project).made
    if id(block) not in known:  # the project keeps the syntax tree alive
        known[id(block)] = tuple(_find_generators_assigned(project, path, block))
    return known[id(block)]


def _find_generators_assigned(project: Project, path: str, block: tuple[Statement, ...]) -> Iterator[tuple[int, str]]:
    for at, statement in enumerate(block):
        if isinstance(statement, Assign) and statement.value is not None:
            plain = (each for each in statement.targets if isinstance(each, Ref) and not each.path)
            target = next(plain, None)
            if target is not None and _is_generator(project, path, statement.value):
                yield at, target.roots[0].rpartition(".")[2].lstrip(":")


def _module_generators(project: Project, path: str) -> Iterator[str]:
    """The variables of the module that are only ever set to a generator."""
    for name, values in project.files[path].assigned.items():
        if name.startswith(":") and "." not in name and len(values) == 1 and _is_generator(project, path, values[0][1]):
            yield name[1:]


def _is_generator(project: Project, path: str, value: Expression) -> bool:
    """``torch.Generator()``, seeded or not, but none for a device."""
    known = _analysis(project).generators
    if id(value) not in known:  # the project keeps the syntax tree alive
        known[id(value)] = _makes_generator(project, path, value)
    return known[id(value)]


def _makes_generator(project: Project, path: str, value: Expression) -> bool:
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


def caller_may_pass_generator(project: Project, path: str, call: Call) -> bool:
    """Whether callers of the function may pass a generator."""
    function = function_at(project.files[path], call.start)
    return function is not None and any(_forwards_keywords(function, arg) for arg in call.args)


def _forwards_keywords(function: Function, arg: Arg) -> bool:
    """Whether an argument is the function's own ``**kwargs``, by which callers may pass a generator."""
    own = {f"{function.name}.<locals>.{param.name}" for param in function.params if param.kind == "**"}
    return arg.star == "**" and isinstance(arg.value, Ref) and not own.isdisjoint(arg.value.roots)


def common_position(project: Project, path: str, position: ControlFlowPosition) -> ControlFlowPosition:
    """The first statement of the innermost block, in no loop, around all calls of the function that need a generator,
    and around ``position``.
    """
    known = _COMMON_POSITIONS.get(project)
    if known is None:
        known = _COMMON_POSITIONS[project] = {}
    key = path, position.function.start if position.function else -1
    if key not in known:
        found = (position_at(project, path, start) for start in calls_needing_generator(project, path, position))
        positions = [each for each in found if each is not None and each.function == position.function]
        known[key] = _CommonPosition(
            tuple(positions), frozenset(map(id, positions)), _enclosing_position(positions) if positions else position
        )
    place = known[key]
    return place.position if id(position) in place.known else _enclosing_position((position, *place.positions))


class _CommonPosition(NamedTuple):
    """The positions of a function's calls that need a generator, also by identity, and the position that encloses them
    all.
    """

    positions: tuple[ControlFlowPosition, ...]
    known: frozenset[int]
    position: ControlFlowPosition


_COMMON_POSITIONS: WeakKeyDictionary[Project, dict[tuple[str, int], _CommonPosition]] = WeakKeyDictionary()


def _enclosing_position(positions: Iterable[ControlFlowPosition]) -> ControlFlowPosition:
    every = tuple(positions)
    first = min(every, key=lambda each: each.spots[-1].statement.start)
    depth = 1
    while depth < min(len(each.spots) for each in every):
        block_position = first.spots[depth]
        if isinstance(block_position.parent, Loop) or any(
            each.spots[depth].block is not block_position.block for each in every
        ):
            break
        depth += 1
    return ControlFlowPosition(first.function, first.spots[:depth])


_PLAIN = re.compile(r"[\w.]+")
# torch's global generator, which counts as none.
_DEFAULT_GENERATORS = frozenset({"torch.default_generator", "torch.random.default_generator"})


def fix_generator(project: Project, path: str, call: Call) -> Fix | None:
    """Pass a generator that the function has, or one that is created before the first call that needs it.

    None in a function that runs for each epoch, batch or sample, where a new generator would repeat the same numbers,
    and where no statement can stand before the call.
    """
    found = generator_edits(project, path, call)
    return Fix("pass a seeded generator", found, safe=False) if found else None


def generator_edits(project: Project, path: str, call: Call) -> tuple[Edit, ...]:
    """The edits that create a generator, where there is none, and pass it; the last one passes it."""
    position = position_at(project, path, call.start)
    if position is None or isinstance(position.spots[-1].statement, DefinitionStatement) or _in_lambda(position, call):
        return ()
    given = next((arg for arg in call.args if arg.keyword == KEYWORD), None)
    if (
        given is not None
        and isinstance(given.value, Ref)
        and _DEFAULT_GENERATORS.isdisjoint(project.names(path, given.value))
    ):
        return ()  # the generator is created elsewhere
    if caller_may_pass_generator(project, path, call):
        return ()
    word = visible_generator(project, path, position, comprehension_names(position, call.start))
    making: tuple[Edit, ...] = ()
    if not word:
        word, making = _make_generator(project, path, position)
        if not making or function_runs_often(project, path, position):
            return ()
    return (*making, _pass_generator(project, path, call, word))


def _make_generator(project: Project, path: str, position: ControlFlowPosition) -> tuple[str, tuple[Edit, ...]]:
    """The statement that creates a generator, before the first statement of the function's body that needs one."""
    tree, text = project.files[path], project.text(path)
    outer = common_position(project, path, position)
    statement_of = outer.spots[-1].statement
    if is_elif(text, statement_of) or isinstance(statement_of, DefinitionStatement):
        return "", ()
    inside = position.function.name if position.function else ""
    torch, imports = ensure_import(tree, text, "torch", inside=inside, at=statement_of.start)
    word = free_name(tree, KEYWORD, inside)
    seed = seed_at(project, path, outer)
    value = _distinct_seed(seed.text if seed else str(FALLBACK), _generators_above(project, path, position))
    statement = f"{word} = {torch}.Generator().manual_seed({value})"
    return word, join_insertions((*imports, insert_statement(text, statement_of.start, statement, below_heading=True)))


def _generators_above(project: Project, path: str, position: ControlFlowPosition) -> int:
    """The number of functions above that need a generator, too: with the same seed, their loaders would draw alike."""
    own = position.function.start if position.function else -1
    return sum(start < own for start in functions_without_generator(project, path)) if position.function else 0


def _distinct_seed(seed: str, number: int) -> str:
    """The seed of the second, third, … generator of a file: ``0`` and ``1``, ``args.seed`` and ``args.seed + 1``."""
    if number == 0:
        return seed
    if seed.isdecimal():
        return str(int(seed) + number)
    return f"{seed} + {number}" if _PLAIN.fullmatch(seed) else f"({seed}) + {number}"


def _pass_generator(project: Project, path: str, call: Call, word: str) -> Edit:
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
        for expression in expressions(position.spots[-1].statement)
        for each in subexpressions(expression)
    )


_TORCH, _NUMPY, _RANDOM = ("torch", "torch"), ("numpy", "np"), ("random", "random")

SEED_WORKER = Helper(
    "seed_worker",
    '''\
def seed_worker(worker_id):
    """Seed NumPy and Python's random from the seed that torch gives each worker."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)''',
    modules=(_RANDOM, _NUMPY, _TORCH),
)
# For each generator that a dataset may own: the expression that recreates it, and its module.
_REMADE = {
    "numpy.random.default_rng()": ("np.random.default_rng(torch.initial_seed())", _NUMPY),
    "numpy.random.RandomState()": ("np.random.RandomState(torch.initial_seed() % 2**32)", _NUMPY),
    "random.Random()": ("random.Random(torch.initial_seed())", _RANDOM),
}


def fix_workers(project: Project, path: str, loader: Loader, *, owns: bool) -> Fix | None:
    """Pass a function that seeds each worker, and a seeded generator, from which the workers get their seeds."""
    call, text = loader.site.call, project.text(path)
    helper = _dataset_helper(project, loader) if owns else SEED_WORKER
    if helper is None:
        return None
    given = provide_helper(project, path, text, helper, _first_caller(project, path, call.start))
    if given is None:
        return None
    word, function = given
    generator = () if loader.passes("generator") else generator_edits(project, path, call)
    if not generator and not loader.passes("generator"):
        return None
    named = next((arg for arg in call.args if arg.keyword == WORKER_INIT), None)
    init = replace_argument(named, word) if named else append_argument(call, text, f"{WORKER_INIT}={word}")
    return Fix("seed each worker", _joined_edits((*function, *generator[:-1], init, *generator[-1:])), safe=False)


def _joined_edits(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits, joined where they insert at one place; an import that two need is written once."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span == each.span and _lines(edit) <= _lines(each) for each in kept):
            kept.append(edit)
    return join_insertions(kept)


def _lines(edit: Edit) -> set[str]:
    return set(edit.text.splitlines())


def _dataset_helper(project: Project, loader: Loader) -> Helper | None:
    """The helper for the one generator that the dataset itself owns."""
    found: set[tuple[str, str]] = set()
    for each in loader.values("dataset"):
        for name in project.names(each.path, each.value):
            if ":" not in name or not name.endswith("()"):
                return None
            for owner in project.resolver.ancestry(name[:-2]):
                for word, values in project.resolver.instance_attributes(owner).items() if ":" in owner else ():
                    for _, method, value in values:
                        kinds = project.names(path_of(method), value)
                        found.update((word, kind) for kind in kinds if kind in _REMADE)
    if len(found) != 1:
        return None
    word, kind = found.pop()
    made, module = _REMADE[kind]
    source = f'''\
def seed_worker(worker_id):
    """Give the dataset of each worker a generator that is seeded from torch's."""
    torch.utils.data.get_worker_info().dataset.{word} = {made}'''
    return Helper("seed_worker", source, modules=(module, _TORCH))


def _first_caller(project: Project, path: str, offset: int) -> int:
    """The start of the first top-level statement that may call the function."""
    position = control_flow_position(project.files[path], offset)
    return position.spots[0].statement.start if position and position.function is None else len(project.text(path))
