"""TRL105 and TRL106: seeds that change between runs, and generators without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.rows import Seeder
from torchrepro_lint.checks.environment_draws import environment_seed
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.dataflow.feasibility import implies_not_none
from torchrepro_lint.dataflow.reaching_definitions import stores
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.loaders.constructions import calling_contexts
from torchrepro_lint.domain.loaders.workers import worker_function_names, worker_seeds
from torchrepro_lint.domain.rng.identifiers import (
    IDENTIFIERS,
    MAKERS,
    is_text,
    keyed_call,
    only_identifies,
    only_makes_identifiers,
)
from torchrepro_lint.domain.rng.library_generators import (
    SEEDABLE_GENERATORS,
    UnrepeatableCall,
    generator_seed,
    lacks_seed,
    unrepeatable_calls,
)
from torchrepro_lint.domain.rng.seeders import nondeterministic_source, passed_seed, seeds_from_entropy
from torchrepro_lint.domain.rng.seeding import seeding_arguments
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Fix, NoFix
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
    span,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_module, simple_name, split_method, without_calls
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import is_none, last_identifier
from torchrepro_lint.trace.traces import Context, Traces

# Methods of objects that take a seed.
_SEEDING_METHODS = ("torch.Generator().manual_seed", "numpy.random.RandomState().seed", "random.Random().seed")
_RESEEDING_METHODS = ("torch.Generator().seed", "torch.default_generator.seed", "torch.cuda.default_generators[].seed")
_SYSTEM_RANDOM = ("random.SystemRandom", "secrets.SystemRandom")


def seed(context: Context) -> Iterator[Finding]:
    """TRL105: seeds that change between runs."""
    for site in context.project.calls(context.path):
        found = _seeder_fault(context, site)
        if found and not _is_worker_seed(context.project, context.path, site):
            message, fix = found
            if isinstance(fix, Fix):
                from torchrepro_lint.checks.fixes.outdated_comments import ENTROPY, without_outdated_comments

                fix = without_outdated_comments(context.tree, context.lines.text, fix, ENTROPY)
            yield Finding("TRL105", span(site.call), message, fix)


def _is_worker_seed(project: Traces, path: str, site: CallSite) -> bool:
    """Whether a call seeds a worker, which another rule reports."""
    return site.function in worker_function_names(project) or any(
        each.call == site.call for each in worker_seeds(project, path)
    )


def _seeder_fault(context: Context, site: CallSite) -> tuple[str, Fix | NoFix] | None:
    """The fault of a seeding call, and its fix."""
    project, path = context.project, context.path
    for name in site.names:
        if name in _RESEEDING_METHODS:
            from torchrepro_lint.checks.fixes.entropy import fix_own_generator

            own = display_name(name).replace("[]", "[...]")
            message = f"{own}() takes its seed from entropy; call manual_seed with a constant"
            return message, fix_own_generator(project, path, site)
        seeder = context.catalogue.seeder(without_calls(name)) if not in_project(name) else None
        if seeder is not None:
            return _catalogued_seeder_fault(context, site, name, seeder) if seeder.families else None
        if name in _SEEDING_METHODS or name in SEEDABLE_GENERATORS:
            given = _given_seed(site)
            if (
                given
                and (source := nondeterministic_source(project.resolver, path, given))
                and not (name in SEEDABLE_GENERATORS and only_makes_identifiers(project, path, site.call))
            ):
                from torchrepro_lint.checks.fixes.entropy import fix_value

                return _changing_seed_message(name, source), fix_value(project, path, given, source)
        if in_project(name):
            return _forwarded_seed_fault(context, site, name)
        given = environment_seed(name, site.call)
        if given is not None and (source := nondeterministic_source(project.resolver, path, given)):
            from torchrepro_lint.checks.fixes.entropy import fix_value

            return _changing_seed_message(name, source), fix_value(project, path, given, source)
    return None


def _catalogued_seeder_fault(
    context: Context, site: CallSite, name: str, seeder: Seeder
) -> tuple[str, Fix | NoFix] | None:
    names, path = context.project.resolver, context.path
    given = passed_seed(seeder, site.call)
    values = [value for _, value in names.values(path, given)] if given is not None else []
    missing = bool(values) and all(map(is_none, values)) and not _is_tested(context.project, site, given)
    if seeds_from_entropy(seeder, site.call) or (missing and seeder.none == "entropy"):
        from torchrepro_lint.checks.fixes.entropy import fix_reseeding

        takes_seed = seeder.seed in (*seeder.signature.parameters, *seeder.signature.keywords)
        remedy = "pass a constant" if takes_seed else "seed with a constant, by torch.manual_seed(...)"
        message = f"{display_name(name)}({'None' if given else ''}) takes its seed from entropy; {remedy}"
        return message, fix_reseeding(context.project, path, site, seeder.families)
    if given is None or (source := nondeterministic_source(names, path, given)) is None:
        return None
    from torchrepro_lint.checks.fixes.entropy import fix_value

    return _changing_seed_message(name, source), fix_value(context.project, path, given, source)


def _changing_seed_message(name: str, source: str) -> str:
    source = source.removeprefix("builtins.")
    return f"{display_name(name)} takes its seed from {source}, which changes between runs; pass a constant"


def _given_seed(site: CallSite) -> Expression | None:
    try:
        return generator_seed(site.call)
    except LookupError:
        return None


def _forwarded_seed_fault(context: Context, site: CallSite, name: str) -> tuple[str, Fix | NoFix] | None:
    """A nondeterministic value that a function of the project passes on to a seeder."""
    if all(type(arg.value) is Constant for arg in site.call.args):
        return None  # a literal does not change, and whether the function seeds need not be known
    for word, value in seeding_arguments(context.project, name, site.call):
        source = _source_of(context, value)
        if source:
            from torchrepro_lint.checks.fixes.entropy import fix_value

            return _changing_seed_message(word, source), fix_value(context.project, context.path, value, source)
    return None


def _source_of(context: Context, value: Expression) -> str | None:
    return nondeterministic_source(context.project.resolver, context.path, value)


def generator(context: Context) -> Iterator[Finding]:
    """TRL106: generators without a seed, of NumPy, of Python and of libraries."""
    yield from _plain_generators(context)
    yield from _system_draws(context)
    for found in unrepeatable_calls(context.project, context.path):
        from torchrepro_lint.checks.fixes.entropy import fix_library_call

        fix = fix_library_call(context.project, context.path, found)
        yield Finding("TRL106", span(found.site.call), _library_message(found), fix)


def _system_draws(context: Context) -> Iterator[Finding]:
    """Data that the operating system draws, in modules that use torch."""
    project = context.project
    for site in project.calls(context.path):
        name = next((each for each in site.names if each in _SYSTEM_DRAWS), "")
        if name and context.path in project.torch_modules and not is_test(context.path, context.tree.summary):
            use = _data_use(project, context.path, site.call)
            if use:
                message = (
                    f"{name} draws from the operating system, which no seed reaches, and the result {use}; "
                    "draw it from random.Random(seed)"
                )
                yield Finding("TRL106", span(site.call), message, _OTHER_GENERATOR)


_OTHER_GENERATOR = NoFix("another generator, with other methods, must draw it")


def _library_message(found: UnrepeatableCall) -> str:
    row, name = found.row, found.name
    label = f"{simple_name(name)}() of {row.library}" if split_method(name)[1] else display_name(name)
    if found.source:
        return _changing_seed_message(label, found.source)
    if not row.argument:
        return f"{label} {row.cause}"
    without = f" without a {row.key} in {row.argument}" if row.key else "" if row.value else f" without {row.argument}"
    passed = row.value or row.write.format("...")
    return f"{label}{without} {row.cause}; pass {row.argument}={passed}"


def _plain_generators(context: Context) -> Iterator[Finding]:
    """Generators of NumPy and of Python."""
    sites = context.project.calls(context.path)
    seeded = frozenset(_variables_seeded(sites))
    for site in sites:
        for name in site.names:
            if name not in SEEDABLE_GENERATORS and name not in _SYSTEM_RANDOM:
                continue
            if only_makes_identifiers(context.project, context.path, site.call):
                continue
            from torchrepro_lint.checks.fixes.entropy import fix_generator, fix_system_random

            if name in _SYSTEM_RANDOM:
                message = "random.SystemRandom cannot be seeded; use random.Random(seed)"
                fix = fix_system_random(context.project, context.path, site)
            elif _is_seeded_later(site, seeded) or _is_tested(context.project, site, _given_seed(site)):
                continue
            elif lacks_seed(context.project.resolver, context.path, site.call):
                if _is_ruled_out(context.project, context.path, site):
                    continue
                label = SEEDABLE_GENERATORS[name]
                cause = f"{label} gets None as its seed, so it" if _given_seed(site) else f"{label}() without a seed"
                message = f"{cause} draws fresh entropy on each run; pass a seed"
                fix = fix_generator(context.project, context.path, site)
            else:
                continue
            yield Finding("TRL106", span(site.call), message, fix)
            break


def _is_ruled_out(project: Traces, path: str, site: CallSite) -> bool:
    """Whether all known callers of the function around a call pass what keeps the call from being run: a generator for ``rng=None``."""
    functions = project.resolver.functions(site.function)
    return bool(functions) and not any(
        project.value_sources.is_feasible(path, function, site.call.start, environment)
        for environment in calling_contexts(project, site)
        for function in functions
    )


def _is_seeded_later(site: CallSite, seeded: frozenset[tuple[str, tuple[str, ...]]]) -> bool:
    """``rng = random.Random()`` followed by ``rng.seed(7)`` or ``rng.setstate(state)`` in the same function."""
    statement = site.statement
    targets = statement.targets if isinstance(statement, Assign) else ()
    return any((site.function, each.roots) in seeded for each in targets if isinstance(each, Ref))


def _is_tested(project: Traces, site: CallSite, given: Expression | None) -> bool:
    """Whether a test around a call rules out that a seed, or what was assigned to it before in the function, is None."""
    values = [given]
    if isinstance(given, Ref) and site.guards:
        bodies = [each.body for each in project.resolver.functions(site.function)]
        found = (pair for body in bodies for pair in stores(body, given.access_path))
        values += [value for statement, value in found if statement.end <= site.call.start][-1:]
    return any(implies_not_none(guard, value) for guard in site.guards for value in values if value is not None)


_SEEDING = frozenset({("seed",), ("setstate",), ("set_state",)})


def _variables_seeded(sites: Iterable[CallSite]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The variables that get a seed or a state, each with the function of the call."""
    for site in sites:
        func = site.call.func
        if isinstance(func, Ref) and func.path in _SEEDING and site.call.args:
            yield site.function, func.roots


