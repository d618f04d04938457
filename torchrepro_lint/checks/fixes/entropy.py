"""The fixes of TRL105 and TRL106: the program's own seed, or a constant, in place of entropy."""

from __future__ import annotations

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.checksums import checksum_edits, hashed_kind
from torchrepro_lint.checks.fixes.import_block import ensure_import
from torchrepro_lint.checks.fixes.insertions import fix_in
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, SEED_NAME
from torchrepro_lint.checks.fixes.removals import remove_statement
from torchrepro_lint.checks.fixes.written_seed import WrittenSeed, written_seed
from torchrepro_lint.checks.repetition import runs_often
from torchrepro_lint.domain.programs import programs_reaching
from torchrepro_lint.domain.rng.library_generators import UnrepeatableCall
from torchrepro_lint.domain.rng.seeders import nondeterministic_source
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    Operation,
    Ref,
    Statement,
    span,
)
from torchrepro_lint.syntax.scopes import control_flow_position, function_at, stored_before
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    is_none,
    last_identifier,
    subexpressions,
)
from torchrepro_lint.trace.call_paths import process_starts
from torchrepro_lint.trace.traces import Traces

_SEEDED_FORMS = {"seed": "manual_seed", "seed_all": "manual_seed_all"}
_FROM_ENTROPY = frozenset(_SEEDED_FORMS)
# The names of a first parameter that is the seed: in Python's random, and elsewhere.
_OF_RANDOM = (None, "a", "x")
_PARAMETERS = (None, "seed", "entropy", "key")


def fix_reseeding(project: Traces, path: str, site: CallSite, families: tuple[str, ...]) -> Fix | NoFix:
    """Drop a call that seeds from entropy if it undoes an earlier seeding or runs often, else give it a seed."""
    text, call = project.text(path), site.call
    alone = isinstance(site.statement, ExpressionStatement) and site.statement.value == call
    if (constant := _fix_constant(project, path, site)) is not None:
        return constant
    if _is_optional_parameter(project, path, site):
        return NoFix("callers that pass no seed ask for entropy; pass a seed there")
    if alone and (_undoes_seeding(project, path, site, families) or runs_often(project, path, call)):
        position = control_flow_position(project.files[path], call.start)
        edit = (
            remove_statement(text, position.spots[-1], all(map(_is_entropy_seeding, position.spots[-1].block)))
            if position
            else None
        )
        return (
            Fix("Remove the seeding from entropy", (edit,), safe=False)
            if edit
            else NoFix("the call shares its line with other statements, so it cannot be removed by itself")
        )
    func = call.func
    word = (func.path or ("",))[-1] if isinstance(func, Ref) else ""
    of_torch = word in _SEEDED_FORMS and isinstance(func, Ref) and func.roots == ("torch",)
    if of_torch and (call.args or not alone):
        return NoFix(f"the result of {word}() is used, and {_SEEDED_FORMS[word]} returns something else")
    if runs_often(project, path, call):
        return _REPEATED
    if _tells_processes_apart(project, path, call):
        return _IN_PROCESSES
    if _is_teardown(project, path, call):
        return NoFix("it undoes the seeding above the yield, as a fixture's teardown does")
    seed = written_seed(project, path, call.start, but=_passed_variable(site), seeder=True)
    if isinstance(seed, NoFix):
        return seed
    if of_torch and isinstance(func, Ref):
        return _replace_with_seed(f".{_SEEDED_FORMS[word]}({seed.text})", Span(func.base_end, call.end), seed)
    fix = _pass_seed(text, site, _fitting(site, seed))
    return fix if isinstance(fix, NoFix) else fix._replace(seeds=True)


def _fix_constant(project: Traces, path: str, site: CallSite) -> Fix | None:
    """Give a constant of a module or a class a number, ``SEED = None``, where the seed is that."""
    match site.call.args:
        case (Arg(value=Ref() as given), *_):
            found = [*project.values(path, given)]
        case _:
            return None
    if len(found) != 1 or not is_none(found[0][1]):
        return None
    (file, value), tree = found[0], project.files[found[0][0]]
    constants = (each for body in (tree.body, *(owner.body for owner in tree.classes)) for each in body)
    if not any(isinstance(each, Assign) and each.value == value for each in constants):
        return None
    return fix_in(file, path, f"Use {FALLBACK} as the seed", (Edit(span(value), FALLBACK),))._replace(seeds=True)


