"""TRL307: worker functions that seed from entropy, or give every worker the same seed."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.domain.loaders.workers import WorkerSeed, may_seed_workers, worker_seeds
from torchrepro_lint.source.text import Edit, Fix, NoFix
from torchrepro_lint.syntax.nodes import Expression, Function, Ref, span
from torchrepro_lint.syntax.qualified_names import local_symbol, simple_name
from torchrepro_lint.syntax.scopes import function_at
from torchrepro_lint.syntax.visitor import all_expressions, read_expressions, statements, subexpressions
from torchrepro_lint.trace.traces import Context

CODE = "TRL307"
_TORCH = ("torch.manual_seed", "torch.random.manual_seed")
_OTHERS = ("numpy.random.seed", "random.seed")


def check(context: Context) -> Iterator[Finding]:
    """Reported at the call that seeds, or at the worker function's call of a helper that seeds."""
    if may_seed_workers(context.project, context.path):
        for seed in worker_seeds(context.project, context.path):
            yield Finding(CODE, span(seed.call), _message(seed), _remedy(context, seed))


def _message(seed: WorkerSeed) -> str:
    name = display_name(seed.name)
    if seed.source == "entropy":
        cause = f"{name}() takes a worker's seed from entropy"
    elif seed.source:
        cause = f"{name} takes a worker's seed from {seed.source}, which changes between runs"
    else:
        cause = f"{name} gives every worker the same seed, in every epoch"
    return f"{cause}; {_cure(seed)}"


def _cure(seed: WorkerSeed) -> str:
    if seed.name in _TORCH:
        return "pass torch.initial_seed(), which the loader has set"
    return "seed from torch.initial_seed() % 2**32"


def _helpers_called(context: Context, seed: WorkerSeed) -> list[Function]:
    """The functions of the project that the call runs; none for a direct call of the seeder."""
    names = () if seed.direct else context.project.names(seed.path, seed.call.func)
    return [function for name in names for function in context.project.resolver.functions(name)]


def _is_unbound_name(context: Context, word: str) -> bool:
    """Whether the file reads a name that it does not bind, and that an import would bind."""
    read = all_expressions(context.tree)
    return any(isinstance(each, Ref) and f"?{word}" in each.roots for each in read)


def _remedy(context: Context, seed: WorkerSeed) -> Fix | NoFix:
    """The documented form, where the seed is the only argument or there is none."""
    call = seed.call
    if (obstacle := _obstacle(context, seed)) is not None:
        return obstacle
    from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
    from torchrepro_lint.checks.fixes.import_block import ensure_import
    from torchrepro_lint.checks.fixes.removals import remove_unread

    torch, imports = ensure_import(context.tree, context.lines.text, "torch")
    if imports and _is_unbound_name(context, torch):
        return NoFix("the file reads torch without importing it, so what the name means here is not known")
    if (value_of := _shared_value(context, seed)) is not None:
        value = f"{torch}.initial_seed() % 2**32"
        return Fix(f"Seed from {value}", (*imports, Edit(span(value_of), value)), safe=False)
    value = f"{torch}.initial_seed()" + ("" if seed.direct and seed.name in _TORCH else " % 2**32")
    edit = replace_argument(call.args[0], value) if call.args else append_argument(call, context.lines.text, value)
    unread = remove_unread(context.project, context.path, call.args[0].value) if call.args else ()
    return Fix(f"Seed from {value}", (*imports, *unread, edit), safe=False)


def _shared_value(context: Context, seed: WorkerSeed) -> Expression | None:
    """The value of a local variable that only bad seeds read, several of them: ``seed = uuid.uuid4().int % 2**32``."""
    given = seed.call.args[0].value if seed.call.args else None
    function = function_at(context.tree, seed.call.start)
    if not isinstance(given, Ref) or given.path or len(given.roots) != 1 or function is None:
        return None
    if given.roots[0] != local_symbol(function.name, simple_name(given.roots[0])):
        return None
    assigned = context.project.resolver.assigned(context.path + given.roots[0])
    parts = (
        part for one in statements(function.body) for each in read_expressions(one) for part in subexpressions(each)
    )
    read = {each.start for each in parts if isinstance(each, Ref) and given.roots[0] in each.roots}
    seeds = {arg.value.start for each in worker_seeds(context.project, context.path) for arg in each.call.args}
    return assigned[0][1] if len(assigned) == 1 and assigned[0][0] == "=" and len(read) > 1 and read <= seeds else None


def _obstacle(context: Context, seed: WorkerSeed) -> NoFix | None:
    """What keeps the argument of the call from being replaced."""
    call = seed.call
    if len(call.args) > 1 or any(arg.star for arg in call.args):
        return NoFix("the call has several arguments, and it is not clear which one is the seed")
    if not (_helpers_called(context, seed) or seed.name in _TORCH + _OTHERS):
        return NoFix("it is not known how this function takes a seed")
    if not seed.direct and not (call.args and seed.passed):
        return NoFix("the function that is called chooses the seed itself")
    function = function_at(context.tree, call.start)
    if function is not None and any(True for _ in context.project.sites_of(context.path + function.name)):
        return NoFix("the program calls this function itself, too; write another one for workers")
    return None