# --- what the operating system draws ---------------------------------------------------------------------------------

# Calls that no seed reaches: they ask the operating system.
_SYSTEM_DRAWS = frozenset(
    {"os.urandom", "uuid.uuid1", "uuid.uuid4", "secrets.choice", "secrets.randbelow", "secrets.randbits"}
    | {"secrets.token_bytes", "secrets.token_hex"}
)
_INDEX = "is an index"
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "&", ">>", "<<", "^", "|", "**"})
_NUMBERS = lazy_pattern(
    r"builtins\.(int|float|abs|round|min|max)(\.from_bytes)?|int\.from_bytes|struct\.unpack|builtins\.(list|bytes|bytearray)"
)
_NUMERIC_PARTS = frozenset({"int", "time_low", "node"})
_PARTS = _NUMERIC_PARTS | {"hex", "bytes"}
# Draws that are no numbers before they are converted. In brackets they are the key of a dictionary, which only identifies.
_TOKENS = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4", "secrets.token_bytes", "secrets.token_hex"})
_ARRAYS = lazy_pattern(
    r"(torch|numpy)\.(?!(random\.)?(manual_)?seed|save|load|distributed|random\.(default_rng|RandomState)).*"
)
_SEEDERS = lazy_pattern(r"(.*\.)?(manual_)?seed(_all|_everything)?|.*\.set_seed|.*\.(default_rng|RandomState|PRNGKey)")