def _is_teardown(project: Traces, path: str, call: Call) -> bool:
    """Whether a call stands below a ``yield`` of its function."""
    position = control_flow_position(project.files[path], call.start)
    return position is not None and any(
        isinstance(each, Operation) and each.op.startswith("yield") for each in body_expressions(tuple(position.before))
    )


def _is_optional_parameter(project: Traces, path: str, site: CallSite) -> bool:
    """Whether a call passes a parameter of its function whose default is None."""
    function, word = function_at(project.files[path], site.call.start), _passed_variable(site)
    return function is not None and any(
        each.name == word and each.default is not None and is_none(each.default) for each in function.params
    )


def _is_entropy_seeding(statement: Statement) -> bool:
    """``torch.seed()`` and the like, which its own fix may drop."""
    value = statement.value if isinstance(statement, ExpressionStatement) else None
    return isinstance(value, Call) and not value.args and last_identifier(value.func) in _FROM_ENTROPY


def fix_own_generator(project: Traces, path: str, site: CallSite) -> Fix | NoFix:
    """``generator.seed()`` becomes ``generator.manual_seed(...)``."""
    call, func = site.call, site.call.func
    if (
        not isinstance(site.statement, ExpressionStatement)
        or site.statement.value != call
        or not isinstance(func, Ref)
        or call.args
    ):
        return NoFix("the result of seed() is used, and manual_seed returns something else")
    if runs_often(project, path, call):
        return _REPEATED
    seed = written_seed(project, path, call.start)
    if isinstance(seed, NoFix):
        return seed
    return _replace_with_seed(f".manual_seed({seed.text})", Span(func.base_end, call.end), seed)


def fix_value(project: Traces, path: str, value: Expression, source: str) -> Fix | NoFix:
    """Replace a seed that changes between runs where it is written: in the call, or in the variable's only assignment."""
    text = project.text(path)
    for file, made in project.values(path, value):
        if file != path or (hashed := _only_hash_call(project, path, made)) is None:
            break
        if source.startswith("hash"):
            kind = hashed_kind(project, path, hashed.args[0].value) or "str"
            edits = checksum_edits(project, path, hashed, kind)
            if isinstance(edits, NoFix):
                break
            return Fix("Use a checksum", edits, safe=False)
    found = list(project.values(path, value))
    place = found[0][1] if len(found) == 1 and found[0][0] == path else value
    if isinstance(place, Ref) and place.path:
        place = stored_before(project.files[path], place) or place
    if isinstance(place, Ref):
        return NoFix("it is not known where the value comes from")
    if runs_often(project, path, _as_call(place)):
        return _REPEATED
    if source == "os.getpid" and _tells_processes_apart(project, path, value):
        return _IN_PROCESSES
    # ``if seed < 0: seed = ...`` does not want its own seed back.
    given = written_seed(project, path, place.start, but=_assigned_name(project, path, place), seeder=True)
    if isinstance(given, NoFix):
        return given
    if given.text == text[value.start : value.end]:
        return NoFix("it overwrites the program's own seed, and only the author knows which of the two is meant")
    # The value may reach a generator that takes no more.
    named = given.edits and given.text.isidentifier() and _is_named(project, path, place)
    seed = WrittenSeed(FALLBACK) if named or given.text.startswith("-") else given.below_limit
    start, end = span(_changing_part(project, path, place))
    while text[start - 1 : start] == "(" and text[end : end + 1] == ")" and place != value:
        start, end = start - 1, end + 1
    return _replace_with_seed(seed.text, Span(start, end), seed)


def _assigned_name(project: Traces, path: str, value: Expression) -> str:
    """The variable that gets a value, alone; empty where it is passed on."""
    position = control_flow_position(project.files[path], value.start)
    match position.spots[-1].statement if position else None:
        case Assign(targets=(Ref(path=()) as target,)):
            return last_identifier(target)
    return ""


_IN_PROCESSES = NoFix(
    "processes that the program starts would all have the same seed; pass each a seed with its own number"
)


