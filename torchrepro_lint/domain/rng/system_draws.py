"""System draws: whether what the operating system draws (``secrets``, ``os.urandom``, ``uuid``), mostly for identifiers, becomes
data.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.rng.identifiers import IDENTIFIERS, MAKERS, only_identifies
from torchrepro_lint.query import limits
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import is_module, simple_name
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions

# Calls that no seed reaches: they ask the operating system.
SYSTEM_DRAWS = frozenset(
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
    r"(torch|numpy)\.(?!(random\.)?(manual_)?seed|save|distributed|random\.(default_rng|RandomState)).*"
)
_SEEDERS = lazy_pattern(r"(.*\.)?(manual_)?seed(_all|_everything)?|.*\.set_seed|.*\.(default_rng|RandomState|PRNGKey)")


def data_use(project: ValueFlow, path: str, drawn: Call) -> str:
    """What a number of the operating system decides, in words such as ``is an index``; empty where that is not seen, and for a number
    that becomes a seed: TRL105 and TRL107 are about those.
    """
    left: list[tuple[str, Expression, bool]] = [(path, drawn, _TOKENS.isdisjoint(project.names(path, drawn.func)))]
    seen: set[tuple[str, Expression]] = set()
    first = ""
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
        _is_text(project, file, each) for file, each in project.values(path, drawn.args[0].value)
    ) and not only_identifies(project, path, drawn)


def _is_text(project: ValueFlow, path: str, value: Expression) -> bool:
    return any(
        (isinstance(each, Constant) and isinstance(each.value, str))
        or (isinstance(each, Ref) and any(name.startswith("string.") for name in project.names(path, each)))
        for each in subexpressions(value)
    )


def _data_step(
    project: ValueFlow, path: str, value: Expression, here: ExpressionPosition
) -> tuple[str, list[tuple[str, Expression]]]:
    """What a value decides where it stands, and where it goes on to."""
    match here.parent:
        case Subscript(indices=indices) if any(each is value for each in indices):
            return _INDEX, []
        case Operation(op=op) if op in _COMPARISONS:
            return "decides a comparison", []
        case Operation(op=op) as whole if op in _ARITHMETIC or op in ("if", "or"):
            return "", [(path, whole)]
        case Attribute(name=name) as part if name in _PARTS:
            return "", [(path, part)]
        case Comprehension(kind="dict", elements=(key, _)) if key is value:
            return "", []
        case Subscript() | Comprehension() as whole:
            return "", [(path, whole)]
        case Call(func=func) as call if func is not value:
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
    if any(map(_NUMBERS.fullmatch, names)):
        return "", [(path, call)]
    return "", []


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
        case SimpleStatement(kind="return") if _is_sort_key(project, path, here.function):
            return "decides an order", []
        case SimpleStatement(kind="return") if not is_module(here.function):
            word = simple_name(here.function)
            return "", [] if MAKERS.fullmatch(word) else list(project.uses.of_result(f"{path}{here.function}"))
    return "", []


def _is_sort_key(project: ValueFlow, path: str, function: str) -> bool:
    """Whether a function is a lambda that a call gets as its ``key``."""
    return any(
        isinstance(each, Lambda)
        and each.function == function
        and isinstance(here.parent, Call)
        and any(arg.keyword == "key" and arg.value is each for arg in here.parent.args)
        for each, here in project.uses.spots(path).items()
    )