def _data_use(project: ValueFlow, path: str, drawn: Call) -> str:
    """What a number of the operating system decides, in words such as ``is an index``; empty where that is not seen, and for a number
    that becomes a seed: TRL105 and TRL107 are about those.
    """
    left: list[tuple[str, Expression, bool]] = [(path, drawn, _TOKENS.isdisjoint(project.names(path, drawn.func)))]
    seen, first = set[tuple[str, Expression]](), ""
    if _chooses_data(project, path, drawn):
        return "is data"
    while left and len(seen) < limits.MAX_SYSTEM_DRAW_USES:
        file, value, is_number = left.pop(0)
        here = project.uses.spots(file).of(value)
        if here is None or (file, value) in seen:
            continue
        seen.add((file, value))
        if isinstance(here.parent, Call) and any(map(_SEEDERS.fullmatch, project.names(file, here.parent.func))):
            return ""
        said, further = _data_step(project, file, value, here)
        if said != _INDEX or is_number:
            first = first or said
        left += ((*each, is_number or _is_converted(here.parent, each[1])) for each in further)
    return first


def _is_converted(parent: Expression | None, further: Expression) -> bool:
    """Whether a token goes on as a number: ``int(...)``, ``.int``, a byte of bytes."""
    match parent:
        case Call():
            return True
        case Attribute(name=name):
            return name in _NUMERIC_PARTS
        case Subscript(indices=indices):
            return isinstance(indices[0], Constant)
    return isinstance(further, Ref) and not _NUMERIC_PARTS.isdisjoint(further.path)