def _tells_processes_apart(project: Traces, path: str, value: Expression) -> bool:
    """Whether a program starts processes that run the code around a value, but for those of ``spawn``, which get a rank."""
    function = function_at(project.files[path], value.start)
    name = path + function.name if function is not None else ""
    return any(
        last_identifier(start.event.value.func) not in _RANKED
        for program in (programs_reaching(project, name) if name else ())
        for event in program.run.trace_events
        if event.function == name
        for start in process_starts(project, event)
        if isinstance(start.event.value, Call)
    )


# What starts processes with a rank, of which a seed can be made.
_RANKED = frozenset({"spawn", "start_processes"})


def _changing_part(project: Traces, path: str, value: Expression) -> Expression:
    """The part of a seed that changes between runs, without what tells ranks or workers apart: ``time()`` of ``time() + rank``."""
    while isinstance(value, Operation) and value.op in _ADDING:
        changing = [each for each in value.operands if nondeterministic_source(project.resolver, path, each)]
        if len(changing) != 1 or all(each in changing or isinstance(each, Constant) for each in value.operands):
            break
        value = changing[0]
    return value


_ADDING = frozenset({"+", "-", "^"})


def _is_named(project: Traces, path: str, value: Expression) -> bool:
    """Whether a value is all that a variable of the module with the name of a seed gets: it needs no other name for a constant."""
    position = control_flow_position(project.files[path], value.start)
    statement = position.spots[-1].statement if position and position.function is None else None
    return (
        isinstance(statement, Assign)
        and statement.value == value
        and all(SEED_NAME.fullmatch(last_identifier(each)) for each in statement.targets)
    )


_REPEATED = NoFix("the statement runs many times, and a fixed seed would give the same numbers each time")


def fix_generator(project: Traces, path: str, site: CallSite) -> Fix | NoFix:
    """Seed a generator of NumPy or Python, unless it is created repeatedly."""
    if runs_often(project, path, site.call):
        return _REPEATED
    seed = written_seed(project, path, site.call.start, but=_passed_variable(site) or _assigned_variable(site))
    if isinstance(seed, NoFix):
        return seed
    fix = _pass_seed(project.text(path), site, _fitting(site, seed))
    return fix if isinstance(fix, NoFix) else fix._replace(takes_seed=True)


def fix_library_call(project: Traces, path: str, found: UnrepeatableCall) -> Fix | NoFix:
    """Pass what makes a library's call repeatable: a seed, an object that is made with one, or a number of threads."""
    row, site, given = found.row, found.site, found.given
    if not row.argument:
        return NoFix("the call has no argument that seeds it")
    if found.source and given is not None:
        return fix_value(project, path, given, found.source)
    if any(arg.star for arg in site.call.args) or not (found.certain or row.inner):
        return NoFix("it is not clear which arguments the call gets")
    if given is not None and not (isinstance(given, Constant) or row.value):
        return NoFix("it is not known where the value comes from")
    if row.value:
        return _pass_argument(project.text(path), found, row.value, ())
    if runs_often(project, path, site.call):
        return _REPEATED
    seed = written_seed(project, path, site.call.start)
    if isinstance(seed, NoFix):
        return seed
    text, imports = _imported(project, path, site, row.write.format(seed.below_limit.text))
    return _pass_argument(project.text(path), found, text, (*seed.edits, *imports))._replace(takes_seed=True)


def _pass_argument(text: str, found: UnrepeatableCall, value: str, more: tuple[Edit, ...]) -> Fix:
    argument, call = found.row.argument, found.site.call
    place = next((arg for arg in call.args if arg.value == found.given), None)
    edit = append_argument(call, text, f"{argument}={value}") if place is None else replace_argument(place, value)
    return Fix(f"Pass {argument}={value}", (*more, edit), safe=False)


def _imported(project: Traces, path: str, site: CallSite, written: str) -> tuple[str, tuple[Edit, ...]]:
    """What a fix writes, with the name that the call itself or the file has for its module, and the import that the file lacks."""
    module, dot, rest = written.partition(".")
    if not dot or module not in _MODULES:
        return written, ()
    tree, text, func, at = project.files[path], project.text(path), site.call.func, site.call.start
    if isinstance(func, Ref) and func.path and [*project.resolver.names(path, func._replace(path=()))] == [module]:
        return f"{text[func.start : func.end].partition('.')[0].strip()}.{rest}", ()
    function = function_at(tree, at)
    inside = function.name if function else None
    word, edits = ensure_import(tree, text, module, _MODULES[module], inside=inside, at=at)
    return f"{word}.{rest}", edits


