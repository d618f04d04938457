"""The fixes of TRL105 and TRL106: the program's own seed, or a constant, in place of entropy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.checksums import checksum_edits, hashed_kind
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, seed_at, with_fallback
from torchrepro_lint.checks.fixes.removals import remove_statement
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span
from torchrepro_lint.syntax.control_flow import comprehension_names, control_flow_position
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, ExpressionStatement, Ref, Statement, span
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions
from torchrepro_lint.trace.events import runs_often

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.program_index import CallSite

_WORD = re.compile(r"\w+")
_SEEDED_FORMS = {"seed": "manual_seed", "seed_all": "manual_seed_all"}
_FROM_ENTROPY = frozenset(_SEEDED_FORMS)
# The names of a first parameter that is the seed: in Python's random, and elsewhere.
_OF_RANDOM = (None, "a", "x")
_PARAMETERS = (None, "seed", "entropy", "key")


def seed_text_at(project: Project, path: str, offset: int) -> str:
    """The seed that can be written at an offset of a file: the program's own, else a constant."""
    position = control_flow_position(project.files[path], offset)
    found = seed_at(project, path, position) if position else None
    if (
        position is None
        or found is None
        or not comprehension_names(position, offset).isdisjoint(_WORD.findall(found.text))
    ):
        return FALLBACK
    return found.text


def fix_reseeding(project: Project, path: str, site: CallSite, families: tuple[str, ...]) -> Fix | None:
    """Drop a call that seeds from entropy if it undoes an earlier seeding or runs often, else give it a seed."""
    text, call = project.text(path), site.call
    alone = isinstance(site.statement, ExpressionStatement) and site.statement.value is call
    if alone and (_undoes_seeding(project, site, families) or runs_often(project, path, call)):
        position = control_flow_position(project.files[path], call.start)
        edit = (
            remove_statement(text, position.spots[-1], all(map(_is_entropy_seeding, position.spots[-1].block)))
            if position
            else None
        )
        return Fix("drop the seeding from entropy", (edit,), safe=False) if edit else None
    seed = seed_text_at(project, path, call.start)
    func = call.func
    word = (func.path or ("",))[-1] if isinstance(func, Ref) else ""
    if word in _SEEDED_FORMS and isinstance(func, Ref) and func.roots == ("torch",):
        if call.args or not alone:
            return None  # its result, the seed, is used; manual_seed returns something else
        return _replace_with_seed(f".{_SEEDED_FORMS[word]}({seed})", Span(func.base_end, call.end), seed)
    return _pass_seed(text, site, seed)


def _is_entropy_seeding(statement: Statement) -> bool:
    """``torch.seed()`` and the like, which its own fix may drop."""
    value = statement.value if isinstance(statement, ExpressionStatement) else None
    return isinstance(value, Call) and not value.args and last_identifier(value.func) in _FROM_ENTROPY


def fix_own_generator(text: str, site: CallSite, seed: str) -> Fix | None:
    """``generator.seed()`` becomes ``generator.manual_seed(...)``."""
    call, func = site.call, site.call.func
    if (
        not isinstance(site.statement, ExpressionStatement)
        or site.statement.value is not call
        or not isinstance(func, Ref)
        or call.args
    ):
        return None
    return _replace_with_seed(f".manual_seed({seed})", Span(func.base_end, call.end), seed) if text else None


def fix_value(project: Project, path: str, value: Expression, source: str) -> Fix | None:
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
            return Fix("take a checksum, which is the same in each run", edits, safe=False)
    found = list(project.values(path, value))
    place = found[0][1] if len(found) == 1 and found[0][0] == path else value
    if isinstance(place, Ref) or runs_often(project, path, _as_call(place)):
        return None
    seed = seed_text_at(project, path, place.start)
    start, end = span(place)
    while text[start - 1 : start] == "(" and text[end : end + 1] == ")" and place is not value:
        start, end = start - 1, end + 1
    return _replace_with_seed(seed, Span(start, end), seed)


def fix_generator(project: Project, path: str, site: CallSite) -> Fix | None:
    """Seed a generator of NumPy or Python; None where it is created repeatedly."""
    if runs_often(project, path, site.call):
        return None
    return _pass_seed(project.text(path), site, seed_text_at(project, path, site.call.start))


def fix_system_random(project: Project, path: str, site: CallSite) -> Fix | None:
    """``random.SystemRandom()`` becomes ``random.Random(...)``."""
    func, seed = site.call.func, seed_text_at(project, path, site.call.start)
    if runs_often(project, path, site.call) or not isinstance(func, Ref) or func.path != ("SystemRandom",):
        return None
    return _replace_with_seed(f".Random({seed})", Span(func.base_end, site.call.end), seed)


def _pass_seed(text: str, site: CallSite, seed: str) -> Fix | None:
    """Pass the seed as the first argument, in place of None or of a value that is always None."""
    call = site.call
    parameters = _OF_RANDOM if any(name.startswith("random.") for name in site.names) else _PARAMETERS
    if not call.args:
        return Fix(f"pass {seed}", (append_argument(call, text, seed),), safe=False)
    first: Arg = call.args[0]
    given = isinstance(first.value, Constant) and first.value.value is not None  # a mistake of another sort
    if first.star or len(call.args) > 1 or given or first.keyword not in parameters:
        return None
    if isinstance(first.value, Ref):
        seed = with_fallback(text[first.start : first.end], Constant(0, 0, None))
    return Fix(f"pass {seed}", (replace_argument(first, seed),), safe=False)


def _replace_with_seed(content: str, place: Span, seed: str) -> Fix:
    return Fix(f"seed with {seed}", (Edit(place, content),), safe=False)


def _undoes_seeding(project: Project, site: CallSite, families: tuple[str, ...]) -> bool:
    """Whether every program that reaches a call has seeded its families before."""
    programs = project.reaching(site.function)
    for program in programs:
        orders = [n for n, each in enumerate(program.run.trace_events) if each.event.value is site.call]
        for family in families:
            seeds = program.effects.seeds.get(family, ())
            if not orders or not any(seed.order < orders[0] for seed in seeds):
                return False
    return bool(programs) and bool(families)


def _only_hash_call(project: Project, path: str, value: Expression) -> Call | None:
    """The only call of ``hash`` in a value."""
    found = [
        each
        for each in subexpressions(value)
        if isinstance(each, Call) and len(each.args) == 1 and "builtins.hash" in project.names(path, each.func)
    ]
    return found[0] if len(found) == 1 else None


def _as_call(place: Expression) -> Call:
    return Call(place.start, place.end, place, (), place.start)