def _chooses_data(project: ValueFlow, path: str, drawn: Call) -> bool:
    """``secrets.choice`` of anything but characters, unless it only becomes an identifier."""
    if "secrets.choice" not in project.names(path, drawn.func) or not drawn.args:
        return False
    return not any(
        is_text(project, file, each) for file, each in project.values(path, drawn.args[0].value)
    ) and not only_identifies(project, path, drawn)


def _data_step(
    project: ValueFlow, path: str, value: Expression, here: ExpressionPosition
) -> tuple[str, list[tuple[str, Expression]]]:
    """What a value decides where it stands, and where it goes on to."""
    match here.parent:
        case Subscript(indices=indices) if any(each == value for each in indices):
            return _INDEX, []
        case Operation(op=op) if op in _COMPARISONS:
            return "decides a comparison", []
        case Operation(op=op, operands=operands) as whole if op in _ARITHMETIC or op in ("if", "or"):
            in_text = any(isinstance(each, Constant) and isinstance(each.value, str) for each in operands)
            return "", [] if in_text else [(path, whole)]
        case Attribute(name=name) as part if name in _PARTS:
            return "", [(path, part)]
        case Comprehension(kind="dict", elements=(key, _)) if key == value:
            return "", []
        case Subscript() | Comprehension() as whole:
            return "", [(path, whole)]
        case Call(func=func) as call if func != value:
            return _data_argument(project, path, call)
        case None:
            return _data_statement(project, path, here)
    return "", []


def _data_argument(project: ValueFlow, path: str, call: Call) -> tuple[str, list[tuple[str, Expression]]]:
    names = project.names(path, call.func)
    if any(map(_ARRAYS.fullmatch, names)):
        return "becomes an array", []
    if "builtins.range" in names:
        return "is a number of steps", []
    return "", [(path, call)] if any(map(_NUMBERS.fullmatch, names)) else []


def _data_statement(
    project: ValueFlow, path: str, here: ExpressionPosition
) -> tuple[str, list[tuple[str, Expression]]]:
    match here.statement:
        case Assign(op="=" | ":" | "+=", targets=targets):
            found: list[tuple[str, Expression]] = []
            for target in targets:
                if isinstance(target, Ref) and not target.path and not IDENTIFIERS.fullmatch(last_identifier(target)):
                    uses = project.uses.of_variable(path, target, here, here.statement.end)
                    found += [(file, ref) for file, ref, words in uses if set(words) <= _PARTS]
            return "", found
        case SimpleStatement(kind="return") if keyed_call(project, path, here.function):
            return "decides an order", []
        case SimpleStatement(kind="return") if not is_module(here.function):
            word = simple_name(here.function)
            return "", [] if MAKERS.fullmatch(word) else list(project.uses.of_result(f"{path}{here.function}"))
    return "", []