# The modules of what a fix passes, and the names under which they are usually imported.
_MODULES = {"numpy": "np", "optuna": "optuna"}


def fix_system_random(project: Traces, path: str, site: CallSite) -> Fix | NoFix:
    """``random.SystemRandom()`` becomes ``random.Random(...)``."""
    func = site.call.func
    if runs_often(project, path, site.call):
        return _REPEATED
    if not isinstance(func, Ref) or func.path != ("SystemRandom",):
        return NoFix("the class is imported by its name, and random.Random needs another import")
    seed = written_seed(project, path, site.call.start)
    if isinstance(seed, NoFix):
        return seed
    return _replace_with_seed(f".Random({seed.text})", Span(func.base_end, site.call.end), seed)._replace(
        takes_seed=True
    )


# Seeders and generators that take 32 bits only.
_NARROW = lazy_pattern(r"numpy\.random\.(seed|RandomState|mtrand\.RandomState|RandomState\(\)\.seed)")


def _fitting(site: CallSite, seed: WrittenSeed) -> WrittenSeed:
    return seed.below_limit if any(_NARROW.fullmatch(name) for name in site.names) else seed


def _passed_variable(site: CallSite) -> str:
    """The variable that a call passes as its seed, which may be None."""
    passed = site.call.args[0].value if site.call.args else None
    return last_identifier(passed) if isinstance(passed, Ref) and not passed.path else ""


def _assigned_variable(site: CallSite) -> str:
    """The variable that gets the generator, which holds none before: ``rng = RandomState()`` under ``if rng is None``."""
    match site.statement:
        case Assign(targets=(Ref(path=()) as target,), value=value) if value == site.call:
            return last_identifier(target)
    return ""


def _pass_seed(text: str, site: CallSite, seed: WrittenSeed) -> Fix | NoFix:
    """Pass the seed as the first argument, in place of None or of a value that is always None."""
    call = site.call
    parameters = _OF_RANDOM if any(name.startswith("random.") for name in site.names) else _PARAMETERS
    if not call.args:
        return Fix(f"Pass {seed.text}", (*seed.edits, append_argument(call, text, seed.text)), safe=False)
    first: Arg = call.args[0]
    given = isinstance(first.value, Constant) and first.value.value is not None  # a mistake of another sort
    if first.star or len(call.args) > 1 or given or first.keyword not in parameters:
        return NoFix("it is not clear which argument is the seed")
    if isinstance(first.value, Ref):
        own = text[first.start : first.end]
        seed = seed._replace(text=f"{seed.text} if {own} is None else {own}")
    return Fix(f"Pass {seed.text}", (*seed.edits, replace_argument(first, seed.text)), safe=False)


def _replace_with_seed(content: str, place: Span, seed: WrittenSeed) -> Fix:
    return Fix(f"Seed with {seed.text}", (*seed.edits, Edit(place, content)), safe=False)


def _undoes_seeding(project: Traces, path: str, site: CallSite, families: tuple[str, ...]) -> bool:
    """Whether every program that reaches a call has seeded its families before."""
    programs, place = programs_reaching(project, site.function), (path, site.call)
    for program in programs:
        orders = [n for n, each in enumerate(program.run.trace_events) if (each.path, each.event.value) == place]
        for family in families:
            seeds = program.effects.seeds.get(family, ())
            if not orders or not any(seed.order < orders[0] for seed in seeds):
                return False
    return bool(programs) and bool(families)


def _only_hash_call(project: Traces, path: str, value: Expression) -> Call | None:
    """The only call of ``hash`` in a value."""
    found = [
        each
        for each in subexpressions(value)
        if isinstance(each, Call) and len(each.args) == 1 and "builtins.hash" in project.names(path, each.func)
    ]
    return found[0] if len(found) == 1 else None


def _as_call(place: Expression) -> Call:
    return Call(place.start, place.end, place, (), place.start)
